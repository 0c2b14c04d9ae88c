"""`Replica`: the feeds and blobs of one party, as all sessions of a peer read, verify and extend them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

from antiphon.core.cid import Cid
from antiphon.core.errors import (
    BadEncoding,
    CorruptBlock,
    DamagedBlob,
    Equivocation,
    InvalidInput,
    MissingBlob,
    MissingBlocks,
    RefusedBlocks,
    UnknownFeed,
)
from antiphon.core.ports import Randomness, SystemRandomness
from antiphon.feed.block import BodyState
from antiphon.feed.chain import link
from antiphon.feed.fork import Branch, Fork
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import HEADER_SIZE, Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base, Ingested, Outcome, branch_part, is_complete
from antiphon.feed.store.quarantine import NOBODY
from antiphon.mesh.replication.admits import Admits
from antiphon.mesh.replication.blob_scope import BlobScope
from antiphon.mesh.replication.digest import HoldingsDigest
from antiphon.mesh.replication.holdings import Holdings
from antiphon.mesh.replication.in_flight import InFlight
from antiphon.mesh.replication.joining import Joining
from antiphon.mesh.replication.limits import BRANCH_SPANS_MAX, TIPS_MAX
from antiphon.mesh.replication.message import NONCE_SIZE, Holding, Tip, WantBranch, WantTips
from antiphon.mesh.replication.range_room import RangeRoom
from antiphon.mesh.replication.wanted_branches import WantedBlock, WantedBranches
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.ports import Known
from antiphon.party.epochs.epochs import Disagreement, Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.live.unopened_party import UnopenedParty
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.root import SnapshotRoot


class RangeOutcome(enum.Enum):
    """The outcome of a received range."""

    TAKEN = "taken"
    KNOWN = "known"
    BRANCH = "branch"  # it does not link to the held blocks: an earlier range shows where the writer forked
    BODIES_MISSING = "bodies missing"  # and no credential says that they were erased: another peer may have them
    STRANGER = "stranger"  # no act names its feed, so it is not taken; perhaps one will
    UNFIT = "unfit"  # it begins too late, or its feed is not replicated here


class Replica:
    """A party with its feed store, blobs and epochs, for sessions. All of them run in one thread.

    Sessions store the blocks they receive. The driver of the sessions then lets the party process the blocks, and calls
    `refresh` after that and after each local write.
    """

    def __init__(
        self,
        party: PartyProcessor,
        epochs: Epochs | None,
        admits: Admits,
        *,
        whole: bool = True,
        keeps: Callable[[int, bytes], bool] | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._begin(party.store, party.key, admits, randomness or party.randomness, party.authority)
        self._erased = party.authority.erased
        self._look_for_names = party.look
        self.branches = WantedBranches(
            party.store, self.holdings, party.authority.knows, self._wanted_blocks, self._mark_wanted
        )
        self.blobs: Blobs | None = party.blobs
        self._party = party
        self._epochs = epochs
        self._named: dict[Cid, bool] = {}  # by snapshot of a final epoch: True if its root names this party
        self._whole = whole  # fetch the whole snapshot of the last epoch, not only the part needed to fold on it
        self._keeps = keeps  # a function (kind, item) that is true for the bodies to store; by default all
        self._scope = None if epochs is None else BlobScope(party.blobs)
        self.joining = Joining(self.holdings, epochs if keeps is None else None)

    _erased: Callable[[bytes], Collection[int]]
    _look_for_names: Callable[[], None]

    def _begin(
        self,
        store: FeedStore,
        party: bytes,
        admits: Admits,
        randomness: Randomness,
        known: Known,
        *,
        control: bool = False,
    ) -> None:
        self.store = store
        self.key = bytes(party)
        self.admits = admits
        self.holdings = Holdings(store, party, control=control)
        self.in_flight = InFlight()
        self._digest = None if control else HoldingsDigest(store, party)
        self.branches = WantedBranches(store, self.holdings, known.knows, known.wanted)
        self.fetches_blobs = True  # a driver may first process the blocks that came: they may make blobs needless
        self.base_version = 0  # rises when the party folds on another epoch
        self.known = known
        self.strangers: dict[bytes, bytes] = {}  # control feeds of the last ranges that were not taken: whose they are
        self._control = control
        self._randomness = randomness
        self._base: EpochBase | None = None
        self._begins: dict[bytes, Base] = {}
        self._wanted: dict[Cid, None] = {}
        self._stale = True
        self._sought: tuple[bytes, int, Disagreement | None] | None = None  # the state that the wanted blobs belong to
        self._earlier: dict[Cid, None] = {}  # snapshots of earlier epochs that are to be fetched
        self._complete = b""  # the last snapshot that is here whole

    def refresh(self) -> None:
        """Call this after a local write, and after the party has processed blocks or changed its epoch."""
        self._stale = True
        if self._scope is not None:
            self._scope.arrived()
        self.look()

    def look(self) -> None:
        """Read changed records, and the epoch that the party folds on."""
        if self.holdings.look():
            self._stale = True
        base = self._epochs.base if self._epochs is not None else None
        if base is not self._base and (base is None or self._base is None or base.cid != self._base.cid):
            self._base, self._begins, self._stale = base, {}, True
            self.base_version += 1
            with suppress(MissingBlob, DamagedBlob, InvalidInput):
                self._begins = self._epochs.begins() if self._epochs is not None else {}
            self._begin_feeds()

    def _begin_feeds(self) -> None:
        """Let the feeds of the epoch of which nothing is here begin at its cut: their history is not requested."""
        lacking = {
            feed: base
            for feed, base in self._begins.items()
            if self.holdings.record(feed) is None and self.known.knows(feed)
        }
        if lacking and self.store.begin(self.key, lacking):
            self.holdings.look()

    def _wanted_blocks(self) -> list[Entry]:
        """Return the blocks that others refer to, and those that final epochs hold on another branch than this peer."""
        return [*self._party.wanted_blocks(), *(() if self._epochs is None else self._epochs.unproven)]

    def _mark_wanted(self) -> object:
        """Return a value that changes whenever `_wanted_blocks` may answer differently."""
        return self._party.processed, () if self._epochs is None else self._epochs.unproven

    def digest(self) -> bytes:
        """Return the digest of all that is held of the party; empty if that is the control feeds alone."""
        return b"" if self._digest is None else self._digest.get()

    def new_name(self) -> bytes:
        """Return a fresh name for an end of a session."""
        return self._randomness.bytes(NONCE_SIZE)

    # -- reading

    def read_range(self, feed: bytes, first: int, size: int) -> Span | None:
        """Return blocks of a feed from `first` on, under one signed head, synced; None if none are here whole."""
        held = self.holdings.get(feed)
        if held is None or not held.start <= first < held.length:
            return None
        given: list[Span] = []
        room = RangeRoom(size)
        with suppress(MissingBlocks, CorruptBlock):  # pruned meanwhile, or damaged, which local readers report
            for span in self.store.spans(feed, first, size=max(1, size)):
                if BodyState.LEFT_OUT in span.states and not self._lacks_for_good(span):
                    break  # a peer that has the bodies serves them
                if not room.take(span):
                    break
                given.append(span)
                if room.size >= size:
                    break
        return Span.joined_all(given) if given else None

    def _lacks_for_good(self, span: Span) -> bool:
        """True if all bodies that were left out of a range were erased before the epoch: no peer serves them."""
        base = self._begins.get(span.feed)
        lacking = {span.first + at for at, state in enumerate(span.states) if state == BodyState.LEFT_OUT}
        return base is not None and max(lacking) <= base.seq and lacking <= set(self._erased(span.feed))

    def read_branch(self, want: WantBranch, size: int) -> list[Span]:
        """Return spans that lead to a block by its hash, as they are kept of a branch; empty if it is not here."""
        try:
            found = self.store.trail(want.feed, want.seq, want.hash, want.first, size)
        except CorruptBlock:
            return []
        found = [branch_part(span) for span in found[-BRANCH_SPANS_MAX:]]
        while len(found) > 1 and sum(span.size for span in found) > size:
            del found[0]
        return found if all(map(is_complete, found)) else []

    def read_tips(self, want: WantTips) -> list[Tip]:
        """Return the last blocks of the branches of a feed, by hash, one more than an answer may have if there are.

        Before all others comes the last block of the held history.
        """
        held = self.holdings.get(want.feed)
        own = [Tip(held.length - 1, held.hash)] if held is not None and held.length and not want.after else []
        kept = self.store.branch_tips(want.feed, want.after, TIPS_MAX + 1 - len(own))
        return own + [Tip(*tip) for tip in kept]

    def read_proof(self, want: WantBranch) -> bytes:
        """Return a proof that a feed's writer signed a block that was pruned here; empty if there is none."""
        try:
            found = self.store.proof(want.feed, want.seq, want.hash)
        except CorruptBlock:
            return b""
        return b"" if found is None else found.encode()

    def evidence(self, feed: bytes) -> bytes | None:
        """Return the evidence that a feed's writer signed two histories, or None."""
        held = self.holdings.get(feed)
        try:
            return self.store.fork(feed) if held is not None and held.fork is not None else None
        except CorruptBlock:
            return None

    def read_blob(self, cid: Cid) -> bytes | None:
        """Return a blob of the epochs that this device stands on; None if it is missing or damaged, or none of theirs.

        Peers have one blob store for all their parties: a CID alone gives no right to a blob. Attesters of a party may
        declare the snapshot of another party as theirs, so only snapshots that name this party count.
        """
        if self.blobs is None or self._epochs is None or self._scope is None:
            return None
        with suppress(MissingBlob, DamagedBlob):
            epochs = self._epochs.chain().final[: self._epochs.number]
            roots = [snapshot for epoch in epochs if self._names_party(snapshot := Cid(epoch.snapshot))]
            return self.blobs.get(cid) if self._scope.reaches(cid, roots) else None
        return None

    def _names_party(self, snapshot: Cid) -> bool:
        """True if a snapshot is held, and is one of this party."""
        if snapshot not in self._named:
            assert self.blobs is not None
            try:
                self._named[snapshot] = SnapshotRoot.decode(self.blobs.get(snapshot)).party == self.key
            except (MissingBlob, DamagedBlob):
                return False
            except InvalidInput:
                self._named[snapshot] = False
        return self._named[snapshot]

    # -- taking

    def first_missing(self, theirs: Holding, back: int) -> int | None:
        """Return the seq from which to request a feed, `back` before the held length; None if nothing can be taken."""
        mine = self.holdings.get(theirs.feed)
        if (self._control and not theirs.control) or self.holdings.ended(theirs.feed):
            return None
        if mine is None and not theirs.control and not self.known.knows(theirs.feed):
            return None
        length, start = (mine.length, mine.start) if mine is not None else (0, 0)
        if theirs.length < length or (mine is not None and (theirs.length, theirs.hash) == (length, mine.hash)):
            return None
        if theirs.length == length:  # another branch
            back = max(back, 1)
        if back > length - start:
            back = length - start
        if theirs.start <= length - back:
            return length - back if length - back < theirs.length else None
        base = self._begins.get(theirs.feed)
        first = base.seq + 1 if base is not None else 0
        return first if max(theirs.start, length + 1) <= first < theirs.length else None

    def take_ranges(self, spans: Sequence[Span], source: bytes = NOBODY) -> dict[bytes, tuple[RangeOutcome, int]]:
        """Store ranges, each of another feed, in one commit. Return the outcome of each, and how much of it was new.

        The latter is the number of blocks, or 1 for evidence of a fork. If a range does not verify, an error is raised
        and none is stored. `source` is the device that gave them.
        """
        outcomes = self._take_known(spans, source)
        while others := [span for span in spans if outcomes[span.feed][0] is RangeOutcome.STRANGER]:
            before = self.known.known_count
            self._look_for_names()
            if self.known.known_count == before:
                break
            outcomes |= self._take_known(others, source)  # what was taken names some of them
        return outcomes

    def _take_known(self, spans: Sequence[Span], source: bytes) -> dict[bytes, tuple[RangeOutcome, int]]:
        outcomes: dict[bytes, tuple[RangeOutcome, int]] = {}
        fit: list[tuple[Span, Base | None]] = []
        for span in spans:
            try:
                outcome, base = self._judge(span)
            except CorruptBlock:  # it cannot be compared with what is held: local readers report that
                outcome, base = RangeOutcome.UNFIT, None
            if outcome is None:
                fit.append((span if self._keeps is None else span.keeping(self._keeps), base))
            else:
                outcomes[span.feed] = outcome, 0

        def change() -> Iterable[bytes]:
            for (span, _), done in zip(fit, self._ingest(fit, source), strict=True):
                known = (RangeOutcome.UNFIT, 0) if done is None else (_OUTCOMES[done.outcome], _news(done))
                outcomes[span.feed] = known
            return [span.feed for span, _ in fit]

        if fit:
            self.holdings.apply(change)
            self._stale = True
        return outcomes

    def _judge(self, span: Span) -> tuple[RangeOutcome | None, Base | None]:
        """Judge whether a range fits the held blocks, before it is verified. A refusal here proves no fault."""
        if span.party != self.key:
            raise BadEncoding(f"a range of party {span.party.hex()[:8]} in a session about {self.key.hex()[:8]}")
        record = self.holdings.record(span.feed)
        if record is None:
            if self._is_foreign(span.feed):
                return RangeOutcome.UNFIT, None
            if self._control and (span.first or int(span.columns["kind"][0]) != Kind.CREDENTIAL):
                raise BadEncoding(f"feed {span.feed.hex()[:8]} is no control feed, and only those were requested")
            if not self.known.knows(span.feed) and self._is_stranger(span):
                return RangeOutcome.STRANGER, None
        elif self.holdings.ended(span.feed):
            return RangeOutcome.KNOWN, None
        length = record.length if record is not None else 0
        if span.first > length:
            base = self._begins.get(span.feed)
            return (None, base) if base is not None and span.first <= base.seq + 1 else (RangeOutcome.UNFIT, None)
        if span.end <= (record.start if record is not None else 0):
            return RangeOutcome.KNOWN, None
        if (
            record is not None
            and span.first >= record.start
            and self._hash_before(span.feed, span.first) != span.previous
        ):
            return RangeOutcome.BRANCH, None
        if span.states and not self._may_lack(span):
            return RangeOutcome.BODIES_MISSING, None
        if record is not None and span.first >= record.length >= record.end:  # it continues behind a fault
            return RangeOutcome.KNOWN, None
        return None, None

    def _is_stranger(self, span: Span) -> bool:
        """True if no act names the feed of a range: as a data feed, or the identity of a control feed (rule 22)."""
        if span.first or int(span.columns["kind"][0]) != Kind.CREDENTIAL:
            return True
        self.strangers[span.feed] = identity = self.known.find_identity(span.block(0))
        return not self.known.names(identity)

    def _may_lack(self, span: Span) -> bool:
        """True if all missing bodies were erased by credentials: held blocks are not requested again."""
        lacking = {span.first + at for at, state in enumerate(span.states) if state != BodyState.PRESENT}
        return lacking <= set(self._erased(span.feed))

    def _ingest(self, fit: Sequence[tuple[Span, Base | None]], source: bytes) -> list[Ingested | None]:
        verified = False
        try:
            with self.store.batch(source=source) as batch:
                for span, base in fit:
                    batch.ingest(span, base)
                verified = True
            return batch.results
        except (RefusedBlocks, MissingBlocks, CorruptBlock):  # where held blocks are rotten, nothing is compared
            if not verified:
                raise
        return [self._ingest_alone(span, base, source) for span, base in fit]  # one does not fit: take the others

    def _ingest_alone(self, span: Span, base: Base | None, source: bytes) -> Ingested | None:
        try:
            return self.store.ingest(span, base, source=source)
        except Equivocation as error:
            return Ingested(Outcome.FORK, 0, str(error), error.evidence)
        except (RefusedBlocks, MissingBlocks, CorruptBlock):
            return None

    def take_branch(self, block: WantedBlock, spans: Sequence[Span], source: bytes = NOBODY) -> int:
        """Keep spans that lead to a wanted block. Return how many of their blocks are new here.

        If they do not verify, or do not lead to the block, an error is raised and none is kept.
        """
        if any((span.party, span.feed) != (self.key, block.feed) for span in spans):
            raise BadEncoding(f"an answer about a branch of feed {block.feed.hex()[:8]} with another feed")
        if any(not self._may_be_erased(span) for span in spans):
            return 0
        added = 0

        def change() -> Iterable[bytes]:
            nonlocal added
            done = self.store.ingest_branch(spans, leads_to=(block.seq, block.hash), source=source)
            added = sum(_news(one) for one in done)
            return [block.feed]

        with suppress(CorruptBlock):  # as in `take_fork`
            self.holdings.apply(change)
        self._stale = True
        return added

    def take_proof(self, block: WantedBlock, data: bytes) -> int:
        """Take a proof that a feed's writer signed a wanted block. Return 1 if it helps, and 0 if nobody needs it.

        If it does not prove that, an error is raised.
        """
        proof = HeadProof.decode(data)
        if not proof.proves(self.key, block.feed, block.seq, block.hash):
            raise BadEncoding(f"an answer that does not prove block {block.seq} of feed {block.feed.hex()[:8]}")
        return 0 if self._epochs is None else int(self._epochs.take_proof(block.feed, block.seq, block.hash, proof))

    def _may_be_erased(self, span: Span) -> bool:
        """True if all bodies that are marked as erased were erased by credentials, as far as is known here."""
        marked = {span.first + at for at, state in enumerate(span.states) if state == BodyState.ERASED}
        return not marked or marked <= set(self._erased(span.feed))

    def take_fork(self, evidence: bytes, source: bytes = NOBODY) -> tuple[bytes, bool]:
        """Take evidence of a fork, if it is about held blocks. Return its feed, and whether the evidence is new.

        The branch that is not held is ingested into the store, without bodies, like any range of blocks.
        """
        fork = Fork.decode(evidence)
        if fork.party != self.key:
            raise BadEncoding(f"evidence about party {fork.party.hex()[:8]} in a session about {self.key.hex()[:8]}")
        record = self.holdings.record(fork.feed)
        if record is None or not record.start <= fork.seq < min(record.length, record.end):
            return fork.feed, False
        with suppress(CorruptBlock):  # the held blocks cannot be compared: local readers report that
            return fork.feed, self._keep_fork(fork, source)
        return fork.feed, False

    def _keep_fork(self, fork: Fork, source: bytes) -> bool:
        if self._hash_before(fork.feed, fork.seq) != fork.previous:
            return False
        held = self._hash_before(fork.feed, fork.seq + 1)
        other = next(branch for branch in fork.branches if _first_hash(fork, branch) != held)

        def change() -> Iterable[bytes]:
            with suppress(Equivocation):
                self.store.ingest(_as_span(fork, other), source=source)
            return [fork.feed]

        self.holdings.apply(change)
        return True

    def _hash_before(self, feed: bytes, seq: int) -> bytes:
        record = self.holdings.record(feed)
        assert record is not None
        if seq == record.length:
            return record.hash
        if seq == record.start:
            return record.start_hash
        return next(self.store.held(feed, seq - 1, seq)).hash_at(seq - 1)

    def _is_foreign(self, feed: bytes) -> bool:
        try:
            return self.store.record(feed).party != self.key
        except UnknownFeed:
            return False

    # -- blobs

    def wanted_blobs(self) -> dict[Cid, None]:
        """Return the blobs that are missing, as far as known: more may be linked from these, once they are here."""
        if not self.fetches_blobs:
            return {}
        if self._stale and self._epochs is not None:
            self._wanted = dict.fromkeys(self._look_for(self._epochs))
        self._stale = False
        return self._wanted

    def want_snapshot(self, number: int) -> None:
        """Fetch the snapshot of an earlier final epoch, from peers that have kept it. Its CID is in its genesis."""
        final = () if self._epochs is None else self._epochs.chain().final
        if not 0 < number <= len(final):
            raise InvalidInput(f"party {self.key.hex()[:8]} has no final epoch {number}")
        self._earlier[Cid(final[number - 1].snapshot)] = None
        self._stale = True

    def _look_for(self, epochs: Epochs) -> list[Cid]:
        found = self._look_for_last(epochs)
        while not found and self._earlier:
            root = next(iter(self._earlier))
            with suppress(InvalidInput):  # it is no snapshot
                found = list(tree.missing(root, self._party.blobs))
            if not found:
                del self._earlier[root]
        return found

    def _look_for_last(self, epochs: Epochs) -> list[Cid]:
        last = epochs.chain().last
        if last is None or last.snapshot == self._complete:
            return []
        mark = (last.snapshot, self.base_version, epochs.disagreement)
        if self._wanted and mark == self._sought:
            return list(self._wanted)  # walking a snapshot is slow: fetch the known ones first
        self._sought = mark
        found = epochs.wanted()
        if not found and self._whole:
            found = epochs.wanted(whole=True)
        folded = self._base is not None and self._base.cid == last.snapshot
        if not found and folded:
            self._complete = last.snapshot
        return found

    def take_blobs(self, pairs: Iterable[tuple[Cid, bytes]]) -> int:
        """Store the blobs that are wanted. If one does not match its CID, an error is raised and none is stored."""
        fresh = {cid: data for cid, data in pairs if cid in self._wanted}
        if fresh and self.blobs is not None:
            self.blobs.put_all(fresh.items())
            if self._scope is not None:
                self._scope.arrived()
            self.joining.took_blobs(len(fresh))
            for cid in fresh:
                del self._wanted[cid]
            self._stale = self._stale or not self._wanted
        return len(fresh)


