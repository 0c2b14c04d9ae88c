"""The thread that takes part in epochs: it works beside writers, and ends at once when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import antiphon
from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import MissingBlob, StoreError
from antiphon.feed import FeedStore
from antiphon.halo import KeyStore, Protection, new_device, new_identity
from antiphon.halo.credentials.claims import Policy
from antiphon.party import MetaStore, PartyManager
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.epochs.worker import EpochWorker, WorkedParty
from antiphon.party.live.processor import PartyProcessor
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer

pytestmark = pytest.mark.slow

PATIENCE_S = 30


@pytest.fixture
def alone(alice: Peer) -> Peer:
    """Alice alone, with a policy that wants an epoch after four messages."""
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.member.device.key),), epoch_messages=4))
    return alice


def work(peer: Peer) -> EpochWorker:
    assert peer.member is not None
    worker = EpochWorker(peer.store, pause_s=0)
    worker.add(peer.party, peer.member, peer.epochs)
    return worker


def write(party: PartyProcessor, count: int = 1) -> None:
    for _ in range(count):
        party.create("antiphon/object").edit("set", "title", "x")


def reached(epochs: Epochs, number: int, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the party stands on an epoch."""
    event, step = threading.Event(), epochs.step

    def stepping() -> bool:
        moved = step()
        if epochs.number >= number:
            event.set()
        return moved

    monkeypatch.setattr(epochs, "step", stepping)
    return event


def test_it_declares_when_policy_says_so(alone: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (reached(alone.epochs, number, monkeypatch) for number in (1, 2))
    worker = work(alone)
    write(alone.party, 2)
    assert first.wait(PATIENCE_S)
    write(alone.party, 2)
    assert second.wait(PATIENCE_S)
    assert worker.status(bytes(alone.party.key)) == ""
    worker.stop()
    assert not worker.thread.is_alive()


class Slow(MemoryBlobs):
    """Says when the first blob comes, and holds it until the work is called off."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.go_on = threading.Event()

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        self.began.set()
        assert self.go_on.wait(PATIENCE_S)
        return super().put(data, codec)


def test_writers_go_on_meanwhile_and_what_is_not_finished_is_called_off(alone: Peer) -> None:
    blobs = alone.epochs._blobs = Slow()
    cancel = alone.epochs.cancel

    def calling_off(*, for_good: bool = False) -> None:
        cancel(for_good=for_good)
        blobs.go_on.set()

    alone.epochs.cancel = calling_off  # type: ignore[method-assign]
    worker = work(alone)
    (worked,) = worker._parties.values()
    write(alone.party, 2)
    assert blobs.began.wait(PATIENCE_S)
    write(alone.party, 3)
    assert len(alone.party.items()) == 5, "nobody waited for the epoch"

    worker.stop()
    assert not worker.thread.is_alive()
    assert "cancelled" in worked.status
    assert alone.epochs.chain().open.proposals == ()


def test_it_ends_with_its_store(alone: Peer) -> None:
    worker = work(alone)
    alone.party.close()
    alone.store.close()
    worker.thread.join(PATIENCE_S)
    assert not worker.thread.is_alive()


def test_who_holds_the_lock_does_not_wait_for_it(alone: Peer) -> None:
    worker = work(alone)
    with alone.party.locked():
        worker.stop()
    worker.thread.join(PATIENCE_S)
    assert not worker.thread.is_alive()


def test_an_error_that_nobody_foresaw_is_told(alone: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()

    def fails() -> bool:
        told.set()
        raise ZeroDivisionError("how odd")

    monkeypatch.setattr(alone.epochs, "step", fails)
    worker = work(alone)
    (worked,) = worker._parties.values()
    assert told.wait(PATIENCE_S)
    worker.stop()
    assert worked.status == "ZeroDivisionError: how odd"


def test_an_error_of_the_store_is_told_and_it_goes_on(
    alone: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store cannot be read while the thread looks for news; then it can again."""
    assert alone.member is not None
    worker = EpochWorker(alone.store, pause_s=0, retry_s=PATIENCE_S)
    poll, failed = worker._watch.poll, threading.Event()

    def fails() -> dict[bytes, int]:
        failed.set()
        raise StoreError("the disk is gone")

    monkeypatch.setattr(worker._watch, "poll", fails)
    event = reached(alone.epochs, 1, monkeypatch)
    worker.add(alone.party, alone.member, alone.epochs)
    assert failed.wait(PATIENCE_S)
    write(alone.party, 2)
    worker.add(alone.party, alone.member, alone.epochs)  # it ends the pause after an error, so it may fail once more
    while not worker.error:
        assert worker.thread.is_alive()
    assert worker.status(bytes(alone.party.key)) == "StoreError: the disk is gone"
    assert "the disk is gone" in caplog.text

    monkeypatch.setattr(worker._watch, "poll", poll)
    worker.add(alone.party, alone.member, alone.epochs)
    assert event.wait(PATIENCE_S)
    while worker.error:
        assert worker.thread.is_alive()
    assert "disk" not in worker.status(bytes(alone.party.key))
    worker.stop()
    assert not worker.thread.is_alive()


class Interrupted(MemoryBlobs):
    """Somebody presses Ctrl-C when the first blob comes."""

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        raise KeyboardInterrupt


def test_an_interrupt_leaves_nothing_half_done(alone: Peer) -> None:
    write(alone.party, 2)
    blobs, alone.epochs._blobs = alone.epochs._blobs, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        alone.epochs.declare()
    assert alone.epochs.chain().open.proposals == ()
    writer = threading.Thread(target=write, args=(alone.party,))
    writer.start()
    writer.join(PATIENCE_S)
    assert len(alone.party.items()) == 3, "no lock is left behind"

    alone.epochs._blobs = blobs
    alone.epochs.declare()
    assert alone.epochs.number == 1


# -- the manager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[PartyManager]:
    keys = KeyStore.create(tmp_path / "keys", protection=Protection.UNPROTECTED)
    alice, _ = new_identity(keys, "Alice")
    laptop = new_device(keys, "laptop", alice.key)
    with (
        FeedStore.open(tmp_path / "feeds") as feeds,
        MetaStore.open(tmp_path / "meta.db") as meta,
        PartyManager(feeds, meta, keys, laptop, folder=tmp_path / "items", epochs=True) as parties,
    ):
        parties.create(alice, "Book club")
        yield parties


def test_the_manager_runs_it_with_each_open_party(manager: PartyManager, monkeypatch: pytest.MonkeyPatch) -> None:
    (known,) = manager.list()
    party, member = manager.open(known.party), manager.member(known.party)
    event = reached(manager.epochs(known.party), 1, monkeypatch)
    member.set_policy(Policy(attesters=(bytes(member.device.key),), epoch_messages=2))
    write(party)
    assert event.wait(PATIENCE_S)
    assert manager.epoch_status(known.party) == ""
    manager.close_party(known.party)
    assert manager.open(known.party).status().epoch == 1, "it boots from the epoch"
    manager.delete(known.party)
    assert worker_threads()
    manager.close()
    assert not worker_threads()


def worker_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "antiphon epochs"]


