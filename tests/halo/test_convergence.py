"""Law: the state after all control feeds is the same in every order of arrival. All orders of small cases; Hypothesis.

The rule that makes it so stands in docs/design/parties.md. A scenario is a list of steps that actors take, honest ones
and hostile ones; what is compared is the state of fresh machines that get the same blocks in other orders.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.core.keys import KeyPair
from antiphon.feed.header import Entry
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials.claims import FeedEnd, FeedKind, Narrowing, Policy, Role
from antiphon.testing.parties import Actor, Rehearsal, pair_of


def small_party(count: int = 2, role: Role = Role.OWNER) -> tuple[Rehearsal, list[Actor]]:
    rehearsal = Rehearsal()
    actors = [rehearsal.founder("alice")]
    for name in ("bob", "carol", "dave")[:count]:
        actor = rehearsal.actor(name)
        actors[0].admit(actor, role)
        actors.append(actor)
    for actor in actors[1:]:
        actor.hear(actors[0])
        actor.join()
    for actor in actors:
        actor.hear(*actors)
    return rehearsal, actors


def mutual_revocation() -> Rehearsal:
    rehearsal, (_, bob, carol) = small_party()
    bob.narrow(carol)
    carol.narrow(bob)
    return rehearsal


def revocation_and_promotion() -> Rehearsal:
    rehearsal, (alice, bob, carol) = small_party()
    bob.narrow(carol)
    alice.admit(carol, Role.EPOCH_GENERATOR)
    return rehearsal


def chain_of_revocations() -> Rehearsal:
    """Alice revokes Bob from before he revoked Carol; Carol, unrevoked then, has admitted Dave."""
    rehearsal, (alice, bob, carol) = small_party()
    bob.narrow(carol, cuts={carol.control.key: 1})
    carol.admit(pair_of("dave").key, Role.READER)
    alice.narrow(bob, cuts={bob.control.key: 1})
    return rehearsal


def two_cuts_of_one_feed() -> Rehearsal:
    rehearsal, (alice, bob, carol) = small_party()
    carol.admit(pair_of("dave").key, Role.READER)
    bob.narrow(carol, cuts={carol.control.key: 1})
    alice.hear(carol)
    alice.narrow(carol)
    return rehearsal


def policy_against_admission() -> Rehearsal:
    rehearsal, (alice, bob) = small_party(1, Role.EDITOR)
    alice.write(Policy(editors_admit=True))
    bob.hear(alice)
    bob.admit(pair_of("dave").key, Role.READER)
    tight = Policy(tightens=True, cuts={bob.control.key: 1})
    alice.write(tight)
    return rehearsal


def lost_device() -> Rehearsal:
    rehearsal, (_, bob) = small_party(1)
    phone = rehearsal.actor("bob", "phone")
    phone.hear(bob)
    phone.join()
    bob.admit(pair_of("dave").key, Role.READER)
    phone.write(FeedEnd(bob.identity.key, bob.device.key, {bob.control.key: 1}), [bob.identity])
    return rehearsal


SCENARIOS: list[Callable[[], Rehearsal]] = [
    mutual_revocation,
    revocation_and_promotion,
    chain_of_revocations,
    two_cuts_of_one_feed,
    policy_against_admission,
    lost_device,
]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_every_order_of_arrival_gives_the_same_state(scenario: Callable[[], Rehearsal]) -> None:
    rehearsal = scenario()
    orders = list(rehearsal.orders())
    assert len(orders) > 5
    machines = [rehearsal.machine(order) for order in orders]
    found = {(machine.state().digest, machine.voids()) for machine in machines}
    assert len(found) == 1


# -- random scripts


@dataclass(frozen=True)
class Step:
    """One thing that somebody does; numbers are taken modulo what there is to choose from."""

    action: int
    actor: int
    other: int
    number: int


STEPS = st.lists(
    st.builds(Step, *(st.integers(0, 1_000_000) for _ in range(4))),
    min_size=3,
    max_size=budget(30, 60),
)
ROLES = ([Role.OWNER], [Role.EDITOR], [Role.READER], [Role.EPOCH_GENERATOR, Role.EDITOR])
GROUPS = [pair_of("team"), pair_of("crew")]


class Script:
    """Plays steps on a rehearsal of up to four identities, six devices and two groups."""

    def __init__(self) -> None:
        self.rehearsal = Rehearsal()
        self.actors = [self.rehearsal.founder("alice")]
        for name, device in (("bob", "a"), ("carol", "a"), ("dave", "a"), ("bob", "b"), ("carol", "b")):
            self.actors.append(self.rehearsal.actor(name, device))
        for actor, role in zip(self.actors[1:4], (Role.OWNER, Role.OWNER, Role.EDITOR), strict=True):
            self.actors[0].admit(actor, role)
        for actor in self.actors[1:4]:
            actor.hear(self.actors[0])
            actor.join()

    def play(self, step: Step) -> None:
        actor = self.actors[step.actor % len(self.actors)]
        other = self.actors[step.other % len(self.actors)]
        roles = ROLES[step.number % len(ROLES)]
        action = step.action % 11
        if step.action % 3:
            actor.hear(*self.actors)
        if action <= 1:
            actor.hear(other)
        elif not actor.written:
            actor.join(seen=[] if step.number % 7 == 0 else None)
        elif action <= 3:
            actor.admit(other, *roles, expires_ms=0 if step.number % 3 else self.rehearsal.now_ms + step.number % 50)
        elif action <= 6:
            self._narrow(actor, other, step, roles if step.number % 2 else [])
        elif action == 7:
            self._group(actor, other, step)
        elif action == 8:
            self._policy(actor, step)
        elif action == 9:
            self._end(actor, other, step)
        else:
            self.rehearsal.now_ms += step.number % 100

    def _narrow(self, actor: Actor, other: Actor, step: Step, roles: list[Role]) -> None:
        cuts: dict[bytes, int] = {
            device.control.key: max(1, actor.machine.length(device.control.key) - step.number % 4)
            for device in self.actors
            if device.identity.key == other.identity.key and step.number % 5
        }
        leaves = actor.identity.key == other.identity.key and actor is not self.actors[0]
        signers: list[KeyPair] = [actor.identity] if leaves and step.number % 2 else []
        seen: list[Entry] | None = [] if step.number % 4 == 0 else None
        actor.narrow(
            other, *roles, cuts=cuts, signers=signers, expired=step.number % 6 == 0, seen=seen, size=step.other % 2
        )

    def _group(self, actor: Actor, other: Actor, step: Step) -> None:
        group, second = GROUPS[step.number % 2], GROUPS[step.action % 2]
        if step.number % 3 == 0:
            actor.admit(group.key, *ROLES[step.other % len(ROLES)], is_group=bool(step.number % 2))
        elif step.number % 3 == 1:
            subject = second.key if step.number % 2 else other.identity.key
            for _ in range(1 + step.number % 3):  # said again and again, and void if nobody has called it a group
                actor.group(group.key, subject, [group] if step.number % 4 else [])
        else:
            cuts: dict[bytes, int] = {other.control.key: step.number % 3}
            actor.write(Narrowing(other.identity.key, frozenset(), cuts, group=group.key), [group])

    def _policy(self, actor: Actor, step: Step) -> None:
        feeds: list[bytes] = [device.control.key for device in self.actors[: step.number % 6]]
        cuts = {feed: actor.machine.length(feed) for feed in feeds}
        for _ in range(1 + step.other % 3):
            actor.write(Policy(bool(step.number % 2), tightens=bool(step.number % 3), cuts=cuts), size=step.other % 3)

    def _end(self, actor: Actor, other: Actor, step: Step) -> None:
        if other is self.actors[0]:
            return
        signers = [other.identity] if actor.identity.key == other.identity.key else []
        cuts: dict[bytes, int] = {other.control.key: step.number % 4}
        actor.write(FeedEnd(other.identity.key, other.device.key, cuts), signers if step.number % 3 else [])


def shuffled(rehearsal: Rehearsal, chance: random.Random) -> list[bytes]:
    order = [feed for feed, blocks in rehearsal.blocks().items() for _ in blocks]
    chance.shuffle(order)
    return order


def machine_in(rehearsal: Rehearsal, order: list[bytes], asked: Callable[[], bool]) -> PartyMachine:
    """The machine after this order of arrival, with questions asked on the way, so that nothing stale is remembered."""
    machine = rehearsal.machine([])
    feeds = {feed: iter(blocks) for feed, blocks in rehearsal.blocks().items()}
    for feed in order:
        machine.add([next(feeds[feed])])
        if asked():
            assert machine.present.policy() == machine.state().policy
    assert machine.present.policy() == machine.state().policy
    return machine


def state_in_all_orders(script: Script, steps: list[Step], seed: int) -> PartyState:
    """Play the steps, and return the one state in which five orders of arrival end."""
    for step in steps:
        script.play(step)
    chance = random.Random(seed)
    rehearsal = script.rehearsal
    wanted = machine_in(rehearsal, shuffled(rehearsal, chance), lambda: False)
    for _ in range(4):
        machine = machine_in(rehearsal, shuffled(rehearsal, chance), lambda: chance.random() < 0.3)
        assert machine.state().encode() == wanted.state().encode()
        assert machine.state() == wanted.state()
        assert machine.voids() == wanted.voids()
    return wanted.state()


@pytest.mark.slow
@settings(max_examples=budget(80, 3000), deadline=None)
@given(STEPS, st.integers(0, 2**32))
def test_random_histories_converge(steps: list[Step], seed: int) -> None:
    script = Script()
    wanted = state_in_all_orders(script, steps, seed)
    founder = wanted.member(script.actors[0].identity.key)
    assert founder is not None, "nobody removes a founder"
    assert Role.OWNER in founder.roles


class Editors(Script):
    """Two owners set policies that let editors admit guests, or do not, and two editors admit some."""

    def __init__(self) -> None:
        super().__init__()
        alice, _, carol, dave = self.actors[:4]
        alice.narrow(carol, Role.EDITOR)
        alice.write(Policy(editors_admit=True))
        for editor in (carol, dave):
            editor.hear(alice)

    def play(self, step: Step) -> None:
        owner, editor = self.actors[step.actor % 2], self.actors[2 + step.actor % 2]
        if step.action % 4 == 0:
            self._policy(owner, step)
        elif step.action % 4 == 1:
            (owner, editor)[step.number % 2].hear(self.actors[step.other % 4])
        else:
            editor.admit(pair_of(f"guest {step.number % 9}").key, Role.READER)


@pytest.mark.slow
@settings(max_examples=budget(40, 1000), deadline=None)
@given(STEPS, st.integers(0, 2**32))
def test_random_policies_and_admissions_by_editors_converge(steps: list[Step], seed: int) -> None:
    script = Editors()
    wanted = state_in_all_orders(script, steps, seed)
    assert wanted.member(script.actors[3].identity.key) is not None, "no policy takes from what owners gave"


class Crowd(Script):
    """The same with more control feeds and devices than count, and admissions of data feeds."""

    def __init__(self) -> None:
        super().__init__()
        for name, device, feed in (
            ("bob", "a", 2),
            ("bob", "a", 3),
            ("bob", "c", 1),
            ("bob", "d", 1),
            ("dave", "a", 2),
        ):
            control = pair_of(f"{name} {device} control {feed}")
            actor = Actor(self.rehearsal, pair_of(name), pair_of(f"{name} {device}"), control)
            self.rehearsal.actors.append(actor)
            self.actors.append(actor)

    def play(self, step: Step) -> None:
        actor = self.actors[step.actor % len(self.actors)]
        if step.action % 4 == 0 and actor.written:
            actor.open_data(pair_of(f"data {step.number % 5} of {actor.device.key.hex()}"))
        else:
            super().play(step)


@contextmanager
def small_budgets() -> Iterator[None]:
    """Let histories of a few acts exceed all budgets of a party."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DEVICE_FEEDS_MAX", "IDENTITY_DEVICES_MAX", "GIVEN_MAX", "EDITOR_ADMISSIONS_MAX"):
            patch.setattr(f"antiphon.halo.rights.budgets.{name}", 2)
        yield


