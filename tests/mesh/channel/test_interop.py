"""A channel against another implementation of Noise, `noiseprotocol`, in both directions."""

from __future__ import annotations

from typing import Any

import pytest
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519, crypto_sign_ed25519_sk_to_curve25519
from noise.connection import Keypair, NoiseConnection
from tests.mesh.channel.ends import ALICE, BOB, NOW_MS, answer, dial

from antiphon.core.keys import KeyPair
from antiphon.mesh.channel import channel as channels

PROLOGUE = b"antiphon mesh 1\x01" + BOB.key
OFFER = bytes.fromhex("01 0500000000000000")  # version 1, features 5


def other(own: KeyPair) -> Any:
    """An end of a channel in the other implementation."""
    end = NoiseConnection.from_name(b"Noise_XK_25519_AESGCM_SHA256")
    end.set_prologue(PROLOGUE)
    end.set_keypair_from_private_bytes(Keypair.STATIC, crypto_sign_ed25519_sk_to_curve25519(own.seed + own.key))
    return end


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + bytes(message)


@pytest.fixture(autouse=True)
def _rekey_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "REKEY_COUNT", 4)


def test_another_implementation_answers() -> None:
    end = other(BOB)
    end.set_as_responder()
    end.start_handshake()
    ours = dial(features=4)

    first = ours.outgoing()
    assert first[:2] == (56).to_bytes(2, "big")
    assert end.read_message(first[2:]) == NOW_MS.to_bytes(8, "little")
    assert ours.receive(framed(end.write_message(OFFER))) == []
    signed = b"antiphon.channel" + end.noise_protocol.handshake_state.symmetric_state.get_handshake_hash()
    proof = bytes(end.read_message(ours.outgoing()[2:]))
    assert proof[:41] == bytes.fromhex("01 0400000000000000") + ALICE.key
    assert proof[41:] == ALICE.sign(signed + proof[:41])
    assert end.get_handshake_hash() == ours.id
    assert (ours.version, ours.features) == (1, 4)
    carry(ours, end)


def test_another_implementation_dials() -> None:
    end = other(ALICE)
    end.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, crypto_sign_ed25519_pk_to_curve25519(BOB.key))
    end.set_as_initiator()
    end.start_handshake()
    ours = answer(features=4)

    assert ours.receive(framed(end.write_message(NOW_MS.to_bytes(8, "little")))) == []
    assert end.read_message(ours.outgoing()[2:]) == bytes.fromhex("01 0400000000000000")
    said = OFFER + ALICE.key
    signed = b"antiphon.channel" + end.noise_protocol.handshake_state.symmetric_state.get_handshake_hash()
    assert ours.receive(framed(end.write_message(said + ALICE.sign(signed + said)))) == []
    assert end.get_handshake_hash() == ours.id
    assert (ours.device, ours.version, ours.features) == (ALICE.key, 1, 4)
    carry(ours, end)


def carry(ours: channels.Channel, end: Any) -> None:
    """Send frames both ways, through new keys."""
    for number in range(10):
        frame = bytes([number]) * (number * 7000 + 1)
        assert end.decrypt(ours.seal(frame)[2:]) == frame
        assert ours.receive(framed(end.encrypt(frame))) == [frame]
        if number % 4 == 3:
            end.rekey_inbound_cipher()
            end.rekey_outbound_cipher()
