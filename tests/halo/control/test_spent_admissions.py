"""Admissions of members beyond a budget are set aside, and count again from the next final epoch on."""

from __future__ import annotations

import random
from functools import partial

import pytest
from tests.attacks.work import calls
from tests.halo.control.test_checkpoints import (
    Feeds,
    Hostile,
    answers,
    checkpoints_of,
    data_feed,
    declare,
    setting_aside,
)
from tests.halo.test_convergence import shuffled

from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.testing.parties import pair_of


def admitting(count: int) -> tuple[Hostile, Feeds, PartyMachine]:
    """An editor has admitted more readers than it may; a machine has set the rest aside."""
    script = Hostile()
    alice, dave = script.actors[0], script.actors[3]
    alice.write(Policy(editors_admit=True))
    dave.hear(alice)
    for number in range(count):
        dave.admit(pair_of(f"puppet {number}").key, Role.READER)
    dave.admit(script.strangers[0], Role.EDITOR)
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        if feed != script.strangers[0].control.key:
            machine.add(blocks)
    machine.set_aside(1)
    return script, feeds, machine


def test_an_opening_does_nothing_for_admissions_beyond_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count again at the next final epoch, so all of them were read: 190 times as long for 10 MB of them."""
    monkeypatch.setattr("antiphon.halo.rights.budgets.EDITOR_ADMISSIONS_MAX", 3)
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 50)  # so many name somebody, void or not
    measured = []
    for count in (100, 200):
        script, feeds, machine = admitting(count)
        assert machine.checkpoints.count == count - 2
        saved = checkpoints_of(machine)
        measured.append(calls(partial(setting_aside, script, feeds, saved)))
    assert measured[1] <= measured[0] + 50


def test_admissions_beyond_a_budget_count_from_the_next_final_epoch_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.halo.rights.budgets.EDITOR_ADMISSIONS_MAX", 3)
    script, feeds, machine = admitting(6)
    alice, dave, stranger = script.actors[0], script.actors[3], script.strangers[0]
    identity, data = stranger.identity.key, data_feed(stranger, 0).key
    machine.add(feeds[stranger.control.key])
    plain = script.rehearsal.machine(shuffled(script.rehearsal, random.Random(1)))
    assert not machine.roles_of(identity)
    assert answers(script, machine) == answers(script, plain), "rights without budgets have the admission"
    alice.machine.add(dave.written[alice.machine.length(dave.control.key) : -1])
    declare(alice)  # it holds all but the last admission
    for one in (machine, plain):
        one.add(alice.written[-1:])
        assert Role.EDITOR in one.roles_of(identity)
    assert answers(script, machine) == answers(script, plain)
    assert machine.judge_data(data, 0, dict(machine.timeframe())) == plain.judge_data(data, 0, dict(plain.timeframe()))


def test_rights_without_budgets_take_an_admission_beyond_one_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message of a feed that is refused asks for them: taken again, it would forget all answers each time."""
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 3)
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = Hostile()
    dave, opened = script.actors[3], [pair_of(f"data {number} of dave") for number in range(9)]
    for pair in opened:
        dave.open_data(pair)
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for blocks in feeds.values():
        machine.add(blocks)
    machine.set_aside(1)
    before = machine.authority.untaken().version

    versions = [machine.authority.untaken(opened[-1].key).version for _ in range(3)]

    assert versions[0] > before, "the admission was set aside"
    assert len(set(versions)) == 1
