"""What tables show of plain objects, on columns: the state as JSON, and the sort keys of what is at each key.

It is what `shown` and `facts` say of such an item, for many at once; tests compare.
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

_ESCAPED = r'["\\\x00-\x1f]'  # what JSON does not let stand in a text
_EXACT_MAX = 1 << 53
_SIGN = np.uint64(1 << 63)
_NUMBER_SIZE = 11  # of a sort key


@dataclass(slots=True)
class PlainShown:
    """Of some items, in order."""

    items: I64  # their numbers, ascending
    state: pa.Array  # JSON
    begins: I64  # where the keys of each begin, and the end
    names: pa.Array  # of paths
    keys: pa.Array  # sort keys

    def places(self, items: I64) -> I64:
        """Where items are, by their numbers."""
        found: I64 = np.searchsorted(self.items, items)
        return found


def show_plain(entries: Entries, items: I64, wire: Wire) -> PlainShown:
    """Of items, by ascending numbers, from what stands in them, which is text: see `are_texts`."""
    if len(items):
        low, high = np.searchsorted(entries.item, (items[0], items[-1] + 1))
        entries = entries.where(slice(low, high))
    last = np.append(entries.firsts()[1:], True)[: len(entries.item)]  # at each key, the last one shows
    shown = entries.where(last & np.isin(entries.item, items))
    begins = np.searchsorted(shown.item, np.append(items, (items[-1] if len(items) else 0) + 1))
    values = _Values(shown, wire)
    quoted, paths = _names(shown)
    parts = _glued(quoted, values.json())
    lists = pa.LargeListArray.from_arrays(numbers(begins, pa.int64()), parts)
    state = _glued("{", pc.binary_join(lists, _text(",")), "}").cast(pa.string())
    return PlainShown(items, state, begins, paths, values.keys())


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _glued(*parts: pa.Array | str) -> pa.Array:
    """Texts one after another, value by value."""
    columns = [_text(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, _text(""))


def are_texts(entries: Entries, wire: Wire) -> bool:
    """Whether keys and texts of entries are, in any order."""
    try:
        _keys(entries)
        wire.texts(entries.value_at[entries.text], entries.value_end[entries.text])
    except pa.ArrowInvalid:
        return False
    return True


def _keys(entries: Entries) -> pa.Array:
    """The key of each entry; `pa.ArrowInvalid` if one is no text."""
    size = entries.key_size
    bounds = np.concatenate(([0], np.cumsum(size)))
    data = pa.py_buffer(entries.key_bytes()[np.arange(KEY_MAX) < size[:, None]])
    found = pa.Array.from_buffers(pa.large_binary(), len(size), [None, pa.py_buffer(bounds), data])
    return found.cast(pa.large_string())


def _names(entries: Entries) -> tuple[pa.Array, pa.Array]:
    """The key of each entry as JSON begins with it, and the name of its path. There are few that differ."""
    known = _keys(entries).dictionary_encode()
    texts = known.dictionary.to_pylist()
    quoted = pa.array([f"{encode_basestring(text)}:" for text in texts], pa.large_string())
    paths = pa.array([name_of((text,)) for text in texts], pa.string())
    return quoted.take(known.indices), paths.take(known.indices)


class _Values:
    """The values of entries, texts first and then integers; `_order` is where each entry's is."""

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
        if len(great):  # no real is that integer
            keys = found.to_pylist()
            for at in great.tolist():
                keys[at] = key_of(int(given[at]))
            found = pa.array(keys, pa.large_binary())
        return found

    def _joined(self, texts: pa.Array, others: pa.Array) -> pa.Array:
        return pa.concat_arrays([texts, others]).take(numbers(self._order, pa.int64()))
