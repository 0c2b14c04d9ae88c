"""Remembers the values that Python objects had when they were read, so that saving writes only changed fields.

An object is identified by its `id` as long as it lives. An instance of a class with slots cannot be observed by a weak
reference, so it is kept alive instead, together with at most a thousand others. A copy is another object, and is not
known.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from antiphon.model.value import Value

HELD_MAX = 1024

Values = dict[str, Value]


class Reading(NamedTuple):
    """The item, and its values when the object was read. `held` keeps an object alive so that its `id` stays unique."""

    item: bytes
    values: Values
    held: Any = None


_NONE = Reading(b"", {})


class Readings:
    """The readings of live objects, by object identity. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[int, Reading] = {}  # an entry goes when its object is collected, at any moment
        self._held: OrderedDict[int, Reading] = OrderedDict()

    def __len__(self) -> int:
        """The number of known objects."""
        return len(self._live) + len(self._held)

    def find(self, item: bytes, thing: Any) -> Values | None:
        """The values of an object when it was read from an item, or last saved to it; None if that is not known."""
        known = self._known(thing)
        return known.values if known is not None and known.item == item else None

    def put(self, item: bytes, thing: Any, values: Values) -> Callable[[], None]:
        """Remember that an object now has the values of its item. Returns a function that undoes this."""
        with self._lock:
            known = self._known(thing)
            self._keep(thing, Reading(item, values))

        def undo() -> None:
            with self._lock:
                self._keep(thing, known or _NONE)

        return undo

    def _known(self, thing: Any) -> Reading | None:
        return self._live.get(id(thing)) or self._held.get(id(thing))

    def _keep(self, thing: Any, reading: Reading) -> None:
        if id(thing) not in self._live:
            try:
                weakref.finalize(thing, self._live.pop, id(thing), None).atexit = False
            except TypeError:
                self._held[id(thing)] = reading._replace(held=thing)
                self._held.move_to_end(id(thing))
                if len(self._held) > HELD_MAX:
                    self._held.popitem(last=False)
                return
        self._live[id(thing)] = reading
