"""Looks for barren acts, while blocks come in: they judge all acts that are held, so there must be few of them."""

from __future__ import annotations

import pytest
from tests.attacks.work import GROWTH_MAX, calls
from tests.halo.control.test_checkpoints import data_feed, declare, setting_aside
from tests.halo.test_convergence import GROUPS, Script

from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import FeedKind, MemberAdmission, Narrowing, Role


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


def test_a_batch_is_read_once_for_all_acts_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script()
    alice, dave = script.actors[0], script.actors[3]
    words = [dave.admission(FeedKind.DATA, data_feed(dave, number))[1] for number in range(5)] * 20
    dave.write_batch(words)
    alice.hear(dave)
    declare(alice)
    dave.write_batch(words)
    with monkeypatch.context() as small:
        small.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 40)
        feeds = script.rehearsal.blocks()
        machine = setting_aside(script, feeds)
        for feed, blocks in feeds.items():
            machine.add(blocks[:-1] if feed == alice.control.key else blocks)
        machine.set_aside(1)
        assert machine.checkpoints.count == 160
        count = 0
        read = credential.read

        def counting(party: bytes, data: bytes) -> credential.Credential:
            nonlocal count
            count += 1
            return read(party, data)

        small.setattr(credential, "read", counting)
        machine.add(alice.written[-1:])  # an epoch holds the first batch: of the second, 40 count
        assert len(machine.epochs().final) == 1
        assert machine.data_feeds()
        assert count <= len(words) + 1
        assert len(machine.acts()) == machine.act_count - 160 + 40
