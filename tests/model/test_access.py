"""Access lists, rule by rule: who may write, who may change that, and that no past can be rewritten."""

from __future__ import annotations

import pytest

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.model.access import (
    ACTS_MAX,
    CUTS_MAX,
    EVERYONE,
    KEYS_MAX,
    NAMES_MAX,
    NOT_NAMED,
    NOT_THEIRS,
    Access,
    AccessLog,
    Act,
    Author,
)

ADA, BOB, CAROL, DAN, EVE = (Author(name * 32) for name in (b"a", b"b", b"c", b"d", b"e"))
OWEN = Author(b"o" * 32, owner=True)
GROUP = b"g" * 32
GINA, GUS = Author(b"1" * 32, (GROUP,)), Author(b"2" * 32, (GROUP,))
ALL = (ADA, BOB, CAROL, DAN, EVE, OWEN, GINA, GUS)
FAR = 1 << 40


def at(lamport: int, author: Author, seq: int | None = None) -> Stamp:
    return Stamp(lamport, author.identity, lamport if seq is None else seq)


def names(*authors: Author | bytes) -> tuple[bytes, ...]:
    return tuple(sorted(author.identity if isinstance(author, Author) else author for author in authors))


def act(
    lamport: int,
    author: Author,
    grant: tuple[bytes, ...] = (),
    revoke: tuple[bytes, ...] = (),
    cut: dict[Author, int] | None = None,
) -> Act:
    """A change. What is not cut is kept, so that each test speaks of the feeds that it is about."""
    cuts = {one.identity: (cut or {}).get(one, FAR) for one in ALL} if revoke else {}
    return Act(at(lamport, author), author, Access(grant, revoke, tuple(sorted(cuts.items()))))


def log_of(*acts: Act, creator: Author = ADA) -> AccessLog:
    log = AccessLog(at(1, creator, 0), creator)
    for one in acts:
        log.add(one)
    return log


def closed(*authors: Author | bytes) -> Act:
    """Ada's first list, at lamport 5."""
    return act(5, ADA, names(*authors), (EVERYONE,))


def may(log: AccessLog, lamport: int, author: Author, seq: int | None = None) -> bool:
    return log.refusal(at(lamport, author, seq), author) == ""


# -- who may write


def test_an_item_begins_open_and_its_creator_is_named() -> None:
    log = log_of()
    assert may(log, 2, EVE)
    assert log.names() is None
    assert log.standing() == {EVERYONE, ADA.identity}


def test_a_list_says_who_may_write_from_its_place_on() -> None:
    log = log_of(closed(BOB))
    assert [may(log, 4, one) for one in (ADA, BOB, EVE)] == [True, True, True]
    assert [may(log, 6, one) for one in (ADA, BOB, EVE)] == [True, True, False]
    assert log.refusal(at(6, EVE), EVE) == NOT_NAMED
    assert log.names() == names(ADA, BOB)


def test_owners_of_the_party_may_write_always() -> None:
    log = log_of(closed(), act(6, ADA, (), names(OWEN)))
    assert may(log, 7, OWEN)


def test_a_group_that_is_named_stands_for_those_in_it() -> None:
    log = log_of(closed(GROUP))
    assert may(log, 6, GINA)
    assert not may(log, 6, GINA._replace(groups=()))  # as she was in another timeframe
    assert log.names() == names(ADA, GROUP)


def test_a_list_that_is_opened_and_closed_again() -> None:
    log = log_of(closed(), act(8, ADA, (EVERYONE,)), act(12, ADA, (), (EVERYONE,), {EVE: 11}))
    assert [may(log, lamport, EVE) for lamport in (4, 6, 9, 10, 11, 13)] == [True, False, True, True, False, False]
    assert log.names() == names(ADA)


def test_everybody_is_named_by_32_zero_bytes_and_nobody_has_that_name() -> None:
    """Ada, an owner, admits Eve to a group with that key; by it Eve may write like all, and change nothing."""
    eve = EVE._replace(groups=(EVERYONE,))
    log = log_of(Act(at(2, eve), eve, Access((EVE.identity,), (ADA.identity,), ())))
    assert log.refusal(at(2, eve), eve) == NOT_THEIRS
    assert may(log, 3, ADA)


# -- who may change it


@pytest.mark.parametrize("author", [BOB, EVE])
def test_a_first_list_by_somebody_else_than_creator_or_owner_is_refused(author: Author) -> None:
    log = log_of(act(2, author, names(author), (EVERYONE,)))
    assert log.refusal(at(2, author), author) == NOT_THEIRS
    assert may(log, 3, CAROL)


def test_a_first_list_by_an_owner() -> None:
    log = log_of(act(2, OWEN, names(BOB), (EVERYONE, ADA.identity)))
    assert [may(log, 3, one) for one in (ADA, BOB, OWEN, EVE)] == [False, True, True, False]


def test_who_is_named_may_name_others_and_they_others() -> None:
    log = log_of(closed(BOB), act(6, BOB, names(CAROL)), act(7, CAROL, names(DAN)))
    assert may(log, 8, DAN)


