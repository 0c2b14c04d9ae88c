"""Attacks on a channel. An answering end stays silent until it was dialled rightly; anything else ends the channel."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import given, settings, strategies as st
from nacl.bindings import crypto_core_ed25519_add
from tests.mesh.channel.ends import ALICE, BOB, MALLORY, NOW_MS, answer, channel, connect, dial

from antiphon.core.errors import ChannelFault, InvalidInput
from antiphon.core.keys import KeyPair
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel import channel as channels
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.device_keys import static_key
from antiphon.mesh.channel.limits import CLOCK_OFF_MS_MAX, HANDSHAKE_SIZE_MAX
from antiphon.mesh.channel.payloads import Offer, Proof
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes

P = 2**255 - 19
ORDER_8 = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
#: Points that are no device keys: of order 1, 2, 4 and 8, not canonical, off the curve, and one of order 8 added.
BAD_KEYS = {
    "order 1": (1).to_bytes(32, "little"),
    "order 2": (P - 1).to_bytes(32, "little"),
    "order 4": bytes(32),
    "order 8": ORDER_8,
    "not canonical": (P + 1).to_bytes(32, "little"),
    "high y": bytes([0xFF] * 32),
    "off the curve": (2).to_bytes(32, "little"),
    "mixed order": crypto_core_ed25519_add(bytes(BOB.key), ORDER_8),
    "long": BOB.key + b"\0",
}


def is_silent(end: Channel) -> bool:
    """True if the answering end looks like one that heard nothing: it sends nothing, and raises nothing more."""
    return end.is_silent and not end.is_open and end.outgoing() == b"" and end.receive(bytes(5000)) == []


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)


# -- the first message


def test_a_dialler_with_another_key_in_mind_hears_nothing() -> None:
    other = answer(BOB)
    assert other.receive(dial(ALICE, MALLORY).outgoing()) == []
    assert is_silent(other)


@given(st.binary(min_size=2, max_size=600))
def test_garbage_is_answered_with_silence(data: bytes) -> None:
    other = answer()
    for _ in range(10):  # until a message is complete
        assert other.receive(data) == []
        assert other.outgoing() == b""
    assert not other.is_open


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 57), st.integers(0, 7))
def test_a_changed_first_message_is_answered_with_silence(at: int, bit: int) -> None:
    other, message = answer(), dial().outgoing()
    assert len(message) == 58
    other.receive(flipped(message, at, bit) + bytes(HANDSHAKE_SIZE_MAX))  # also if its size is what was changed
    assert is_silent(other)


def test_a_recorded_first_message_is_answered_once() -> None:
    seen, message = SeenHandshakes(), dial().outgoing()
    first, second, elsewhere = answer(seen=seen), answer(seen=seen, seed="2"), answer(seen=seen, seed="3")
    first.receive(message)
    assert first.outgoing()
    second.receive(message)
    elsewhere.receive(flipped(message, 33, 7))  # the bit of a key that X25519 ignores
    assert is_silent(second)
    assert is_silent(elsewhere)


def test_other_first_messages_are_answered() -> None:
    seen = SeenHandshakes()
    for number in range(3):
        end = answer(seen=seen)
        end.receive(dial(seed=str(number)).outgoing())
        assert end.outgoing()


@pytest.mark.parametrize("off", [CLOCK_OFF_MS_MAX + 1, -CLOCK_OFF_MS_MAX - 1, -NOW_MS])
def test_a_dialler_whose_clock_is_wrong_hears_nothing(off: int) -> None:
    other, late = answer(), dial(now_ms=NOW_MS + off)
    other.receive(late.outgoing())
    assert is_silent(other)


def test_a_first_message_that_is_too_large_is_not_kept() -> None:
    other = answer()
    other.receive((HANDSHAKE_SIZE_MAX + 1).to_bytes(2, "big"))
    assert is_silent(other)
    slow = answer()
    for _ in range(4096):
        slow.receive(b"\2")  # 514 bytes, announced again and again
        assert slow._records.held <= HANDSHAKE_SIZE_MAX + 2
    assert is_silent(slow)


def test_a_first_key_of_small_order_is_answered_with_silence() -> None:
    for point in (0, 1, P - 1, P, P + 1):
        other = answer()
        message = point.to_bytes(32, "little") + bytes(24)
        other.receive(len(message).to_bytes(2, "big") + message)
        assert is_silent(other)


def test_the_key_of_the_answering_end_is_bound_with_its_sign() -> None:
    """-P has the same static key as P; the prologue tells them apart."""
    mirrored = KeyPair(type(BOB.key)(flipped(BOB.key, 31, 7)), BOB.seed + BOB.key)
    other, one = answer(BOB), dial(ALICE, mirrored)
    other.receive(one.outgoing())
    assert is_silent(other)


# -- the second message


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 58), st.integers(0, 7))
def test_a_changed_second_message_ends_the_channel(at: int, bit: int) -> None:
    one, other = dial(), answer(features=7)
    other.receive(one.outgoing())
    message = other.outgoing()
    assert len(message) == 59
    with pytest.raises(ChannelFault):
        one.receive(flipped(message, at, bit))
    assert (one.is_open, one.outgoing()) == (False, b"")


def test_versions_and_features_cannot_be_lowered_on_the_way() -> None:
    for at in range(34, 43):  # version and features, encrypted
        one, other = dial(features=7), answer(features=7)
        other.receive(one.outgoing())
        with pytest.raises(ChannelFault):
            one.receive(flipped(other.outgoing(), at))


def test_a_reflected_first_message_is_no_second_one() -> None:
    one = dial()
    with pytest.raises(ChannelFault):
        one.receive(one.outgoing())


def test_the_second_message_of_another_handshake_is_refused() -> None:
    one, twin, other = dial(), dial(seed="twin"), answer()
    other.receive(twin.outgoing())
    with pytest.raises(ChannelFault):
        one.receive(other.outgoing())


def test_a_dialler_keeps_no_message_that_is_too_large() -> None:
    one = dial()
    with pytest.raises(ChannelFault, match="announced"):
        one.receive((HANDSHAKE_SIZE_MAX + 1).to_bytes(2, "big"))


# -- the third message


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 170), st.integers(0, 7))
def test_a_changed_third_message_ends_the_channel(at: int, bit: int) -> None:
    one, other = dial(), answer()
    other.receive(one.outgoing())
    one.receive(other.outgoing())
    message = one.outgoing()
    assert len(message) == 171
    with pytest.raises(ChannelFault):
        other.receive(flipped(message, at, bit))
    assert not other.is_open


def answered_with(proof: Callable[[Channel, bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> Channel:
    """An answering end, and a dialler that is right in all but the payload of its third message."""
    one, other = dial(MALLORY, BOB), answer()
    other.receive(one.outgoing())

    class Forged:
        @staticmethod
        def sign(offer: Offer, device: KeyPair, transcript: bytes) -> Forged:
            return Forged(transcript)

        def __init__(self, transcript: bytes) -> None:
            self._transcript = transcript

        def encode(self) -> bytes:
            return proof(one, self._transcript)

    with monkeypatch.context() as patch:
        patch.setattr(channels, "Proof", Forged)
        one.receive(other.outgoing())
    other.receive(one.outgoing())
    return other


OFFER = Offer(1, 0)


@pytest.mark.parametrize("signer", [MALLORY, ALICE], ids=["own", "relayed"])
def test_a_dialler_cannot_show_the_key_of_somebody_else(signer: KeyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mallory holds her own static key, and claims Alice's device key."""

    def proof(_: Channel, transcript: bytes) -> bytes:
        return Proof.sign(OFFER, signer, transcript)._replace(device=bytes(ALICE.key)).encode()

    with pytest.raises(ChannelFault, match="not the key that it holds"):
        answered_with(proof, monkeypatch)


