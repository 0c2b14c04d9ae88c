"""What earlier snapshots have kept, from the blobs that are here or fetched."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from tests.api import conftest as api

import antiphon
from antiphon import Party, Store, Thread
from antiphon.core import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, UnknownItem
from antiphon.party.live.past_epochs import earlier

LARGE = random.Random(1).randbytes(60_000).hex()


blobs, store = api.blobs, api.store  # whole stores, as the tests of the API have them


class Shelf:
    """Somebody else who has the blobs."""

    def __init__(self, store: Store) -> None:
        self._held = {cid: blobs(store).get(cid) for cid in blobs(store)}
        self.asked: list[Cid] = []

    async def fetch(self, cid: Cid) -> bytes:
        await asyncio.sleep(0)
        assert cid not in self.asked, "asked for twice"
        self.asked.append(cid)
        return self._held[cid]


def history(party: Party) -> antiphon.Object:
    note = party.object({"title": "one", "body": LARGE})
    for number in range(40):
        party.object({"number": number})
    for title in ("two", "three", "four"):
        party.epochs.declare()
        note["title"] = title
    return note


def test_an_item_at_an_earlier_epoch(store: Store) -> None:
    note = history(store.create_party())
    found = {number: asyncio.run(note.earlier(number)).value["title"] for number in (1, 2, 3)}
    assert found == {1: "one", 2: "two", 3: "three"}
    last = asyncio.run(note.earlier())
    assert (last.number, last.value["title"], last.value["body"]) == (2, "two", LARGE)
    assert (last.name, last.deleted, last.type) == ("", False, "")
    assert last.created_ms > 0


def test_numbers_that_there_are_not_are_refused(store: Store) -> None:
    party = store.create_party()
    note = party.object({})
    with pytest.raises(InvalidInput, match="is at epoch 0 here; there is no epoch -1"):
        asyncio.run(note.earlier())
    party.epochs.declare()
    young = party.object({})
    for number in (0, 2):
        with pytest.raises(InvalidInput, match="is at epoch 1"):
            asyncio.run(note.earlier(number))
    with pytest.raises(UnknownItem, match="epoch 1 has no item"):
        asyncio.run(young.earlier(1))


def test_what_is_not_here_is_fetched_and_not_kept(store: Store) -> None:
    note = history(store.create_party())
    shelf = Shelf(store)
    store.collect_garbage()
    before = set(blobs(store))
    with pytest.raises(MissingBlob, match="say how to fetch it"):
        asyncio.run(note.earlier(1))
    found = asyncio.run(note.earlier(1, fetch=shelf.fetch))
    assert (found.value["title"], found.value["body"]) == ("one", LARGE)
    assert 3 <= len(shelf.asked) < 12, "only the path to it"
    assert set(blobs(store)) == before


def test_what_is_fetched_is_verified(store: Store) -> None:
    note = history(store.create_party())
    store.collect_garbage()

    async def liar(_: Cid) -> bytes:
        return b"something else"

    with pytest.raises(BadEncoding, match="not what that CID names"):
        asyncio.run(note.earlier(1, fetch=liar))


def test_an_item_that_is_gone(store: Store) -> None:
    party = store.create_party()
    party.epochs.set_policy(deleted_epochs=1)
    note = party.object({"title": "gone"})
    party.epochs.declare()
    note.delete()
    party.epochs.declare()
    party.epochs.declare()
    assert not party.has(note.id)
    found = asyncio.run(earlier(party.processor, bytes(note.id), 1))
    assert found.value == {"title": "gone"}


async def bodies(chat: Thread, **options: Any) -> list[Any]:
    return [post["body"] async for post in chat.older(**options)]


def test_posts_that_retention_has_let_go(store: Store) -> None:
    party = store.create_party()
    chat = party.thread()
    assert asyncio.run(bodies(chat)) == []
    for number in range(4):
        chat.post(number)
    party.epochs.declare()
    party.epochs.set_policy(message_count=3)
    for number in range(4, 6):
        chat.post(number)
    party.epochs.declare()
    assert [post["body"] for post in chat] == [3, 4, 5]
    for number in range(6, 9):
        chat.post(number)
    party.epochs.declare()
    assert [post["body"] for post in chat] == [6, 7, 8]
    assert asyncio.run(bodies(chat)) == [5, 4, 3, 2, 1, 0]
    shelf = Shelf(store)
    store.collect_garbage()
    with pytest.raises(MissingBlob):
        asyncio.run(bodies(chat))
    assert asyncio.run(bodies(chat, fetch=shelf.fetch)) == [5, 4, 3, 2, 1, 0]


def test_one_stops_when_one_has_seen_enough(store: Store) -> None:
    party = store.create_party()
    chat = party.thread()
    party.epochs.set_policy(message_count=1)
    for number in range(3):
        chat.post(number)
        party.epochs.declare()
    shelf = Shelf(store)
    store.collect_garbage()

    async def first() -> Any:
        async for post in chat.older(fetch=shelf.fetch):
            return post["body"]
        return None

    assert asyncio.run(first()) == 1
    assert len(shelf.asked) <= 3
