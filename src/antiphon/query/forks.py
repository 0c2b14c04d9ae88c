"""Forks: an item that was forked lives on under another id, and whatever names the old one leads to the new one.

>>> old, new, child = (bytes([n]) * 16 for n in (1, 2, 3))
>>> forks = KnownForks([Fork(old, new, here=True)])
>>> forks.lead(old) == forks.lead(new) == new
True
>>> facts = Facts(child, "object", 1, {"owner": Reference(old)}, references=(Reference(old),))
>>> forks.led(facts).value["owner"] == Reference(new)
True

Where an item hangs, what a link joins, what is embedded and referred to: all of it is seen by queries as it leads now,
so no engine has to know of forks. What an item says itself is kept as it is, for what it leads to may yet change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.item_state import ItemState
from antiphon.model.value import Reference, Value
from antiphon.query.facts import Facts, in_order
from antiphon.query.multimap import Multimap

STEPS_MAX = 64  # forks of forks that are followed
Claims = Sequence[tuple[Stamp, bytes]]


class Fork(NamedTuple):
    """What an item says that it was forked into, empty if it was not; and its inception key, if it is a view."""

    old: bytes
    new: bytes
    key: bytes = b""
    here: bool = False  # whether what it was forked into is


def lead(item: bytes, after: Callable[[bytes], bytes]) -> bytes:
    """Where an id leads, step by step. Forks in a circle lead nowhere."""
    at, seen = item, {item}
    for _ in range(STEPS_MAX):
        following = after(at)
        if not following:
            break
        if following in seen:
            return item
        seen.add(following)
        at = following
    return at


class Forks(ABC):
    """All forks of a party."""

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether there are any."""

    @abstractmethod
    def after(self, item: bytes) -> bytes:
        """What an item was forked into, if that is here; else empty."""

    @abstractmethod
    def before(self, item: bytes) -> Iterable[bytes]:
        """The items that say that they were forked into one, which need not be here."""

    @abstractmethod
    def key(self, item: bytes) -> bytes:
        """The inception key of an item that was forked; empty if that is no view."""

    def lead(self, item: bytes) -> bytes:
        """Where an id leads."""
        return lead(item, self.after)

    def upstream(self, items: Iterable[bytes]) -> set[bytes]:
        """These, and all that may lead to one of them, or past it."""
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
        """Claims to parents, as they lead."""
        return [(stamp, self.lead(parent)) for stamp, parent in claims] if self else claims

    def led(self, facts: Facts) -> Facts:
        """An item as queries see it; but for its parent, which follows from the claims of all."""
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
    """A value with its references as they lead."""
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
        """Take what items say now, an empty `new` for no fork: where something led, or leads, that leads elsewhere."""
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
    return Fork(bytes(item.id), item.forked_to, b"" if item.view is None else item.view.key)


def said_by(facts: Facts) -> Fork:
    return Fork(facts.id, facts.forked_to, facts.view_key)


def forks_of(items: Iterable[Facts]) -> KnownForks:
    """The forks of all items of a party."""
    every = {facts.id: facts for facts in items}
    return KnownForks(said_by(facts)._replace(here=facts.forked_to in every) for facts in every.values())
