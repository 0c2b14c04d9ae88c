"""`Results`: the items that a query found, as a sequence. Handles are created on demand; nothing else is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING, Any, cast, overload

from antiphon.api.items.handle import Handle
from antiphon.api.items.object import Object
from antiphon.core.errors import AntiphonError
from antiphon.core.generics import TypeVar
from antiphon.model.object.model import ObjectModel
from antiphon.query.query import Query
from antiphon.schema.definition import Schema

if TYPE_CHECKING:
    from antiphon.api.party import Party

Item = TypeVar("Item", bound=Handle, default=Handle, covariant=True)
Kind = TypeVar("Kind", bound=Handle)
Record = TypeVar("Record")
_SHOWN = 5  # items in the repr of results


class Results(Sequence[Item]):
    """The found items in the order of the query, at one moment. To see later changes, run the query again or subscribe.

    `query(type=Recipe)` gives `Results[Object[Recipe]]`: each handle then reads as a `Recipe`. `ids` are the ids of the
    items.
    """

    def __init__(self, party: Party, query: Query, ids: Iterable[bytes], record: type | None = None) -> None:
        self._party = party
        self._record = record
        self.query = query
        self.ids = tuple(ids)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._handle(item) for item in self.ids[index]]
        return self._handle(self.ids[index])

    def _handle(self, item: bytes) -> Item:
        found = self._party.handle(self._party.processor.item(item), self._record)
        return cast("Item", found)

    def __contains__(self, handle: object) -> bool:
        return isinstance(handle, Handle) and handle.party is self._party and bytes(handle.id) in self.ids

    def __eq__(self, other: object) -> bool:
        """True for results, or a list of handles, with the same items in the same order."""
        if isinstance(other, Results):
            return self._party.key == other._party.key and self.ids == other.ids
        return isinstance(other, list) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    @overload
    def of(self, kind: type[Kind]) -> list[Kind]: ...  # type: ignore[overload-overlap]
    @overload
    def of(self, kind: type[Record]) -> list[Object[Record]]: ...
    def of(self, kind: type[Any]) -> list[Any]:
        """Return the items of one kind, such as `List`, or the objects of a class with a schema, as a typed list."""
        if issubclass(kind, Handle):
            return [handle for handle in self if isinstance(handle, kind)]
        name, objects = Schema.of(kind).name, [handle for handle in self if handle.model == ObjectModel.name]
        return [self._party.handle(handle.item, kind) for handle in objects if handle.type == name]

    def first(self) -> Item | None:
        """Return the first item, or None if the query found nothing."""
        return self[0] if self.ids else None

    def __repr__(self) -> str:
        try:
            shown = [repr(handle) for handle in islice(self, _SHOWN)]
        except AntiphonError as error:
            shown = [f"({type(error).__name__})"]
        more = [f"… {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return f"<Results [{', '.join(shown + more)}]>"
