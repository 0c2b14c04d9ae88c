"""Import an archive into a new home. All data is verified as if a peer had sent it, and imported completely or not at
all.

Control feeds come first, because they decide which epoch is final. If a feed does not start at block 0, its blocks must
chain to the hash that the last final epoch has for it. An archive holds no private keys: the first program that opens
the home creates new ones, which are not members of any party.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from antiphon.core.cid import Cid
from antiphon.core.errors import (
    BadEncoding,
    CorruptBlock,
    Equivocation,
    MissingBlob,
    RefusedBlocks,
)
from antiphon.core.local_path import local_path
from antiphon.core.output_folder import output_folder, refuse_existing
from antiphon.feed.block import BodyState
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base, begins_control
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.bundle.export import joined
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.live.manager import find_genesis
from antiphon.party.live.unopened_party import UnopenedParty
from antiphon.party.store.meta_store import MetaStore
from antiphon.pipeline.archive_format.manifest import Manifest, check_file
from antiphon.pipeline.archive_format.reader import ArchiveBlobs, archived_feeds
from antiphon.pipeline.archive_format.rows import other_branch
from antiphon.pipeline.session.full_disk import full_disk_named
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.limits import BATCH_COUNT_MAX
from antiphon.snapshot.root import FeedCut

SPANS_AT_ONCE = 16  # in one transaction

Tell = Callable[[str], None]
Covered = dict[bytes, set[int]]  # seqs by feed


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Counts of an import."""

    parties: int
    feeds: int
    blocks: int
    blobs: int


def import_archive(folder: str | Path, home: str | Path, *, tell: Tell = _silent) -> ImportReport:
    """Make a home from an archive. If any data is refused, no home is made; the error names feed, block and reason."""
    source, target = local_path(folder).absolute(), local_path(home).absolute()
    manifest = Manifest.read(source)
    refuse_existing(target)
    tell("compare files with their digests")
    for file in manifest.files():
        check_file(source, file)
    with (
        output_folder(target) as partial,
        full_disk_named(target, "no home was made"),
        closing(archived_feeds(source)) as feeds,
        closing(ArchiveBlobs(source)) as blobs,
    ):
        return _Import(feeds, blobs, manifest, tell).run(partial)


