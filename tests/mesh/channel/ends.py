"""Two ends of a channel, and what stands between them."""

from __future__ import annotations

from antiphon.core.keys import KeyPair
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.testing.parties import pair_of

ALICE, BOB, MALLORY = pair_of("alice laptop"), pair_of("bob laptop"), pair_of("mallory laptop")
NOW_MS = 1_700_000_000_000


def dial(
    own: KeyPair = ALICE, to: KeyPair = BOB, *, seed: str = "dial", now_ms: int = NOW_MS, features: int = 0
) -> Channel:
    return Channel.dial(own, to.key, now_ms=now_ms, randomness=SeededRandomness(seed), features=features)


def answer(
    own: KeyPair = BOB,
    *,
    seen: SeenHandshakes | None = None,
    seed: str = "answer",
    now_ms: int = NOW_MS,
    features: int = 0,
) -> Channel:
    seen = SeenHandshakes() if seen is None else seen
    return Channel.answer(own, seen, now_ms=now_ms, randomness=SeededRandomness(seed), features=features)


def connect(dialler: Channel, answering: Channel) -> None:
    """Carry the handshake until both ends are open."""
    answering.receive(dialler.outgoing())
    dialler.receive(answering.outgoing())
    answering.receive(dialler.outgoing())
    assert dialler.is_open
    assert answering.is_open


def channel() -> tuple[Channel, Channel]:
    """Alice's and Bob's ends of an open channel."""
    ends = dial(), answer()
    connect(*ends)
    return ends
