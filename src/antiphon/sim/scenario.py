"""`Scenario`: all that a run is made from. Acts are values, so that a failing run can be shrunk by leaving some out."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from antiphon.core.errors import InvalidInput
from antiphon.sim.network import CALM, Weather

PEERS_MAX = 200
PACE_MS_MAX = 800
MESSAGES_MANY = 1_000
NAMES = (
    "alice", "bob", "carol", "dora", "emil", "frida", "georg", "hanna", "ivan", "jana", "karl", "lena", "max", "nora",
    "otto", "paula", "quirin", "rosa", "simon", "tina", "udo", "vera", "willi", "xenia", "yara", "zeno",
)  # fmt: skip


class Fault(StrEnum):
    """What may go wrong."""

    LOSS = "loss"  # messages are lost
    REPEAT = "repeat"  # they come twice
    DELAY = "delay"  # they are late, and overtake each other
    PARTS = "parts"  # the network falls apart, and heals
    SLEEP = "sleep"  # a peer hears nothing for a long time, and writes meanwhile
    CRASHES = "crashes"  # peers stop anywhere, and start again; unsynced writes are lost, or torn
    FULL = "full"  # a disk takes no more for a while
    SKEW = "skew"  # clocks are off
    JOINS = "joins"  # peers join late
    REVOKES = "revokes"  # members are revoked, and go on writing
    LIARS = "liars"  # a member lies in every way that is known


ALL_FAULTS = frozenset(Fault)


class What(StrEnum):
    """What happens in an act."""

    WRITE = "write"
    ADMIT = "admit"
    REVOKE = "revoke"
    PART = "part"
    HEAL = "heal"
    SLEEP = "sleep"
    WAKE = "wake"
    CRASH = "crash"
    RESTART = "restart"
    FULL = "full"
    ROOM = "room"
    LIE = "lie"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happens. `seed` decides the rest of it, so it is the same whatever else is left out."""

    at_ms: int
    what: What
    peer: str = ""
    count: int = 1
    seed: int = 0
    groups: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.at_ms:>9}", f"{self.what.value:<8}", self.peer]
        if self.count != 1:
            parts.append(f"× {self.count}")
        if self.groups:
            parts.append(" | ".join(" ".join(group) for group in self.groups))
        return " ".join(parts).rstrip()


