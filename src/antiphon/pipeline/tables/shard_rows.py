"""The stored rows of `items` that a fold touches: looked up in their shard, and rewritten.

Most of them are flat objects with a few new mutations. Those are folded in columns (`columnar_resume`), and their rows
are updated in place: a few columns of the batches of their files get new values. The rows of all other touched items
are removed, and written again as rows of a fold.
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
from antiphon.pipeline.tables.columnar_display import DisplayColumns
from antiphon.pipeline.tables.columnar_resume import FlatResume
from antiphon.pipeline.tables.columnar_rows import merge_keys
from antiphon.pipeline.tables.item_keys import ItemKey, ItemKeys
from antiphon.pipeline.tables.parquet_files import read_batches
from antiphon.pipeline.tables.schemas import arrow_table

FLAT_SIZE_MAX = 256 << 10  # bytes of a snapshot that may be folded in columns
FLAT_TOTAL_SIZE_MAX = 32 << 20  # bytes of all snapshots of a shard that may be folded in columns
ROW_CACHE_SIZE_MAX = 32 << 20  # bytes of rows that are kept in memory until they are rewritten
OBJECT = ObjectModel()
_ROW = ["party", "item", "model", "deleted", "messages", "data", "hash"]
_COLUMNS = [*_ROW, "version", "guarded"]

#: Returns the mask of rows of a batch that are replaced.
RowMask = Callable[[pa.RecordBatch], Bools]


class StoredItem(NamedTuple):
    """An item as stored in the table `items`."""

    model: str
    deleted: bool
    messages: int
    data: bytes | None  # None if it is folded from all messages, or the code of its model is missing
    hash: bytes


@dataclass(frozen=True, slots=True)
class LocatedRows:
    """Rows of `items`, and where they are stored."""

    rows: pa.RecordBatch
    nth: I64  # item numbers
    files: I64  # file numbers
    places: I64  # row numbers in these files

    @classmethod
    def joined(cls, parts: Sequence[LocatedRows]) -> LocatedRows:
        """Concatenate rows, sorted by item number."""
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return cls(pa.RecordBatch.from_pylist([], arrow_table("items")).select(_COLUMNS), none, none, none)
        (rows,) = pa.Table.from_batches([part.rows for part in parts]).combine_chunks().to_batches()
        nth, files, places = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("nth", "files", "places")
        )
        return cls(rows, nth, files, places).where(np.argsort(nth))

    def where(self, which: I64) -> LocatedRows:
        """Select rows by index."""
        rows = self.rows.take(numbers(which, pa.int64()))
        return LocatedRows(rows, self.nth[which], self.files[which], self.places[which])


@dataclass(frozen=True, slots=True)
class UpdatedRows:
    """Rows that are updated in place, and their new values."""

    rows: LocatedRows
    messages: I64
    data: list[bytes]
    display: DisplayColumns

    def columns(self, run: int) -> list[pa.Array]:
        """Return the columns of the table `changes` for these rows."""
        other = pc.not_equal(pa.array(self.data, pa.binary()), self.rows.rows.column("data"))
        count = pc.sum(other).as_py() or 0
        party, item, model = (self.rows.rows.column(name).filter(other) for name in ("party", "item", "model"))
        messages = numbers(self.messages, pa.int64()).cast(pa.int32()).filter(other)
        return [pa.repeat(run, count), party, item, pa.repeat("changed", count), model, messages]

    def values(self, which: I64) -> dict[str, pa.Array]:
        """Return the new values of some of the rows, by column."""
        data = [self.data[at] for at in which.tolist()]
        items = self.rows.rows.column("item").take(numbers(which, pa.int64())).to_pylist()
        return {
            "messages": numbers(self.messages[which], pa.int64()).cast(pa.int32()),
            "state": self.display.state.take(numbers(self.display.positions(self.rows.nth[which]), pa.int64())),
            "data": pa.array(data, pa.binary()),
            "hash": pa.array(map(item_hash, items, data), pa.binary()),
        }


@dataclass(slots=True)
class ShardRows:
    """The stored rows of one shard with these keys, and all others that `replaced` selects."""

    keys: ItemKeys
    replaced: RowMask
    items: dict[ItemKey, StoredItem] = field(default_factory=dict)
    touched_files: list[str] = field(default_factory=list)  # files that contain such rows
    found: Bools = field(init=False)  # by key: a row is stored
    objects: LocatedRows = field(init=False)  # rows of objects that may be flat
    updated: UpdatedRows | None = None  # rows that were folded in columns
    _held: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # by file: all its rows, if they fit
    _room: int = ROW_CACHE_SIZE_MAX
    _tried: int = FLAT_TOTAL_SIZE_MAX

    def __post_init__(self) -> None:
        self.found = np.zeros(len(self.keys), dtype=np.bool_)

    def look_up(self, held: Sequence[str], *, few: bool, flat_allowed: bool) -> None:
        """Look up the rows; with `flat_allowed`, objects may be folded in columns."""
        parts: list[LocatedRows] = []
        for file in held:
            # Keys are a tenth of the bytes. Scanning them first pays off only for few items.
            if few and not any(self.replaced(batch).any() for batch in read_batches(file, ["party", "item"])):
                continue
            before, start, kept, room = len(self.items) + len(parts), 0, list[pa.RecordBatch](), self._room
            for batch in read_batches(file):
                parts += self._sort(batch.select(_COLUMNS), len(self.touched_files), start, flat_allowed=flat_allowed)
                start += batch.num_rows
                room -= batch.nbytes
                if room > 0:
                    kept.append(batch)
            if len(self.items) + len(parts) > before:
                self.touched_files.append(file)
                if room > 0:
                    self._held[file], self._room = kept, room
        self.objects = LocatedRows.joined(parts)

    def _sort(self, batch: pa.RecordBatch, file: int, start: int, *, flat_allowed: bool) -> Iterator[LocatedRows]:
        """Sort the wanted rows of a batch, which begins at row `start` of its file: yield objects that may be flat."""
        places = np.flatnonzero(self.replaced(batch))
        if not len(places):
            return
        rows = batch.take(numbers(places, pa.int64()))
        nth = self.keys.find(rows, "item")
        self.found[nth[nth >= 0]] = True
        flat = (nth >= 0) & flat_allowed
        flat &= is_true(pc.equal(rows.column("model"), OBJECT.name))
        flat &= is_true(pc.equal(rows.column("version"), OBJECT.version))
        sizes = pc.binary_length(rows.column("data")).fill_null(FLAT_SIZE_MAX).to_numpy(zero_copy_only=False)
        flat &= sizes < FLAT_SIZE_MAX
        tried = np.cumsum(np.where(flat, sizes, 0), dtype=np.int64)
        flat &= tried <= self._tried
        self._tried -= int(tried[flat].max(initial=0))
        found = LocatedRows(rows, nth, np.full(len(nth), file), start + places)
        self._keep(found.where(np.flatnonzero(~flat)))
        if flat.any():
            yield found.where(np.flatnonzero(flat))

    def _keep(self, found: LocatedRows) -> None:
        columns = (found.rows.column(name).to_pylist() for name in _ROW)
        for nth, row in zip(found.nth.tolist(), zip(*columns, strict=True), strict=True):
            party, item, model, deleted, messages, data, hashed = row
            # An item without a number is of a party that is read in full.
            self.items[party, item] = StoredItem(model, deleted, messages, data if nth >= 0 else None, hashed)

    def resume(self, ordered: OrderedMessages, new: Bools) -> FlatResume:
        """Fold stored objects and new items in columns, where they are flat."""
        return FlatResume(ordered, self.objects.nth, self.objects.rows.column("data").to_pylist(), new)

    def update(self, ordered: OrderedMessages, resume: FlatResume, simple: Bools) -> UpdatedRows:
        """Update the rows of `simple` items in place; all other rows that were found are replaced."""
        stays = simple[self.objects.nth]
        self._keep(self.objects.where(np.flatnonzero(~stays)))
        which = np.flatnonzero(stays)
        rows = self.objects.where(which)
        before: I64 = rows.rows.column("messages").to_numpy(zero_copy_only=False).astype(np.int64)
        messages = before + np.diff(ordered.starts)[rows.nth]
        self.updated = UpdatedRows(rows, messages, resume.snapshots(which, rows.nth), resume.display(rows.nth))
        return self.updated

    def batches(self, file: str) -> Iterable[pa.RecordBatch]:
        """Return the rows of a file; those in memory are released."""
        return self._held.pop(file, None) or read_batches(file)

    def rewritten(self, file: str, start: int, batch: pa.RecordBatch, stays: Bools) -> pa.RecordBatch:
        """Return the rows of a batch that stay, with new values where items were folded in columns."""
        changed, made = self.updated, _BatchUpdate(batch, stays)
        if changed is not None and file in self.touched_files:
            places = changed.rows.places
            mine = (changed.rows.files == self.touched_files.index(file)) & (places >= start)
            which = np.flatnonzero(mine & (places < start + batch.num_rows))
            if len(which):
                made.change(changed, which, places[which] - start)
        return made.batch()


class _BatchUpdate:
    """A batch of rows, some of which get new values in some columns."""

    def __init__(self, batch: pa.RecordBatch, stays: Bools) -> None:
        self._batch = batch
        self._stays = np.flatnonzero(stays)
        self._order = self._stays
        self._new: dict[str, pa.Array] = {}  # by column: new values, appended to those of the batch

    def change(self, changed: UpdatedRows, which: I64, places: I64) -> None:
        """Set new values for the rows at `places`."""
        order = np.arange(self._batch.num_rows)
        order[places] = len(order) + np.arange(len(places))
        self._order = order[self._stays]
        said = self._batch.column("facts").field("keys").take(numbers(places, pa.int64()))
        keys = merge_keys(said, changed.display, changed.display.positions(changed.rows.nth[which]))
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
