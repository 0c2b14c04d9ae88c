"""`Results`: what a query found. A sequence of handles, each made when it is looked at; nothing else is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import TYPE_CHECKING, TypeVar, overload

from antiphon.api.items.handle import Handle
from antiphon.query.evaluate import Result
from antiphon.query.query import Query

if TYPE_CHECKING:
    from antiphon.api.party import Party

Kind = TypeVar("Kind", bound=Handle)


class Results(Sequence[Handle]):
    """The items of one moment, in order. Ask again for those of another."""

    def __init__(self, party: Party, query: Query, result: Result) -> None:
        self._party = party
        self.query = query
        self.ids = result.ids

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Handle: ...
    @overload
    def __getitem__(self, index: slice) -> list[Handle]: ...
    def __getitem__(self, index: int | slice) -> Handle | list[Handle]:
        if isinstance(index, slice):
            return [self._handle(item) for item in self.ids[index]]
        return self._handle(self.ids[index])

    def _handle(self, item: bytes) -> Handle:
        return self._party.handle(self._party.processor.item(item))

    def __contains__(self, handle: object) -> bool:
        return isinstance(handle, Handle) and handle.party is self._party and bytes(handle.id) in self.ids

    def __eq__(self, other: object) -> bool:
        """Results, and lists of handles, are equal that hold the same items in the same order."""
        if isinstance(other, Results):
            return self._party.key == other._party.key and self.ids == other.ids
        return isinstance(other, list) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Those that are of one kind, objects say; so that a type checker knows what they are."""
        return [handle for handle in self if isinstance(handle, kind)]

    def first(self) -> Handle | None:
        return self[0] if self.ids else None

    def __repr__(self) -> str:
        return f"<{len(self)} items>"
