"""Law: a machine that sets barren acts aside, or begins with its checkpoints, gives every answer as one without.

Histories are hostile: acts without right, beyond budgets, in batches, with chosen entries, forks, and epochs between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st
from tests.attacks.work import GROWTH_MAX, calls
from tests.budget import budget
from tests.halo.control.kept_spans import KeptSpans, all_acts
from tests.halo.test_convergence import GROUPS, Crowd, Script, Step, shuffled
from tests.halo.test_forked_convergence import Forked

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.codec import u64
from antiphon.core.keys import KeyPair
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block, BodyState
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.span import Span
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import (
    EpochGenesis,
    Equivocated,
    FeedEnd,
    FeedKind,
    MemberAdmission,
    Narrowing,
    Policy,
    Role,
)
from antiphon.testing.parties import Actor, pair_of

LIMITS = ("DEVICE_FEEDS_MAX", "IDENTITY_DEVICES_MAX", "GIVEN_MAX", "EDITOR_ADMISSIONS_MAX")
Feeds = Mapping[bytes, Sequence[Block]]


class Hostile(Crowd):
    """The same with much that is void: without right, beyond budgets, unreadable; and the founder declares epochs.

    Strangers open control feeds, and are known only by grants that are void. Owners lose their rights and regain them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.strangers = [self.rehearsal.actor(f"stranger {number}") for number in range(8)]
        for stranger in self.strangers:
            stranger.join(seen=[])
            stranger.open_data(data_feed(stranger, 0))

    def play(self, step: Step) -> None:
        actor = self.actors[(3, 3, step.actor)[step.actor % 3] % len(self.actors)]  # often an editor
        kind = step.action % 16
        if kind == 0:
            known = self.actors if step.number % 2 else self.actors[: 1 + step.other % len(self.actors)]
            self.actors[0].hear(*known)
            declare(self.actors[0])
        elif kind < 7 and actor.written:
            if step.number % 3:
                actor.hear(*self.actors)
            for number in range(1 + step.other % 5):
                self._abuse(actor, kind, step.number + number)
        elif 7 <= kind < 11:
            self._dispute(kind, step)
        else:
            super().play(step)

    def _abuse(self, actor: Actor, kind: int, number: int) -> None:
        other = self.actors[number % len(self.actors)]
        if number % 4 == 3:
            self._take(actor, other, number // 4)
        elif kind == 1:
            actor.write_batch([b"" if number % 2 else actor.word] * (1 + number % 3))
        elif kind == 2:
            cuts: dict[bytes, int] = {other.control.key: 1}
            tightens = bool(number % 2)
            actor.write(Policy(bool(number % 3), tightens=tightens, cuts=cuts if tightens else {}), size=number % 2)
        elif kind == 3:
            named = other if number % 3 == 0 else self.strangers[number % len(self.strangers)]
            actor.admit(named, [Role.OWNER, Role.EDITOR][number % 2])
        elif kind == 4:
            actor.group(GROUPS[number % 2].key, other.identity.key, [GROUPS[number % 2]] if number % 3 else [])
        elif kind == 5:
            actor.open_data(data_feed(actor, number))
        else:  # the admission of another's data feed, repeated
            actor.write_signed(other.admission(FeedKind.DATA, data_feed(other, number))[1])

    def _take(self, actor: Actor, other: Actor, number: int) -> None:
        """Take from somebody, mostly without the right; or with a group's word for it."""
        group, left = GROUPS[number % 2], frozenset({Role.READER}) if number % 5 == 0 else frozenset[Role]()
        cuts: dict[bytes, int] = {other.control.key: 1 + number % 3, data_feed(other, number).key: number % 4}
        if number % 7 < 3:
            actor.write(Narrowing(other.identity.key, left, cuts, group=group.key), [group] if number % 7 else [])
        elif number % 7 < 6:
            actor.narrow(other, *left, cuts=cuts if number % 3 else {}, expired=number % 7 == 5, size=number % 2)
        elif other is not self.actors[0]:
            actor.write(FeedEnd(other.identity.key, other.device.key, cuts))

    def _dispute(self, kind: int, step: Step) -> None:
        """Alice has admitted Bob and Carol, in this order: Bob may revoke Carol, and Alice him, from before that."""
        alice, bob, carol = self.actors[:3]
        actor = {7: carol, 8: carol, 9: bob, 10: alice}[kind]
        if step.number % 4:
            actor.hear(*self.actors)
        if kind == 7:
            carol.write(Policy(editors_admit=bool(step.number % 2), keep_epochs=step.number % 5))
        elif kind == 8:
            carol.admit(self.strangers[0], Role.EDITOR)
        else:
            other = carol if kind == 9 else bob
            actor.narrow(other, cuts={other.control.key: max(1, len(other.written) - 1 - step.number % 3)})


def data_feed(actor: Actor, number: int) -> KeyPair:
    return pair_of(f"data {number % 5} of {actor.device.key.hex()}")


def random_steps(chance: random.Random, most: int) -> list[Step]:
    return [Step(*(chance.randrange(1_000_000) for _ in range(4))) for _ in range(chance.randrange(5, most))]


def declare(founder: Actor, cut: Mapping[bytes, int] | None = None) -> None:
    machine = founder.machine
    chain, control = machine.epochs(), machine.timeframe()
    snapshot = bytes(Cid.of(bytes([chain.open.number % 256]), DAG_CBOR))
    previous = chain.last.snapshot if chain.last else b""
    hash_ = machine.control_hash(control)
    founder.write(EpochGenesis(0, chain.open.number, previous, cut or {}, control, snapshot, 5, control_hash=hash_))


def setting_aside(
    script: Script, feeds: Feeds, saved: Iterable[LaneCheckpoint] = (), kept: KeptSpans | None = None
) -> PartyMachine:
    """Return a machine that lets barren acts go, and begins with checkpoints. It knows the fork of kept branches."""
    machine = PartyMachine(script.rehearsal.party.key, script.rehearsal.genesis_feed)
    found = decode_checkpoints(machine.party, encode_checkpoints(machine.party, saved))
    machine.checkpoints.offer(found, lambda feed, start, stop: feeds[feed][start:stop], kept)
    if isinstance(script, Forked) and kept is not None and kept.branch_firsts(script.one.control.key):
        machine.end_fork(script.one.control.key, script.fork)
    machine.resume({feed: FeedRecord(feed, machine.party, length=len(blocks)) for feed, blocks in feeds.items()})
    return machine


def feed_in(machine: PartyMachine, feeds: Feeds, order: Iterable[bytes], chance: random.Random | None) -> None:
    """Hand blocks in; at times let the machine set acts aside, or answer, so that nothing stale is remembered."""
    at = dict.fromkeys(feeds, 0)
    for feed in order:
        machine.add(feeds[feed][max(at[feed], machine.length(feed)) : at[feed] + 1])
        at[feed] += 1
        if chance is not None and chance.random() < 0.3:
            machine.set_aside(1)
        if chance is not None and chance.random() < 0.1:
            machine.state()


def answers(script: Script, machine: PartyMachine) -> list[object]:
    """Return every kind of answer that a machine gives."""
    data = [data_feed(actor, number).key for actor in script.actors for number in range(5)]
    seen = dict(machine.timeframe())
    chain = machine.epochs()
    return [
        machine.state(),
        machine.voids(),
        machine.act_count,
        sorted(machine.data_feeds()),
        sorted(machine.known_feeds.named),
        machine.timeframe(),
        sorted(machine.entries()),
        machine.waiting(),
        chain,
        [machine.judge_data(feed, 0, seen) for feed in data],
        [machine.author(feed, 0, seen) for feed in data],
        [machine.erased(feed) for feed in data],
        [machine.authority.end(feed) for feed in data],
        [machine.roles_of(actor.identity.key) for actor in script.actors],
        [machine.authority.was_granted(actor.identity.key) for actor in script.actors],
        [machine.at(epoch.control, epoch.control_hash).policy(machine.everything()) for epoch in chain.final],
        all_acts(machine),
    ]


def checkpoints_of(machine: PartyMachine) -> list[LaneCheckpoint]:
    machine.set_aside(1)
    return machine.checkpoints.collect() or []


@pytest.mark.slow
@settings(max_examples=budget(60, 3000), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_set_aside_or_kept_changes_no_answer(seed: int) -> None:
    check_answers(Hostile, seed)


def check_answers(kind: Callable[[], Hostile], seed: int) -> None:
    """Compare machines that set acts aside, or begin with checkpoints, with one that does neither."""
    with pytest.MonkeyPatch.context() as small:
        for name in LIMITS:
            small.setattr(f"antiphon.halo.rights.budgets.{name}", 2)
        small.setattr("antiphon.halo.control.checkpoints.FEW", 1)
        script = kind()
        chance = random.Random(seed)
        for step in random_steps(chance, 50):
            script.play(step)
        feeds = script.rehearsal.blocks()
        plain = script.rehearsal.machine(shuffled(script.rehearsal, chance))
        wanted = answers(script, plain)
        sweeping = setting_aside(script, feeds)
        feed_in(sweeping, feeds, shuffled(script.rehearsal, chance), chance)
        assert answers(script, sweeping) == wanted
        early = setting_aside(script, feeds)
        order = shuffled(script.rehearsal, chance)
        feed_in(early, feeds, order[: chance.randrange(len(order))], None)
        for saved in (checkpoints_of(early), checkpoints_of(sweeping)):
            resumed = setting_aside(script, feeds, saved)
            feed_in(resumed, feeds, shuffled(script.rehearsal, chance), chance)
            assert answers(script, resumed) == wanted


class ForkedHostile(Forked, Hostile):
    """The same, until Bob signs two histories. Epochs are declared on top of each, and void acts have seen them."""

    def apart(self, step: Step) -> None:
        """One step of somebody, who hears only those of the same half."""
        bob, side = (self.one, 0) if step.number % 2 else (self.two, 1)
        half = [bob, *(actor for at, actor in enumerate(self.actors) if actor is not self.one and at % 2 == side)]
        actor = half[step.actor % len(half)]
        for mate in half:
            if mate.control.key != actor.control.key:
                actor.machine.add(mate.written[actor.machine.length(mate.control.key) :])
        if step.number % 7 == 0 and actor is not bob and actor.written:
            for _ in range(1 + step.other % 3):
                actor.write(self.evidence(), seen=[] if step.other % 2 else None)
        if step.action % 3 == 0:
            bob.admit(half[step.other % len(half)], [Role.OWNER, Role.EDITOR][step.other % 2])
        elif step.action % 3 == 1 and actor.written:
            if actor is self.actors[0] or step.number % 3 == 0:
                declare(actor)
            for number in range(1 + step.other % 3):
                self._abuse(actor, 1 + step.action // 3 % 6, step.number + number)
        else:
            super().apart(step)

    def evidence(self) -> Equivocated:
        one, two = (next(span for span in bob.raw if span.first == self.fork) for bob in (self.one, self.two))
        return Equivocated(self.one.control.key, self.fork, Fork.between(one, two).encode())


def branched(script: Forked, chance: random.Random, saved: Iterable[LaneCheckpoint], *, aside: bool) -> PartyMachine:
    """A machine that gets everything in some order; either branch may be the one that it holds."""
    main, other = (script.one, script.two) if chance.random() < 0.5 else (script.two, script.one)
    feeds: dict[bytes, Sequence[Block]] = {
        actor.control.key: tuple(actor.written) for actor in script.actors if actor is not script.one
    }
    feeds[main.control.key] = tuple(main.written)
    order = [feed for feed, blocks in feeds.items() for _ in blocks]
    chance.shuffle(order)
    common = chance.randrange(script.fork + 1)  # a session may show blocks of the history, too
    shown: list[Span] = [span for span in other.raw if span.first >= common]
    chance.shuffle(shown)
    kept = KeptSpans([span for span in other.raw if span.first >= script.fork] if chance.random() < 0.7 else ())
    machine = setting_aside(script, feeds, saved, kept)
    early = chance.randrange(len(shown) + 1) if chance.random() < 0.5 else 0  # shown before histories
    if chance.random() < 0.3:
        one, two = (next(span for span in bob.raw if span.first == script.fork) for bob in (script.one, script.two))
        machine.add_fork(Fork.between(one, two).encode())
    for span in shown[:early]:
        machine.show(kept.add(span), kept=True)
    feed_in(machine, feeds, order, chance if aside else None)
    for span in shown[early:]:
        machine.show(kept.add(span), kept=True)
        if aside and chance.random() < 0.3:
            machine.set_aside(1)
    return machine


@pytest.mark.slow
@settings(max_examples=budget(20, 1000), deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_forks_find_what_was_set_aside(seed: int, small: bool) -> None:
    check_forked_answers(ForkedHostile, seed, small=small)


def check_forked_answers(kind: Callable[[], ForkedHostile], seed: int, *, small: bool) -> None:
    """Do the same after Bob has signed two histories, with machines that hold either of them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in LIMITS if small else ():
            patch.setattr(f"antiphon.halo.rights.budgets.{name}", 2)
        patch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
        chance, script = random.Random(seed), kind()
        for step in random_steps(chance, 15):
            script.play(step)
        for number in range(3):  # without entries, so that nothing was seen: void for ever
            script.one.write(Policy(keep_epochs=number), seen=[])
        script.part()
        for step in random_steps(chance, 25):
            script.apart(step)
        wanted = answers(script, branched(script, chance, [], aside=False))
        saved: list[LaneCheckpoint] = []
        for _ in range(3):
            machine = branched(script, chance, saved, aside=True)
            assert answers(script, machine) == wanted
            saved = checkpoints_of(machine)
            assert answers(script, machine) == wanted


def test_barren_acts_are_let_go_and_live_ones_stay() -> None:
    script = Hostile()
    alice, dave = script.actors[0], script.actors[3]
    alice.hear(dave)
    for number in range(5):
        dave.admit(pair_of(f"nobody {number}").key, Role.OWNER)
        dave.write(Policy(keep_epochs=number))
    dave.open_data(pair_of("data"))
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    feed_in(machine, feeds, [feed for feed, blocks in feeds.items() for _ in blocks], None)
    before, count = (machine.state(), machine.voids()), machine.act_count
    machine.set_aside(1)
    assert machine.checkpoints.count == 10
    assert len(machine.acts()) == count - 10
    assert machine.act_count == count
    assert (machine.state(), machine.voids()) == before
    assert machine.names(pair_of("nobody 3").key), "void grants name their subjects all the same"
    assert machine.checkpoints.collect() is None, "so few are not worth a checkpoint"


def work_of_opening(count: int) -> int:
    """Return the work of opening a party with void grants, each of which has an entry, and so is a step of its own."""
    script = Hostile()
    alice, dave = script.actors[0], script.actors[3]
    alice.hear(dave)
    for number in range(count):
        alice.write(Policy(keep_epochs=number % 7))
        grant = MemberAdmission(pair_of(f"nobody {number}").key, frozenset({Role.OWNER}))
        dave.write(grant, seen=[alice.written[-1].entry])
    feeds = script.rehearsal.blocks()
    before = setting_aside(script, feeds)
    for blocks in feeds.values():
        before.add(blocks)
    saved = checkpoints_of(before)
    resumed: list[PartyMachine] = []
    work = calls(lambda: resumed.append(setting_aside(script, feeds, saved)))
    assert resumed[0].checkpoints.count == count
    assert resumed[0].length(dave.control.key) == len(feeds[dave.control.key])
    assert resumed[0].state() == before.state()
    return work


def test_an_opening_takes_work_in_proportion_to_what_was_kept() -> None:
    """Each step looked again at what all steps before it had named."""
    assert work_of_opening(400) <= GROWTH_MAX * work_of_opening(200)


def work_of_gossip(count: int) -> int:
    """Return the work of opening a party in which two feeds tell each other of every void act."""
    script = Script()
    bob, dave = script.actors[1], script.actors[3]
    for _ in range(count):
        dave.write(Policy(keep_epochs=3), seen=[bob.written[-1].entry])
        bob.write_signed(b"", seen=[dave.written[-1].entry])
    feeds = script.rehearsal.blocks()
    before = setting_aside(script, feeds)
    for blocks in feeds.values():
        before.add(blocks)
    assert not before.waiting()
    saved = checkpoints_of(before)
    resumed: list[PartyMachine] = []
    work = calls(lambda: resumed.append(setting_aside(script, feeds, saved)))
    assert {feed: resumed[0].length(feed) for feed in feeds} == {feed: len(blocks) for feed, blocks in feeds.items()}
    assert resumed[0].checkpoints.count == 2 * count
    return work


def test_an_opening_does_nothing_for_void_acts_that_have_seen_each_other() -> None:
    """Each block with an entry was read and delivered by itself: 93 times as long for 10 MB of them."""
    assert work_of_gossip(400) <= work_of_gossip(200) + 50


def test_checkpoints_are_used_together_or_not_at_all_and_saved_anew() -> None:
    """A feed of which the store holds other blocks may be one that the others have seen."""
    script = Script()
    dave, twin = script.actors[3], script.actors[3].fork()
    for number in range(40):
        dave.write(Policy(keep_epochs=number))
        twin.write(Policy(keep_epochs=number + 1))
    feeds = script.rehearsal.blocks()
    before = setting_aside(script, feeds)
    for blocks in feeds.values():
        before.add(blocks)
    saved = checkpoints_of(before)
    assert sum(lane.length for lane in saved) == sum(map(len, feeds.values()))
    others = feeds | {dave.control.key: tuple(twin.written)}
    machine = setting_aside(script, others, saved)
    assert not any(machine.length(feed) for feed in others)
    for blocks in others.values():
        machine.add(blocks)
    again = checkpoints_of(machine)
    assert {lane.feed: lane.hash for lane in again}[dave.control.key] == twin.written[-1].hash


def test_a_checkpoint_is_used_only_if_the_branches_that_its_blocks_have_seen_are_here() -> None:
    """Else these blocks wait until the branch is shown; so do those that have seen them."""
    script = Forked()
    alice, bob, carol, dave = script.actors[:4]
    for number in range(40):
        dave.write(Policy(keep_epochs=number))
    script.part()
    script.two.admit(pair_of("guest").key, Role.READER)
    bob.admit(pair_of("other guest").key, Role.READER)
    carol.write(Policy(keep_epochs=7), seen=[script.two.written[-1].entry])
    dave.write(Policy(keep_epochs=8), seen=[carol.written[-1].entry])
    feeds: dict[bytes, Sequence[Block]] = {
        actor.control.key: tuple(actor.written) for actor in (alice, bob, carol, dave)
    }
    kept = KeptSpans()
    before = setting_aside(script, feeds, (), kept)
    for blocks in feeds.values():
        before.add(blocks)
    for span in script.two.raw[script.fork :]:
        before.show(kept.add(span), kept=True)
    assert not before.waiting()
    saved = checkpoints_of(before)
    reach = {lane.feed: lane.length for lane in saved}
    whole = {actor.control.key: len(actor.written) for actor in (alice, carol, dave)}
    assert reach == whole | {bob.control.key: script.fork}
    again = setting_aside(script, feeds, saved, kept)
    assert {feed: again.delivered(feed) for feed in reach} == reach
    assert sum(1 for _ in again.settled.stamps()) == len(bob.written) + len(script.two.written) - 2 * script.fork
    assert (again.state(), again.voids()) == (before.state(), before.voids())
    resumed = setting_aside(script, feeds, saved)
    for feed, blocks in feeds.items():
        resumed.add(blocks[resumed.length(feed) :])
    assert [waiting.stamp for waiting in resumed.waiting()] == [
        block.stamp for block in sorted((carol.written[-1], dave.written[-1]), key=lambda block: block.feed)
    ]
    for span in script.two.raw[script.fork :]:
        resumed.show(span)
    assert (resumed.state(), resumed.voids()) == (before.state(), before.voids())


def test_a_new_count_of_a_budget_names_whom_acts_that_were_set_aside_admit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 3)
    script = Script()
    alice, dave, stranger = script.actors[0], script.actors[3], pair_of("stranger").key
    for number in range(3):
        dave.admit(pair_of(f"nobody {number}").key, Role.OWNER)
    alice.hear(dave)
    declare(alice)
    dave.admit(stranger, Role.OWNER)
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        machine.add(blocks[:-1] if feed == alice.control.key else blocks)
    machine.set_aside(1)
    assert machine.checkpoints.count == 4
    assert not machine.names(stranger)
    machine.add(alice.written[-1:])
    assert machine.names(stranger)


def test_a_policy_is_not_set_aside_if_its_writer_may_regain_the_right() -> None:
    script = Script()
    alice, bob, carol = script.actors[:3]
    carol.write(Policy(keep_epochs=7))
    bob.hear(carol)
    bob.narrow(carol, cuts={carol.control.key: 1})
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for blocks in feeds.values():
        machine.add(blocks)
    assert len(machine.voids()) == 1
    machine.set_aside(1)
    alice.hear(bob, carol)
    alice.narrow(bob, cuts={bob.control.key: 1})
    machine.add(alice.written[-1:])
    assert machine.state().policy.keep_epochs == 7


def test_an_epoch_on_another_branch_finds_what_was_set_aside() -> None:
    """An act has seen one branch of a feed, and gives nothing by it; an epoch holds the other, by which it does."""
    script = Forked()
    alice, bob, carol, dave = script.actors[:4]
    script.part()
    script.two.admit(dave, Role.OWNER)
    bob.admit(pair_of("guest").key, Role.READER)
    dave.machine.add(bob.written[dave.machine.length(bob.control.key) :])
    dave.write(Policy(keep_epochs=7))
    tips: dict[bytes, Block] = {actor.control.key: actor.written[-1] for actor in (alice, script.two, carol, dave)}
    control = Timeframe({feed: block.seq for feed, block in tips.items()})
    digest = sha256(b"antiphon.control.v1")
    for feed, seq in control.items():
        digest.update(feed + u64(seq) + tips[feed].hash)
    snapshot = bytes(Cid.of(b"", DAG_CBOR))
    claim = EpochGenesis(0, 1, b"", {}, control, snapshot, 5, control_hash=digest.digest())
    alice.write(claim, seen=[block.entry for feed, block in tips.items() if feed != alice.control.key])

    feeds: dict[bytes, Sequence[Block]] = {
        actor.control.key: tuple(actor.written) for actor in (alice, bob, carol, dave)
    }
    machines = []
    for aside in (False, True):
        machine = setting_aside(script, feeds)
        for feed, blocks in feeds.items():
            machine.add(blocks[:-1] if feed == alice.control.key else blocks)
        if aside:
            machine.set_aside(1)
            assert machine.checkpoints.count == 1
        for span in script.two.raw[script.fork :]:
            machine.show(span)
        machine.add(alice.written[-1:])
        [epoch] = machine.epochs().final
        policy = machine.at(epoch.control, epoch.control_hash).policy(machine.everything())
        assert policy.keep_epochs == 7
        hashes = sorted(act.hash for act in machine.acts())
        machines.append((machine.epochs(), machine.state(), machine.voids(), hashes))
    assert machines[0] == machines[1]


def test_a_branch_leads_back_over_acts_that_were_set_aside_when_its_feed_is_shortened_again() -> None:
    """Its first act follows one that was let go; when that turns out to be on a branch too, both are the same."""
    script = Hostile()
    mallory = script.actors[3]
    mallory.hear(*script.actors)
    mallory.open_data(data_feed(mallory, 1))
    for _ in range(2):
        mallory.write(Policy())  # void: it is no owner
    twin = mallory.fork()
    for actor, number in ((mallory, 2), (twin, 3)):
        actor.open_data(data_feed(actor, number))
    machine = setting_aside(script, script.rehearsal.blocks())
    for blocks in script.rehearsal.blocks().values():
        machine.add(blocks)
    machine.set_aside(1)
    assert machine.checkpoints.count
    machine.show(twin.raw[-1])
    machine.voids()  # so that they are read again
    machine.end_fork(mallory.control.key, 1)
    (stray,) = (act for act in machine.acts() if act.hash == twin.written[-1].hash)
    assert [block.hash for block in machine.blocks_back(stray)] == [block.hash for block in reversed(twin.written)]


def test_a_narrowing_comes_after_somebody_has_asked_about_acts_that_are_set_aside() -> None:
    script = Script()
    alice, bob, dave = script.actors[0], script.actors[1], script.actors[3]
    for number in range(3):
        dave.admit(pair_of(f"nobody {number}").key, Role.OWNER)
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for blocks in feeds.values():
        machine.add(blocks)
    machine.set_aside(1)
    assert machine.checkpoints.count == 3
    void = machine.voids()
    assert len(void) == 3
    alice.hear(*script.actors)
    alice.narrow(bob)
    machine.add(alice.written[machine.length(alice.control.key) :])
    assert machine.state() == alice.state
    assert machine.voids() == alice.voids == void


def test_an_act_without_its_body_is_not_void_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that has seen it: the body may come."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    alice.admit(dave, Role.OWNER)
    dave.hear(alice)
    dave.write(Policy(keep_epochs=7))
    dave.write(Policy(keep_epochs=8))
    dave.hear(*script.actors)
    feeds = script.rehearsal.blocks()
    for actor, seq in ((dave, 1), (alice, len(alice.written) - 1)):
        poor = dict(feeds)
        found = poor[actor.control.key]
        bare = replace(found[seq], body=None, state=BodyState.LEFT_OUT)
        poor[actor.control.key] = (*found[:seq], bare, *found[seq + 1 :])
        machine = setting_aside(script, poor)
        for blocks in poor.values():
            machine.add(blocks)
        assert machine.state().policy.keep_epochs != 8 or actor is dave
        resumed = setting_aside(script, feeds, checkpoints_of(machine))
        feed_in(resumed, feeds, [feed for feed, blocks in feeds.items() for _ in blocks], None)
        assert resumed.state() == dave.state
        assert resumed.voids() == dave.voids
