"""Every decoder, fed with rubbish: it refuses with an error of ours or returns a value that encodes again, and no small
input costs much memory. The targets are those of tools/decoders.py; `make fuzz` gives the fuzzer more time."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

from antiphon.api.invitation import Invitation
from antiphon.api.registry import LocalRegistry
from antiphon.core.cid import decode_node
from antiphon.core.errors import BadEncoding, CorruptBlock, InvalidInput, TooLarge
from antiphon.core.keys import KeyPair
from antiphon.core.v1 import credential_pb2 as pb
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.store.quarantine import Refusal
from antiphon.halo.credentials import credential
from antiphon.party.engine.postings import decode_postings
from antiphon.query.value_order import value_of
from antiphon.testing.parties import pair_of

ROOT = Path(__file__).resolve().parent.parent
RUNS_MAX = budget(1_000, 50_000)
EXAMPLES = budget(25, 2_000)  # of each target
HOSTILE_MAX = budget(25, 400)  # places of each seed that hold a huge number, one at a time
PARTS = budget(1, 2)  # each loads and instruments the code once, which takes as long as fuzzing forty targets
SECONDS_MAX = 1
ALLOCATED_MAX = 4 << 20
FEED = b"f" * 32


def load(name: str) -> Any:
    """A module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"antiphon_tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fuzz = load("fuzz")
TARGETS: dict[str, Any] = load("decoders").targets()
altered = load("altered")
SEEDS = sorted({seed for target in TARGETS.values() for seed in target.seeds})

each_target = pytest.mark.parametrize("name", TARGETS)
with_atheris = pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is for Linux only")


@each_target
def test_the_seeds_are_taken(name: str) -> None:
    """Otherwise all the rest would be about refusals alone."""
    target = TARGETS[name]
    assert target.seeds
    assert all(target.run(seed) for seed in target.seeds)


# -- Hypothesis


