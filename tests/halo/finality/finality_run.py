"""One random election among many devices: partitions, loss, crashes and liars, all from one seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

from tests.halo.finality.finality import Case, History, Stage, Word

from antiphon.halo.finality.epoch_chain import EpochChain

HEARING = (0.1, 0.3, 0.8)  # how likely one hears another
Lengths = tuple[int, ...]  # how much is held of each feed
IMPATIENCE = (0.01, 0.05, 0.3)  # how likely one who can do nothing else opens a term, or follows who did


class Split(AssertionError):
    """Two devices stand on different snapshots, or nobody can go on."""


class Run:
    """Each device holds what it has heard; what it says is drawn from what the rules allow."""

    def __init__(self, seed: int, case: Case) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.impatience = self.random.choice(IMPATIENCE)
        self.hearing = self.random.choice(HEARING)
        self.stage = Stage(case)
        self.history = self.stage.empty()
        count = len(self.stage.feeds)
        self.holds: list[Lengths] = [(0,) * count for _ in range(count)]  # liars hold something in each of their feeds
        self.side = [0] * count  # who is on one side of a partition hears each other
        self.final: list[bytes] = []
        self.words = self.crashes = self.partitions = 0

    def play(self, steps: int) -> None:
        for _ in range(steps):
            chance = self.random.random()
            at = self.random.randrange(len(self.holds))
            if chance < 0.50:
                self._hear(at)
            elif chance < 0.95:
                self._speak(at)
            elif chance < 0.98:
                self._crash(at)
            else:
                self.partitions += 1
                self.side = [self.random.randrange(self.random.choice((1, 2, 3))) for _ in self.side]

    # -- steps

    def _hear(self, at: int) -> None:
        """Others tell one what they hold: each feed up to some place, for the rest is lost, and so are some of them."""
        for other, side in enumerate(self.side):
            if side == self.side[at] and self.random.random() < self.hearing:
                whole = self.random.random() < 0.7
                told = (length if whole else self.random.randint(0, length) for length in self.holds[other])
                self.holds[at] = self._closed(map(max, self.holds[at], told), self.holds[at])

    def _closed(self, wanted: Iterable[int], held: Lengths) -> Lengths:
        """As much as is held then with all that it rests on: other blocks wait."""
        lengths = list(wanted)
        moved = True
        while moved:
            moved = False
            for feed, length in enumerate(lengths):
                for at in range(held[feed], length):
                    seen = self.history[feed][at].seen
                    if any(seen[other] > lengths[other] for other in range(len(lengths)) if other != feed):
                        lengths[feed], moved = at, True
                        break
        return tuple(lengths)

    def _crash(self, at: int) -> None:
        """What it wrote is left, and what that rests on; what it heard since is forgotten."""
        self.crashes += 1
        own = tuple(len(words) if feed == at else 0 for feed, words in enumerate(self.history))
        self.holds[at] = tuple(map(max, own, *(word.seen for word in self.history[at]), own))

    def _speak(self, at: int) -> None:
        part = self._part(at)
        chain = self.stage.chain(part)
        self._judge(chain)
        words = list(self.stage.says(part, chain, at))
        endorsements = [word for word in words if word.kind == "endorse"]
        others = [word for word in words if word.kind != "endorse"]
        if others and self.random.random() > self.impatience / 4:
            self._say(at, self.random.choice(others))
        elif endorsements and self.random.random() < self.impatience:
            self._say(at, self.random.choice(self._sensible(part, endorsements)))

    def _sensible(self, part: History, words: list[Word]) -> list[Word]:
        """Mostly for whom others have endorsed, and in no term far beyond: else most runs would be of nothing else."""
        number, lowest = words[0].number, min(word.term for word in words)
        known = {
            (word.term, word.whom)
            for word in itertools.chain(*part)
            if word.kind == "endorse" and word.number == number
        }
        joined = [word for word in words if (word.term, word.whom) in known]
        near = [word for word in words if word.term <= max(lowest, max((term for term, _ in known), default=0))]
        return joined if joined and self.random.random() < 0.9 else near

    def _say(self, at: int, word: Word) -> None:
        self.words += 1
        said = word._replace(seen=self.holds[at])
        self.history = (*self.history[:at], (*self.history[at], said), *self.history[at + 1 :])
        self.holds[at] = tuple(length + (feed == at) for feed, length in enumerate(self.holds[at]))

    def _part(self, at: int) -> History:
        return tuple(words[:length] for words, length in zip(self.history, self.holds[at], strict=True))

    # -- what must hold

    def _judge(self, chain: EpochChain) -> None:
        """What anybody takes for final at any time is the same."""
        told = [epoch.snapshot for epoch in chain.final]
        if chain.conflict or any(a != b for a, b in zip(told, self.final, strict=False)):
            raise Split(f"seed {self.seed}, {self.stage.case}: {chain.conflict or 'two snapshots are final'}")
        self.final = max(self.final, told, key=len)

    def heal(self) -> None:
        """All hear all; then the honest can make the next number final, however things stand."""
        lengths = tuple(map(len, self.history))
        for at in self.stage.honest:
            self._judge(self.stage.chain(self._part(at)))
        self._judge(self.stage.chain(self.history))
        if len(self.final) == len(self.stage.case.terms):
            return
        self.holds = [lengths] * len(self.holds)
        before = len(self.final)
        self._attest_all()
        number, term = before + 1, 1 + max((word.term for word in itertools.chain(*self.history)), default=0)
        if len(self.final) == before:
            members = self.stage.chain(self.history).open.config.attesters
            whom = self.random.choice([at for at in self.stage.honest if self.stage.devices[at] in members])
            for at in self.stage.honest:
                chain = self.stage.chain(self._part(at))
                self._take(at, self.stage.endorses(chain, self.stage.devices[at], term, whom))
            chain = self.stage.chain(self._part(whom))
            self._take(whom, self.stage.declares(self._part(whom), chain, self.stage.devices[whom], term))
            self._attest_all()
        if len(self.final) == before:
            raise Split(f"seed {self.seed}, {self.stage.case}: number {number} comes to no end")

    def _attest_all(self) -> None:
        for at in self.stage.honest * (2 if self.stage.case.liars else 1):
            part = self._part(at)
            chain = self.stage.chain(part)
            self._take(at, self.stage.attests(part, chain, self.stage.devices[at]))
        self._judge(self.stage.chain(self.history))

    def _take(self, at: int, words: Iterable[Word]) -> None:
        for word in itertools.islice(words, 1):
            self._say(at, word)
            self.holds = [tuple(map(len, self.history))] * len(self.holds)
