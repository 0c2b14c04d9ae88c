"""`EpochBase`: the snapshot of the last final epoch, from which all item states of a party start.

State = base + messages outside the cut. A party without epochs has no base, and all messages are outside the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob
from antiphon.core.ids import ItemId
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model import item_codec
from antiphon.model.item_state import ItemState
from antiphon.party.engine.ports import BaseMark
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.root import FeedCut, SnapshotRoot, decode_death
from antiphon.snapshot.tree_paths import missing_on_paths

#: By item: its bytes in a snapshot, and the decoded state.
States = dict[bytes, tuple[bytes, ItemState]]


class EpochBase:
    """A snapshot root and the trees below it. Blobs are read on demand, and verified."""

    def __init__(self, cid: Cid, root: SnapshotRoot, blobs: Blobs, states: States | None = None) -> None:
        self.cid = cid
        self.root = root
        self.blobs = blobs
        self._states = {} if states is None else states

    def take_states(self) -> States:
        """Take the states that were left from computing the snapshot here. The caller may change them."""
        states, self._states = self._states, {}
        return states

    @classmethod
    def load(cls, cid: Cid, blobs: Blobs, *, party: bytes, number: int | None = None) -> EpochBase:
        """Load a snapshot by CID. Its party, and its epoch number if given, must match."""
        root = SnapshotRoot.decode(blobs.get(cid))
        if root.party != party:
            raise InvalidInput(f"snapshot {cid} is one of party {root.party.hex()[:8]}, not of {party.hex()[:8]}")
        if number is not None and root.number != number:
            raise BadEncoding(f"snapshot {cid} is of epoch {root.number}, and was declared as that of {number}")
        return cls(cid, root, blobs)

    @classmethod
    def of(cls, mark: BaseMark | None, blobs: Blobs, party: bytes) -> EpochBase | None:
        """Load the snapshot that an item store is based on."""
        if mark is None:
            return None
        return cls.load(Cid(mark.snapshot), blobs, party=party, number=mark.number)

    def contradicts(self, epoch: FinalEpoch) -> str:
        """Compare the root with the genesis of its epoch. Return the differences as text, empty if there are none.

        This reads the tree of feeds. A peer that has recomputed the snapshot need not call it. A joiner trusts the
        attesters, but not a snapshot that contradicts its own epoch.
        """
        root = self.root
        pairs: dict[str, tuple[object, object]] = {
            "number": (root.number, epoch.number),
            "previous": (root.previous or b"", epoch.previous),
            "created_ms": (root.created_ms, epoch.created_ms),
            "control": (root.control, epoch.control),
            "models": (root.models, tuple(map(tuple, epoch.models))),
            "cut": ({feed: cut.length for feed, cut in self.feeds.items()}, dict(epoch.cut)),
        }
        names = ", ".join(name for name, (inside, declared) in pairs.items() if inside != declared)
        return f"snapshot {self.cid} contradicts the genesis of epoch {epoch.number}: {names}" if names else ""

    @property
    def number(self) -> int:
        return self.root.number

    @cached_property
    def feeds(self) -> Mapping[bytes, FeedCut]:
        """Cut of each data feed."""
        return {feed: FeedCut.decode(value) for feed, value in tree.entries(self.root.feeds, self.blobs)}

    def length(self, feed: bytes) -> int:
        """Return the number of messages of a feed inside the base."""
        cut = self.feeds.get(feed)
        return 0 if cut is None else cut.length

    @cached_property
    def _lamport(self) -> int:
        """The greatest lamport inside the cut."""
        return max((cut.lamport for cut in self.feeds.values()), default=0)

    def is_before(self, item: bytes) -> bool:
        """True if the cut is before the genesis of an item, as its id tells: then the base does not hold it."""
        return ItemId(item).lamport > self._lamport

    def item(self, item: bytes) -> bytes | None:
        """Return the canonical bytes of an item at the cut, or None. Only the path to it is read."""
        return tree.get(self.root.items, item, self.blobs)

    def items(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the bytes of items, without those that are not in the base or whose blobs are missing."""
        try:
            return self.require_items(ids)
        except MissingBlob:
            return {item: data for item in ids if (data := self._here(item)) is not None}

    def require_items(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the bytes of items, without those that are not in the base. Raises `MissingBlob`."""
        return tree.get_many(self.root.items, ids, self.blobs)

    def _here(self, item: bytes) -> bytes | None:
        try:
            return self.item(item)
        except MissingBlob:
            return None

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over all items with their bytes, by ascending id."""
        return tree.entries(self.root.items, self.blobs)

    def deaths(self) -> Iterator[tuple[bytes, int]]:
        """Yield deleted and hidden items, each with the first epoch in which it was so."""
        for item, value in tree.entries(self.root.deaths, self.blobs):
            yield item, decode_death(value)

    @cached_property
    def hidden_count(self) -> int:
        """Count the hidden items. All of them are among the deaths."""
        try:
            dying = [item for item, _ in self.deaths()]
        except MissingBlob:
            return 0
        return sum(item_codec.summary(data).hidden for data in self.items(dying).values())

    def missing(self, items: Iterable[bytes] | None = None) -> list[Cid]:
        """Return the next missing blobs, of these items or of all. Fetch them and call again until there are none."""
        if items is not None:
            return missing_on_paths(self.root.items, items, self.blobs)
        return list(tree.missing(self.cid, self.blobs))
