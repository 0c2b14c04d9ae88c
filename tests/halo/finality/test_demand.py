"""What a new term must declare again (`Ballot.demand`), alone: attesters and terms without feeds, so that many thousand
histories of five attesters are played in a second. `test_exhaustive_search.py` has the whole protocol, with fewer.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.budget import budget

from antiphon.halo.credentials.claims import Policy
from antiphon.halo.finality.ballot import Ballot, Claimed
from antiphon.halo.finality.epoch_values import EpochConfig

RUNS = budget(2_000, 100_000)
TERMS = 5
NOTHING = (0, b"")


def ballot(count: int) -> Ballot:
    attesters = tuple(bytes([at]) * 32 for at in range(count))
    return Ballot(EpochConfig(1, attesters, attesters[0], Policy()), {}, {})


class Paxos:
    """A history of one number. The proposer of a term may lie: if it is free to choose, it declares two snapshots."""

    def __init__(self, seed: int, count: int, *, lies: bool) -> None:
        self.chance = random.Random(seed)
        self.ballot = ballot(count)
        self.lies = lies
        self.attested: dict[bytes, dict[int, bytes]] = {device: {} for device in self.ballot.config.attesters}
        self.promised = dict.fromkeys(self.attested, 0)
        self.endorsed: dict[int, dict[bytes, tuple[int, bytes]]] = {term: {} for term in range(1, TERMS)}
        self.declared: dict[int, list[bytes]] = {0: [b"0 a", b"0 b"][: 1 + lies]}

    def play(self, steps: int) -> set[bytes]:
        """Play random steps; return what is final then."""
        often = self.chance.choice((1, 3, 10))  # how readily attesters endorse and proposers declare
        for at in range(steps):
            device = self.chance.choice(sorted(self.attested))
            term = max(0, at * TERMS // steps - self.chance.choice((0, 0, 0, 1, 2)))  # votes also come late
            step = self.chance.choice((self._attest, *(self._endorse, self._declare) * often))
            step(device, term)
        votes = [(term, cid) for said in self.attested.values() for term, cid in said.items()]
        return {cid for term, cid in votes if votes.count((term, cid)) >= self.ballot.config.quorum}

    def _attest(self, device: bytes, term: int) -> None:
        if self.promised[device] <= term and term not in self.attested[device] and self.declared.get(term):
            self.attested[device][term] = self.chance.choice(self.declared[term])

    def _endorse(self, device: bytes, term: int) -> None:
        if term > max(self.promised[device], *self.attested[device], 0):
            self.promised[device] = term
            self.endorsed[term][device] = max(self.attested[device].items(), default=NOTHING)

    def _declare(self, _: bytes, term: int) -> None:
        if term and not self.declared.get(term):
            demand = self.ballot.demand(self.endorsed[term])
            afresh = [f"{term} a".encode(), f"{term} b".encode()][: 1 + self.lies]
            self.declared[term] = [] if demand.reason else [demand.snapshot] if demand.snapshot else afresh


def outcomes(count: int, *, lies: bool) -> list[set[bytes]]:
    return [Paxos(seed, count, lies=lies).play(100) for seed in range(RUNS)]


@pytest.mark.parametrize("lies", [False, True])
@pytest.mark.parametrize("count", [3, 4, 5])
def test_whatever_binds_two_snapshots_are_never_final(count: int, lies: bool) -> None:
    final = outcomes(count, lies=lies)
    assert max(map(len, final)) == 1
    assert {cid[:1] for found in final for cid in found} > {b"0"}, "snapshots of later terms become final, too"


def the_greatest_term_alone(ballot: Ballot, snapshot: bytes, endorsers: Claimed) -> int:
    greatest = max(term for term, cid in endorsers.values() if cid)
    return len(ballot.config.attesters) - sum(said != (greatest, snapshot) for said in endorsers.values())


def who_endorsed_is_out(ballot: Ballot, snapshot: bytes, endorsers: Claimed) -> int:
    return len(ballot.config.attesters) - len(endorsers)


@pytest.mark.parametrize("fault", [the_greatest_term_alone, who_endorsed_is_out])
def test_a_rule_that_binds_less_splits(
    fault: Callable[[Ballot, bytes, Claimed], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ballot, "_supporters", fault)
    assert max(map(len, outcomes(5, lies=False))) > 1


def test_a_snapshot_binds_while_a_quorum_can_have_attested_it() -> None:
    """The second was written for an attester with a wrong clock: alone it bound all later terms, for ever."""
    one = ballot(3)
    a, b, c = one.config.attesters
    two_endorsed = one.demand({a: NOTHING, b: (1, b"ahead")})
    assert two_endorsed.snapshot == b"ahead", "the third may have attested it"
    assert one.demand({a: NOTHING, b: (1, b"ahead"), c: NOTHING}) == (b"", "")
    assert one.demand({a: NOTHING, b: (4, b"ahead"), c: (0, b"other")}) == (b"", "")
    assert one.demand({a: (0, b"final"), b: (1, b"final"), c: NOTHING}).snapshot == b"final"
    assert one.demand({a: (0, b"other"), b: (1, b"ahead")}).snapshot == b"ahead"
    assert "more attesters must endorse" in ballot(5).demand({a: (1, b"x"), b: (1, b"y"), c: NOTHING}).reason
