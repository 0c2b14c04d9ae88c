"""The thread that takes part in epochs: it works beside writers, and ends at once when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import MissingBlob, StoreError
from antiphon.feed import FeedStore
from antiphon.halo import KeyStore, Protection, new_device, new_identity
from antiphon.halo.credentials.claims import Policy
from antiphon.party import MetaStore, PartyManager
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.epochs.worker import EpochWorker
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
    return EpochWorker(peer.party, peer.member, peer.epochs, pause_s=0)


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
    worker.stop()
    assert not worker.thread.is_alive()
    assert worker.status == ""


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
    write(alone.party, 2)
    assert blobs.began.wait(PATIENCE_S)
    write(alone.party, 3)
    assert len(alone.party.items()) == 5, "nobody waited for the epoch"

    worker.stop()
    assert not worker.thread.is_alive()
    assert "cancelled" in worker.status
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
    assert told.wait(PATIENCE_S)
    worker.stop()
    assert worker.status == "ZeroDivisionError: how odd"


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
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("antiphon epochs")]
    manager.close_party(known.party)
    assert workers
    assert not any(thread.is_alive() for thread in workers)

    assert manager.open(known.party).status().epoch == 1, "it boots from the epoch"
    manager.delete(known.party)
    assert not any(thread.name.startswith("antiphon epochs") for thread in threading.enumerate())


def test_all_parties_of_a_home_share_one_blob_store(manager: PartyManager, tmp_path: Path) -> None:
    (known,) = manager.list()
    assert isinstance(manager.blobs, BlobStore)
    assert manager.open(known.party).blobs is manager.blobs
    assert (tmp_path / "blobs").is_dir()
    with pytest.raises(StoreError):
        BlobStore.open(tmp_path / "blobs")
    manager.close()
    BlobStore.open(tmp_path / "blobs").close()


def idle(peer: Peer, *, prune: bool = False) -> EpochWorker:
    """One whose thread has ended: its ticks are called by hand."""
    assert peer.member is not None
    worker = EpochWorker(peer.party, peer.member, Epochs(peer.party, peer.member), pause_s=0, prune=prune)
    worker._watch.close()
    worker.thread.join()
    return worker


def test_it_looks_again_after_a_pause_though_no_block_comes(alone: Peer) -> None:
    worker = idle(alone)
    alone.party.pause()
    assert worker._tick() is not None
    assert worker.status == ""


def test_a_snapshot_that_is_not_whole_is_not_gone_through_at_every_block(
    alone: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(alone.party, 2)
    worker, tried = idle(alone, prune=True), []
    worker._pruned, worker._prune_ms = 0, 0
    assert worker._epochs.number == 1

    def prune() -> int:
        tried.append(True)
        raise MissingBlob("a blob of the snapshot is not here", cid=bytes(36))

    monkeypatch.setattr(worker._epochs, "prune", prune)
    for _ in range(3):
        worker._tick()
    assert tried == [True]
    assert worker.status == "", "that is no fault"
