"""`PartialParty`: a party of which one view is followed here. It says what to fetch; whoever has a network fetches it.

```text
 step ─▶ asks      (snapshot, roots)   ─▶ a whole peer's ViewSource.belonging ─▶ take_list
      ─▶ blobs     CIDs                ─▶ anybody's blobs                     ─▶ party.blobs.put_all
      ─▶ bodies    feed → seqs         ─▶ ViewSource.bodies                   ─▶ store.fill
         keeps     kinds and items     ─▶ what senders of new blocks leave in ─▶ store.ingest        … step again
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
from antiphon.model.relations import ties_in, ties_of
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
    """A question to a peer that has a snapshot whole: what belongs to these items in it?"""

    snapshot: Cid
    roots: frozenset[bytes]


def open_items(selection: ViewSelection, path: Path | None, party: bytes) -> Callable[[], ItemStore]:
    """How a `PartyProcessor` opens the item store of a party of which one view is followed: hand it in as `open_items`.

    What was taken up before a restart is read and followed on, also where nobody is there to ask.
    """

    def opened() -> ItemStore:
        store = ItemStore(path, party)
        selection.taken_up.update(store.ids())
        store.follows = selection.taken_up
        return store

    return opened


class PartialParty:
    """Follows a view. Call `step` after anything came; then fetch what `ask`, `blobs` and `bodies` name."""

    def __init__(self, party: PartyProcessor, epochs: Epochs, selection: ViewSelection) -> None:
        self._party = party
        self._epochs = epochs
        self.selection = selection
        self._engine = party.engine
        self._base = self._engine.base
        self._folded = set(selection.taken_up)  # on this base, so that they have rows
        self._next: tuple[Cid, Reach] | None = None  # the list for an epoch that is not stood on yet
        self._scanned: dict[bytes, int] = {}  # of each feed, up to where its geneses and changes were read
        self._changed: set[bytes] = set(selection.taken_up)
        self._left: dict[bytes, set[int]] = {}  # bodies that are wanted and were left out
        self._came: set[bytes] = set()  # items of bodies that came since
        self._known: frozenset[bytes] = frozenset()
        self._hearing = threading.Lock()
        party.listen(self._hear)

    def _hear(self, items: Iterable[bytes]) -> None:
        with self._hearing:
            self._changed.update(items)

    # -- what came

    def take_list(self, ask: ReachRequest, listed: Reach) -> None:
        """The answer to a question; several peers may answer the same one."""
        if self._base is not None and ask.snapshot == self._base.cid:
            self.selection.take_list(ask.roots, listed)
        else:
            known = self._next[1] if self._next is not None and self._next[0] == ask.snapshot else Reach()
            self._next = ask.snapshot, known.joined(listed)

    def take_bodies(self, feed: bytes, bodies: Mapping[int, bytes]) -> int:
        """Bodies that were asked for; returns how many were new. One that is not what its header says is refused."""
        count = self._party.store.fill(feed, bodies)
        self._left.get(feed, set()).difference_update(bodies)
        self._came.update(self._party.store.block(feed, seq).item for seq in bodies)
        return count

    def step(self) -> None:
        """Take in what came: stand on a new epoch, see what belongs to the view now, take up what is all here."""
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
                if not joined and not self._take_up(engine):
                    return

    def _begin(self, engine: Engine) -> None:
        """On another snapshot: the list for it is here, unless the epoch was stood on without being asked for."""
        base, listed = engine.base, None
        if base is not None and self._next is not None and self._next[0] == base.cid:
            listed = self._next[1]
        self.selection.begin(() if listed is None else (self.selection.view,), listed)
        self._engine, self._base, self._next = engine, base, None
        self._folded.clear()
        self._scanned.clear()
        self._left.clear()
        self._known = frozenset()
        self._hear(self.selection.taken_up)

    def _start(self, feed: bytes) -> int:
        base = 0 if self._base is None else self._base.length(feed)
        return max(base, self._party.store.bounds(feed).start)

    def _scan(self, engine: Engine) -> None:
        """Read the geneses and changes that are new, again from where the body of one has not come yet."""
        held = {record.feed for record in self._party.store.feeds(self._party.key)}
        for feed in held.intersection(engine.delivery.lanes):
            start = max(self._start(feed), self._scanned.get(feed, 0))
            unread = None
            for span, _, _ in self._party.store.runs(feed, start):
                unread = self.selection.take(span, start) if unread is None else unread
                self._left.setdefault(feed, set()).update(self.selection.wants(span, start))
                self._scanned[feed] = span.end if unread is None else unread

    def _describe(self, engine: Engine) -> None:
        """See what items say: in the snapshot, and now."""
        for item in self.selection.undescribed():
            try:
                data = None if self._base is None else self._base.item(item)
            except MissingBlob:
                continue
            self.selection.describe(item, None if data is None else ties_in(data), based=True)
        with self._hearing:
            changed, self._changed = self._changed, set()
        for item in changed & self.selection.taken_up:
            state = None if engine.scope.lacks(item) else engine.find(item)  # else it is when it is folded
            if state is not None:
                self.selection.describe(item, ties_of(state))

    def _note(self, engine: Engine, joined: frozenset[bytes]) -> None:
        """Messages to what has joined passed before, and their bodies may have been left out."""
        for item in joined:
            for feed, seq in engine.scope.bodiless(item):
                self._left.setdefault(feed, set()).add(seq)

    def _take_up(self, engine: Engine) -> bool:
        """Fold items of which all is here now; was there any?"""
        items = self.selection.items
        dropped = self.selection.taken_up - items
        self.selection.taken_up -= dropped
        self._folded -= dropped  # it may join again
        came, self._came = self._came, set()
        engine.refold_all(dropped | (came & self._folded))
        ready = {item for item in items - self._folded - self.selection.undescribed() if self._is_here(engine, item)}
        self.selection.taken_up |= ready
        self._folded |= ready
        engine.refold_all(ready)
        self._hear(ready)
        return bool(ready)

    def _is_here(self, engine: Engine, item: bytes) -> bool:
        missing = self._base is not None and missing_on_paths(self._base.root.items, [item], self._base.blobs, 1)
        return not missing and not engine.scope.bodiless(item, counting=True)  # those of void ones may be erased

    # -- what to fetch

    def ask(self) -> ReachRequest | None:
        """What to ask of a peer that has everything; the answer goes to `take_list`."""
        root = self._following()
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
        """The next blobs to fetch: the paths to what is followed; of a new epoch, after these, its feeds too."""
        root = self._following()
        if root is None:
            return self._on_paths(self._base, self.selection.items, limit)
        if not self._party.blobs.has(root):
            return [root]
        if self._next is None or self._next[0] != root:
            return []  # the list first
        base = EpochBase.load(root, self._party.blobs, party=self._party.key)
        wanted = self._on_paths(base, self._next[1].items, limit)
        if wanted or base.root.feeds is None:
            return wanted
        return list(islice(tree.missing(base.root.feeds, base.blobs), limit))

    def _on_paths(self, base: EpochBase | None, items: Iterable[bytes], limit: int) -> list[Cid]:
        return [] if base is None else missing_on_paths(base.root.items, items, base.blobs, limit)

    def _following(self) -> Cid | None:
        """The snapshot of the last final epoch, if that is not stood on yet."""
        final = self._epochs.chain().final
        return Cid(final[-1].snapshot) if len(final) > self._epochs.number else None

    def bodies(self, limit: int = BODIES_COUNT_MAX) -> dict[bytes, list[int]]:
        """The bodies to fetch, by feed and seq; the answer goes to `take_bodies`."""
        found: dict[bytes, list[int]] = {}
        for feed, seqs in self._left.items():
            some = sorted(seqs)[:limit]
            limit -= len(some)
            if some:
                found[feed] = some
        return found

    @property
    def complete(self) -> bool:
        """Whether all that is followed, as far as it is known what that is, is here and shown."""
        return self.selection.items <= self._folded and self.ask() is None
