"""Judging stays near-linear, whatever a member repeats (attack 6): twice the acts, at most 2.4 times the work.

The work is counted in function calls, so that these tests do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.attacks.work import GROWTH_MAX, calls
from tests.halo.test_convergence import Script

from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import FeedEnd, Policy, Role
from antiphon.testing.parties import Actor, Rehearsal, pair_of

TEAM = pair_of("team")
Attack = Callable[[int, Actor, Actor, Actor], None]


def group_grants_of_the_founder(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    """The attack as it was found: grants of the founder into one's own group, each narrowed by all of these."""
    for _ in range(count):
        mallory.group(TEAM.key, alice.identity.key, [TEAM])
    for number in range(count):
        cuts: dict[bytes, int] = {alice.control.key: 5 + count - number}
        mallory.narrow(alice, cuts=cuts, group=TEAM.key, signers=[TEAM])


def group_grants_of_an_editor(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    """The same with somebody else, who has fewer roles, grants and narrowings in turn."""
    for number in range(count):
        mallory.group(TEAM.key, bob.identity.key, [TEAM])
        cuts: dict[bytes, int] = {bob.control.key: 5 + count - number}
        mallory.narrow(bob, cuts=cuts, group=TEAM.key, signers=[TEAM])


def group_grants_of_oneself(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    for number in range(count):
        mallory.group(TEAM.key, mallory.identity.key, [TEAM])
        mallory.narrow(mallory, cuts={mallory.control.key: 9 * count - number}, group=TEAM.key, signers=[TEAM])


def void_grants(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    for _ in range(count):
        mallory.admit(bob, Role.OWNER)


def void_policies(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    """Each of Mallory's admissions asks for the policy there; all of them are void, too."""
    for number in range(count):
        mallory.write(Policy(editors_admit=True, tightens=True))
        mallory.admit(pair_of(f"puppet {number}").key, Role.READER)


def void_narrowings(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    for _ in range(count):
        mallory.narrow(alice, cuts={})
        mallory.narrow(bob, cuts={})


def leaving(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    for number in range(count):
        mallory.narrow(mallory, cuts={mallory.control.key: 9 * count - number}, signers=[mallory.identity])


def device_ends(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    for _ in range(count):
        mallory.write(FeedEnd(mallory.identity.key, mallory.device.key, {}))


def by_an_owner(count: int, mallory: Actor, alice: Actor, bob: Actor) -> None:
    """Mallory, whom Alice has made an owner, admits herself and Bob again and again, and narrows Bob each time."""
    for _ in range(count):
        mallory.admit(mallory, Role.OWNER)
        mallory.admit(bob, Role.READER)
        mallory.narrow(bob, cuts={bob.control.key: 1})


EDITORS_ATTACKS: list[Attack] = [
    group_grants_of_the_founder,
    group_grants_of_an_editor,
    group_grants_of_oneself,
    void_grants,
    void_policies,
    void_narrowings,
    leaving,
    device_ends,
]


def attacked(attack: Attack, count: int, role: Role) -> Rehearsal:
    rehearsal = Rehearsal()
    alice, mallory, bob = rehearsal.founder("alice"), rehearsal.actor("mallory"), rehearsal.actor("bob")
    alice.admit(mallory, role)
    alice.admit(bob, Role.EDITOR)
    alice.admit(TEAM.key, Role.EDITOR, is_group=True)
    alice.write(Policy(editors_admit=False, tightens=True))
    for actor in (mallory, bob):
        actor.hear(alice)
        actor.join()
    mallory.hear(bob)
    attack(count, mallory, alice, bob)
    bob.hear(alice, mallory)
    bob.admit(pair_of("friend").key, Role.READER)
    return rehearsal


def work_of(attack: Attack, count: int, role: Role) -> tuple[int, int]:
    """How much it takes to judge a party that was attacked, and to judge once more after one narrowing of Alice."""
    rehearsal = attacked(attack, count, role)
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    for blocks in rehearsal.blocks().values():
        machine.add(blocks)
    opened = calls(machine.state)
    alice = rehearsal.actors[0]
    alice.hear(*rehearsal.actors)
    alice.narrow(rehearsal.actors[2], Role.READER)
    machine.add(alice.written[-1:])
    return opened, calls(machine.state)


@pytest.mark.parametrize(
    ("attack", "role"),
    [*((attack, Role.EDITOR) for attack in EDITORS_ATTACKS), (by_an_owner, Role.OWNER)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_twice_the_acts_take_little_more_than_twice_the_work(attack: Attack, role: Role) -> None:
    small, large = work_of(attack, 80, role), work_of(attack, 160, role)
    assert large[0] <= GROWTH_MAX * small[0]
    assert large[1] <= GROWTH_MAX * small[1]


@pytest.mark.parametrize("attack", [group_grants_of_the_founder, void_grants, void_policies])
def test_a_later_admission_does_not_pay_for_what_came_before(attack: Attack) -> None:
    """What was judged stays judged: only answers that a new act may change are asked again."""
    work = []
    for count in (40, 160):
        rehearsal = attacked(attack, count, Role.EDITOR)
        alice = rehearsal.actors[0]
        alice.hear(*rehearsal.actors)
        alice.machine.state()
        alice.admit(pair_of("newcomer").key, Role.READER)
        work.append(calls(alice.machine.authority.settle))
    assert work[1] <= 1.2 * work[0] + 20


@pytest.mark.parametrize("attack", [group_grants_of_the_founder, void_grants])
def test_a_tighter_policy_does_not_pay_for_grants_that_it_takes_nothing_from(attack: Attack) -> None:
    """All grants since the first policy were judged again: beside 10 MB of narrowings it took three times as long."""
    work = []
    for count in (40, 160):
        rehearsal = attacked(attack, count, Role.EDITOR)
        alice = rehearsal.actors[0]
        alice.hear(*rehearsal.actors)
        for kept in (1, 2, 3):
            cuts = {feed: len(blocks) for feed, blocks in rehearsal.blocks().items()}
            alice.machine.state()
            alice.write(Policy(keep_epochs=kept, tightens=True, cuts=cuts))
        work.append(calls(alice.machine.authority.settle))
    assert work[1] <= 1.2 * work[0] + 20


def test_a_void_policy_has_no_grants_judged_again_that_have_seen_no_policy() -> None:
    work = []
    for count in (40, 160):
        rehearsal = Rehearsal()
        alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
        alice.admit(mallory, Role.READER)
        for number in range(count):
            alice.admit(pair_of(f"guest {number}").key, Role.READER)
        mallory.hear(alice)
        mallory.join()
        alice.hear(mallory)
        alice.machine.state()
        mallory.write(Policy(tightens=True))
        alice.hear(mallory)
        work.append(calls(alice.machine.authority.settle))
    assert work[1] <= 1.2 * work[0] + 20


def work_beside_ends(count: int) -> int:
    """Return the work of another's act, after a member has ended its own device so many times, each time later on."""
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    for number in range(count):
        cuts: dict[bytes, int] = {dave.control.key: 9999 - number}
        dave.write(FeedEnd(dave.identity.key, dave.device.key, cuts), [dave.identity])
    machine = script.rehearsal.machine([feed for feed, blocks in script.rehearsal.blocks().items() for _ in blocks])
    machine.state()
    alice.narrow(script.actors[2])

    def act() -> None:
        machine.add(alice.written[machine.length(alice.control.key) :])
        machine.state()

    return calls(act)


def test_ends_of_a_device_cost_others_little() -> None:
    """Every question about a feed looked at all ends of all devices: 1 MB made a revocation take 58 times as long."""
    assert work_beside_ends(200) <= 1.5 * work_beside_ends(50)
