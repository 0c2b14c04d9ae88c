"""Looks for barren acts, while blocks come in: they judge all acts that are held, so there must be few of them."""

from __future__ import annotations

import pytest
from tests.attacks.work import GROWTH_MAX, calls
from tests.halo.control.test_checkpoints import setting_aside
from tests.halo.test_convergence import GROUPS, Script

from antiphon.halo.credentials.claims import MemberAdmission, Narrowing, Role


def work_of_looking(count: int) -> int:
    """Return the work of taking acts, a few at a time, none of which is barren: half of them narrow the other half."""
    script, group = Script(), GROUPS[0]
    alice, dave = script.actors[0], script.actors[3]
    alice.write(MemberAdmission(bytes(group.key), frozenset({Role.EDITOR}), is_group=True))
    dave.hear(alice)
    members = [actor.identity.key for actor in script.actors]
    for number in range(count):
        dave.group(group.key, members[number % len(members)], [group])
    for number in range(count):
        claim = Narrowing(members[number % len(members)], frozenset(), {alice.control.key: 9999}, group=group.key)
        dave.write(claim, [group])
    feeds = script.rehearsal.blocks()
    machine = setting_aside(script, feeds)
    for feed, blocks in feeds.items():
        if feed != dave.control.key:
            machine.add(blocks)

    def take() -> None:
        for start in range(0, len(dave.written), 8):
            machine.add(dave.written[start : start + 8])
            machine.set_aside()

    work = calls(take)
    assert machine.checkpoints.count == 0
    return work


def test_looks_for_barren_acts_cost_in_proportion_to_what_was_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look judged all grants again, after the same number of blocks: a square."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints._MANY", 8)
    assert work_of_looking(200) <= GROWTH_MAX**2 * work_of_looking(50)