@pytest.mark.slow
@settings(max_examples=budget(80, 3000), deadline=None)
@given(STEPS, st.integers(0, 2**32))
def test_random_histories_that_exceed_budgets_converge(steps: list[Step], seed: int) -> None:
    with small_budgets():
        wanted = state_in_all_orders(Crowd(), steps, seed)
        for kind in FeedKind:
            feeds = Counter(feed.device for feed in wanted.feeds if feed.kind is kind)
            assert max(feeds.values(), default=0) <= 2
        devices = {(feed.identity, feed.device) for feed in wanted.feeds}
        assert max(Counter(identity for identity, _ in devices).values()) <= 2


@pytest.mark.slow
@settings(max_examples=budget(40, 1000), deadline=None)
@given(STEPS, st.integers(0, 2**32))
def test_everybody_who_has_heard_everything_agrees(steps: list[Step], seed: int) -> None:
    """Also the actors themselves, who heard in their own order and asked all the time."""
    script = Script()
    for step in steps:
        script.play(step)
    everybody = script.actors[:]
    random.Random(seed).shuffle(everybody)
    for actor in everybody:
        actor.hear(*everybody)
        actor.hear(*reversed(everybody))
    assert len({actor.state.digest for actor in everybody}) == 1


@pytest.mark.slow
def test_a_long_chain_of_admissions_is_judged_without_deep_recursion() -> None:
    """Each of 400 admits the next; then the first of them is revoked from before that, and all fall."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    last, chain = alice, []
    for n in range(400):
        actor = rehearsal.actor(f"puppet {n}")
        last.admit(actor, Role.OWNER)
        actor.join(seen=[last.written[-1].entry])
        chain.append(actor)
        last = actor
    for actor in chain:
        alice.machine.add(actor.written)
    assert len(alice.state.members) == 401
    alice.narrow(chain[0], cuts={chain[0].control.key: 1})
    assert [member.subject for member in alice.state.members] == [alice.identity.key]
