"""Read items from earlier epochs' snapshots, also data that the party has discarded since.

This may fetch blobs, so it is async, and no part of the live engine. Fetched blobs are verified, and kept only for the
duration of one call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, InvalidInput, MissingBlob, UnknownItem
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.model import item_codec
from antiphon.model.fold import ItemState
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.live.history import PastItem
from antiphon.snapshot import tree
from antiphon.snapshot.blob_overlay import BlobOverlay

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor

#: Gets a blob from another place, such as a peer or a folder, or raises.
Fetch = Callable[[Cid], Awaitable[bytes]]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Earlier(PastItem):
    """An item in the snapshot of an earlier epoch."""

    id: ItemId
    number: int  # of the epoch
    created_ms: int  # when that was declared
    state: ItemState


async def earlier(party: PartyProcessor, item: bytes, number: int | None = None, fetch: Fetch | None = None) -> Earlier:
    """Return an item at an epoch; without a number, at the one before the party's current epoch.

    Without `fetch`, only blobs that are held are read, and `MissingBlob` names a missing one.
    """
    with BlobOverlay(party.blobs) as blobs:
        walk = _Walk(party, blobs, fetch)
        base = await walk.at(number)
        data = await walk.item(base, item)
        if data is None or item_codec.summary(data).hidden:
            raise UnknownItem(f"party {party.key.short}: epoch {base.number} has no item {item.hex()}")
        return Earlier(ItemId(item), base.number, base.root.created_ms, item_codec.restore(data, party.models))


async def older_posts(party: PartyProcessor, item: bytes, fetch: Fetch | None = None) -> AsyncIterator[dict[str, Any]]:
    """Yield the posts of a thread that retention has discarded, newest first, from one snapshot after the other.

    A post that was written and discarded between two epochs is in no snapshot.
    """
    with party.locked() as engine:
        state = engine.entry(item).item
        assert state is not None
        seen: set[Stamp] = set(_posts(state))
        base = engine.base
    if base is None:
        return
    with BlobOverlay(party.blobs) as blobs:
        walk = _Walk(party, blobs, fetch)
        found: EpochBase | None = base
        while found is not None:
            data = await walk.item(found, item)
            if data is None:  # the thread did not exist yet
                return
            posts = _posts(item_codec.restore(data, party.models))
            for stamp in sorted(posts.keys() - seen, reverse=True):
                seen.add(stamp)
                yield posts[stamp]
            found = await walk.before(found)


def _posts(state: ItemState) -> dict[Stamp, dict[str, Any]]:
    return {post["id"]: post for post in state.value}


class _Walk:
    """Walks from snapshot to snapshot, and fetches missing blobs."""

    def __init__(self, party: PartyProcessor, blobs: BlobOverlay, fetch: Fetch | None) -> None:
        self._party = party
        self._blobs = blobs
        self._fetch = fetch

    async def at(self, number: int | None) -> EpochBase:
        with self._party.locked() as engine:
            base: EpochBase | None = engine.base
        last = 0 if base is None else base.number
        wanted = last - 1 if number is None else number
        if base is None or not 0 < wanted <= last:
            raise InvalidInput(
                f"party {self._party.key.short} is at epoch {last} here; there is no epoch {wanted} up to that"
            )
        base = EpochBase(base.cid, base.root, self._blobs)
        while base is not None and base.number > wanted:
            base = await self.before(base)
        assert base is not None
        return base

    async def before(self, base: EpochBase) -> EpochBase | None:
        """Return the previous snapshot; None before the first."""
        previous, party = base.root.previous, self._party.key
        if previous is None:
            return None
        return await self._read(lambda: EpochBase.load(previous, self._blobs, party=party, number=base.number - 1))

    async def item(self, base: EpochBase, item: bytes) -> bytes | None:
        """Return an item's bytes, or None. All chunks of a large item are fetched together."""
        found = await self._read(lambda: next(tree.leaf_entries(base.root.items, self._blobs, start=item), None))
        if found is None or found.key != item:
            return None
        if isinstance(found.value, Cid):
            while lacking := list(tree.missing(found.value, self._blobs)):
                for cid in lacking:
                    await self._get(cid)
        return tree.get(base.root.items, item, self._blobs)

    async def _read(self, read: Callable[[], Result]) -> Result:
        while True:
            try:
                return read()
            except (MissingBlob, DamagedBlob) as error:
                lacking = Cid(error.cid)
            await self._get(lacking)

    async def _get(self, cid: Cid) -> None:
        if self._fetch is None:
            raise MissingBlob(
                f"party {self._party.key.short}: blob {cid} of an earlier snapshot is not here; say how to fetch it",
                cid=cid,
            )
        self._blobs.put_all([(cid, await self._fetch(cid))])
