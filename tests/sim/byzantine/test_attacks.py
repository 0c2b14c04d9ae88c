"""Each attack alone, performed many times: honest peers agree, lose nothing, and show no forged write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest
from tests.budget import only_in_soak

from antiphon.core.reasons import Reason, code_of
from antiphon.feed.feed_record import End
from antiphon.feed.header import NO_END
from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import FeedKind
from antiphon.mesh.replication.replica import Replica
from antiphon.sim import laws
from antiphon.sim.byzantine import attacks
from antiphon.sim.run import Outcome, Stage, run
from antiphon.sim.scenario import Act, ActKind, Fault, Scenario, make
from antiphon.sim.trace import Kind

pytestmark = pytest.mark.slow

#: Those that neighbours notice at once, and drop the session for.
_REFUSED = ("junk", "too large", "unasked", "other party", "false acknowledgement", "broken ranges", "cut short")

FORKS = ("forked data", "forked long ago", "forked thrice")


def _forks(stage: Stage) -> object:
    """Honest peers hold two histories of a feed of the liar."""
    return [
        record.feed
        for peer in stage.honest()
        for record in peer.store.feeds(peer.key)
        if record.why is End.FORK or record.branches
    ]


def _waits(stage: Stage) -> object:
    """Honest peers have a block of the liar that waits for what it claims to have seen."""
    peers = stage.honest()
    own = {record.feed for peer in peers for record in peer.store.feeds(peer.key) if record.writable}
    return [blocked for peer in peers for blocked in peer.party.status().blocked if blocked.feed not in own]


def _budgets(stage: Stage) -> object:
    """Honest peers hold more of the liar than counts."""
    voids = stage.founder.member.voids
    return [void for void in voids if code_of(void.reason) is Reason.BUDGET]


def _seen_much(stage: Stage) -> object:
    """Two control feeds of the liar are folded, with many blocks each."""
    machine = stage.founder.member.machine
    lengths = [machine.length(feed) for feed, owner in _feeds_of_liars(stage).items() if owner is FeedKind.CONTROL]
    return len([length for length in lengths if length > 10]) > 1


def _ended(stage: Stage) -> object:
    """The liar's data feed has ended: at its beginning, or at what a final epoch holds."""
    authority = stage.founder.member.machine.authority
    data = [feed for feed, kind in _feeds_of_liars(stage).items() if kind is FeedKind.DATA]
    return [feed for feed in data if authority.end(feed) != NO_END]


def _feeds_of_liars(stage: Stage) -> dict[bytes, FeedKind]:
    liars = {bytes(stage.peers[name].identity.key) for name in stage.scenario.cast.liars}
    owners = stage.founder.member.machine.authority.owners()
    return {feed: owner.kind for feed, owner in owners.items() if owner.identity in liars}


def _intruded(stage: Stage) -> object:
    """Somebody has connected that is no device of this network."""
    return stage.network.repeated


#: What shows in honest homes that a lie came, and could have done harm.
BITES: dict[str, Callable[[Stage], object]] = {
    "runaway control": _waits,
    "runaway data": _waits,
    "branch for one": _forks,
    "wrong places": _forks,
    "two models": _forks,
    "too many feeds": _budgets,
    "many control feeds": _budgets,
    "much seen": _seen_much,
    "scorched earth": _ended,
    "garbage connections": _intruded,
    "replayed connections": _intruded,
    "impostors": _intruded,
}


def with_liars(seed: int = 0) -> Scenario:
    """The first scenario from a seed on in which somebody lies, and does so often."""
    scenarios = (make(number, messages=30, faults=[Fault.LIARS]) for number in range(seed, seed + 50))
    scenario = next(islice((one for one in scenarios if one.cast.liars), 1))
    (liar,) = scenario.cast.liars
    end = max(act.at_ms for act in scenario.acts)
    lies = tuple(Act(end * n // 6, ActKind.LIE, liar, seed=n) for n in range(1, 6))
    acts = sorted((*scenario.acts, *lies), key=lambda act: act.at_ms)
    return replace(scenario, acts=tuple(acts))


def play(name: str, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    return run(with_liars())


@pytest.mark.parametrize("name", sorted(attacks.ATTACKS))
def test_a_lie_breaks_no_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bitten: list[object] = []

    def look(stage: Stage) -> list[str]:
        bitten.append(BITES[name](stage) if name in BITES else True)
        return []

    monkeypatch.setattr(laws, "LAWS", {"a look": look, **laws.LAWS})
    outcome = play(name, monkeypatch)
    told = outcome.trace.of(Kind.LIE)
    assert any(event.text == name for event in told), f"it was never told: {[event.text for event in told]}"
    assert not outcome.broken, str(outcome.broken[0])
    assert all(bitten), f"honest peers have never met it: {bitten}"
    if name in _REFUSED:
        assert outcome.trace.of(Kind.REFUSE)


def test_strangers_are_met_and_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave no trace in honest homes, so those who turn them away are asked."""
    turned: list[bytes] = []
    decide = Replica._is_stranger

    def note(self: Replica, span: Span) -> bool:
        found = decide(self, span)
        turned.extend([bytes(span.feed)] * found)
        return found

    monkeypatch.setattr(Replica, "_is_stranger", note)
    outcome = play("strangers", monkeypatch)
    assert len(set(turned)) >= 5
    assert not outcome.broken, str(outcome.broken[0])


def test_each_attack_of_the_worst_member_is_seen_to_bite() -> None:
    assert set(BITES) | {"strangers"} == attacks.FURTHER


@pytest.mark.parametrize("name", FORKS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=only_in_soak) for seed in (1, 2, 3))])
def test_forks_of_data_feeds_break_no_law_where_there_are_no_epochs(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    scenario = with_liars(10 * seed)
    outcome = run(replace(scenario, rules=replace(scenario.rules, epoch_messages=0)))
    assert any(event.text == name for event in outcome.trace.of(Kind.LIE))
    assert not outcome.broken, str(outcome.broken[0])


@pytest.mark.parametrize(("name", "seed"), [("forked long ago", 4)])
def test_a_branch_that_only_one_attester_holds_stops_no_epoch(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They never came to rest: others could neither compute what was declared again in each term, nor refuse it."""
    monkeypatch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name]})
    outcome = run(make(seed))
    assert any(event.text == name for event in outcome.trace.of(Kind.LIE))
    assert not outcome.broken, str(outcome.broken[0])
    assert outcome.epochs


def test_what_was_erased_on_a_branch_that_is_not_held_stops_no_pruning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch holds more of a branch than can be read here: there is no body to take away."""
    monkeypatch.setattr(attacks, "ATTACKS", {"forked long ago": attacks.ATTACKS["forked long ago"]})
    outcome = run(make(123))
    assert not outcome.broken, str(outcome.broken[0])
    assert outcome.trace.of(Kind.PRUNE)
    assert outcome.trace.of(Kind.ERASE)


def test_a_run_with_liars_is_replayed_exactly() -> None:
    assert run(with_liars(3)).trace.digest() == run(with_liars(3)).trace.digest()


def test_each_lie_says_what_it_is() -> None:
    for name, lie in attacks.ATTACKS.items():
        assert lie.__doc__, name
