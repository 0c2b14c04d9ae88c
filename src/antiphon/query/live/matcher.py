"""`Matcher`: standing queries, whose results are updated from changes instead of by running them again. Does no I/O.

>>> from antiphon.query.filters import prop
>>> from antiphon.query.live.port import MemorySource
>>> matcher = Matcher(MemorySource())
>>> standing = matcher.subscribe(Query(prop("done").is_(False)))
>>> item = Facts(b"i" * 16, "antiphon/object", 1, {"done": False})
>>> matcher.changed([item])[standing].added
{b'iiiiiiiiiiiiiiii': 0}

A change is tried only on the standing queries whose predicates the item may pass, that hold the item already, or that
have reached an item which it names. The others cost nothing, however many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from antiphon.model.value import Value
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result, backward
from antiphon.query.facts import Facts
from antiphon.query.live.aggregates import LiveAggregate
from antiphon.query.live.edges import BACKWARD, News
from antiphon.query.live.port import ChangeSource, Source, facts_in_parts
from antiphon.query.live.predicate_index import PredicateIndex
from antiphon.query.live.ranking import Ranking, fingerprint
from antiphon.query.live.steps import Register, Stages
from antiphon.query.multimap import Multimap
from antiphon.query.query import Query, Way
from antiphon.query.validate import check


class StandingQuery:
    """A query whose result follows the changes that its matcher receives."""

    def __init__(self, query: Query, register: Register[StandingQuery], *, values: bool = False) -> None:
        self.query = query
        self._values: dict[bytes, Value] | None = {} if values and query.aggregate is None else None
        self._view: Ranking | LiveAggregate = (
            Ranking(query) if query.aggregate is None else LiveAggregate(query.aggregate)
        )
        self._stages: Stages[StandingQuery] = Stages(query, register, self, self._view)

    def fill(self, source: Source) -> None:
        """Compute the first result."""
        self._view.fill(self._stages.fill(source), source)
        if self._values is not None:
            for some in facts_in_parts(source, self.result.ids):
                self._values.update((item, facts.value) for item, facts in some.items())

    def update(self, news: News, moment: CachedSource) -> Delta:
        moved = self._stages.update(news, moment)
        if not isinstance(self._view, Ranking):
            return self._view.update(moved)
        delta = self._view.update(moved, moment.fingerprint)
        if self._values is not None and delta:
            for item in delta.removed:
                self._values.pop(item, None)
            found = moment.facts([*delta.added, *delta.changed])
            self._values.update((item, facts.value) for item, facts in found.items())
        return delta

    def values(self, items: Iterable[bytes]) -> dict[bytes, Value]:
        """Return the values of items of the result, as they were when it was matched; empty if they are not kept."""
        kept = self._values
        return {} if kept is None else {item: kept[item] for item in items if item in kept}

    def difference(self, before: StandingQuery) -> Delta:
        """Return the delta from the result of another standing query to this one's."""
        result, old = self.result, before.result
        if self.query.aggregate is not None:
            return Delta(aggregate=result) if result != old else Delta()
        places = {item: place for place, item in enumerate(result.ids)}
        stay = [item for item in old.ids if item in places]
        left = set(stay)
        same = stay == [item for item in result.ids if item in left]
        return Delta(
            {item: place for item, place in places.items() if item not in left},
            {} if same else {item: places[item] for item in result.ids if item in left},
            frozenset(old.ids) - places.keys(),
        )

    def release(self) -> None:
        self._stages.release(self._view)

    @property
    def result(self) -> Result:
        return self._view.result

    def everything(self) -> Delta:
        """The delta from an empty result to the current one."""
        result = self.result
        if self.query.aggregate is not None:
            return Delta(aggregate=result)
        return Delta({item: place for place, item in enumerate(result.ids)}, values=self.values(result.ids))

    def placed(self, items: Collection[bytes]) -> dict[bytes, int]:
        """The places of some items in the result, in its order."""
        return self._view.placed(items) if isinstance(self._view, Ranking) else {}

    def __len__(self) -> int:
        """The number of items after the last step, without the limit."""
        return len(self._view)


class Matcher:
    """All standing queries of one source. Not thread-safe.

    The items passed to `changed` must be as the source has them, or a later call must pass them again.
    """

    def __init__(self, source: ChangeSource) -> None:
        self._source = source
        self._predicates: PredicateIndex[StandingQuery] = PredicateIndex()
        self._register: Register[StandingQuery] = Multimap()
        self._ways: Counter[Way] = Counter()  # of the steps of all standing queries
        self.tries = 0  # the number of times that an item was tried on a standing query

    def __len__(self) -> int:
        return len(self._predicates)

    def subscribe(self, query: Query, *, values: bool = False) -> StandingQuery:
        """Start a standing query, with its result; with `values`, it keeps those of the items in it."""
        check(query)
        if not len(self):
            self._source.begin()
        standing = StandingQuery(query, self._register, values=values)
        try:
            standing.fill(self._source)
        except BaseException:
            standing.release()
            raise
        self._predicates.add(standing, query.where)
        self._ways.update(step.way for step in query.steps)
        return standing

    def unsubscribe(self, standing: StandingQuery) -> None:
        """End a standing query."""
        self._predicates.remove(standing)
        self._ways.subtract(step.way for step in standing.query.steps)
        standing.release()

    def changed(self, facts: Iterable[Facts], gone: Iterable[bytes] = ()) -> dict[StandingQuery, Delta]:
        """Take the new facts of changed items, and the ids of removed ones; return the deltas of changed results."""
        news: dict[bytes, Facts | None] = {each.id: each for each in facts}
        news.update(dict.fromkeys(gone))
        concerned: dict[StandingQuery, dict[bytes, Facts | None]] = {}
        for item, now in news.items():
            for standing in self._concerned(item, now):
                self.tries += 1
                concerned.setdefault(standing, {})[item] = now
        moment = CachedSource(self._source, news)
        deltas = {standing: standing.update(some, moment) for standing, some in concerned.items()}
        return {standing: delta for standing, delta in deltas.items() if delta}

    def _concerned(self, item: bytes, facts: Facts | None) -> set[StandingQuery]:
        found = {interest.owner for interest in self._register.get(item)}
        if facts is not None:
            found |= self._predicates.may_pass(facts)
            for way in BACKWARD:
                if self._ways[way]:
                    for end in backward(way, facts):
                        found.update(interest.owner for interest in self._register.get((way, end)))
        return found


class CachedSource:
    """A source that caches reads during one change, for several standing queries."""

    def __init__(self, source: Source, news: News) -> None:
        self._source = source
        self._known: dict[bytes, Facts | None] = dict(news)
        self._edges: dict[tuple[Way, bytes], Iterable[bytes]] = {}
        self._prints: dict[bytes, bytes] = {}

    def facts(self, ids: Collection[bytes]) -> Mapping[bytes, Facts]:
        missing = [item for item in ids if item not in self._known]
        if missing:
            self._known.update(dict.fromkeys(missing))
            self._known.update(self._source.facts(missing))
        return {item: facts for item in ids if (facts := self._known[item]) is not None}

    def edges(self, way: Way, item: bytes) -> Iterable[bytes]:
        if (way, item) not in self._edges:
            self._edges[way, item] = self._source.edges(way, item)
        return self._edges[way, item]

    def run(self, query: Query) -> Result:
        return self._source.run(query)

    def fingerprint(self, facts: Facts) -> bytes:
        known = self._prints.get(facts.id)
        if known is None:
            known = self._prints[facts.id] = fingerprint(facts)
        return known
