"""Effects of an object's mutations on messages that have not arrived; see `antiphon.model.heard`.

Honest histories leave this empty. For each feed a heap holds the messages by seq. So a hostile writer who names a
million future messages does not make each message of that feed cost a million steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from antiphon.core.stamp import Stamp
from antiphon.model.object.register import Content, Path, is_container


class PendingEffects:
    """Effects on one message: the paths at which it is replaced already, and the sums to add to its counters."""

    __slots__ = ("gone", "increments")

    def __init__(self) -> None:
        self.gone: dict[Path, None] = {}
        self.increments: dict[Path, int] = {}

    def above_gone(self) -> frozenset[Path]:
        """Return the proper ancestors of the paths at which the message is replaced."""
        return frozenset(path[:size] for path in self.gone for size in range(1, len(path)))

    def replaces(self, path: Path, content: Content, above: frozenset[Path]) -> bool:
        """True if the entry that the message writes at `path` is replaced. `above` is `above_gone()`."""
        if any(path[:size] in self.gone for size in range(1, len(path) + 1)):
            return True
        return path in above and not is_container(content)


class PendingMessages:
    """The effects on each message that was named and has not arrived."""

    __slots__ = ("feeds",)

    def __init__(self) -> None:
        self.feeds: dict[bytes, tuple[list[tuple[int, Stamp]], dict[Stamp, PendingEffects]]] = {}

    def __bool__(self) -> bool:
        return bool(self.feeds)

    def __iter__(self) -> Iterator[tuple[Stamp, PendingEffects]]:
        for _, effects in self.feeds.values():
            yield from effects.items()

    def get(self, stamp: Stamp) -> PendingEffects | None:
        """Return the effects on a message, or None."""
        found = self.feeds.get(stamp.feed)
        return found[1].get(stamp) if found else None

    def at(self, stamp: Stamp) -> PendingEffects:
        """Return the effects on a message, created if missing, for adding to them."""
        heap, effects = self.feeds.setdefault(stamp.feed, ([], {}))
        if stamp not in effects:
            heapq.heappush(heap, (stamp.seq, stamp))
            effects[stamp] = PendingEffects()
        return effects[stamp]

    def forget(self, heard: Stamp) -> None:
        """Drop the effects on a message that has arrived, and on all earlier ones of its feed."""
        found = self.feeds.get(heard.feed)
        if found is None:
            return
        heap, effects = found
        while heap and heap[0][0] <= heard.seq:
            del effects[heapq.heappop(heap)[1]]
        if not heap:
            del self.feeds[heard.feed]
