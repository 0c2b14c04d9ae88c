"""Measure the messages since the last epoch against policy: is a new epoch due?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from antiphon.halo.credentials.claims import Policy
from antiphon.halo.finality.epoch_values import EPOCH_MESSAGES

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


@dataclass(frozen=True, slots=True)
class Due:
    """The threshold that is reached; if none is, the time at which one will be without any new message."""

    reason: str = ""
    wake_ms: int | None = None


class _Tail(NamedTuple):
    """The messages of one feed that are outside the base."""

    start: int
    stop: int


class Thresholds:
    """Measures a party against its policy. Counts are kept, so that measuring again is cheap."""

    def __init__(self, party: PartyProcessor) -> None:
        self._party = party
        self._tails: dict[bytes, _Tail] | None = None
        self._bytes: dict[bytes, tuple[_Tail, int]] = {}
        self._moved_ms = 0  # when the last message arrived

    def look(self, policy: Policy, since_ms: int, now_ms: int) -> Due:
        """Return whether an epoch is due now. `since_ms` is when the last epoch, or the party, was made."""
        tails = self._look(now_ms)
        messages = sum(tail.stop - tail.start for tail in tails.values())
        if not messages:
            return Due()
        if 0 < _messages_max(policy) <= messages:
            return Due(f"{messages} messages came since the last epoch")
        if policy.epoch_bytes:
            size = sum(self._size(feed, tail) for feed, tail in tails.items())
            if size >= policy.epoch_bytes:
                return Due(f"{size} bytes came since the last epoch")
        return _by_time(policy, min(since_ms, now_ms), self._moved_ms, now_ms)

    def _look(self, now_ms: int) -> dict[bytes, _Tail]:
        """Return the tails of all feeds. If a tail has moved, note the current time as that of the last message."""
        with self._party.locked() as engine:
            states = [lane.state for lane in engine.delivery.lanes.values()]
            tails = {state.feed: _Tail(state.base, state.position) for state in states if state.position > state.base}
        before, self._tails = self._tails, tails
        if before is None:
            self._moved_ms = min(now_ms, max(self._written(tails), default=now_ms))
        elif {feed: tail.stop for feed, tail in tails.items()} != {feed: tail.stop for feed, tail in before.items()}:
            self._moved_ms = now_ms
        return tails

    def _written(self, tails: dict[bytes, _Tail]) -> Iterator[int]:
        """When the last messages were written by their writers' clocks: the only time known after a restart."""
        for feed, tail in tails.items():
            yield self._party.store.block(feed, tail.stop - 1).created_ms

    def _size(self, feed: bytes, tail: _Tail) -> int:
        """The bytes of all bodies in a tail. Only blocks added since the last call are read."""
        known, size = self._bytes.get(feed, (_Tail(tail.start, tail.start), 0))
        if known.start != tail.start or known.stop > tail.stop:
            known, size = _Tail(tail.start, tail.start), 0
        if known.stop < tail.stop:
            for span, low, high in self._party.store.runs(feed, known.stop, tail.stop):
                size += int(span.columns["body_size"][low:high].sum())
        self._bytes[feed] = tail, size
        return size


def _messages_max(policy: Policy) -> int:
    """Return after how many messages an epoch is due, also by a policy that sets no threshold; 0: by other ones."""
    others = policy.epoch_bytes or policy.epoch_age_ms or policy.epoch_idle_ms
    return policy.epoch_messages or (0 if others else EPOCH_MESSAGES)


def _by_time(policy: Policy, since_ms: int, moved_ms: int, now_ms: int) -> Due:
    ends: list[int] = []
    if policy.epoch_age_ms:
        ends.append(since_ms + policy.epoch_age_ms)
        if now_ms >= ends[-1]:
            return Due(f"the last epoch is {now_ms - since_ms} ms old")
    if policy.epoch_idle_ms:
        ends.append(moved_ms + policy.epoch_idle_ms)
        if now_ms >= ends[-1]:
            return Due(f"no message came for {now_ms - moved_ms} ms")
    return Due("", min(ends, default=None))