class ControlReplica(Replica):
    """The control feeds of a party only: for the parent of a party, if this device does not hold the parent itself."""

    def __init__(
        self,
        store: FeedStore,
        party: bytes,
        admits: Admits,
        *,
        known: Known | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        known = UnopenedParty(store, party) if known is None else known
        self._begin(store, party, admits, randomness or SystemRandomness(), known, control=True)
        self._erased = lambda feed: frozenset[int]()
        self._look_for_names = known.look
        self.blobs = None
        self._epochs = None
        self._whole = False
        self._keeps = None
        self._scope = None
        self.joining = Joining(self.holdings, None)


_OUTCOMES = {
    Outcome.STORED: RangeOutcome.TAKEN,
    Outcome.FAULT: RangeOutcome.TAKEN,
    Outcome.FORK: RangeOutcome.TAKEN,
    Outcome.KNOWN: RangeOutcome.KNOWN,
}


def _news(done: Ingested) -> int:
    """Return how much of a range is new for processing: the end of a feed counts, too."""
    return max(done.added, int(done.outcome in (Outcome.FORK, Outcome.FAULT)))


def _first_hash(fork: Fork, branch: Branch) -> bytes:
    return link(fork.party, fork.feed, fork.previous, [branch.headers[0]])[0]


def _as_span(fork: Fork, branch: Branch) -> Span:
    return Span(
        party=fork.party,
        feed=fork.feed,
        first=fork.seq,
        previous=fork.previous,
        signature=branch.head.signature,
        headers=b"".join(header[:HEADER_SIZE] for header in branch.headers),
        advance=b"".join(header[HEADER_SIZE:] for header in branch.headers),
        bodies=b"",
        states=bytes((BodyState.LEFT_OUT,)) * len(branch.headers),
    )
