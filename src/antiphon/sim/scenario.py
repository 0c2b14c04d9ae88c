"""`Scenario`: the complete input of a run, drawn from a seed. Acts are values, so a failing run shrinks by leaving some
out.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from antiphon.core.errors import InvalidInput
from antiphon.sim.network import CALM, Weather
from antiphon.sim.world import Limits

PEERS_MAX = 200
PACE_MS_MAX = 800
SILENT_MS = 4_000  # the silence after which other attesters take over an epoch
PATIENCE = 15  # multiples of the pace: a declaration travels to attesters over several peers, and votes come back
SKEW_MS = 300_000  # allowed by policy
MESSAGES_MANY = 1_000
NAMES = (
    "alice", "bob", "carol", "dora", "emil", "frida", "georg", "hanna", "ivan", "jana", "karl", "lena", "max", "nora",
    "otto", "paula", "quirin", "rosa", "simon", "tina", "udo", "vera", "willi", "xenia", "yara", "zeno",
)  # fmt: skip


class Fault(StrEnum):
    """The kinds of faults."""

    LOSS = "loss"  # packets are lost, and so come late; connections break
    REPEAT = "repeat"  # somebody on the way sends bytes again, and whole connections
    DELAY = "delay"  # bytes are delayed, and those behind them
    PARTS = "parts"  # the network is partitioned, and heals
    SLEEP = "sleep"  # a peer is cut off for a long time, and keeps writing
    CRASHES = "crashes"  # peers crash anywhere, and restart; unsynced writes are lost, or torn
    FULL = "full"  # a disk is full for a while
    SKEW = "skew"  # clocks are wrong, some by more than policy allows
    JOINS = "joins"  # peers join late
    REVOKES = "revokes"  # members are revoked, and keep writing; some are admitted again
    LIARS = "liars"  # byzantine members attack in every known way; attesters too, if policy tolerates that
    SLOW = "slow"  # a peer works and answers slowly for a while
    POLICY = "policy"  # the policy changes: attesters, size of an epoch, retention
    ERASES = "erases"  # messages are erased


ALL_FAULTS = frozenset(Fault)


class ActKind(StrEnum):
    """The kinds of acts."""

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
    SLOW = "slow"
    QUICK = "quick"
    POLICY = "policy"
    ERASE = "erase"


@dataclass(frozen=True, slots=True)
class Rules:
    """The part of the party's policy that a scenario chooses."""

    epoch_messages: int = 0
    silent_ms: int = SILENT_MS
    trust: bool = True  # no attester is byzantine; else two thirds must agree, in two rounds
    keep_epochs: int = 0
    deleted_epochs: int = 0

    def quorum(self, attesters: int) -> int:
        """The number of attesters that must agree."""
        return attesters // 2 + 1 if self.trust else attesters * 2 // 3 + 1


@dataclass(frozen=True, slots=True)
class Act:
    """One act of a scenario. `seed` decides its details, so the act is the same if other acts are left out."""

    at_ms: int
    what: ActKind
    peer: str = ""
    count: int = 1
    seed: int = 0
    groups: tuple[tuple[str, ...], ...] = ()  # the groups of a partition; for a policy, the attesters
    rules: Rules | None = None  # for a policy

    def __str__(self) -> str:
        parts = [f"{self.at_ms:>9}", f"{self.what.value:<8}", self.peer]
        if self.count != 1:
            parts.append(f"× {self.count}")
        if self.groups:
            parts.append(" | ".join(" ".join(group) for group in self.groups))
        return " ".join(parts).rstrip()


@dataclass(frozen=True, slots=True)
class Cast:
    """The peers of a run and their roles. The first one founds the party."""

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
class Scenario:
    """The complete input of a run."""

    seed: int
    cast: Cast
    rules: Rules
    weather: Weather = CALM
    acts: tuple[Act, ...] = ()
    degree: int = 3  # the least number of neighbours of a peer
    pace_ms: int = 20  # the time for which a peer collects news before it works on them together
    open_items: int = 1_024  # items that a peer holds in memory
    faults: frozenset[Fault] = frozenset()  # the kinds of faults that occur

    @property
    def limits(self) -> Limits:
        """The limits of a run of this size."""
        written = sum(act.count for act in self.acts if act.what is ActKind.WRITE)
        return Limits.of(len(self.cast.names), written)

    def without(self, gone: Iterable[int]) -> Scenario:
        """The scenario without the acts at these indexes."""
        left_out = set(gone)
        return replace(self, acts=tuple(act for place, act in enumerate(self.acts) if place not in left_out))


