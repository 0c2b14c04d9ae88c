"""CIDs as everybody else makes them (npm's multiformats), and one encoding for each node."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from antiphon.core.cid import BLOB_SIZE_MAX, CID_SIZE, DAG_CBOR, RAW, Cid, decode_node, encode_node
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge

CASES = 300
ZERO = bytes((1, RAW, 0x12, 0x20)) + bytes(32)


# Bytes begin with a zero here: see test_bytes_that_look_like_a_cid_become_a_link.
plain_bytes = st.binary(max_size=40).map(lambda raw: b"\0" + raw)
links = st.builds(Cid.of, st.binary(max_size=10), st.sampled_from([RAW, DAG_CBOR]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 64), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: str(value) != "-0.0")
    | st.text(max_size=10)
    | plain_bytes
    | links
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


# Agreement with another implementation


def described(value: Any) -> list[Any]:
    """A node's value as JSON that keeps its types, for cids.mjs."""
    match value:
        case None:
            return ["null"]
        case bool():
            return ["bool", value]
        case int():
            return ["int", str(value)]
        case float():
            return ["float", value]
        case str():
            return ["text", value]
        case Cid():
            return ["link", str(value)]
        case bytes():
            return ["bytes", value.hex()]
        case list():
            return ["list", [described(item) for item in value]]
        case dict():
            return ["map", [[key, described(item)] for key, item in value.items()]]
    raise AssertionError(f"no DAG-CBOR value: {value!r}")


def some_value(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(9 if depth else 7)
    text = "".join(chance.choice("abzÄ漢🙂") for _ in range(chance.randrange(9)))
    if kind < 7:
        return [
            None,
            chance.random() < 0.5,
            (-1) ** chance.randrange(2) * chance.getrandbits(chance.choice([4, 5, 8, 9, 16, 17, 32, 33, 63, 64])),
            chance.uniform(-1e9, 1e9),
            text,
            b"\0" + chance.randbytes(chance.choice([0, 22, 23, 254, 255, 300])),
            Cid.of(text.encode(), chance.choice([RAW, DAG_CBOR])),
        ][kind]
    count = chance.choice([0, 1, 3, 24])
    if kind == 7:
        return [some_value(chance, depth - 1) for _ in range(count)]
    return {f"{text[n % 4 :]}{n}": some_value(chance, depth - 1) for n in range(count)}


@pytest.fixture(scope="module")
def cases() -> tuple[list[bytes], list[Any]]:
    chance = random.Random(4)
    return (
        [chance.randbytes(chance.choice([0, 1, 31, 1000])) for _ in range(CASES)],
        [some_value(chance) for _ in range(CASES)],
    )


@pytest.fixture(scope="module")
def answers(cases: tuple[list[bytes], list[Any]], root: Path) -> dict[str, Any]:
    """What multiformats says about our cases, and blobs of its own."""
    library, node = root / "bench" / "anchors" / "node_modules" / "multiformats", shutil.which("node")
    if node is None or not library.is_dir():
        pytest.skip("npm's multiformats is not here: install Node, then `make bench/anchors/node_modules/.built`")
    blobs, nodes = cases
    questions = {
        "blobs": [blob.hex() for blob in blobs],
        "nodes": [described(value) for value in nodes],
        "texts": [str(Cid.of(blob, DAG_CBOR)) for blob in blobs],
        "own": CASES,
    }
    script = Path(__file__).with_name("cids.mjs")
    done = subprocess.run(
        [node, str(script), str(library)], input=json.dumps(questions), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_blobs_have_the_same_cids_there(cases: tuple[list[bytes], list[Any]], answers: dict[str, Any]) -> None:
    ours = [Cid.of(blob) for blob in cases[0]]

    assert [(str(cid), cid.hex()) for cid in ours] == [(theirs["text"], theirs["hex"]) for theirs in answers["blobs"]]


def test_nodes_have_the_same_bytes_and_cids_there(
    cases: tuple[list[bytes], list[Any]], answers: dict[str, Any]
) -> None:
    for value, theirs in zip(cases[1], answers["nodes"], strict=True):
        blob = encode_node(value)
        assert blob.hex() == theirs["blob"]
        assert str(Cid.of(blob, DAG_CBOR)) == theirs["text"]
        assert decode_node(bytes.fromhex(theirs["blob"])) == value


def test_our_text_is_read_there(cases: tuple[list[bytes], list[Any]], answers: dict[str, Any]) -> None:
    for blob, theirs in zip(cases[0], answers["texts"], strict=True):
        assert theirs == {
            "text": str(Cid.of(blob, DAG_CBOR)),
            "hex": Cid.of(blob, DAG_CBOR).hex(),
            "codec": DAG_CBOR,
            "version": 1,
        }


def test_their_text_and_bytes_are_read_here(answers: dict[str, Any]) -> None:
    assert len(answers["own"]) == CASES
    for theirs in answers["own"]:
        cid = Cid.parse(theirs["text"])
        assert cid == Cid(bytes.fromhex(theirs["hex"]))
        assert cid.matches(bytes.fromhex(theirs["blob"]))


# CIDs


@given(st.binary(max_size=100), st.sampled_from([RAW, DAG_CBOR]))
def test_a_cid_comes_back_from_text_and_bytes(blob: bytes, codec: int) -> None:
    cid = Cid.of(blob, codec)

    assert Cid.parse(str(cid)) == cid == Cid(bytes(cid))
    assert (len(cid), cid.codec, cid.matches(blob)) == (CID_SIZE, codec, True)
    assert not cid.matches(blob + b"\0")
    assert str(cid) in repr(cid)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        ZERO[:-1],
        ZERO + b"\0",
        b"\0" + ZERO[1:],
        b"\1\x70" + ZERO[2:],  # dag-pb
        b"\1\x55\x11\x20" + bytes(32),  # sha1
        b"\1\x55\x12\x1f" + bytes(32),
        b"\x12\x20" + bytes(32),  # version 0
    ],
)
def test_other_versions_codecs_and_hashes_are_refused(raw: bytes) -> None:
    with pytest.raises(BadEncoding, match="is no CID of version 1"):
        Cid(raw)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "bafk",
        "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG",
        "BAFKREIBM6JG3UX5QUMHCN2B3FLC3TYU6DMLB4XA7U5BF44YEGNRJHC4YEQ",
        "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yer",  # a bit set beyond the last byte
        "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq=",
        " bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq",
        "f01551220" + "00" * 32,  # base16 of a good one
        "b" * 129,
        "ß" * 40,
    ],
)
def test_text_has_one_form_only(text: str) -> None:
    with pytest.raises(BadEncoding):
        Cid.parse(text)


