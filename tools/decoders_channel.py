"""Fuzz targets: a channel between two devices.

No fuzzer gets past a message that does not decrypt, so the payload of the third message is encrypted here.
"""

from __future__ import annotations

from tools.example import BOB_LAPTOP, LAPTOP, NOW_MS, Counting, Example
from tools.target import Target

from antiphon.core.errors import ChannelFault
from antiphon.mesh.channel import channel as channels
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.device_keys import static_key
from antiphon.mesh.channel.limits import HANDSHAKE_SIZE_MAX
from antiphon.mesh.channel.noise import XK, HandshakeState
from antiphon.mesh.channel.payloads import Dial, Offer, Proof
from antiphon.mesh.channel.record_reader import RecordReader
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes


def channel_targets(made: dict[str, Example]) -> dict[str, Target]:
    dial, offer, proof = (made[f"channel-{name}"].data for name in ("dial", "offer", "proof"))
    first, second, record = (made[f"channel-{name}"].data for name in ("message-1", "message-2", "record"))
    return {
        "channel-dial": Target(Dial.decode, Dial.encode, (dial,), canonical=False),
        "channel-offer": Target(Offer.decode, Offer.encode, (offer,), canonical=False),
        "channel-proof": Target(Proof.decode, Proof.encode, (proof,), canonical=False),
        "channel-records": Target(_records, lambda found: b"".join(map(_framed, found)), (first + record + second,)),
        "channel-answering": Target(_answering, None, (first, first[:-1], record + first)),
        "channel-third-sealed": Target(_third_sealed, None, (proof[:41],)),
    }


def _framed(record: bytes) -> bytes:
    return len(record).to_bytes(2, "big") + record


def _records(data: bytes) -> list[bytes]:
    """Cut bytes into records, as a whole and byte by byte."""
    reader, slow = RecordReader(HANDSHAKE_SIZE_MAX), RecordReader(HANDSHAKE_SIZE_MAX)
    found = [bytes(record) for record in reader.split(data)]
    slowly = [bytes(record) for at in range(len(data)) for record in slow.split(data[at : at + 1])]
    assert (found, reader.held) == (slowly, slow.held)
    if reader.held:
        raise ChannelFault("the last record is not complete")
    return found


def _answering(data: bytes) -> None:
    """Send bytes to an end that waits to be dialled. It never raises before it has answered."""
    other = Channel.answer(BOB_LAPTOP, SeenHandshakes(), now_ms=NOW_MS, randomness=Counting())
    assert other.receive(data) == []
    assert not other.is_open
    assert not (other.is_silent and other.outgoing())


def _third_sealed(payload: bytes) -> None:
    """Send a payload in a third message that is encrypted as it should be, and signed unless it says so itself."""
    hers = Counting()
    other = Channel.answer(BOB_LAPTOP, SeenHandshakes(), now_ms=NOW_MS, randomness=Counting())
    static = static_key(BOB_LAPTOP).public
    handshake = HandshakeState(
        XK,
        channels.SUITE,
        dials=True,
        prologue=channels.PROLOGUE + BOB_LAPTOP.key,
        ephemeral=hers.bytes(32)[::-1],
        static=static_key(LAPTOP),
        remote_static=static,
    )
    other.receive(_framed(handshake.write(Dial(NOW_MS).encode())))
    handshake.read(other.outgoing()[2:])
    if len(payload) == 41:
        payload += LAPTOP.sign(b"antiphon.channel" + handshake.hash + payload)
    other.receive(_framed(handshake.write(payload)))
    assert other.is_open == (payload[9:41] == LAPTOP.key)
