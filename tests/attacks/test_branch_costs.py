"""What branches cost those who keep them: each block is looked at, and read, about once (rule 23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.equivocator import Equivocator
from tests.party.epochs.epoch_acts import member, note

from antiphon.feed.branches import Branches
from antiphon.feed.header import Entry
from antiphon.halo.credentials.claims import Role
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peers
from antiphon.testing.spans import Forged

COUNT = 30


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path / "peers") as made:
        for name in ("alice", "bob"):
            made.add(name)
        yield made


class Calls(Counter[str]):
    """Counts the calls of methods that go on working."""

    def of(self, owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        method = getattr(owner, name)

        def counted(*args: Any, **named: Any) -> Any:
            self[name] += 1
            return method(*args, **named)

        monkeypatch.setattr(owner, name, counted)


def nowhere(feed: bytes, seq: int, number: int) -> Entry:
    return Entry(feed, seq, 1, bytes([number]) * 32)


@pytest.mark.parametrize("seq", [10_000, 0], ids=["far", "other branch"])
@pytest.mark.parametrize("control", [False, True], ids=["data", "control"])
def test_blocks_that_wait_are_not_looked_at_with_each_message(
    peers: Peers, monkeypatch: pytest.MonkeyPatch, seq: int, control: bool
) -> None:
    """Mallory's branch has many blocks that name a block of Bob's which nobody has; Bob goes on writing."""
    mallory, (alice, bob) = Equivocator(peers), peers.all
    member(alice).admit(bob.key, [Role.OWNER])
    note(bob)
    peers.sync()
    writer = member(bob).control if control else member(bob).open_data_feed()
    assert writer is not None
    named = bytes(writer.feed)
    alice.take([mallory.pen(seed=1).write(1)])
    branch = mallory.pen(seed=2)
    spans = [branch.forge(Forged(advance=(nowhere(named, seq, at),))) for at in range(COUNT)]
    alice.store.ingest_branch(spans)
    alice.party.process()
    looks = Calls()
    looks.of(Branches, "show", monkeypatch)
    for number in range(COUNT):
        if control:
            member(bob).admit(pair_of(f"guest {number}").key, [Role.READER])
        else:
            note(bob)
        alice.take(bob.ranges(alice.lengths()))
    assert looks["show"] <= COUNT
