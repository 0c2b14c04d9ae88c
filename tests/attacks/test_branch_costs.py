"""What branches cost those who keep them: each block is looked at, and read, about once (rule 23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.equivocator import Equivocator
from tests.attacks.test_strangers import Stranger
from tests.party.epochs.epoch_acts import member, note

from antiphon.feed.branches import Branches
from antiphon.feed.header import Entry
from antiphon.feed.store import tables
from antiphon.halo.acts.act import Act
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.stray_acts import StrayActs
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, MemberAdmission, Position, Role
from antiphon.halo.rights import budgets
from antiphon.party.engine.branch_geneses import BranchGeneses
from antiphon.testing.parties import pair_of
from antiphon.testing.peers import Peers
from antiphon.testing.spans import Forged, SpanWriter

COUNT = 30


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path / "peers") as made:
        for name in ("alice", "bob"):
            made.add(name)
        yield made


class Calls(Counter[str]):
    """Counts the calls of methods that go on working."""

    def of(self, owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_each_span_of_a_branch_is_read_once(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mallory's branches of a control feed and of a data feed come a block at a time."""
    mallory, (alice, _) = Equivocator(peers), peers.all
    made = note(alice)
    control, data = mallory.control(seed=1), mallory.pen(seed=1)
    alice.take([mallory.admits(mallory.control(seed=2), "nobody"), mallory.pen(seed=2).write(1)])
    reads = Calls()
    reads.of(tables, "decode_branch", monkeypatch)
    geneses = Calls()
    geneses.of(BranchGeneses, "_part", monkeypatch)
    for number in range(COUNT):
        alice.store.ingest_branch([mallory.admits(control, f"guest {number}"), data.write(1)])
        alice.party.process()
        alice.party.item(made.id).edit("set", "title", f"title {number}")
        alice.party.engine.beyond(b"no such item", [])
    assert reads["decode_branch"] <= 4 * COUNT
    assert geneses["_part"] <= 2 * COUNT


