"""Law: runs of grants and narrowings answer as if each pair were asked by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.budget import budget
from tests.halo.test_convergence import STEPS, Script, Step

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.grant import ANY, given as roles_given, subject_of
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import GroupAdmission, Narrowing, Roles, with_implied
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.grant_checks import binds
from antiphon.halo.rights.inheritance import cut_at


class OneByOne:
    """The rule as it is written: every narrowing is asked about every grant."""

    def __init__(self, machine: PartyMachine) -> None:
        self.authority: Authority = machine.authority
        self.authority.settle()
        self.narrowings = [act for act in machine.acts() if isinstance(act.claim, Narrowing)]
        grants = [grant for known in self.authority.granted.all.values() for grant in known]
        self.grants = sorted((act for act in grants if self.authority.valid_grant(act)), key=lambda act: act.stamp)

    def left(self, grant: Act, place: Place) -> Roles:
        roles = roles_given(grant)
        for act in self.narrowings:
            claim = act.claim
            assert isinstance(claim, Narrowing)
            seen = place.sees(act.position) or place.seq >= cut_at(self.authority, act, grant, place.feed)
            if seen and binds(self.authority, act, grant):
                roles &= with_implied(claim.roles)
        return roles

    def roles(self, subject: bytes, place: Place, limit: Stamp | None) -> Roles:
        roles: Roles = frozenset()
        through: dict[bytes, Roles] = {subject: ANY}
        moved = True
        while moved:
            moved = False
            for grant in self.grants:
                through_here = through.get(subject_of(grant))
                counts = place.sees(grant.position) or grant.position == (place.feed, place.seq)
                if through_here is None or not counts or (limit is not None and grant.stamp >= limit):
                    continue
                left = self.left(grant, place) & through_here
                if not isinstance(grant.claim, GroupAdmission):
                    roles |= left
                elif not left <= through.get(grant.claim.group, frozenset()):
                    through[grant.claim.group] = left | through.get(grant.claim.group, frozenset())
                    moved = True
        return roles


@pytest.mark.slow
@settings(max_examples=budget(60, 1500), deadline=None)
@given(STEPS)
def test_runs_answer_like_every_pair_by_itself(steps: list[Step]) -> None:
    script = Script()
    for step in steps:
        script.play(step)
    machine = script.rehearsal.machine(
        feed for feed, blocks in script.rehearsal.blocks().items() for _ in range(len(blocks))
    )
    slow = OneByOne(machine)
    authority = slow.authority
    subjects = sorted({subject_of(grant) for grant in slow.grants})
    for act in machine.acts():
        for limit in (None, act.stamp):
            for subject in subjects:
                assert authority.roles(subject, act.place, limit) == slow.roles(subject, act.place, limit)
    for grant in slow.grants:
        for act in machine.acts():
            assert authority.left(grant, act.place) == slow.left(grant, act.place)
