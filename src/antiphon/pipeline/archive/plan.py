"""Plan an export: the blocks that the archive does not have yet, divided into tasks, and the bodies to remove."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from antiphon.core.errors import AntiphonError, InvalidInput, StoreError
from antiphon.core.reasons import Reason, coded
from antiphon.feed.block import BodyState
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.live.manager import find_genesis
from antiphon.party.store.meta_store import MetaStore, SubscriptionState
from antiphon.pipeline.archive_format.manifest import is_archive
from antiphon.pipeline.archive_format.reader import ArchiveTables
from antiphon.pipeline.archive_format.rows import FeedRow
from antiphon.pipeline.source.home import feeds_folder, open_feeds
from antiphon.pipeline.source.ranges import Fault


class NewBlocks(NamedTuple):
    """Blocks [start, stop) of a feed that the archive does not have."""

    record: FeedRecord
    start: int
    stop: int
    known: FeedRow | None  # the feed in the archive
    follows: bool = False  # it continues another piece of the same feed, and is useless without it

    @property
    def blocks(self) -> int:
        return self.stop - self.start

    @property
    def begins(self) -> FeedRecord:
        """The record with the start of the feed in the archive. After a gap of pruned blocks it starts again."""
        return self.record if self.known is None or self.known.record.length < self.record.start else self.known.record


@dataclass(slots=True)
class ExportPlan:
    """The tasks of an export, and the parts of the archive that it keeps."""

    tasks: list[tuple[NewBlocks, ...]] = field(default_factory=list)
    kept: dict[bytes, FeedRow] = field(default_factory=dict)  # feeds before the new blocks are written
    labels: dict[str, str] = field(default_factory=dict)  # of parties
    erased: dict[bytes, list[int]] = field(default_factory=dict)  # seqs whose bodies must leave the archive, by feed
    faults: list[Fault] = field(default_factory=list)


def plan_export(asked: tuple[str, str, int]) -> ExportPlan:
    """Plan the export of a home into a folder, in tasks of about so many blocks."""
    home, folder, blocks = asked
    known = ArchiveTables(Path(folder)).rows if is_archive(folder) else {}
    plan = ExportPlan(kept=dict(known), labels=_labels(home))
    pieces = []
    with open_feeds(home) as store:
        for record in store.feeds():
            row = known.get(record.feed)
            try:
                piece = _piece(store, record, row)
            except StoreError as error:  # damaged since the last export: the archive keeps its blocks
                plan.faults.append(_fault(record.party, record.feed, error))
                continue
            if piece is not None:
                pieces.append(piece)
            elif row is not None:
                plan.kept[record.feed] = _newer(row, record, store)
            elif record.length or record.branches:  # all blocks are pruned
                made = replace(record, writable=False, retired=False, ignored=False)
                plan.kept[record.feed] = FeedRow(made, store.fork(record.feed), branches=branches_of(store, record))
        plan.tasks = _divided(store, pieces, blocks)
        plan.erased = _erased(store, known.values(), plan.faults)
    return plan


def _fault(party: bytes, feed: bytes, error: AntiphonError) -> Fault:
    return Fault(
        party, getattr(error, "feed", None) or feed, getattr(error, "seq", None) or 0, coded(Reason.DAMAGED, str(error))
    )


def _piece(store: FeedReader, record: FeedRecord, known: FeedRow | None) -> NewBlocks | None:
    held = FeedRecord(record.feed, record.party) if known is None else known.record
    where = f"feed {record.feed.hex()[:8]}"
    if held.party != record.party:
        raise InvalidInput(f"{where}: the archive has it in another party; export into a new folder")
    if record.length < held.length:
        raise InvalidInput(
            f"{where}: the archive has {held.length} blocks of it and the home {record.length}: an older home was "
            "restored; export into a new folder"
        )
    if not held.length or held.length < record.start:  # the state of pruned blocks is in a snapshot
        return NewBlocks(record, record.start, record.length, known) if record.length > record.start else None
    if held.length > record.start:
        (last,) = store.held(record.feed, held.length - 1, held.length)
        theirs = last.hash_at(held.length - 1)
    else:
        theirs = record.start_hash
    if theirs != held.hash:
        raise InvalidInput(f"{where}: the archive has another history of it; export into a new folder")
    return NewBlocks(record, held.length, record.length, known) if record.length > held.length else None


def _newer(known: FeedRow, record: FeedRecord, store: FeedReader) -> FeedRow:
    """The row of a feed without new blocks, with its current end, evidence of a fork, and branches."""
    now = replace(known.record, end=record.end, why=record.why, branches=record.branches)
    return replace(known, record=now, fork=store.fork(record.feed), branches=branches_of(store, record))


def branches_of(store: FeedReader, record: FeedRecord) -> tuple[bytes, ...]:
    """The spans that a store keeps of other branches of a feed, as on the wire."""
    return tuple(span.encode() for span in store.branches(record.feed)) if record.branches else ()


def _labels(home: str) -> dict[str, str]:
    """The labels of the parties that the home follows, by key in hex."""
    path = feeds_folder(home).with_name("meta.db")
    if not path.is_file():
        return {}
    with MetaStore.open(path) as meta:
        parties = [row for row in meta.parties() if row.state is not SubscriptionState.FORGOTTEN]
        return {row.party.hex(): row.label for row in parties}


# -- tasks


def _divided(store: FeedReader, pieces: Sequence[NewBlocks], size: int) -> list[tuple[NewBlocks, ...]]:
    """Divide pieces into tasks of about so many blocks, in order of party and feed, so that rows that are read together
    are stored together.

    Each part of a feed that is cut is a task and a file of its own: it is dropped if the part before it is incomplete.
    """
    tasks: list[tuple[NewBlocks, ...]] = []
    some: list[NewBlocks] = []
    held = 0
    for piece in sorted(pieces, key=lambda piece: (piece.record.party, piece.record.feed)):
        parts = _parts(store, piece, size)
        if len(parts) > 1:
            tasks += [(part,) for part in parts]
            continue
        some.append(piece)
        held += piece.blocks
        if held >= size:
            tasks.append(tuple(some))
            some, held = [], 0
    return [*tasks, tuple(some)] if some else tasks


def _parts(store: FeedReader, piece: NewBlocks, size: int) -> list[NewBlocks]:
    """Cut a long piece at signed heads. A piece that cannot be read is not cut; the task that writes it reports why."""
    parts: list[NewBlocks] = []
    rest = piece
    while rest.blocks > size:
        try:
            end = next(store.spans(piece.record.feed, rest.start + size - 1)).end
        except AntiphonError:
            break
        if end >= piece.stop:
            break
        parts.append(rest._replace(stop=end))
        rest = rest._replace(start=end, follows=True)
    return [*parts, rest]


# -- erased bodies


def _erased(store: FeedReader, known: Iterable[FeedRow], faults: list[Fault]) -> dict[bytes, list[int]]:
    """The archived bodies that a party has erased and the home no longer holds, those of pruned blocks included."""
    found: dict[bytes, list[int]] = {}
    parties: dict[bytes, list[FeedRow]] = defaultdict(list)
    for row in known:
        parties[row.record.party].append(row)
    for party, rows in sorted(parties.items()):
        genesis = find_genesis(store, party)
        if genesis is None:
            continue
        authority = PartyAuthority(store, PartyMachine(party, genesis))
        try:
            authority.refresh()
        except AntiphonError as error:  # its control feeds are damaged
            faults.append(_fault(party, bytes(genesis), error))
            continue
        held = {record.feed: record for record in store.feeds(party)}
        for row in rows:
            feed = row.record.feed
            asked = sorted(seq for seq in authority.erased(feed).difference(row.erased) if seq < row.record.length)
            try:
                seqs = [seq for seq in asked if not _present(store, held.get(feed), seq)]
            except AntiphonError as error:
                faults.append(_fault(party, feed, error))
                continue
            if seqs:
                found[feed] = seqs
    return found


def _present(store: FeedReader, record: FeedRecord | None, seq: int) -> bool:
    """True if the home still holds the body of a block. Until a final epoch covers it, other peers may need it."""
    if record is None or not record.start <= seq < record.length:
        return False
    (span,) = store.held(record.feed, seq, seq + 1)
    return not span.states or span.states[0] == BodyState.PRESENT
