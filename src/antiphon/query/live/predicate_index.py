"""`PredicateIndex`: find which of very many filters an item may pass, by the values in the item.

>>> from antiphon.query.filters import prop
>>> index = PredicateIndex()
>>> for age in range(100):
...     index.add(age, prop("age") == age)
>>> index.may_pass(Facts(id=b"i", model="m", version=1, value={"age": 7}))
{7}

Only paths that some filter needs are read of an item. Of the keys of a map and the paths of the index, the smaller set
is iterated. Filters without a necessary condition are always candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from antiphon.model.value import Value
from antiphon.query.facts import MISSING, Facts, Missing
from antiphon.query.filters import Fact, Filter, Keys, Path
from antiphon.query.live.interval_tree import Intervals
from antiphon.query.live.probes import Between, Element, Equal, Present, Probe, Word, necessary
from antiphon.query.multimap import Multimap
from antiphon.query.tokens import needle
from antiphon.query.value_order import SortKey, sort_key

Held = TypeVar("Held", bound=Hashable)
Undo = Callable[[], None]
_LOOKED_FOR_MAX = 16  # words; beyond this many it is cheaper to iterate over the words of the item


class _Place(Generic[Held]):
    """The filters that depend on the value at one path."""

    __slots__ = ("elements", "equals", "present", "ranges")

    def __init__(self) -> None:
        self.equals: Multimap[SortKey, Held] = Multimap()
        self.elements: Multimap[SortKey, Held] = Multimap()
        self.ranges: Intervals[Held] = Intervals()
        self.present: set[Held] = set()

    def find(self, value: Value, found: set[Held]) -> None:
        found |= self.present
        if self.equals or self.ranges:
            key = sort_key(value)
            found.update(self.equals.get(key))
            found.update(self.ranges.at(key))
        if self.elements and isinstance(value, list | tuple):
            for part in value:
                found.update(self.elements.get(sort_key(part)))

    def __bool__(self) -> bool:
        return bool(self.equals or self.elements or self.ranges or self.present)


class _Branch(Generic[Held]):
    """A tree of property paths, of the shape of values."""

    __slots__ = ("below", "place")

    def __init__(self) -> None:
        self.below: dict[str, _Branch[Held]] = {}
        self.place: _Place[Held] = _Place()

    def reach(self, path: Keys) -> _Place[Held]:
        branch = self
        for key in path:
            branch = branch.below.setdefault(key, _Branch())
        return branch.place

    def prune(self, path: Keys) -> bool:
        """Remove empty branches along a path; return True if this branch is empty."""
        if path and path[0] in self.below and self.below[path[0]].prune(path[1:]):
            del self.below[path[0]]
        return not self.below and not self.place

    def find(self, value: Value | Missing, found: set[Held]) -> None:
        if value is MISSING:
            return
        self.place.find(value, found)
        if self.below and isinstance(value, dict):
            few, many = sorted((self.below, value), key=len)
            for key in few:
                if key in many:
                    self.below[key].find(value[key], found)


class PredicateIndex(Generic[Held]):
    """Values by filter. `may_pass` may return too many values, but never too few."""

    def __init__(self) -> None:
        self._properties: _Branch[Held] = _Branch()
        self._facts: dict[Fact, _Place[Held]] = {}
        self._words: Multimap[str, Held] = Multimap()
        self._beginnings: Multimap[str, Held] = Multimap()
        self._lengths: Counter[int] = Counter()  # of the prefixes
        self._always: set[Held] = set()
        self._undo: dict[Held, list[Undo]] = {}

    def __len__(self) -> int:
        return len(self._undo)

    def add(self, held: Held, where: Filter) -> None:
        """Add a value with its filter."""
        probes = necessary(where)
        if probes is None:
            self._always.add(held)
            self._undo[held] = [lambda: self._always.discard(held)]
        else:
            self._undo[held] = [self._insert(held, probe) for probe in probes]

    def remove(self, held: Held) -> None:
        """Remove a value."""
        for undo in self._undo.pop(held, ()):
            undo()

    def may_pass(self, facts: Facts) -> set[Held]:
        """The values whose filters an item may pass."""
        found = set(self._always)
        self._properties.find(facts.value, found)
        for fact, place in self._facts.items():
            value = facts.get(fact)
            if value is not MISSING:
                place.find(value, found)
        if self._words or self._beginnings:
            self._find_words(facts.word_text(), found)
        return found

    def _find_words(self, words: str, found: set[Held]) -> None:
        if len(self._words) + len(self._beginnings) <= _LOOKED_FOR_MAX:
            for held, beginning in ((self._words, False), (self._beginnings, True)):
                for word in held:
                    if needle((word,), beginning=beginning) in words:
                        found.update(held.get(word))
            return
        for word in set(words.split()):
            found.update(self._words.get(word))
            for length in self._lengths:
                found.update(self._beginnings.get(word[:length]))

    def _insert(self, held: Held, probe: Probe) -> Undo:
        if isinstance(probe, Word):
            return self._insert_word(held, probe)
        place = self._place(probe.path)
        undo = _insert_at(place, held, probe)

        def undo_insert() -> None:
            undo()
            self._prune(probe.path)

        return undo_insert

    def _insert_word(self, held: Held, probe: Word) -> Undo:
        word = probe.word
        if not probe.beginning:
            self._words.add(word, held)
            return lambda: self._words.discard(word, held)
        self._beginnings.add(word, held)
        self._lengths[len(word)] += 1

        def undo_insert() -> None:
            self._beginnings.discard(word, held)
            self._lengths[len(word)] -= 1
            self._lengths += Counter()  # drops zero counts

        return undo_insert

    def _place(self, path: Path) -> _Place[Held]:
        if isinstance(path, Fact):
            return self._facts.setdefault(path, _Place())
        return self._properties.reach(path)

    def _prune(self, path: Path) -> None:
        if not isinstance(path, Fact):
            self._properties.prune(path)
        elif not self._facts[path]:
            del self._facts[path]


def _insert_at(place: _Place[Held], held: Held, probe: Equal | Element | Between | Present) -> Undo:
    if isinstance(probe, Equal):
        place.equals.add(probe.key, held)
        return lambda: place.equals.discard(probe.key, held)
    if isinstance(probe, Element):
        place.elements.add(probe.key, held)
        return lambda: place.elements.discard(probe.key, held)
    if isinstance(probe, Between):
        token = place.ranges.add(probe.low, probe.high, held)
        return lambda: place.ranges.remove(token)
    place.present.add(held)
    return lambda: place.present.discard(held)
