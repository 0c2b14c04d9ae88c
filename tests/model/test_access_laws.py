"""Laws of access lists: one answer for a set of changes, whatever the order in which they came."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.core.stamp import Stamp
from antiphon.model.access import EVERYONE, NOT_THEIRS, Access, AccessLog, Act, Author

pytestmark = pytest.mark.slow

NAMES = [bytes([65 + number]) * 32 for number in range(4)]
GROUPS = [b"G" * 32, b"H" * 32]
GENESIS = Stamp(1, NAMES[0], 0)
FAR = Stamp(1 << 40, b"", 0)


def author_of(chance: random.Random, identity: bytes) -> Author:
    groups = tuple(group for group in GROUPS if chance.random() < 0.25)
    return Author(identity, groups, chance.random() < 0.07)


def some_names(chance: random.Random, most: int) -> tuple[bytes, ...]:
    pool = [EVERYONE, *NAMES, *GROUPS]
    return tuple(sorted(chance.sample(pool, chance.randrange(most + 1))))


def some_access(chance: random.Random, feeds: list[bytes], length_max: int) -> Access:
    grant, revoke = some_names(chance, 2), some_names(chance, 2)
    cuts = tuple((feed, chance.randrange(length_max + 1)) for feed in sorted(feeds) if chance.random() < 0.7)
    if not grant and not revoke:
        grant = (NAMES[1],)
    return Access(grant, revoke, cuts)


def some_acts(chance: random.Random, count: int) -> list[Act]:
    """Changes by four identities with two feeds each, whose lamports have nothing to do with one another."""
    feeds = [identity[:31] + bytes([nth]) for identity in NAMES for nth in range(2)]
    lamports, lengths = dict.fromkeys(feeds, 0), dict.fromkeys(feeds, 0)
    acts = []
    for _ in range(count):
        feed = chance.choice(feeds)
        lamports[feed] += chance.randrange(1, 6)
        stamp = Stamp(lamports[feed] + 1, feed, lengths[feed])
        lengths[feed] += 1
        identity = next(name for name in NAMES if name[0] == feed[0])
        acts.append(Act(stamp, author_of(chance, identity), some_access(chance, feeds, 4)))
    return acts


def questions(acts: list[Act]) -> Iterator[tuple[Stamp, Author]]:
    """Messages at all places and by all that matter, and the changes themselves."""
    feeds = sorted({act.stamp.feed for act in acts})
    for act in acts:
        yield act.stamp, act.author
        for feed in feeds:
            for seq in (0, 3, 9):
                identity = next(name for name in NAMES if name[0] == feed[0])
                yield Stamp(act.stamp.lamport, feed, seq + 100 * (seq == 9)), Author(identity)
                yield Stamp(act.stamp.lamport, feed, seq), Author(b"x" * 32, (GROUPS[0],))


def answers(log: AccessLog, acts: list[Act]) -> list[str]:
    found = [log.refusal(stamp, author) for stamp, author in questions(acts)]
    return [*found, repr(sorted(log.standing()))]


class Named(NamedTuple):
    name: bytes
    since: Stamp


class Meaning:
    """The rules as they are told, each a question about the set of changes: slow, and without any state."""

    def __init__(self, creator: Author, acts: list[Act]) -> None:
        self.creator, self.acts = creator, sorted(acts)
        self.ends, self.leaves = cache(self._ends), cache(self._leaves)
        self.grants, self.counts = cache(self._grants), cache(self._counts)

    def _grants(self, name: bytes, limit: Stamp) -> list[Named]:
        """Those that begin before a place."""
        found = [Named(name, GENESIS)] if name in (EVERYONE, self.creator.identity) and limit > GENESIS else []
        for act in self.acts:
            if act.stamp < limit and name in act.access.grant and self.counts(act):
                named = [
                    one for one in found if all(end.stamp > act.stamp for end in self.ends(one) + self.leaves(one))
                ]
                found += [] if named else [Named(name, act.stamp)]
        return found

    def _counts(self, act: Act) -> bool:
        return self.rests(act, act.stamp)

    def rests(self, act: Act, limit: Stamp) -> bool:
        """Whether a change rests on a grant older than a place."""
        older = [one for name in act.author.names if name != EVERYONE for one in self.grants(name, limit)]
        return act.author.owner or any(self.holds(one, act.stamp) for one in older)

    def holds(self, one: Named, stamp: Stamp) -> bool:
        over = any(end.stamp < stamp for end in self.ends(one) + self.leaves(one))
        return one.since < stamp and not over and not past(self.ends(one), stamp)

    def _ends(self, one: Named) -> list[Act]:
        """The revocations by those who are senior to a grant."""
        limits = ((act, act.stamp if one.name == EVERYONE else one.since) for act in self.acts)
        named = [(act, limit) for act, limit in limits if act.stamp >= one.since and one.name in act.access.revoke]
        return [act for act, limit in named if self.rests(act, limit)]

    def _leaves(self, one: Named) -> list[Act]:
        """The first revocation of oneself that rests on the very grant."""
        ends = self.ends(one)
        for act in self.acts:
            own = act.author.identity == one.name != EVERYONE and one.name in act.access.revoke and act not in ends
            over = any(end.stamp < act.stamp for end in ends) or past(ends, act.stamp)
            if own and act.stamp > one.since and not over:
                return [act]
        return []

    def refused(self, stamp: Stamp, author: Author) -> bool:
        for act in self.acts:
            if act.stamp == stamp:
                return not self.counts(act)
        grants = [one for name in (*author.names, EVERYONE) for one in self.grants(name, FAR)]
        good = (one for one in grants if self.holds(one, stamp) and not past(self.leaves(one), stamp))
        return not author.owner and not any(good)


def past(acts: list[Act], stamp: Stamp) -> bool:
    return any(stamp.seq >= dict(act.access.cuts).get(stamp.feed, 0) for act in acts)


LAW = settings(max_examples=budget(250, 5_000), deadline=None)
CREATOR = Author(NAMES[0])


@LAW
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 14))
def test_the_log_says_what_the_rules_say(seed: int, count: int) -> None:
    acts = some_acts(random.Random(seed), count)
    log, meaning = AccessLog(GENESIS, CREATOR, acts), Meaning(CREATOR, acts)
    for stamp, author in questions(acts):
        assert bool(log.refusal(stamp, author)) == meaning.refused(stamp, author)


@LAW
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 14))
def test_changes_in_any_order_give_the_answers_of_their_total_order(seed: int, count: int) -> None:
    chance = random.Random(seed)
    acts = some_acts(chance, count)
    wanted = answers(AccessLog(GENESIS, CREATOR, acts), acts)
    for _ in range(3):
        chance.shuffle(acts)
        log = AccessLog(GENESIS, CREATOR)
        for nth, act in enumerate(acts):
            log.add(act)
            if chance.random() < 0.3:
                log.add(chance.choice(acts[: nth + 1]))  # twice is once
        assert sorted(answers(log, acts)) == sorted(wanted)
        assert log.acts == sorted(acts)


@LAW
@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 14))
def test_a_change_that_is_said_to_change_nothing_does_so(seed: int, count: int) -> None:
    chance = random.Random(seed)
    acts = some_acts(chance, count)
    chance.shuffle(acts)
    log = AccessLog(GENESIS, CREATOR)
    for nth, act in enumerate(acts):
        known = acts[:nth]
        asked = [(stamp, author) for stamp, author in questions(acts) if all(stamp != one.stamp for one in acts[nth:])]
        before = [log.refusal(stamp, author) for stamp, author in asked], log.standing()
        changed = log.add(act)
        after = [log.refusal(stamp, author) for stamp, author in asked], log.standing()
        assert changed or before == after, (known, act)


def test_these_changes_are_of_all_kinds() -> None:
    """The laws would be empty if nothing were ever granted, ended, left or undone."""
    verdicts: list[str] = []
    granted = ended = left = undone = 0
    for seed in range(200):
        acts = some_acts(random.Random(seed), 12)
        log, meaning = AccessLog(GENESIS, CREATOR, acts), Meaning(CREATOR, acts)
        verdicts += [log.refusal(act.stamp, act.author) for act in acts]
        grants = [one for name in (*NAMES, *GROUPS) for one in meaning.grants(name, FAR)]
        granted += len(grants)
        ended += sum(bool(meaning.ends(one)) for one in grants)
        left += sum(bool(meaning.leaves(one)) for one in grants)
        undone += sum(past(meaning.ends(one), act.stamp) for one in grants for act in acts if act.stamp > one.since)
    assert min(verdicts.count(""), verdicts.count(NOT_THEIRS)) > 300
    assert (granted > 300, ended > 50, left > 10, undone > 100) == (True,) * 4, (granted, ended, left, undone)
