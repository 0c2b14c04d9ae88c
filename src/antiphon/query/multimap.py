"""`Multimap`: a map of keys to sets, in little memory where most keys have one value.

A Python set for each key would take four times the memory of the value in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held", bound=Hashable)


class Multimap(Generic[Key, Held]):
    """A map of each key to its values.

    >>> owners = Multimap()
    >>> owners.add("a", 1), owners.add("a", 2), owners.add("a", 2), owners.discard("a", 1)
    (None, None, None, None)
    >>> list(owners.get("a")), list(owners.get("b"))
    ([2], [])
    """

    __slots__ = ("_many", "_one")

    def __init__(self) -> None:
        self._one: dict[Key, Held] = {}
        self._many: dict[Key, set[Held]] = {}

    def add(self, key: Key, held: Held) -> None:
        many = self._many.get(key)
        if many is not None:
            many.add(held)
        elif key in self._one and self._one[key] != held:
            self._many[key] = {self._one.pop(key), held}
        else:
            self._one[key] = held

    def discard(self, key: Key, held: Held) -> None:
        many = self._many.get(key)
        if many is None:
            if self._one.get(key) == held:
                del self._one[key]
            return
        many.discard(held)
        if len(many) == 1:
            self._one[key] = self._many.pop(key).pop()

    def get(self, key: Key) -> Iterable[Held]:
        if key in self._one:
            return (self._one[key],)
        return self._many.get(key, ())

    def __iter__(self) -> Iterator[Key]:
        yield from self._one
        yield from self._many

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._one) + len(self._many)
