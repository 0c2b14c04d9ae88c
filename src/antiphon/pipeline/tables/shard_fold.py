"""Messages folded onto what the tables have, where the tables lie: one task reads, folds and writes a shelf of them.

Tables of items are divided as a fold is: by the first bits of the places of items. So a task needs no rows but those of
its own shelf, and nobody else needs them. It looks up the states of the items that its messages are for, folds, and
writes anew the files in which they were: items, links, refusals, and what is other than it was. Spark moves messages,
and joins nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.feed.header import Kind
from antiphon.model.factory import ModelFactory
from antiphon.model.object.model import ObjectModel
from antiphon.pipeline.columnar.mutation_reader import Lanes
from antiphon.pipeline.columnar.register_fold import Registers
from antiphon.pipeline.fold.block_account import REFUSED
from antiphon.pipeline.fold.frame_fold import SHOWN_TIMES, Framed, Party, fold_frame, fold_frames, gathered, parties_of
from antiphon.pipeline.fold.item_fold import (
    DELETED,
    FEED,
    MESSAGES,
    MODEL,
    REASON,
    ROWS_MAX,
    SEQ,
    SIZE_MAX,
    STATE,
    Folding,
    Models,
    known_models,
    refusals,
)
from antiphon.pipeline.fold.resume_fold import LATE, UNKNOWN, GoingOn
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.order.shuffle_chunk import I64, ShuffleChunk, buckets_of, flags, ids_of, is_true
from antiphon.pipeline.order.total_order import Group, OrderedMessages
from antiphon.pipeline.order.varints import Bools
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.reread import Ids
from antiphon.pipeline.source.block_columns import batch_of
from antiphon.pipeline.tables.changes import change_of
from antiphon.pipeline.tables.columnar_resume import GoingPlain
from antiphon.pipeline.tables.columnar_rows import plain_rows
from antiphon.pipeline.tables.item_keys import Key, KeySet
from antiphon.pipeline.tables.item_row import ends_in, hash_in, item_row, tell
from antiphon.pipeline.tables.links import End, link_rows
from antiphon.pipeline.tables.parquet_files import Place, TableFiles, Written, batches_in
from antiphon.pipeline.tables.schemas import arrow_table
from antiphon.pipeline.tables.shard_rows import OBJECT, Goes, Shelved
from antiphon.pipeline.tables.shard_tally import SHELVES, Tallying, is_in

FEW = 64  # items; one of more is in most files
PACKING = "snappy"  # each run writes most of these files anew: a third more room for half of the time that zstd takes
#: Tables of items, by what their rows are sorted, and which column has the item.
TABLES: Mapping[str, tuple[Sequence[str], str]] = {
    "items": (("party", "item"), "item"),
    "links": (("party", "source"), "source"),
    "quarantine": (("party", "feed", "seq"), "item"),
    "changes": (("party", "item"), "item"),
}
_MUTATION = int(Kind.MUTATION)

Files = Mapping[str, Mapping[str, Sequence[str]]]  # by table and partition


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a fold onto tables know."""

    folder: str
    part: str  # where files of this run go
    files: Files
    plans: tuple[PartyPlan, ...]
    models: Models
    run: int
    buckets: int  # partitions of the fold: as many as there are shelves, or more
    afresh: frozenset[bytes] = frozenset()  # parties of which all rows are replaced
    left: Ids = field(default_factory=dict)  # items that are not folded now, whatever messages come to them
    whole: Ids | None = None  # only these are folded, from all their messages
    tallied: frozenset[bytes] | None = None  # parties of which all items are counted; None: nobody asks


class Made(NamedTuple):
    """What a task has done: files by table, items that have to be folded from all their messages, and what all items
    come to that are there now."""

    files: dict[str, Written]
    late: list[Key]
    tally: Tally | None


def fold_onto(job: Job, bucket: int, chunks: Iterator[ShuffleChunk]) -> Made:
    """In Spark's workers: the part of a fold that concerns one partition of it."""
    return Shelf(job, bucket).fold(chunks)


