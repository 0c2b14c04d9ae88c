"""Ed25519 as everybody else does it: Wycheproof's vectors, and values that never show their secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from nacl.bindings import crypto_sign_open

from antiphon.core import keys
from antiphon.core.errors import InvalidInput
from antiphon.core.keys import KeyPair, PublicKey, verified_once, verify
from antiphon.core.ports import SystemRandomness

seeds = st.binary(min_size=32, max_size=32)

# RFC 8032, section 7.1: seed, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


def test_every_vector_of_wycheproof_agrees(data: Path) -> None:
    vectors = json.loads((data / "vectors" / "wycheproof-ed25519.json").read_text())
    checked, wrong = 0, []
    for group in vectors["testGroups"]:
        key = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            assert case["result"] in ("valid", "invalid")
            valid = verify(key, bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"]))
            if valid != (case["result"] == "valid"):
                wrong.append((case["tcId"], case["comment"]))
            checked += 1

    assert wrong == []
    assert checked == vectors["numberOfTests"] == 151


@pytest.mark.parametrize(("seed", "key", "message", "signature"), RFC_8032)
def test_the_vectors_of_the_standard_agree(seed: str, key: str, message: str, signature: str) -> None:
    pair = KeyPair.from_seed(bytes.fromhex(seed))

    assert pair.key.hex() == key
    assert pair.sign(bytes.fromhex(message)).hex() == signature
    assert verify(pair.key, bytes.fromhex(message), bytes.fromhex(signature))


@given(seeds, st.binary(max_size=200), st.data())
def test_a_signature_holds_for_its_message_and_key_alone(seed: bytes, message: bytes, data: st.DataObject) -> None:
    pair = KeyPair.from_seed(seed)
    signature = pair.sign(message)
    at, flip = data.draw(st.integers(0, 63)), data.draw(st.integers(1, 255))
    spoilt = bytes(byte ^ flip if index == at else byte for index, byte in enumerate(signature))

    assert verify(pair.key, message, signature)
    assert not verify(pair.key, message + b"\0", signature)
    assert not verify(pair.key, message, spoilt)
    assert not verify(KeyPair.from_seed(bytes(byte ^ 1 for byte in seed)).key, message, signature)


@given(st.binary(max_size=70), st.binary(max_size=40), st.binary(max_size=130))
def test_malformed_keys_and_signatures_are_just_not_valid(key: bytes, message: bytes, signature: bytes) -> None:
    assert verify(key, message, signature) is False


@pytest.mark.parametrize("key", [bytes(32), b"\1" + bytes(31), b"\xec" + b"\xff" * 30 + b"\x7f"])
def test_keys_of_small_order_sign_nothing(key: bytes) -> None:
    """Under such a key one signature would hold for every message."""
    assert not verify(key, b"anything", key + bytes(32))
    assert not verify(key, b"anything", b"\1" + bytes(63))


@given(seeds)
def test_a_pair_is_its_seed(seed: bytes) -> None:
    pair = KeyPair.from_seed(seed)

    assert pair.seed == seed
    assert pair == KeyPair.from_seed(pair.seed)
    assert hash(pair) == hash(KeyPair.from_seed(seed))


def test_generated_pairs_differ() -> None:
    assert KeyPair.generate(SystemRandomness()) != KeyPair.generate(SystemRandomness())


def test_a_pair_never_shows_its_secret_and_cannot_be_changed() -> None:
    pair = KeyPair.from_seed(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ012345")

    assert "ABCD" not in repr(pair)
    assert pair.seed.hex() not in repr(pair)
    assert pair.key.short in str(pair)
    with pytest.raises(AttributeError):
        pair.key = PublicKey(bytes(32))  # type: ignore[misc]


@given(st.binary(max_size=70))
def test_a_public_key_has_32_bytes(raw: bytes) -> None:
    if len(raw) == 32:
        key = PublicKey(raw)
        assert (key, PublicKey.from_hex(str(key)), key.hex()[:8]) == (raw, raw, key.short)
    else:
        with pytest.raises(InvalidInput, match=f"not {len(raw)}"):
            PublicKey(raw)


@pytest.mark.parametrize("text", ["", "zz", "00" * 31, "00" * 33, "é" * 64])
def test_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no public key in hex"):
        PublicKey.from_hex(text)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_seed_has_32_bytes(size: int) -> None:
    with pytest.raises(InvalidInput, match=f"not {size}"):
        KeyPair.from_seed(bytes(size))


def test_what_was_found_right_is_not_checked_again_while_it_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, asked = KeyPair.from_seed(bytes(32)), list[bytes]()

    def counted(signed: bytes, key: bytes) -> bytes:
        asked.append(key)
        return crypto_sign_open(signed, key)

    monkeypatch.setattr(keys, "crypto_sign_open", counted)
    signature = pair.sign(b"hello")
    with verified_once():
        assert verify(pair.key, b"hello", signature)
        assert verify(pair.key, b"hello", signature)
        assert len(asked) == 1
        assert not verify(pair.key, b"hullo", signature)
        assert not verify(pair.key, b"hullo", signature)  # what is wrong is not kept
        assert not verify(KeyPair.from_seed(b"x" * 32).key, b"hello", signature)
        assert len(asked) == 4
    assert verify(pair.key, b"hello", signature)
    assert verify(pair.key, b"hello", signature)
    assert len(asked) == 6
