"""`ViewSource`: a peer with the whole party answers one that holds a view: the list of items, their blobs, bodies."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, MissingBlocks, UnknownFeed, UnknownItem
from antiphon.feed.store.reader import FeedReader
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.views.outline import BaseOutline, Reach
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.car import write_car
from antiphon.snapshot.tree_paths import paths

ROOTS_MAX = 10_000
BODIES_SIZE_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class ViewSnapshot:
    """The snapshot of one view: a part of the epoch's snapshot, checked by the epoch's CID alone."""

    base: EpochBase
    view: bytes
    items: tuple[bytes, ...]  # members, links and support of the view

    @property
    def cid(self) -> Cid:
        """The epoch's snapshot."""
        return self.base.cid

    def blobs(self) -> Iterator[Cid]:
        """Yield the blobs needed to start at the epoch with these items: root, feeds, and the paths to the items."""
        root, blobs = self.base.root, self.base.blobs
        yield self.base.cid
        if root.feeds is not None:
            yield from tree.walk(root.feeds, blobs)
        yield from paths(root.items, self.items, blobs)

    def write(self, stream: BinaryIO) -> int:
        """Write the blobs as a CAR file, and return how many there are."""
        return write_car(stream, [self.cid], self.blobs(), self.base.blobs)


class ViewSource:
    """Answers requests about views, from snapshots that are whole here. Nothing is read in advance. Thread-safe."""

    def __init__(self, party: bytes, store: FeedReader, blobs: Blobs) -> None:
        self._party = party
        self._store = store
        self._blobs = blobs
        self._outline = BaseOutline()
        self._asked = threading.Lock()  # guards the outline, which each request may update

    def belonging(self, snapshot: Cid, roots: Iterable[bytes]) -> Reach:
        """Return the items that belong to `roots` in a snapshot. Raises `MissingBlob` if it is not whole here."""
        wanted = frozenset(roots)
        if len(wanted) > ROOTS_MAX:
            raise InvalidInput(f"{len(wanted)} items in one request; at most {ROOTS_MAX} are allowed")
        base = EpochBase.load(snapshot, self._blobs, party=self._party)
        with self._asked:
            outline = self._outline.of(base)
            return outline.reach(wanted).among(outline)

    def snapshot_of(self, snapshot: Cid, view: bytes) -> ViewSnapshot:
        """Return the snapshot of one view, as a part of the epoch's."""
        base = EpochBase.load(snapshot, self._blobs, party=self._party)
        items = self.belonging(snapshot, [view]).items
        if view not in items:
            raise UnknownItem(f"epoch {base.number} has no item {view.hex()}; it may be newer")
        return ViewSnapshot(base, bytes(view), tuple(sorted(items)))

    def bodies(self, feed: bytes, seqs: Iterable[int]) -> dict[int, bytes]:
        """Return the bodies that are here by seq, at most 8 MiB of them: ask again for the rest."""
        found: dict[int, bytes] = {}
        size = 0
        for seq in sorted(seqs):
            try:
                body = self._store.block(feed, seq).body
            except (MissingBlocks, UnknownFeed):
                continue
            if body is not None:
                size += len(body)
                if found and size > BODIES_SIZE_MAX:
                    break
                found[seq] = body
        return found
