"""`Locked`: a party's engine in a `with` block, for one caller at a time. Every call comes by here: a plain class."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.core.errors import DamagedItems

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor


class Locked:
    """What changed inside is told when the outermost one leaves."""

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
                    if party._after:
                        after, party._after = party._after, []
                    if party._engine is not None and party._engine.broken:
                        party._reset()
        finally:
            party._lock.release()
            if events:  # also where an error came after them
                party.error = party.listeners.tell(events) or party.error
            for call in after:
                call()
