"""Forks: every reference to the old item leads to the new one, in handles, queries and subscriptions."""

from __future__ import annotations

import pytest

from antiphon import Fact, InvalidInput, Object, Party, Query, Store, prop, sync
from antiphon.api.query.deltas import Delta
from antiphon.model import ObjectModel
from antiphon.model.message import Change


class Second(ObjectModel):
    """The second version of objects, with the same values."""

    version = 2

    def migrate(self, from_version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
        old = self.restore(snapshot)
        return [self.set(self.initial(), key, value, feed=feed) for key, value in self.value(old).items()]


class Third(Second):
    version = 3


@pytest.fixture
def item(party: Party) -> Object:
    """An item of the first version, where there is a second one."""
    made = party.object({"n": 1}, name="old")
    party.store.models.register(Second)
    return made


def test_what_hangs_under_an_item_hangs_under_its_fork(party: Party, item: Object) -> None:
    child = party.object({"n": 2}, parent=item)
    made = item.fork(version=2)
    assert child.parent == made
    assert made.children == [child]
    assert item.children == [child], "a handle on the old one leads there too"
    assert party.query(Query(prop("n") == 2).parent()) == [made]
    assert party.query(Fact.PARENT.is_(made)) == party.query(Fact.PARENT.is_(item)) == [child]


def test_the_links_of_an_item_are_those_of_its_fork(party: Party, item: Object) -> None:
    other = party.object()
    out, back = party.link(item, other), party.link(other, item)
    made = item.fork(version=2)
    assert (out.source, back.target) == (made, made)
    assert made.links() == [out]
    assert made.links(back=True) == [back]
    assert party.query(Query(Fact.ID.is_(other)).links().target()) == [made]


def test_what_refers_to_an_item_refers_to_its_fork(party: Party, item: Object) -> None:
    holder = party.object({"ref": item, "list": [1, item]})
    assert party.query(prop("ref") == item) == [holder]
    made = item.fork(version=2)
    assert holder["ref"] == made
    assert made.referrers == [holder]
    assert party.query(prop("ref") == made) == party.query(prop("ref") == item) == [holder]
    assert party.query(prop("list").has(made)) == [holder]


def test_what_embeds_an_item_embeds_its_fork(party: Party, item: Object) -> None:
    board = party.create_view("org.example:board", name="Board")
    board.embed(item)
    made = item.fork(version=2)
    later = made.create(name="later")
    assert board.embedded == [made]
    assert board.closure() == [board, made, later]
    assert party.query(Query(Fact.ID.is_(made)).embedders()) == [board]


def test_a_fork_of_a_view_is_that_view(ada: Store, party: Party) -> None:
    view = party.create_view("org.example:board", name="Board")
    locator = view.locator
    party.store.models.register(Second)
    with party.batch():
        assert view.fork().locator == locator
    party.store.models.register(Third)
    made = party.view(locator.key).fork()
    assert party.views("org.example:board") == party.views() == [made]
    assert made.locator == locator
    assert ada.resolve(str(locator)) == made
    with pytest.raises(InvalidInput, match="is no view"):
        _ = party.object().locator


def test_a_fork_is_not_hung_below_itself(party: Party, item: Object) -> None:
    """The parent of the child is the fork."""
    child = party.object(parent=item)
    made = item.fork(version=2)
    with pytest.raises(InvalidInput, match="itself or below it"):
        made.move_under(child)
    made.item.move(child.id)  # as a hostile peer writes it
    assert (made.parent, child.parent) == (None, made)


def test_forks_in_a_circle_lead_nowhere(party: Party) -> None:
    one, two = party.object(), party.object()
    child = party.object(parent=one)
    for old, new in ((one, two), (two, one)):
        with party.processor.batch() as batch:
            batch.change(bytes(old.id), Change(forked_to=bytes(new.id)))
    assert (party.item(one.id), party.item(two.id), child.parent) == (one, two, one)


def test_what_stands_on_the_old_item_hears_of_the_fork(
    ada: Store, bob: Store, party: Party, theirs: Party, item: Object
) -> None:
    bob.models.register(Second)
    child = party.object({"n": 2}, parent=item)
    sync(ada, bob)
    heard: list[Delta] = []
    parents = theirs.subscribe(Query(prop("n") == 2).parent(), heard.append)
    assert parents.result.ids == (bytes(item.id),)
    made = item.fork(version=2)
    sync(ada, bob)
    assert parents.result.ids == (bytes(made.id),)
    assert [*heard[-1].added.ids, *heard[-1].removed] == [bytes(made.id), bytes(item.id)]
    found = theirs.item(child.id)
    assert found.parent is not None
    assert found.parent.id == made.id
