"""Law: a party opened with any checkpoint, older or newer than its store, gives every answer as one opened without.

Histories are hostile, of forked feeds, and come into real feed stores in any order, as histories or as branches. Peers
save checkpoints, and open again with any of those that they, or without forks either of them, have saved: a crash may
leave one of another time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.budget import FIRST_SEED, budget
from tests.halo.control.test_checkpoints import LIMITS, ForkedHostile, answers, random_steps

from antiphon.core.errors import Equivocation, MissingBlocks, RefusedBlocks
from antiphon.core.keys import verified_once
from antiphon.feed.block import Block
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.acts.act import read_once
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Policy
from antiphon.testing.parties import Actor


class Forks(ForkedHostile):
    """Bob and perhaps Dave, who writes much that is void, sign two histories; others have seen either."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.twins: list[Actor] = []
        for step in random_steps(chance, chance.choice([15, 30, 50])):
            self.play(step)
        if chance.random() < 0.6:
            self.part()
            for step in random_steps(chance, chance.choice([8, 25])):
                self.apart(step)
            self.twins.append(self.two)
        if chance.random() < 0.4:
            self._double(chance)

    def _double(self, chance: random.Random) -> None:
        dave, alice = self.actors[3], self.actors[0]
        twin = dave.fork()
        for _ in range(chance.randrange(1, 6)):
            self._abuse(chance.choice([dave, twin]), chance.randrange(1, 7), chance.randrange(100))
        alice.write(Policy(keep_epochs=chance.randrange(9)), seen=[twin.written[-1].entry])
        self.twins.append(twin)

    def spans(self, chance: random.Random) -> list[Span]:
        """All spans, those of each branch in their order."""
        queues = [list(actor.raw) for actor in (*self.actors, *self.strangers, *self.twins) if actor.raw]
        found = []
        while queues:
            queue = chance.choice(queues)
            found.append(queue.pop(0))
            queues = [queue for queue in queues if queue]
        return found


class Opened:
    """One peer: a feed store, and a machine that is made again from it."""

    def __init__(self, script: Forks, store: FeedStore) -> None:
        self.script, self.store = script, store
        self.machine = self._made([])
        self._data: set[bytes] = set()

    def _made(self, saved: Iterable[LaneCheckpoint]) -> PartyMachine:
        machine = PartyMachine(self.script.rehearsal.party.key, self.script.rehearsal.genesis_feed)
        found = decode_checkpoints(machine.party, encode_checkpoints(machine.party, saved))
        machine.checkpoints.offer(found, self._blocks)
        return machine

    def _blocks(self, feed: bytes, start: int, stop: int) -> list[Block]:
        return [block for span in self.store.held(feed, start, stop) for block in span.blocks(0, span.count)]

    def take(self, span: Span, *, as_history: bool = True) -> None:
        try:
            if as_history:
                self.store.ingest(span)
                return
        except (Equivocation, MissingBlocks, RefusedBlocks):
            pass
        with suppress(Equivocation, RefusedBlocks):  # it is kept, or known
            self.store.ingest_branch([span])

    def refresh(self) -> None:
        fold_control_feeds(self.machine, self.store, self._data)
        self.machine.checkpoints.withdraw()

    def restart(self, saved: Iterable[LaneCheckpoint]) -> None:
        self.machine, self._data = self._made(saved), set()
        self.refresh()

    def check(self) -> None:
        plain = PartyMachine(self.script.rehearsal.party.key, self.script.rehearsal.genesis_feed)
        fold_control_feeds(plain, self.store)
        assert answers(self.script, self.machine) == answers(self.script, plain)


@pytest.fixture
def small_parts() -> Iterator[None]:
    """Checkpoints of a few acts, and signatures that are checked once."""
    with pytest.MonkeyPatch.context() as patch, verified_once(), read_once():
        patch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + budget(8, 400)))
def test_a_party_opens_alike_with_any_checkpoint(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    for name in LIMITS if seed % 4 else ():
        monkeypatch.setattr(f"antiphon.halo.rights.budgets.{name}", chance.choice([2, 2, 3]))
    script = Forks(chance)
    saved: list[list[LaneCheckpoint]] = [[]]
    known = []
    for name in ("one", "other"):
        with FeedStore.open(tmp_path / name, durable=False) as store:
            peer = Opened(script, store)
            fit = saved if not script.twins else [[]]  # one of another store may know feeds that a branch there names
            for span in script.spans(chance):
                peer.take(span, as_history=chance.random() < 0.8)
                share = chance.random()
                if share < 0.3:
                    peer.refresh()
                if share < 0.2:
                    peer.machine.set_aside(1)
                if share < 0.1:
                    found = peer.machine.checkpoints.collect() or []
                    saved.append(found)
                    fit = [*fit, found]
                if 0.3 < share < 0.34:
                    peer.restart(chance.choice(fit))
                    peer.check()
            for span in script.spans(chance):  # what came too early comes again
                peer.take(span)
            peer.refresh()
            peer.check()
            for _ in range(2):
                peer.restart(chance.choice(saved))
                peer.machine.set_aside(1)
                peer.check()
            known.append((peer.machine.state(), peer.machine.epochs(), sorted(peer.machine.data_feeds())))
    assert known[0] == known[1], "whichever branch is held as history"
