"""Crash safety: a process is killed while it writes. What it acknowledged is there, and nothing torn is served."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from tests.budget import budget
from tests.kill_writer import kill_while_writing

from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.header import Flag
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import drafts

ACKER = Path(__file__).with_name("acker.py")
SEEDS = range(4)
KILLS = budget(12, 500) // len(SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_survives_a_kill(seed: int, tmp_path: Path, alice: KeyPair, party: PublicKey) -> None:
    chance = random.Random(seed)
    acknowledged: dict[str, list[list[int]]] = {}
    for kill in range(KILLS):
        run = f"{seed}-{kill}"
        command = [str(ACKER), str(tmp_path / "store"), run, "1000000"]
        lines = kill_while_writing(command, chance.randrange(1, 60), chance)
        acknowledged[run] = [[int(part) for part in line.split()] for line in lines]

        with FeedStore.open(tmp_path / "store", durable=False) as store:
            bounds = store.verify(alice.key)
            assert (bounds.start, bounds.end) == (0, None)
            check_acknowledged(store, alice.key, {run: acknowledged[run]} if kill < KILLS - 1 else acknowledged)
            check_whole_batches(store, alice.key)
            store.append(alice, party, drafts(3, label="own "), atomic=True)
            assert store.verify(alice.key).length == bounds.length + 3


def check_acknowledged(store: FeedStore, feed: bytes, acknowledged: dict[str, list[list[int]]]) -> None:
    for run, acks in acknowledged.items():
        assert [ack[0] for ack in acks] == list(range(len(acks)))
        for number, first, count, atomic in acks:
            blocks = list(store.read(feed, first, first + count))
            assert len({block.lamport for block in blocks}) == (1 if atomic else count)
            for at, block in enumerate(blocks):
                assert (block.message or b"").startswith(f"{run}.{number} {at}/{count} ".encode())


def check_whole_batches(store: FeedStore, feed: bytes) -> None:
    """Also of what was not acknowledged, each batch is there whole or not at all."""
    counts: dict[bytes, int] = defaultdict(int)
    wanted: dict[bytes, int] = {}
    flags = Flag(0)
    for block in store.read(feed):
        assert bool(flags & Flag.MORE) == bool(block.flags & Flag.CONTINUED)
        flags = block.flags
        name, place, *_ = (block.message or b"").split(b" ")
        if name != b"own":
            counts[name] += 1
            wanted[name] = int(place.split(b"/")[1])
    assert not flags & Flag.MORE
    assert counts == wanted