@dataclass(slots=True)
class _Import:
    feeds: FeedReader
    blobs: ArchiveBlobs
    manifest: Manifest
    tell: Tell

    def run(self, home: Path) -> ImportReport:
        with BlobStore.open(home / "blobs") as blobs:
            self.tell("take blobs")
            count = self._take_blobs(blobs)
            with FeedStore.open(home / "feeds", durable=False) as store:
                parties = _by_party(self.feeds.feeds())
                blocks = self._take_control(store, parties)
                blocks += sum(self._take_data(store, blobs, party, records) for party, records in parties.items())
                store.flush()
                followed = self._follow(home, store, parties)
                feeds = len(store.feeds())
        return ImportReport(followed, feeds, blocks, count)

    def _take_blobs(self, blobs: Blobs) -> int:
        cids, count = iter(self.blobs), 0
        while some := list(islice(cids, BATCH_COUNT_MAX)):
            blobs.put_all((cid, self.blobs.get(cid)) for cid in some)
            count += len(some)
        return count

    # -- feeds

    def _take_control(self, store: FeedStore, parties: Mapping[bytes, list[FeedRecord]]) -> int:
        """Take the control feeds that are known, until those that were taken name no others (rule 22).

        A child's are known by its parent's, too, so all parties are looked at again and again.
        """
        geneses = {party: find_genesis(self.feeds, party) for party in parties}
        known = {party: UnopenedParty(store, party, genesis) for party, genesis in geneses.items() if genesis}
        left = {record.feed: record for records in parties.values() for record in records if self._is_control(record)}
        count, moved = 0, True
        while moved:
            taken = [record for record in left.values() if self._is_named(record, known.get(record.party))]
            count += sum(self._take_feed(store, record, None) for record in taken)
            for record in taken:
                del left[record.feed]
            for one in known.values():
                one.look()
            moved = bool(taken)
        for record in left.values():
            self.tell(f"leave out feed {record.feed.hex()[:8]}, which no act of its party names")
        return count

    def _is_named(self, record: FeedRecord, known: UnopenedParty | None) -> bool:
        """True if a control feed is known. Without its genesis nothing is known of a party, and all of it is taken."""
        if known is None or known.knows(record.feed):
            return True
        return known.names(known.find_identity(self.feeds.block(record.feed, 0)))

    def _take_data(self, store: FeedStore, blobs: Blobs, party: bytes, records: list[FeedRecord]) -> int:
        self.tell(f"take party {party.hex()[:8]}")
        count, authority = 0, _authority(store, party)
        cuts: dict[bytes, FeedCut] | None = None
        for record in records:
            if self._is_control(record):
                continue
            if authority is not None and not authority.knows(record.feed):
                self.tell(f"leave out feed {record.feed.hex()[:8]}, which no act of its party names")
                continue
            if record.start and cuts is None:
                cuts = _cuts(_authority(store, party), blobs, party)
            count += self._take_feed(store, record, self._begin(record, cuts or {}) if record.start else None)
        self._erase(store, blobs, party)
        return count

    def _is_control(self, record: FeedRecord) -> bool:
        """True for a feed that is taken with the control feeds: its acts, also those of a branch, may name others."""
        with suppress(CorruptBlock):  # raised again when the feed is read
            held = self.feeds.first_kind(record.feed) is Kind.CREDENTIAL
            return held or (not record.start and any(map(begins_control, self.feeds.branches(record.feed))))
        return False

    def _begin(self, record: FeedRecord, cuts: dict[bytes, FeedCut]) -> Base | None:
        """The verified start of a feed whose first blocks are pruned. It must match the cut of a final epoch."""
        cut = cuts.get(record.feed)
        where = f"feed {record.feed.hex()[:8]}"
        if cut is None or cut.length < record.start:
            raise RefusedBlocks(
                f"{where} begins at block {record.start}, where no final epoch that is here was cut",
                feed=record.feed,
                seq=record.start,
            )
        if cut.length == record.start:
            if record.start_hash != cut.hash:
                raise _otherwise(record, cut.length - 1)
            return Base(cut.length - 1, cut.hash, cut.lamport)
        if record.length < cut.length:
            raise RefusedBlocks(
                f"{where} ends at block {record.length - 1}, before the cut of the epoch that would vouch for it",
                feed=record.feed,
                seq=record.length - 1,
            )
        (last,) = self.feeds.held(record.feed, cut.length - 1, cut.length)
        if last.hash_at(cut.length - 1) != cut.hash:
            raise _otherwise(record, cut.length - 1)
        return Base(record.start - 1, record.start_hash, record.start_lamport)

    def _take_feed(self, store: FeedStore, record: FeedRecord, base: Base | None) -> int:
        if record.start == record.length:  # all blocks are pruned; their state is in a snapshot
            self._take_branches(store, record)
            return 0
        try:
            spans = joined(self.feeds.spans(record.feed, record.start))
            while some := list(islice(spans, SPANS_AT_ONCE)):
                store.ingest_all(some, base)
            fork = self.feeds.fork(record.feed)
            if fork is not None and Fork.decode(fork).seq < record.length:
                self._take_fork(store, record, fork)
            self._take_branches(store, record)  # if two of them part beyond the history, they show the fork
            _compare(store.record(record.feed), record)
        except Equivocation as error:  # the rows are of two histories of the feed
            raise BadEncoding(f"feed {record.feed.hex()[:8]}, block {error.seq}: {error}") from None
        return record.length - record.start

    def _take_branches(self, store: FeedStore, record: FeedRecord) -> None:
        for span in self.feeds.branches(record.feed):
            store.ingest_branch([span])

    def _take_fork(self, store: FeedStore, record: FeedRecord, evidence: bytes) -> None:
        at = Fork.decode(evidence).seq
        if not record.start <= at < record.length:
            raise BadEncoding(f"feed {record.feed.hex()[:8]}: the evidence of a fork is about block {at}, not here")
        (held,) = self.feeds.held(record.feed, at, at + 1)
        with suppress(Equivocation):
            store.ingest(other_branch(evidence, record, held.hash_at(at)))
            raise BadEncoding(f"feed {record.feed.hex()[:8]}: the evidence of its fork shows none")

    # -- once all feeds are imported

    def _erase(self, store: FeedStore, blobs: Blobs, party: bytes) -> None:
        """Mark the bodies as erased that the party has erased, so that the peer does not request them again.

        If the archive still holds such a body, it is deleted once a final epoch covers it; before that, other peers may
        need it (rule 13).
        """
        authority = _authority(store, party)
        if authority is None:
            return
        covered: Covered | None = None
        gone = False
        for record in store.feeds(party):
            for seq in sorted(authority.erased(record.feed)):
                if not record.start <= seq < record.valid_length:
                    continue
                state = store.block(record.feed, seq).state
                if state is BodyState.PRESENT:
                    covered = _covered(authority, blobs, party) if covered is None else covered
                    if seq not in covered.get(record.feed, ()):
                        continue
                    gone = True
                if state is not BodyState.ERASED:
                    store.erase(record.feed, seq)
        if gone:
            store.compact()  # deleted bytes are still in the file

    def _follow(self, home: Path, store: FeedStore, parties: Iterable[bytes]) -> int:
        """Subscribe to the parties that the home followed; if the archive lists none, to all with a genesis."""
        named = {bytes.fromhex(key): label for key, label in self.manifest.labels.items()}
        followed = named or dict.fromkeys(parties, "")
        count = 0
        with MetaStore.open(home / "meta.db") as meta:
            for party, label in sorted(followed.items()):
                genesis = find_genesis(store, party)
                if genesis is not None or party in named:
                    meta.subscribe(party, label=label, genesis_feed=genesis)
                    count += 1
        return count


