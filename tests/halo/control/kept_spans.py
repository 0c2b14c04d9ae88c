"""Kept branches without a store, and the acts of a machine that are nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from antiphon.feed.span import Span
from antiphon.halo.control.machine import PartyMachine


class KeptSpans:
    """The branches that a store keeps, as a `BranchSource`."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans = {(span.feed, span.hash_at(span.end - 1)): span for span in spans}

    def add(self, span: Span) -> Span:
        self._spans[span.feed, span.hash_at(span.end - 1)] = span
        return span

    def branch_ending(self, feed: bytes, hash_: bytes) -> Span | None:
        return self._spans.get((feed, hash_))

    def branch_firsts(self, feed: bytes) -> Mapping[bytes, int]:
        return {last: span.first for (of, last), span in self._spans.items() if of == feed}


def all_acts(machine: PartyMachine) -> list[bytes]:
    """Return the hashes of all acts; those that are settled, or set aside, are read again."""
    for stamp in list(machine.settled.stamps()):
        machine.strays_at(stamp.feed, stamp.seq)
    return sorted(act.hash for act in (*machine.acts(), *machine.checkpoints.aside()))
