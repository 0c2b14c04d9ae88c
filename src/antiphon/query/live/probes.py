"""Probes: necessary conditions of a filter that an index can look up. An item that meets none of them cannot pass.

>>> from antiphon.query.filters import Fact, prop
>>> necessary(Fact.TYPE.is_("task") & (prop("owner") == "Ada"))
(Equal(path=('owner',), key=(1, 'Ada')),)
>>> necessary(~prop("done").is_(True)) is None
True

For `All`, the probe that is likely to let the fewest items through represents the rest; for `Any`, each part needs one.
`None` means that there is no such condition, and `()` that no item passes.
"""

from __future__ import annotations

from typing import NamedTuple

from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Path
from antiphon.query.live.interval_tree import Bound, above, below
from antiphon.query.tokens import parse
from antiphon.query.value_order import BOOL, CONTAINER, NONE, SortKey, kind_of, sort_key


class Equal(NamedTuple):
    """The value at a path has this sort key."""

    path: Path
    key: SortKey


class Element(NamedTuple):
    """The list at a path has an element with this sort key."""

    path: Path
    key: SortKey


class Between(NamedTuple):
    """The value at a path is in a range of one kind."""

    path: Path
    low: Bound
    high: Bound


class Present(NamedTuple):
    """Any value is at a path."""

    path: Path


class Word(NamedTuple):
    """A word, or with `beginning` a prefix of one, is in the texts."""

    word: str
    beginning: bool


Probe = Equal | Element | Between | Present | Word
Probes = tuple[Probe, ...]

# Rough numbers of items that a probe lets through. The probe with the lowest weight is used.
_ONE, _FEW, _SOME, _MANY, _MOST = range(5)
_FACT_WEIGHTS = {
    Fact.ID: _ONE,
    Fact.PARENT: _FEW,
    Fact.SOURCE: _FEW,
    Fact.TARGET: _FEW,
    Fact.VIEW_KEY: _FEW,
    Fact.TYPE: _MANY,
    Fact.MODEL: _MOST,
    Fact.VERSION: _MOST,
    Fact.VIEW_CLASS: _MANY,
}


def necessary(where: Filter) -> Probes | None:
    """The probes of which every passing item meets at least one."""
    if isinstance(where, All):
        return _fewest(where)
    if isinstance(where, Any):
        return _together(where)
    if isinstance(where, Compare):
        return _compared(where)
    if isinstance(where, Contains):
        return (Element(where.path, sort_key(where.value)),)
    if isinstance(where, Has):
        return (Present(where.path),)
    if isinstance(where, Match):
        return (_longest(where.text),)
    return None


def _fewest(where: All) -> Probes | None:
    known = [found for part in where.parts if (found := necessary(part)) is not None]
    narrowed = _narrowed([found[0] for found in known if len(found) == 1 and isinstance(found[0], Between)])
    return min([*known, *((probe,) for probe in narrowed)], key=_weight, default=None)


def _narrowed(ranges: list[Probe]) -> list[Between]:
    """Intersect the ranges at each path."""
    found: dict[Path, Between] = {}
    for probe in ranges:
        assert isinstance(probe, Between)
        path, low, high = probe
        if path in found:
            low, high = max(low, found[path].low), min(high, found[path].high)
        found[path] = Between(path, low, high)
    return list(found.values())


def _together(where: Any) -> Probes | None:
    found: dict[tuple[type, Probe], Probe] = {}  # by type too: as tuples, probes of different kinds may be equal
    for part in where.parts:
        some = necessary(part)
        if some is None:
            return None
        found.update(((type(probe), probe), probe) for probe in some)
    return tuple(found.values())


def _compared(where: Compare) -> Probes:
    key = sort_key(where.value)
    if where.op == "=":
        return (Equal(where.path, key),)
    kind = kind_of(key)
    if kind == CONTAINER:
        return ()  # lists and maps are compared for equality only
    low, high = _ends(key)
    if where.op in ("<", "<="):
        high = below(key, itself=where.op == "<=")
    else:
        low = above(key, itself=where.op == ">=")
    return (Between(where.path, low, high),)


def _ends(key: SortKey) -> tuple[Bound, Bound]:
    """The bounds of the kind of a key. The key of null, and of empty bytes, is the lower bound itself."""
    rank, kind = key[0], kind_of(key)
    if rank < 2:
        return above((rank,)), below((rank + 1,))
    return above((rank, bytes([kind])), itself=True), below((rank, bytes([kind + 1])))


def _longest(text: str) -> Word:
    words = [
        Word(word, term.beginning and number == len(term.words))
        for term in parse(text)
        for number, word in enumerate(term.words, start=1)
    ]
    return max(words, key=lambda probe: (not probe.beginning, len(probe.word)))


def _weight(probes: Probes) -> tuple[int, int]:
    """The weight of the worst probe, then their number: one probe that most items meet spoils the rest."""
    return max((_weight_of(probe) for probe in probes), default=-1), len(probes)


def _weight_of(probe: Probe) -> int:
    if isinstance(probe, Word):
        return _MANY if probe.beginning else _SOME
    if isinstance(probe, Present):
        return _MOST
    if isinstance(probe, Between):
        (_, first, *_), (_, last, *_) = probe.low, probe.high
        bounded = len(first) == 2 and len(last) == 2
        return _SOME if bounded else _MANY
    if isinstance(probe.path, Fact) and probe.path in _FACT_WEIGHTS:
        return _FACT_WEIGHTS[probe.path]
    return _MANY if kind_of(probe.key) in (NONE, BOOL) else _SOME
