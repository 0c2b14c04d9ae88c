"""`KanbanModel`: a board of columns and cards, composed of an object and two arrays.

>>> from antiphon.core import Stamp
>>> model, ann, card = KanbanModel(), b"a" * 32, Reference(b"the first card..")
>>> board = model.initial()
>>> model.apply(board, model.add_column(board, "todo", "To do", feed=ann), Stamp(2, ann, 0))
>>> model.apply(board, model.add_column(board, "done", "Done", feed=ann), Stamp(3, ann, 1))
>>> model.apply(board, model.add_card(board, "todo", card, feed=ann), Stamp(4, ann, 2))
>>> model.apply(board, model.move_card(board, card, "done", feed=ann), Stamp(5, ann, 3))
>>> [(column["title"], len(column["cards"])) for column in model.value(board)]
[('To do', 0), ('Done', 1)]

The object holds the title of each column and the column of each card; the arrays hold the order of the columns and of
all cards. So a card is always in exactly one column. If two people move it at once, one move wins, while an array of
cards for each column would have the card twice.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from examples.composed import Composed, pack

from antiphon import InvalidInput, Reference
from antiphon.core import ItemId
from antiphon.model import ArrayModel, ObjectModel
from antiphon.model.array.state import ArrayState
from antiphon.model.object.state import ObjectState


class Kanban(NamedTuple):
    """The states of the three parts."""

    about: ObjectState  # {"columns": {key: title}, "cards": {item id in hex: key of its column}}
    columns: ArrayState  # keys, in order
    cards: ArrayState  # references to the cards of all columns, in one order


_OBJECT, _ARRAY = ObjectModel(), ArrayModel()


class KanbanModel(Composed):
    """Columns with titles; the cards in them are items."""

    name = "example/kanban"
    commands = frozenset({"add_column", "add_card", "move_card", "rename"})
    parts = (_OBJECT, _ARRAY, _ARRAY)

    def initial(self) -> Kanban:
        return Kanban(*super().initial())

    def restore(self, data: bytes) -> Kanban:
        return Kanban(*super().restore(data))

    # -- reading: peers may write anything into the parts, so entries that do not fit together are left out

    def titles(self, state: Kanban) -> dict[str, str]:
        """Return the titles of the columns by key, in order."""
        titles = self._about(state, "columns")
        keys = [key for key in _ARRAY.value(state.columns) if isinstance(key, str)]
        return {key: titles[key] for key in keys if isinstance(titles.get(key), str)}

    def places(self, state: Kanban) -> list[tuple[int, Reference, str]]:
        """Return the cards in order: the index in the array of all cards, the card, and the key of its column."""
        known, keys = self._about(state, "cards"), self.titles(state)
        found: dict[Reference, tuple[int, Reference, str]] = {}
        for index, card in enumerate(_ARRAY.value(state.cards)):
            key = known.get(card.item.hex()) if isinstance(card, Reference) and not card.party else None
            if isinstance(key, str) and key in keys:
                found.setdefault(card, (index, card, key))
        return list(found.values())

    def _about(self, state: Kanban, what: str) -> dict[str, Any]:
        found = _OBJECT.value(state.about).get(what)
        return found if isinstance(found, dict) else {}

    def value(self, state: Kanban) -> list[dict[str, Any]]:
        places = self.places(state)
        return [
            {"key": key, "title": title, "cards": [card for _, card, column in places if column == key]}
            for key, title in self.titles(state).items()
        ]

    # -- commands

    def add_column(self, state: Kanban, key: str, title: str, *, feed: bytes = b"") -> bytes:
        """Add a column at the end. Two people who add the same key at once add one column."""
        if key in self.titles(state):
            raise InvalidInput(f"there is a column {key!r} already")
        return pack(
            [
                _OBJECT.set(state.about, ("columns", key), title, feed=feed),
                _ARRAY.append(state.columns, key, feed=feed),
                b"",
            ]
        )

    def rename(self, state: Kanban, key: str, title: str, *, feed: bytes = b"") -> bytes:
        self._check_column(state, key)
        return pack([_OBJECT.set(state.about, ("columns", key), title, feed=feed), b"", b""])

    def add_card(
        self, state: Kanban, key: str, card: Reference | ItemId, index: int | None = None, *, feed: bytes = b""
    ) -> bytes:
        """Add a card to a column, at its end or in front of the card at `index`."""
        self._check_column(state, key)
        card = _reference(card)
        if any(known == card for _, known, _ in self.places(state)):
            raise InvalidInput(f"card {card} is on the board already; move it")
        place = self._place(state, key, index)
        return pack([self._into(state, card, key, feed), b"", _ARRAY.insert(state.cards, place, [card], feed=feed)])

    def move_card(
        self, state: Kanban, card: Reference | ItemId, key: str, index: int | None = None, *, feed: bytes = b""
    ) -> bytes:
        """Move a card to a place in a column."""
        self._check_column(state, key)
        card = _reference(card)
        for source, known, _ in self.places(state):
            if known == card:
                target = self._place(state, key, index, without=source)
                moved = _ARRAY.move(state.cards, source, target, feed=feed)
                return pack([self._into(state, card, key, feed), b"", moved])
        raise InvalidInput(f"card {card} is not on the board")

    def _into(self, state: Kanban, card: Reference, key: str, feed: bytes) -> bytes:
        return _OBJECT.set(state.about, ("cards", card.item.hex()), key, feed=feed)

    def _place(self, state: Kanban, key: str, index: int | None, without: int | None = None) -> int:
        """Return the index in the array of all cards of place `index` of a column, with one card taken out."""
        there = [at for at, _, column in self.places(state) if column == key and at != without]
        if index is not None and not 0 <= index <= len(there):
            raise InvalidInput(f"the column {key!r} has the places 0 to {len(there)}, not {index}")
        end = _ARRAY.length(state.cards)
        at = end if index is None or index == len(there) else there[index]
        return at - (without is not None and without < at)

    def _check_column(self, state: Kanban, key: str) -> None:
        titles = self.titles(state)
        if key not in titles:
            raise InvalidInput(f"there is no column {key!r}; there are {', '.join(titles) or 'none'}")

    # -- rehearsal

    def rehearse(self, state: Kanban, chance: random.Random, feed: bytes) -> bytes:
        keys, cards = list(self.titles(state)), [card for _, card, _ in self.places(state)]
        free = [key for key in "abc" if key not in keys]
        if not keys or (free and chance.random() < 0.3):
            return self.add_column(state, chance.choice(free), f"column {chance.randrange(9)}", feed=feed)
        act = chance.choice(["add", "add", "move", "move", "rename"])
        if act == "rename":
            return self.rename(state, chance.choice(keys), f"column {chance.randrange(9)}", feed=feed)
        if act == "move" and cards:
            return self.move_card(state, chance.choice(cards), chance.choice(keys), feed=feed)
        return self.add_card(state, chance.choice(keys), Reference(chance.randbytes(16)), feed=feed)


def _reference(card: Reference | ItemId) -> Reference:
    found = card if isinstance(card, Reference) else Reference(bytes(card))
    if found.party:
        raise InvalidInput(f"card {found} is of another party; a kanban holds items of its own")
    return found
