"""The snapshot that a party stands on: the state of every item at a final epoch's cut, read from blobs when asked for.

State = base + messages outside the cut. A party without epochs stands on nothing, and everything is outside the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.item_state import ItemState
from antiphon.party.engine.ports import Mark
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.root import FeedCut, SnapshotRoot, decode_death
from antiphon.snapshot.tree_paths import missing_on_paths

#: Some items: their bytes in a snapshot, and the state that those stand for.
States = dict[bytes, tuple[bytes, ItemState]]


class EpochBase:
    """A snapshot root, and the trees below it. Nothing is read before it is asked for, and every blob is verified."""

    def __init__(self, cid: Cid, root: SnapshotRoot, blobs: Blobs, states: States | None = None) -> None:
        self.cid = cid
        self.root = root
        self.blobs = blobs
        self._states = {} if states is None else states

    def take_states(self) -> States:
        """The states of some items, from when it was computed here. Whoever takes them changes them: they go."""
        states, self._states = self._states, {}
        return states

    @classmethod
    def load(cls, cid: Cid, blobs: Blobs, *, party: bytes, number: int | None = None) -> EpochBase:
        """The snapshot of this CID, which must be the party's, and of the epoch that it is said to be of."""
        root = SnapshotRoot.decode(blobs.get(cid))
        if root.party != party:
            raise InvalidInput(f"snapshot {cid} is one of party {root.party.hex()[:8]}, not of {party.hex()[:8]}")
        if number is not None and root.number != number:
            raise BadEncoding(f"snapshot {cid} is of epoch {root.number}, and was declared as that of {number}")
        return cls(cid, root, blobs)

    @classmethod
    def of(cls, mark: Mark | None, blobs: Blobs, party: bytes) -> EpochBase | None:
        """The snapshot that an item store stands on."""
        if mark is None:
            return None
        return cls.load(Cid(mark.snapshot), blobs, party=party, number=mark.number)

    def contradicts(self, epoch: FinalEpoch) -> str:
        """What the root says otherwise than the genesis of its epoch; empty if nothing. The tree of feeds is read.

        Whoever has recomputed it need not ask. A joiner believes attesters; but not what contradicts itself.
        """
        root = self.root
        told: dict[str, tuple[object, object]] = {
            "number": (root.number, epoch.number),
            "previous": (root.previous or b"", epoch.previous),
            "created_ms": (root.created_ms, epoch.created_ms),
            "control": (root.control, epoch.control),
            "models": (root.models, tuple(map(tuple, epoch.models))),
            "cut": ({feed: cut.length for feed, cut in self.feeds.items()}, dict(epoch.cut)),
        }
        names = ", ".join(name for name, (inside, declared) in told.items() if inside != declared)
        return f"snapshot {self.cid} says otherwise than the genesis of epoch {epoch.number}: {names}" if names else ""

    @property
    def number(self) -> int:
        return self.root.number

    @cached_property
    def feeds(self) -> Mapping[bytes, FeedCut]:
        """Each data feed at the cut."""
        return {feed: FeedCut.decode(value) for feed, value in tree.entries(self.root.feeds, self.blobs)}

    def length(self, feed: bytes) -> int:
        """How many messages of a feed are in the base."""
        cut = self.feeds.get(feed)
        return 0 if cut is None else cut.length

    def item(self, item: bytes) -> bytes | None:
        """The canonical bytes of an item at the cut; only the path to it is read."""
        return tree.get(self.root.items, item, self.blobs)

    def items(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Of several items those that are in it, and whose blobs are here."""
        try:
            return self.sure(ids)
        except MissingBlob:
            return {item: data for item in ids if (data := self._here(item)) is not None}

    def sure(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Of several items those that are in it; `MissingBlob` where that cannot be told."""
        return tree.get_many(self.root.items, ids, self.blobs)

    def _here(self, item: bytes) -> bytes | None:
        try:
            return self.item(item)
        except MissingBlob:
            return None

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Every item with its bytes, by ascending id."""
        return tree.entries(self.root.items, self.blobs)

    def deaths(self) -> Iterator[tuple[bytes, int]]:
        """Items that are deleted, and since which epoch."""
        for item, value in tree.entries(self.root.deaths, self.blobs):
            yield item, decode_death(value)

    def missing(self, items: Iterable[bytes] | None = None) -> list[Cid]:
        """The next blobs that are not here, of these items or of all; asked again until there are none."""
        if items is not None:
            return missing_on_paths(self.root.items, items, self.blobs)
        return list(tree.missing(self.cid, self.blobs))
