"""`Stages`: the items of a standing query before and after each of its steps, updated from changes."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from dataclasses import replace
from typing import Generic

from antiphon.query.evaluate import passes, shows
from antiphon.query.facts import Facts
from antiphon.query.filters import Filter
from antiphon.query.live.edges import BACKWARD, BackwardHop, ForwardHop, Hop, Interest, News, Owner
from antiphon.query.live.port import Source, facts_in_parts
from antiphon.query.multimap import Multimap
from antiphon.query.query import Query, Step

Register = Multimap[Hashable, Interest[Owner]]


class Stages(Generic[Owner]):
    """The items at each stage. The caller holds those of the last stage (`last`)."""

    def __init__(self, query: Query, register: Register[Owner], owner: Owner, last: Container[bytes]) -> None:
        self._query = query
        self._interest = Interest(register, owner)
        self._hops = [_hop(step, Interest(register, owner)) for step in query.steps]
        self._between: list[set[bytes]] = [set() for _ in query.steps]  # before each step
        self._members: list[Container[bytes]] = [*self._between, last]

    def fill(self, source: Source) -> Iterable[bytes]:
        """Compute all stages; return the items at the last one."""
        query = Query(self._query.where, deleted=self._query.deleted)
        ids: Iterable[bytes] = source.run(query).ids
        for item in ids:
            self._interest.want(item)
        for number, (hop, step) in enumerate(zip(self._hops, self._query.steps, strict=True), start=1):
            self._between[number - 1].update(ids)
            query = replace(query, steps=self._query.steps[:number])
            reached = hop.begin(ids, query, source)
            ids = []
            for some in facts_in_parts(source, reached):
                ids += [item for item, facts in some.items() if self._settle(hop, step, item, facts)]
        return ids

    def update(self, news: News, source: Source) -> dict[bytes, Facts | None]:
        """Take changed items; return those that entered or changed at the last stage, and None for those that left."""
        moved = self._begin(news)
        for number, (hop, step) in enumerate(zip(self._hops, self._query.steps, strict=True), start=1):
            touched = hop.follow(moved, news, source)
            known = source.facts([item for item in touched if item not in news])
            moved = {}
            for item in touched:
                facts = news[item] if item in news else known.get(item)
                here = self._settle(hop, step, item, facts)
                self._move(number, item, facts if here else None, moved)
        return moved

    def _begin(self, news: News) -> dict[bytes, Facts | None]:
        moved: dict[bytes, Facts | None] = {}
        for item, facts in news.items():
            here = facts is not None and self._passes(self._query.where, facts)
            self._move(0, item, facts if here else None, moved)
            if here:
                self._interest.want(item)
            else:
                self._interest.drop(item)
        return moved

    def _settle(self, hop: Hop, step: Step, item: bytes, facts: Facts | None) -> bool:
        here = facts is not None and hop.reaches(item, facts) and self._passes(step.where, facts)
        hop.settle(item, facts if here else None)
        return here

    def _passes(self, where: Filter, facts: Facts) -> bool:
        return shows(self._query.deleted, facts) and passes(where, facts)

    def _move(self, stage: int, item: bytes, facts: Facts | None, moved: dict[bytes, Facts | None]) -> None:
        if facts is not None:
            moved[item] = facts
            if stage < len(self._between):
                self._between[stage].add(item)
        elif item in self._members[stage]:
            moved[item] = None
            if stage < len(self._between):
                self._between[stage].discard(item)

    def release(self, last: Iterable[bytes]) -> None:
        """Drop all interests."""
        for item in self._between[0] if self._between else last:
            self._interest.drop(item)
        for hop in self._hops:
            hop.release()


def _hop(step: Step, interest: Interest[Owner]) -> Hop:
    return BackwardHop(step.way, interest) if step.way in BACKWARD else ForwardHop(step.way, interest)
