"""Rule 11 on whole peers: code of models that is missing, comes later, or is another under the same version."""

from __future__ import annotations

import pytest
from tests.party.epochs.epoch_acts import (
    agree_on,
    device,
    epoch,
    first,
    join,
    member,
    note,
    refusals,
    same,
    settle,
    takes_over,
)
from tests.party.helpers import Story, factory

from antiphon.core.errors import UnknownModel
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import Policy
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.model import Feeding
from antiphon.party.epochs.epochs import WRONG
from antiphon.party.live.item import Item
from antiphon.snapshot import tree
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


class LoudStory(Story):
    """The same name and version, and other code: what a peer has who changed a model without a new version."""

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation.upper(), stamp, void=void)


class LaterStory(Story):
    """The same states, written in another way."""

    codec = 2

    def snapshot(self, state: list[bytes]) -> bytes:
        return b"|".join(state)

    def restore(self, data: bytes) -> list[bytes]:
        return data.replace(b" ", b"|").split(b"|") if data else []  # those of format 1, too


class Bag(Story):
    """COMMUTATIVE: words in no order."""

    name = "test/bag"
    feeding = Feeding.COMMUTATIVE

    def apply(self, state: list[bytes], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation, stamp, void=void)
        state.sort()


class LaterBag(Bag):
    """The same bags, written in another way."""

    codec = 2

    def snapshot(self, state: list[bytes]) -> bytes:
        return b"|".join(state)

    def restore(self, data: bytes) -> list[bytes]:
        return data.replace(b" ", b"|").split(b"|") if data else []


def about(peer: Peer, item: Item) -> item_codec.Summary:
    """What the snapshot that a peer stands on says of an item."""
    base = peer.epochs.base
    assert base is not None
    data = base.item(item.id)
    assert data is not None
    return item_codec.summary(data)


def party(peers: Peers, **code: ModelFactory) -> list[Peer]:
    """Peers by name with the models that they have; all of them attest, and the first one generates."""
    everybody = [peers.add(name, models=models) for name, models in code.items()]
    agree_on(peers, *everybody, generator=device(everybody[0]))
    return everybody


def tell(peer: Peer, *words: str) -> Item:
    story = peer.party.create("test/story")
    for word in words:
        story.edit("tell", word)
    return story


def cids(*peers: Peer) -> set[bytes]:
    return {bytes(peer.epochs.base.cid) for peer in peers if peer.epochs.base is not None}


def test_who_lacks_code_keeps_the_item_checks_hashes_and_does_not_attest(peers: Peers) -> None:
    alice, bob, carol = party(peers, alice=factory(Story), bob=factory(), carol=factory(Story))
    story = tell(alice, "once", "upon")
    plain = note(alice, "plain")
    peers.sync()
    genesis = alice.epochs.declare()
    peers.settle()
    assert (alice.epochs.number, carol.epochs.number) == (1, 1), "two of three have the code"
    assert device(bob) not in alice.epochs.chain().votes[0]
    assert refusals(bob) == [], "to lack code is no refusal"
    fetched = bob.epochs
    assert fetched.number == 1, "it begins at the snapshot, every blob of which it has checked"
    assert fetched.base is not None
    assert fetched.base.cid == genesis.snapshot
    settle(peers)
    assert bob.party.item(story.id).opaque
    assert bob.party.item(plain.id).value == {"title": "plain"}
    assert list(tree.walk(fetched.base.cid, bob.blobs))
    with pytest.raises(UnknownModel, match="no code for model test/story"):
        bob.epochs._afresh(bob.epochs.chain(), 0, False)
    assert [device(peer) in bob.epochs.chain().votes[0] for peer in (alice, bob, carol)] == [True, False, True]

    bob.models.register(Story)  # the code comes
    bob.party.process()
    assert bob.party.item(story.id).value == [b"once", b"upon"]
    same(alice, bob, carol)
    story.edit("tell", "time")
    epoch(peers)
    assert device(bob) in alice.epochs.chain().votes[1]
    same(alice, bob, carol)


