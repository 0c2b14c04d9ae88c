"""What earlier snapshots have kept: an item as it was at an epoch, also what the party has let go since.

Models do no I/O, and neither does the live pipeline: this is asked for, and may have to fetch blobs. What is fetched is
verified, and kept for as long as the question takes.
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

#: Gets a blob from somewhere else: a peer, a folder. It raises if nobody has it.
Fetch = Callable[[Cid], Awaitable[bytes]]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Earlier(PastItem):
    """An item as the snapshot of an epoch has it."""

    id: ItemId
    number: int  # of the epoch
    created_ms: int  # when that was declared
    state: ItemState


async def earlier(party: PartyProcessor, item: bytes, number: int | None = None, fetch: Fetch | None = None) -> Earlier:
    """An item at an epoch; without a number, at the one before that which the party stands on.

    Without `fetch` only blobs that are held are read, and `MissingBlob` says which one is not.
    """
    with BlobOverlay(party.blobs) as blobs:
        walk = _Walk(party, blobs, fetch)
        base = await walk.at(number)
        data = await walk.item(base, item)
        if data is None:
            raise UnknownItem(f"party {party.key.short}: epoch {base.number} has no item {item.hex()}")
        return Earlier(ItemId(item), base.number, base.root.created_ms, item_codec.restore(data, party.models))


async def older_posts(party: PartyProcessor, item: bytes, fetch: Fetch | None = None) -> AsyncIterator[dict[str, Any]]:
    """The posts of a thread that retention has let go, newest first, from one snapshot after the other.

    What came and went between two epochs is in none of them.
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
            if data is None:  # the thread is younger
                return
            posts = _posts(item_codec.restore(data, party.models))
            for stamp in sorted(posts.keys() - seen, reverse=True):
                seen.add(stamp)
                yield posts[stamp]
            found = await walk.before(found)


def _posts(state: ItemState) -> dict[Stamp, dict[str, Any]]:
    return {post["id"]: post for post in state.value}


class _Walk:
    """From snapshot to snapshot, with whatever has to be fetched on the way."""

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
                f"party {self._party.key.short} stands on epoch {last} here; there is no epoch {wanted} up to that"
            )
        base = EpochBase(base.cid, base.root, self._blobs)
        while base is not None and base.number > wanted:
            base = await self.before(base)
        assert base is not None
        return base

    async def before(self, base: EpochBase) -> EpochBase | None:
        """The snapshot before one."""
        previous, party = base.root.previous, self._party.key
        if previous is None:
            return None
        return await self._read(lambda: EpochBase.load(previous, self._blobs, party=party, number=base.number - 1))

    async def item(self, base: EpochBase, item: bytes) -> bytes | None:
        """An item's bytes; those of a large one are fetched together."""
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
