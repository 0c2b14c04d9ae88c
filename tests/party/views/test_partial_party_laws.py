"""One view alone, on any history: its items are those of a peer that has everything, byte for byte (rule 3)."""

from __future__ import annotations

import random
import tempfile
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.helpers import narrow
from tests.party.histories import MODELS, act, edit, models
from tests.party.views.helpers import agrees, closure

from antiphon.core.errors import (
    InvalidInput,
    InvalidMutation,
    ItemForked,
    MissingBlob,
    MissingBlocks,
    NotAuthorised,
    UnknownItem,
)
from antiphon.core.keys import KeyPair
from antiphon.halo.credentials.claims import Role
from antiphon.model.message import Change
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.view_fetch import fetch_view

pytestmark = pytest.mark.slow

EXAMPLES = budget(10, 400)


def tie(peer: Peer, view: bytes, chance: random.Random) -> None:
    """Something that changes what belongs to the view: a child, a move in or out, an embedding, a link, a fork."""
    party, items = peer.party, peer.party.items()
    inside = [item for item in closure(peer, view) if item in items] or [view]
    one, other = chance.choice(inside), chance.choice(items)
    what = chance.randrange(6)
    if what == 0:
        party.create(chance.choice(MODELS), parent=one)
    elif what == 1:
        party.item(other).move(one)
    elif what == 2 and one != view:
        party.item(one).move(other)
    elif what == 3:
        party.item(one).embed(other)
    elif what == 4:
        party.create("antiphon/object", link=(one, other))
    elif one != other:
        with party.batch() as batch:
            batch.change(one, Change(forked_to=other))


def write(part: Peer, view: bytes, chance: random.Random) -> None:
    """Who follows the view writes to it as well."""
    item = chance.choice(closure(part, view))
    if chance.random() < 0.5:
        edit(part, item, chance)
    else:
        part.party.create(chance.choice(MODELS), parent=item)


def some_step(peers: Peers, part: Peer, view: bytes, chance: random.Random) -> None:
    whole = peers.all[:2]
    peer, what = chance.choice(whole), chance.random()
    if what < 0.1:
        peers.pass_on(peer, part)
    elif what < 0.2:
        peers.pass_on(peer, part)
        fetch_view(peer, part)
    elif what < 0.25:
        part.restart()
    elif what < 0.3:
        with suppress(NotAuthorised, InvalidInput, InvalidMutation, UnknownItem, MissingBlob, MissingBlocks):
            write(part, view, chance)
    elif what < 0.37:
        peers.pass_on(part, peer)
        peers.pass_on(*whole)
        peers.pass_on(whole[1], whole[0])
    elif what < 0.42:
        with suppress(NotAuthorised, InvalidInput):
            whole[0].epochs.declare()
    elif what < 0.46:
        with suppress(NotAuthorised, InvalidInput):
            narrow(peers, chance)
    elif what < 0.65:
        with suppress(NotAuthorised, InvalidInput, InvalidMutation):
            tie(peer, view, chance)
    else:
        with suppress(NotAuthorised, InvalidMutation, ItemForked):
            act(peer, chance)


def check_history(folder: str, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    with Peers(folder, models=models()) as peers:
        alice = peers.add("alice")
        peers.add("bob", chance.choice([Role.EDITOR, Role.OWNER]))
        part = peers.add("part", Role.EDITOR)
        for _ in range(5):
            act(alice, chance)
        view = bytes(alice.party.create("antiphon/object", inception=KeyPair.from_seed(b"v" * 32)).id)
        peers.sync()
        if chance.random() < 0.5:
            alice.epochs.declare()
        part.hold_view(view)
        for _ in range(steps):
            some_step(peers, part, view, chance)
        peers.settle()
        fetch_view(alice, part)
        assert part.partial.complete
        assert part.epochs.number == alice.epochs.number
        agrees(alice, part, view)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=EXAMPLES)
@pytest.mark.slow
def test_a_view_alone_is_the_view_of_everybody(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_history(folder, seed, steps=40)


@pytest.mark.parametrize("seed", [797, 100_031])
def test_a_member_that_only_the_snapshot_names_is_asked_for(seed: int) -> None:
    """The view's state now had counted as its state in the snapshot, so members that had left it were not asked for."""
    with tempfile.TemporaryDirectory() as folder:
        check_history(folder, seed, steps=40)