def test_a_dialler_cannot_show_its_key_with_the_other_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    mirrored = flipped(MALLORY.key, 31, 7)
    with pytest.raises(ChannelFault, match="has not signed"):
        answered_with(lambda _, h: Proof.sign(OFFER, MALLORY, h)._replace(device=mirrored).encode(), monkeypatch)


def test_a_signature_of_another_handshake_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChannelFault, match="has not signed"):
        answered_with(lambda _, h: Proof.sign(OFFER, MALLORY, sha256(h).digest()).encode(), monkeypatch)


def test_the_signature_covers_what_the_dialler_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChannelFault, match="has not signed"):
        answered_with(lambda _, h: Proof.sign(OFFER, MALLORY, h)._replace(offer=Offer(1, 1)).encode(), monkeypatch)


def test_version_0_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChannelFault, match="version 0"):
        answered_with(lambda _, h: Proof.sign(Offer(0, 0), MALLORY, h).encode(), monkeypatch)


@pytest.mark.parametrize("key", [key for key in BAD_KEYS.values() if len(key) == 32])
def test_a_dialler_cannot_show_a_bad_point(key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChannelFault, match="no device key"):
        answered_with(lambda _, h: Proof(OFFER, key, bytes(64)).encode(), monkeypatch)


def test_what_a_later_version_adds_to_a_payload_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    other = answered_with(lambda _, h: Proof.sign(Offer(2, 8), MALLORY, h).encode() + b"new", monkeypatch)
    assert (other.is_open, other.version, other.features) == (True, 1, 0)


