"""`PartyWriter`: write one party. Members write in turns, are partitioned into sides, and meet again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from antiphon.generate.epochs import EpochMaker
from antiphon.generate.faults import fork, revoke, write_invalid
from antiphon.generate.members import Home, Writer, admit_writers, members_of
from antiphon.generate.memory_feed import MemoryFeed
from antiphon.generate.mutation_parts import Parts
from antiphon.generate.options import Options
from antiphon.generate.report import PartyReport
from antiphon.generate.seeded import BEGIN_MS, LENGTH_MS
from antiphon.generate.sink import Sink
from antiphon.generate.world import SHARED_EACH, Side, World, merge_sides
from antiphon.halo.member.membership import Membership

PHASE_MAX = 4_000  # messages in one phase, after which all sides meet
TURN_MAX = 400  # blocks under one head
TROUBLE_MIN = 60  # messages to items that a party with a revocation or a fork has at least
TROUBLE_BLOCKS_MAX = 50
ITEM_EXPONENT = 1.0
_SPOIL = 1 << 20  # the denominator of the share of bad messages
_MOVES, _DELETES, _NAMES = 6, 10, 16  # upper bounds of a roll below 1,024 that makes a move, a deletion, a name


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to write to one party."""

    index: int
    items: int
    messages: int
    hot: int  # extra messages to its first item
    epochs: int


