"""Display columns of flat objects, for many items at once: the state as JSON, and the sort key of each value.

They equal the columns that `item_rows` and `facts_column` make for one item; tests compare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from json.encoder import encode_basestring

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.pipeline.columnar.snapshot_writer import KEY_MAX, Entries
from antiphon.pipeline.order.shuffle_chunk import I64, numbers
from antiphon.pipeline.order.varints import LONG_VARINT_MAX, Wire
from antiphon.pipeline.tables.facts_column import name_of
from antiphon.pipeline.tables.sort_key import KEY_SIZE_MAX, key_of

_ESCAPED = r'["\\\x00-\x1f]'  # characters that JSON escapes
_EXACT_MAX = 1 << 53
_SIGN = np.uint64(1 << 63)
_NUMBER_SIZE = 11  # bytes of the sort key of a number


@dataclass(slots=True)
class DisplayColumns:
    """Display columns of some items, by ascending item number."""

    items: I64  # the item numbers, ascending
    state: pa.Array  # JSON
    begins: I64  # where the paths of each item begin in `names` and `keys`, and the end
    names: pa.Array  # the names of paths
    keys: pa.Array  # the sort keys of the values there

    def positions(self, items: I64) -> I64:
        """Return the positions of items in these columns, by item number."""
        found: I64 = np.searchsorted(self.items, items)
        return found


def display_columns(entries: Entries, items: I64, wire: Wire) -> DisplayColumns:
    """Return the display columns of items, by ascending numbers. Keys and texts must be UTF-8: see `all_utf8`."""
    if len(items):
        low, high = np.searchsorted(entries.item, (items[0], items[-1] + 1))
        entries = entries.where(slice(low, high))
    last = np.append(entries.firsts()[1:], True)[: len(entries.item)]  # the last entry at a key is its value
    shown = entries.where(last & np.isin(entries.item, items))
    begins = np.searchsorted(shown.item, np.append(items, (items[-1] if len(items) else 0) + 1))
    values = _Values(shown, wire)
    quoted, paths = _names(shown)
    parts = _glued(quoted, values.json())
    lists = pa.LargeListArray.from_arrays(numbers(begins, pa.int64()), parts)
    state = _glued("{", pc.binary_join(lists, _text(",")), "}").cast(pa.string())
    return DisplayColumns(items, state, begins, paths, values.keys())


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _glued(*parts: pa.Array | str) -> pa.Array:
    """Concatenate texts, value by value."""
    columns = [_text(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, _text(""))


def all_utf8(entries: Entries, wire: Wire) -> bool:
    """True if all keys and texts of the entries are UTF-8."""
    try:
        _keys(entries)
        wire.texts(entries.value_at[entries.text], entries.value_end[entries.text])
    except pa.ArrowInvalid:
        return False
    return True


def _keys(entries: Entries) -> pa.Array:
    """Return the key of each entry; raise `pa.ArrowInvalid` if one is not UTF-8."""
    size = entries.key_size
    bounds = np.concatenate(([0], np.cumsum(size)))
    data = pa.py_buffer(entries.key_bytes()[np.arange(KEY_MAX) < size[:, None]])
    found = pa.Array.from_buffers(pa.large_binary(), len(size), [None, pa.py_buffer(bounds), data])
    return found.cast(pa.large_string())


def _names(entries: Entries) -> tuple[pa.Array, pa.Array]:
    """Return for each entry the quoted JSON key, and the name of its path. There are few distinct keys."""
    known = _keys(entries).dictionary_encode()
    texts = known.dictionary.to_pylist()
    quoted = pa.array([f"{encode_basestring(text)}:" for text in texts], pa.large_string())
    paths = pa.array([name_of((text,)) for text in texts], pa.string())
    return quoted.take(known.indices), paths.take(known.indices)


class _Values:
    """The values of entries, texts first, then integers; `_order` is the position of each entry's value."""

    def __init__(self, entries: Entries, wire: Wire) -> None:
        which, others = np.flatnonzero(entries.text), np.flatnonzero(~entries.text)
        self._order = np.empty(len(entries.text), dtype=np.int64)
        self._order[which], self._order[others] = np.arange(len(which)), len(which) + np.arange(len(others))
        self._texts = wire.texts(entries.value_at[which], entries.value_end[which])
        zigzag, _ = wire.numbers(entries.value_at[others], LONG_VARINT_MAX)
        self._numbers = (zigzag >> 1) ^ -(zigzag & 1)

    def json(self) -> pa.Array:
        texts = _glued('"', self._texts, '"')
        odd = pc.match_substring_regex(self._texts, _ESCAPED)
        if pc.any(odd).as_py():
            known = self._texts.filter(odd).to_pylist()
            texts = pc.replace_with_mask(texts, odd, pa.array(map(encode_basestring, known), pa.large_string()))
        return self._joined(texts, numbers(self._numbers, pa.int64()).cast(pa.large_string()))

    def keys(self) -> pa.Array:
        texts = _glued("\x02", self._texts).cast(pa.large_binary())
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        if longest > KEY_SIZE_MAX + 1:
            texts = pc.binary_slice(texts, 0, KEY_SIZE_MAX + 1)
        return self._joined(texts, self._number_keys()).cast(pa.binary())

    def _number_keys(self) -> pa.Array:
        given = self._numbers
        bits = given.astype(np.float64).view(np.uint64)
        rows = np.zeros((len(given), _NUMBER_SIZE), dtype=np.uint8)
        rows[:, 0] = 1
        turned = np.where(given < 0, ~bits, bits | _SIGN)
        rows[:, 1:9] = turned.astype(">u8").view(np.uint8).reshape(-1, 8)
        bounds = np.arange(len(given) + 1) * _NUMBER_SIZE
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(rows)]
        found = pa.Array.from_buffers(pa.large_binary(), len(given), buffers)
        great = np.flatnonzero(np.abs(given) > _EXACT_MAX)
        if len(great):  # integers that no double equals
            keys = found.to_pylist()
            for at in great.tolist():
                keys[at] = key_of(int(given[at]))
            found = pa.array(keys, pa.large_binary())
        return found

    def _joined(self, texts: pa.Array, others: pa.Array) -> pa.Array:
        return pa.concat_arrays([texts, others]).take(numbers(self._order, pa.int64()))