def test_a_dialler_with_the_key_of_the_answering_end_is_refused() -> None:
    one, other = dial(MALLORY, BOB), answer(BOB)
    one._own = BOB  # as a stolen or restored copy of the device would
    one._handshake._static = static_key(BOB)  # type: ignore[union-attr]
    other.receive(one.outgoing())
    one.receive(other.outgoing())
    with pytest.raises(ChannelFault, match="key of this device"):
        other.receive(one.outgoing())


def test_the_third_message_of_another_handshake_is_refused() -> None:
    one, other, victim = dial(), answer(), answer(seed="victim")
    connect(one, other)
    again, fresh = dial(), dial(seed="fresh")
    target = answer()
    target.receive(again.outgoing())
    again.receive(target.outgoing())
    recorded = again.outgoing()
    victim.receive(fresh.outgoing())
    with pytest.raises(ChannelFault):
        victim.receive(recorded)


def test_an_answering_end_keeps_no_third_message_that_is_too_large() -> None:
    one, other = dial(), answer()
    other.receive(one.outgoing())
    with pytest.raises(ChannelFault, match="announced"):
        other.receive((HANDSHAKE_SIZE_MAX + 1).to_bytes(2, "big"))


# -- device keys


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_only_canonical_points_of_prime_order_are_dialled(key: bytes) -> None:
    with pytest.raises(InvalidInput, match="no device key"):
        Channel.dial(ALICE, key, now_ms=0, randomness=SeededRandomness(""))


# -- records


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 6), st.integers(0, 7))
def test_a_changed_record_ends_the_channel(at: int, bit: int) -> None:
    one, other = channel()
    record = one.seal(b"frame")
    with pytest.raises(ChannelFault):
        other.receive(flipped(record, at, bit) + bytes(70_000))
    assert not other.is_open


Records = list[bytes]


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(lambda r: [r[0], r[0]], id="repeated"),
        pytest.param(lambda r: [r[1], r[0]], id="reordered"),
        pytest.param(lambda r: [r[0], r[2]], id="missing"),
        pytest.param(lambda r: [r[0][:-1] + r[1], b""], id="cut short"),
        pytest.param(lambda r: [r[0], b"\0\0"], id="empty"),
        pytest.param(lambda r: [r[0], b"\0\x10" + bytes(16)], id="without a frame"),
    ],
)
def test_records_come_once_and_in_order(attack: Callable[[Records], Records]) -> None:
    one, other = channel()
    records = [one.seal(bytes([number])) for number in range(3)]
    first, second = attack(records)
    other_first = other.receive(first) if first == records[0] else []
    with pytest.raises(ChannelFault):
        other.receive(second if other_first else first)
    assert not other.is_open


def test_an_empty_frame_is_refused_even_from_the_other_end() -> None:
    """Else 18 bytes would be a frame, and cost more to handle than to send."""
    one, other = channel()
    assert one._sending is not None
    record = one._sending.encrypt(b"")
    with pytest.raises(ChannelFault, match="without a frame"):
        other.receive(len(record).to_bytes(2, "big") + record)


def test_a_truncated_stream_gives_no_part_of_a_frame() -> None:
    one, other = channel()
    assert other.receive(one.seal(b"x" * 1000)[:-1]) == []


def test_reflected_records_are_refused() -> None:
    one, other = channel()
    record = one.seal(b"hello")
    other.receive(record)
    with pytest.raises(ChannelFault):
        one.receive(record)


def test_records_of_another_channel_are_refused() -> None:
    one, _ = channel()
    twin, other = dial(seed="twin"), answer()
    connect(twin, other)
    with pytest.raises(ChannelFault):
        other.receive(one.seal(b"hello"))


def test_the_same_frame_is_never_the_same_record() -> None:
    one, other = channel()
    records = [end.seal(b"same") for end in (one, other) for _ in range(50)]
    assert len(set(records)) == 100