def test_one_thread_serves_all_parties_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        parties = [store.create_party(f"club {number}") for number in range(12)]
        assert len(worker_threads()) == 1
        events = [reached(store.manager.epochs(party.key), 1, monkeypatch) for party in parties]
        for party in parties:
            party.epochs.set_policy(epoch_messages=1)
            party.object({"title": "Milk"})
        assert all(event.wait(PATIENCE_S) for event in events)
        store.manager.close_party(parties[0].key)
        assert len(worker_threads()) == 1
    assert not worker_threads()


def test_a_store_that_takes_no_part_has_no_thread(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", epochs=False, unprotected=True) as store:
        store.create_party("club")
        assert not worker_threads()


def test_blocks_of_a_party_wake_that_party_and_its_children_alone(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        club, other = store.create_party("club"), store.create_party("other")
        child = club.create_child("game")
        worker = store.manager._worker
        assert worker is not None
        of = [party for party in (club, other, child) if worker._parties[bytes(party.key)].is_of({bytes(club.key)})]
        assert of == [club, child]


def test_all_parties_of_a_home_share_one_blob_store(manager: PartyManager, tmp_path: Path) -> None:
    (known,) = manager.list()
    assert isinstance(manager.blobs, BlobStore)
    assert manager.open(known.party).blobs is manager.blobs
    assert (tmp_path / "blobs").is_dir()
    with pytest.raises(StoreError):
        BlobStore.open(tmp_path / "blobs")
    manager.close()
    BlobStore.open(tmp_path / "blobs").close()


def worked(peer: Peer) -> WorkedParty:
    """A party as the worker has it: its ticks are called by hand."""
    assert peer.member is not None
    epochs = Epochs(peer.party, peer.member)
    return WorkedParty(peer.party, peer.member, epochs, EpochDriver(peer.party, peer.member, epochs))


def test_it_looks_again_after_a_pause_though_no_block_comes(alone: Peer) -> None:
    party = worked(alone)
    alone.party.pause()
    party.tick(prune=False)
    assert party.left_ms()
    assert party.status == ""


def test_a_snapshot_that_is_not_whole_is_not_gone_through_at_every_block(
    alone: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alone.party, 2)
    party, tried = worked(alone), []
    party.tick(prune=False)
    assert party.epochs.number == 1

    def prune() -> int:
        tried.append(True)
        raise MissingBlob("a blob of the snapshot is not here", cid=bytes(36))

    monkeypatch.setattr(party.epochs, "prune", prune)
    for _ in range(3):
        party.tick(prune=True)
    assert tried == [True]
    assert party.status == "", "that is no fault"
