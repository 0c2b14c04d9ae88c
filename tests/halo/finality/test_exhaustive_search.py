"""Rule 10, searched: in every history of small elections two snapshots are never final, what is final stays so, a new
term extends what a quorum has attested, no honest device contradicts itself, and whichever quorum is left can go on.

`finality_search` says what is looked at. The number of histories is printed (`pytest -s`) and held: a rule that comes
to forbid more, or a search that reaches less, shows as another number.
"""

from __future__ import annotations

from operator import le
from typing import TypeVar

import pytest
from tests.budget import SOAK
from tests.halo.finality.finality import Case, History, Word
from tests.halo.finality.finality_search import Search

pytestmark = pytest.mark.slow

T = TypeVar("T")

WHOLE = {
    Case(1, (3, 3)): 88,
    Case(2, (3,)): 471,
    Case(2, (2, 2)): 653,
    Case(3, (2,)): 332,
    Case(3, (3,), candidates=1): 1053,
    Case(3, (2, 1), witnesses=True, candidates=1): 941,
    Case(3, (2, 1), restored=True, candidates=1): 1365,
    Case(3, (1, 2), shrinks=True, candidates=1): 741,
    Case(4, (2,), candidates=2): 1436,
    Case(3, (1,), liars=1): 343,
}
LARGER = {
    Case(2, (3, 3)): 96051,
    Case(3, (3,)): 35463,
    Case(3, (2,), outsider=True): 5368,
}
BEGINNINGS = [(Case(3, (2,), outsider=True), 1_500)]  # as far as the limit goes: the short ones first
if SOAK:
    BEGINNINGS = [
        (Case(3, (2, 2)), 20_000),
        (Case(3, (2, 2), shrinks=True), 20_000),
        (Case(3, (2, 2), restored=True, candidates=1), 20_000),
        (Case(3, (3,), outsider=True), 15_000),
        (Case(3, (2,), liars=1, candidates=0), 15_000),
        (Case(3, (2,), liars=1, candidates=1), 15_000),
    ]


@pytest.mark.parametrize("case", [*WHOLE, *(LARGER if SOAK else ())], ids=str)
def test_in_every_history_of_a_small_election_the_rules_hold(case: Case) -> None:
    report = Search(case, ending_every=50 if case in LARGER else 3 if case.honest > 3 else 1).run()
    print(report)
    assert report.whole
    assert report.histories == (WHOLE | LARGER)[case]
    assert {len(final) for final in report.final} == set(range(len(case.terms) + 1))  # some come to every number
    assert len({final[0] for final in report.final if final}) == 2  # and either snapshot may be final


@pytest.mark.parametrize(("case", "limit"), BEGINNINGS, ids=str)
def test_in_the_shorter_histories_of_larger_elections_the_rules_hold(case: Case, limit: int) -> None:
    report = Search(case, limit=limit, ending_every=20).run()
    print(report)
    assert report.whole or report.histories >= limit
    assert any(report.final)


def test_hearing_word_by_word_reaches_no_history_that_the_search_leaves_out() -> None:
    search = Search(Case(2, (2,)))
    search.run()
    searched = {spoken(history) for history in search.histories}
    heard = {spoken(history) for history in histories_heard(search)}
    print(f"{len(heard)} histories by single steps of hearing and crashes, {len(searched)} by the search")
    assert heard == searched


def spoken(history: History) -> History:
    """The words alone, without what their writers had heard."""
    return tuple(tuple(word._replace(seen=()) for word in words) for words in history)


def histories_heard(search: Search) -> set[History]:
    """All that two devices can come to say if each block is delivered alone, and a crash may come at any time."""
    stage, count = search.stage, len(search.stage.feeds)
    first = (stage.empty(), ((0,) * count,) * count)  # the words, and of each device: how much it holds of each feed
    known, fresh = {first}, [first]
    while fresh:
        history, holds = fresh.pop()
        found: list[tuple[History, tuple[tuple[int, ...], ...]]] = []
        for at, lengths in enumerate(holds):
            for feed, length in enumerate(lengths):
                following = history[feed][length : length + 1]
                longer = put(lengths, feed, length + 1)
                if following and all(map(le, following[0].seen, longer)):
                    found.append((history, put(holds, at, longer)))
            own = [put((0,) * count, at, lengths[at]), *(word.seen for word in history[at])]
            found.append((history, put(holds, at, tuple(map(max, *own, *own)))))  # a crash: its own feed is left
            part = tuple(words[:length] for words, length in zip(history, lengths, strict=True))
            for word in stage.says(part, stage.chain(part), at):
                if not (word.kind == "declare" and word.term == 0 and word.value == 1):  # alike, as in the search
                    said = put(history, at, (*history[at], word._replace(seen=lengths)))
                    found.append((said, put(holds, at, put(lengths, at, lengths[at] + 1))))
        fresh += [state for state in found if state not in known]
        known.update(found)
    return {history for history, _ in known}


def put(row: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*row[:at], value, *row[at + 1 :])


DECLARED = Word("declare", 1, value=0, seen=(0, 0, 0))
ATTESTED = Word("attest", 1, value=0, genesis=(0, 0), seen=(1, 0, 0))
ENDORSED = Word("endorse", 1, 1, whom=2, seen=(0, 0, 0))


def test_who_endorsed_a_later_term_still_tells_joiners_what_it_has_computed() -> None:
    """The search found it: such a device's word was void, and `attestations_min` of all attesters was never reached."""
    stage = Search(Case(3, (2,), witnesses=True)).stage
    history: History = ((DECLARED,), (ATTESTED,), (ENDORSED,))
    chain = stage.chain(history)
    (late,) = stage.says(history, chain, 2)
    assert (late.kind, late.term) == ("witness", 0)
    after = stage.chain((*history[:2], (ENDORSED, late._replace(seen=(1, 1, 1)))))
    assert after.final == chain.final
    assert len(chain.votes[0]) == 2
    assert len(after.votes[0]) == 3
    assert not after.reasons


def test_a_word_below_a_term_that_its_device_endorsed_is_no_vote() -> None:
    stage = Search(Case(3, (2,))).stage
    assert not stage.chain(((DECLARED,), (), (ENDORSED, ATTESTED))).final
    assert stage.chain(((DECLARED,), (), (ATTESTED, ENDORSED))).final