@given(st.text(max_size=140))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        Cid.parse(text)


# Nodes


@given(values)
def test_a_node_comes_back(value: Any) -> None:
    assert decode_node(encode_node(value)) == value


@given(st.binary(max_size=60) | values.map(encode_node), st.data())
def test_what_is_decoded_is_canonical(blob: bytes, data: st.DataObject) -> None:
    if blob:
        at = data.draw(st.integers(0, len(blob) - 1))
        blob = blob[:at] + data.draw(st.binary(max_size=2)) + blob[at + 1 :]
    try:
        value = decode_node(blob)
    except InvalidInput:
        return
    assert encode_node(value) == blob


@pytest.mark.parametrize(
    ("blob", "why"),
    [
        ("", "nothing"),
        ("1817", "23 in two bytes"),
        ("190001", "1 in three bytes"),
        ("1a00000001", "1 in five bytes"),
        ("1b0000000000000001", "1 in nine bytes"),
        ("3800", "-1 in two bytes"),
        ("580161", "a length in two bytes"),
        ("7800", "a length of text in two bytes"),
        ("9800", "a length of a list in two bytes"),
        ("b800", "a length of a map in two bytes"),
        ("a2616201616102", "keys out of order"),
        ("a262616101616202", "a longer key first"),
        ("a2616101616102", "a key twice"),
        ("a10102", "a key that is no text"),
        ("5f4101ff", "bytes without a length"),
        ("7f6161ff", "text without a length"),
        ("9f01ff", "a list without a length"),
        ("bf6161f5ff", "a map without a length"),
        ("f93c00", "half a float"),
        ("fa3f800000", "a short float"),
        ("fb7ff8000000000000", "not a number"),
        ("fb7ff0000000000000", "infinity"),
        ("fb8000000000000000", "minus zero"),
        ("f7", "undefined"),
        ("c100", "a tag that is no link"),
        ("d82a40", "a link to nothing"),
        ("d82a5825010155122000" + "00" * 31, "a link without its leading zero"),
        ("d9002a5825000155122000" + "00" * 31, "a link's tag in three bytes"),
        ("62c328", "text that is no UTF-8"),
        ("0000", "two values"),
        ("82", "a list that is cut off"),
        ("9bffffffffffffffff", "a list of 2^64 values"),
        ("5bffffffffffffffff", "2^64 bytes"),
        ("bbffffffffffffffff", "a map of 2^64 entries"),
        ("81" * 100_000 + "00", "too deep"),
    ],
)
def test_every_other_form_of_a_node_is_refused(blob: str, why: str) -> None:
    with pytest.raises(BadEncoding):
        decode_node(bytes.fromhex(blob))


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1 << 64, -(1 << 64) - 1, {1: 2}, {1}, object(), "\ud800"]
)
def test_what_dag_cbor_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(BadEncoding, match="not a DAG-CBOR value"):
        encode_node(value)


def test_a_blob_above_the_limit_is_refused_unread() -> None:
    with pytest.raises(TooLarge, match=str(BLOB_SIZE_MAX)):
        decode_node(bytes(BLOB_SIZE_MAX + 1))


@pytest.mark.parametrize("raw", [ZERO, b"\x12\x20" + bytes(32), bytes.fromhex("01550000")])
def test_bytes_that_look_like_a_cid_become_a_link(raw: bytes) -> None:
    """So libipld has it: it knows links only as bytes. Bytes that others choose must not stand bare in a node."""
    assert encode_node(raw)[:2] == b"\xd8\x2a"
    assert encode_node(b"\0" + raw)[:2] != b"\xd8\x2a"
