"""Import a party from a file. The whole file is verified before anything is stored; then it is stored as from a peer.

Control feeds come first: they decide who may write, and which epoch is final. The party starts at that epoch's
snapshot, if it has the attestations that policy wants. Messages outside its cut come from the data feeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import (
    AntiphonError,
    BadEncoding,
    Equivocation,
    MissingBlob,
    MissingBlocks,
    NotAuthorised,
    RefusedBlocks,
)
from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, because
from antiphon.feed import span as spans
from antiphon.feed.chain import verify_span
from antiphon.feed.header import HASH_SIZE, NO_HASH
from antiphon.feed.limits import SPAN_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base, begins_control, check_complete, has_credentials, is_complete
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.acts.act import read_act
from antiphon.halo.control.control_feeds import fold_parent_feeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import PartyGenesis
from antiphon.party.bundle.export import SPAN_BLOB_SIZE_MAX, Tick, no_tick
from antiphon.party.bundle.nodes import BundleFeed, BundleRoot, decode_list, decode_page
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.epochs.plan import policy_at
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.car_file import CarFile
from antiphon.snapshot.chunks import FILE_CHUNKS
from antiphon.snapshot.limits import BATCH_COUNT_MAX, BATCH_SIZE_MAX


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Counts of what `Bundle.take` stored."""

    party: PublicKey
    genesis: PublicKey
    number: int  # of the epoch whose snapshot came with it; 0: none
    blocks: int  # that were new
    blobs: int