def _by_party(records: Iterable[FeedRecord]) -> dict[bytes, list[FeedRecord]]:
    found: dict[bytes, list[FeedRecord]] = defaultdict(list)
    for record in records:
        found[record.party].append(record)
    return dict(sorted(found.items()))


def _authority(store: FeedReader, party: bytes) -> PartyAuthority | None:
    genesis = find_genesis(store, party)
    if genesis is None:
        return None
    authority = PartyAuthority(store, PartyMachine(party, genesis))
    authority.refresh()
    return authority


def _cuts(authority: PartyAuthority | None, blobs: Blobs, party: bytes) -> dict[bytes, FeedCut]:
    """The cut of each feed in the last final epoch, according to the imported control feeds."""
    base = _base(authority, blobs, party)
    return {} if base is None else dict(base.feeds)


def _covered(authority: PartyAuthority, blobs: Blobs, party: bytes) -> Covered:
    """The erased seqs of each feed that the last final epoch covers."""
    base = _base(authority, blobs, party)
    if base is None:
        return {}
    judge = authority.epoch_judge(base.root.control)
    return {feed: {seq for seq in judge.erased(feed) if seq < cut.length} for feed, cut in base.feeds.items()}


def _base(authority: PartyAuthority | None, blobs: Blobs, party: bytes) -> EpochBase | None:
    epochs = () if authority is None else authority.final_epochs()
    if authority is None or not epochs or not authority.trusts(epoch := epochs[-1]):
        return None
    try:
        base = EpochBase.load(Cid(epoch.snapshot), blobs, party=party, number=epoch.number)
        lie = base.contradicts(epoch)
    except MissingBlob:
        return None
    if lie:
        raise BadEncoding(lie)
    return base


def _compare(made: FeedRecord, told: FeedRecord) -> None:
    """Refuse a feed whose imported record differs from the archived one, its end and the reason for it included."""
    names = ["start", "length", "hash", "lamport", "signature", "end", "why"]
    if told.end == NO_END and made.end > told.length:
        names = names[:-2]  # branches that part beyond the archived history
    wrong = [name for name in names if getattr(made, name) != getattr(told, name)]
    if wrong:
        raise BadEncoding(f"feed {told.feed.hex()[:8]}: its record contradicts its blocks: {', '.join(wrong)}")


def _otherwise(record: FeedRecord, seq: int) -> RefusedBlocks:
    return RefusedBlocks(
        f"feed {record.feed.hex()[:8]}, block {seq}: it differs from the block in the final epoch",
        feed=record.feed,
        seq=seq,
    )


__all__ = ["ImportReport", "import_archive"]
