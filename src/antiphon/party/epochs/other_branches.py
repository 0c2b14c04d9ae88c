"""`OtherBranches`: feeds of which a final epoch holds another branch than this device, and what proves it.

A writer may show a branch to one device that makes an epoch and prunes, and another one to all others. Nobody then
holds blocks of both, and no evidence of the fork is found. What is left of the pruned branch, a hash and a signed head,
is enough to show that its writer signed it. Then the root decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import Entry
from antiphon.feed.store.ingest import Base
from antiphon.snapshot.root import FeedCut

if TYPE_CHECKING:
    from antiphon.feed.store.feed_store import FeedStore
    from antiphon.feed.store.reader import FeedReader
    from antiphon.party.engine.engine import Engine


class OtherBranches:
    """The blocks of final epochs that differ from those held here, and the proofs that their writers signed them."""

    def __init__(self) -> None:
        self.unproven: tuple[Entry, ...] = ()  # blocks whose proofs are missing: other peers may have them
        self._proofs: dict[Entry, HeadProof] = {}

    def take_proof(self, feed: bytes, seq: int, hash_: bytes, proof: HeadProof) -> bool:
        """Take a proof that was verified. False if it is not needed."""
        for entry in self.unproven:
            if (entry.feed, entry.seq, entry.hash) == (feed, seq, hash_):
                self._proofs[entry] = proof
                self.unproven = tuple(one for one in self.unproven if one != entry)  # it is not requested again
                return True
        return False

    def sort(self, store: FeedReader, entries: Iterable[Entry]) -> dict[Entry, HeadProof]:
        """Note that these blocks differ here, and no others. Return those with proofs."""
        wanted = {one: self._proofs.get(one) or store.proof(one.feed, one.seq, one.hash) for one in entries}
        found = {one: proof for one, proof in wanted.items() if proof is not None}
        self._proofs = {one: proof for one, proof in self._proofs.items() if one in found}
        self.unproven = tuple(one for one in wanted if one not in found)
        return found

    def leave(self, engine: Engine, store: FeedStore, cuts: Mapping[bytes, FeedCut]) -> bool:
        """Leave the held branches of feeds of which the party's base holds another one. True if one was left.

        They become branches like any other, and the feeds begin at the base, as for a joiner.
        """
        lanes = [lane for lane in engine.delivery.lanes.values() if lane.other_branch]
        records = [store.record(lane.feed) for lane in lanes]
        left = False
        for entry, proof in self.sort(store, differing(store, records, cuts)).items():
            if store.change_branch(entry.feed, Base(entry.seq, entry.hash, entry.lamport), proof):
                engine.delivery.change_branch(entry.feed)
                left = True
        return left


def differing(store: FeedReader, records: Iterable[FeedRecord], cuts: Mapping[bytes, FeedCut]) -> Iterator[Entry]:
    """Yield the last blocks in these cuts of feeds that have another block there, and no known fork."""
    for record in records:
        cut = cuts.get(record.feed)
        if cut is None or record.why is End.FORK or not record.start < cut.length <= record.length:
            continue
        (last,) = store.held(record.feed, cut.length - 1, cut.length)
        if last.hash_at(cut.length - 1) != cut.hash:
            yield Entry(record.feed, cut.length - 1, cut.lamport, cut.hash)
