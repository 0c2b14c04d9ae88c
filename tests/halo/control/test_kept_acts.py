"""Acts in force that a checkpoint keeps: an opening reads none of their blocks, and makes few of them as values."""

from __future__ import annotations

import random
import tracemalloc
from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st
from tests.attacks.work import GROWTH_MAX, calls
from tests.budget import budget
from tests.halo.control.test_checkpoints import (
    ForkedHostile,
    Hostile,
    answers,
    check_answers,
    check_forked_answers,
    checkpoints_of,
    data_feed,
    declare,
    feed_in,
    setting_aside,
)
from tests.halo.test_convergence import GROUPS, Script, Step

from antiphon.core.sightings import Sightings
from antiphon.halo.acts.act_columns import ActColumns
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Erasure, FeedEnd, MemberAdmission, Narrowing, Position, Role
from antiphon.halo.rights.kept_acts import KeptActs
from antiphon.halo.rights.runs import NarrowingIndex
from antiphon.halo.rights.takings import Erasures
from antiphon.testing.parties import Actor, pair_of

GRANTS = 40


class Narrowed(Script):
    """An editor has the key of a group, takes everybody into it, and out of it again and again; all in force."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.group = GROUPS[0]
        alice, dave = self.actors[0], self.actors[3]
        alice.write(MemberAdmission(bytes(self.group.key), frozenset({Role.EDITOR}), is_group=True))
        dave.hear(*self.actors)
        members = [actor.identity.key for actor in self.actors]
        for number in range(GRANTS):
            dave.group(self.group.key, members[number % len(members)], [self.group])
        for number in range(count):
            cuts: dict[bytes, int] = {alice.control.key: 9999 - number}
            dave.write(Narrowing(members[number % len(members)], frozenset(), cuts, group=self.group.key), [self.group])
            if number % 10 == 0:
                dave.write(FeedEnd(dave.identity.key, self.group.key, {}), [dave.identity])
                dave.write(Erasure((Position(alice.control.key, number),)), [dave.identity])

    def saved(self) -> tuple[PartyMachine, list[LaneCheckpoint]]:
        feeds = self.rehearsal.blocks()
        machine = setting_aside(self, feeds)
        for blocks in feeds.values():
            machine.add(blocks)
        return machine, checkpoints_of(machine)


class Takers(Hostile):
    """The same, and everybody ends devices and erases messages: with the right, without, in other words, or expired."""

    def __init__(self) -> None:
        super().__init__()
        for actor in self.actors:
            if actor.written:
                actor.open_data(data_feed(actor, 0))
                actor.open_data(data_feed(actor, 1))

    def play(self, step: Step) -> None:
        actor = self.actors[step.actor % len(self.actors)]
        if step.action % 2 or not actor.written:
            super().play(step)
            return
        if step.number % 3:
            actor.hear(*self.actors)
        for number in range(1 + step.other % 4):
            take(actor, self.actors[(step.other + number // 2) % len(self.actors)], step.number + number)


class ForkedTakers(ForkedHostile, Takers):
    """The same, until Bob signs two histories."""

    def apart(self, step: Step) -> None:
        super().apart(step)
        actor = self.actors[step.other % len(self.actors)]
        if step.action % 2 and actor.written and actor is not self.one:
            take(actor, self.actors[step.actor % len(self.actors)], step.number)


def take(actor: Actor, other: Actor, number: int) -> None:
    """Erase messages, or end a device: mostly one's own."""
    signers, expires_ms = [[], [actor.identity], [other.identity]][number % 3], int(number % 5 == 0)
    if number % 4:
        feeds = (data_feed(one, at) for one, at in ((actor, 0), (other, number % 2), (actor, number % 2)))
        claim: Erasure | FeedEnd = Erasure(tuple(sorted({Position(feed.key, number % 97) for feed in feeds})))
    else:
        of = other if number % 5 == 0 else actor
        cuts: dict[bytes, int] = {of.control.key: 2 + number % 30, data_feed(of, number).key: number % 4}
        claim = FeedEnd(of.identity.key, of.device.key, cuts if number % 8 else {of.control.key: 1 << 40})
    actor.write(claim, signers, expires_ms=expires_ms)


@pytest.mark.slow
@settings(max_examples=budget(40, 2000), deadline=None)
@given(st.integers(0, 2**32))
def test_ends_and_erasures_in_columns_change_no_answer(seed: int) -> None:
    check_answers(Takers, seed)