@dataclass(frozen=True, slots=True)
class Cast:
    """Who takes part. The first founds the party."""

    names: tuple[str, ...]
    late: frozenset[str] = frozenset()  # join during the run
    liars: frozenset[str] = frozenset()
    attesters: tuple[str, ...] = ()
    pruners: frozenset[str] = frozenset()
    skews_ms: tuple[tuple[str, int], ...] = ()

    @property
    def founder(self) -> str:
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Rules:
    """The party's policy, as far as a scenario chooses it."""

    epoch_messages: int = 0
    silent_ms: int = 4_000
    trust: bool = True  # attesters do not lie; else two thirds must agree, in two rounds
    keep_epochs: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run that is still to be played."""

    seed: int
    cast: Cast
    rules: Rules
    weather: Weather = CALM
    acts: tuple[Act, ...] = ()
    degree: int = 3  # how many neighbours a peer has at least
    pace_ms: int = 20  # after the first of several news, a peer looks at all of them together
    open_items: int = 1_024  # that a peer holds in memory

    def without(self, gone: Iterable[int]) -> Scenario:
        """The same without some of its acts."""
        left_out = set(gone)
        return replace(self, acts=tuple(act for place, act in enumerate(self.acts) if place not in left_out))


def name_of(number: int) -> str:
    names = len(NAMES)
    return NAMES[number] if number < names else f"{NAMES[number % names]}{number // names + 1}"


def make(
    seed: int,
    *,
    peers: int = 4,
    messages: int = 60,
    epochs: int = 2,
    faults: Iterable[Fault] = ALL_FAULTS,
    liars: int | None = None,
) -> Scenario:
    """The scenario of a seed. Which of the allowed faults are in it, and when, the seed decides."""
    if not 1 <= peers <= PEERS_MAX:
        raise InvalidInput(f"a simulation has 1 to {PEERS_MAX} peers, not {peers}")
    if messages < 0 or epochs < 0:
        raise InvalidInput("the numbers of messages and epochs are not negative")
    return _Maker(seed, peers, messages, epochs, frozenset(faults), liars).scenario()


class _Maker:
    def __init__(
        self, seed: int, peers: int, messages: int, epochs: int, faults: frozenset[Fault], liars: int | None
    ) -> None:
        self._chance = random.Random(f"scenario {seed}")  # noqa: S311
        self._seed = seed
        self._names = tuple(map(name_of, range(peers)))
        self._messages = messages
        self._epochs = epochs
        self._faults = faults
        self._liars = liars
        self._length_ms = 4_000 + 40 * min(messages, 200) + messages + self._chance.randrange(4_000)
        self._acts: list[Act] = []

    def scenario(self) -> Scenario:
        cast = self._cast()
        self._write(cast)
        self._trouble(cast)
        acts = tuple(sorted(self._acts, key=lambda act: (act.at_ms, act.what.value, act.peer, act.seed)))
        pace_ms = min(PACE_MS_MAX, max(20, self._messages // 10))  # as busy peers do
        rules = Rules(epoch_messages=self._threshold(pace_ms), trust=not cast.liars & set(cast.attesters))
        open_items = 1_024 if self._messages > MESSAGES_MANY else self._chance.choice((8, 64, 1_024))
        return Scenario(self._seed, cast, rules, self._weather(), acts, pace_ms=pace_ms, open_items=open_items)

    def _threshold(self, pace_ms: int) -> int:
        """How many messages are an epoch. In a busy party more of them come until whoever is to declare it looks."""
        if not self._epochs:
            return 0
        share = self._messages // self._epochs
        late = min(share // 2, self._messages * 2 * pace_ms // self._length_ms)
        return max(6, share - 2 - late)

    def _has(self, fault: Fault, likely: float = 0.6) -> bool:
        """Each kind is in some runs and not in others, so that they are met alone and together."""
        drawn = self._chance.random() < likely
        return drawn and fault in self._faults

    def _cast(self) -> Cast:
        chance, others = self._chance, self._names[1:]
        late = chance.sample(others, chance.randint(1, max(1, len(others) // 3))) if len(others) > 1 else []
        late = late if self._has(Fault.JOINS) else []
        steady = [name for name in self._names if name not in late]
        liars: list[str] = []
        if len(steady) > 2 and self._has(Fault.LIARS):
            most = max(1, len(steady) // 4) if self._liars is None else self._liars
            liars = chance.sample(steady[1:], min(most, len(steady) - 2))
        honest = [name for name in steady if name not in liars]
        attesters = tuple(sorted(chance.sample(honest, min(len(honest), chance.choice((1, 3, 3, 5))))))
        pruners = frozenset(name for name in self._names if chance.random() < 0.4)
        skews = [(name, chance.randint(-60_000, 60_000)) for name in self._names]
        skewed = tuple(skews) if self._has(Fault.SKEW) else ()
        return Cast(self._names, frozenset(late), frozenset(liars), attesters, pruners, skewed)

    def _weather(self) -> Weather:
        chance = self._chance
        loss, repeat = chance.uniform(0.01, 0.3), chance.uniform(0.01, 0.3)
        slow = chance.choice((200, 1_000, 3_000))
        return Weather(
            (1, slow) if self._has(Fault.DELAY) else (5, 50),
            loss if self._has(Fault.LOSS) else 0.0,
            repeat if self._has(Fault.REPEAT) else 0.0,
        )

    def _at(self) -> int:
        return self._chance.randrange(self._length_ms)

    def _add(self, at_ms: int, what: What, peer: str = "", count: int = 1, groups: Iterable[list[str]] = ()) -> None:
        parts = tuple(tuple(sorted(group)) for group in groups)
        self._acts.append(Act(at_ms, what, peer, count, self._chance.randrange(1 << 32), parts))

    def _write(self, cast: Cast) -> None:
        left, sizes = self._messages, (1, 1, 2, 3, 5, 8)
        if left > MESSAGES_MANY:
            sizes = (1, 2, 5, 10, 20, 40)  # people who write so much import and paste
        while left > 0:
            count = min(left, self._chance.choice(sizes))
            self._add(self._at(), What.WRITE, self._chance.choice(self._names), count)
            left -= count

    def _trouble(self, cast: Cast) -> None:
        chance, names, length = self._chance, list(self._names), self._length_ms
        for name in sorted(cast.late):
            self._add(chance.randrange(length // 4, length), What.ADMIT, name)
        if len(names) > 1 and self._has(Fault.PARTS):
            for _ in range(chance.randint(1, 3)):
                begin = self._at()
                shuffled = chance.sample(names, len(names))
                cut = chance.randint(1, len(names) - 1)
                self._add(begin, What.PART, groups=(shuffled[:cut], shuffled[cut:]))
                self._add(begin + chance.randint(500, length // 2), What.HEAL)
        self._each(Fault.SLEEP, What.SLEEP, What.WAKE, names[1:], length)
        self._each(Fault.FULL, What.FULL, What.ROOM, names, length // 4)
        if self._has(Fault.CRASHES):
            for _ in range(chance.randint(1, 2 + len(names) // 2)):
                self._add(self._at(), What.CRASH, chance.choice(names), chance.choice((0, 0, 1, 2, 5)))
        if len(names) > 2 and self._has(Fault.REVOKES):
            self._add(chance.randrange(length // 3, length), What.REVOKE, self._member(cast))
        for liar in sorted(cast.liars):
            for _ in range(chance.randint(2, 6)):
                self._add(self._at(), What.LIE, liar)

    def _each(self, fault: Fault, begin: What, end: What, names: list[str], longest: int) -> None:
        chance = self._chance
        if names and self._has(fault):
            for name in chance.sample(names, chance.randint(1, max(1, len(names) // 3))):
                at = self._at()
                self._add(at, begin, name)
                self._add(at + chance.randint(200, max(201, longest)), end, name)

    def _member(self, cast: Cast) -> str:
        """Whom to revoke: nobody whose attestations the party waits for."""
        fit = [name for name in cast.names[1:] if name not in cast.attesters]
        return self._chance.choice(fit or list(cast.names[1:]))
