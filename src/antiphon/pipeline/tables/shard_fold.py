"""Folds messages onto the tables, shard by shard: one task reads, folds and writes one shard.

The tables with item rows are partitioned as the fold is: by the first bits of the placement hashes of items. So a task
needs the rows of its own shard alone, and no other task needs them. It looks up the states of the items that its
messages are for, folds, and rewrites the files that had their rows: items, links, quarantine and changes. Spark
shuffles messages, and joins nothing.
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
from antiphon.core.reasons import code_of
from antiphon.feed.header import Kind
from antiphon.model.factory import ModelFactory
from antiphon.model.object.model import ObjectModel
from antiphon.pipeline.columnar.mutation_reader import LaneIndex
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.fold import item_fold
from antiphon.pipeline.fold.block_account import REFUSED
from antiphon.pipeline.fold.flat_item_fold import (
    STATE_COPIES,
    FlatItem,
    PartyLanes,
    flat_batches,
    flat_items,
    fold_flat_item,
    party_lanes,
)
from antiphon.pipeline.fold.item_fold import ROWS_MAX, SIZE_MAX, ItemFold, Models, load_models, refusal_rows
from antiphon.pipeline.fold.resume_fold import NO_CODE, REFOLD, ResumeFold
from antiphon.pipeline.fold.summary import Tally
from antiphon.pipeline.order.shuffle_chunk import I64, ShuffleChunk, buckets_of, flags, ids_of, is_true
from antiphon.pipeline.order.total_order import Group, OrderedMessages
from antiphon.pipeline.order.varints import Bools
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.reread import Ids
from antiphon.pipeline.source.block_columns import batch_of
from antiphon.pipeline.tables.changes import change_of
from antiphon.pipeline.tables.columnar_resume import FlatResume
from antiphon.pipeline.tables.columnar_rows import flat_rows
from antiphon.pipeline.tables.item_keys import ItemKey, ItemKeys
from antiphon.pipeline.tables.item_rows import End, item_display, item_row, row_ends, row_hash
from antiphon.pipeline.tables.links import link_rows
from antiphon.pipeline.tables.parquet_files import PartitionPath, PartitionWriter, WrittenFiles, read_batches
from antiphon.pipeline.tables.schemas import arrow_table
from antiphon.pipeline.tables.shard_rows import OBJECT, RowMask, ShardRows
from antiphon.pipeline.tables.shard_tally import SHARDS, ShardTally, is_in

FEW = 64  # items; with more, most files contain one of them, and keys are not scanned first
COMPRESSION = "snappy"  # for files that each run rewrites: a third larger than zstd, in half of the time
#: Tables with item rows: the columns that rows are sorted by, and the column with the item.
TABLES: Mapping[str, tuple[Sequence[str], str]] = {
    "items": (("party", "item"), "item"),
    "links": (("party", "source"), "source"),
    "quarantine": (("party", "feed", "seq"), "item"),
    "changes": (("party", "item"), "item"),
}
_MUTATION = int(Kind.MUTATION)

Files = Mapping[str, Mapping[str, Sequence[str]]]  # by table and partition


@dataclass(frozen=True, slots=True)
class ShardJob:
    """Parameters of a fold onto the tables, broadcast to all tasks."""

    folder: str
    part: str  # the subfolder for files of this run
    files: Files
    plans: tuple[PartyPlan, ...]
    models: Models
    run: int
    buckets: int  # partitions of the fold: as many as there are shards, or a multiple
    full: frozenset[bytes] = frozenset()  # parties read in full: all their rows are replaced
    skip: Ids = field(default_factory=dict)  # items that are left to a second fold
    refold: Ids | None = None  # fold only these items, from all their messages
    tallied: frozenset[bytes] | None = None  # parties whose items are counted; None: no tally is wanted


class ShardResult(NamedTuple):
    """Result of a task: files by table, items that must be folded from all messages, and the tally of all items of the
    shard as they are now."""

    files: dict[str, WrittenFiles]
    refold: list[ItemKey]
    tally: Tally | None


def fold_shard(job: ShardJob, bucket: int, chunks: Iterator[ShuffleChunk]) -> ShardResult:
    """Fold one partition, in a Spark worker."""
    return ShardFold(job, bucket).fold(chunks)


class ShardFold:
    """Folds the messages of one partition onto the rows of its shard."""

    def __init__(self, job: ShardJob, bucket: int) -> None:
        self.job = job
        self.bucket = bucket
        self.shard = f"{bucket * SHARDS // job.buckets:x}"
        self.shares_shard = job.buckets > SHARDS  # with other tasks; each handles the rows of its own items
        self.refold: set[ItemKey] = set()
        self._keys = ItemKeys(())
        self._replaced = np.zeros(0, dtype=np.bool_)  # by key: its rows are removed, and written again
        self._stored: ShardRows
        self._rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._sizes: Counter[str] = Counter()  # bytes of the states in these rows
        self._files = {
            name: PartitionWriter(
                PartitionPath(str(Path(job.folder, name)), job.part, self.shard), arrow_table(name), order, COMPRESSION
            )
            for name, (order, _) in TABLES.items()
        }
        self._tally = None if job.tallied is None else ShardTally(job.tallied)
        if self._tally is not None:
            self._files["items"].on_write = self._tally.add

    def fold(self, chunks: Iterator[ShuffleChunk]) -> ShardResult:
        """Fold all messages, and write the tables."""
        job = self.job
        full: list[ShuffleChunk] = []
        resumed: list[ShuffleChunk] = []
        for chunk in chunks:
            is_full = job.refold is not None or job.plans[chunk[0]].party in job.full
            (full if is_full else resumed).append(chunk)
        ordered = OrderedMessages.of(resumed, job.plans)
        resumed.clear()
        models, by_party = load_models(job.models), {plan.party: plan for plan in job.plans}
        self._look_up(ordered, models)
        if ordered is not None:
            self._fold_resumed(ordered, ResumeFold(by_party, models, item_display))
        ordered = OrderedMessages.of(full, job.plans)
        full.clear()
        if ordered is not None:
            self._fold_full(ordered, ItemFold(by_party, models, item_display))
        return self._write()

    # -- stored rows

    def _look_up(self, ordered: OrderedMessages | None, models: ModelFactory) -> None:
        """Find the stored rows of items that will be folded."""
        job = self.job
        keys = list(_keys(job.refold or {}, job.buckets, self.bucket) if ordered is None else _message_keys(ordered))
        self._keys = ItemKeys(keys)
        self._replaced = np.array([item not in job.skip.get(party, ()) for party, item in keys], dtype=np.bool_)
        self._stored = ShardRows(self._keys, self._replaced_rows("items"))
        flat = ordered is not None and type(models.find(OBJECT.name, OBJECT.version)) is ObjectModel
        self._stored.look_up(self._files_of("items"), few=len(keys) < FEW and not job.full, flat_allowed=flat)

    def _files_of(self, table: str) -> Sequence[str]:
        return self.job.files.get(table, {}).get(self.shard, ())

    # -- folding

    def _fold_full(self, ordered: OrderedMessages, folding: ItemFold) -> None:
        """Fold items from all their messages."""
        registers = RegisterFold(ordered, LaneIndex.of(ordered.plans))
        flat = flat_items(folding, ordered, registers, np.flatnonzero(registers.flat))
        self._write_flat(flat, registers)
        self._write_rows(folding.rows(ordered.groups(np.flatnonzero(~registers.flat))))

    def _fold_resumed(self, ordered: OrderedMessages, folding: ResumeFold) -> None:
        """Fold new messages onto stored items: flat objects in columns, all others one by one."""
        stored = self._stored
        folding.refused = self._refused_before()
        new = np.array([key not in folding.refused for key in self._keys.keys], dtype=np.bool_)
        resume = stored.resume(ordered, new & self._replaced & ~stored.found)
        parties = party_lanes(folding, ordered)
        changed = stored.update(ordered, resume, self._only_mutations(ordered, folding, resume, parties))
        done = changed.rows.nth
        rest = self._replaced.copy()
        rest[done] = self._replaced[done] = False  # their rows are updated in place
        if len(done):
            changes = self._files["changes"]
            changes.write(pa.RecordBatch.from_arrays(changed.columns(self.job.run), schema=changes.schema))
        folding.counts = {key: was.messages for key, was in stored.items.items()}
        flat = self._flat_items(ordered, folding, resume, parties, np.flatnonzero(rest & resume.flat))
        self._write_flat(flat, resume.registers)
        self._write_rows(folding.rows(self._groups(ordered, np.flatnonzero(rest & ~resume.flat))))

    def _only_mutations(
        self, ordered: OrderedMessages, folding: ResumeFold, resume: FlatResume, parties: Sequence[PartyLanes]
    ) -> Bools:
        """Return for each item whether it is flat, it received only mutations, and all of them count."""
        found = resume.flat & ~np.logical_or.reduceat(ordered.kinds != _MUTATION, ordered.starts[:-1])
        objects = self._stored.objects
        for place in np.flatnonzero(found[objects.nth] & is_true(objects.rows.column("guarded"))).tolist():
            nth = int(objects.nth[place])
            party = parties[ordered.party[ordered.starts[nth]]]
            item = folding.restore_base(party.key, resume.without_state(place), ())
            access = None if item is None else item.access
            found[nth] = access is not None and resume.registers.all_allowed(nth, access, party.feeds, party.authors)
        if ambiguous := folding.ambiguous():
            found &= np.array([key not in ambiguous for key in self._keys.keys], dtype=np.bool_)
        return found

    def _flat_items(
        self,
        ordered: OrderedMessages,
        folding: ResumeFold,
        resume: FlatResume,
        parties: Sequence[PartyLanes],
        items: I64,
    ) -> Iterator[FlatItem | int]:
        """Fold flat items that are new, or to which other messages than mutations have come."""
        places = np.searchsorted(self._stored.objects.nth, items)
        for nth, place in zip(items.tolist(), places.tolist(), strict=True):
            key, base = self._keys.keys[nth], None
            if self._stored.found[nth]:
                base = folding.restore_base(key[0], resume.without_state(place), resume.registers.other_messages(nth))
                if base is None:
                    yield nth
                    continue
            party = parties[ordered.party[ordered.starts[nth]]]
            yield fold_flat_item(folding, resume.registers, party, nth, base, folding.counts.get(key, 0)) or nth

    def _refused_before(self) -> set[ItemKey]:
        """Return the unknown items with new messages that have refused messages in `quarantine`."""
        new = ItemKeys([self._keys.keys[at] for at in np.flatnonzero(self._replaced & ~self._stored.found).tolist()])
        found: set[ItemKey] = set()
        for file in self._files_of("quarantine") if len(new) else ():
            for batch in read_batches(file, ["party", "item"]):
                which = new.find(batch, "item")
                found.update(new.keys[at] for at in which[which >= 0].tolist())
        return found

    def _groups(self, ordered: OrderedMessages, items: I64) -> Iterator[Group]:
        """Yield items with their stored state and new messages, for `ResumeFold.rows`."""
        for key, _, notes in ordered.groups(items):
            was = self._stored.items.get(key)
            yield key, None if was is None else NO_CODE if was.data is None else was.data, notes

    # -- results

    def _write_flat(self, given: Iterable[FlatItem | int], registers: RegisterFold) -> None:
        """Write flat items; those that need `fold` for everything are marked as not flat."""
        files = self._files["items"]
        for some in flat_batches(given, registers):
            made = flat_rows(some, registers, files.schema)
            files.write(made.rows)
            for one, hashed, ends in zip(some, made.hashes, made.ends, strict=True):
                item, key = one.item, (one.party, bytes(one.item.id))
                self._link(key, ends)
                self._change(key, item.name, item.is_deleted, one.messages, hashed)
                self._write_rows(refusal_rows(*key, one.verdicts))

    def _write_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            party, item, reason = row[0], row[1], row[item_fold.REASON]
            if reason is None:
                self._append("items", item_row(row), STATE_COPIES * len(row[item_fold.STATE] or b""))
                self._link((party, item), row_ends(row))
                self._change(
                    (party, item), row[item_fold.MODEL], row[item_fold.DELETED], row[item_fold.MESSAGES], row_hash(row)
                )
            elif reason == REFOLD and row[item_fold.FEED] is None:  # the item, and not one message
                self.refold.add((party, item))
                self._stored.items.pop((party, item), None)
            else:
                place = (party, row[item_fold.FEED], row[item_fold.SEQ], 1, item)
                self._append("quarantine", (*place, REFUSED, reason, code_of(reason).value))

    def _change(self, key: ItemKey, model: str, deleted: bool, messages: int, hashed: bytes) -> None:
        was = self._stored.items.pop(key, None)
        change = change_of(None if was is None else (was.deleted, was.hash), (deleted, hashed))
        if change is not None:
            self._append("changes", (self.job.run, *key, change, model, messages))

    def _link(self, key: ItemKey, ends: Iterable[End]) -> None:
        for link in link_rows(*key, ends):
            self._append("links", link)

    def _append(self, table: str, row: tuple[Any, ...], size: int = 0) -> None:
        rows = self._rows[table]
        rows.append(row)
        self._sizes[table] += size
        if len(rows) >= ROWS_MAX or self._sizes[table] >= SIZE_MAX:
            self._sizes[table] = 0
            self._files[table].write(batch_of(rows, self._files[table].schema))
            rows.clear()

    def _write(self) -> ShardResult:
        for key, was in self._stored.items.items():  # items that do not exist any more
            self._append("changes", (self.job.run, *key, change_of((was.deleted, was.hash), None), was.model, None))
        self._replaced &= np.array([key not in self.refold for key in self._keys.keys], dtype=np.bool_)
        made = {}
        for name, files in self._files.items():
            if self._rows[name]:
                files.write(batch_of(self._rows[name], files.schema))
            made[name] = self._rewritten(name, files)
        return ShardResult(made, sorted(self.refold), self._tallied(made["items"].removed))

    def _tallied(self, removed: Collection[str]) -> Tally | None:
        if self._tally is None:
            return None
        for file in self._files_of("items"):
            if file not in removed:
                self._tally.read(file)
        return self._tally.tally.finish(self.job.buckets.bit_length() - 1)

    def _rewritten(self, name: str, files: PartitionWriter) -> WrittenFiles:
        replaced, item, held = self._replaced_rows(name), TABLES[name][1], self._files_of(name)

        def stays(file: str, start: int, batch: pa.RecordBatch) -> pa.RecordBatch:
            rows = ~replaced(batch) & self._mine(batch, item)
            return self._stored.rewritten(file, start, batch, rows) if is_items else batch.filter(flags(rows))

        is_items = name == "items"
        read = self._stored.batches if is_items else read_batches
        # A task that shares a shard writes its own rows of every file, so all these tasks rewrite the same files.
        files.rewrite(held, self._files_to_rewrite(name, replaced), stays, small=not self.shares_shard, read=read)
        return files.finish()

    def _files_to_rewrite(self, name: str, replaced: RowMask) -> Collection[str]:
        """Return the files of a table that must be rewritten."""
        kept = name == "quarantine" and self.job.refold is None and not self.job.full
        if name == "changes" or kept:
            return ()
        if self.shares_shard:
            return self._files_of(name)
        if name == "items":
            return self._stored.touched_files
        keys = ["party", TABLES[name][1]]
        some = self._files_of(name) if self._replaced.any() or self.job.full else ()
        return [file for file in some if any(replaced(batch).any() for batch in read_batches(file, keys))]

    # -- which rows are replaced

    def _replaced_rows(self, table: str) -> RowMask:
        """Return the mask function for rows of a table that this fold replaces."""
        if table == "changes":
            return lambda batch: np.zeros(batch.num_rows, dtype=np.bool_)
        full, item = pa.array(sorted(self.job.full), pa.binary()), TABLES[table][1]
        keys = self._keys
        if table == "quarantine" and self.job.refold is None:  # old refusals stay valid
            keys = ItemKeys(())

        def replaced(batch: pa.RecordBatch) -> Bools:
            gone = is_in(batch.column("party"), full)
            found = keys.find(batch, item)
            known = np.flatnonzero(found >= 0)
            gone[known] |= self._replaced[found[known]]
            return gone & self._mine(batch, item)

        return replaced

    def _mine(self, batch: pa.RecordBatch, item: str) -> Bools:
        """Return the mask of this task's rows: all of them, unless it shares the shard."""
        if not self.shares_shard:
            return np.ones(batch.num_rows, dtype=np.bool_)
        mine: Bools = buckets_of(ids_of(batch.column(item).to_pylist()), self.job.buckets) == self.bucket
        return mine


def _message_keys(ordered: OrderedMessages) -> Iterator[ItemKey]:
    """Yield the items that the messages are for, in order."""
    starts = ordered.starts[:-1]
    ids = ordered.items[starts].tobytes()
    for at, party in enumerate(ordered.party[starts].tolist()):
        yield ordered.plans[party].party, ids[at * ITEM_ID_SIZE : (at + 1) * ITEM_ID_SIZE]


def _keys(ids: Ids, buckets: int, bucket: int) -> Iterator[ItemKey]:
    """Yield the items of one partition."""
    for party, items in ids.items():
        known = list(items)
        for at in np.flatnonzero(buckets_of(ids_of(known), buckets) == bucket).tolist():
            yield party, known[at]