class Bundle:
    """A verified file: blocks, signatures, credentials, the final epoch and all blobs of its snapshot were checked."""

    def __init__(self, file: CarFile, tick: Tick = no_tick, *, store: FeedReader | None = None) -> None:
        """Verify a file. A child party needs its parent's control feeds, which are not in the file but in `store`."""
        self.file = file
        self._store = store
        self._lacks_parent = False
        self._tell = tick
        self._done: Counter[str] = Counter()
        try:
            self.root = self._root()
            self.feeds = self._feeds()
            self.machine = PartyMachine(self.root.party, self.root.genesis)
            self._check_control()
            self.base = self._base()
            self._check_data()
            self._check_files()
        except MissingBlob as error:
            raise BadEncoding(
                f"{file.path} is not whole: blob {Cid(error.cid)} is not in it. Get another copy"
            ) from None
        except AntiphonError as error:
            kind = MissingBlocks if self._lacks_parent else type_of(error)
            raise kind(f"{file.path}: {error}") from None

    def _tick(self, what: str, size: int) -> None:
        self._done[what] += size
        self._tell(what, self._done[what])

    def _root(self) -> BundleRoot:
        if len(self.file.roots) != 1:
            raise BadEncoding(f"a party has one root, not {len(self.file.roots)}")
        return BundleRoot.decode(self.file.get(self.file.roots[0]))

    # -- feeds

    def _feeds(self) -> tuple[BundleFeed, ...]:
        pages = (decode_page(self.file.get(found)) for found in self.root.more)
        feeds = (*self.root.feeds, *chain.from_iterable(pages))
        if problem := self.root.problem_with(feeds):
            raise BadEncoding(f"bundle of party {self.root.party.hex()[:8]}: {problem}")
        return feeds

    def spans(self, feed: BundleFeed) -> Iterator[Span]:
        """Yield the blocks of a feed, each span verified, and linked to the one before."""
        at, previous = feed.first, self._previous(feed)
        where = f"feed {feed.feed.hex()[:8]}"
        for found in feed.lists:
            for link in decode_list(self.file.get(found)):
                span = self._span(link)
                if (span.party, span.feed, span.first, span.previous) != (self.root.party, feed.feed, at, previous):
                    raise BadEncoding(f"{where}: blob {link} is not the blocks from {at} on")
                verified = verify_span(span)
                check_complete(verified)
                at, previous = verified.end, verified.hashes[-HASH_SIZE:]
                yield verified
        if at != feed.length:
            raise BadEncoding(f"{where}: it ends at block {at}, {feed.length} are announced")

    def branches(self, feed: BundleFeed) -> Iterator[Span]:
        """Yield the spans of other branches of a feed, each verified."""
        for found in feed.branches:
            for link in decode_list(self.file.get(found)):
                span = verify_span(self._span(link))
                check_complete(span)
                fits = (span.party, span.feed) == (self.root.party, feed.feed)
                if not fits or not is_complete(span):
                    raise BadEncoding(f"feed {feed.feed.hex()[:8]}: blob {link} is no branch of it, or lacks bodies")
                yield span

    def _span(self, link: Cid) -> Span:
        if link.codec == RAW:
            data = self.file.get(link)
            wrong = len(data) > SPAN_BLOB_SIZE_MAX
        else:
            data = content.read(link, self.file, size_max=SPAN_SIZE_MAX, rule=FILE_CHUNKS)
            wrong = len(data) <= SPAN_BLOB_SIZE_MAX
        if wrong:
            raise BadEncoding(f"blob {link}: a span of {len(data)} bytes is not kept so")
        return spans.decode(data)

    def _previous(self, feed: BundleFeed) -> bytes:
        base = self.begin(feed)
        return NO_HASH if base is None else base.hash

    def begin(self, feed: BundleFeed) -> Base | None:
        """Return the snapshot's entry for the block before a feed's first one; None if the feed starts at block 0."""
        if not feed.first:
            return None
        cut = None if self.base is None else self.base.feeds.get(feed.feed)
        if cut is None or cut.length != feed.first:
            raise BadEncoding(f"feed {feed.feed.hex()[:8]} begins at block {feed.first}, where no epoch was cut")
        return Base(cut.length - 1, cut.hash, cut.lamport)

    def _check_control(self) -> None:
        """Fold the control feeds, from the genesis that is signed with the party's own key."""
        first = True
        control = [feed for feed in self.feeds if feed.control]
        for feed in sorted(control, key=lambda one: one.feed != self.root.genesis):
            for span in self.spans(feed):
                if first:
                    self._check_genesis(span)
                    first = False
                self.machine.add(span.blocks(0, span.count))
            if not self.machine.length(feed.feed) and feed.length:
                raise BadEncoding(f"feed {feed.feed.hex()[:8]} is no control feed of the party")
            for span in self.branches(feed):
                self.machine.show(span)
        self._show_control_branches()
        parent = self.machine.parent
        if parent is not None:
            if self._store is not None:
                fold_parent_feeds(self.machine, self._store)
            waiting = [found.entry for found in self.machine.waiting()]
            self._lacks_parent = any(not self.machine.length(entry.feed) for entry in waiting)
            if self._lacks_parent:
                raise MissingBlocks(
                    f"party {self.root.party.hex()[:8]} is a child of party {parent.party.hex()[:8]}, whose control "
                    "feeds are not all here; import or fetch that one first"
                )
        for feed in control:
            if not self.machine.knows(feed.feed):
                raise BadEncoding(because(Reason.FEED_UNKNOWN, f"no act names control feed {feed.feed.hex()[:8]}"))

    def _show_control_branches(self) -> None:
        """Show the machine the branches of data feeds whose writers have signed a first block of control, too."""
        for feed in self.feeds:
            if not feed.control and any(map(begins_control, self.branches(feed))):
                for span in filter(has_credentials, self.branches(feed)):
                    self.machine.show(span, ended=True)  # its history is one of data

    def _check_genesis(self, span: Span) -> None:
        act = read_act(self.root.party, span.block(0), {})
        claim = act.claim
        if not (
            isinstance(claim, PartyGenesis)
            and claim.admission.feed == self.root.genesis == span.feed
            and self.root.party in act.signers
        ):
            raise BadEncoding(f"feed {self.root.genesis.hex()[:8]} does not begin party {self.root.party.hex()[:8]}")

    def _check_data(self) -> None:
        admitted = set(self.machine.data_feeds())
        for feed in self.feeds:
            if not feed.control:
                if feed.feed not in admitted:
                    raise BadEncoding(f"feed {feed.feed.hex()[:8]} was never admitted to the party")
                for span in chain(self.spans(feed), self.branches(feed)):
                    self._tick("verified", span.size)

    # -- blobs

    def _base(self) -> EpochBase | None:
        """Return the snapshot of the last final epoch. It must match the control feeds, and be whole in the file."""
        snapshot = self.root.snapshot
        if snapshot is None:
            return None
        chain = self.machine.epochs()
        last = chain.last
        if last is None or last.snapshot != snapshot:
            raise BadEncoding(f"snapshot {snapshot} is not that of the last final epoch of its control feeds")
        wanted, votes = policy_at(self.machine, last.control, last.control_hash).attestations_min, len(chain.votes[-1])
        if votes < wanted:
            raise NotAuthorised(
                f"epoch {last.number} has {votes} attestations, and policy wants {wanted}; get a file from a peer with "
                "more of the control feeds, or one with all messages"
            )
        base = EpochBase.load(snapshot, self.file, party=self.root.party, number=last.number)
        self._whole(snapshot, set())
        if lie := base.contradicts(last):
            raise BadEncoding(lie)
        return base

    def _whole(self, cid: Cid, seen: set[Cid]) -> None:
        """Check that all blobs below a CID are in the file. Blobs in `seen` are skipped."""
        for found in tree.walk(cid, self.file, seen=seen):
            if not self.file.has(found):
                raise MissingBlob("", cid=found)

    def files(self) -> Iterator[Cid]:
        """Yield the roots of the file contents in the bundle."""
        for found in self.root.files:
            yield from decode_list(self.file.get(found))

    def _check_files(self) -> None:
        """Check each content once, and shared blobs once: otherwise a small hostile file could cost unbounded time."""
        named: set[Cid] = set()
        seen: set[Cid] = set()
        for cid in self.files():
            if cid in named:
                raise BadEncoding(f"content {cid} is named twice")
            named.add(cid)
            content.size_of(cid, self.file)
            self._whole(cid, seen)

    # -- storing

    def take(self, feeds: FeedStore, blobs: Blobs) -> ImportReport:
        """Put blobs and blocks into the stores of a device. Those that a store has already are left alone."""
        count = self._take_blobs(blobs)
        added = sum(self._take_feed(feeds, feed) for feed in self.feeds)  # control feeds come first
        number = 0 if self.base is None else self.base.number
        return ImportReport(PublicKey(self.root.party), PublicKey(self.root.genesis), number, added, count)

    def _take_feed(self, store: FeedStore, feed: BundleFeed) -> int:
        """Take the blocks of a feed. Where the store holds other ones, or its feed has ended, they are a branch."""
        base, added, parted = self.begin(feed), 0, False
        for span in self.spans(feed):
            try:
                if parted:
                    store.ingest_branch([span])
                else:
                    added += store.ingest(span, base).added
            except Equivocation:
                parted = True  # the store has kept the evidence, and the other branch
            except RefusedBlocks as error:
                if error.code not in (Reason.CHAIN, Reason.FEED_ENDED) or parted:
                    raise
                parted = True
                store.ingest_branch([span])
            self._tick("taken", span.size)
        for span in self.branches(feed):
            store.ingest_branch([span])
            self._tick("taken", span.size)
        return added

    def _take_blobs(self, blobs: Blobs) -> int:
        seen: set[Cid] = set()
        pairs: list[tuple[Cid, bytes]] = []
        size = 0
        for root in (*([] if self.base is None else [self.base.cid]), *self.files()):
            for cid in tree.walk(root, self.file, seen=seen):
                pairs.append((cid, self.file.get(cid)))
                size += len(pairs[-1][1])
                if len(pairs) >= BATCH_COUNT_MAX or size >= BATCH_SIZE_MAX:
                    blobs.put_all(pairs)
                    self._tick("taken", size)
                    pairs, size = [], 0
        blobs.put_all(pairs)
        return len(seen)


def type_of(error: AntiphonError) -> type[AntiphonError]:
    """Return the class as which an error in a file is raised again."""
    if isinstance(error, NotAuthorised):
        return NotAuthorised
    return RefusedBlocks if isinstance(error, RefusedBlocks) else BadEncoding


__all__ = ["Bundle", "ImportReport"]
