"""The Noise core agrees with published vectors, and the primitives under it with Wycheproof's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag

from antiphon.core.errors import ChannelFault
from antiphon.mesh.channel import noise
from antiphon.mesh.channel.channel import SUITE
from antiphon.mesh.channel.limits import NONCE_MAX
from antiphon.mesh.channel.noise import NN, XK, CipherState, HandshakeState, Pattern, StaticKey, Suite

#: Patterns that Antiphon does not use. The vectors have them, and they need nothing more.
IK = Pattern("IK", True, (("e", "es", "s", "ss"), ("e", "ee", "se")))
XX = Pattern("XX", False, (("e",), ("e", "ee", "s", "es"), ("s", "se")))
PATTERNS = {pattern.name: pattern for pattern in (NN, XK, IK, XX)}


def vectors(data: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "vectors" / f"{name}.json").read_text())
    return found


def begin(vector: dict[str, Any], *, dials: bool) -> HandshakeState:
    _, pattern, _, cipher, hash_name = vector["protocol_name"].split("_")
    end = "init" if dials else "resp"
    static = vector.get(f"{end}_static")
    return HandshakeState(
        PATTERNS[pattern],
        Suite.of(cipher, hash_name),
        dials=dials,
        prologue=bytes.fromhex(vector[f"{end}_prologue"]),
        ephemeral=bytes.fromhex(vector[f"{end}_ephemeral"]),
        static=StaticKey.from_secret(bytes.fromhex(static)) if static else None,
        remote_static=bytes.fromhex(vector.get(f"{end}_remote_static", "")),
    )


def test_agrees_with_the_vectors_of_cacophony(data: Path) -> None:
    found = vectors(data, "noise-cacophony")["vectors"]
    for vector in found:
        ends = begin(vector, dials=True), begin(vector, dials=False)
        sent = [(bytes.fromhex(m["payload"]), bytes.fromhex(m["ciphertext"])) for m in vector["messages"]]
        handshakes = len(PATTERNS[vector["protocol_name"].split("_")[1]].messages)
        for number, (payload, message) in enumerate(sent[:handshakes]):
            writer, reader = ends[number % 2], ends[1 - number % 2]
            assert writer.write(payload) == message, vector["protocol_name"]
            assert reader.read(message) == payload
        assert ends[0].hash == ends[1].hash == bytes.fromhex(vector["handshake_hash"])
        ciphers = [end.split() for end in ends]
        for number, (payload, message) in enumerate(sent[handshakes:], start=handshakes):
            sending, receiving = ciphers[number % 2][0], ciphers[1 - number % 2][1]
            assert sending.encrypt(payload) == message
            assert receiving.decrypt(message) == payload
    assert len(found) == 32
    assert any(vector["protocol_name"] == f"Noise_XK_25519_{SUITE.name}" for vector in found)


def test_exchanges_agree_with_the_vectors_of_wycheproof(data: Path) -> None:
    found = vectors(data, "wycheproof-x25519")
    zeros = 0
    for case in (case for group in found["testGroups"] for case in group["tests"]):
        secret, public, shared = (bytes.fromhex(case[name]) for name in ("private", "public", "shared"))
        if shared == bytes(32):
            zeros += 1
            with pytest.raises(ChannelFault, match="small order"):
                noise.exchange(secret, public)
        else:
            assert noise.exchange(secret, public) == shared, case["tcId"]
    assert zeros > 10
    assert found["numberOfTests"] == 518


@pytest.mark.parametrize(("file", "name"), [("aes-gcm", "AESGCM"), ("chacha20-poly1305", "ChaChaPoly")])
def test_ciphers_agree_with_the_vectors_of_wycheproof(data: Path, file: str, name: str) -> None:
    checked = 0
    for group in vectors(data, f"wycheproof-{file}")["testGroups"]:
        if (group["ivSize"], group["keySize"], group["tagSize"]) != (96, 256, 128):
            continue  # Noise has no others
        for case in group["tests"]:
            key, nonce, extra, plain, sealed, tag = (
                bytes.fromhex(case[part]) for part in ("key", "iv", "aad", "msg", "ct", "tag")
            )
            cipher = Suite.of(name, "SHA256").cipher(key)
            if case["result"] == "valid":
                assert cipher.encrypt(nonce, plain, extra) == sealed + tag
                assert cipher.decrypt(nonce, memoryview(sealed + tag), extra) == plain
            else:
                with pytest.raises(InvalidTag):
                    cipher.decrypt(nonce, sealed + tag, extra)
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("point", [0, 1])
def test_public_keys_of_small_order_are_refused(point: int) -> None:
    with pytest.raises(ChannelFault, match="small order"):
        noise.exchange(bytes(range(32)), point.to_bytes(32, "little"))


def test_a_nonce_is_used_once_and_the_last_one_never() -> None:
    cipher = CipherState(SUITE, bytes(32))
    assert cipher.encrypt(b"same") != cipher.encrypt(b"same")
    cipher.count = NONCE_MAX
    for act in (cipher.encrypt, cipher.decrypt):
        with pytest.raises(ChannelFault, match="every nonce"):
            act(bytes(20))


def test_a_new_key_follows_from_the_old_one_and_the_count_goes_on() -> None:
    one, other, old = (CipherState(SUITE, bytes(32)) for _ in range(3))
    for cipher in (one, other, old):
        cipher.count = 7
    one.rekey()
    other.rekey()
    sealed = one.encrypt(b"hello")
    assert (other.decrypt(sealed), other.count) == (b"hello", 8)
    with pytest.raises(ChannelFault, match="message 7"):
        old.decrypt(sealed)


@pytest.mark.parametrize("size", [0, 31, 32, 47])
def test_a_message_that_is_cut_short_is_refused(size: int) -> None:
    static = StaticKey.from_secret(bytes(range(32)))
    handshake = HandshakeState(XK, SUITE, dials=False, prologue=b"", ephemeral=bytes(range(1, 33)), static=static)
    with pytest.raises(ChannelFault):
        handshake.read(static.public.ljust(size, b"\0")[:size])


def test_a_static_key_does_not_show_its_secret() -> None:
    static = StaticKey.from_secret(bytes(range(32)))
    assert static.secret.hex()[:8] not in repr(static)
