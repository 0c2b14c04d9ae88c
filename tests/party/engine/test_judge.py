"""Which delivered messages are void: judged by range, and compared with what was thought before."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.halo.test_convergence import STEPS, Crowd, Step, machine_in, shuffled, small_budgets

from antiphon.core.sightings import Marks, Seen, Sightings
from antiphon.feed.header import Kind
from antiphon.model.message import Note
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.authors import Authors
from antiphon.party.engine.judge import ERASED, Judge, changed, mark_void, void_places
from antiphon.party.engine.lane import FAR, Lane, find_steps
from antiphon.party.engine.ports import LaneState, Void

FEED, CONTROL = b"f" * 32, b"c" * 32
RANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=4)


class Rights:
    """An authority of which only verdicts are asked: void from a cut on, by what the writer had seen."""

    def __init__(self, cuts: dict[int, int]) -> None:
        self.cuts = cuts  # by the last control block seen (-1: none)
        self.asked = 0

    def verdict(self, feed: bytes, seq: int, seen: Seen, kind: Kind = Kind.MUTATION) -> str:
        self.asked += 1
        cut = self.cuts.get(seen.get(CONTROL, -1), 1 << 63)
        return f"beyond {cut}" if seq >= cut else ""

    def lasting(self) -> bool:
        return self.lasts

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        return self.acts

    def erased(self, feed: bytes) -> frozenset[int]:
        return self.gone

    gone: frozenset[int] = frozenset()
    lasts = False
    acts: Marks | None = None


def judged(rights: Rights, *segments: tuple[int, int], stop: int = 100) -> list[Void]:
    lane = Lane(LaneState(FEED, 1, segments=Sightings((start, {CONTROL: seq}) for start, seq in segments)))
    return list(Judge(rights).voids(lane, 0, stop))  # type: ignore[arg-type]


def test_where_all_is_right_nothing_is_void() -> None:
    assert judged(Rights({}), (0, 0)) == []


def test_a_cut_voids_what_lies_beyond_it() -> None:
    assert judged(Rights({0: 40}), (0, 0)) == [Void(40, 100, "beyond 40")]
    assert judged(Rights({0: 100}), (0, 0)) == []
    assert judged(Rights({0: 0}), (0, 0)) == [Void(0, 100, "beyond 0")]


def test_each_part_is_judged_by_what_its_writer_had_seen() -> None:
    """Before the first segment nothing was seen; a later segment has seen the revocation, or the new admission."""
    found = judged(Rights({-1: 0, 0: 1000, 1: 5}), (10, 0), (20, 1))
    assert found == [Void(0, 10, "beyond 0"), Void(20, 100, "beyond 5")]


def test_where_no_right_ends_nothing_is_asked_after_the_first_that_counts() -> None:
    lane = Lane(LaneState(FEED, 1, segments=Sightings((start, {CONTROL: start}) for start in range(10, 60, 10))))
    for lasts, asked in ((False, 12), (True, 4)):
        rights = Rights({-1: 0})
        rights.lasts = lasts
        judge = Judge(rights)  # type: ignore[arg-type]
        assert list(judge.voids(lane, 0, 100)) == [Void(0, 10, "beyond 0")]
        assert rights.asked == asked
        rights.lasts = False
        rights.cuts[30] = 35  # one was taken away
        judge.forget(object())
        assert list(judge.voids(lane, 0, 100)) == [Void(0, 10, "beyond 0"), Void(35, 40, "beyond 35")]


def test_answers_are_remembered_until_forgotten() -> None:
    rights = Rights({0: 7})
    lane = Lane(LaneState(FEED, 1, segments=Sightings([(0, {CONTROL: 0})])))
    judge = Judge(rights)  # type: ignore[arg-type]
    for _ in range(50):
        assert list(judge.voids(lane, 6, 9)) == [Void(7, 9, "beyond 7")]
    asked = rights.asked
    assert asked < 100
    rights.cuts[0] = 8
    assert list(judge.voids(lane, 6, 9)) == [Void(7, 9, "beyond 7")]
    judge.forget(None)  # the rights of before
    assert list(judge.voids(lane, 6, 9)) == [Void(7, 9, "beyond 7")]
    judge.forget(1)
    assert list(judge.voids(lane, 6, 9)) == [Void(8, 9, "beyond 8")]


def test_only_the_acts_that_matter_are_asked_about() -> None:
    """A writer that has seen a control block at each of its messages costs no more than one that has seen few."""
    lane = Lane(LaneState(FEED, 1, segments=Sightings((seq, {CONTROL: seq}) for seq in range(5_000))))
    rights = Rights({-1: 0, **dict.fromkeys(range(20, 5000), 3000)})
    rights.acts = ((CONTROL, (20, 4_000)),)
    assert list(Judge(rights).voids(lane, 0, 5_000)) == [Void(3_000, 5_000, "beyond 3000")]  # type: ignore[arg-type]
    assert rights.asked < 300


@pytest.mark.slow
@settings(max_examples=budget(60, 1500), deadline=None)
@given(STEPS, st.integers(0, 2**32), st.booleans())
def test_acts_that_do_not_matter_change_no_verdict_and_no_author(steps: list[Step], seed: int, small: bool) -> None:
    """Law: ranges by the acts that matter are those by every control timeframe."""
    with small_budgets() if small else nullcontext():
        script, chance = Crowd(), random.Random(seed)
        for step in steps:
            script.play(step)
        machine = machine_in(script.rehearsal, shuffled(script.rehearsal, chance), lambda: False)
        authority = PartyAuthority(None, machine)  # type: ignore[arg-type]
        for feed in sorted({*machine.data_feeds(), FEED}):
            told = [position for position, blocks in machine.timeframe().items() for _ in range(blocks + 1)]
            chance.shuffle(told)
            segments, seen = Sightings(), Counter[bytes]()
            for seq, control in enumerate(told):
                segments.see(seq, {control: seen[control]})
                seen[control] += 1
            lane = Lane(LaneState(feed, 1, position=len(told), segments=segments))
            voids = list(Judge(authority).voids(lane, 0, len(told)))
            runs = Authors(authority).runs(lane, 0, len(told))
            for seq in range(len(told)):
                found = next((void.reason for void in voids if void.start <= seq < void.stop), "")
                assert found == authority.verdict(feed, seq, segments.at(seq))
                asked = Authors(authority)
                told_by = asked.find(feed, seq, segments.at(seq))[:1]
                (own,) = asked._merged(told_by, seq, seq + 1)
                assert own.digest == next(run.digest for run in runs if run.start <= seq < run.stop)


def test_a_message_is_void_by_the_range_that_holds_it() -> None:
    voids = [Void(2, 4, "a"), Void(4, 5, "b"), Void(6, 7, "c")]
    notes = [Note(Kind.MUTATION, 1, b"", seq, 0, b"", "its kind") for seq in range(1, 8)]
    assert [mark_void(voids, note).void for note in notes] == ["its kind", "a", "a", "b", "its kind", "c", "its kind"]
    assert void_places(voids, np.arange(1, 8)).tolist() == [-1, 0, 0, 1, -1, 2, -1]


def test_what_changed_is_what_only_one_of_both_has() -> None:
    assert changed([], []) == []
    assert changed([Void(2, 5, "a")], [Void(2, 5, "a")]) == []
    assert changed([Void(2, 5, "a")], [Void(2, 5, "b")]) == [(2, 5)]
    assert changed([Void(2, 5, "a")], [Void(4, 8, "a")]) == [(2, 4), (5, 8)]
    assert changed([], [Void(0, 3, "a"), Void(3, 6, "b")]) == [(0, 6)]


@given(before=RANGES, after=RANGES)
def test_what_changed_is_exactly_the_difference(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    def apart(ranges: list[tuple[int, int]]) -> tuple[list[Void], set[int]]:
        taken: set[int] = set()
        voids = []
        for start, count in sorted(ranges):
            if start > max(taken, default=-1):
                voids.append(Void(start, start + count, "x"))
                taken |= set(range(start, start + count))
        return voids, taken

    (one, first), (other, second) = apart(before), apart(after)
    found = {seq for start, stop in changed(one, other) for seq in range(start, stop)}
    assert found == first ^ second


def test_what_was_erased_is_void_wherever_it_stands() -> None:
    rights = Rights({0: 40})
    rights.gone = frozenset({3, 39, 40, 70})
    assert judged(rights, (0, 0)) == [Void(3, 4, ERASED), Void(39, 40, ERASED), Void(40, 100, "beyond 40")]
    rights.cuts = {}
    assert judged(rights, (0, 0), stop=50)[-1] == Void(40, 41, ERASED)


@given(st.integers(0, 1 << 40), st.lists(st.integers(1, 1 << 40), max_size=4))
def test_steps_of_an_answer_are_found_with_few_questions(origin: int, gaps: list[int]) -> None:
    begins = [origin, *(origin + sum(gaps[: at + 1]) for at in range(len(gaps)))]
    asked: list[int] = []

    def ask(seq: int) -> int:
        asked.append(seq)
        return max(at for at, begin in enumerate(begins) if begin <= seq)

    assert find_steps(origin, ask) == tuple((begin, at) for at, begin in enumerate(begins))
    assert max(asked) <= FAR
    assert len(asked) <= 2 + sum(3 + 2 * gap.bit_length() for gap in gaps)  # not 62 for a step that is near
