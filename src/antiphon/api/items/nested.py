"""Lists and dicts inside the value of an item. They can be read, but not changed in place.

The item stores a value, not the Python list, so a change in place would never reach other devices. Every changing
method raises an error that says what to do instead. A copy of such a list is an ordinary list.

>>> tags = NestedList(["a", "b"])
>>> tags == ["a", "b"], tags + ["c"], list(tags)
(True, ['a', 'b', 'c'], ['a', 'b'])
>>> tags.append("c")  # doctest: +ELLIPSIS
Traceback (most recent call last):
...
antiphon.core.errors.InvalidInput: this list is a value inside an item and cannot be changed in place; ...
"""

from __future__ import annotations

from typing import Any, NoReturn

from antiphon.core.errors import InvalidInput


def _refuse(self: list[Any] | dict[str, Any], *_: Any, **__: Any) -> NoReturn:
    kind = "list" if isinstance(self, list) else "dict"
    raise InvalidInput(
        f"this {kind} is a value inside an item and cannot be changed in place; write a changed copy back, as in "
        f'`item["key"] = changed`, use `add` and `discard`, or make a List or Object of its own and refer to it'
    )


class NestedList(list[Any]):
    """A list inside an item. `item["tags"] += ["new"]` writes a longer one; `+=` on a variable makes a plain list."""

    __slots__ = ()
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = _refuse

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]
        return [*self, *values]

    def __imul__(self, times: Any) -> Any:  # type: ignore[misc]
        return list(self) * times

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)


class NestedDict(dict[str, Any]):
    """A dict inside a list of an item. (A dict at a key of an object is a `Map`, which writes through.)"""

    __slots__ = ()
    update = pop = popitem = clear = setdefault = _refuse
    __setitem__ = __delitem__ = _refuse

    def __ior__(self, values: Any) -> Any:  # type: ignore[misc]
        return {**self, **values}

    def __reduce_ex__(self, _: Any) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)
