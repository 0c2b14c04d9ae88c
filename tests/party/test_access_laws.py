"""Law: random histories of peers with lists, groups and hostile writers end in one state, byte for byte, on all."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.helpers import all_of, shown
from tests.party.histories import edit, models, some_ranges

from antiphon.core.errors import InvalidInput, NotAuthorised
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.credentials.claims import Role
from antiphon.model.access import EVERYONE, NOT_NAMED, NOT_THEIRS, Access
from antiphon.model.fold import META
from antiphon.model.message import Change, Genesis, Inception, wrap, write_change, write_genesis
from antiphon.model.object.model import ObjectModel
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

EXAMPLES = budget(12, 300)
GROUP = KeyPair.from_seed(sha256(b"a group").digest()).key
VIEW = KeyPair.from_seed(sha256(b"a view").digest())
KINDS = ("antiphon/object", "antiphon/text", "test/moves", "test/jottings")
OBJECT = ObjectModel()


class World:
    """Some peers of one party: an owner, editors, and what they do."""

    def __init__(self, peers: Peers, chance: random.Random, *, authority: bool) -> None:
        self.peers, self.chance, self.authority = peers, chance, authority
        for name, role in (("alice", None), ("bob", Role.EDITOR), ("carol", Role.EDITOR), ("dora", Role.OWNER)):
            peers.add(name, role or Role.EDITOR)

    @property
    def names(self) -> list[bytes]:
        """Whom a list may name."""
        if self.authority:
            return [EVERYONE, GROUP, *(bytes(peer.key) for peer in self.peers.all)]
        feeds = {record.feed for peer in self.peers.all for record in peer.store.feeds(peer.party.key)}
        return [EVERYONE, *sorted(feeds)]

    def some_names(self, least: int = 0) -> list[bytes]:
        names = self.names
        return sorted(self.chance.sample(names, min(len(names), self.chance.randrange(least, 4))))

    def step(self) -> None:
        peer, other = self.chance.sample(self.peers.all, 2)
        what = self.chance.random()
        if what < 0.25:
            some_ranges(other, peer, self.chance)
        elif what < 0.3:
            peer.restart(crash=self.chance.random() < 0.5)
        elif what < 0.35:
            self.govern(peer)
        elif what < 0.55 and peer.party.items():
            self.forge(peer)
        else:
            with suppress(InvalidInput, NotAuthorised):
                self.act(peer)

    def govern(self, peer: Peer) -> None:
        """Roles and groups change, if this peer may change them."""
        member = peer.member
        if member is None:
            return
        key = self.chance.choice(self.peers.all[1:]).key
        acts: list[Callable[[], object]] = [
            lambda: member.admit_to_group(GROUP, key),
            lambda: member.remove_from_group(GROUP, key),
            lambda: member.demote(key, [Role.EDITOR]),
            lambda: member.admit(key, [Role.OWNER]),
        ]
        with suppress(InvalidInput, NotAuthorised):
            self.chance.choice(acts)()

    def act(self, peer: Peer) -> None:
        """What a program does."""
        party, chance = peer.party, self.chance
        items = [*party.items(), bytes(SYSTEM_ITEM)]
        item = party.item(chance.choice(items))
        what = chance.random()
        if what < 0.2 or len(items) < 2:
            party.create(chance.choice(KINDS), inception=VIEW if chance.random() < 0.3 else None)
        elif what < 0.45:
            item.restrict_writers(*self.some_names())
        elif what < 0.5:
            item.allow_all_writers()
        elif what < 0.6:
            changes: list[Callable[[], object]] = [item.delete, item.restore, lambda: item.set_metadata("n", 1)]
            changes.append(lambda: item.move(items[0]))
            chance.choice(changes)()
        elif what < 0.7:
            with party.batch():
                edit(peer, item.id, chance)
                item.restrict_writers(*self.some_names())
                edit(peer, item.id, chance)
        else:
            edit(peer, item.id, chance)

    def forge(self, peer: Peer) -> None:
        """What none does: with lamports from long ago, and cuts, lists and views as one likes."""
        chance = self.chance
        items = [*peer.party.items(), bytes(SYSTEM_ITEM)]
        seen = [entry for entry in all_of(peer) if chance.random() < chance.choice((0, 0, 0.5, 1))]
        drafts = [self.draft(peer, chance.choice(items)) for _ in range(chance.randrange(1, 4))]
        with suppress(NotAuthorised):
            peer.forge(*drafts, atomic=chance.random() < 0.3, seen=seen)
        peer.party.process()

    def draft(self, peer: Peer, item: bytes) -> Draft:
        chance, what = self.chance, self.chance.random()
        if what < 0.6:
            feeds = sorted(peer.lengths())
            cuts = tuple((feed, chance.choice((0, 3, 9, 1 << 40))) for feed in feeds if chance.random() < 0.6)
            access = Access(tuple(self.some_names()), tuple(self.some_names(1)), cuts)
            return Draft(Kind.CHANGE, item, write_change(Change(access=access)))
        if what < 0.7:
            return self.view(peer)
        if what < 0.8:
            return Draft(Kind.METADATA, item, wrap(Kind.METADATA, META.set(META.initial(), "n", chance.randrange(9))))
        return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "x", chance.randrange(9))))

    def view(self, peer: Peer) -> Draft:
        """A view at a lamport that others may take too, with the same key."""
        party = peer.party.key
        feeds = [record.feed for record in peer.store.feeds(party)]
        feed = self.chance.choice(feeds)
        proof = VIEW.sign(Inception.statement(party, feed))
        message = write_genesis(Genesis(b"", self.chance.choice(KINDS), 1, view=Inception(VIEW.key, proof)))
        lamport = peer.party.engine.lamport + self.chance.randrange(-3, 3)
        return Draft(Kind.GENESIS, ItemId.of_view(max(lamport, 1), party=party, key=VIEW.key), message)


def check(folder: str, seed: int, *, authority: bool, steps: int) -> Counter[str]:
    chance = random.Random(seed)
    with Peers(folder, authority=authority, models=models()) as peers:
        world = World(peers, chance, authority=authority)
        for _ in range(steps):
            world.step()
        peers.sync()
        first, *others = peers.all
        wanted = shown(first)
        for peer in others:
            assert shown(peer) == wanted
        others[0].rebuild()
        others[1].restart(crash=True)
        for peer in others[:2]:
            assert shown(peer) == wanted
            assert not peer.party.status().blocked
        return Counter(one.reason for one in first.party.refused())


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), authority=st.booleans())
def test_lists_verdicts_values_and_bytes_are_equal_on_all_peers(seed: int, authority: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(folder, seed, authority=authority, steps=40)


@pytest.mark.slow
def test_such_histories_are_full_of_refusals(tmp_path: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(4):
        found += check(f"{tmp_path}/{seed}", seed, authority=bool(seed % 2), steps=80)
    assert min(found[NOT_NAMED], found[NOT_THEIRS]) > 5
