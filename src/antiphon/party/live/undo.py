"""Undo and redo of this device's own changes. Later changes of others stay: only values still in effect are reverted.

An undo writes new messages with the opposite effect. So it is replicated, it can be undone itself (that is redo), and
no history is lost.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from antiphon.core.errors import InvalidInput, UnknownItem
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import EVERYONE, Access, AccessLog
from antiphon.model.fold import META, ItemState
from antiphon.model.message import Change, content, read_change
from antiphon.party.live.batch import Batch, Reversal, capture
from antiphon.party.live.history import before

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor

DEPTH_MAX = 1000


class UndoStack:
    """The changes that this device makes from now on, batch by batch. A party has at most one undo stack at a time.

    >>> from antiphon.core.keys import KeyPair
    >>> from antiphon.feed.store.feed_store import FeedStore
    >>> from antiphon.party.engine.authority import OpenAuthority
    >>> from antiphon.party.live.processor import PartyProcessor
    >>> store, key = FeedStore.open("feeds"), KeyPair.from_seed(b"p" * 32).key
    >>> party = PartyProcessor(key, store, OpenAuthority(store, key, KeyPair.from_seed(b"f" * 32)))
    >>> undo, text = UndoStack(party), party.create("antiphon/text")
    >>> _ = text.edit("insert", 0, "hello")
    >>> undo.undo(), text.value
    (True, '')
    >>> undo.redo(), text.value
    (True, 'hello')
    >>> party.close(); store.close()
    """

    def __init__(self, party: PartyProcessor, depth_max: int = DEPTH_MAX) -> None:
        self._party = party
        self._done: deque[list[Reversal]] = deque(maxlen=depth_max)
        self._undone: deque[list[Reversal]] = deque(maxlen=depth_max)
        self._into = self._done
        party.record_changes(self._take)

    def close(self) -> None:
        """Stop recording, and forget all recorded changes."""
        self._party.record_changes(None)
        self._done.clear()
        self._undone.clear()

    def _take(self, batch: Batch) -> None:
        self._into.append(batch.reversals)
        if self._into is self._done and not self._redoing:
            self._undone.clear()

    _redoing = False

    def undo(self) -> bool:
        """Revert the last change that is still in effect. False if there is none."""
        return self._step(self._done, self._undone)

    def redo(self) -> bool:
        """Revert the last undo. False if there is none, or if another change was made since."""
        self._redoing = True
        try:
            return self._step(self._undone, self._done)
        finally:
            self._redoing = False

    def _step(self, source: deque[list[Reversal]], target: deque[list[Reversal]]) -> bool:
        with self._party.locked():
            self._into = target
            try:
                while source:
                    with self._party.batch() as batch:
                        for reversal in reversed(source[-1]):
                            take_back(self._party, batch, reversal)
                        wrote = len(batch) > 0
                    source.pop()  # only now: if the batch raised, the change can still be undone
                    if wrote:
                        return True
            finally:
                self._into = self._done
        return False


def revert(party: PartyProcessor, stamp: Stamp, item: bytes) -> bool:
    """Revert one message of this device, however old. False if nothing of it is still in effect."""
    with party.batch() as batch:
        if stamp.feed != batch.feed:
            raise InvalidInput(f"the message {stamp} is not this device's own; only its writer can take it back")
        notes = party.engine.history(item)
        note = next((note for note in notes if note.stamp == stamp), None)
        if note is None or note.message is None:
            raise UnknownItem(f"item {item.hex()}: there is no message {stamp}, or its body is not here")
        earlier, based = [other for other in notes if other.stamp < stamp], party.engine.is_based(note)
        if based and [*earlier, note][0].kind != Kind.GENESIS:
            raise InvalidInput(
                f"item {item.hex()}: message {stamp} is part of an epoch, and what was there before it is pruned; "
                "change the item as it is now"
            )
        was = before(party, item, earlier, whole=based)
        captured = capture(was, note.kind, note.message, stamp)
        take_back(party, batch, Reversal(item, note.kind, note.message, stamp, captured))
        return len(batch) > 0


def take_back(party: PartyProcessor, batch: Batch, reversal: Reversal) -> None:
    """Write the messages that revert one message, as far as it is still in effect."""
    entry = party.engine.entry(reversal.item)
    item, kind, stamp = entry.item, reversal.kind, reversal.stamp
    assert item is not None
    if kind == Kind.MUTATION and item.model is not None:
        mutation = content(kind, reversal.message)
        for opposite in item.model.revert(item.state, reversal.captured, mutation, stamp, batch.feed):
            state = entry.item.state if entry.item is not None else None
            batch.mutate(reversal.item, item.model.in_batch(state, opposite, batch.feed, batch.lamport))
    elif kind == Kind.METADATA and item.meta is not None:
        mutation = content(kind, reversal.message)
        for opposite in META.revert(item.meta, reversal.captured, mutation, stamp, batch.feed):
            batch.describe(reversal.item, opposite)
    elif kind == Kind.GENESIS:
        if not item.is_deleted:
            batch.change(reversal.item, Change(deleted=True))
    elif kind == Kind.CHANGE:
        _take_back_change(batch, reversal, item)


def _take_back_change(batch: Batch, reversal: Reversal, item: ItemState) -> None:
    change, stamp = read_change(reversal.message), reversal.stamp
    parent, was_deleted, named = reversal.captured or (b"", False, None)
    if change.deleted is not None and item.deleted == stamp and change.deleted != was_deleted:
        batch.change(reversal.item, Change(deleted=was_deleted))
    if change.parent is not None and item.parents and item.parents[-1][0] == stamp and change.parent != parent:
        batch.change(reversal.item, Change(parent=parent))
    if change.access is not None and item.access is not None:
        before = {EVERYONE, item.access.creator.identity} if named is None else named
        _take_back_access(batch, reversal, change.access, item.access, before)
    if change.forked_to is not None:
        raise InvalidInput(f"item {reversal.item.hex()} was forked, which cannot be undone: others use it already")


def _take_back_access(batch: Batch, reversal: Reversal, said: Access, log: AccessLog, before: set[bytes]) -> None:
    """Revert grants and revocations of an access change, except for names that others have changed since."""
    others = (act.access for act in log.acts if act.stamp > reversal.stamp and act.stamp.feed != batch.feed)
    now, left = log.standing(), {name for access in others for name in (*access.grant, *access.revoke)}
    grant = before.intersection(said.revoke) - now - left
    revoke = now.intersection(said.grant) - before - left
    if grant or revoke:
        batch.guard(reversal.item, grant, revoke)