@pytest.mark.slow
@settings(max_examples=budget(20, 1000), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_forks_find_ends_and_erasures_in_columns(seed: int, small: bool) -> None:
    check_forked_answers(ForkedTakers, seed, small=small)


def work_of_takings(count: int) -> int:
    """Return the work of opening a party in which an editor erases its own messages, and ends its own device."""
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    data = data_feed(dave, 0)
    dave.open_data(data)
    for number in range(count):
        dave.write(Erasure(tuple(Position(data.key, 8 * number + at) for at in range(8))))
        cuts: dict[bytes, int] = dict.fromkeys((dave.control.key, data.key), 9999 - number)
        dave.write(FeedEnd(dave.identity.key, dave.device.key, cuts))
    alice.hear(dave)
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for blocks in feeds.values():
        machine.add(blocks)
    saved = checkpoints_of(machine)

    def opened() -> None:
        resumed = setting_aside(script, feeds, saved)
        assert resumed.erased(data.key) == frozenset(range(8 * count))
        assert resumed.authority.end(data.key) == 10_000 - count
        assert len(resumed.acts()) < 20

    return calls(opened)


def test_ends_and_erasures_cost_an_opening_hardly_any_work() -> None:
    """Each was made as a value, and judged: 10 MB of them took 21 and 27 times as long to open."""
    assert work_of_takings(400) <= 1.5 * work_of_takings(100)


def work_of_receiving(count: int) -> int:
    """Return the work of taking erasures and ends of a device, a few at a time, with a question after each portion."""
    script = Script()
    dave = script.actors[3]
    data = data_feed(dave, 0)
    dave.open_data(data)
    for number in range(count):
        dave.write(Erasure((Position(data.key, number),)))
        dave.write(FeedEnd(dave.identity.key, dave.device.key, {dave.control.key: 9999, data.key: 9999 - number}))
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        if feed != dave.control.key:
            machine.add(blocks)

    def take() -> None:
        for start in range(0, len(dave.written), 8):
            machine.add(dave.written[start : start + 8])
            machine.set_aside()
            assert machine.erased(data.key)
            assert machine.authority.end(data.key) > 9000

    work = calls(take)
    assert machine.erased(data.key) == frozenset(range(count))
    assert machine.authority.end(data.key) == 10_000 - count
    assert len(machine.acts()) < 40 + count // 4, "the others are columns, and their blocks are let go"
    return work


def test_acts_that_take_become_columns_while_a_party_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were values until the next opening: 13 times the bytes received, and each answer asked all of them."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints._MANY", 8)
    assert work_of_receiving(200) <= GROWTH_MAX**2 * work_of_receiving(50)


def test_what_an_epoch_holds_stays_whatever_columns_erase_or_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    data = data_feed(dave, 0)
    dave.open_data(data)
    dave.write(Erasure((Position(data.key, 1), Position(data.key, 7))))
    alice.hear(*script.actors)
    declare(alice, {data.key: 5})
    dave.hear(alice)
    dave.write(Erasure((Position(data.key, 2), Position(data.key, 8))))
    dave.write(FeedEnd(dave.identity.key, dave.device.key, {dave.control.key: 99, data.key: 3}))
    feeds = script.rehearsal.blocks()
    before = setting_aside(script, feeds)
    for blocks in feeds.values():
        before.add(blocks)
    resumed = setting_aside(script, feeds, checkpoints_of(before))
    assert len(resumed.epochs().final) == 1
    for machine in (before, resumed):
        assert machine.erased(data.key) == {1, 7, 8}
        assert machine.authority.end(data.key) == 5
    assert len(resumed.acts()) == len(before.acts()) == before.act_count - 3


def test_acts_in_force_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Narrowed(100)
    before, saved = script.saved()
    count = 0
    read = credential.read

    def counting(party: bytes, data: bytes) -> credential.Credential:
        nonlocal count
        count += 1
        return read(party, data)

    monkeypatch.setattr(credential, "read", counting)
    resumed = setting_aside(script, script.rehearsal.blocks(), saved)
    assert resumed.state() == before.state()
    assert count < 10, "the first blocks of control feeds"
    assert resumed.length(script.actors[3].control.key) > 150
    assert answers(script, resumed) == answers(script, before)


