"""The file of a key store: one encoding for each contents, and every other byte string refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, InvalidInput, KeyStoreError
from antiphon.core.keys import PublicKey
from antiphon.halo.keys.key_file import (
    Contact,
    Contents,
    Cost,
    Header,
    HeldKey,
    KeyFile,
    KeyKind,
    KeyRecord,
    Protection,
    decode_contents,
    decode_file,
    encode_contents,
    encode_file,
    seal,
    unseal,
)

FRIEND = PublicKey(b"f" * 32)
labels = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)
keys = st.binary(min_size=32, max_size=32).map(PublicKey)


def by_key(entry: HeldKey | Contact) -> bytes:
    return entry.key


held_keys = st.builds(
    HeldKey,
    st.builds(KeyRecord, keys, st.sampled_from(KeyKind), labels, st.none() | keys),
    st.binary(min_size=32, max_size=32),
)
all_contents = st.builds(
    Contents,
    st.lists(held_keys, unique_by=by_key, max_size=5).map(lambda held: tuple(sorted(held, key=by_key))),
    st.lists(st.builds(Contact, keys, labels), unique_by=by_key, max_size=5).map(
        lambda contacts: tuple(sorted(contacts, key=by_key))
    ),
)
headers = st.one_of(
    st.just(Header(Protection.UNPROTECTED)),
    st.builds(Header, st.just(Protection.KEYRING), st.binary(min_size=16, max_size=16)),
    st.builds(
        Header,
        st.just(Protection.PASSPHRASE),
        st.binary(min_size=16, max_size=16),
        st.builds(Cost, st.integers(1, 10), st.integers(8, 1 << 20)),
    ),
)


@given(all_contents)
def test_contents_come_back(contents: Contents) -> None:
    assert decode_contents(encode_contents(contents)) == contents


@given(headers, st.binary(max_size=100))
def test_files_come_back(header: Header, body: bytes) -> None:
    assert decode_file(encode_file(KeyFile(header, body))) == KeyFile(header, body)


@given(headers, all_contents, st.binary(min_size=32, max_size=32), st.binary(min_size=24, max_size=24))
def test_what_is_sealed_is_unsealed(header: Header, contents: Contents, key: bytes, nonce: bytes) -> None:
    assert unseal(decode_file(seal(contents, header, key, nonce)), key) == contents


@given(all_contents, st.data())
def test_contents_have_one_encoding_only(contents: Contents, data: st.DataObject) -> None:
    """Whatever is decoded encodes to the very same bytes; so a changed byte is refused, or other contents."""
    raw = bytearray(encode_contents(contents))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = decode_contents(bytes(raw))
    except InvalidInput:
        return
    assert encode_contents(decoded) == raw


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(raw: bytes) -> None:
    for decode in (decode_contents, decode_file):
        try:
            decode(raw)
        except InvalidInput as error:
            assert "key store" in str(error)  # noqa: PT017 — bytes may also be valid


@given(headers, st.binary(max_size=100), st.data())
def test_every_changed_missing_or_added_byte_is_found(header: Header, body: bytes, data: st.DataObject) -> None:
    raw = encode_file(KeyFile(header, body))
    at = data.draw(st.integers(0, len(raw) - 1))
    flipped = bytes((raw[at] ^ data.draw(st.integers(1, 255)),))

    for broken in (raw[:at] + flipped + raw[at + 1 :], raw[:at], raw + flipped, raw[:at] + flipped + raw[at:]):
        with pytest.raises(BadEncoding):
            decode_file(broken)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (u32(1) + b"k" * 32 + b"s" * 32 + b"\0\0\0" + u32(0), "kind 0"),
        (u32(1) + b"k" * 32 + b"s" * 32 + b"\4\0\0" + u32(0), "kind 4"),
        (u32(1) + b"k" * 32 + b"s" * 32 + b"\1\2\0" + u32(0), "owner mark 2"),
        (u32(1) + b"k" * 32 + b"s" * 32 + b"\1\0\1\n" + u32(0), "control characters"),
        (u32(1) + b"k" * 32 + b"s" * 32 + b"\1\0\1\xff" + u32(0), "label is broken"),
        (u32(2) + 2 * (b"k" * 32 + b"s" * 32 + b"\1\0\0") + u32(0), "do not ascend"),
        (u32(0) + u32(2) + b"l" * 32 + b"\0" + b"k" * 32 + b"\0", "do not ascend"),
        (u32(0) + u32(0) + b"\0", "1 bytes too many"),
        (u32((1 << 16) + 1), "at most"),
        (u32(0) + u32(0xFFFFFFFF), "at most"),
        (u32(1 << 16), "wanted at offset"),
    ],
)
def test_other_forms_of_contents_are_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=f"the store: .*{reason}"):
        decode_contents(raw, "the store")


def test_contents_out_of_order_are_not_encoded() -> None:
    a, b = Contact(PublicKey(b"a" * 32), ""), Contact(PublicKey(b"b" * 32), "")
    entry = HeldKey(KeyRecord(FRIEND, KeyKind.FEED, ""), bytes(32))
    for contents in (Contents((), (b, a)), Contents((), (a, a)), Contents((entry, entry))):
        with pytest.raises(InvalidInput, match="must ascend"):
            encode_contents(contents)


def test_a_box_too_short_for_its_nonce_is_refused() -> None:
    with pytest.raises(BadEncoding, match="too few"):
        unseal(KeyFile(Header(Protection.KEYRING, bytes(16)), bytes(23)), bytes(32))
    with pytest.raises(KeyStoreError, match="does not open"):
        unseal(KeyFile(Header(Protection.KEYRING, bytes(16)), bytes(24)), bytes(32))
