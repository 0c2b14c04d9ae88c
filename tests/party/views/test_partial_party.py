"""One view alone: what belongs to it is fetched, shown and followed, as everybody has it; and nothing else is."""

from __future__ import annotations

import io

import pytest
from tests.party.epochs.epoch_acts import held
from tests.party.views.helpers import agrees, closure, new

from antiphon.core.cid import Cid
from antiphon.core.errors import (
    DamagedBlob,
    InvalidInput,
    MissingBlob,
    MissingBlocks,
    RefusedBlocks,
    TooLarge,
)
from antiphon.core.keys import KeyPair
from antiphon.feed.block import BodyState
from antiphon.party.epochs.checks import why_wait
from antiphon.party.live.item import Item
from antiphon.party.views.outline import Reach
from antiphon.party.views.selection import ViewSelection
from antiphon.party.views.source import ViewSource
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.car import read_car
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.view_fetch import fetch_view

pytestmark = pytest.mark.slow


class Board:
    """A view with a lane, two cards, a link and an embedded note; and eighty notes beside it."""

    def __init__(self, peer: Peer) -> None:
        self.others = [new(peer, f"note {number}") for number in range(80)]
        self.view = peer.party.create("antiphon/object", inception=KeyPair.from_seed(b"v" * 32))
        self.lane = new(peer, "lane", self.view)
        self.cards = [new(peer, f"card {number}", self.lane) for number in range(2)]
        self.link = peer.party.create("antiphon/object", link=(self.cards[0].id, self.cards[1].id))
        self.note = new(peer, "embedded")
        self.view.embed(self.note.id)
        self.items = {self.view, self.lane, *self.cards, self.link, self.note}
        self.ids = sorted(bytes(item.id) for item in self.items)


@pytest.fixture
def board(alice: Peer) -> Board:
    return Board(alice)


def follow(peers: Peers, giver: Peer, view: Item) -> Peer:
    """A reader who follows the view from the beginning of its membership on."""
    part = peers.add("part", None)
    part.hold_view(view.id)
    peers.pass_on(giver, part)
    fetch_view(giver, part)
    return part


def test_without_epochs_the_view_is_followed_from_the_feeds(peers: Peers, alice: Peer, board: Board) -> None:
    part = follow(peers, alice, board.view)
    assert closure(part, board.view.id) == board.ids
    agrees(alice, part, board.view.id)
    assert part.partial.complete

    blocks = [block for feed in part.lengths() for block in part.store.read(feed)]
    left_out = {block.item for block in blocks if block.state is BodyState.LEFT_OUT}
    assert left_out == {item.id for item in board.others}
    assert part.party.refused() == []
    with pytest.raises(MissingBlocks, match="not part of the view"):
        part.party.item(board.others[0].id)
    assert part.party.refused() == []


def test_a_view_is_booted_from_its_part_of_the_snapshot(peers: Peers, alice: Peer, board: Board) -> None:
    alice.epochs.declare()
    board.cards[0].edit("set", "title", "later")
    board.others[0].edit("set", "title", "later")
    part = follow(peers, alice, board.view)
    assert part.epochs.number == 1
    assert closure(part, board.view.id) == board.ids
    agrees(alice, part, board.view.id)
    assert sum(len(part.blobs.get(cid)) for cid in held(part)) < sum(len(alice.blobs.get(cid)) for cid in held(alice))
    lacking = [item for item in board.others if not here(part, item)]
    assert lacking, "some leaves hold nothing of the view"


def here(peer: Peer, item: Item) -> bool:
    """Small items stand in the leaves of their neighbours."""
    try:
        peer.party.item(item.id)
    except (MissingBlob, MissingBlocks):
        return False
    return True


