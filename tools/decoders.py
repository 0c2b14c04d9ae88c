"""Every decoder of bytes that may be hostile or damaged, in one table, for `fuzz` and for tests/test_fuzz.py.

A decoder may do two things with any input: raise an AntiphonError, or return a value. The value is encoded again: to
the same bytes where a structure has only one encoding, and to the same value in any case.

Where a checksum, hash or signature would stop all inputs but the seeds, a second target corrects it first (its name
says what), so that the fuzzer reaches the code behind it.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from nacl.bindings import crypto_secretbox

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.decoders_channel import channel_targets
from tools.decoders_mesh import mesh_targets
from tools.decoders_models import model_targets
from tools.decoders_queries import other_targets
from tools.decoders_snapshot import snapshot_targets
from tools.example import ALICE, BOX_KEY, CONTROL, DATA, LAPTOP, PARTY, TEAM, Example
from tools.examples import claims, contents, examples
from tools.target import Target

from antiphon.core.cid import Cid, decode_node, encode_node
from antiphon.core.codec import Reader, u32
from antiphon.core.errors import AntiphonError
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import credential_pb2 as pb
from antiphon.feed import span as spans
from antiphon.feed.block import Block, BodyState
from antiphon.feed.chain import Head, link, sign_head, verify_span
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Branch, Fork
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import Entry, Flag, Kind, decode_entries
from antiphon.feed.rules import judge
from antiphon.feed.store.ingest import check_complete
from antiphon.feed.store.quarantine import Refusal
from antiphon.feed.store.tables import DecodedCache, Tables
from antiphon.halo.acts.act import Act, read_act
from antiphon.halo.credentials import credential
from antiphon.halo.keys import key_file, recovery_phrase

SIZE_MAX = 4096
_NONCE = bytes(24)
_SPAN_KEY = DATA.key + bytes(8)


# -- feeds


def _whole(what: str, read: Callable[[Reader], Any], data: bytes) -> Any:
    reader = Reader(data, what)
    value = read(reader)
    reader.done()
    return value


def _encode_span(span: spans.Span) -> bytes:
    return span.encode_stored(b"")[:-4] if span.hashes else span.encode()


def _judged_span(data: bytes) -> spans.Span:
    """Rewrite the blocks into a feed whose key we have, linked and signed, and judge them as a receiver does."""
    sent = replace(spans.decode(data), feed=bytes(DATA.key), party=bytes(PARTY.key), hashes=b"")
    hashes = link(sent.party, sent.feed, sent.previous, [sent.header_bytes(index) for index in range(sent.count)])
    span = verify_span(replace(sent, signature=sign_head(DATA, sent.party, sent.end, hashes[-1])))
    check_complete(span)
    for previous in (None, 0):
        verdict = judge(span, previous, lambda _: None)
        end = span.end if verdict.fault is None else verdict.fault.seq
        assert span.first <= end <= span.end
        for index in range(end - span.first):
            span.block(index)  # whatever passes can be read
    return replace(span, hashes=b"")


class _OneSpan:
    """A transaction whose table of spans holds one value, read as LMDB returns it."""

    def __init__(self, key: bytes, value: bytes) -> None:
        self._key, self._value = key, value

    def cursor(self, _: object) -> _OneSpan:
        return self

    def __enter__(self) -> _OneSpan:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_range(self, key: bytes) -> bool:
        return key <= self._key

    def last(self) -> bool:
        return True

    def prev(self) -> bool:
        return False

    def key(self) -> memoryview:
        return memoryview(self._key)

    def value(self) -> memoryview:
        return memoryview(self._value)


def _stored_span(stored: bytes) -> spans.Span:
    """A span from the disk, as a whole and block by block."""
    tables = Tables(_OneSpan(bytes(_SPAN_KEY), stored), {"spans": None}, DecodedCache())
    record = FeedRecord(feed=bytes(DATA.key), party=bytes(PARTY.key), length=2)
    for seq in (0, 1):
        with suppress(AntiphonError):
            tables.block_at(record, seq)
    return tables.span_at(record, 0)


def _mended_fork(data: bytes) -> Fork:
    """Two branches of a feed whose key we have, made to lead to heads that it signed."""
    reader = Reader(data, "branches")
    party, seq, previous = bytes(PARTY.key), reader.u64(), reader.take(32)
    branches = []
    for _ in range(2):
        headers = Branch.read(reader).headers
        last = link(party, DATA.key, previous, list(headers))[-1]
        length = (seq + len(headers)) % (1 << 63)
        branches.append(Branch(headers, Head(length, last, sign_head(DATA, party, length, last))))
    reader.done()
    first, second = sorted(branches, key=Branch.encode)
    return Fork.decode(Fork(party, bytes(DATA.key), seq, previous, (first, second)).encode())


# -- credentials


def _signed(payload: bytes) -> bytes:
    """A payload signed by all signers that an admission in the seeds needs."""
    pairs = sorted((ALICE, LAPTOP, DATA), key=lambda pair: pair.key)
    signatures = [
        pb.Signature(key=pair.key, signature=pair.sign(credential.TAG + PARTY.key + payload)) for pair in pairs
    ]
    return pb.SignedCredential(payload=payload, signatures=signatures).SerializeToString(deterministic=True)


def _nested(payload: bytes) -> credential.Credential:
    """The payload as the device's admission inside a feed's admission."""
    outer = pb.Credential(party=PARTY.key)
    outer.feed.feed, outer.feed.kind = DATA.key, pb.FEED_KIND_DATA
    outer.feed.device.ParseFromString(_signed(payload))
    return credential.read(PARTY.key, _signed(outer.SerializeToString(deterministic=True)))


def _payload(value: credential.Credential) -> bytes:
    signed = credential.sign(PARTY.key, value.claim, [PARTY], expires_ms=value.expires_ms, nonce=value.nonce)
    return pb.SignedCredential.FromString(signed).payload


def _signed_again(value: credential.Credential) -> bytes:
    pairs = {bytes(pair.key): pair for pair in (PARTY, ALICE, LAPTOP, CONTROL, DATA, TEAM)}
    return credential.sign(
        PARTY.key,
        value.claim,
        [pairs[key] for key in sorted(value.signers)],
        expires_ms=value.expires_ms,
        nonce=value.nonce,
    )


def _act(message: bytes) -> Act:
    """A control block with this message. Reading it never raises: an unreadable act is an act without a claim."""
    body = bytes(16) + message
    block = Block(
        feed=bytes(CONTROL.key),
        seq=0,
        lamport=1,
        kind=Kind.CREDENTIAL,
        flags=Flag(0),
        created_ms=1,
        item=bytes(SYSTEM_ITEM),
        advance=(),
        hash=bytes(32),
        body_hash=sha256(body).digest(),
        body=body,
        state=BodyState.PRESENT,
    )
    act = read_act(PARTY.key, block, {})
    assert (act.claim is None) == bool(act.problem)
    return act


# -- key stores


def _box(plain: bytes) -> key_file.KeyFile:
    header = key_file.Header(key_file.Protection.KEYRING, bytes(16))
    return key_file.KeyFile(header, _NONCE + crypto_secretbox(plain, _NONCE, BOX_KEY))


def _text(data: bytes) -> str:
    """Text from any bytes, one to one, so that no input is lost on the way."""
    return data.decode("utf-8", "surrogateescape")


def core_targets(made: dict[str, Example]) -> dict[str, Target]:
    keys = str(ALICE.key).encode()
    return {
        "timeframe": Target(Timeframe.decode, Timeframe.encode, (made["timeframe"].data, Timeframe().encode())),
        "stamp": Target(Stamp.decode, Stamp.encode, (made["stamp"].data,)),
        "key-text": Target(
            lambda data: PublicKey.from_hex(_text(data)), lambda key: str(key).encode(), (keys,), canonical=False
        ),
        "cid": Target(Cid, bytes, (made["cid"].data,)),
        "cid-text": Target(
            lambda data: Cid.parse(_text(data)), lambda cid: str(cid).encode(), (made["cid-text"].data,)
        ),
        "node": Target(decode_node, encode_node, (made["node"].data, encode_node([1, -1, "a", None, True, 1.5, [{}]]))),
    }


def feed_targets(made: dict[str, Example]) -> dict[str, Target]:
    record, span = made["record"].data, made["span"].data
    ranges = (span, made["span-without-bodies"].data, made["span-stored"].data[:-4])
    feed = bytes(DATA.key)

    def summed(stored: bytes) -> bytes:
        return stored + u32(zlib.crc32(feed + stored))

    def stored(data: bytes) -> spans.Span:
        return _stored_span(data + u32(zlib.crc32(data, zlib.crc32(_SPAN_KEY))))

    return {
        "entries": Target(
            decode_entries, lambda entries: b"".join(map(Entry.encode, entries)), (made["entry"].data, b"")
        ),
        "head": Target(lambda data: _whole("head", Head.read, data), Head.encode, (made["head"].data,)),
        "span": Target(spans.decode, _encode_span, ranges),
        "span-verified": Target(lambda data: verify_span(spans.decode(data)), None, ranges),
        "span-signed": Target(_judged_span, spans.Span.encode, ranges[:2], canonical=False),
        "span-stored": Target(_stored_span, None, (made["span-stored"].data,)),
        "span-stored-summed": Target(stored, _encode_span, (ranges[2],)),
        "fork": Target(Fork.decode, Fork.encode, (made["fork"].data,)),
        "head-proof": Target(HeadProof.decode, HeadProof.encode, (bytes(4) + made["head"].data,)),
        "fork-signed": Target(
            _mended_fork, lambda fork: fork.encode()[68:], (made["fork"].data[68:],), canonical=False
        ),
        "record": Target(lambda data: FeedRecord.decode(feed, data), FeedRecord.encode, (record,)),
        "record-summed": Target(
            lambda data: FeedRecord.decode(feed, summed(data)), lambda value: value.encode()[:-4], (record[:-4],)
        ),
        "refusal": Target(Refusal.decode, Refusal.encode, (made["refusal"].data[:-4],)),
    }


def halo_targets(made: dict[str, Example]) -> dict[str, Target]:
    credentials = tuple(made[name].data for name in claims())
    payloads = tuple(pb.SignedCredential.FromString(data).payload for data in credentials)
    device = pb.SignedCredential.FromString(made["device-admission"].data).payload
    files = tuple(made[f"keys-{name}"].data for name in ("unprotected", "passphrase", "keyring"))
    plain = key_file.encode_contents(contents())
    return {
        "credential": Target(
            lambda data: credential.read(PARTY.key, data), _signed_again, credentials, canonical=False
        ),
        "credential-signed": Target(
            lambda data: replace(credential.read(PARTY.key, _signed(data)), signers=frozenset()),
            _payload,
            payloads,
            canonical=False,
        ),
        "credential-nested": Target(_nested, None, (device,)),
        "act": Target(_act, None, (made["message-credential"].data, made["message-genesis"].data)),
        "key-file": Target(key_file.decode_file, key_file.encode_file, files),
        "key-file-summed": Target(
            lambda data: key_file.decode_file(data + sha256(data).digest()),
            lambda file: key_file.encode_file(file)[:-32],
            tuple(data[:-32] for data in files),
        ),
        "key-contents": Target(key_file.decode_contents, key_file.encode_contents, (plain, bytes(8))),
        "key-box": Target(lambda data: key_file.unseal(_box(data), BOX_KEY), key_file.encode_contents, (plain,)),
        "key-box-raw": Target(
            lambda data: key_file.unseal(replace(_box(b""), body=data), BOX_KEY), None, (_box(plain).body,)
        ),
        "phrase": Target(
            lambda data: recovery_phrase.from_recovery_phrase(_text(data)),
            lambda seed: recovery_phrase.to_recovery_phrase(seed).encode(),
            (made["phrase"].data,),
            canonical=False,
        ),
    }


def targets() -> dict[str, Target]:
    """The table, by name."""
    made = examples()
    return {
        **core_targets(made),
        **feed_targets(made),
        **halo_targets(made),
        **model_targets(made),
        **other_targets(made),
        **snapshot_targets(made),
        **channel_targets(made),
        **mesh_targets(made),
    }