def test_strangers_that_name_each_other_are_each_looked_at_once(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each control feed names the identity of the one whose key comes before it: each took a pass over all feeds."""
    alice, party = peers.all[0], bytes(peers.all[0].party.key)
    strangers = [Stranger(party, f"stranger {number}") for number in range(COUNT)]
    keyed = sorted(((bytes(pair_of(f"control {number}").key), number) for number in range(COUNT)), reverse=True)
    order = [number for _, number in keyed]
    for number, after in zip(order, [*order[1:], order[0]], strict=True):
        admits = MemberAdmission(strangers[after].identity.key, frozenset({Role.READER}))
        for span in strangers[number].control(number, admits)[1]:
            alice.store.ingest(span)
    member(alice).refresh()
    looks = Calls()
    looks.of(PartyMachine, "knows", monkeypatch)
    member(alice).admit(strangers[order[0]].identity.key, [Role.READER])
    member(alice).refresh()
    assert all(member(alice).machine.is_control(feed) for feed, _ in keyed)
    assert looks["knows"] <= 4 * COUNT


def test_admissions_on_a_branch_are_repeated_only_as_far_as_they_count(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mallory's branch admits many data feeds. Each member repeated all of them, though beyond its budget none counts.

    A feed with blocks here comes first: somebody may have seen it. The others are told after the next final epoch.
    """
    monkeypatch.setattr(budgets, "GIVEN_MAX", 4)
    mallory, (alice, bob) = Equivocator(peers), peers.all
    word = member(mallory.peer).vouch(mallory.peer.identity)
    pairs = sorted((pair_of(f"data {number}") for number in range(10)), key=lambda pair: pair.key)
    control, spans = mallory.control(seed=1), []
    for pair in pairs:
        claim = FeedAdmission(pair.key, FeedKind.DATA, mallory.peer.key, mallory.peer.device.key, word)
        spans.append(mallory.say(control, claim, pairs=(pair,)))
    used = pairs[-1].key
    alice.take([*spans, SpanWriter(pairs[-1], mallory.party).write(1)])
    alice.store.ingest_branch([mallory.admits(mallory.control(seed=2), "nobody")])
    alice.party.process()

    told: list[bytes] = []
    for count in (4, 4, 2):
        stamps = {stamp.seq for stamp in member(alice).publish_forks()}
        acts = [act for act in member(alice).machine.acts() if act.stamp.feed == member(alice).control.feed]  # type: ignore[union-attr]
        repeated = [act.claim.feed for act in acts if act.stamp.seq in stamps and isinstance(act.claim, FeedAdmission)]
        assert len(repeated) == count
        told += repeated
        assert member(alice).publish_forks() == []
        alice.epochs.declare()
        assert alice.epochs.number > 0
    assert told[0] == used
    assert sorted(told) == [bytes(pair.key) for pair in pairs]
    bob.take(alice.ranges(bob.lengths()))
    assert all(member(bob).machine.knows(feed) for feed in told)


def test_forks_that_are_known_are_not_looked_at_with_each_act(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each forked feed ends was worked out again after every control block that came."""
    mallory, (alice, _) = Equivocator(peers), peers.all
    alice.take([mallory.pen(seed=seed).write(1) for seed in (1, 2)])
    assert member(alice).machine.fork_ends
    looks = Calls()
    looks.of(PartyMachine, "round_forks", monkeypatch)
    for number in range(COUNT):
        member(alice).admit(pair_of(f"guest {number}").key, [Role.READER])
    assert looks["round_forks"] < COUNT // 2


@pytest.mark.parametrize("aside", [False, True])
def test_an_admission_beyond_a_budget_tells_nobody_of_a_feed(
    peers: Peers, monkeypatch: pytest.MonkeyPatch, aside: bool
) -> None:
    """So the same admission on a branch is repeated: once, and whether or not the first was set aside."""
    monkeypatch.setattr(budgets, "GIVEN_MAX", 4)
    mallory, (alice, _) = Equivocator(peers), peers.all
    word = member(mallory.peer).vouch(mallory.peer.identity)
    pairs = [pair_of(f"data {number}") for number in range(5)]
    claims = [FeedAdmission(pair.key, FeedKind.DATA, mallory.peer.key, mallory.peer.device.key, word) for pair in pairs]
    control = mallory.control(seed=1)
    spans = [mallory.say(control, claim, pairs=(pair,)) for claim, pair in zip(claims, pairs, strict=True)]
    other = control.fork(seed=2)
    alice.take([*spans, mallory.say(control, claims[-1], pairs=(pairs[-1],))])
    alice.store.ingest_branch([mallory.admits(other, "nobody")])
    alice.party.process()
    machine = member(alice).machine
    if aside:
        machine.checkpoints.offer({}, member(alice)._blocks)
        machine.set_aside(1)
        assert machine.checkpoints.count > 0

    assert len(member(alice).publish_forks()) == 2, "the evidence, and the admission"
    assert pairs[-1].key in machine.authority.feeds.admitted
    assert member(alice).publish_forks() == []


def test_branches_from_one_place_on_are_not_looked_at_with_each_other(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each act of a branch was compared with all acts at the place after it, on whichever branches."""
    mallory, (alice, _) = Equivocator(peers), peers.all
    pens = [mallory.control(seed=seed) for seed in range(COUNT)]
    first = [mallory.admits(pen, f"guest {at}") for at, pen in enumerate(pens)]
    second = [mallory.admits(pen, f"friend {at}") for at, pen in enumerate(pens)]
    alice.take(first[:1])
    looked, at = 0, StrayActs.at

    def counted(strays: StrayActs, position: Position) -> Sequence[Act]:
        nonlocal looked
        looked += len(at(strays, position))
        return at(strays, position)

    monkeypatch.setattr(StrayActs, "at", counted)
    alice.store.ingest_branch([*first[1:], *second])
    alice.party.process()
    assert member(alice).machine.names(pair_of("friend 1").key)
    assert looked <= COUNT