def name_of(number: int) -> str:
    """The name of a peer by its number."""
    names = len(NAMES)
    return NAMES[number] if number < names else f"{NAMES[number % names]}{number // names + 1}"


def make(
    seed: int,
    *,
    peers: int = 4,
    messages: int = 60,
    epochs: int = 2,
    faults: Iterable[Fault] = ALL_FAULTS,
    pace_ms: int = 0,
) -> Scenario:
    """Make the scenario of a seed. The seed decides which of the allowed faults occur, and when.

    All faults are drawn in any case, so with fewer faults allowed the scenario is the same with less in it. The pace of
    peers depends on the number of messages, unless `pace_ms` is given. The size of an epoch and the time of silence
    depend on the pace.
    """
    if not 1 <= peers <= PEERS_MAX:
        raise InvalidInput(f"a simulation has 1 to {PEERS_MAX} peers, not {peers}")
    if messages < 0 or epochs < 0:
        raise InvalidInput("the numbers of messages and epochs are not negative")
    return _Maker(seed, peers, messages, epochs, frozenset(faults), pace_ms).scenario()


class _Maker:
    """Draws all faults, each with its own random generator, and leaves out those that are not allowed."""

    def __init__(
        self, seed: int, peers: int, messages: int, epochs: int, allowed: frozenset[Fault], pace_ms: int = 0
    ) -> None:
        self._chance = random.Random(f"scenario {seed}")  # noqa: S311
        self._dice = {fault: random.Random(f"{fault.value} {seed}") for fault in Fault}  # noqa: S311
        # Each kind occurs in some runs only, so that kinds are tested alone and together.
        self._drawn = {fault for fault in Fault if self._dice[fault].random() < _LIKELY and peers > _ALONE[fault]}
        self._allowed = allowed
        self._seed = seed
        self._names = tuple(map(name_of, range(peers)))
        self._messages = messages
        self._epochs = epochs
        self._length_ms = 4_000 + 40 * min(messages, 200) + messages + self._chance.randrange(4_000)
        self._pace_ms = pace_ms or min(PACE_MS_MAX, max(20, messages // 10))  # as busy peers do
        self._acts: list[Act] = []

    def scenario(self) -> Scenario:
        chance = self._chance
        pace_ms = self._pace_ms
        open_items = 1_024 if self._messages > MESSAGES_MANY else chance.choice((8, 64, 1_024))
        self._rules = Rules(self._threshold(pace_ms), max(SILENT_MS, PATIENCE * pace_ms))
        if Fault.POLICY in self._drawn:
            others = self._other_rules()
            self._rules = self._rules if Fault.POLICY not in self._allowed else others
        cast = self._cast()
        self._write()
        self._trouble(cast)
        acts = tuple(sorted(self._acts, key=lambda act: (act.at_ms, act.what.value, act.peer, act.seed)))
        return Scenario(
            self._seed,
            replace(
                cast,
                late=cast.late if Fault.JOINS in self._allowed else frozenset(),
                liars=cast.liars if Fault.LIARS in self._allowed else frozenset(),
                skews_ms=cast.skews_ms if Fault.SKEW in self._allowed else (),
            ),
            self._rules if Fault.LIARS in self._allowed else replace(self._rules, trust=True),
            self._weather(),
            acts,
            pace_ms=pace_ms,
            open_items=open_items,
            faults=frozenset(self._drawn & self._allowed),
        )

    def _threshold(self, pace_ms: int) -> int:
        """The number of messages after which an epoch is due. In a busy party more arrive before the declarer works."""
        if not self._epochs:
            return 0
        share = self._messages // self._epochs
        late = min(share // 2, self._messages * 2 * pace_ms // self._length_ms)
        return max(6, share - 2 - late)

    # -- peers

    def _cast(self) -> Cast:
        chance, others = self._chance, self._names[1:]
        late: list[str] = []
        if Fault.JOINS in self._drawn:
            dice = self._dice[Fault.JOINS]
            late = dice.sample(others, dice.randint(1, max(1, len(others) // 3)))
        steady = [name for name in self._names if name not in late]
        liars = self._liars(steady)
        honest = [name for name in steady if name not in liars]
        count = chance.choice((1, 3, 3, 5))
        if self._rules.trust:
            attesters = chance.sample(honest, min(len(honest), count))
        else:  # enough for the byzantine ones to be less than a third
            attesters = [*liars, *chance.sample(honest, min(len(honest), max(3 * len(liars), count - len(liars))))]
        pruners = frozenset(name for name in self._names if chance.random() < 0.4)
        cast = Cast(self._names, frozenset(late), frozenset(liars), tuple(sorted(attesters)), pruners)
        self._revoked = self._whom_to_revoke(cast) if Fault.REVOKES in self._drawn else []
        return replace(cast, skews_ms=self._skews(cast))

    def _liars(self, steady: list[str]) -> list[str]:
        """The byzantine peers, sometimes attesters among them. The founder, who is the authority, is always honest."""
        if Fault.LIARS not in self._drawn or len(steady) < 3:
            self._drawn.discard(Fault.LIARS)
            return []
        dice, most = self._dice[Fault.LIARS], max(1, len(steady) // 4)
        liars = dice.sample(steady[1:], min(most, len(steady) - 2))
        if len(steady) > 3 * len(liars) and dice.random() < 0.5:
            self._rules = replace(self._rules, trust=False)
        return liars

    def _spare(self, cast: Cast) -> int:
        """The number of further attesters that may fail permanently without stopping epochs."""
        attesters = len(cast.attesters)
        return attesters - self._rules.quorum(attesters) - len(cast.liars & set(cast.attesters))

    def _whom_to_revoke(self, cast: Cast) -> list[str]:
        """The peers to revoke: no attester that the quorum needs."""
        spare = self._spare(cast) > 0
        fit = [name for name in cast.names[1:] if spare or name not in cast.attesters]
        best = [name for name in fit if name not in cast.attesters]
        if not fit:
            self._drawn.discard(Fault.REVOKES)
        return [self._dice[Fault.REVOKES].choice(best or fit)] if fit else []

    def _skews(self, cast: Cast) -> tuple[tuple[str, int], ...]:
        """The skews of clocks, sometimes of hours, but not for attesters that the quorum needs."""
        if Fault.SKEW not in self._drawn:
            return ()
        dice, spare = self._dice[Fault.SKEW], self._spare(cast) - len(set(self._revoked) & set(cast.attesters))
        skews = []
        for name in cast.names:
            skew_ms, hours = dice.randint(-60_000, 60_000), dice.choice((-3, -1, 1, 3)) * 3_600_000
            if dice.random() < 0.25 and (name not in cast.attesters or spare > 0):
                spare -= name in cast.attesters
                skew_ms = hours
            skews.append((name, skew_ms))
        return tuple(skews)

    # -- acts

    def _weather(self) -> Weather:
        loss, repeat, delay = (self._dice[fault] for fault in (Fault.LOSS, Fault.REPEAT, Fault.DELAY))
        here = self._drawn & self._allowed
        return Weather(
            (1, delay.choice((200, 1_000, 3_000))) if Fault.DELAY in here else CALM.delay_ms,
            loss.uniform(0.01, 0.3) if Fault.LOSS in here else 0.0,
            repeat.uniform(0.01, 0.3) if Fault.REPEAT in here else 0.0,
        )

    def _write(self) -> None:
        chance, left, sizes = self._chance, self._messages, (1, 1, 2, 3, 5, 8)
        if left > MESSAGES_MANY:
            sizes = (1, 2, 5, 10, 20, 40)  # users who write so much import and paste
        while left > 0:
            count = min(left, chance.choice(sizes))
            at, name = chance.randrange(self._length_ms), chance.choice(self._names)
            self._acts.append(Act(at, ActKind.WRITE, name, count, chance.randrange(1 << 32)))
            left -= count

    def _add(self, fault: Fault, at_ms: int, what: ActKind, peer: str = "", **more: Any) -> None:
        seed = self._dice[fault].randrange(1 << 32)
        if fault in self._allowed:
            self._acts.append(Act(at_ms, what, peer, seed=seed, **more))

    def _trouble(self, cast: Cast) -> None:
        names, length = list(self._names), self._length_ms
        for name in sorted(cast.late):
            self._add(Fault.JOINS, self._dice[Fault.JOINS].randrange(length // 4, length), ActKind.ADMIT, name)
        if Fault.PARTS in self._drawn:
            self._part()
        self._each(Fault.SLEEP, ActKind.SLEEP, ActKind.WAKE, names[1:], length)
        self._each(Fault.FULL, ActKind.FULL, ActKind.ROOM, names, length // 4)
        self._each(Fault.SLOW, ActKind.SLOW, ActKind.QUICK, names, length, (10, 50, 50, 200))
        for name in self._revoked:
            dice = self._dice[Fault.REVOKES]
            at = dice.randrange(length // 4, length)
            self._add(Fault.REVOKES, at, ActKind.REVOKE, name)
            if dice.random() < 0.5:
                self._add(Fault.REVOKES, dice.randrange(at, length + 1), ActKind.ADMIT, name)
        for liar in sorted(cast.liars):
            for _ in range(self._dice[Fault.LIARS].randint(2, 6)):
                self._add(Fault.LIARS, self._dice[Fault.LIARS].randrange(length), ActKind.LIE, liar)
        for at in self._times(Fault.CRASHES, 2 + len(names) // 2):
            dice = self._dice[Fault.CRASHES]
            self._add(Fault.CRASHES, at, ActKind.CRASH, dice.choice(names), count=dice.choice((0, 0, 1, 2, 5)))
        for at in self._times(Fault.ERASES, 4):
            dice = self._dice[Fault.ERASES]
            self._add(Fault.ERASES, at, ActKind.ERASE, dice.choice((names[0], dice.choice(names))))
        for at in self._times(Fault.POLICY, 2):
            self._add(Fault.POLICY, at, ActKind.POLICY, groups=self._attesters(cast), rules=self._other_rules())

    def _times(self, fault: Fault, most: int) -> list[int]:
        if fault not in self._drawn:
            return []
        dice = self._dice[fault]
        return [dice.randrange(self._length_ms) for _ in range(dice.randint(1, most))]

    def _part(self) -> None:
        dice, names = self._dice[Fault.PARTS], self._names
        for begin in self._times(Fault.PARTS, 3):
            shuffled = dice.sample(names, len(names))
            cut = dice.randint(1, len(names) - 1)
            groups = tuple(sorted(shuffled[:cut])), tuple(sorted(shuffled[cut:]))
            self._add(Fault.PARTS, begin, ActKind.PART, groups=groups)
            self._add(Fault.PARTS, begin + dice.randint(500, self._length_ms // 2), ActKind.HEAL)

    def _each(
        self, fault: Fault, begin: ActKind, end: ActKind, names: list[str], longest: int, counts: Sequence[int] = (1,)
    ) -> None:
        """Add a fault with a begin and an end for some peers."""
        dice = self._dice[fault]
        if fault in self._drawn:
            for name in dice.sample(names, dice.randint(1, max(1, len(names) // 3))):
                at = dice.randrange(self._length_ms)
                self._add(fault, at, begin, name, count=dice.choice(counts))
                self._add(fault, at + dice.randint(200, max(201, longest)), end, name)

    def _other_rules(self) -> Rules:
        dice = self._dice[Fault.POLICY]
        return replace(
            self._rules,
            epoch_messages=max(6, self._rules.epoch_messages * dice.choice((1, 2, 3)) // 2) if self._epochs else 0,
            silent_ms=dice.choice((1_500, 4_000, 10_000)),
            keep_epochs=dice.choice((0, 1, 2)),
            deleted_epochs=dice.choice((0, 1, 2)),
        )

    def _attesters(self, cast: Cast) -> tuple[tuple[str, ...]]:
        """The attesters of another policy: other ones if all are trusted, and only peers that can attest."""
        off = {name for name, skew_ms in cast.skews_ms if abs(skew_ms) > SKEW_MS}
        useless = off | cast.late | cast.liars | set(self._revoked)
        fit = [name for name in cast.names if name not in useless]
        dice = self._dice[Fault.POLICY]
        if not self._rules.trust or not fit:
            return (cast.attesters,)
        return (tuple(sorted(dice.sample(fit, min(len(fit), dice.choice((1, 3, 5)))))),)


#: A fault needs more peers than this.
_ALONE = dict.fromkeys(Fault, 0) | {
    Fault.PARTS: 1, Fault.SLEEP: 1, Fault.JOINS: 2, Fault.LIARS: 2, Fault.REVOKES: 2,
}  # fmt: skip
_LIKELY = 0.6
