"""Examples of a channel between two devices: its handshake, and a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tools.example import BOB_LAPTOP, LAPTOP, NOW_MS, Counting, Example, holds

from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.payloads import Dial, Offer, Proof
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes


class Handshake(NamedTuple):
    """Two ends of a channel, and what they said until both were open."""

    dialler: Channel
    answering: Channel
    messages: tuple[bytes, bytes, bytes]


def shake_hands(change: Callable[[int, bytes], bytes] = lambda _, message: message) -> Handshake:
    """Let Alice's laptop dial Bob's, always with the same bytes. `change`: of each message, on its way."""
    hers, his = Counting(), Counting()
    his.bytes(32)  # so that his key is another one
    one = Channel.dial(LAPTOP, BOB_LAPTOP.key, now_ms=NOW_MS, randomness=hers, features=3)
    other = Channel.answer(BOB_LAPTOP, SeenHandshakes(), now_ms=NOW_MS, randomness=his, features=5)
    other.receive(change(0, first := one.outgoing()))
    one.receive(change(1, second := other.outgoing()))
    other.receive(change(2, third := one.outgoing()))
    return Handshake(one, other, (first, second, third))


def channel_examples() -> dict[str, Example]:
    """The payloads of a handshake, its messages as they are sent, and the first record."""
    made = shake_hands()
    record = made.dialler.seal(b"hello")
    transcript = bytes(range(32))
    proof = Proof.sign(Offer(1, 3), LAPTOP, transcript).encode()
    return {
        "channel-dial": Example(Dial(NOW_MS).encode(), lambda data: Dial.decode(data).encode()),
        "channel-offer": Example(Offer(1, 5).encode(), lambda data: Offer.decode(data).encode()),
        "channel-proof": Example(proof, lambda data: holds(Proof.decode(data).is_signed(transcript), data)),
        **{f"channel-message-{index + 1}": _message_of_handshake(index, made) for index in range(3)},
        "channel-record": Example(
            record, lambda data: holds(shake_hands().answering.receive(data) == [b"hello"], data)
        ),
    }


def _message_of_handshake(index: int, made: Handshake) -> Example:
    def again(data: bytes) -> bytes:
        shown = shake_hands(lambda number, message: data if number == index else message)
        return holds(shown.answering.is_open and shown.answering.id == made.dialler.id, data)

    return Example(made.messages[index], again)
