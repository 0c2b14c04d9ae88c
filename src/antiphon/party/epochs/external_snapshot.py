"""Check a snapshot that another program has computed, such as a Spark job, before this device declares it.

Nothing is folded again. The check compares the bytes of items whose rows here are exactly what the epoch needs, the
feeds, the deaths, and the set of items that differ from the previous epoch. The bytes of all other items are trusted,
which is never done for a peer: the program that hands in the snapshot is part of this device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput
from antiphon.model import item_codec
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.ports import ItemRow
from antiphon.party.epochs.snapshot_fold import EpochFold, EpochPlan, EpochSnapshot
from antiphon.snapshot import tree
from antiphon.snapshot.root import SnapshotRoot

#: Computes the snapshot of a plan, puts its blobs into the party's blob store, and returns its CID.
SnapshotMaker = Callable[[EpochPlan], Cid]
_COMPARED_AT_ONCE = 1_000


class ExternalSnapshotFold(EpochFold):
    """Compares a given snapshot, and finds what a rebase onto it needs, as `EpochFold` does while it computes one."""

    def __init__(self, made: Cid, *given: Any) -> None:
        super().__init__(*given)
        self._made = EpochBase.load(made, self._blobs, party=self._party, number=self._plan.number)
        self._inside: set[bytes] = set()  # items with messages in the cut

    def _run(self) -> EpochSnapshot:
        self._inside, slow = self._touched()
        previous = None if self._base is None else self._base.root
        wrong, looked = self._compare(self._changes(self._inside, slow))
        deaths, gone = self._bury(previous.deaths if previous else None)
        root = self._made.root
        found = tree.leaf_diff(previous.items if previous else None, root.items, self._blobs)
        wrong |= {item for item, _, _ in found} - looked
        wrong -= set(gone)
        wrong |= self._held(gone).keys()  # a dropped item must not be in the tree
        wanted = self._wanted(root, deaths, tree.build(self._feeds(), self._blobs))
        if wrong or wanted != root:
            what = f"item {min(wrong).hex()}" if wrong else "its root"
            raise InvalidInput(
                f"party {self._party.hex()[:8]}: snapshot {self._made.cid}, which was computed elsewhere, is not that "
                f"of epoch {self._plan.number} here: {what} differs; nothing is declared"
            )
        positions = {lane.feed: lane.state.position for lane in self._lanes}
        stale = self._stale - set(gone)
        return EpochSnapshot(self._made.cid, root, stale, gone, self._found, self._authored, positions)

    def _wanted(self, root: SnapshotRoot, deaths: Cid | None, feeds: Cid | None) -> SnapshotRoot:
        """The root as it must be. The tree of items was compared before, so it is taken from the given root."""
        return SnapshotRoot(
            party=self._party,
            number=self._plan.number,
            previous=None if self._base is None else self._base.cid,
            created_ms=self._plan.created_ms,
            control=self._plan.control,
            models=self._plan.models,
            item_count=tree.count(root.items, self._blobs),
            feed_count=len(self._plan.cut),
            items=root.items,
            feeds=feeds,
            deaths=deaths,
        )

    def _compare(self, changes: Iterator[tuple[bytes, bytes | None]]) -> tuple[set[bytes], set[bytes]]:
        """Return the items that differ, and all items that were compared."""
        wrong: set[bytes] = set()
        looked: set[bytes] = set()
        while some := dict(islice(changes, _COMPARED_AT_ONCE)):
            held = self._held(list(some))
            wrong.update(item for item, data in some.items() if held.get(item) != data)
            looked.update(some)
        return wrong, looked

    def _held(self, ids: list[bytes]) -> dict[bytes, bytes]:
        held: dict[bytes, bytes] = {}
        for some in self._steps(ids):
            held |= self._made.require_items(some)
        return held

    def _fold_again(self, ids: list[bytes], rows: Mapping[bytes, ItemRow]) -> dict[bytes, bytes | None]:
        """Take the bytes from the given snapshot instead of folding."""
        held = self._held(ids)
        based = {} if self._base is None else self._base.require_items(ids)
        made: dict[bytes, bytes | None] = {}
        for item in ids:
            self._check()
            data = held.get(item)
            if data != based.get(item) or item in self._inside:
                made[item] = data
                if not self._stands(item, data, rows.get(item)):
                    self._stale.add(item)
                self._dying[item] = data is not None and item_codec.summary(data).is_dying
        return made
