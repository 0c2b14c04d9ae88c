"""A control block read as an act: only credentials of the system item, and only whole ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.v1 import message_pb2
from antiphon.feed.block import Block, BodyState
from antiphon.feed.header import Kind
from antiphon.halo.acts.act import Place, read_act, read_once
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import PartyGenesis, Position, Role
from antiphon.testing.parties import Rehearsal, pair_of


def block() -> tuple[bytes, Block]:
    rehearsal = Rehearsal()
    return rehearsal.party.key, rehearsal.founder("alice").written[0]


def test_a_credential_of_the_system_item_is_read() -> None:
    party, genesis = block()
    act = read_act(party, genesis, {})
    assert genesis.item == SYSTEM_ITEM
    assert isinstance(act.claim, PartyGenesis)
    assert act.stamp == genesis.stamp
    assert act.problem == ""


def other(message: message_pb2.Message) -> bytes:
    return bytes(16) + message.SerializeToString()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": Kind.MUTATION}, "credentials of the system item only"),
        ({"item": b"i" * 16}, "credentials of the system item only"),
        ({"body": other(message_pb2.Message(mutation=b"x"))}, "credentials only"),
        ({"body": bytes(16) + b"\xff\xff"}, "not a message"),
        ({"body": None, "state": BodyState.ERASED}, "its body is not here"),
    ],
)
def test_anything_else_in_a_control_feed_is_void(change: dict[str, object], reason: str) -> None:
    party, genesis = block()
    act = read_act(party, replace(genesis, **change), {})  # type: ignore[arg-type]
    assert act.claim is None
    assert reason in act.problem


def test_a_credential_in_a_data_feed_is_void() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    alice.open_data(pair_of("data"))
    seen = dict(alice.machine.timeframe())
    assert alice.machine.judge_data(pair_of("data").key, 0, seen) == ""
    assert "item messages only" in alice.machine.judge_data(pair_of("data").key, 0, seen, Kind.CREDENTIAL)


def test_control_feeds_are_folded_without_any_data_feed() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.EDITOR)
    bob.hear(alice)
    bob.join()
    bob.open_data(pair_of("bob's data"))
    alice.hear(bob)
    controls = set(rehearsal.blocks())
    named = {entry.feed for blocks in rehearsal.blocks().values() for one in blocks for entry in one.advance}
    assert named <= controls
    fresh = rehearsal.machine(feed for feed, blocks in rehearsal.blocks().items() for _ in blocks)
    assert fresh.state().digest == alice.state.digest


def test_a_view_sees_its_own_feed_before_itself_and_others_as_far_as_it_says() -> None:
    place = Place(b"a" * 32, 3, {b"b" * 32: 1})
    assert [place.sees(Position(b"a" * 32, seq)) for seq in (2, 3)] == [True, False]
    assert [place.sees(Position(b"b" * 32, seq)) for seq in (1, 2)] == [True, False]
    assert not place.sees(Position(b"c" * 32, 0))


def test_what_peers_of_a_simulation_share_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (party, genesis), read = block(), credential.read
    asked: list[bytes] = []

    def counted(party: bytes, data: bytes) -> credential.Credential:
        asked.append(data)
        return read(party, data)

    monkeypatch.setattr(credential, "read", counted)
    alone = read_act(party, genesis, {})
    with read_once():
        first, second = read_act(party, genesis, {}), read_act(party, genesis, {})
        assert len(asked) == 2
        assert read_act(party, replace(genesis, item=b"i" * 16), {}).claim is None  # the same bytes at another place
        assert read_act(b"p" * 32, genesis, {}).claim is None  # or in another party, where they are worthless
        assert read_act(b"p" * 32, genesis, {}).claim is None  # what is wrong is not kept
        assert len(asked) == 4
    assert first.claim == second.claim == alone.claim
    assert first.digest == second.digest == alone.digest
    read_act(party, genesis, {})
    assert len(asked) == 5
