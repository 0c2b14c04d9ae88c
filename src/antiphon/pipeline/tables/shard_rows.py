"""The rows of the table of items that a fold is about: found on their shelf, and written anew.

Most of them are plain objects with a few mutations more. Those are folded on columns (`columnar_resume`), and in the
batches of their files a few columns get other values; the rows of all others are taken out, and come again as rows of
a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.model.object.model import ObjectModel
from antiphon.pipeline.fold.digest import item_hash
from antiphon.pipeline.order.shuffle_chunk import I64, is_true, numbers
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.order.varints import Bools
from antiphon.pipeline.tables.columnar_display import PlainShown
from antiphon.pipeline.tables.columnar_resume import GoingPlain
from antiphon.pipeline.tables.columnar_rows import keys_of
from antiphon.pipeline.tables.item_keys import Key, KeySet
from antiphon.pipeline.tables.parquet_files import batches_in
from antiphon.pipeline.tables.schemas import arrow_table

PLAIN_SIZE_MAX = 256 << 10  # of a snapshot that is tried on columns; the state in it has to be shorter
TRIED_SIZE_MAX = 32 << 20  # of all those of a shelf
HELD_SIZE_MAX = 32 << 20  # bytes of rows that are held until they are written, and not read again
OBJECT = ObjectModel()
_ROW = ["party", "item", "model", "deleted", "messages", "data", "hash"]
_COLUMNS = [*_ROW, "version", "guarded"]

#: Which rows of a batch are replaced.
Goes = Callable[[pa.RecordBatch], Bools]


class Was(NamedTuple):
    """An item as the tables have it."""

    model: str
    deleted: bool
    messages: int
    data: bytes | None  # of one that is folded on; None: nobody here could read it
    hash: bytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of items, and where they are."""

    rows: pa.RecordBatch
    nth: I64  # the numbers of their items
    files: I64  # by number
    places: I64  # in these files

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """By ascending numbers of items."""
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return cls(pa.RecordBatch.from_pylist([], arrow_table("items")).select(_COLUMNS), none, none, none)
        (rows,) = pa.Table.from_batches([part.rows for part in parts]).combine_chunks().to_batches()
        nth, files, places = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("nth", "files", "places")
        )
        return cls(rows, nth, files, places).where(np.argsort(nth))

    def where(self, which: I64) -> Rows:
        rows = self.rows.take(numbers(which, pa.int64()))
        return Rows(rows, self.nth[which], self.files[which], self.places[which])


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows that stay where they are, and their new values."""

    rows: Rows
    messages: I64
    data: list[bytes]
    shown: PlainShown

    def columns(self, run: int) -> list[pa.Array]:
        """Those of the table of changes."""
        other = pc.not_equal(pa.array(self.data, pa.binary()), self.rows.rows.column("data"))
        count = pc.sum(other).as_py() or 0
        party, item, model = (self.rows.rows.column(name).filter(other) for name in ("party", "item", "model"))
        messages = numbers(self.messages, pa.int64()).cast(pa.int32()).filter(other)
        return [pa.repeat(run, count), party, item, pa.repeat("changed", count), model, messages]

    def values(self, which: I64) -> dict[str, pa.Array]:
        """What some of them have now."""
        data = [self.data[at] for at in which.tolist()]
        items = self.rows.rows.column("item").take(numbers(which, pa.int64())).to_pylist()
        return {
            "messages": numbers(self.messages[which], pa.int64()).cast(pa.int32()),
            "state": self.shown.state.take(numbers(self.shown.places(self.rows.nth[which]), pa.int64())),
            "data": pa.array(data, pa.binary()),
            "hash": pa.array(map(item_hash, items, data), pa.binary()),
        }


@dataclass(slots=True)
class Shelved:
    """The items of one shelf with these keys, and those that are replaced for other reasons."""

    keys: KeySet
    goes: Goes
    was: dict[Key, Was] = field(default_factory=dict)
    hit: list[str] = field(default_factory=list)  # files that have some of them
    found: Bools = field(init=False)  # of each key: there is a row of it
    objects: Rows = field(init=False)  # that may be plain
    changed: Changed | None = None  # what goes on on columns
    _held: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # all rows of a file
    _room: int = HELD_SIZE_MAX
    _tried: int = TRIED_SIZE_MAX

    def __post_init__(self) -> None:
        self.found = np.zeros(len(self.keys), dtype=np.bool_)

    def look_up(self, held: Sequence[str], *, few: bool, quick: bool) -> None:
        """Find them all; with `quick`, objects may be folded on columns."""
        parts: list[Rows] = []
        for file in held:
            # The keys are a tenth of what is read; but most files have one of many items.
            if few and not any(self.goes(batch).any() for batch in batches_in(file, ["party", "item"])):
                continue
            before, start, kept, room = len(self.was) + len(parts), 0, list[pa.RecordBatch](), self._room
            for batch in batches_in(file):
                parts += self._sort(batch.select(_COLUMNS), len(self.hit), start, quick=quick)
                start += batch.num_rows
                room -= batch.nbytes
                if room > 0:
                    kept.append(batch)
            if len(self.was) + len(parts) > before:
                self.hit.append(file)
                if room > 0:
                    self._held[file], self._room = kept, room
        self.objects = Rows.joined(parts)

    def _sort(self, batch: pa.RecordBatch, file: int, start: int, *, quick: bool) -> Iterator[Rows]:
        """Take what is wanted of a batch, which begins so far in its file."""
        places = np.flatnonzero(self.goes(batch))
        if not len(places):
            return
        rows = batch.take(numbers(places, pa.int64()))
        nth = self.keys.find(rows, "item")
        self.found[nth[nth >= 0]] = True
        plain = (nth >= 0) & quick
        plain &= is_true(pc.equal(rows.column("model"), OBJECT.name))
        plain &= is_true(pc.equal(rows.column("version"), OBJECT.version))
        sizes = pc.binary_length(rows.column("data")).fill_null(PLAIN_SIZE_MAX).to_numpy(zero_copy_only=False)
        plain &= sizes < PLAIN_SIZE_MAX
        tried = np.cumsum(np.where(plain, sizes, 0), dtype=np.int64)
        plain &= tried <= self._tried
        self._tried -= int(tried[plain].max(initial=0))
        found = Rows(rows, nth, np.full(len(nth), file), start + places)
        self._keep(found.where(np.flatnonzero(~plain)))
        if plain.any():
            yield found.where(np.flatnonzero(plain))

    def _keep(self, found: Rows) -> None:
        columns = (found.rows.column(name).to_pylist() for name in _ROW)
        for nth, row in zip(found.nth.tolist(), zip(*columns, strict=True), strict=True):
            party, item, model, deleted, messages, data, hashed = row
            # One that has no number is folded from nothing.
            self.was[party, item] = Was(model, deleted, messages, data if nth >= 0 else None, hashed)

    def begin(self, ordered: OrderedMessages, new: Bools) -> GoingPlain:
        """Fold on columns what can be, of objects that are here and of items that are new."""
        return GoingPlain(ordered, self.objects.nth, self.objects.rows.column("data").to_pylist(), new)

    def change(self, ordered: OrderedMessages, going: GoingPlain, simple: Bools) -> Changed:
        """Let the rows of `simple` items stay, with new values; all others that were found are to be replaced."""
        stays = simple[self.objects.nth]
        self._keep(self.objects.where(np.flatnonzero(~stays)))
        which = np.flatnonzero(stays)
        rows = self.objects.where(which)
        before: I64 = rows.rows.column("messages").to_numpy(zero_copy_only=False).astype(np.int64)
        messages = before + np.diff(ordered.starts)[rows.nth]
        self.changed = Changed(rows, messages, going.snapshots(which, rows.nth), going.show(rows.nth))
        return self.changed

    def batches(self, file: str) -> Iterable[pa.RecordBatch]:
        """The rows of a file, once."""
        return self._held.pop(file, None) or batches_in(file)

    def written(self, file: str, start: int, batch: pa.RecordBatch, stays: Bools) -> pa.RecordBatch:
        """The rows of a batch that stay, with new values where items were folded on columns."""
        changed, made = self.changed, _Written(batch, stays)
        if changed is not None and file in self.hit:
            places = changed.rows.places
            mine = (changed.rows.files == self.hit.index(file)) & (places >= start)
            which = np.flatnonzero(mine & (places < start + batch.num_rows))
            if len(which):
                made.change(changed, which, places[which] - start)
        return made.batch()


class _Written:
    """Rows of a batch, of which some get other values in some columns."""

    def __init__(self, batch: pa.RecordBatch, stays: Bools) -> None:
        self._batch = batch
        self._stays = np.flatnonzero(stays)
        self._order = self._stays
        self._new: dict[str, pa.Array] = {}  # values that stand behind those of the batch

    def change(self, changed: Changed, which: I64, places: I64) -> None:
        """Let rows at some places have new values."""
        order = np.arange(self._batch.num_rows)
        order[places] = len(order) + np.arange(len(places))
        self._order = order[self._stays]
        said = self._batch.column("facts").field("keys").take(numbers(places, pa.int64()))
        keys = keys_of(said, changed.shown, changed.shown.places(changed.rows.nth[which]))
        self._new = {**changed.values(which), "keys": keys}

    def batch(self) -> pa.RecordBatch:
        if len(self._stays) == self._batch.num_rows and not self._new:
            return self._batch
        columns = [self._column(name) for name in self._batch.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._batch.schema)

    def _column(self, name: str) -> pa.Array:
        old = self._batch.column(name)
        if name != "facts":
            return self._taken(old, self._new.get(name))
        parts = zip(old.type, old.flatten(), strict=True)
        made = [self._taken(part, self._new.get("keys") if field.name == "keys" else None) for field, part in parts]
        return pa.StructArray.from_arrays(made, fields=list(old.type))

    def _taken(self, old: pa.Array, new: pa.Array | None) -> pa.Array:
        if new is None:
            return old.take(numbers(self._stays, pa.int64()))
        return pa.concat_arrays([old, new]).take(numbers(self._order, pa.int64()))
