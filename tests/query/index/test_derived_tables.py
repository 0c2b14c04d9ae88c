"""After any history, every table of an item store holds exactly what building it again from the feeds gives."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.epochs.test_laws import some_step
from tests.party.histories import models
from tests.query.index.derived_tables import derived

from antiphon.core.errors import InvalidInput, InvalidMutation, NotAuthorised, UnknownItem
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.party.engine.ports import Save
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import ItemStore
from antiphon.query.index.index import ItemIndex
from antiphon.testing.peers import Peer, Peers

EXAMPLES = budget(12, 400)


@pytest.fixture(autouse=True, scope="module")
def indexed() -> Iterator[None]:
    """Peers keep an index, as a store of the API does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("antiphon.testing.peers.PartyProcessor", partial(PartyProcessor, index=ItemIndex))
        yield


def check(peers: Peers) -> None:
    for peer in peers.all:
        before = derived(peer.party)
        peer.rebuild()
        after = derived(peer.party)
        for table in before:
            assert before[table] == after[table], f"{peer.name}: {table}"


def relate(peer: Peer, chance: random.Random) -> None:
    """Values that queries have columns, lists and words of; forks, links, embedded items and references."""
    party = peer.party
    items = [item for item in party.items("antiphon/object") if not party.item(item).deleted]
    if not items:
        return
    item: Item = party.item(chance.choice(items))
    what = chance.randrange(5)
    if what == 0:
        item.edit("set", "a", chance.choice([1, 2, "a word", None]))
    elif what == 1:
        item.edit("set", "b", chance.sample([1, "x", True], 2))
    elif what == 2:
        party.create("antiphon/object", link=(item.id, chance.choice(items)))
    elif what == 3:
        item.delete()
    else:
        item.edit("delete", "a")


def check_history(seed: int, *, steps: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Peers(folder, models=models()) as peers:
        for name in ("alice", "bob", "carol"):
            peers.add(name, Role.OWNER)
        alice = peers.all[0]
        assert alice.member is not None
        policy = Policy(attesters=(bytes(alice.device.key),), deleted_epochs=chance.choice([0, 1, 1, 2]))
        alice.member.set_policy(policy)
        peers.sync()
        for peer in peers.all:
            derived(peer.party)  # the index keeps its columns from now on
        for _ in range(steps):
            some_step(peers, chance)
            with suppress(NotAuthorised, InvalidMutation, InvalidInput, UnknownItem):
                relate(chance.choice(peers.all), chance)
        peers.settle()
        for giver in peers.all:
            for taker in peers.all:
                if giver is not taker:
                    peers.pass_blobs(giver, taker, whole=True)
        peers.settle()
        check(peers)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=EXAMPLES)
@pytest.mark.slow
def test_all_tables_are_those_of_a_fresh_build(seed: int) -> None:
    check_history(seed, steps=30)


def gone_at_an_epoch(folder: str) -> bool:
    """An item is deleted, and an epoch discards it. True if the law holds, and the item is not listed."""
    with Peers(folder, models=models()) as peers:
        alice = peers.add("alice")
        assert alice.member is not None
        alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), deleted_epochs=1))
        kept, gone = (alice.party.create("antiphon/object") for _ in range(2))
        for item in (kept, gone):
            item.edit("set", "a", 1)
        derived(alice.party)
        gone.delete()
        for value in range(3):
            kept.edit("set", "a", value)
            alice.epochs.declare()
            alice.epochs.step()
        check(peers)
        return alice.party.items() == [kept.id]


def test_an_item_gone_at_an_epoch_is_gone_from_every_table() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert gone_at_an_epoch(folder)


# -- planted bugs: the law sees each of them


def _stays_in_the_index(patch: pytest.MonkeyPatch) -> None:
    put = ItemIndex.put

    def only_items(index: ItemIndex, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        put(index, [row for row in rows if row[1] is not None])

    patch.setattr(ItemIndex, "put", only_items)


def _stays_in_the_items(patch: pytest.MonkeyPatch) -> None:
    put_base = ItemStore._put_base

    def without_items(store: ItemStore, save: Save) -> None:
        kept = set(store._db.execute("SELECT * FROM items"))
        put_base(store, save)
        gone = kept - set(store._db.execute("SELECT * FROM items"))
        store._db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", gone)

    patch.setattr(ItemStore, "_put_base", without_items)


@pytest.mark.parametrize(("plant", "table"), [(_stays_in_the_index, "docs"), (_stays_in_the_items, "items")])
def test_an_item_that_stays_after_its_epoch_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError, match=f"alice: {table}"):
            gone_at_an_epoch(folder)
