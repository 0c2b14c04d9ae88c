"""Links, closures, dangling ends, and cycles that two devices close concurrently."""

from __future__ import annotations

import pytest

from antiphon import InvalidInput, Party, Store, sync
from antiphon.feed.header import Kind
from antiphon.testing.copy_feeds import copy_feeds


def test_a_link_is_an_item_with_two_ends(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    ada_card, bob_card = party.object({"name": "Ada"}), party.object({"name": "Bob"})
    knows = party.link(ada_card, bob_card, {"since": 2020, "by": ada_card}, type="knows")
    sync(ada, bob)

    there = theirs.item(knows.id)
    assert (there.source, there.target) == (theirs.item(ada_card.id), theirs.item(bob_card.id))
    assert ada_card.links() == bob_card.links(back=True) == [knows]
    assert ada_card.links(back=True) == bob_card.links() == []
    assert (knows["since"], knows["by"]) == (2020, ada_card)
    knows.delete()
    assert ada_card.links() == []
    with pytest.raises(InvalidInput, match="is no link"):
        _ = ada_card.source


def test_a_link_is_inside_one_party(ada: Store, party: Party) -> None:
    elsewhere = ada.create_party("Club").object()
    with pytest.raises(InvalidInput, match="across parties, refer"):
        party.link(party.object(), elsewhere)


def test_an_end_that_is_not_here_is_none(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    """Bob revoked before Ada has the item that he linked to: its genesis is void here."""
    card = party.object()
    with theirs.processor.batch():
        far = theirs.object({"title": "Far"})
    party.revoke(bob.me)
    copy_feeds(bob.manager.feeds, ada.manager.feeds, party.key)
    party.refresh()
    assert far not in party
    with party.processor.batch() as batch:
        made = batch.create("antiphon/object", 1, b"", (bytes(card.id), bytes(far.id)))
    link = party.item(made)

    assert link.source == card
    assert link.target is None
    assert card.links() == [link]
    assert card.closure() == [card], "a link belongs to what has both its ends"


def test_a_parent_that_is_not_here_is_none(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    card, far = party.object(), theirs.object()
    with party.processor.batch() as batch:
        made = batch.create("antiphon/object", 1, bytes(far.id), None)
    orphan = party.item(made)
    assert orphan.parent is None
    sync(ada, bob)
    assert orphan.parent == party.item(far.id)
    assert card.parent is None


def test_a_closure_is_what_belongs_together(party: Party) -> None:
    board = party.create_view("org.example:board", name="Board")
    lane = board.create("antiphon/array", name="Lane")
    card, outside = party.object(parent=lane), party.object(name="Outside")
    inner = party.link(lane, card)
    outer = party.link(card, outside)
    party.object({"soft": card})
    card.embed(board)  # a circle does no harm

    assert set(board.closure()) == {board, lane, card, inner}
    assert outer not in board.closure()
    assert outside.closure() == [outside]
    card.delete()
    assert card in board.closure()


def test_a_circle_that_two_devices_close_has_one_outcome(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    one, two, three = (party.object({"n": n}) for n in range(3))
    sync(ada, bob)
    one.move_under(two)
    three.move_under(one)
    theirs.item(two.id).move_under(theirs.item(three.id))
    sync(ada, bob)

    def tree(where: Party) -> dict[bytes, bytes]:
        return {bytes(item.id): where.parent_of(item.id) for item in where.query()}

    assert tree(party) == tree(theirs)
    assert list(tree(party).values()).count(b"") == 1, "one of the claims gave way"
    for where in (party, theirs):
        for item in where.query():
            assert [child.id for child in item.children] == [
                child for child, parent in sorted(tree(where).items()) if parent == item.id
            ]
    assert [event.kind for event in two.history()].count(Kind.CHANGE) == 1, "it is kept, and would hold once it can"
