"""What an operator does at home: see who costs how much, ignore somebody, leave and come back, cut from earlier on."""

from __future__ import annotations

from pathlib import Path

import pytest

import antiphon
from antiphon import InvalidInput, NotAuthorised, Object, Party, Store, UnknownItem, UnknownParty, sync
from antiphon.core.errors import MissingBlocks, StoreError
from antiphon.core.reasons import Reason
from antiphon.halo import new_device

pytestmark = pytest.mark.slow


@pytest.fixture
def note(ada: Store, bob: Store, party: Party, theirs: Party) -> Object:
    """An item of Ada's with three titles: hers, and two of Bob's."""
    made = party.object({"title": "Milk", "by": "Ada"})
    sync(ada, bob)
    for title in ("Oat milk", "Rubbish"):
        theirs.item(made.id, Object)["title"] = title
    sync(ada, bob)
    return made


def titles_of(party: Party, item: Object) -> object:
    return party.item(item.id, Object).value["title"]


# -- cuts from earlier on


def test_a_member_is_revoked_from_an_earlier_message_on(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    rubbish = note.history()[-1].stamp
    party.revoke(bob.me, before=rubbish)
    assert note.value["title"] == "Oat milk"
    assert [row.code for row in party.refused()] == [Reason.PAST_CUT]
    with antiphon.open(ada.path.parent / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, eve)
        assert titles_of(eve.party(party.key), note) == "Oat milk", "a newcomer judges alike"


def test_a_revocation_can_be_moved_back_later(ada: Store, bob: Store, party: Party, note: Object) -> None:
    party.revoke(bob.me)
    assert note.value["title"] == "Rubbish"
    party.revoke(bob.me, before=note.history()[-2].stamp)
    assert note.value["title"] == "Milk"


def test_a_batch_counts_as_a_whole_or_not_at_all(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    with theirs.batch():
        made = [theirs.object({"number": number}) for number in range(4)]
    sync(ada, bob)
    party.revoke(bob.me, before=party.item(made[2].id).history()[0].stamp)
    assert [party.has(item.id) for item in made] == [False] * 4


def test_what_a_final_epoch_holds_stays(ada: Store, bob: Store, party: Party, theirs: Party, note: Object) -> None:
    old = note.history()[-1].stamp
    party.epochs.declare()
    sync(ada, bob)
    theirs.item(note.id, Object)["title"] = "Worse"
    sync(ada, bob)
    with pytest.raises(InvalidInput, match="what it holds is final; name a later message"):
        party.revoke(bob.me, before=old)
    assert note.value["title"] == "Worse"
    party.revoke(bob.me, before=note.history()[-1].stamp)
    assert note.value["title"] == "Rubbish"


def test_a_stolen_device_is_ended_from_an_earlier_message_on(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    stolen, rubbish = bob.device, note.history()[-1].stamp
    with pytest.raises(NotAuthorised):
        party.operator.end_device(stolen)  # another's
    with pytest.raises(InvalidInput, match="is this device"):
        theirs.operator.end_device(stolen)
    bob.manager.close_party(party.key)
    bob.manager.device = new_device(bob.keys, "phone", bob.me)  # a second device of Bob's, in the same folder
    phone = bob.party(party.key)
    sync(ada, bob)
    phone.operator.end_device(stolen, before=rubbish)
    assert titles_of(phone, note) == "Oat milk"
    sync(ada, bob)
    assert note.value["title"] == "Oat milk"


# -- costs


def test_the_costs_of_each_identity_are_told_the_dearest_first(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    loud = theirs.text("x" * 40_000)
    sync(ada, bob)
    note.restrict_writers(ada.me)
    sync(ada, bob)
    costs = {cost.identity: cost for cost in party.operator.costs()}
    assert set(costs) == {ada.me, bob.me}
    his, mine = costs[bob.me], costs[ada.me]
    held = ada.manager.feeds.feeds(party.key)
    assert his.blocks + mine.blocks == sum(record.length for record in held)
    assert his.feeds + mine.feeds == len(held)
    assert his.body_bytes > 40_000 > mine.body_bytes > 0
    assert his.header_bytes >= 82 * his.blocks
    assert his.bytes == his.header_bytes + his.body_bytes
    assert his.seconds > 0
    assert party.item(loud.id).value == "x" * 40_000
    assert his.refused == len(party.refused())


# -- ignoring


def test_an_ignored_identity_does_nothing_here_and_comes_back(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    his = theirs.object({"title": "Bob's"})
    sync(ada, bob)
    party.operator.ignore(bob.me)
    assert party.operator.ignored == (bob.me,)
    assert note.value["title"] == "Milk"
    with pytest.raises(UnknownItem):
        party.item(his.id)
    assert {row.code for row in party.refused()} == {Reason.IGNORED}
    assert party.status().ignored == 1
    (cost,) = [cost for cost in party.operator.costs() if cost.identity == bob.me]
    assert cost.ignored == 1

    theirs.item(note.id, Object)["title"] = "Still here"
    more = theirs.object({"title": "More"})
    sync(ada, bob)
    assert note.value["title"] == "Milk"
    assert not party.has(more.id), "no body is taken"
    assert party.timeframe == theirs.timeframe, "headers are"
    note["by"] = "Ada again"
    sync(ada, bob)
    assert theirs.item(note.id, Object).value == {"title": "Still here", "by": "Ada again"}

    party.operator.heed(bob.me)
    assert not party.operator.ignored
    sync(ada, bob)
    assert note.value == theirs.item(note.id, Object).value
    assert party.item(his.id).value == {"title": "Bob's"}
    assert party.has(more.id)
    assert (party.refused(), party.status().ignored) == ([], 0)


def test_who_ignores_takes_no_part_in_epochs_and_says_so(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    party.epochs.set_policy(attesters=[ada.me, bob.me], generator=bob.me)
    sync(ada, bob)
    party.operator.ignore(bob.me)
    with pytest.raises((MissingBlocks, NotAuthorised)):
        party.epochs.declare()
    theirs.epochs.declare()
    sync(ada, bob)
    (epoch,) = theirs.epochs.list()
    assert not epoch.final
    assert "are ignored here" in party.epochs.waits_for
    party.operator.heed(bob.me)
    sync(ada, bob)
    (epoch,) = theirs.epochs.list()
    assert epoch.final
    assert (party.epochs.number, party.epochs.waits_for) == (1, "")
    assert note.value["title"] == "Rubbish"


def test_it_survives_a_restart_and_new_feeds(
    tmp_path: Path, ada: Store, bob: Store, party: Party, note: Object
) -> None:
    party.operator.ignore(str(bob.me))
    key, path = party.key, ada.path
    ada.close()
    with antiphon.open(path) as again:
        there = again.party(key)
        sync(again, bob)
        assert titles_of(there, note) == "Milk"
        assert there.operator.ignored == (bob.me,)


def test_one_feed_is_ignored_and_what_cannot_be_says_why(
    ada: Store, bob: Store, party: Party, theirs: Party, note: Object
) -> None:
    data, control = theirs.member.data, theirs.member.control
    assert data is not None
    assert control is not None
    party.operator.ignore(data.feed)
    assert note.value["title"] == "Milk"
    with pytest.raises(InvalidInput, match="control feeds are not ignored"):
        party.operator.ignore(control.feed)
    with pytest.raises(InvalidInput, match="is written here"):
        party.operator.ignore(ada.me)
    with pytest.raises(InvalidInput, match="is not ignored"):
        party.operator.heed(bob.me)


# -- leaving


def test_a_party_is_left_and_taken_back(ada: Store, bob: Store, party: Party, theirs: Party, note: Object) -> None:
    invitation, key = party.invite(bob.me), party.key
    theirs.operator.leave()
    assert bob.parties() == ()
    assert [one.party for one in bob.left_parties()] == [key]
    assert not theirs.processor.running
    note["title"] = "While he was away"
    assert sync(ada, bob) == 0, "no peer opens it unasked"
    with pytest.raises(StoreError, match="take it back"):
        bob.join(invitation)
    with pytest.raises(UnknownParty):
        bob.party(key)
    with pytest.raises(UnknownParty):
        bob.take_back(b"x" * 32)

    back = bob.take_back(str(key))
    sync(ada, bob)
    assert titles_of(back, note) == "While he was away"
    back.item(note.id, Object)["title"] = "Here again"
    sync(ada, bob)
    assert note.value["title"] == "Here again"
    assert bob.left_parties() == ()
