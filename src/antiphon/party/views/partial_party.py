"""`PartialParty`: a party of which this device holds one view. It names what to fetch; the caller's network fetches it.

```text
 step ─▶ ask       (snapshot, roots)   ─▶ a whole peer's ViewSource.belonging ─▶ take_list
      ─▶ blobs     CIDs                ─▶ any peer's blobs                    ─▶ party.blobs.put_all
      ─▶ bodies    feed → seqs         ─▶ ViewSource.bodies                   ─▶ take_bodies
         keeps     kind, item → bool   ─▶ bodies that senders of blocks send  ─▶ store.ingest        … step again
```
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from antiphon.core.cid import Cid
from antiphon.core.errors import MissingBlob
from antiphon.model.relations import relations_in_snapshot, relations_of
from antiphon.party.engine.engine import Engine
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import ItemStore
from antiphon.party.views.outline import Reach
from antiphon.party.views.selection import ViewSelection
from antiphon.snapshot import tree
from antiphon.snapshot.limits import BATCH_COUNT_MAX
from antiphon.snapshot.tree_paths import missing_on_paths

BODIES_COUNT_MAX = 10_000


class ReachRequest(NamedTuple):
    """A request to a peer with the whole snapshot: list the items that belong to `roots` in it."""

    snapshot: Cid
    roots: frozenset[bytes]


def open_items(selection: ViewSelection, path: Path | None, party: bytes) -> Callable[[], ItemStore]:
    """Return a function that opens the item store of a partial party: pass it to `PartyProcessor` as `open_items`.

    Items that were ready before a restart are ready again at once, without asking a peer.
    """

    def opened() -> ItemStore:
        store = ItemStore(path, party)
        selection.ready.update(store.ids())
        store.ready_items = selection.ready
        return store

    return opened


class PartialParty:
    """Holds one view. Call `step` after anything arrives; then fetch what `ask`, `blobs` and `bodies` name."""

    def __init__(self, party: PartyProcessor, epochs: Epochs, selection: ViewSelection) -> None:
        self._party = party
        self._epochs = epochs
        self.selection = selection
        self._engine = party.engine
        self._base = self._engine.base
        self._folded = set(selection.ready)  # items folded on this base: they have rows
        self._next: tuple[Cid, Reach] | None = None  # the list for the next final epoch
        self._scanned: dict[bytes, int] = {}  # feed → position up to which geneses and changes were read
        self._changed: set[bytes] = set(selection.ready)
        self._left: dict[bytes, set[int]] = {}  # feed → seqs of needed bodies that were left out
        self._came: set[bytes] = set()  # items whose bodies arrived since the last step
        self._known: frozenset[bytes] = frozenset()
        self._hearing = threading.Lock()
        party.listen(self._hear)

    def _hear(self, items: Iterable[bytes]) -> None:
        with self._hearing:
            self._changed.update(items)

    # -- input

    def take_list(self, ask: ReachRequest, listed: Reach) -> None:
        """Take the answer to `ask`. Several peers may answer the same request; their lists are joined."""
        if self._base is not None and ask.snapshot == self._base.cid:
            self.selection.take_list(ask.roots, listed)
        else:
            known = self._next[1] if self._next is not None and self._next[0] == ask.snapshot else Reach()
            self._next = ask.snapshot, known.joined(listed)

    def take_bodies(self, feed: bytes, bodies: Mapping[int, bytes]) -> int:
        """Take bodies that `bodies` named, and return how many were new. Each must match the hash in its header."""
        count = self._party.store.fill(feed, bodies)
        self._left.get(feed, set()).difference_update(bodies)
        self._came.update(self._party.store.block(feed, seq).item for seq in bodies)
        return count

    def step(self) -> None:
        """Process what has arrived: rebase onto a new epoch, select what belongs to the view, fold complete items."""
        self._epochs.step()
        with self._party.locked() as engine:
            if engine is not self._engine:
                self._begin(engine)
            while True:
                self._scan(engine)
                self._describe(engine)
                joined = self.selection.items - self._known
                self._known = self.selection.items
                self._note(engine, joined)
                if not joined and not self._fold_ready(engine):
                    return

    def _begin(self, engine: Engine) -> None:
        """Start on another snapshot. Its list is here, unless the party rebased without one."""
        base, listed = engine.base, None
        if base is not None and self._next is not None and self._next[0] == base.cid:
            listed = self._next[1]
        self.selection.begin(() if listed is None else (self.selection.view,), listed)
        self._engine, self._base, self._next = engine, base, None
        self._folded.clear()
        self._scanned.clear()
        self._left.clear()
        self._known = frozenset()
        self._hear(self.selection.ready)

    def _start(self, feed: bytes) -> int:
        base = 0 if self._base is None else self._base.length(feed)
        return max(base, self._party.store.bounds(feed).start)

    def _scan(self, engine: Engine) -> None:
        """Read new geneses and changes. A feed is read again from the first one whose body is not here."""
        held = {record.feed for record in self._party.store.feeds(self._party.key)}
        for feed in held.intersection(engine.delivery.lanes):
            start = max(self._start(feed), self._scanned.get(feed, 0))
            unread = None
            for span, _, _ in self._party.store.runs(feed, start):
                unread = self.selection.take(span, start) if unread is None else unread
                self._left.setdefault(feed, set()).update(self.selection.wants(span, start))
                self._scanned[feed] = span.end if unread is None else unread

    def _describe(self, engine: Engine) -> None:
        """Read the relations of items, in the snapshot and now."""
        for item in self.selection.undescribed():
            try:
                data = None if self._base is None else self._base.item(item)
            except MissingBlob:
                continue
            self.selection.describe(item, None if data is None else relations_in_snapshot(data), based=True)
        with self._hearing:
            changed, self._changed = self._changed, set()
        for item in changed & self.selection.ready:
            state = None if engine.scope.lacks(item) else engine.find(item)  # otherwise read when it is folded
            if state is not None:
                self.selection.describe(item, relations_of(state))

    def _note(self, engine: Engine, joined: frozenset[bytes]) -> None:
        """Request the bodies of messages to items that have joined: they were left out before."""
        for item in joined:
            for feed, seq in engine.scope.bodiless(item):
                self._left.setdefault(feed, set()).add(seq)

    def _fold_ready(self, engine: Engine) -> bool:
        """Fold items whose blobs and bodies are all here now. True if there was any."""
        items = self.selection.items
        dropped = self.selection.ready - items
        self.selection.ready -= dropped
        self._folded -= dropped  # it may join again
        came, self._came = self._came, set()
        engine.refold_all(dropped | (came & self._folded))
        ready = {item for item in items - self._folded - self.selection.undescribed() if self._is_here(engine, item)}
        self.selection.ready |= ready
        self._folded |= ready
        engine.refold_all(ready)
        self._hear(ready)
        return bool(ready)

    def _is_here(self, engine: Engine, item: bytes) -> bool:
        missing = self._base is not None and missing_on_paths(self._base.root.items, [item], self._base.blobs, 1)
        return not missing and not engine.scope.bodiless(item, counting=True)  # bodies of void messages may be erased

    # -- requests

    def ask(self) -> ReachRequest | None:
        """Return the next request to a whole peer, or None. Pass the answer to `take_list`."""
        root = self._next_epoch()
        if root is not None:
            known = self._next is not None and self._next[0] == root
            return (
                None
                if known or not self._party.blobs.has(root)
                else ReachRequest(root, frozenset({self.selection.view}))
            )
        roots = frozenset() if self._base is None else self.selection.roots()
        return ReachRequest(self._base.cid, roots) if self._base is not None and roots else None

    def blobs(self, limit: int = BATCH_COUNT_MAX) -> list[Cid]:
        """Return the next blobs to fetch: the paths to selected items, then, of a new epoch, its tree of feeds."""
        root = self._next_epoch()
        if root is None:
            return self._on_paths(self._base, self.selection.items, limit)
        if not self._party.blobs.has(root):
            return [root]
        if self._next is None or self._next[0] != root:
            return []  # the list must come first
        base = EpochBase.load(root, self._party.blobs, party=self._party.key)
        wanted = self._on_paths(base, self._next[1].items, limit)
        if wanted or base.root.feeds is None:
            return wanted
        return list(islice(tree.missing(base.root.feeds, base.blobs), limit))

    def _on_paths(self, base: EpochBase | None, items: Iterable[bytes], limit: int) -> list[Cid]:
        return [] if base is None else missing_on_paths(base.root.items, items, base.blobs, limit)

    def _next_epoch(self) -> Cid | None:
        """The snapshot of the last final epoch, if the party is not at it yet."""
        final = self._epochs.chain().final
        return Cid(final[-1].snapshot) if len(final) > self._epochs.number else None

    def bodies(self, limit: int = BODIES_COUNT_MAX) -> dict[bytes, list[int]]:
        """Return the bodies to fetch, by feed and seq. Pass the answer to `take_bodies`."""
        found: dict[bytes, list[int]] = {}
        for feed, seqs in self._left.items():
            some = sorted(seqs)[:limit]
            limit -= len(some)
            if some:
                found[feed] = some
        return found

    @property
    def complete(self) -> bool:
        """True if every item known to belong to the view is here and folded."""
        return self.selection.items <= self._folded and self.ask() is None