def test_a_raw_epoch_keeps_messages_until_the_code_comes(peers: Peers) -> None:
    """The generator lacks the code of a model, and says so; everybody keeps such items raw, with or without code."""
    alice, bob = party(peers, alice=factory(), bob=factory(Story))
    story = tell(bob, "once", "upon")
    plain = note(bob, "plain")
    peers.sync()
    with pytest.raises(UnknownModel, match="or declare the epoch with such items kept raw"):
        alice.epochs.declare()
    genesis = alice.epochs.declare(raw=True)
    settle(peers)
    assert "test/story" not in [key.name for key in genesis.models]
    assert cids(alice, bob) == {genesis.snapshot}
    assert (alice.epochs.number, bob.party.item(story.id).value) == (1, [b"once", b"upon"])
    assert alice.party.item(story.id).opaque
    carol = join(peers, "carol")
    assert carol.party.item(story.id).opaque
    assert cids(alice, bob, carol) == {genesis.snapshot}

    story.edit("tell", "time")
    peers.sync()
    for peer in (alice, carol):
        peer.models.register(Story)
    peers.settle()
    genesis = epoch(peers)
    assert ("test/story", 1, 1) in genesis.models
    same(alice, bob, carol)
    for peer in (alice, bob, carol):
        assert peer.party.item(story.id).value == [b"once", b"upon", b"time"]
        assert peer.party.item(plain.id).value == {"title": "plain"}


def kept_raw(peers: Peers) -> tuple[Peer, Peer, Peer, Item]:
    """An epoch with a story in it, whose code Carol alone has; she is neither of those who decide."""
    alice, bob = party(peers, alice=factory(), bob=factory())
    carol = peers.add("carol", models=factory(Story))
    story = tell(carol, "once", "upon")
    peers.sync()
    alice.epochs.declare(raw=True)
    settle(peers)
    return alice, bob, carol, story


def test_what_is_raw_survives_pruning(peers: Peers) -> None:
    """All messages that the code will need are in the snapshot, so that the feeds may go."""
    alice, bob, carol, story = kept_raw(peers)
    assert all(peer.epochs.prune() > 0 for peer in peers.all)
    for peer in (alice, bob):
        peer.models.register(Story)
        peer.restart()
        assert peer.party.item(story.id).value == [b"once", b"upon"]
    epoch(peers)
    same(alice, bob, carol)


def test_what_was_raw_is_reified_by_the_first_epoch_that_lists_its_model(peers: Peers) -> None:
    """Nobody has touched it since. Who joined, and has opened nothing, comes to the same snapshot."""
    alice, bob, carol, story = kept_raw(peers)
    assert about(alice, story).raw
    dora = join(peers, "dora")
    for peer in (alice, bob, dora):
        peer.models.register(Story)
        peer.restart()
    note(alice)
    genesis = epoch(peers)
    assert ("test/story", 1, 1) in genesis.models
    assert not about(alice, story).raw
    same(alice, bob, carol, dora)
    assert alice.party.item(story.id).value == [b"once", b"upon"]


def test_who_has_opened_nothing_forgets_what_the_others_do(peers: Peers) -> None:
    """Zoe begins at a snapshot and attests the next, in which policy lets go of posts that nobody has touched."""
    alice, bob = party(peers, alice=factory(), bob=factory())
    talk = alice.party.create("antiphon/messenger")
    for number in range(4):
        talk.edit("post", f"post {number}")
    epoch(peers)
    zoe = join(peers, "zoe")
    with zoe.party.locked() as engine:
        assert not engine.whole, "it has no rows, so nothing is found by them"
    member(alice).set_policy(Policy(attesters=tuple(sorted(map(device, (alice, bob)))), message_count=2))
    note(alice)
    peers.sync()
    genesis = first(peers).epochs.declare()
    peers.sync()
    zoe.epochs.step()
    assert zoe.epochs._compute(zoe.epochs._plan_of(genesis)).cid == genesis.snapshot
    settle(peers)
    assert [post["body"] for post in zoe.party.item(talk.id).value] == ["post 2", "post 3"]
    same(alice, bob, zoe)


