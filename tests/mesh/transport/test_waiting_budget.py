"""One budget for all that waits: it is never exceeded, never drifts, and lets everybody go on in the end."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.mesh.transport.limits import MEMBERS_MAX, SHARE_MS_MAX, SHARE_SIZE_MIN, WAITING_SIZE_MAX
from antiphon.mesh.transport.waiting_budget import Share, WaitingBudget

SIZE_MAX, LEAST, SPARE, SHARES = 1000, 10, 200, 20
POOL = SIZE_MAX - SHARES * LEAST - SPARE


def small() -> WaitingBudget:
    return WaitingBudget(SIZE_MAX, shares_max=SHARES, spare=SPARE, least=LEAST)


#: A share, what it does, and a part of 100 of what it may do.
STEPS = st.tuples(st.integers(0, SHARES - 1), st.sampled_from(["take", "give", "end"]), st.integers(0, 100))


@given(st.lists(STEPS, max_size=150))
def test_shares_that_heed_their_room_never_hold_more_than_the_budget(steps: list[tuple[int, str, int]]) -> None:
    budget = small()
    shares = [budget.share(number) for number in range(SHARES)]
    for now_ms, (number, what, part) in enumerate(steps):
        share = shares[number]
        if what == "end":
            share.end()
        else:
            change = share.room * part // 100 if what == "take" else -share.held * part // 100
            room = share.hold(share.held + change, now_ms)
            assert room == share.room
        assert sum(share.held for share in shares) <= SIZE_MAX
        assert budget.free == POOL - sum(max(share.held - LEAST, 0) for share in shares)
        assert all(share.room >= LEAST - share.held for share in shares)
        waiting = set(budget._waiting)
        resumed = budget.resumable()
        assert all(share.room > 0 for share in resumed)
        assert waiting - set(resumed) == set(budget._waiting)

    for share in shares:
        share.end()
    assert (budget.free, budget.resumable(), budget.hoarders(1 << 60)) == (POOL, [], [])


def test_nobody_can_take_all() -> None:
    budget = small()
    first, second = budget.share("first"), budget.share("second")
    first.hold(first.room, 0)

    assert first.held == POOL // 2
    assert second.room > POOL // 5


def test_many_messages_that_have_begun_are_finished_one_by_one() -> None:
    """Given messages that cannot all be held, when each has arrived in part, then the spare finishes all of them."""
    budget = small()
    whole = SPARE
    shares = [budget.share(number) for number in range(SHARES)]
    for share in shares:
        while share.held < whole and share.room:
            share.hold(min(share.held + share.room, whole), 0)
    unfinished = {share for share in shares if share.held < whole}
    assert len(unfinished) > SHARES // 2, "the budget has room for all, and nothing is shown"

    for _ in range(SHARES):
        for share in budget.resumable():
            if share in unfinished:
                share.hold(min(share.held + share.room, whole), 1)
            if share.held == whole:
                unfinished.discard(share)
                share.hold(0, 1)
    assert not unfinished


def test_a_share_that_gives_nothing_back_ends_if_another_one_waits() -> None:
    budget = small()
    hoarder, busy, third = (budget.share(name) for name in ("hoarder", "busy", "third"))
    hoarder.hold(400, 0)
    assert budget.hoarders(SHARE_MS_MAX) == [], "nobody else waits"

    busy.hold(300, 0)
    busy.hold(299, SHARE_MS_MAX - 1)
    assert budget.hoarders(SHARE_MS_MAX - 1) == []
    assert [share.owner for share in budget.hoarders(SHARE_MS_MAX)] == ["hoarder"]
    hoarder.end()
    assert [share.owner for share in budget.resumable()] == ["busy"]
    assert third.room


def test_what_a_share_holds_may_exceed_its_room_for_once() -> None:
    """A read takes what it takes: then the share waits until others have given enough back."""
    budget = small()
    share = budget.share("one")

    assert share.hold(5 * POOL, 0) == 0
    assert budget.free == LEAST - 4 * POOL
    other = budget.share("other")
    assert other.hold(LEAST, 0) == 0
    share.end()
    assert [share.owner for share in budget.resumable()] == ["other"]


def test_a_node_has_room_for_all_its_connections() -> None:
    budget = WaitingBudget()
    shares: list[Share] = [budget.share(number) for number in range(2 * MEMBERS_MAX)]
    for share in shares:
        share.hold(SHARE_SIZE_MIN, 0)

    assert sum(share.held for share in shares) + budget.free + budget.spare == WAITING_SIZE_MAX
    assert all(share.room for share in shares)
    with pytest.raises(ValueError, match="leaves nothing beyond"):
        WaitingBudget(1 << 20)
