"""Messages that were real and are damaged on the way: each is taken or refused, and what was held stays right."""

from __future__ import annotations

import random
import tempfile

from hypothesis import given, settings, strategies as st
from tests.mesh.replication.wire import Wire, device_of
from tests.party.epochs.epoch_acts import note

from antiphon.core.errors import InvalidInput, RefusedBlocks
from antiphon.core.v1 import replication_pb2 as pb
from antiphon.mesh.replication.session import Session
from antiphon.testing.peers import Peers


def mangled(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed: anywhere, or inside what was said, so that it is still a message of this session."""
    if chance.random() < 0.3:
        return _changed(data, chance)
    message = pb.Replication.FromString(data)
    kind = message.WhichOneof("kind")
    if kind is None:
        return data
    body = getattr(message, kind)
    field, value = chance.choice(body.ListFields())
    if isinstance(value, int):
        setattr(body, field.name, max(0, value + chance.choice((-1, 1, 1 << 40))))
    elif field.name in ("spans", "forks", "cids", "credentials"):
        at = chance.randrange(len(value))
        value[at] = _changed(value[at], chance)
    else:
        inner, old = chance.choice(chance.choice(list(value)).ListFields())
        one = value[chance.randrange(len(value))]
        setattr(one, inner.name, _changed(old, chance) if isinstance(old, bytes) else old + 1)
    return message.SerializeToString(deterministic=True)


def _changed(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@settings(max_examples=settings().max_examples // 8)
@given(st.integers(0, 1 << 32), st.floats(0.05, 0.6))
def test_damaged_messages_are_refused_and_nothing_of_them_is_kept(seed: int, share: float) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        for number in range(3):
            note(alice, f"{number}")
        wire = Wire(peers)
        receive = Session.receive

        def damaged(session: Session, data: bytes, now_ms: int) -> None:
            try:
                receive(session, mangled(data, chance) if chance.random() < share else data, now_ms)
            except (InvalidInput, RefusedBlocks):
                session.close()
                node = next(node for node in wire.nodes.values() if session in node.sessions.values())
                name = next(name for name, one in node.sessions.items() if one is session)
                node.sessions[name] = Session(node.replica, device_of(name))

        Session.receive = damaged  # type: ignore[method-assign, assignment]
        try:
            wire.run(20_000)
        finally:
            Session.receive = receive  # type: ignore[method-assign]
        for peer in peers.all:
            wire.restart(peer.name)
        wire.run(wire.now_ms + 3_600_000)
        assert bob.lengths() == alice.lengths()
        assert bob.snapshots() == alice.snapshots()
        assert not any(record.why for peer in peers.all for record in peer.store.feeds())