def test_what_joins_is_fetched_with_all_below_it(peers: Peers, alice: Peer, board: Board) -> None:
    other = new(alice, "another board")
    below = new(alice, "below", other)
    deep = new(alice, "deep", below)
    link = alice.party.create("antiphon/object", link=(deep.id, board.cards[0].id))
    alice.epochs.declare()
    part = follow(peers, alice, board.view)
    deep.edit("set", "title", "edited in the tail")
    peers.pass_on(alice, part)
    assert fetch_view(alice, part).count == 0

    other.move(board.lane.id)
    peers.pass_on(alice, part)
    fetched = fetch_view(alice, part)
    assert fetched.bodies == 1
    joined = [bytes(item.id) for item in (other, below, deep, link)]
    assert closure(part, board.view.id) == sorted([*board.ids, *joined])
    agrees(alice, part, board.view.id)

    board.lane.embed(board.others[3].id)
    board.others[3].edit("set", "title", "embedded now")
    peers.pass_on(alice, part)
    fetch_view(alice, part)
    assert bytes(board.others[3].id) in closure(part, board.view.id)
    agrees(alice, part, board.view.id)


def test_the_next_epoch_is_stood_on_with_the_view_there_all_the_time(peers: Peers, alice: Peer, board: Board) -> None:
    alice.epochs.declare()
    part = follow(peers, alice, board.view)
    board.cards[0].edit("set", "title", "second epoch")
    extra = new(alice, "extra", board.lane)
    alice.epochs.declare()
    peers.pass_on(alice, part)
    part.partial.step()
    while part.epochs.number < 2:
        assert part.party.item(board.view.id).id == board.view.id
        ask = part.partial.ask()
        if ask is not None:
            source = ViewSource(alice.party.key, alice.store, alice.blobs)
            part.partial.take_list(ask, source.belonging(ask.snapshot, ask.roots))
        wanted = part.partial.blobs(limit=1)
        held(part).put_all((cid, alice.blobs.get(cid)) for cid in wanted)
        part.partial.step()
    assert part.party.item(extra.id).value == {"title": "extra"}
    fetch_view(alice, part)
    agrees(alice, part, board.view.id)
    assert part.epochs.prune() > 0
    agrees(alice, part, board.view.id)


def test_it_neither_attests_nor_declares(peers: Peers, alice: Peer, board: Board) -> None:
    part = follow(peers, alice, board.view)
    genesis = alice.epochs.declare()
    with part.party.locked() as engine:
        assert "one view alone" in why_wait(engine, genesis)
    with pytest.raises(InvalidInput, match="one view alone"):
        part.epochs._compute(alice.epochs._plan_of(genesis))


def test_a_restart_needs_nobody(peers: Peers, alice: Peer, board: Board) -> None:
    alice.epochs.declare()
    part = follow(peers, alice, board.view)
    board.cards[0].edit("set", "title", "later")
    peers.pass_on(alice, part)
    part.party.close()
    part.selection = type(part.partial.selection)(board.view.id)
    part.party = part._run()
    agrees_offline = {item: part.party.snapshot(item) for item in board.ids}
    assert agrees_offline == {item: alice.party.snapshot(item) for item in board.ids}
    fetch_view(alice, part)
    agrees(alice, part, board.view.id)


def test_a_list_that_says_too_much_is_seen_through(peers: Peers, alice: Peer, board: Board) -> None:
    alice.epochs.declare()
    part = peers.add("part", None)
    view = part.hold_view(board.view.id)
    peers.pass_on(alice, part)
    source = ViewSource(alice.party.key, alice.store, alice.blobs)
    while part.epochs.number < 1 or view.blobs():
        ask = view.ask()
        if ask is not None:
            more = Reach(members=frozenset(bytes(item.id) for item in board.others[:5]))
            view.take_list(ask, source.belonging(ask.snapshot, ask.roots).joined(more))
        held(part).put_all((cid, alice.blobs.get(cid)) for cid in view.blobs())
        view.step()
    assert list(view.selection.strays()) == sorted(bytes(item.id) for item in board.others[:5])
    assert closure(part, board.view.id) == board.ids
    agrees(alice, part, board.view.id)


