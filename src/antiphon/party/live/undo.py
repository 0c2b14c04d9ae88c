"""Undo and redo of one's own changes. Others' later changes are left alone: only what still stands is taken back.

An undo is a change like any other: new messages that say the opposite. So it travels, it can be undone itself (that is
redo), and nothing of history is lost.
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
    """The changes that this device makes from now on, batch by batch. One for a party at a time.

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
        self._party.record_changes(None)
        self._done.clear()
        self._undone.clear()

    def _take(self, batch: Batch) -> None:
        self._into.append(batch.reversals)
        if self._into is self._done and not self._redoing:
            self._undone.clear()

    _redoing = False

    def undo(self) -> bool:
        """Take back the last change that still stands; False if there is none."""
        return self._step(self._done, self._undone)

    def redo(self) -> bool:
        """Do again what was undone last, unless something else was done since."""
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
                    source.pop()  # only now: what raised is still to be undone
                    if wrote:
                        return True
            finally:
                self._into = self._done
        return False


def revert(party: PartyProcessor, stamp: Stamp, item: bytes) -> bool:
    """Take back one message of this device's own, however long ago it was; False if nothing of it still stands."""
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
    """Write what undoes one message, as far as it still stands."""
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
        raise InvalidInput(f"item {reversal.item.hex()} was forked, which cannot be undone: others follow it already")


def _take_back_access(batch: Batch, reversal: Reversal, said: Access, log: AccessLog, before: set[bytes]) -> None:
    """Name again who was taken from the list, and take from it who was named; but not who was later by others."""
    others = (act.access for act in log.acts if act.stamp > reversal.stamp and act.stamp.feed != batch.feed)
    now, left = log.standing(), {name for access in others for name in (*access.grant, *access.revoke)}
    grant = before.intersection(said.revoke) - now - left
    revoke = now.intersection(said.grant) - before - left
    if grant or revoke:
        batch.guard(reversal.item, grant, revoke)
