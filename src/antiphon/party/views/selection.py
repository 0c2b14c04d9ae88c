"""`ViewSelection`: the items and bodies of a party that a device needs to hold one view. It does no I/O.

>>> view, note = b"v" * 16, b"n" * 16
>>> selection = ViewSelection(view)
>>> selection.keeps(Kind.MUTATION, view), selection.keeps(Kind.MUTATION, note), selection.keeps(Kind.GENESIS, note)
(True, False, True)
>>> _ = selection.describe(view, Relations(embeds=frozenset({note})))
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
from antiphon.model.relations import Relations, relations_in_message
from antiphon.party.views.outline import Outline, Reach

#: Kinds whose bodies are always needed: they hold the parents and links of items.
ALWAYS = (int(Kind.GENESIS), int(Kind.CHANGE))
_NOTHING = Relations()


class ViewSelection:
    """Selects what belongs to one view, from a snapshot on. It only grows, until `begin` starts on another snapshot."""

    def __init__(self, view: bytes) -> None:
        self.view = bytes(view)
        #: The items whose blobs and bodies are all here. The item store and the engine share this set object.
        self.ready: set[bytes] = {bytes(SYSTEM_ITEM)}
        self.begin()

    def begin(self, roots: Iterable[bytes] = (), listed: Reach | None = None) -> None:
        """Start on a snapshot, with a whole peer's list of the items that belong to `roots` in it."""
        self._outline = Outline()
        self._described: set[bytes] = set()
        self._begun: set[bytes] = set()  # items created in the tail, so not in the snapshot
        self._based: set[bytes] = set()  # items that the snapshot has
        self._answered: set[bytes] = set()
        self._listed = Reach()
        self._reach: Reach | None = None
        self._items: frozenset[bytes] | None = None
        self.take_list(roots, listed or Reach())

    # -- input

    def take_list(self, roots: Iterable[bytes], listed: Reach) -> None:
        """Take a peer's list of the items that belong to `roots`. Each is checked later, and dropped if it is wrong."""
        self._listed = self._listed.joined(listed)  # a list that is too long raises, and changes nothing
        self._answered.update(roots)
        self._items = None

    def describe(self, item: bytes, ties: Relations | None, *, based: bool = False) -> bool:
        """Take an item's relations, in the snapshot (`based`) or now; None: not in the snapshot. True if any is new.

        Only the snapshot's count as its description: children that the item has there must be asked for.
        """
        if based and item not in self._described:
            self._described.add(item)
            self._items = None
        if based and ties is not None:
            self._based.add(item)
        return self._put(item, ties or _NOTHING)

    def take(self, span: Span, start: int = 0) -> int | None:
        """Read the relations in geneses and changes of a span, from seq `start` on, valid or not.

        Returns the seq of the first one whose body is not here, or None. Pass the span again once that body is here.
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
            said = relations_in_message(kind, span.bodies[offsets[index] + SALT_SIZE : offsets[index + 1]])
            if said is not None:
                self._put(item, said)
        return unread

    def _put(self, item: bytes, ties: Relations) -> bool:
        new = self._outline.put(item, ties)
        if new:
            self._reach = self._items = None
        return new

    # -- output

    @property
    def items(self) -> frozenset[bytes]:
        """The selected items: all that belong to the view, and listed ones that were not checked yet."""
        if self._items is None:
            self._items = self.reach.items | (self._listed.items - self._described) | {bytes(SYSTEM_ITEM)}
        return self._items

    @property
    def reach(self) -> Reach:
        """The items that belong to the view by the relations known so far."""
        if self._reach is None:
            self._reach = self._outline.reach([self.view])
        return self._reach

    def keeps(self, kind: int, item: bytes) -> bool:
        """True if the body of a message is needed, judged by its header. Senders leave out all other bodies."""
        return kind in ALWAYS or item in self.items

    def wants(self, span: Span, start: int = 0) -> list[int]:
        """Return the seqs, from `start` on, of needed bodies that were left out."""
        if not span.states:
            return []
        heads, low = span.columns[["kind", "item"]].tolist(), max(0, start - span.first)
        return [
            span.first + index
            for index in range(low, span.count)
            if span.states[index] == BodyState.LEFT_OUT and self.keeps(*heads[index])
        ]

    def undescribed(self) -> frozenset[bytes]:
        """Selected items whose snapshot state was not read yet: the paths to them must be fetched."""
        return self.items - self._described

    def roots(self) -> frozenset[bytes]:
        """Return the items to ask a whole peer about: the view, and members that hung elsewhere in the snapshot."""
        if self.view in self._begun:
            return frozenset()
        joined = (self.reach.members & self._based) - self._listed.members
        wanted = {self.view, *joined} - self._answered
        return frozenset(self._answered | wanted) if wanted else frozenset()

    def strays(self) -> Iterator[bytes]:
        """Return the items that were on a list and do not belong to the view."""
        return iter(sorted((self._listed.items & self._described) - self.items))