@pytest.mark.slow
@each_target
@settings(max_examples=EXAMPLES)
@given(data=st.binary(max_size=400))
def test_random_bytes_are_refused_or_come_back(name: str, data: bytes) -> None:
    assert TARGETS[name].run(data) in (True, False)


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A valid encoding with some bytes flipped, cut off, repeated, set to an extreme, or taken from elsewhere."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(len(data), at + 100)))
        how = draw(st.sampled_from(["flip", "truncate", "delete", "repeat", "splice", "extreme", "insert"]))
        if how == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
        elif how == "truncate":
            data = data[:at]
        elif how == "delete":
            data = data[:at] + data[end:]
        elif how == "repeat":
            data = data[:at] + data[at:end] * draw(st.integers(2, 5)) + data[end:]
        elif how == "splice":
            data = data[:at] + draw(st.sampled_from(SEEDS))[at:]
        elif how == "extreme":
            value = draw(st.sampled_from([b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0\0\x10\0"]))
            data = data[:at] + value + data[at + len(value) :]
        else:
            data = data[:at] + draw(st.binary(max_size=20)) + data[at:]
    return data


@pytest.mark.slow
@each_target
@settings(max_examples=EXAMPLES)
@given(chosen=st.data())
def test_damaged_encodings_are_refused_or_come_back(name: str, chosen: st.DataObject) -> None:
    target = TARGETS[name]
    assert target.run(chosen.draw(damaged(target.seeds))) in (True, False)


each_message = pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.message])


@pytest.mark.slow
@each_message
@settings(max_examples=EXAMPLES)
@given(chance=st.randoms(use_true_random=False))
def test_altered_messages_are_refused_or_come_back(name: str, chance: random.Random) -> None:
    """Bytes that are flipped mostly break a length and reach no more than the parser; here the fields change."""
    target = TARGETS[name]
    data = altered.altered(target.message, chance.choice(target.seeds), chance, target.seeds)
    assert target.run(data) in (True, False)


@pytest.mark.slow
@each_message
def test_much_of_what_is_altered_is_taken(name: str) -> None:
    """Otherwise the test above would be about refusals alone."""
    target, chance = TARGETS[name], random.Random(1)
    runs = [altered.altered(target.message, chance.choice(target.seeds), chance, target.seeds) for _ in range(50)]
    assert sum(map(target.run, runs)) >= 5


# -- allocation


def hostile(seeds: tuple[bytes, ...]) -> Iterator[bytes]:
    """Encodings in which a place that might hold a size or a count holds a huge one; in `make soak`, every place."""
    for seed in seeds[:3]:
        size = min(len(seed), 400)
        for at in range(0, size, max(1 if len(seed) < 200 else 2, size // HOSTILE_MAX)):
            for value in (b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0\0\0\x10"):
                yield seed[:at] + value + seed[at + 4 :]


@pytest.mark.slow
@each_target
def test_a_small_input_allocates_little(name: str) -> None:
    target = TARGETS[name]
    target.run(target.seeds[0])  # what is made once is not the input's doing
    tracemalloc.start()
    try:
        for data in hostile(target.seeds):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            target.run(data)
            assert tracemalloc.get_traced_memory()[1] - before < ALLOCATED_MAX, data.hex()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "start", ["9affffffff", "9b7fffffffffffffff", "ba00ffffff", "bb00000000ffffffff", "5b0fffffffffffffff"]
)
def test_a_node_that_announces_much_is_refused(start: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadEncoding):
            decode_node(bytes.fromhex(start) + bytes(1000))
        assert tracemalloc.get_traced_memory()[1] < ALLOCATED_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("opening", ["81", "a16161", "d82a81"])
def test_a_node_of_any_depth_is_refused(opening: str) -> None:
    with pytest.raises(BadEncoding):
        decode_node(bytes.fromhex(opening) * 100_000)


# -- what was found


def nested(depth: int, kind: str) -> bytes:
    """A credential in a credential in a credential, each signed as it should be."""
    party, pair = pair_of("party"), pair_of("alice")
    signed = b""
    for _ in range(depth):
        payload = pb.Credential(party=party.key)
        if kind == "genesis":
            payload.party_genesis.identity = pair.key
            payload.party_genesis.admission.ParseFromString(signed)
        else:
            payload.feed.feed, payload.feed.kind = pair.key, pb.FEED_KIND_DATA
            payload.feed.device.ParseFromString(signed)
        signed = signed_by(pair, party.key, payload.SerializeToString())
    return signed


def signed_by(pair: KeyPair, party: bytes, payload: bytes) -> bytes:
    signature = pb.Signature(key=pair.key, signature=pair.sign(credential.TAG + party + payload))
    return pb.SignedCredential(payload=payload, signatures=[signature]).SerializeToString()


@pytest.mark.parametrize("kind", ["genesis", "feed"])
def test_nested_credentials_are_refused_before_they_are_followed(kind: str) -> None:
    """They once ended in a RecursionError, after hashing the credential hundreds of times over."""
    with pytest.raises(BadEncoding, match="admission of a"):
        credential.read(pair_of("party").key, nested(1500, kind))


@pytest.mark.parametrize(("offset", "value"), [(0, 2), (1, 8), (2, 3)], ids=["version", "flags", "end"])
def test_a_record_of_another_version_is_refused_although_its_checksum_is_right(offset: int, value: int) -> None:
    """An unknown end once was a plain ValueError, and unknown flags were dropped in silence."""
    target = TARGETS["record-summed"]
    data = bytearray(target.seeds[0])
    data[offset] = value
    with pytest.raises(CorruptBlock):
        target.decode(bytes(data))
    assert FeedRecord(feed=FEED, party=FEED).encode()[0] == 1


def test_a_refusal_is_refused_unless_its_reason_is_text_within_its_bound() -> None:
    """They once were decoded to something else than what was there."""
    whole = Refusal(FEED, 1, 1, 1, "é" * 512).encode()
    with pytest.raises(BadEncoding):
        Refusal.decode(whole[:-1] + b"\xff")
    with pytest.raises(TooLarge):
        Refusal.decode(whole[:84] + (1025).to_bytes(4, "little") + b"." * 1025)


@pytest.mark.parametrize("data", ["010080", "8100000001", "01ac0000", "80000000"])
def test_postings_are_refused_unless_each_integer_is_as_short_as_can_be(data: str) -> None:
    """An integer once had any number of zeros behind it, and so two encodings."""
    with pytest.raises(BadEncoding, match="postings"):
        decode_postings(bytes.fromhex(data))


def test_a_packed_reference_without_its_party_is_refused() -> None:
    """It once was an IndexError, and so the index was not built again."""
    with pytest.raises(BadEncoding):
        value_of(b'\x07{"\\ud800":["r","00"]}')


def test_text_that_cannot_be_written_is_no_invitation_and_no_record(tmp_path: Path) -> None:
    """They once were taken, and then neither could be shown or written again: half a surrogate pair has no UTF-8."""
    seed: bytes = load("examples").examples()["invitation"].data
    with pytest.raises(InvalidInput, match="Unicode"):
        Invitation.parse((seed + b"\xff").decode("utf-8", "surrogateescape"))
    (tmp_path / "names.json").write_text('[{"name": "a", "kind": "model", "description": "\\ud800"}]')
    with pytest.raises(BadEncoding, match="Unicode"):
        LocalRegistry(tmp_path / "names.json").records()


# -- the fuzzer


@pytest.mark.slow
@with_atheris
@pytest.mark.parametrize("part", range(PARTS))
def test_the_fuzzer_finds_nothing(part: int, tmp_path: Path) -> None:
    limits = ["-seed=1", f"-runs={RUNS_MAX}", f"-max_total_time={SECONDS_MAX}"]
    chosen = {name: TARGETS[name] for name in sorted(TARGETS)[part::PARTS]}
    outcomes = list(fuzz.fuzz(chosen, tmp_path, limits=limits))

    assert [outcome.name for outcome in outcomes] == list(chosen)
    for outcome in outcomes:
        assert not outcome.failed, fuzz.report(outcome, fuzz.TABLE)
        assert outcome.runs > 100, outcome.name
        assert outcome.covered > 0, "nothing is instrumented"


PLANTED = """
from antiphon.core.errors import BadEncoding

class Target:
    seeds = (b"seed",)
    def __init__(self, act):
        self.run = act

def refuse(data):
    return False

def crash(data):
    return {}[data]

def hang(data):
    while True:
        pass

def hog(data):
    return bool(bytearray(1 << 30))

def targets():
    return {act.__name__: Target(act) for act in (refuse, crash, hang, hog)}
"""


@pytest.mark.slow
@with_atheris
@pytest.mark.parametrize(
    ("name", "sign"), [("crash", "KeyError"), ("hang", "timeout"), ("hog", "MemoryError"), ("refuse", "")]
)
def test_the_fuzzer_finds_what_is_there(
    name: str, sign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "INPUT_SECONDS_MAX", 1)
    table = tmp_path / "planted.py"
    table.write_text(PLANTED)
    wanted = ["--table", str(table), "--target", name]

    code = fuzz.main([*wanted, "--runs", "100", "--seconds", "5", "--corpus", str(tmp_path / "corpus")])

    said = capsys.readouterr().out
    assert code == (1 if sign else 0)
    assert sign in said
    assert ("FINDING" in said) == bool(sign)
    if name == "crash":
        (kept,) = (tmp_path / "corpus").glob("crash-crash-*")
        assert f"--target crash --replay {kept}" in said
        with pytest.raises(KeyError):
            fuzz.main([*wanted, "--replay", str(kept)])


def test_the_targets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(TARGETS)


def test_an_unknown_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fuzz.main(["--target", "nothing", "--seconds", "1"])
    assert "timeframe" in capsys.readouterr().err


def test_a_refused_input_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "input").write_bytes(b"rubbish")
    assert fuzz.main(["--target", "span", "--replay", str(tmp_path / "input")]) == 0
    assert "refused" in capsys.readouterr().out
    assert os.listdir(tmp_path) == ["input"]
