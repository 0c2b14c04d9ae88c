"""What mutations of an object said about messages that are not here yet; see `antiphon.model.heard`.

Honest histories leave this empty. Per feed, what is kept waits in a heap by seq, so that a hostile writer who names a
million messages of the future does not make each message of that feed cost a million steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from antiphon.core.stamp import Stamp
from antiphon.model.object.register import Content, Path, is_container


class Foretold:
    """What was said about one message: at which paths it is replaced already, and what is added to its counters."""

    __slots__ = ("gone", "increments")

    def __init__(self) -> None:
        self.gone: dict[Path, None] = {}
        self.increments: dict[Path, int] = {}

    def above_gone(self) -> frozenset[Path]:
        """The proper ancestors of the paths at which it is replaced."""
        return frozenset(path[:size] for path in self.gone for size in range(1, len(path)))

    def replaces(self, path: Path, content: Content, above: frozenset[Path]) -> bool:
        """Whether what the message writes at `path` is replaced; `above` is `above_gone()`."""
        if any(path[:size] in self.gone for size in range(1, len(path) + 1)):
            return True
        return path in above and not is_container(content)


class Kept:
    """`Foretold` for each message that was named and is not here yet."""

    __slots__ = ("feeds",)

    def __init__(self) -> None:
        self.feeds: dict[bytes, tuple[list[tuple[int, Stamp]], dict[Stamp, Foretold]]] = {}

    def __bool__(self) -> bool:
        return bool(self.feeds)

    def __iter__(self) -> Iterator[tuple[Stamp, Foretold]]:
        for _, foretold in self.feeds.values():
            yield from foretold.items()

    def get(self, stamp: Stamp) -> Foretold | None:
        found = self.feeds.get(stamp.feed)
        return found[1].get(stamp) if found else None

    def at(self, stamp: Stamp) -> Foretold:
        """What was said about a message, to be added to."""
        heap, foretold = self.feeds.setdefault(stamp.feed, ([], {}))
        if stamp not in foretold:
            heapq.heappush(heap, (stamp.seq, stamp))
            foretold[stamp] = Foretold()
        return foretold[stamp]

    def forget(self, heard: Stamp) -> None:
        """A message came: it, and what its feed skipped before it, is no future any more."""
        found = self.feeds.get(heard.feed)
        if found is None:
            return
        heap, foretold = found
        while heap and heap[0][0] <= heard.seq:
            del foretold[heapq.heappop(heap)[1]]
        if not heap:
            del self.feeds[heard.feed]
