"""`LiveAggregate`: the aggregate of a standing query, updated by adding and removing the values of items."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from antiphon.model.value import Value
from antiphon.query.delta import Delta
from antiphon.query.evaluate import Result
from antiphon.query.facts import Facts, Missing
from antiphon.query.live.edges import News
from antiphon.query.live.port import Source, facts_in_parts
from antiphon.query.query import Aggregate
from antiphon.query.sums import Sum
from antiphon.query.value_order import ExtremeKey, SortKey, canonical_of, extreme_key, sort_key, value_of

_COUNTED: ExtremeKey = (0, 0, False)  # for a count, which looks at no value
Share = tuple[SortKey | None, ExtremeKey | None]  # the group of an item, and the value that it contributes


class _Accumulator(Protocol):
    """The aggregate of one group."""

    def add(self, key: ExtremeKey, by: int) -> None:
        """Add a value (`by` is 1), or remove it (-1)."""

    def value(self) -> Value: ...


class _Count:
    def __init__(self) -> None:
        self._count = 0

    def add(self, key: ExtremeKey, by: int) -> None:
        self._count += by

    def value(self) -> Value:
        return self._count


class _Sum:
    """An exact sum or mean, rounded when it is read, as in `sums`."""

    def __init__(self, *, mean: bool) -> None:
        self._mean = mean
        self._sum = Sum()

    def add(self, key: ExtremeKey, by: int) -> None:
        self._sum.add(key[1], by)

    def value(self) -> Value:
        return self._sum.mean() if self._mean else self._sum.value()


class _Extreme:
    """The least or the greatest value; equal values are counted."""

    def __init__(self, *, greatest: bool) -> None:
        self._at = -1 if greatest else 0
        self._keys: list[ExtremeKey] = []
        self._counts: Counter[ExtremeKey] = Counter()

    def add(self, key: ExtremeKey, by: int) -> None:
        self._counts[key] += by
        if self._counts[key] == 0:
            del self._counts[key]
            del self._keys[bisect_left(self._keys, key)]
        elif by > 0 and self._counts[key] == 1:
            insort(self._keys, key)

    def value(self) -> Value:
        return value_of(self._keys[self._at][1]) if self._keys else None


class LiveAggregate:
    """The aggregates of all groups. Without groups there is one, also when no item is in it."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._aggregate = aggregate
        self._shares: dict[bytes, Share | None] = {}  # None: it contributes nothing
        self._totals: dict[SortKey | None, _Accumulator] = {}
        self._sizes: Counter[SortKey | None] = Counter()
        self._groups: list[SortKey] = []
        self._rows: dict[SortKey | None, tuple[Value, Value]] = {}  # a cache by group
        if aggregate.group is None:
            self._totals[None] = self._empty()

    def __contains__(self, item: object) -> bool:
        return item in self._shares

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def fill(self, ids: Iterable[bytes], source: Source) -> None:
        """Add all items of the first result."""
        for some in facts_in_parts(source, ids):
            for item, facts in some.items():
                self._take(item, facts)

    @property
    def result(self) -> Result:
        """The current value, or the values of all groups."""
        if self._aggregate.group is None:
            return Result(value=self._totals[None].value())
        return Result(groups=tuple([self._rows.get(key) or self._row(key) for key in self._groups]))

    def _row(self, group: SortKey) -> tuple[Value, Value]:
        row = self._rows[group] = canonical_of(group[1]), self._totals[group].value()
        return row

    def update(self, moved: News) -> Delta:
        """Take items that entered, changed or left; return the change of the result."""
        touched = {share[0] for item, facts in moved.items() for share in self._shift(item, facts) if share is not None}
        before = {group: self._known(group) for group in touched}
        for item, facts in moved.items():
            self._take(item, facts)
        same = all(_same(value, self._known(group)) for group, value in before.items())
        return Delta() if same else Delta(aggregate=self.result)

    def _known(self, group: SortKey | None) -> tuple[Value, ...]:
        total = self._totals.get(group)
        return () if total is None else (total.value(),)

    def _shift(self, item: bytes, facts: Facts | None) -> tuple[Share | None, Share | None]:
        """The old share of an item, and its share with these facts; two times None if they are the same."""
        old, new = self._shares.get(item), None if facts is None else self._share(facts)
        return (old, new) if old != new else (None, None)

    def _take(self, item: bytes, facts: Facts | None) -> None:
        old, new = self._shift(item, facts)
        if old is not None:
            self._count(old, -1)
        if new is not None:
            self._count(new, 1)
        if facts is None:
            self._shares.pop(item, None)
        else:
            self._shares[item] = self._share(facts)

    def _share(self, facts: Facts) -> Share | None:
        """The group and the value that an item contributes, if any."""
        aggregate, group, key = self._aggregate, None, None
        if aggregate.group is not None:
            found = facts.get(aggregate.group)
            if isinstance(found, Missing):
                return None
            group = sort_key(found)
        if aggregate.function != "count":
            found = facts.get(aggregate.path)
            if isinstance(found, Missing):
                return None
            key = extreme_key(found, greatest=aggregate.function == "max")
            if aggregate.function in ("sum", "mean") and key[0] != 0:
                return None
        return group, key

    def _count(self, share: Share, by: int) -> None:
        group, key = share
        if group not in self._totals:
            assert group is not None
            self._totals[group] = self._empty()
            insort(self._groups, group)
        self._totals[group].add(key or _COUNTED, by)
        self._rows.pop(group, None)
        self._sizes[group] += by
        if group is not None and not self._sizes[group]:
            del self._totals[group], self._sizes[group]
            del self._groups[bisect_left(self._groups, group)]

    def _empty(self) -> _Accumulator:
        function = self._aggregate.function
        if function == "count":
            return _Count()
        if function in ("sum", "mean"):
            return _Sum(mean=function == "mean")
        return _Extreme(greatest=function == "max")


def _same(one: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    """True if both are the same values of the same types. Large integers may differ although their sort keys do not."""
    if list(map(type, one)) != list(map(type, other)):
        return False
    pairs = zip(one, other, strict=True)
    return all(sort_key(a) == sort_key(b) and (not isinstance(a, int) or a == b) for a, b in pairs)
