"""`Properties`: the dict methods that `Object` and the maps inside it share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.api.inputs import need_room
from antiphon.api.items.handle import plain, shown
from antiphon.model.value import Value

if TYPE_CHECKING:
    from antiphon.api.items.object import Object

Keys = tuple[str, ...]
Self = TypeVar("Self", bound="Properties")
_NOTHING = object()


class Properties(MutableMapping[str, Any]):
    """A mapping that reads and writes the keys at one path of an object."""

    __slots__ = ()

    @property
    @abstractmethod
    def place(self) -> tuple[Object[Any], Keys]:
        """The object, and the path in it."""

    def plain(self) -> dict[str, Value]:
        """Return all keys and values at one moment, as plain values."""
        owner, path = self.place
        found = owner.plain_at(path)
        if not isinstance(found, dict):
            raise KeyError(" → ".join(path))
        return found

    # -- reading

    def __getitem__(self, key: str) -> Any:
        owner, path = self.place
        return owner.at_path((*path, key))

    def __contains__(self, key: object) -> bool:
        owner, path = self.place
        return isinstance(key, str) and owner.has_path((*path, key))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the current keys. The object may be changed during the iteration."""
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())

    def items(self) -> ItemsView[str, Any]:
        """Return the current keys and values. The object may be changed during an iteration."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Return the current values. The object may be changed during an iteration."""
        return _Values(self)

    # -- writing

    def __setitem__(self, key: str, value: Any) -> None:
        owner, path = self.place
        owner.set((*path, key), value)

    def __delitem__(self, key: str) -> None:
        owner, path = self.place
        owner.unset((*path, key))

    def update(self, values: Any = (), /, **more: Any) -> None:
        """Write several keys in one message: others see all of them or none."""
        owner, path = self.place
        found = {**dict(values.items() if isinstance(values, Mapping) else values), **more}
        if found:
            written = {(*path, key) if path else key: plain(value, owner.party) for key, value in found.items()}
            owner.item.edit("update", written)

    def __ior__(self: Self, values: Any) -> Self:
        self.update(values)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value at a key, after writing `default` there if there was none."""
        owner, path = self.place
        written = plain(default, owner.party)
        with owner.party.processor.locked():
            if key not in self:
                owner.set((*path, key), written)
            found = owner.plain_at((*path, key))
        return owner.show(found, (*path, key))

    def pop(self, key: str, default: Any = _NOTHING) -> Any:
        """Delete a key and return its value. A map is returned as a dict."""
        with self.place[0].party.processor.locked():
            if key not in self and default is not _NOTHING:
                return default
            found = self._take(key)
        return shown(found, self.place[0].party, detached=True)

    def popitem(self) -> tuple[str, Any]:
        """Delete the first key and return it with its value. `KeyError` if there is none."""
        with self.place[0].party.processor.locked():
            key = next(iter(self), None)
            if key is None:
                raise KeyError("it is empty")
            found = self._take(key)
        return key, shown(found, self.place[0].party, detached=True)

    def _take(self, key: str) -> Value:
        owner, path = self.place
        found = owner.plain_at((*path, key))
        del self[key]
        return found

    def clear(self) -> None:
        """Delete all keys in one batch."""
        party = self.place[0].party
        with party.processor.locked():
            keys = list(self)
            need_room(party, len(keys), f"deleting {len(keys)} keys")
            if keys:
                with party.processor.batch():
                    for key in keys:
                        del self[key]


class _Items(ItemsView[str, Any]):
    """Keys and values of one moment; writes during an iteration do not affect it."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self._properties = properties

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        owner, path = self._properties.place
        return ((key, owner.show(value, (*path, key))) for key, value in self._properties.plain().items())


class _Values(ValuesView[Any]):
    """Values of one moment; writes during an iteration do not affect it."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self._properties = properties

    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in self._properties.items())
