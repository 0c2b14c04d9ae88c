"""`Pending`: the delta that an observer has not received yet. Later deltas are merged into it: there is one at most."""

from __future__ import annotations

from dataclasses import replace

from antiphon.query.delta import Delta
from antiphon.query.live.matcher import StandingQuery


class Pending:
    """The pending delta of one observer. The first one adds the whole result. Not thread-safe."""

    __slots__ = ("_added", "_all", "_changed", "_one", "_removed")

    def __init__(self) -> None:
        self._all = True
        self._one: Delta | None = None
        self._forget()

    def _forget(self) -> None:
        self._added: set[bytes] = set()
        self._changed: set[bytes] = set()
        self._removed: set[bytes] = set()

    def put(self, delta: Delta) -> None:
        """Merge a delta."""
        if self._all:
            return
        if (self._one is None and not (self._added or self._changed or self._removed)) or delta.aggregate is not None:
            self._one = delta
        else:
            if self._one is not None:
                self._merge(self._one)
                self._one = None
            self._merge(delta)

    def _merge(self, later: Delta) -> None:
        for item in later.removed:
            self._changed.discard(item)
            if item in self._added:
                self._added.remove(item)
            else:
                self._removed.add(item)
        for item in later.added:
            if item in self._removed:  # it was in the result before the pending deltas, and is now
                self._removed.remove(item)
                self._changed.add(item)
            else:
                self._added.add(item)
        self._changed.update(item for item in later.changed if item not in self._added)

    def take(self, standing: StandingQuery) -> Delta | None:
        """Return the pending delta, with current places, and forget it; None if nothing is pending."""
        if self._all:
            self._all = False
            return standing.everything()
        one, self._one = self._one, None
        if one is not None:
            return replace(one, values=values) if (values := standing.values([*one.added, *one.changed])) else one
        added, changed, removed = self._added, self._changed, self._removed
        self._forget()
        values = standing.values([*added, *changed])
        return Delta(standing.placed(added), standing.placed(changed), frozenset(removed), values=values) or None
