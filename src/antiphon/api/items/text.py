"""`Text`: an item with text that several people can edit at once. Indices are those of Python's strings.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     note = store.create_party().text("Hello world")
...     note.insert(5, ", dear")
...     note.mark(0, 5, "bold", True)
...     str(note), note.spans()[0][1]
('Hello, dear world', {'bold': True})
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antiphon.api.inputs import need_handle
from antiphon.api.items.handle import Handle, shown
from antiphon.model.text.model import Span


class Text(Handle):
    """Text with marks (formatting) and embedded items. `str` returns the characters."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(self.item.value)

    def __len__(self) -> int:
        return int(self.item.read(lambda model, state: model.length(state)))

    def __getitem__(self, index: int | slice) -> str:
        return str(self)[index]

    def __contains__(self, text: str) -> bool:
        return text in str(self)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the current characters."""
        return iter(str(self))

    def insert(self, index: int, text: str) -> None:
        """Insert text before a character, or at the end. A negative index counts from the end."""
        if text:
            with self.party.processor.batch():
                self.item.edit("insert", self._place(index), text)

    def append(self, text: str) -> None:
        """Insert text at the end."""
        with self.party.processor.batch():
            self.insert(len(self), text)

    def delete_range(self, start: int, stop: int) -> None:
        """Delete the characters from `start` to before `stop`. Negative indices count from the end."""
        self.replace(start, stop, "")

    def replace(self, start: int, stop: int, text: str) -> None:
        """Replace the characters from `start` to before `stop` with other text. An empty range inserts at `start`."""
        with self.party.processor.batch():
            first, last, _ = slice(start, stop).indices(len(self))
            if last <= first:
                self.insert(first, text)
            elif text:
                self.item.edit("replace", first, last - first, text)
            else:
                self.item.edit("delete", first, last - first)

    def mark(self, start: int, stop: int, name: str, value: Any) -> None:
        """Set a mark, such as `"bold"`, on the characters from `start` to before `stop`.

        Text that is typed inside the range, or at its end, gets the mark, too. `spans` lists the marks.
        """
        with self.party.processor.batch():
            self.item.edit("mark", self._place(start), self._place(stop), name, value)

    def unmark(self, start: int, stop: int, name: str) -> None:
        """Remove a mark from the characters from `start` to before `stop`."""
        with self.party.processor.batch():
            self.item.edit("unmark", self._place(start), self._place(stop), name)

    def insert_item(self, index: int, item: Handle) -> None:
        """Embed another item at an index in the text. There it counts as one character (U+FFFC in `str`).

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     note, image = party.text("See: "), party.file(b"...", name="cat.png")
        ...     note.insert_item(5, image)
        ...     [(index, item.name) for index, item in note.items()]
        [(5, 'cat.png')]
        """
        need_handle(item, "the argument of `insert_item`")
        with self.party.processor.batch():
            if bytes(item.id) not in self.item.embedded:
                self.embed(item)
            self.item.edit("embed", self._place(index), bytes(item.id))

    def _place(self, index: int) -> int:
        return max(0, index + len(self)) if index < 0 else index

    def items(self) -> list[tuple[int, Handle]]:
        """List the items in the text, each with its index."""
        found = self.item.read(lambda model, state: model.embeds(state))
        return [(index, self.party.item(bytes(item))) for index, item in found if self.party.has(bytes(item))]

    def spans(self) -> list[tuple[Any, dict[str, Any]]]:
        """List the text in pieces with equal marks: (piece, marks). An embedded item is a piece of its own."""
        found: list[Span] = self.item.read(lambda model, state: model.spans(state))
        return [(shown(piece, self.party), marks) for piece, marks in found]

    def cursor(self, index: int, *, after: bool = False) -> bytes:
        """Return a cursor: a position that moves with the text around it. `index_of` returns its current index.

        The cursor is attached to the character at the index; with `after`, to the character in front of the index.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     note = store.create_party().text("Hello world")
        ...     cursor = note.cursor(6)
        ...     note.insert(0, "Oh. ")
        ...     note.index_of(cursor)
        10
        """
        found: bytes = self.item.read(lambda model, state: model.cursor(state, index, after=after))
        return found

    def index_of(self, cursor: bytes) -> int:
        """Return the current index of a cursor."""
        return int(self.item.read(lambda model, state: model.index_of(state, cursor)))
