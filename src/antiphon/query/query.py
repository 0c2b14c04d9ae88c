"""`Query`: a selection of items, as a frozen value. `evaluate` defines what it means, in plain Python.

>>> from antiphon.query.filters import Fact, prop
>>> tasks = Query(Fact.TYPE.is_("task") & prop("done").is_(False))
>>> urgent = tasks.order_by("priority", descending=True).take(10)
>>> urgent.limit, urgent.order
(10, (OrderBy(path=('priority',), descending=True),))
>>> Query(Fact.TYPE.is_("board")).children().children(prop("done").is_(True)).count().aggregate.function
'count'

Methods return a new query. A query starts with all items that pass `where`. Each step then goes from the current items
to others, which must pass the filter of the step. Results are by ascending id, which is the order of creation, unless
`order` says otherwise: then items that lack the property come last, and equal items are by ascending id.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Literal

from antiphon.core.errors import InvalidInput
from antiphon.query.filters import EVERYTHING, Filter, Path

STEPS_MAX = 8
ORDERS_MAX = 4
Function = Literal["count", "sum", "mean", "min", "max"]


class Deleted(enum.Enum):
    """Choice of whether a query considers deleted items. Applies to every step, and to links on the way."""

    HIDDEN = "hidden"
    SHOWN = "shown"
    ONLY = "only"


class Way(enum.Enum):
    """The edge that a step follows from each of its items."""

    CHILDREN = "children"
    PARENT = "parent"
    LINKS = "links"  # the links whose source it is
    BACKLINKS = "backlinks"  # the links whose target it is
    SOURCE = "source"  # the source of a link
    TARGET = "target"
    EMBEDS = "embeds"  # the items that it embeds
    EMBEDDERS = "embedders"  # the items that embed it
    REFERENCES = "references"  # the items of this party that its value refers to
    REFERRERS = "referrers"


@dataclass(frozen=True, slots=True)
class Step:
    """A step to other items along a way, and the filter that they must pass."""

    way: Way
    where: Filter = EVERYTHING


@dataclass(frozen=True, slots=True)
class OrderBy:
    """Sort the results by the value at a path, in the order of `value_order`."""

    path: Path
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value for all items, or for each group of items with equal values at `group`.

    `sum` and `mean` take numbers, are exact, and are rounded once; `min` and `max` take values of any kind, in the
    order of `value_order`. Items without such a value at the path are left out.
    """

    function: Function
    path: Path = ()
    group: Path | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Items that pass a filter, then steps, then an order and a limit, or an aggregate."""

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
        """Keep only the current items that also pass this filter."""
        if not self.steps:
            return replace(self, where=_both(self.where, where))
        last = self.steps[-1]
        return replace(self, steps=(*self.steps[:-1], Step(last.way, _both(last.where, where))))

    def step(self, way: Way, where: Filter = EVERYTHING) -> Query:
        """Go along a way to the items that pass the filter."""
        return replace(self, steps=(*self.steps, Step(way, where)))

    def children(self, where: Filter = EVERYTHING) -> Query:
        """Go to the children."""
        return self.step(Way.CHILDREN, where)

    def parent(self, where: Filter = EVERYTHING) -> Query:
        """Go to the parent."""
        return self.step(Way.PARENT, where)

    def links(self, where: Filter = EVERYTHING) -> Query:
        """Go to the links whose source is one of the items."""
        return self.step(Way.LINKS, where)

    def backlinks(self, where: Filter = EVERYTHING) -> Query:
        """Go to the links whose target is one of the items."""
        return self.step(Way.BACKLINKS, where)

    def source(self, where: Filter = EVERYTHING) -> Query:
        """Go from links to their sources."""
        return self.step(Way.SOURCE, where)

    def target(self, where: Filter = EVERYTHING) -> Query:
        """Go from links to their targets."""
        return self.step(Way.TARGET, where)

    def embeds(self, where: Filter = EVERYTHING) -> Query:
        """Go to the embedded items."""
        return self.step(Way.EMBEDS, where)

    def embedders(self, where: Filter = EVERYTHING) -> Query:
        """Go to the items that embed one of these."""
        return self.step(Way.EMBEDDERS, where)

    def references(self, where: Filter = EVERYTHING) -> Query:
        """Go to the items that the values refer to."""
        return self.step(Way.REFERENCES, where)

    def referrers(self, where: Filter = EVERYTHING) -> Query:
        """Go to the items that refer to one of these."""
        return self.step(Way.REFERRERS, where)

    def order_by(self, path: str | Path, *, descending: bool = False) -> Query:
        """Sort by a path; further calls sort items that are equal so far."""
        return replace(self, order=(*self.order, OrderBy(as_path(path), descending)))

    def take(self, limit: int) -> Query:
        """Keep only the first `limit` items."""
        return replace(self, limit=limit)

    def with_deleted(self, deleted: Deleted = Deleted.SHOWN) -> Query:
        """Consider deleted items too, or only these."""
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
    """A path; a string is a path of one key."""
    return (path,) if isinstance(path, str) else path


def _both(one: Filter, other: Filter) -> Filter:
    return other if one == EVERYTHING else one & other
