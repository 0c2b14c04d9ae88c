"""The search can find what it looks for: each of these faults, planted into the protocol, is found in few histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.budget import SOAK
from tests.halo.finality.finality import Case
from tests.halo.finality.finality_search import Search, Violation

from antiphon.halo.credentials.claims import EpochEndorsement, Policy
from antiphon.halo.finality import voting
from antiphon.halo.finality.ballot import Ballot, Choice, Claimed, Demand, Own, _Path
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import EpochConfig

pytestmark = pytest.mark.slow

HISTORIES_MAX = 20_000
Plant = Callable[[pytest.MonkeyPatch], None]


def half_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EpochConfig, "quorum", property(lambda config: max(1, len(config.attesters) // 2)))


def a_restored_device_speaks_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voting, "forgetful", lambda *_, **__: "")


def an_endorsement_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Own, "promised", property(lambda _: 0))


def what_is_endorsed_binds_nobody(patch: pytest.MonkeyPatch) -> None:
    """Neither the device nor those who read it remember that it endorsed a term."""
    attest: Callable[..., str] = Ballot._attest
    patch.setattr(Own, "promised", property(lambda _: 0))

    def forget_and_attest(*given: Any) -> str:
        path = given[-1]
        promised, path.promised = path.promised, 0
        found = attest(*given)
        path.promised = promised
        return found

    patch.setattr(Ballot, "_attest", forget_and_attest)


def the_least_is_extended(patch: pytest.MonkeyPatch) -> None:
    def demand(ballot: Ballot, endorsers: Claimed) -> Demand:
        if len(endorsers) < ballot.config.quorum:
            return Demand(b"", "too few")
        return Demand(min(((term, cid) for term, cid in endorsers.values() if cid), default=(0, b""))[1])

    patch.setattr(Ballot, "demand", demand)


def nothing_is_extended(patch: pytest.MonkeyPatch) -> None:
    def demand(ballot: Ballot, endorsers: Claimed) -> Demand:
        return Demand(b"", "" if len(endorsers) >= ballot.config.quorum else "too few")

    patch.setattr(Ballot, "demand", demand)


def one_endorser_is_enough(patch: pytest.MonkeyPatch) -> None:
    def demand(ballot: Ballot, endorsers: Claimed) -> Demand:
        if not endorsers:
            return Demand(b"", "too few")
        return Demand(max(((term, cid) for term, cid in endorsers.values() if cid), default=(0, b""))[1])

    patch.setattr(Ballot, "demand", demand)


def attestations_of_all_terms_are_added_up(patch: pytest.MonkeyPatch) -> None:
    def votes(ballot: Ballot, choice: Choice) -> set[bytes]:
        found = (devices for other, devices in ballot.attested.items() if other.snapshot == choice.snapshot)
        return set().union(*found)

    patch.setattr(Ballot, "votes", votes)


def what_was_attested_is_hidden(patch: pytest.MonkeyPatch) -> None:
    def endorsement(chain: EpochChain, device: bytes, term: int, candidate: bytes) -> EpochEndorsement:
        return EpochEndorsement(chain.open.number, term, candidate)

    patch.setattr(voting, "endorsement", endorsement)


def what_was_attested_is_hidden_and_nobody_looks(patch: pytest.MonkeyPatch) -> None:
    endorse: Callable[..., str] = Ballot._endorse
    what_was_attested_is_hidden(patch)

    def endorse_anew(*given: Any) -> str:
        path = _Path()
        path.promised = given[-1].promised
        return endorse(*given[:-1], path)

    patch.setattr(Ballot, "_endorse", endorse_anew)


def a_device_attests_whatever_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(voting, "_may_vote", lambda *_: "")


def the_first_policy_decides_all_numbers(patch: pytest.MonkeyPatch) -> None:
    make = EpochConfig.of.__func__  # type: ignore[attr-defined]
    first: list[Policy | None] = []

    def of(cls: type[EpochConfig], number: int, party: bytes, policy: Policy | None, *rest: bytes) -> object:
        if number == 1:
            first[:] = [policy]
        return make(cls, number, party, first[0], *rest)

    patch.setattr(EpochConfig, "of", classmethod(of))


THREE, LONG = Case(3, (2,)), Case(3, (3,), candidates=2)
RESTORED = Case(3, (2,), restored=True, candidates=1)
PLANTED: list[tuple[Plant, Case]] = [
    (half_is_enough, THREE),
    (a_restored_device_speaks_at_once, RESTORED),
    (an_endorsement_is_forgotten, THREE),
    (what_is_endorsed_binds_nobody, THREE),
    (the_least_is_extended, LONG),
    (nothing_is_extended, THREE),
    (one_endorser_is_enough, THREE),
    (attestations_of_all_terms_are_added_up, LONG),
    (what_was_attested_is_hidden, THREE),
    (what_was_attested_is_hidden_and_nobody_looks, THREE),
    (a_device_attests_whatever_comes, Case(3, (2,), outsider=True)),
    (the_first_policy_decides_all_numbers, Case(3, (2, 1), shrinks=True, candidates=1)),
]
#: Those that end in two snapshots for somebody, and not only in what is wrong in itself.
FATAL: list[tuple[Plant, Case]] = [
    (half_is_enough, THREE),
    (a_restored_device_speaks_at_once, RESTORED),
    (what_is_endorsed_binds_nobody, Case(3, (2,), candidates=2)),
    (nothing_is_extended, THREE),
    (one_endorser_is_enough, THREE),
    (what_was_attested_is_hidden_and_nobody_looks, THREE),
]
if SOAK:
    FATAL += [(the_least_is_extended, LONG), (attestations_of_all_terms_are_added_up, LONG)]


def name(value: object) -> str:
    return getattr(value, "__name__", "-")


@pytest.mark.parametrize(("plant", "case"), PLANTED, ids=name)
def test_a_planted_fault_is_found(plant: Plant, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(plant, Search(case, limit=HISTORIES_MAX, ending_every=10), monkeypatch)


@pytest.mark.parametrize(("plant", "case"), FATAL, ids=name)
def test_a_planted_fault_leads_to_two_snapshots(plant: Plant, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = find(plant, Search(case, limit=HISTORIES_MAX, outcomes=True), monkeypatch)
    assert reason.startswith(("two geneses", "what was final"))


def find(plant: Plant, search: Search, monkeypatch: pytest.MonkeyPatch) -> str:
    plant(monkeypatch)
    with pytest.raises(Violation) as found:
        search.run()
    print(f"{plant.__name__}: {found.value.reason}; {found.value.words} words, {len(search.histories)} histories")
    return found.value.reason
