"""What Python objects held when they were read from items, so that saving one writes what was changed, and no more.

An object is known as long as it lives; one of a class with slots cannot be watched, and is held instead, with a
thousand others at most. A copy (`dataclasses.replace`, `copy.copy`, `model_copy`) is taken for one of what was
read of the item last.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from antiphon.model.value import Value

HELD_MAX = 1024
LAST_MAX = 1024

Values = dict[str, Value]


class Reading(NamedTuple):
    """Of which item, and what was there; `held` is the object itself, if it must be kept so that its `id` stays its."""

    item: bytes
    values: Values
    held: Any = None


_NONE = Reading(b"", {})


class Readings:
    """Bounded but for objects that live. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[int, Reading] = {}  # by `id`; taken out when the object is collected, at any moment
        self._held: OrderedDict[int, Reading] = OrderedDict()
        self._last: OrderedDict[tuple[bytes, type], Values] = OrderedDict()

    def __len__(self) -> int:
        """How many objects are known."""
        return len(self._live) + len(self._held)

    def find(self, item: bytes, thing: Any) -> Values | None:
        """What an object held when it was read from an item, or saved to it; None if that is not known."""
        known = self._known(thing)
        return self._last.get((item, type(thing))) if known is None or known.item != item else known.values

    def put(self, item: bytes, thing: Any, values: Values) -> Callable[[], None]:
        """An object holds now what its item does; returns how to take that back."""
        key = (item, type(thing))
        with self._lock:
            known, last = self._known(thing), self._last.get(key)
            self._keep(thing, Reading(item, values))
            _push(self._last, key, values, LAST_MAX)

        def undo() -> None:
            with self._lock:
                self._keep(thing, known or _NONE)
                self._last.pop(key, None)
                if last is not None:
                    _push(self._last, key, last, LAST_MAX)

        return undo

    def _known(self, thing: Any) -> Reading | None:
        return self._live.get(id(thing)) or self._held.get(id(thing))

    def _keep(self, thing: Any, reading: Reading) -> None:
        if id(thing) not in self._live:
            try:
                weakref.finalize(thing, self._live.pop, id(thing), None).atexit = False
            except TypeError:
                _push(self._held, id(thing), reading._replace(held=thing), HELD_MAX)
                return
        self._live[id(thing)] = reading


def _push(into: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    into[key] = value
    into.move_to_end(key)
    if len(into) > most:
        into.popitem(last=False)