def work_of_opening(count: int) -> int:
    """Return the work of opening a party with narrowings in force."""
    script = Narrowed(count)
    _, saved = script.saved()
    feeds = script.rehearsal.blocks()
    return calls(lambda: setting_aside(script, feeds, saved).state())


def test_narrowings_in_force_cost_an_opening_hardly_any_work() -> None:
    """Each was read, verified, and judged with all others again."""
    assert work_of_opening(400) <= 1.5 * work_of_opening(100)


def test_what_follows_an_opening_counts_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs go on after their columns; a device is closed and opened again and again, and a fork cuts columns off."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Narrowed(30)
    alice, dave = script.actors[0], script.actors[3]
    chance = random.Random(7)
    for _ in range(3):
        _, saved = script.saved()
        dave.narrow(alice.identity.key, signers=[script.group], group=script.group.key, cuts={dave.control.key: 3})
        dave.group(script.group.key, alice.identity.key, [script.group])
        alice.hear(*script.actors)
        alice.narrow(dave, cuts={dave.control.key: len(dave.written) - chance.randrange(4)})
        alice.admit(dave, Role.EDITOR)
        dave.hear(alice)
        feeds = script.rehearsal.blocks()
        order = [feed for feed, blocks in feeds.items() for _ in blocks]
        resumed = setting_aside(script, feeds, saved)
        feed_in(resumed, feeds, order, chance)
        plain = script.rehearsal.machine(order)
        assert answers(script, resumed) == answers(script, plain)
        again = setting_aside(script, feeds, checkpoints_of(resumed))
        assert answers(script, again) == answers(script, plain)
        middle = len(feeds[dave.control.key]) // 2
        for machine in (resumed, again, plain):
            machine.end_fork(dave.control.key, middle)
        wanted = answers(script, plain)
        assert answers(script, resumed) == wanted
        assert answers(script, again) == wanted


def test_an_epoch_that_has_not_seen_a_kept_narrowing_limits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine took the epoch for one that holds all acts about rights, and kept answers of before it."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Script()
    alice, bob, _, dave = script.actors[:4]
    alice.admit(bob, Role.OWNER)
    for actor in script.actors:
        actor.hear(*script.actors)
    for number in range(3):
        dave.open_data(pair_of(f"data {number}"))
    alice.admit(dave, Role.EDITOR)
    for actor in script.actors:
        actor.hear(*script.actors)
    for _ in range(3):
        bob.narrow(dave, cuts={dave.control.key: 1})
    before = {feed: tuple(blocks) for feed, blocks in script.rehearsal.blocks().items()}
    saving = setting_aside(script, before)
    for blocks in before.values():
        saving.add(blocks)
    resumed = setting_aside(script, before, checkpoints_of(saving))
    assert resumed.state() == saving.state()
    assert resumed.authority.end(dave.control.key) == 1
    declare(alice)
    feeds = script.rehearsal.blocks()
    resumed.add(feeds[alice.control.key][len(before[alice.control.key]) :])
    plain = script.rehearsal.machine([feed for feed, blocks in feeds.items() for _ in blocks])
    assert len(resumed.epochs().final) == 1
    assert answers(script, resumed) == answers(script, plain)
    assert resumed.authority.end(dave.control.key) == plain.authority.end(dave.control.key) > 1


def memory_of_looking(feeds: int) -> int:
    """Return the memory that is held after 100 subjects and data feeds were looked up in columns of control feeds."""
    script = Narrowed(10)
    _, history = next(found for found in script.saved()[0].histories() if found[0] == script.actors[3].control.key)
    acts = [act for act in history if isinstance(act.claim, Narrowing | Erasure)]
    narrowings, erasures = NarrowingIndex(), Erasures()
    for number in range(feeds):
        kept = KeptActs(number.to_bytes(32, "big"), b"", ActColumns.of(acts), Sightings())
        assert narrowings.keep(kept, 0, len(history))
        assert erasures.keep(kept, 0, len(history))
    asked = [sha256(bytes([number])).digest() for number in range(100)]
    assert not narrowings.runs(bytes(32))  # each has made what it needs for any answer
    tracemalloc.start()
    try:
        for key in asked:
            assert not narrowings.runs(key)
            assert not list(erasures.rows(key))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_what_is_looked_up_in_vain_takes_no_memory_for_each_control_feed() -> None:
    """It took some 120 bytes for each of them and each subject: 300 of both, 0.5 MB received, took 11 MB."""
    assert memory_of_looking(40) < 1.5 * memory_of_looking(10)
