"""The rows of the table of items that a fold is about: found on their shelf, and written anew.

Most of them are plain objects with a few mutations more. Those are folded on columns (`goingplain`), and in the batches
of their files a few columns get other values; the rows of all others are taken out, and come again as rows of a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.model.object import ObjectModel
from antiphon.pipeline.digest import item_hash
from antiphon.pipeline.goingplain import Gone, go_on
from antiphon.pipeline.keyset import Key, KeySet
from antiphon.pipeline.ordered import Ordered
from antiphon.pipeline.parcel import I64, flags, numbers
from antiphon.pipeline.plainshown import PlainShown
from antiphon.pipeline.tablefile import batches_in
from antiphon.pipeline.wire import Bools

PLAIN_SIZE_MAX = 16 << 10  # of a snapshot that is tried on columns
HELD_SIZE_MAX = 32 << 20  # bytes of rows that are held until they are written, and not read again
_COLUMNS = ["party", "item", "model", "deleted", "guarded", "messages", "data", "hash"]
_OBJECT = ObjectModel().name

#: Which rows of a batch are replaced.
Goes = Callable[[pa.RecordBatch], Bools]


class Was(NamedTuple):
    """An item as the tables have it."""

    model: str
    deleted: bool
    messages: int
    data: bytes | None  # of one that is folded on; None: nobody here could read it
    hash: bytes


@dataclass(slots=True)
class Plain:
    """Rows that may be folded on columns, and what was made of those that were."""

    rows: pa.RecordBatch
    nth: I64  # of their items
    files: I64  # in which they are, by number
    places: I64  # in these files
    data: list[bytes] = field(default_factory=list)  # their new states, and so on
    messages: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shown: PlainShown | None = None

    def where(self, which: I64) -> Plain:
        rows = self.rows.take(numbers(which, pa.int64()))
        return Plain(rows, self.nth[which], self.files[which], self.places[which])


@dataclass(slots=True)
class Shelved:
    """The items of one shelf with these keys, and those that are replaced for other reasons."""

    keys: KeySet
    goes: Goes
    was: dict[Key, Was] = field(default_factory=dict)
    hit: list[str] = field(default_factory=list)  # files that have some of them
    found: Bools = field(init=False)  # of each key: there is a row of it
    plain: Plain | None = None
    _held: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # all rows of a file
    _room: int = HELD_SIZE_MAX

    def __post_init__(self) -> None:
        self.found = np.zeros(len(self.keys), dtype=np.bool_)

    def look_up(self, held: Sequence[str], simple: Bools, *, few: bool) -> None:
        """Find them all. Of `simple` items all that has come are mutations."""
        parts: list[Plain] = []
        for file in held:
            # The keys are a tenth of what is read; but most files have one of many items.
            if few and not any(self.goes(batch).any() for batch in batches_in(file, ["party", "item"])):
                continue
            before, start, kept = len(self.was) + len(parts), 0, list[pa.RecordBatch]()
            for batch in batches_in(file):
                parts += self._sort(batch.select(_COLUMNS), start, len(self.hit), simple)
                start += batch.num_rows
                if self._room > 0:
                    self._room -= batch.nbytes
                    kept.append(batch)
            if len(self.was) + len(parts) > before:
                self.hit.append(file)
                if self._room > 0:
                    self._held[file] = kept
        if parts:
            (rows,) = pa.Table.from_batches([part.rows for part in parts]).combine_chunks().to_batches()
            nth, files, places = (
                np.concatenate([getattr(part, name) for part in parts]) for name in ("nth", "files", "places")
            )
            self.plain = Plain(rows, nth, files, places).where(np.argsort(nth))

    def _sort(self, batch: pa.RecordBatch, start: int, file: int, simple: Bools) -> Iterator[Plain]:
        """Take what is wanted of a batch, which begins so far in its file."""
        places = np.flatnonzero(self.goes(batch))
        if not len(places):
            return
        rows = batch.take(numbers(places, pa.int64()))
        nth = self.keys.find(rows, "item")
        self.found[nth[nth >= 0]] = True
        quick = np.zeros(len(nth), dtype=np.bool_)
        quick[nth >= 0] = simple[nth[nth >= 0]]
        quick &= _is(pc.equal(rows.column("model"), _OBJECT)) & ~_is(rows.column("guarded"))
        quick &= _is(pc.less(pc.binary_length(rows.column("data")), PLAIN_SIZE_MAX))
        self._keep(rows.filter(flags(~quick)), nth[~quick])
        if quick.any():
            yield Plain(rows.filter(flags(quick)), nth[quick], np.full(quick.sum(), file), start + places[quick])

    def _keep(self, rows: pa.RecordBatch, nth: I64) -> None:
        columns = (rows.column(name).to_pylist() for name in _COLUMNS)
        for at, (party, item, model, deleted, _, messages, data, found) in zip(
            nth.tolist(), zip(*columns, strict=True), strict=True
        ):
            known = data if at >= 0 else None  # else it is folded from nothing
            self.was[party, item] = Was(model, deleted, messages, known, found)

    def batches(self, file: str) -> Iterable[pa.RecordBatch]:
        """The rows of a file, once."""
        return self._held.pop(file, None) or batches_in(file)

    # -- plain objects

    def go_on(self, ordered: Ordered) -> I64:
        """Fold on columns what can be; the numbers of those items."""
        plain = self.plain
        if plain is None:
            return np.zeros(0, dtype=np.int64)
        gone = go_on(ordered, plain.nth, plain.rows.column("data").to_pylist())
        left = np.ones(len(plain.nth), dtype=np.bool_)
        left[gone.which] = False
        self._keep(plain.rows.filter(flags(left)), plain.nth[left])
        self.plain = _made(plain.where(gone.which), gone)
        return self.plain.nth

    def changes(self, run: int) -> tuple[pa.Array, ...]:
        """Columns of the table of changes: those of items that were folded on columns, and are other than they were."""
        plain = self.plain
        assert plain is not None
        new, before = pa.array(plain.data, pa.binary()), plain.rows.column("data")
        changed = pc.not_equal(new, before)
        count = pc.sum(changed).as_py() or 0
        messages = numbers(plain.messages, pa.int64()).cast(pa.int32())
        told = (plain.rows.column("party"), plain.rows.column("item"), "changed", plain.rows.column("model"), messages)
        return (
            pa.repeat(run, count),
            *(pa.repeat(one, count) if isinstance(one, str) else one.filter(changed) for one in told),
        )

    def written(self, file: str, start: int, batch: pa.RecordBatch, stays: Bools) -> pa.RecordBatch:
        """The rows of a batch that stay, with new values where items were folded on columns."""
        plain, made = self.plain, _Written(batch, stays)
        if plain is not None and file in self.hit:
            mine = (plain.files == self.hit.index(file)) & (plain.places >= start)
            which = np.flatnonzero(mine & (plain.places < start + batch.num_rows))
            if len(which):
                made.replace(plain, which, plain.places[which] - start)
        return made.batch()


class _Written:
    """Rows of a batch, of which some get other values in some columns."""

    def __init__(self, batch: pa.RecordBatch, stays: Bools) -> None:
        self._batch = batch
        self._stays = np.flatnonzero(stays)
        self._order = self._stays
        self._new: dict[str, pa.Array] = {}  # values that stand behind those of the batch

    def batch(self) -> pa.RecordBatch:
        if len(self._stays) == self._batch.num_rows and not self._new:
            return self._batch
        columns = [self._column(name) for name in self._batch.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._batch.schema)

    def _column(self, name: str) -> pa.Array:
        old = self._batch.column(name)
        if name == "facts" and "keys" in self._new:
            at = old.type.get_field_index("keys")
            children = [
                self._taken(child, self._new["keys"] if nth == at else None) for nth, child in enumerate(old.flatten())
            ]
            return pa.StructArray.from_arrays(children, fields=list(old.type))
        return self._taken(old, self._new.get(name))

    def _taken(self, old: pa.Array, new: pa.Array | None) -> pa.Array:
        if new is None:
            return old.take(numbers(self._stays, pa.int64()))
        return pa.concat_arrays([old, new]).take(numbers(self._order, pa.int64()))

    def replace(self, plain: Plain, which: I64, places: I64) -> None:
        """Let rows at some places have the values of some plain objects."""
        order = np.arange(self._batch.num_rows)
        order[places] = len(order) + np.arange(len(places))
        self._order = order[self._stays]
        taken = numbers(which, pa.int64())
        assert plain.shown is not None
        data = [plain.data[at] for at in which.tolist()]
        items = plain.rows.column("item").take(taken).to_pylist()
        self._new = {
            "messages": numbers(plain.messages[which], pa.int64()).cast(pa.int32()),
            "state": plain.shown.state.take(taken),
            "data": pa.array(data, pa.binary()),
            "hash": pa.array(map(item_hash, items, data), pa.binary()),
            "keys": _keys(
                self._batch.column("facts").field("keys").take(numbers(places, pa.int64())), plain.shown, which
            ),
        }


def _keys(old: pa.MapArray, shown: PlainShown, which: I64) -> pa.MapArray:
    """The maps of sort keys in facts: what is no part of the value stays, and stands first."""
    said, bounds = _said(old)
    begins = shown.begins[which]
    counts = shown.begins[which + 1] - begins
    known = np.diff(bounds)
    # Of each row what is said, and then what is at its keys; both lie in one array, one behind the other.
    ends = np.concatenate(([0], np.cumsum(known + counts)))
    order = np.empty(ends[-1], dtype=np.int64)
    order[_spread(ends[:-1], known)] = said
    order[_spread(ends[:-1] + known, counts)] = len(old.keys) + _spread(begins, counts)
    taken = numbers(order, pa.int64())
    names = pa.concat_arrays([old.keys, shown.names]).take(taken)
    keys = pa.concat_arrays([old.items, shown.keys]).take(taken)
    return pa.MapArray.from_arrays(numbers(ends.astype(np.int32), pa.int32()), names, keys).cast(old.type)


def _made(plain: Plain, gone: Gone) -> Plain:
    plain.data, plain.shown = gone.snapshots, gone.shown
    before = plain.rows.column("messages").to_numpy(zero_copy_only=False)
    plain.messages = before.astype(np.int64) + gone.messages
    return plain


def _said(old: pa.MapArray) -> tuple[I64, I64]:
    """Which entries of maps are no part of a value, and where those of each row begin; a path begins with a bracket."""
    offsets = old.offsets.to_numpy().astype(np.int64)
    outside = ~_is(pc.starts_with(old.keys, "["))
    which = np.flatnonzero(outside)
    inside = which[(which >= offsets[0]) & (which < offsets[-1])]
    return inside, np.searchsorted(inside, offsets)


def _spread(begins: I64, counts: I64) -> I64:
    """The numbers from each beginning on, so many."""
    ends = np.cumsum(counts)
    return np.repeat(begins - (ends - counts), counts) + np.arange(ends[-1] if len(ends) else 0)


def _is(values: pa.Array) -> Bools:
    return np.array(values.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
