"""Attack 1, runaway lamports: fork a feed, and let another advance past the fork with any lamport (rule 23).

Each block lifted the party's lamports by 2³², and after two of them nobody could write, invite, revoke or declare.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.equivocator import Equivocator, meet, waits, works
from tests.party.epochs.epoch_acts import note

from antiphon.feed.header import Entry
from antiphon.feed.limits import LAMPORT_MAX
from antiphon.feed.span import Span
from antiphon.testing.peers import Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path / "peers") as made:
        made.add("alice")
        made.add("bob")
        yield made


def climb(writer: SpanWriter, fork: Span) -> list[Span]:
    """Blocks of another feed that claim to have seen far beyond a fork."""
    made = []
    for step in range(1, 4):
        seen = Entry(bytes(fork.feed), fork.end + step, min(LAMPORT_MAX - 9, step << 38), bytes([step]) * 32)
        made.append(writer.write(1, seen=[seen]))
    return made


@pytest.mark.parametrize("control", [True, False], ids=["control", "data"])
def test_nobody_believes_a_lamport_beyond_a_fork(peers: Peers, control: bool) -> None:
    mallory = Equivocator(peers)
    alice, bob = peers.all
    if control:
        one, other = mallory.admits(mallory.control(1), "x"), mallory.admits(mallory.control(2), "y")
    else:
        one, other = mallory.pen(seed=1).write(1), mallory.pen(seed=2).write(2)
    steps = climb(mallory.pen(mallory.second), one)
    for peer, branch in ((alice, one), (bob, other)):
        peer.take([branch, *steps])
    alice.take([other])
    bob.take([one])
    meet(peers)

    works(peers)

    for peer in peers.all:
        assert all(record.lamport < 1_000 for record in peer.store.feeds(mallory.party) if record.writable)
        assert waits(peer) == [bytes(mallory.second.key)]
    dave = peers.add("dave")
    meet(peers)
    works(peers)
    assert waits(dave) == [bytes(mallory.second.key)]
    assert note(dave).value["title"] == "note"


def test_a_lamport_costs_its_writer_a_block_for_each_step(peers: Peers) -> None:
    """A branch that is shown lifts the lamport by the number of its blocks, and by no more."""
    mallory = Equivocator(peers)
    alice, bob = peers.all
    long, short = mallory.pen(seed=1).write(40), mallory.pen(seed=2).write(1)
    alice.take([short])
    bob.take([long])
    written = note(bob, "after forty blocks")
    meet(peers)
    assert alice.party.item(written.id).value["title"] == "after forty blocks"
    assert waits(alice) == waits(bob) == []
    top = max(record.lamport for record in bob.store.feeds(mallory.party))
    assert top < 40 + 40
    works(peers)
