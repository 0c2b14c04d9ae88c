"""Wrong arguments are refused with an error that names the expected value; peers may write anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from antiphon import InvalidInput, Party, Store, sync
from antiphon.model.item_state import EMBEDDED, META


def wrong(party: Party) -> list[tuple[Callable[[], Any], str]]:
    note = party.object()
    other: Any = "bob"
    return [
        (lambda: party.item(other), "an item is named by its `id`, which is bytes, not by 'bob'"),
        (lambda: party.invite(other), "who is invited is named by a key, 32 bytes or its text, not by 'bob'"),
        (lambda: party.revoke(b"bob"), "whose membership ends is named by a key"),
        (lambda: note.restrict_writers(other), "who may write is named by a key"),
        (lambda: party.link(note, other), "an end of a link is an item, as `party.item"),
        (lambda: party.create(parent=other), "the parent of an item is an item"),
        (lambda: note.move_under(other), "its parent is an item"),
        (lambda: note.embed(other), "the argument of `embed` is an item"),
        (lambda: note.at(other), "a moment is a Timeframe, as `party.timeframe` gives it"),
        (lambda: party.at(other), "a moment is a Timeframe"),
        *untexted(party, 5),
        (lambda: party.invite(party.key, other), "a role is one of Role.OWNER, Role.EDITOR, "),
        (lambda: note.observe(other), "an observer is called back after each change, and 'bob' cannot be called"),
        (lambda: note.release(other), "the argument of `release` is an item"),
        (lambda: party.view(other), "a view is named by a key"),
        (lambda: party.store.resolve(5), "a Reference, a view's locator or its text can be resolved, not 5"),  # type: ignore[arg-type]
        (lambda: party.store.holds(5), "a Reference, a view's locator or its text can be resolved, not 5"),  # type: ignore[arg-type]
        (lambda: party.store.join(5), "one joins with what `party.invite` gives, or its text, not with 5"),  # type: ignore[arg-type]
        (lambda: party.store.registry.register(other), "a registry takes a RegistryEntry, not 'bob'"),
    ]


def untexted(party: Party, five: Any) -> list[tuple[Callable[[], Any], str]]:
    note = party.object()
    return [
        (lambda: party.object(name=five), "the name of an item is text, not 5"),
        (lambda: party.list(type=five), "the type of an item is text, not 5"),
        (lambda: note.create(name=five), "the name of an item is text, not 5"),
        (lambda: setattr(note, "name", five), "the name of an item is text, not 5"),
        (lambda: setattr(note, "type", five), "the type of an item is text, not 5"),
        (lambda: setattr(party, "name", five), "the name of an item is text, not 5"),
        (lambda: note.set_metadata(five, 3), "a key of metadata is text, not 5"),
        (lambda: party.create_view(five, name="Board"), "the class of a view is text, not 5"),
        (lambda: party.create_view("board", name=five), "the name of a view is text, not 5"),
        (lambda: party.store.create_party(five), "the name of a party is text, not 5"),
    ]


def test_what_is_wrong_is_refused_in_words_that_help(party: Party) -> None:
    cases = wrong(party)
    before = party.timeframe
    for call, message in cases:
        with pytest.raises(InvalidInput) as error:
            call()
        assert message in str(error.value)
    assert party.timeframe == before, "and nothing was written"


def test_whatever_a_peer_says_is_embedded(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    child = party.object({"n": 1})
    for said in (5, [1, 2], {"a": 1}, None):
        item, note = party.object({"n": 2}), party.text("See")
        sync(ada, bob)
        with theirs.processor.batch() as batch:
            for one in (item, note):
                batch.describe(bytes(one.id), META.set(META.initial(), EMBEDDED, said, feed=batch.feed))
        sync(ada, bob)
        assert item.metadata == {EMBEDDED: said}
        assert item.embedded == []

        item.embed(child)
        item.embed(note)
        note.insert_item(0, child)
        sync(ada, bob)
        for where in (party, theirs):
            assert where.item(item.id).embedded == [where.item(one.id) for one in (child, note)]
            assert where.item(note.id).embedded == [where.item(child.id)]
