"""A hostile member makes its items grow, and its peers save them. Saves cost no more than the messages that came.

Work is counted in rows, bytes of rows and calls: no test depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import settle
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.register import PACKED_REGISTERS_MAX, Node
from antiphon.model.object.state import Op
from antiphon.party.engine import engine as engine_module, row_cache
from antiphon.party.live.item import Item
from antiphon.query.index import update
from antiphon.query.index.index import ItemIndex
from antiphon.testing.peers import Peer, Peers

ITEMS = 12
TURNS = 40


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path, authority=False) as made:
        yield made


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all rows that are encoded."""
    found: list[int] = []

    def row_of(entry: Any, index: Any) -> Any:
        row = row_cache.row_of(entry, index)
        found.append(row.size)
        return row

    monkeypatch.setattr(engine_module, "row_of", row_of)
    return found


def threads(peer: Peer, count: int) -> list[Item]:
    return [peer.party.create("antiphon/messenger") for _ in range(count)]


def parents_in(index: object, items: list[Item]) -> dict[bytes, bytes]:
    assert isinstance(index, ItemIndex)
    return {item.id: index.parent(item.id) for item in items}


def receive(peers: Peers, sender: Peer, receiver: Peer) -> None:
    peers.pass_on(sender, receiver)
    receiver.party.process()


def test_rows_of_many_growing_items_cost_no_more_than_their_messages(
    peers: Peers, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given items that each stay below 16 KiB, when they grow together, then each save waits for more messages."""
    mallory, bob = peers.add("mallory"), peers.add("bob")
    items = threads(mallory, ITEMS)
    peers.sync()
    mallory.party.save()
    monkeypatch.setattr(engine_module, "UNSAVED_MESSAGES_MAX", 10)
    sizes.clear()
    for turn in range(TURNS):
        with mallory.party.batch():
            for item in items:
                item.edit("post", f"post {turn} " + "long " * 30)
        receive(peers, mallory, bob)
    mallory.party.save()
    bob.party.save()
    last = sum(sizes[-ITEMS:])
    assert 4_000 * ITEMS < last < (16 << 10) * ITEMS
    assert sum(sizes) < 8 * last  # of both peers: at each turn it would be 40 × half of it


def test_a_great_row_keeps_few_other_items_in_memory(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a row of a megabyte, when many other items change, then they are saved, and not all kept in memory."""
    monkeypatch.setattr(engine_module, "MANY", 10)
    monkeypatch.setattr(engine_module, "PUT_OFF_ITEMS_MAX", 20)
    mallory, bob = peers.add("mallory"), peers.add("bob")
    (great,) = threads(mallory, 1)
    items = threads(mallory, 100)
    peers.sync()
    great.edit("post", "much " * 50_000)
    receive(peers, mallory, bob)
    bob.party.save()
    for item in items:
        item.edit("post", "touched")
        receive(peers, mallory, bob)
        with bob.party.locked() as engine:
            assert len(engine.cache.dirty) <= 10 + 20


def test_a_cycle_of_parents_is_settled_once_in_each_save(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a save in many parts, when each of them has members of one cycle, then the cycle is derived once."""
    mallory, bob = peers.add("mallory"), peers.add("bob")
    for peer in (mallory, bob):
        peer.party.attach(ItemIndex)
    items = threads(mallory, ITEMS)
    for nth, item in enumerate(items):
        item.move(items[nth - 1].id)
    peers.sync()
    bob.party.save()
    for _ in range(3):
        for nth, item in enumerate(items):
            item.move(items[(nth + 5) % ITEMS].id)
    monkeypatch.setattr(engine_module, "ROWS_SIZE_AT_ONCE", 1)  # each row is a part of its own
    settled: list[object] = []

    def counted(*given: Any) -> Any:
        settled.append(given)
        return settle(*given)

    monkeypatch.setattr(update, "settle", counted)
    peers.pass_on(mallory, bob)
    bob.party.process()
    bob.party.save()
    assert len(settled) == 1
    with mallory.party.locked() as here, bob.party.locked() as there:
        here.save()
        parents = [parents_in(engine.items.index, items) for engine in (here, there)]
    assert parents[0] == parents[1]
    assert len({*parents[0].values()}) > 1


def test_a_large_object_does_not_keep_its_bytes_twice() -> None:
    """Registers cache their bytes for the next save: in a large object, these took more memory than its values."""
    model = ObjectModel()
    state = model.initial()
    for number in range(1, 501):
        stamp = Stamp(number, b"f" * 32, number)
        state.take([Op((f"key {number}",), f"value {number} " + "long " * (number % 30))], stamp)
        state.hear(stamp)
    data = model.snapshot(state)
    assert 0 < _cached(state.root) <= PACKED_REGISTERS_MAX
    restored = model.restore(data)
    assert _cached(restored.root) <= PACKED_REGISTERS_MAX + 1
    assert model.snapshot(restored) == data


def _cached(node: Node) -> int:
    return (node.packed is not None) + sum(map(_cached, node.children.values()))