class Shelf:
    """The items of one partition of a fold, in tables and in messages."""

    def __init__(self, job: Job, bucket: int) -> None:
        self.job = job
        self.bucket = bucket
        self.digit = f"{bucket * SHELVES // job.buckets:x}"
        self.shared = job.buckets > SHELVES  # with other tasks: each takes the rows that are its own
        self.late: set[Key] = set()
        self._keys = KeySet(())
        self._goes = np.zeros(0, dtype=np.bool_)  # of each of them: its rows are taken out, and come again
        self._shelved: Shelved
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._sizes: Counter[str] = Counter()  # of the states in them
        self._files = {
            name: TableFiles(
                Place(str(Path(job.folder, name)), job.part, self.digit), arrow_table(name), order, PACKING
            )
            for name, (order, _) in TABLES.items()
        }
        self._tally = None if job.tallied is None else Tallying(job.tallied)
        if self._tally is not None:
            self._files["items"].told = self._tally.add

    def fold(self, chunks: Iterator[ShuffleChunk]) -> Made:
        """Fold, and write what comes of it."""
        job = self.job
        whole: list[ShuffleChunk] = []
        on: list[ShuffleChunk] = []
        for chunk in chunks:
            is_whole = job.whole is not None or job.plans[chunk[0]].party in job.afresh
            (whole if is_whole else on).append(chunk)
        ordered = OrderedMessages.of(on, job.plans)
        on.clear()
        models, by_party = known_models(job.models), {plan.party: plan for plan in job.plans}
        self._look_up(ordered, models)
        if ordered is not None:
            self._go_on(ordered, GoingOn(by_party, models, tell))
        ordered = OrderedMessages.of(whole, job.plans)
        whole.clear()
        if ordered is not None:
            self._fold_whole(ordered, Folding(by_party, models, tell))
        return self._write()

    # -- what is there

    def _look_up(self, ordered: OrderedMessages | None, models: ModelFactory) -> None:
        """Find the items that will be replaced."""
        job = self.job
        keys = list(_keys(job.whole or {}, job.buckets, self.bucket) if ordered is None else _messaged(ordered))
        self._keys = KeySet(keys)
        self._goes = np.array([item not in job.left.get(party, ()) for party, item in keys], dtype=np.bool_)
        self._shelved = Shelved(self._keys, self._going("items"))
        quick = ordered is not None and type(models.find(OBJECT.name, OBJECT.version)) is ObjectModel
        self._shelved.look_up(self._held("items"), few=len(keys) < FEW and not job.afresh, quick=quick)

    def _held(self, table: str) -> Sequence[str]:
        return self.job.files.get(table, {}).get(self.digit, ())

    # -- folding

    def _fold_whole(self, ordered: OrderedMessages, folding: Folding) -> None:
        """Fold items from all their messages."""
        registers = Registers(ordered, Lanes.of(ordered.plans))
        framed = fold_frames(folding, ordered, registers, np.flatnonzero(registers.plain))
        self._take_plain(framed, registers)
        self._take(folding.rows(ordered.groups(np.flatnonzero(~registers.plain))))

    def _go_on(self, ordered: OrderedMessages, folding: GoingOn) -> None:
        """Fold new messages onto what is there: on columns what is plain, and all others one by one."""
        shelved = self._shelved
        folding.refused = self._refused_before()
        new = np.array([key not in folding.refused for key in self._keys.keys], dtype=np.bool_)
        going = shelved.begin(ordered, new & self._goes & ~shelved.found)
        parties = parties_of(folding, ordered)
        changed = shelved.change(ordered, going, self._simple(ordered, folding, going, parties))
        done = changed.rows.nth
        rest = self._goes.copy()
        rest[done] = self._goes[done] = False  # their rows stay, with other values
        if len(done):
            changes = self._files["changes"]
            changes.write(pa.RecordBatch.from_arrays(changed.columns(self.job.run), schema=changes.schema))
        folding.counts = {key: was.messages for key, was in shelved.was.items()}
        framed = self._frames(ordered, folding, going, parties, np.flatnonzero(rest & going.plain))
        self._take_plain(framed, going.registers)
        self._take(folding.rows(self._groups(ordered, np.flatnonzero(rest & ~going.plain))))

    def _simple(self, ordered: OrderedMessages, folding: GoingOn, going: GoingPlain, parties: Sequence[Party]) -> Bools:
        """Of all items: nothing but mutations has come to it, and all of them count."""
        found = going.plain & ~np.logical_or.reduceat(ordered.kinds != _MUTATION, ordered.starts[:-1])
        objects = self._shelved.objects
        for place in np.flatnonzero(found[objects.nth] & is_true(objects.rows.column("guarded"))).tolist():
            nth = int(objects.nth[place])
            party = parties[ordered.party[ordered.starts[nth]]]
            item = folding.begin(party.key, going.frame(place), ())
            access = None if item is None else item.access
            found[nth] = access is not None and going.registers.may_all(nth, access, party.feeds, party.authors)
        return found

    def _frames(
        self, ordered: OrderedMessages, folding: GoingOn, going: GoingPlain, parties: Sequence[Party], items: I64
    ) -> Iterator[Framed | int]:
        """Plain items that begin now, or to which something else than mutations has come."""
        places = np.searchsorted(self._shelved.objects.nth, items)
        for nth, place in zip(items.tolist(), places.tolist(), strict=True):
            key, base = self._keys.keys[nth], None
            if self._shelved.found[nth]:
                base = folding.begin(key[0], going.frame(place), going.registers.others(nth))
                if base is None:
                    yield nth
                    continue
            party = parties[ordered.party[ordered.starts[nth]]]
            yield fold_frame(folding, going.registers, party, nth, base, folding.counts.get(key, 0)) or nth

    def _refused_before(self) -> set[Key]:
        """Of the items with messages those that are not there, and to which messages came that do not count."""
        new = KeySet([self._keys.keys[at] for at in np.flatnonzero(self._goes & ~self._shelved.found).tolist()])
        found: set[Key] = set()
        for file in self._held("quarantine") if len(new) else ():
            for batch in batches_in(file, ["party", "item"]):
                which = new.find(batch, "item")
                found.update(new.keys[at] for at in which[which >= 0].tolist())
        return found

    def _groups(self, ordered: OrderedMessages, items: I64) -> Iterator[Group]:
        for key, _, notes in ordered.groups(items):
            was = self._shelved.was.get(key)
            yield key, None if was is None else UNKNOWN if was.data is None else was.data, notes

    # -- what comes of it

    def _take_plain(self, given: Iterable[Framed | int], registers: Registers) -> None:
        """Write items whose states are in registers; one that has to be folded otherwise is plain no more."""
        files = self._files["items"]
        for some in gathered(given, registers):
            made = plain_rows(some, registers, files.schema)
            files.write(made.rows)
            for one, hashed, ends in zip(some, made.hashes, made.ends, strict=True):
                item, key = one.item, (one.party, bytes(one.item.id))
                self._link(key, ends)
                self._change(key, item.name, item.is_deleted, one.messages, hashed)
                self._take(refusals(*key, one.verdicts))

    def _take(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            party, item, reason = row[0], row[1], row[REASON]
            if reason is None:
                self._put("items", item_row(row), SHOWN_TIMES * len(row[STATE] or b""))
                self._link((party, item), ends_in(row))
                self._change((party, item), row[MODEL], row[DELETED], row[MESSAGES], hash_in(row))
            elif reason == LATE and row[FEED] is None:  # no message of it, but all
                self.late.add((party, item))
                self._shelved.was.pop((party, item), None)
            else:
                self._put("quarantine", (party, row[FEED], row[SEQ], 1, item, REFUSED, reason))

    def _change(self, key: Key, model: str, deleted: bool, messages: int, hashed: bytes) -> None:
        was = self._shelved.was.pop(key, None)
        change = change_of(None if was is None else (was.deleted, was.hash), (deleted, hashed))
        if change is not None:
            self._put("changes", (self.job.run, *key, change, model, messages))

    def _link(self, key: Key, ends: Iterable[End]) -> None:
        for link in link_rows(*key, ends):
            self._put("links", link)

    def _put(self, table: str, row: tuple[Any, ...], size: int = 0) -> None:
        rows = self._rows[table]
        rows.append(row)
        self._sizes[table] += size
        if len(rows) >= ROWS_MAX or self._sizes[table] >= SIZE_MAX:
            self._sizes[table] = 0
            self._files[table].write(batch_of(rows, self._files[table].schema))
            rows.clear()

    def _write(self) -> Made:
        for key, was in self._shelved.was.items():  # no fold has come to them
            self._put("changes", (self.job.run, *key, change_of((was.deleted, was.hash), None), was.model, None))
        self._goes &= np.array([key not in self.late for key in self._keys.keys], dtype=np.bool_)
        made = {}
        for name, files in self._files.items():
            if self._rows[name]:
                files.write(batch_of(self._rows[name], files.schema))
            made[name] = self._rewritten(name, files)
        return Made(made, sorted(self.late), self._tallied(made["items"].removed))

    def _tallied(self, removed: Collection[str]) -> Tally | None:
        if self._tally is None:
            return None
        for file in self._held("items"):
            if file not in removed:
                self._tally.read(file)
        return self._tally.tally.done(self.job.buckets.bit_length() - 1)

    def _rewritten(self, name: str, files: TableFiles) -> Written:
        goes, item, held = self._going(name), TABLES[name][1], self._held(name)

        def stays(file: str, start: int, batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = ~goes(batch) & self._mine(batch, item)
            return self._shelved.written(file, start, batch, rows) if is_items else batch.filter(flags(rows))

        is_items = name == "items"
        read = self._shelved.batches if is_items else batches_in
        # Who shares a shelf writes its own rows of every file: so all do, or none does, whatever is new.
        files.rewrite(held, self._hits(name, goes), stays, small=not self.shared, read=read)
        return files.done()

    def _hits(self, name: str, goes: Goes) -> Collection[str]:
        """The files of a table with rows that go."""
        kept = name == "quarantine" and self.job.whole is None and not self.job.afresh
        if name == "changes" or kept:
            return ()
        if self.shared:
            return self._held(name)
        if name == "items":
            return self._shelved.hit
        keys = ["party", TABLES[name][1]]
        some = self._held(name) if self._goes.any() or self.job.afresh else ()
        return [file for file in some if any(goes(batch).any() for batch in batches_in(file, keys))]

    # -- which rows go

    def _going(self, table: str) -> Goes:
        """The rows of a table that are replaced."""
        if table == "changes":
            return lambda batch: np.zeros(batch.num_rows, dtype=np.bool_)
        afresh, item = pa.array(sorted(self.job.afresh), pa.binary()), TABLES[table][1]
        keys = self._keys
        if table == "quarantine" and self.job.whole is None:  # what was refused is refused still
            keys = KeySet(())

        def goes(batch: pa.RecordBatch) -> Bools:
            gone = is_in(batch.column("party"), afresh)
            found = keys.find(batch, item)
            known = np.flatnonzero(found >= 0)
            gone[known] |= self._goes[found[known]]
            return gone & self._mine(batch, item)

        return goes

    def _mine(self, batch: pa.RecordBatch, item: str) -> Bools:
        """The rows that are this task's: all of them, unless it shares a shelf."""
        if not self.shared:
            return np.ones(batch.num_rows, dtype=np.bool_)
        mine: Bools = buckets_of(ids_of(batch.column(item).to_pylist()), self.job.buckets) == self.bucket
        return mine


def _messaged(ordered: OrderedMessages) -> Iterator[Key]:
    """The items that messages are for, in order."""
    starts = ordered.starts[:-1]
    ids = ordered.items[starts].tobytes()
    for at, party in enumerate(ordered.party[starts].tolist()):
        yield ordered.plans[party].party, ids[at * ITEM_ID_SIZE : (at + 1) * ITEM_ID_SIZE]


def _keys(ids: Ids, buckets: int, bucket: int) -> Iterator[Key]:
    """The items that are in one partition."""
    for party, items in ids.items():
        known = list(items)
        for at in np.flatnonzero(buckets_of(ids_of(known), buckets) == bucket).tolist():
            yield party, known[at]