def test_a_member_of_a_group_that_is_named_may_change_the_list() -> None:
    log = log_of(closed(GROUP), act(6, GINA, names(CAROL)))
    assert may(log, 7, CAROL)


def test_a_change_before_the_grant_that_it_would_need_is_refused() -> None:
    log = log_of(act(4, BOB, names(CAROL)), closed(BOB))
    assert log.refusal(at(4, BOB), BOB) == NOT_THEIRS
    assert not may(log, 6, CAROL)


# -- who may revoke whom


def test_who_was_named_earlier_may_revoke_who_was_named_later() -> None:
    log = log_of(closed(BOB), act(6, BOB, names(CAROL)), act(7, BOB, (), names(CAROL)))
    assert not may(log, 8, CAROL)


def test_and_not_the_other_way_round() -> None:
    log = log_of(closed(BOB), act(6, BOB, names(CAROL)), act(7, CAROL, (), names(ADA, BOB)))
    assert may(log, 8, ADA)
    assert may(log, 8, BOB)


def test_nor_those_who_were_named_in_the_same_change() -> None:
    """Else each could remove the other at the same time, and who has done so first is anybody's claim."""
    mutual = (act(6, BOB, (), names(CAROL), {CAROL: 0}), act(6, CAROL, (), names(BOB), {BOB: 0}))
    log = log_of(closed(BOB, CAROL), *mutual)
    assert may(log, 7, BOB)
    assert may(log, 7, CAROL)


def test_an_owner_may_revoke_the_creator() -> None:
    log = log_of(closed(BOB), act(6, OWEN, (), names(ADA), {ADA: 6}))
    assert not may(log, 7, ADA)
    assert may(log, 6, ADA, 5)
    assert not may(log, 6, ADA, 6)  # into the past
    assert may(log, 7, BOB)


def test_a_member_of_a_group_cannot_revoke_the_group() -> None:
    log = log_of(closed(GROUP), act(6, GINA, (), names(GROUP), {GUS: 0}))
    assert may(log, 7, GUS)


def test_who_is_named_anew_is_junior_to_those_who_came_meanwhile() -> None:
    again = (act(7, ADA, (), names(BOB)), act(8, ADA, names(BOB)), act(9, CAROL, (), names(BOB)))
    log = log_of(closed(BOB), act(6, ADA, names(CAROL)), *again)
    assert not may(log, 10, BOB)
    assert may(log, 6, BOB)  # but what he was before is none of Carol's business


def test_everybody_may_leave() -> None:
    log = log_of(closed(BOB), act(6, BOB, (), names(BOB)))
    assert not may(log, 7, BOB)
    assert log.refusal(at(6, BOB), BOB) == ""


def test_leaving_with_a_cut_takes_back_ones_messages_and_not_ones_changes() -> None:
    """Were the cut to hold for the change that names it, that would count if and only if it does not."""
    log = log_of(closed(BOB), act(6, BOB, names(CAROL)), act(8, BOB, (), names(BOB), {BOB: 0}))
    assert log.refusal(at(8, BOB), BOB) == ""
    assert not may(log, 7, BOB)
    assert may(log, 9, CAROL)


def test_granted_and_revoked_in_one_change_is_revoked() -> None:
    log = log_of(closed(), act(6, ADA, names(BOB), names(BOB)))
    assert not may(log, 7, BOB)


# -- the past


def test_a_removed_writer_does_not_write_into_the_past() -> None:
    """Rule 8: what his feed wrote beyond the cut is void, however low its lamport is."""
    log = log_of(closed(BOB), act(9, ADA, (), names(BOB), {BOB: 3}))
    assert may(log, 6, BOB, 2)
    assert not may(log, 6, BOB, 3)


def test_nor_into_the_time_when_the_item_was_open() -> None:
    log = log_of(act(5, ADA, (), (EVERYONE,), {EVE: 2}))
    assert may(log, 3, EVE, 1)
    assert not may(log, 3, EVE, 2)


def test_a_feed_that_no_cut_names_counts_for_nothing() -> None:
    log = log_of(closed(BOB), Act(at(9, ADA), ADA, Access((), names(BOB))))
    assert not may(log, 6, BOB, 0)


def test_a_removed_member_does_not_remove_his_remover() -> None:
    """Rule 7's shape: Bob is removed at 9, and says with a lamport of 6 that Ada, or all whom he can, are removed."""
    removal = act(9, ADA, (), names(BOB), {BOB: 1})
    coup = act(6, BOB, names(EVE), names(ADA, CAROL), {ADA: 0, CAROL: 0})
    log = log_of(closed(BOB), act(8, ADA, names(CAROL)), removal, coup)
    assert log.refusal(coup.stamp, BOB) == NOT_THEIRS
    assert may(log, 10, ADA)
    assert may(log, 10, CAROL)
    assert not may(log, 10, EVE)


