"""`Matcher`: standing queries, kept up to date by what changed instead of being run again. It does no I/O of its own.

>>> from antiphon.query.filters import prop
>>> from antiphon.query.live.port import EveryItem
>>> matcher = Matcher(EveryItem())
>>> standing = matcher.subscribe(Query(prop("done").is_(False)))
>>> item = Facts(b"i" * 16, "antiphon/object", 1, {"done": False})
>>> matcher.changed([item])[standing].added
{b'iiiiiiiiiiiiiiii': 0}

A change is tried only on the standing queries whose predicates it may meet, that hold the item already, or that have
come to an item which it names; the others cost nothing, however many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result, backward
from antiphon.query.facts import Facts
from antiphon.query.live.aggregates import Tally
from antiphon.query.live.edges import BACKWARD, News
from antiphon.query.live.port import Followed, Source
from antiphon.query.live.predicate_index import PredicateIndex
from antiphon.query.live.ranking import Ranking, print_of
from antiphon.query.live.steps import Register, Stages
from antiphon.query.multimap import Multimap
from antiphon.query.query import Query, Way
from antiphon.query.validate import check


class Standing:
    """A query that stands: its result follows the changes that its matcher is told of."""

    def __init__(self, query: Query, register: Register[Standing]) -> None:
        self.query = query
        self._view: Ranking | Tally = Ranking(query) if query.aggregate is None else Tally(query.aggregate)
        self._stages: Stages[Standing] = Stages(query, register, self, self._view)

    def fill(self, source: Source) -> None:
        self._view.fill(self._stages.fill(source), source)

    def update(self, news: News, moment: Moment) -> Delta:
        moved = self._stages.update(news, moment)
        return (
            self._view.update(moved, moment.print_of) if isinstance(self._view, Ranking) else self._view.update(moved)
        )

    def release(self) -> None:
        self._stages.release(self._view)

    @property
    def result(self) -> Result:
        return self._view.result

    def everything(self) -> Delta:
        """From nothing to the result."""
        result = self.result
        if self.query.aggregate is not None:
            return Delta(aggregate=result)
        return Delta({item: place for place, item in enumerate(result.ids)})

    def placed(self, items: Collection[bytes]) -> dict[bytes, int]:
        """Items of the result with their places, in its order."""
        return self._view.placed(items) if isinstance(self._view, Ranking) else {}

    def __len__(self) -> int:
        """How many items it holds at its end, within its limit or not."""
        return len(self._view)


class Matcher:
    """Not thread-safe. The source and what `changed` is told must be of one moment, or later ones must follow."""

    def __init__(self, source: Followed) -> None:
        self._source = source
        self._predicates: PredicateIndex[Standing] = PredicateIndex()
        self._register: Register[Standing] = Multimap()
        self._ways: Counter[Way] = Counter()  # those of the steps of all standing queries
        self.tries = 0  # how often an item was tried on a standing query

    def __len__(self) -> int:
        return len(self._predicates)

    def subscribe(self, query: Query) -> Standing:
        check(query)
        if not len(self):
            self._source.begin()
        standing = Standing(query, self._register)
        try:
            standing.fill(self._source)
        except BaseException:
            standing.release()
            raise
        self._predicates.add(standing, query.where)
        self._ways.update(step.way for step in query.steps)
        return standing

    def unsubscribe(self, standing: Standing) -> None:
        self._predicates.remove(standing)
        self._ways.subtract(step.way for step in standing.query.steps)
        standing.release()

    def changed(self, facts: Iterable[Facts], gone: Iterable[bytes] = ()) -> dict[Standing, Delta]:
        """What changed, as it is now, and what is not here any more; returns how the results changed that did."""
        news: dict[bytes, Facts | None] = {each.id: each for each in facts}
        news.update(dict.fromkeys(gone))
        concerned: dict[Standing, dict[bytes, Facts | None]] = {}
        for item, now in news.items():
            for standing in self._concerned(item, now):
                self.tries += 1
                concerned.setdefault(standing, {})[item] = now
        moment = Moment(self._source, news)
        deltas = {standing: standing.update(some, moment) for standing, some in concerned.items()}
        return {standing: delta for standing, delta in deltas.items() if delta}

    def _concerned(self, item: bytes, facts: Facts | None) -> set[Standing]:
        found = {interest.owner for interest in self._register.get(item)}
        if facts is not None:
            found |= self._predicates.may_pass(facts)
            for way in BACKWARD:
                if self._ways[way]:
                    for end in backward(way, facts):
                        found.update(interest.owner for interest in self._register.get((way, end)))
        return found


class Moment:
    """A source that is asked only once for what several standing queries need."""

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

    def print_of(self, facts: Facts) -> bytes:
        known = self._prints.get(facts.id)
        if known is None:
            known = self._prints[facts.id] = print_of(facts)
        return known