def test_a_list_that_is_too_long_is_dropped_and_another_peer_is_asked(
    peers: Peers, alice: Peer, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.epochs.declare()
    part = peers.add("part", None)
    view = part.hold_view(board.view.id)
    peers.pass_on(alice, part)
    monkeypatch.setattr("antiphon.party.views.outline.REACH_MAX", 30)
    much = Reach(members=frozenset(bytes(item.id) for item in board.others))
    refused = 0
    source = ViewSource(alice.party.key, alice.store, alice.blobs)
    while part.epochs.number < 1 or view.blobs():
        ask = view.ask()
        if ask is not None:
            with pytest.raises(TooLarge, match="ask another peer"):
                view.take_list(ask, much)
            refused += 1
            assert view.ask() == ask
            view.take_list(ask, source.belonging(ask.snapshot, ask.roots))
        held(part).put_all((cid, alice.blobs.get(cid)) for cid in view.blobs())
        view.step()
    assert refused
    with pytest.raises(TooLarge, match="ask another peer"):
        view.selection.take_list((), much)
    view.selection.take_list((), Reach())
    assert closure(part, board.view.id) == board.ids
    agrees(alice, part, board.view.id)


def test_what_was_followed_for_another_view_before_is_taken_up_when_it_joins(
    peers: Peers, alice: Peer, board: Board
) -> None:
    """The item store has rows of the view that was followed before a restart: they are set aside, and not for good."""
    other = alice.party.create("antiphon/object", inception=KeyPair.from_seed(b"w" * 32))
    alice.epochs.declare()
    part = follow(peers, alice, board.view)
    part.party.close()
    part.selection = ViewSelection(other.id)
    part.party = part._run()
    fetch_view(alice, part)
    agrees(alice, part, other.id)
    board.cards[0].move(other.id)
    board.cards[0].edit("set", "title", "moved")
    peers.pass_on(alice, part)
    fetch_view(alice, part)
    assert closure(part, other.id) == closure(alice, other.id)
    agrees(alice, part, other.id)
    assert part.partial.complete


class Torn(MemoryBlobs):
    """A blob that cannot be read, for now."""

    broken: Cid | None = None

    def get(self, cid: Cid) -> bytes:
        if cid == self.broken:
            raise DamagedBlob(f"blob {cid} has changed on the disk", cid=cid)
        return super().get(cid)


def test_an_outline_that_broke_off_is_made_anew(peers: Peers, alice: Peer, board: Board) -> None:
    """Who answers meets a damaged blob half-way. What it says after that is what the snapshot says."""
    alice.epochs.declare()
    before = alice.epochs.base
    for item in board.others[:20]:
        item.move(board.lane.id)
    for item in board.others[20:]:
        item.edit("set", "body", "x" * 100)
    alice.epochs.declare()
    base, blobs = alice.epochs.base, Torn()
    assert base is not None
    assert before is not None
    blobs.put_all((cid, held(alice).get(cid)) for cid in held(alice))
    source = ViewSource(alice.party.key, alice.store, blobs)
    first = source.belonging(before.cid, [board.view.id])
    assert base.root.items is not None
    blobs.broken = list(tree.walk(base.root.items, held(alice)))[-1]
    with pytest.raises(DamagedBlob):
        source.belonging(base.cid, [board.view.id])
    assert source.belonging(before.cid, [board.view.id]) == first
    blobs.broken = None
    fresh = ViewSource(alice.party.key, alice.store, alice.blobs)
    assert source.belonging(base.cid, [board.view.id]) == fresh.belonging(base.cid, [board.view.id])


def test_a_body_that_is_another_is_refused(peers: Peers, alice: Peer, board: Board) -> None:
    part = follow(peers, alice, board.view)
    board.view.embed(board.others[0].id)
    peers.pass_on(alice, part)
    part.partial.step()
    ((feed, seqs),) = part.partial.bodies().items()
    with pytest.raises(RefusedBlocks, match="not the one in its header"):
        part.partial.take_bodies(feed, {seqs[0]: b"x" * 40})
    fetch_view(alice, part)
    agrees(alice, part, board.view.id)


def test_the_snapshot_of_a_view_travels_as_a_car_file(peers: Peers, alice: Peer, board: Board) -> None:
    genesis = alice.epochs.declare()
    source = ViewSource(alice.party.key, alice.store, alice.blobs)
    stream = io.BytesIO()
    base = alice.epochs.base
    assert base is not None
    found = source.snapshot_of(base.cid, board.view.id)
    count = found.write(stream)
    assert set(board.ids) <= set(found.items)
    part = MemoryBlobs()
    stream.seek(0)
    assert [bytes(cid) for cid in read_car(stream, part)] == [genesis.snapshot]
    assert len(list(part)) == count < len(list(held(alice)))
