"""Forks: a forked item continues under a new id, and every reference to the old id leads to the new item.

>>> old, new, child = (bytes([n]) * 16 for n in (1, 2, 3))
>>> forks = KnownForks([Fork(old, new, here=True)])
>>> forks.lead(old) == forks.lead(new) == new
True
>>> facts = Facts(child, "object", 1, {"owner": Reference(old)}, references=(Reference(old),))
>>> forks.led(facts).value["owner"] == Reference(new)
True

Queries see parents, ends of links, embedded items and references with forks resolved, so no query engine has to know of
forks. The stored facts keep the original ids, since a later fork may resolve them differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.fork_chain import STEPS_MAX, lead
from antiphon.model.item_state import ItemState
from antiphon.model.value import Reference, Value
from antiphon.query.facts import Facts, in_order
from antiphon.query.multimap import Multimap

Claims = Sequence[tuple[Stamp, bytes]]


class Fork(NamedTuple):
    """The fork of one item: the new item, empty if there is none, and the inception key of a view."""

    old: bytes
    new: bytes
    key: bytes = b""
    here: bool = False  # the new item is present


class Forks(ABC):
    """All forks of a party."""

    @abstractmethod
    def __bool__(self) -> bool:
        """True if there are any forks."""

    @abstractmethod
    def after(self, item: bytes) -> bytes:
        """The item that `item` was forked into, if it is present; else empty."""

    @abstractmethod
    def before(self, item: bytes) -> Iterable[bytes]:
        """The items that were forked into `item`; they need not be present."""

    @abstractmethod
    def key(self, item: bytes) -> bytes:
        """The inception key of a forked item; empty if it is no view."""

    def lead(self, item: bytes) -> bytes:
        """The item that an id leads to."""
        return lead(item, self.after)

    def upstream(self, items: Iterable[bytes]) -> set[bytes]:
        """These items, and all items from which a chain of forks leads to or through one of them."""
        found = set(items)
        fresh = list(found)
        for _ in range(STEPS_MAX):
            fresh = [old for item in fresh for old in self.before(item) if old not in found]
            if not fresh:
                break
            found.update(fresh)
        return found

    def view_key(self, item: bytes) -> bytes:
        """The key of the view that an item was forked from: a fork of a view is that view."""
        olds = sorted(self.upstream([item]) - {item})
        return next((key for old in olds if (key := self.key(old)) and self.lead(old) == item), b"")

    def led_claims(self, claims: Claims) -> Claims:
        """Claims to parents, with forks resolved."""
        return [(stamp, self.lead(parent)) for stamp, parent in claims] if self else claims

    def led(self, facts: Facts) -> Facts:
        """Facts with forks resolved, except for the parent, which follows from the claims of all items."""
        if not self:
            return facts
        to = {end: self.lead(end) for end in _ends(facts)}
        view_key = facts.view_key or self.view_key(facts.id)
        if view_key == facts.view_key and all(end == led for end, led in to.items()):
            return facts
        return replace(
            facts,
            value=_led(facts.value, to),
            link=None if facts.link is None else (to[facts.link[0]], to[facts.link[1]]),
            view_key=view_key,
            embeds=tuple(sorted({to[item] for item in facts.embeds})),
            references=in_order({_led(reference, to) for reference in facts.references}),
        )


def _ends(facts: Facts) -> set[bytes]:
    return {
        *(facts.link or ()),
        *facts.embeds,
        *(reference.item for reference in facts.references if not reference.party),
    }


def _led(value: Value, to: Mapping[bytes, bytes]) -> Any:
    """A value, with forks resolved in its references."""
    if isinstance(value, Reference):
        return Reference(to.get(value.item, value.item)) if not value.party else value
    if isinstance(value, dict):
        return {key: _led(part, to) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_led(part, to) for part in value]
    return value


class KnownForks(Forks):
    """Forks in memory."""

    def __init__(self, forks: Iterable[Fork] = ()) -> None:
        self._forks: dict[bytes, Fork] = {}
        self._before: Multimap[bytes, bytes] = Multimap()
        for fork in forks:
            self._put(fork)

    def __bool__(self) -> bool:
        return bool(self._forks)

    def __iter__(self) -> Iterator[bytes]:
        """The items that were forked."""
        return iter(self._forks)

    def get(self, item: bytes) -> Fork | None:
        """The fork of an item."""
        return self._forks.get(item)

    def after(self, item: bytes) -> bytes:
        fork = self._forks.get(item)
        return fork.new if fork is not None and fork.here else b""

    def before(self, item: bytes) -> Iterable[bytes]:
        return self._before.get(item)

    def key(self, item: bytes) -> bytes:
        fork = self._forks.get(item)
        return b"" if fork is None else fork.key

    def update(self, news: Iterable[Fork]) -> set[bytes]:
        """Take the current forks of items, an empty `new` for none; return the old and new ends of all changes."""
        every = list(news)
        was = {old: self.lead(old) for old in self.upstream(fork.old for fork in every)}
        for fork in every:
            self._put(fork)
        leads = [(end, self.lead(old)) for old, end in was.items()]
        return {end for pair in leads if pair[0] != pair[1] for end in pair}

    def _put(self, fork: Fork) -> None:
        known = self._forks.pop(fork.old, None)
        if known is not None:
            self._before.discard(known.new, fork.old)
        if fork.new:
            self._forks[fork.old] = fork
            self._before.add(fork.new, fork.old)


def fork_of(item: ItemState) -> Fork:
    """The fork of a live item."""
    return Fork(bytes(item.id), item.forked_to, b"" if item.view is None else item.view.key)


def fork_in(facts: Facts) -> Fork:
    """The fork of an item, by its facts."""
    return Fork(facts.id, facts.forked_to, facts.view_key)


def forks_of(items: Iterable[Facts]) -> KnownForks:
    """The forks of all items of a party."""
    every = {facts.id: facts for facts in items}
    return KnownForks(fork_in(facts)._replace(here=facts.forked_to in every) for facts in every.values())
