"""A crash at every point of declaring, attesting, standing on an epoch and pruning: nothing that was said is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.budget import budget
from tests.party.epochs.epoch_acts import agree_on, device, join, member, note, same, settle
from tests.party.helpers import Story, factory

from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.engine import Engine
from antiphon.party.epochs import epochs as epochs_module
from antiphon.party.epochs.snapshot_fold import EpochFold
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import ItemStore
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

STRIDE = budget(2, 1)  # from one point to the next


class Crash(BaseException):
    """The power goes off."""


class Fuse:
    """Blows when one of the points is passed for the n-th time."""

    #: What is about to happen, or has just happened.
    POINTS: tuple[tuple[Any, str], ...] = (
        (MemoryBlobs, "put"),
        (MemoryBlobs, "put_all"),
        (FeedStore, "append"),
        (FeedStore, "prune"),
        (EpochFold, "run"),
        (Delivery, "rebase"),
        (Delivery, "rebased"),
        (Engine, "refold_into"),
        (PartyProcessor, "begin_again"),
        (epochs_module, "rebase"),
    )

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.left = at
        for owner, name in self.POINTS:
            patch.setattr(owner, name, self._wrapped(getattr(owner, name)))
        saving = ItemStore.saving

        @contextmanager
        def crashing(items: ItemStore) -> Iterator[Any]:
            with saving(items) as put:
                yield put
                self.burn()  # all is put, and nothing is committed
            self.burn()

        patch.setattr(ItemStore, "saving", crashing)

    def _wrapped(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def passing(*arguments: Any, **options: Any) -> Any:
            self.burn()
            found = call(*arguments, **options)
            self.burn()
            return found

        return passing

    def burn(self) -> None:
        self.left -= 1
        if not self.left:
            raise Crash


class Scene:
    """Alice and Bob attest, and Bob generates. Both have written; then somebody does something, and crashes."""

    def __init__(self, folder: Path) -> None:
        self.peers = Peers(folder, models=factory(Story))
        self.alice, self.bob = self.peers.add("alice"), self.peers.add("bob")
        agree_on(self.peers, self.alice, self.bob, generator=device(self.bob), deleted_epochs=1, message_count=2)
        self.items = [note(self.alice, "Alice's"), note(self.bob, "Bob's")]
        talk = self.alice.party.create("antiphon/messenger")
        for number in range(4):
            talk.edit("post", f"post {number}")
        self.peers.sync()
        self.story = self.alice.party.create("test/story")
        self.story.edit("tell", "one")
        self.alice.party.item(self.items[1].id).delete()
        self.peers.sync()

    def late(self) -> None:
        """Messages outside the cut of the next epoch, with low lamports."""
        self.alice.party.item(self.story.id).edit("tell", "late")
        note(self.alice, "late")

    # -- what is done; each prepares, and gives who does what

    def declare(self) -> tuple[Peer, Callable[[], Any]]:
        return self.bob, self.bob.epochs.declare

    def attest(self) -> tuple[Peer, Callable[[], Any]]:
        self.bob.epochs.declare()
        self.late()
        self.peers.sync()
        return self.alice, self.alice.epochs.step

    def stand(self) -> tuple[Peer, Callable[[], Any]]:
        self.bob.epochs.declare()
        self.late()
        self.peers.sync()
        self.alice.epochs.step()
        self.peers.sync()
        return self.bob, self.bob.epochs.step

    def second(self) -> tuple[Peer, Callable[[], Any]]:
        """An epoch on an epoch, with an item that goes."""
        self.bob.epochs.declare()
        settle(self.peers)
        self.late()
        self.peers.sync()
        self.bob.epochs.declare()
        self.peers.sync()
        return self.alice, self.alice.epochs.step

    def prune(self) -> tuple[Peer, Callable[[], Any]]:
        self.bob.epochs.declare()
        settle(self.peers)
        return self.bob, self.bob.epochs.prune

    def begin(self) -> tuple[Peer, Callable[[], Any]]:
        """A joiner, who has the snapshot, comes to stand on it."""
        self.bob.epochs.declare()
        settle(self.peers)
        for peer in (self.alice, self.bob):
            peer.epochs.prune()
        carol = self.peers.add("carol")
        for cid in self.alice.blobs:  # type: ignore[attr-defined]
            carol.blobs.put_all([(cid, self.alice.blobs.get(cid))])
        return carol, carol.epochs.step


@pytest.mark.slow
@pytest.mark.parametrize("what", ["declare", "attest", "stand", "second", "prune", "begin"])
def test_a_crash_at_any_point_loses_nothing(tmp_path: Path, what: str) -> None:
    """In `make soak` at every point, else at every second one."""
    crashes = 0
    while _crash(tmp_path / str(crashes), what, crashes * STRIDE + 1):
        crashes += 1
    assert 1 + (crashes - 1) * STRIDE >= 3, "there are points to crash at"


def _crash(folder: Path, what: str, at: int) -> bool:
    """Crash at the n-th point, go on, and look: whether there were so many points."""
    scene = Scene(folder)
    with scene.peers:
        who, does = getattr(scene, what)()
        wanted = who.snapshots().keys() | {bytes(item.id) for item in scene.items}
        written = who.lengths()
        with pytest.MonkeyPatch.context() as patch:
            fuse = Fuse(patch, at)
            with suppress(Crash):
                does()
        who.restart(crash=who.party.running)
        for feed, length in written.items():
            assert who.lengths()[feed] >= length, "what was written is there"
        note(who, "after the crash")
        settle(scene.peers)
        if what == "declare" and scene.bob.epochs.number == 0:
            scene.bob.epochs.declare()
            settle(scene.peers)
        number = 2 if what == "second" else 1
        assert {peer.epochs.number for peer in scene.peers.all} == {number}
        same(*scene.peers.all)
        gone = {bytes(scene.items[1].id)} if what == "second" else set()
        assert who.snapshots().keys() >= wanted - gone
        assert {peer.epochs.chain().conflict for peer in scene.peers.all} == {""}
        scene.bob.epochs.declare()
        settle(scene.peers)
        for peer in scene.peers.all:
            peer.epochs.prune()
        joiner = join(scene.peers, "dora", of=scene.alice)
        same(*scene.peers.all)
        assert joiner.epochs.number == number + 1
        assert member(joiner).party == scene.alice.party.key
        return fuse.left <= 0
