"""Helpers of the tests of partial parties: make items, and compare a partial party with a whole one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from antiphon.api.query.queries import Queries
from antiphon.core.errors import UnknownItem
from antiphon.party.live.item import Item
from antiphon.testing.peers import Peer


def closure(peer: Peer, view: bytes) -> list[bytes]:
    """As the API has it."""
    return Queries(cast(Any, SimpleNamespace(processor=peer.party))).closure(view)


def new(peer: Peer, title: str, parent: Item | None = None) -> Item:
    item = peer.party.create("antiphon/object", parent=None if parent is None else parent.id)
    item.edit("set", "title", title)
    return item


def agrees(whole: Peer, part: Peer, view: bytes) -> None:
    """The view's items are the same on both, byte for byte."""
    members = closure(whole, view)
    assert closure(part, view) == members
    followed = part.partial.selection.items
    assert followed.issuperset(members)
    for item in followed:
        assert snapshot(part, item) == snapshot(whole, item)
    base = part.epochs.base  # who was not there lists nothing that the base has dealt with
    tail = [row for row in whole.party.refused() if base is None or row.seq >= base.length(row.feed)]
    assert part.party.refused() == [row for row in tail if row.item in followed]


def snapshot(peer: Peer, item: bytes) -> bytes | None:
    """None where an item is named, but has no valid genesis."""
    try:
        return peer.party.snapshot(item)
    except UnknownItem:
        return None