def test_what_a_removed_member_did_past_his_cut_is_undone_with_all_that_follows() -> None:
    chain = (act(6, BOB, names(CAROL)), act(7, CAROL, names(DAN)), act(8, DAN, (), names(EVE), {EVE: 0}))
    log = log_of(closed(BOB), *chain, act(9, ADA, (), names(BOB), {BOB: 6}))
    assert [log.refusal(one.stamp, one.author) for one in chain] == [NOT_THEIRS] * 3
    assert log.names() == names(ADA)


def test_an_undone_removal_is_undone() -> None:
    """Bob removes Carol, who had removed Dan; Ada removes Bob, with a cut before that: so Dan is removed after all."""
    named = (closed(BOB), act(6, ADA, names(CAROL)), act(7, ADA, names(DAN)))
    carols, bobs = act(8, CAROL, (), names(DAN), {DAN: 0}), act(9, BOB, (), names(CAROL), {CAROL: 0})
    log = log_of(*named, carols, bobs)
    assert may(log, 20, DAN)
    log.add(act(10, ADA, (), names(BOB), {BOB: 0}))
    assert not may(log, 20, DAN)
    assert may(log, 20, CAROL)


def test_a_door_that_was_left_open_is_closed_by_revoking_once_more() -> None:
    """Bob leaves, and keeps, by his own cut, a right to write into the time before; the next cut takes that too."""
    log = log_of(closed(BOB), act(8, BOB, (), names(BOB)))
    assert may(log, 7, BOB, 1000)
    log.add(act(9, ADA, (), names(BOB), {BOB: 8}))
    assert may(log, 7, BOB, 7)
    assert not may(log, 7, BOB, 1000)


def test_of_two_cuts_the_lesser_holds() -> None:
    for cuts in ((5, 3), (3, 5)):
        log = log_of(closed(BOB), *(act(9 + nth, ADA, (), names(BOB), {BOB: cut}) for nth, cut in enumerate(cuts)))
        assert may(log, 6, BOB, 2)
        assert not may(log, 6, BOB, 3)


# -- bounds


def test_one_feed_cannot_use_up_the_changes_of_another() -> None:
    """Were changes counted together, whoever is named could write so many that no owner removes them."""
    log = log_of(closed(BOB), *(act(6 + nth, BOB, names(DAN)) for nth in range(ACTS_MAX + 5)))
    assert at(5 + ACTS_MAX, BOB) in log
    assert at(6 + ACTS_MAX, BOB) not in log
    assert log.add(act(9999, OWEN, (), names(BOB), {BOB: 0}))
    assert not may(log, 10_000, BOB)
    assert not may(log, 10_000, DAN)


def keys(count: int) -> tuple[bytes, ...]:
    return tuple(number.to_bytes(32, "big") for number in range(count))


def large(lamport: int, author: Author, cuts: int) -> Act:
    """A change with one name, and with so many cuts."""
    return Act(at(lamport, author), author, Access(names(DAN), (), tuple((key, 1) for key in keys(cuts))))


def test_a_change_that_is_refused_does_not_make_the_log_as_large_as_somebody_likes() -> None:
    """Given a list that shuts Eve out, when she changes it all the same, then little of that is kept."""
    log = log_of(closed(BOB), *(large(6 + nth, EVE, KEYS_MAX // 4) for nth in range(10)))
    assert [stamp.lamport for stamp, *_ in log if stamp.feed == EVE.identity] == [6, 7, 8, 9]
    assert AccessLog(log.genesis, log.creator, log.acts).acts == log.acts
    assert not AccessLog(log.genesis, log.creator, log.acts).add(large(20, EVE, 0))
    assert at(21, BOB) in log_of(*log.acts, act(21, BOB, names(DAN)))


def test_one_change_is_looked_at_however_large_it_is() -> None:
    log = log_of(large(6, ADA, CUTS_MAX), large(7, ADA, 0))
    assert [stamp.lamport for stamp, *_ in log] == [6]


def test_an_owner_never_lacks_room() -> None:
    log = log_of(*(large(6 + nth, OWEN, KEYS_MAX // 2) for nth in range(5)))
    assert len(log.acts) == 5


@pytest.mark.parametrize(
    "access",
    [
        Access(),
        Access(cuts=((b"a" * 32, 1),)),
        Access((b"a" * 31,)),
        Access((), (b"",)),
        Access((b"b" * 32, b"a" * 32)),
        Access((b"a" * 32, b"a" * 32)),
        Access((b"a" * 32,), (), ((b"b" * 32, 1), (b"a" * 32, 1))),
        Access((b"a" * 32,), (), ((b"b" * 32, 1), (b"b" * 32, 2))),
        Access((b"a" * 32,), (), ((b"b", 1),)),
        Access(keys(NAMES_MAX + 1)),
        Access((), keys(NAMES_MAX + 1)),
        Access(keys(1), (), tuple((key, 1) for key in keys(CUTS_MAX + 1))),
    ],
)
def test_a_change_has_one_form_and_bounds(access: Access) -> None:
    with pytest.raises(InvalidMutation):
        access.check()


def test_a_change_may_be_as_large_as_that() -> None:
    access = Access(keys(NAMES_MAX), keys(NAMES_MAX), tuple((key, 1) for key in keys(CUTS_MAX)))
    assert access.check() is access
