"""`ViewSelection`: what a device that follows one view wants of a party. It does no I/O: spans and ties in, wishes out.

>>> view, note = b"v" * 16, b"n" * 16
>>> selection = ViewSelection(view)
>>> selection.keeps(Kind.MUTATION, view), selection.keeps(Kind.MUTATION, note), selection.keeps(Kind.GENESIS, note)
(True, False, True)
>>> _ = selection.describe(view, Ties(embeds=frozenset({note})))
>>> selection.keeps(Kind.MUTATION, note)
True
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.feed.block import BodyState
from antiphon.feed.header import Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.model.relations import Ties, ties_said
from antiphon.party.views.outline import Outline, Reach

#: Bodies that are wanted whatever their items are: they say where items hang, and what is tied to what.
ALWAYS = (int(Kind.GENESIS), int(Kind.CHANGE))
_NOTHING = Ties()


class ViewSelection:
    """Follows one view from a snapshot on; `begin` starts anew on the next. What it follows grows in between."""

    def __init__(self, view: bytes) -> None:
        self.view = bytes(view)
        #: The items whose blobs and bodies are all here. The item store and the engine look at this very set.
        self.taken_up: set[bytes] = {bytes(SYSTEM_ITEM)}
        self.begin()

    def begin(self, roots: Iterable[bytes] = (), listed: Reach | None = None) -> None:
        """On a snapshot, with a list that a whole peer has made of what belongs to `roots` there."""
        self._outline = Outline()
        self._described: set[bytes] = set()
        self._begun: set[bytes] = set()  # items whose geneses are in the tail, so that the snapshot has none of them
        self._based: set[bytes] = set()  # items that the snapshot has
        self._answered: set[bytes] = set()
        self._listed = Reach()
        self._reach: Reach | None = None
        self._items: frozenset[bytes] | None = None
        self.take_list(roots, listed or Reach())

    # -- what comes in

    def take_list(self, roots: Iterable[bytes], listed: Reach) -> None:
        """What somebody says that belongs to these in the snapshot: looked at, and dropped where it does not belong."""
        self._listed = self._listed.joined(listed)  # one that is too long is as if it had not come
        self._answered.update(roots)
        self._items = None

    def describe(self, item: bytes, ties: Ties | None, *, based: bool = False) -> bool:
        """What an item says, in the snapshot or now; None: there is no such item in the snapshot. Was it new?"""
        if item not in self._described:
            self._described.add(item)
            self._items = None
        if based and ties is not None:
            self._based.add(item)
        return self._put(item, ties or _NOTHING)

    def take(self, span: Span, start: int = 0) -> int | None:
        """What geneses and changes of a range from seq `start` on say, whether they count or not.

        Returns the seq of the first whose body is not here: the range is to be handed in again when it has come.
        """
        low, unread = max(0, start - span.first), None
        heads, offsets = span.columns[["kind", "item"]].tolist(), span.body_offsets.tolist()
        for index in range(low, span.count):
            kind, item = heads[index]
            if kind not in ALWAYS:
                continue
            if kind == Kind.GENESIS:
                self._begun.add(item)
            if offsets[index] == offsets[index + 1]:
                unread = span.first + index if unread is None else unread
                continue
            said = ties_said(kind, span.bodies[offsets[index] + SALT_SIZE : offsets[index + 1]])
            if said is not None:
                self._put(item, said)
        return unread

    def _put(self, item: bytes, ties: Ties) -> bool:
        new = self._outline.put(item, ties)
        if new:
            self._reach = self._items = None
        return new

    # -- what is wanted

    @property
    def items(self) -> frozenset[bytes]:
        """What is followed: all that belongs to the view, and what is on a list and was not looked at yet."""
        if self._items is None:
            self._items = self.reach.items | (self._listed.items - self._described) | {bytes(SYSTEM_ITEM)}
        return self._items

    @property
    def reach(self) -> Reach:
        if self._reach is None:
            self._reach = self._outline.reach([self.view])
        return self._reach

    def keeps(self, kind: int, item: bytes) -> bool:
        """Whether the body of a message is wanted, by its header: what a sender is told to leave in."""
        return kind in ALWAYS or item in self.items

    def wants(self, span: Span, start: int = 0) -> list[int]:
        """The seqs, from `start` on, of bodies that are wanted and were left out."""
        if not span.states:
            return []
        heads, low = span.columns[["kind", "item"]].tolist(), max(0, start - span.first)
        return [
            span.first + index
            for index in range(low, span.count)
            if span.states[index] == BodyState.LEFT_OUT and self.keeps(*heads[index])
        ]

    def undescribed(self) -> frozenset[bytes]:
        """Items of which it is not known what the snapshot has of them: their paths are to be fetched."""
        return self.items - self._described

    def roots(self) -> frozenset[bytes]:
        """What a whole peer is to be asked about: the view, and members that were somewhere else in the snapshot."""
        if self.view in self._begun:
            return frozenset()
        joined = (self.reach.members & self._based) - self._listed.members
        wanted = {self.view, *joined} - self._answered
        return frozenset(self._answered | wanted) if wanted else frozenset()

    def strays(self) -> Iterator[bytes]:
        """What was on a list, and does not belong."""
        return iter(sorted((self._listed.items & self._described) - self.items))