def test_the_same_version_with_other_code_shows_as_a_refused_epoch(peers: Peers) -> None:
    alice, bob, carol = party(peers, alice=factory(LoudStory), bob=factory(Story), carol=factory(Story))
    story = tell(bob, "once")
    peers.sync()
    assert alice.party.item(story.id).value == [b"ONCE"], "nothing tells them apart before an epoch"
    genesis = alice.epochs.declare()
    peers.settle()
    assert {peer.epochs.number for peer in peers.all} == {0}
    for peer in peers.all:
        spoken = dict(refusals(peer))
        assert set(spoken) == {device(bob), device(carol)}
        assert {claim.reason for claim in spoken.values()} == {WRONG}
        assert len({claim.computed for claim in spoken.values()} - {genesis.snapshot}) == 1
    takes_over(peers, bob, bob, carol)
    assert (bob.epochs.number, carol.epochs.number, alice.epochs.number) == (1, 1, 0)
    same(bob, carol)
    differs = alice.epochs.disagreement
    assert differs is not None, "now it is she who differs, and she says so"
    assert differs.theirs == bob.epochs.chain().final[0].snapshot
    assert alice.epochs.prune() == 0


def test_states_of_an_older_format_are_written_anew_by_an_epoch_that_lists_the_new_one(peers: Peers) -> None:
    """Code that writes states in another way has another codec, which the epoch lists: no peer is taken by surprise."""
    alice, bob = party(peers, alice=factory(Story), bob=factory(Story))
    story = tell(alice, "once", "upon")
    epoch(peers)
    for peer in (alice, bob):
        peer.models = factory(LaterStory)
        peer.restart()
        assert peer.party.item(story.id).value == [b"once", b"upon"]
    story = alice.party.item(story.id)
    story.edit("tell", "time")
    genesis = epoch(peers)
    assert ("test/story", 1, 2) in genesis.models
    same(alice, bob)


def test_states_of_an_older_format_are_written_anew_though_nobody_touched_them(peers: Peers) -> None:
    alice, bob = party(peers, alice=factory(Story), bob=factory(Story))
    story = tell(alice, "once", "upon")
    epoch(peers)
    for peer in (alice, bob):
        peer.models = factory(LaterStory)
        peer.restart()
    note(alice)
    epoch(peers)
    assert about(alice, story).codec == 2
    same(alice, bob)


def test_rows_that_older_code_has_written_are_written_anew_for_an_epoch(peers: Peers) -> None:
    """Alice's item store has states from before her code changed; Bob's has none of those. They agree."""
    alice, bob = party(peers, alice=factory(Bag), bob=factory(LaterBag))
    bag = alice.party.create("test/bag")
    bag.edit("tell", "b")
    bag.edit("tell", "a")
    peers.sync()
    alice.models = factory(LaterBag)
    alice.restart()
    epoch(peers)
    assert about(alice, bag).codec == 2
    same(alice, bob)
    assert alice.party.item(bag.id).value == [b"a", b"b"]


def test_who_has_another_codec_of_a_model_waits(peers: Peers) -> None:
    alice, bob, carol = party(peers, alice=factory(Story), bob=factory(LaterStory), carol=factory(Story))
    tell(alice, "once")
    peers.sync()
    alice.epochs.declare()
    peers.sync()
    assert not bob.epochs.step()
    assert "no code for model test/story 1 with snapshots of format 1" in bob.epochs.waits_for
    assert refusals(bob) == []
    peers.settle()
    assert carol.epochs.number == 1
