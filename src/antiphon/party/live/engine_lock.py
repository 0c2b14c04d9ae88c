"""`Locked`: the lock around the engine of a party."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.core.errors import DamagedItems
from antiphon.party.engine.engine import Engine

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


class Locked:
    """The engine of a party in a `with` block, for one caller at a time. Made once; every call of a party enters it.

    Listeners are called when the outermost block of a thread ends. A damaged item store is rebuilt there, and an engine
    that failed half-way is dropped.
    """

    __slots__ = ("_party",)

    def __init__(self, party: PartyProcessor) -> None:
        self._party = party

    def __enter__(self) -> Engine:
        party = self._party
        if not party._lock.acquire(blocking=False):
            party.waited_for = True
            party._lock.acquire()
            party.let_in.set()
        party._depth += 1
        party._owner = threading.get_ident()
        try:
            if party.failed and party._engine is None:
                party.resume()  # the error may be over, such as a full disk
            if party._depth == 1 and party._engine is not None and (found := party._engine.saved.damage_found()):
                party._damaged = found
                party._rebuild()
            return party.engine
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        party = self._party
        events: frozenset[bytes] = frozenset()
        after: list[Callable[[], None]] = []
        try:
            try:
                if isinstance(error, DamagedItems):
                    party._damaged = str(error)
                if party._damaged and party._depth == 1:
                    party._rebuild()
            finally:
                party._depth -= 1
                if party._depth == 0:
                    party._owner = 0
                    if party._events:
                        events = frozenset(party._events)
                        party._events.clear()
                        party.listeners.note(events)
                    if party._after:
                        after, party._after = party._after, []
                    if party._engine is not None and party._engine.broken:
                        party._reset(party._engine.broken)
        finally:
            party._lock.release()
            if events:  # also where an error came after them
                party.error = party.listeners.tell(events) or party.error
            for call in after:
                call()