class PartyWriter:
    """Writes one party, phase by phase."""

    def __init__(
        self,
        home: Home,
        founder: Membership,
        sink: Sink,
        options: Options,
        plan: Plan,
        keeper: Callable[[], EpochMaker] | None,
    ) -> None:
        self._home = home
        self._founder = founder
        self._sink = sink
        self._options = options
        self._plan = plan
        self.made = PartyReport(bytes(founder.party), f"party {plan.index}")
        names = f"{options.seed}/{plan.index}"
        self._chance = random.Random(names)  # noqa: S311
        words = [options.seed & 0xFFFFFFFF, options.seed >> 32, plan.index]
        self._draws = np.random.RandomState(words)  # stable across numpy versions, unlike `default_rng`
        self._world = World(self.made.party, Parts(self._chance), self.made, self._chance, plain=options.plain)
        self._writers = admit_writers(home, founder, sink, self._chance, (options.seed, plan.index), options.writers)
        self._world.people = list(dict.fromkeys(writer.identity for writer in self._writers))
        self._keeper = None if keeper is None or not plan.epochs else keeper()
        self.made.writers = len(self._writers)
        self.made.members = members_of(self._writers) + (self._keeper is not None)
        self._done = 0
        self._prepare()

    def _prepare(self) -> None:
        plan, draws = self._plan, self._draws
        order = draws.permutation(plan.items)
        order[[0, int(np.flatnonzero(order == 0)[0])]] = 0, order[0]  # the first item is the most popular
        self._order = order
        self._popular = np.add.accumulate((np.arange(plan.items) + 1.0) ** -ITEM_EXPONENT)
        self._hot = plan.hot / max(1, plan.messages - plan.items)
        self._phase = max(6, min(PHASE_MAX, plan.messages // 8))
        troubled = self._options.bad > 0 and plan.messages - plan.items >= TROUBLE_MIN and len(self._writers) > 2
        size = max(2, min(TROUBLE_BLOCKS_MAX, plan.messages // 100))
        self._late = size if troubled and plan.index % 2 == 0 else 0
        self._forked = size if troubled and plan.index % 3 == 0 else 0

    # -- the whole party

    def write(self) -> PartyReport:
        """Write all messages of the party, and return the report."""
        total, epochs = self._plan.messages, self._plan.epochs
        due = [total * (nth + 1) // (epochs + 1) for nth in range(epochs)]
        while left := total - self._late - self._forked - self._done:
            self._world.hear(self._founder.machine.entries())
            epoch = bool(due) and self._done >= due[0]
            self._write_phase(min(self._draw_phase(), left), epoch=epoch)
            if epoch:
                del due[0]
            if self._forked and self._done >= total // 3:
                self._fork()
            if self._late and self._done >= total * 2 // 3:
                self._revoke()
        self._sink.flush()
        for _ in due:
            self._epoch()  # the party is so small that one phase wrote all of it
        if self._keeper is not None:
            self._keeper.close()
        kinds = self.made.kinds
        self.made.messages = self._done
        kinds["mutation"] = self._done - sum(kinds.values())
        return self.made

    def _draw_phase(self) -> int:
        return 1 + int(self._chance.random() ** 2 * 2 * self._phase)

    def _fork(self) -> None:
        fork(self._world, self._founder, self._retire(), self._sink, self._forked)
        self._done += self._forked
        self._forked = 0

    def _revoke(self) -> None:
        revoke(self._world, self._founder, self._retire(), self._sink, self._late)
        self._done += self._late
        self._late = 0

    def _retire(self) -> Writer:
        """Remove the last writer, and all devices of the same person, from the writers, and return it."""
        gone = self._writers[-1]
        self._writers = [writer for writer in self._writers if writer.identity != gone.identity]
        return gone

    def _epoch(self) -> None:
        assert self._keeper is not None
        self._sink.flush()
        self.made.cut = self._keeper.epoch()
        self.made.epochs += 1

    # -- one phase

    def _write_phase(self, count: int, *, epoch: bool) -> None:
        chance, writers = self._chance, self._writers
        most = min(3, len(writers), count) if self._world.ids else 1
        number = min(most, max(1 + epoch, int(chance.random() * 1.8 * most)))
        crowd = chance.sample(writers, len(writers))
        rolls, picks = self._draw(count)
        shared = int(chance.random() * SHARED_EACH)
        sides = [Side(self._world, nth, number, shared=shared) for nth in range(number)]
        at = 0
        for nth, side in enumerate(sides):
            stop = count if nth == number - 1 else at + (count - at) // (number - nth)
            self._write_side(side, crowd[nth::number], rolls[at:stop], picks[at:stop])
            at = stop
            if epoch and nth == 0:  # the messages of the other sides arrive after the epoch
                self._epoch()
        merge_sides(self._world, sides)

    def _draw(self, count: int) -> tuple[list[int], list[int]]:
        """Draw, for `count` messages, random numbers and items by popularity."""
        draws, popular = self._draws, self._popular
        places = np.searchsorted(popular, draws.random_sample(count) * popular[-1])
        picks = self._order[np.minimum(places, len(popular) - 1)]
        if self._hot:
            picks[draws.random_sample(count) < self._hot] = 0
        rolls: list[int] = draws.randint(0, 1 << 62, count, dtype=np.int64).tolist()
        return rolls, picks.tolist()

    def _write_side(self, side: Side, writers: list[Writer], rolls: list[int], picks: list[int]) -> None:
        """Write one side of a partition. Writers take turns, and each has seen the turns before it on its side."""
        at, nth = 0, 0
        turn = max(3, min(TURN_MAX, len(rolls) // (2 * len(writers))))
        while at < len(rolls):
            stop = min(len(rolls), at + 1 + int(self._chance.random() * 2 * turn))
            log = writers[nth % len(writers)].log
            log.see(side.view.values())
            self._home.clock.ms = BEGIN_MS + LENGTH_MS * self._done // self._plan.messages
            if stop - at > 4 and self._chance.random() < 0.25:
                middle = at + 2 + int(self._chance.random() * min(6, stop - at - 2))
                log.open_batch()
                self._write_run(side, log, rolls, picks, at, middle, batch=True)
                log.close()
                self.made.batches += 1
                at = middle
            self._write_run(side, log, rolls, picks, at, stop, batch=False)
            entry = log.end()
            assert entry is not None
            side.view[entry.feed] = entry
            at, nth = stop, nth + 1

    def _write_run(
        self, side: Side, log: MemoryFeed, rolls: list[int], picks: list[int], at: int, stop: int, *, batch: bool
    ) -> None:
        """Write the messages of one turn. In a batch no mutation is made from a state: all share one lamport."""
        world, plan, tracked, now_ms = self._world, self._plan, self._world.tracked, self._home.clock.ms
        items, messages, done, hottest = plan.items, plan.messages, self._done, 0
        spoilt = 0 if batch else int(self._options.bad * _SPOIL)
        write, pick, guarded, guard = side.write, side.pick, world.guarded, 0
        for nth in range(at, stop):
            roll = rolls[nth]
            if len(world.ids) * messages <= done * items:
                index = side.create(log)
                guard = index if log.own and not batch and index > 7 and (not guarded or roll & 3 == 0) else 0
                done += 1
                continue
            done += 1
            if guard:
                side.guard(log, guard)
                guard = 0
                continue
            index = pick(picks[nth])
            if guarded and not side.may(log, index):
                index = 0  # item 0 has no access list
            hottest += not index
            act = roll & 1023
            if (roll >> 40) & (_SPOIL - 1) < spoilt:
                write_invalid(side, log, index, roll)
            elif act >= _NAMES and index not in tracked:
                write(log, index, roll)
            elif act < _MOVES:
                side.move(log, index)
            elif act < _DELETES:
                side.delete(log, index, roll)
            elif act < _NAMES or batch:
                side.describe(log, index)
            else:
                side.mutate(log, index, roll, now_ms)
        self._done = done
        self.made.hottest += hottest
