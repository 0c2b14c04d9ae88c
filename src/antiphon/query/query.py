"""`Query`: which items, as a frozen value. It says what is wanted; `evaluate` says what that means, in plain Python.

>>> from antiphon.query.filters import Fact, prop
>>> tasks = Query(Fact.TYPE.is_("task") & prop("done").is_(False))
>>> urgent = tasks.order_by("priority", descending=True).take(10)
>>> urgent.limit, urgent.order
(10, (OrderBy(path=('priority',), descending=True),))
>>> Query(Fact.TYPE.is_("board")).children().children(prop("done").is_(True)).count().aggregate.function
'count'

Methods give a new query. A query begins with all items that pass `where`; each step then goes from the items that it
has to others, which must pass the step's own filter. Items come by ascending id, which is the order of their making,
unless `order` says otherwise; those that lack what is ordered by come last; of equals the least id comes first.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Literal

from antiphon.core.errors import InvalidInput
from antiphon.query.filters import EVERYTHING, All, Fact, Filter, Keys, Path

STEPS_MAX = 8
ORDERS_MAX = 4
Function = Literal["count", "sum", "mean", "min", "max"]


class Deleted(enum.Enum):
    """Whether deleted items are among the result. It holds for every step, and for links that are passed through."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    ONLY = "only"


class Way(enum.Enum):
    """Where a step goes, from each item that it begins with."""

    CHILDREN = "children"
    PARENT = "parent"
    LINKS = "links"  # the links that begin at it
    BACKLINKS = "backlinks"  # the links that end at it
    SOURCE = "source"  # of a link: the item that it begins at
    TARGET = "target"
    EMBEDS = "embeds"  # the items embedded in it
    EMBEDDERS = "embedders"  # those that it is embedded in
    REFERENCES = "references"  # the items of this party that its value refers to
    REFERRERS = "referrers"


@dataclass(frozen=True, slots=True)
class Step:
    way: Way
    where: Filter = EVERYTHING


@dataclass(frozen=True, slots=True)
class OrderBy:
    path: Path
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value for all items, or for each group of items with an equal value at `group`.

    `sum` and `mean` take numbers, are exact, and are rounded once; `min` and `max` take values of any kind, in the
    order of `order`. Items that have nothing of the sort at the path are left out.
    """

    function: Function
    path: Path = ()
    group: Path | None = None


@dataclass(frozen=True, slots=True)
class Query:
    where: Filter = EVERYTHING
    steps: tuple[Step, ...] = ()
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    aggregate: Aggregate | None = None
    deleted: Deleted = Deleted.HIDDEN

    def __post_init__(self) -> None:
        if len(self.steps) > STEPS_MAX or len(self.order) > ORDERS_MAX:
            raise InvalidInput(f"a query has at most {STEPS_MAX} steps and {ORDERS_MAX} orders; split it")
        if self.limit is not None and (type(self.limit) is not int or self.limit < 0):
            raise InvalidInput(f"the limit of a query is a number of items, not {self.limit!r}")
        if self.aggregate is not None and (self.order or self.limit is not None):
            raise InvalidInput("an aggregate is of all items; it goes with no order and no limit")

    def filter(self, where: Filter) -> Query:
        """Of what it has by now, only what also passes this."""
        if not self.steps:
            return replace(self, where=_both(self.where, where))
        last = self.steps[-1]
        return replace(self, steps=(*self.steps[:-1], Step(last.way, _both(last.where, where))))

    def step(self, way: Way, where: Filter = EVERYTHING) -> Query:
        return replace(self, steps=(*self.steps, Step(way, where)))

    def children(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.CHILDREN, where)

    def parent(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.PARENT, where)

    def links(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.LINKS, where)

    def backlinks(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.BACKLINKS, where)

    def source(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.SOURCE, where)

    def target(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.TARGET, where)

    def embeds(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.EMBEDS, where)

    def embedders(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.EMBEDDERS, where)

    def references(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.REFERENCES, where)

    def referrers(self, where: Filter = EVERYTHING) -> Query:
        return self.step(Way.REFERRERS, where)

    def order_by(self, path: str | Path, *, descending: bool = False) -> Query:
        return replace(self, order=(*self.order, OrderBy(as_path(path), descending)))

    def take(self, limit: int) -> Query:
        return replace(self, limit=limit)

    def with_deleted(self, deleted: Deleted = Deleted.SHOWN) -> Query:
        return replace(self, deleted=deleted)

    def count(self, *, group: str | Path | None = None) -> Query:
        """The number of items, or of the items in each group."""
        return self._aggregate("count", (), group)

    def sum(self, path: str | Path, *, group: str | Path | None = None) -> Query:
        """The exact sum of the numbers at a path, rounded once: a float if any of the numbers is one, else an int."""
        return self._aggregate("sum", path, group)

    def mean(self, path: str | Path, *, group: str | Path | None = None) -> Query:
        """The mean of the numbers at a path; None if there are none."""
        return self._aggregate("mean", path, group)

    def min(self, path: str | Path, *, group: str | Path | None = None) -> Query:
        """The least value at a path, in the order of `value_order`; None if there are no values."""
        return self._aggregate("min", path, group)

    def max(self, path: str | Path, *, group: str | Path | None = None) -> Query:
        """The greatest value at a path, in the order of `value_order`; None if there are no values."""
        return self._aggregate("max", path, group)

    def _aggregate(self, function: Function, path: str | Path, group: str | Path | None) -> Query:
        return replace(self, aggregate=Aggregate(function, as_path(path), None if group is None else as_path(group)))


def as_path(path: str | Path) -> Path:
    return (path,) if isinstance(path, str) else path


def _both(one: Filter, other: Filter) -> Filter:
    return other if one == EVERYTHING else one & other


__all__ = ["All", "Fact", "Keys", "Query"]
