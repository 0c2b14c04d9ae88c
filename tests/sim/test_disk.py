"""A simulated crash loses unsynced writes, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from antiphon.core.errors import StoreError
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.ports import ItemRow, Save
from antiphon.sim.disk import Crashed, SimDisk, SimItems

PARTY = KeyPair.from_seed(b"p" * 32).key
PAIR = KeyPair.from_seed(b"f" * 32)
DRAFT = Draft(Kind.MUTATION, bytes(16), b"hello")


def length(path: Path) -> int:
    with FeedStore.open(path) as store:
        return store.record(PAIR.key).length


def crash(disk: SimDisk, store: FeedStore, path: Path) -> None:
    disk.lose(store.close, path / "items.db")


def test_what_was_synced_survives(tmp_path: Path) -> None:
    disk = SimDisk(random.Random(1))
    store = FeedStore.open(tmp_path / "feeds", disk=disk)
    store.create(PAIR.key, PARTY)
    store.append(PAIR, PARTY, [DRAFT])
    crash(disk, store, tmp_path)
    assert length(tmp_path / "feeds") == 1


def test_what_was_not_is_lost_unless_it_was_flushed(tmp_path: Path) -> None:
    disk = SimDisk(random.Random(1))
    store = FeedStore.open(tmp_path / "feeds", disk=disk, durable=False)
    store.create(PAIR.key, PARTY)
    store.append(PAIR, PARTY, [DRAFT])
    store.flush()
    store.append(PAIR, PARTY, [DRAFT, DRAFT])
    crash(disk, store, tmp_path)
    assert length(tmp_path / "feeds") == 1


def test_a_full_disk_acknowledges_nothing(tmp_path: Path) -> None:
    disk = SimDisk(random.Random(1))
    with FeedStore.open(tmp_path / "feeds", disk=disk) as store:
        store.create(PAIR.key, PARTY)
        disk.full = True
        with pytest.raises(StoreError, match="no space"):
            store.append(PAIR, PARTY, [DRAFT])
        disk.full = False
        assert store.record(PAIR.key).length == 0
        store.append(PAIR, PARTY, [DRAFT])


@pytest.mark.parametrize("seed", range(6))
def test_a_crash_inside_a_commit_leaves_all_of_it_or_nothing(tmp_path: Path, seed: int) -> None:
    disk = SimDisk(random.Random(seed))
    store = FeedStore.open(tmp_path / "feeds", disk=disk)
    store.create(PAIR.key, PARTY)
    disk.crash_in = 1
    with pytest.raises(Crashed):
        store.append(PAIR, PARTY, [DRAFT, DRAFT])
    crash(disk, store, tmp_path)
    assert length(tmp_path / "feeds") in (0, 2)


@pytest.mark.parametrize("seed", range(12))
def test_a_torn_log_of_the_item_store_gives_an_earlier_state(tmp_path: Path, seed: int) -> None:
    disk = SimDisk(random.Random(seed))
    path = tmp_path / "items.db"
    store = SimItems(path, PARTY, disk)
    for number in range(1, 6):
        with store.saving() as put:
            put(Save(rows=[ItemRow(bytes([number]) * 16, b"state", "m", 1, b"", False, False, False)]))
    disk.lose(store.close, path)
    found = sorted(SimItems(path, PARTY, disk).ids())
    assert found == [bytes([number]) * 16 for number in range(1, 1 + len(found))]
