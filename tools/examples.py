"""One example of every structure on disk and on the wire, made by the real encoders from fixed inputs.

`formats` shows them in docs/design/formats.md, and the fuzzer begins with them.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.example import (
    ALICE,
    BOB,
    BOB_DATA,
    BOX_KEY,
    CLUB,
    CLUB_CONTROL,
    CONTROL,
    DATA,
    GENESIS,
    ITEM,
    LAPTOP,
    NOW_MS,
    PARTY,
    PASSPHRASE,
    SNAPSHOT,
    TEAM,
    Counting,
    Example,
    holds,
)
from tools.examples_channel import channel_examples
from tools.examples_link import link_examples
from tools.examples_mesh import mesh_examples
from tools.examples_models import model_examples
from tools.examples_queries import other_examples
from tools.examples_snapshot import snapshot_examples

from antiphon.core.cid import Cid, decode_node, encode_node
from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import Equivocation
from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair, PublicKey, verify
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.core.v1 import credential_pb2, message_pb2
from antiphon.feed import span as spans
from antiphon.feed.chain import Head, head_message, link, span_headers, verify_span
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.header import HEADER, NO_HASH, PACK, Kind, decode_entries, encode_entries
from antiphon.feed.span import BLOCK_TAG
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.quarantine import Refusal
from antiphon.feed.store.tables import checked, unchecked
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    Continuation,
    DeviceAdmission,
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    Equivocated,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    ModelKey,
    Narrowing,
    PartyGenesis,
    Policy,
    Position,
    Role,
)
from antiphon.halo.keys import key_file
from antiphon.halo.keys.recovery_phrase import from_recovery_phrase, to_recovery_phrase
from antiphon.party.store.meta_store import MetaStore
from antiphon.testing.parties import Rehearsal
from antiphon.testing.spans import SpanWriter, StillClock


def message(content: message_pb2.Message) -> bytes:
    return content.SerializeToString(deterministic=True)


# -- core


def core_examples() -> dict[str, Example]:
    timeframe = Timeframe({DATA.key: 1, BOB_DATA.key: 0})
    stamp = Stamp(2, bytes(DATA.key), 0)
    node = encode_node({"model": "text", "state": b"\x01\x02", "size": 2})
    return {
        "public-key": Example(bytes(ALICE.key), PublicKey),
        "signature": Example(ALICE.sign(b"hello"), lambda data: holds(verify(ALICE.key, b"hello", data), data)),
        "item-id": Example(
            bytes(ITEM),
            lambda data: ItemId.derive(ItemId(data).lamport, party=PARTY.key, feed=DATA.key, genesis=GENESIS),
        ),
        "stamp": Example(stamp.encode(), lambda data: Stamp.decode(data).encode()),
        "timeframe": Example(timeframe.encode(), lambda data: Timeframe.decode(data).encode()),
        "cid": Example(bytes(Cid.of(b"hello")), lambda data: bytes(Cid.parse(str(Cid(data))))),
        "cid-text": Example(
            str(Cid.of(b"hello")).encode(), lambda data: str(Cid.parse(data.decode())).encode(), text=True
        ),
        "node": Example(node, lambda data: encode_node(decode_node(data))),
        "phrase": Example(
            to_recovery_phrase(ALICE.seed).encode(),
            lambda data: to_recovery_phrase(from_recovery_phrase(data.decode())).encode(),
            text=True,
        ),
    }


# -- feeds


def messages() -> dict[str, bytes]:
    """One message of each kind."""
    signed = credential.sign(PARTY.key, MemberAdmission(bytes(BOB.key), frozenset({Role.EDITOR})), [LAPTOP])
    wrapped = credential_pb2.SignedCredential.FromString(signed)
    return {
        "message-credential": message(message_pb2.Message(credential=wrapped)),
        "message-genesis": GENESIS,
        "message-change": message(message_pb2.Message(change=message_pb2.Change(deleted=True))),
        "message-mutation": message(message_pb2.Message(mutation=b"hello")),
        "message-metadata": message(message_pb2.Message(metadata=b"hello")),
    }


def bob_spans() -> tuple[spans.Span, spans.Span, spans.Span]:
    """Bob's first block, his second, and another second block that he signed, with a third."""
    writer = SpanWriter(BOB_DATA, PARTY.key, seed=1)
    (first,) = writer.extend([Draft(Kind.MUTATION, ITEM, b"bob")], created_ms=NOW_MS)
    other = writer.fork(seed=2)
    (second,) = writer.extend([Draft(Kind.MUTATION, ITEM, b"one")], created_ms=NOW_MS)
    drafts = [Draft(Kind.MUTATION, ITEM, text) for text in (b"two", b"three")]
    (contradiction,) = other.extend(drafts, created_ms=NOW_MS)
    return first, second, contradiction


def evidence() -> bytes:
    return Fork.between(*bob_spans()[1:]).encode()


def make_store(folder: Path) -> tuple[spans.Span, dict[str, dict[bytes, bytes]]]:
    """A real store with every kind of entry: Alice's span as it is sent, and the tables as they are in the file."""
    first, second, contradiction = bob_spans()
    texts = messages()
    drafts = [
        Draft(Kind.GENESIS, ITEM, texts["message-genesis"]),
        Draft(Kind.MUTATION, ITEM, texts["message-mutation"]),
    ]
    with FeedStore.open(folder, clock=StillClock(NOW_MS), randomness=Counting()) as store:
        store.ingest_all([first, second])
        store.create(DATA.key, PARTY.key)
        store.append(DATA, PARTY.key, drafts, seen=[verify_span(first).block(0).entry])
        with suppress(Equivocation):
            store.ingest(contradiction)
        (written,) = store.spans(DATA.key)
        with store._env.read() as tables:
            return written, {name: _dump(*tables.raw(name)) for name in TABLES}


TABLES = ("records", "spans", "frontiers", "forks", "branches", "branch_blocks", "quarantine", "meta")


def _dump(txn: object, db: object) -> dict[bytes, bytes]:
    with txn.cursor(db) as cursor:  # type: ignore[attr-defined]
        return {bytes(key): bytes(value) for key, value in cursor}


def feed_examples() -> dict[str, Example]:
    with tempfile.TemporaryDirectory() as folder:
        span, tables = make_store(Path(folder))
    texts = messages()
    block = span.block(0)
    header = span_headers(span)[0]
    head = Head(span.end, span.hash_at(span.end - 1), span.signature)
    preimage = BLOCK_TAG + PARTY.key + DATA.key + NO_HASH + header
    return {
        "header": Example(header[: HEADER.itemsize], lambda data: PACK(*np.frombuffer(data, HEADER)[0].item())),
        "entry": Example(header[HEADER.itemsize :], lambda data: encode_entries(decode_entries(data))),
        "block-hash-preimage": Example(preimage, lambda data: holds(sha256(data).digest() == block.hash, data)),
        "block-hash": Example(block.hash, lambda data: link(PARTY.key, DATA.key, NO_HASH, [header])[0]),
        "head-message": Example(
            head_message(PARTY.key, DATA.key, head.length, head.hash),
            lambda data: holds(verify(DATA.key, data, head.signature), data),
        ),
        "head": Example(head.encode(), lambda data: Head.read(Reader(data, "head")).encode()),
        "span": Example(span.encode(), lambda data: verify_span(spans.decode(data)).encode()),
        "span-without-bodies": Example(
            span.without_bodies().encode(), lambda data: verify_span(spans.decode(data)).encode()
        ),
        "fork": Example(evidence(), lambda data: Fork.decode(data).encode()),
        "body": Example(block.body or b"", _body_again),
        **{name: Example(data, _message_again) for name, data in texts.items()},
        **_table_examples(tables),
    }


def _table_examples(tables: dict[str, dict[bytes, bytes]]) -> dict[str, Example]:
    """Keys and values as they are in the file; a test reads a store made of them."""
    span_key = DATA.key + bytes(8)
    (branch_key,) = tables["branches"]
    block_key = branch_key[:32] + spans.decode(tables["branches"][branch_key][:-4]).hashes[:32]
    (refused,) = (key for key in tables["quarantine"] if key[:1] == b"n")
    (digest,) = (key for key in tables["quarantine"] if key[:1] == b"d")
    (source,) = (key for key in tables["quarantine"] if key[:1] == b"s")

    def stored(table: str, key: bytes, again: Callable[[bytes], bytes]) -> Example:
        return Example(tables[table][key], again)

    return {
        "record": stored("records", DATA.key, lambda data: FeedRecord.decode(DATA.key, data).encode()),
        "record-ended": stored("records", BOB_DATA.key, lambda data: FeedRecord.decode(BOB_DATA.key, data).encode()),
        "spans-key": Example(span_key, lambda data: holds(data in tables["spans"], data)),
        "span-stored": stored("spans", span_key, lambda data: spans.decode(data[:-4]).encode_stored(span_key)),
        "frontiers-key": Example(bytes(DATA.key + BOB_DATA.key), lambda data: holds(data in tables["frontiers"], data)),
        "frontier": stored(
            "frontiers",
            DATA.key + BOB_DATA.key,
            lambda data: decode_entries(data[:80])[0].encode() + data[80:],
        ),
        "branches-key": Example(branch_key, lambda data: holds(data in tables["branches"], data)),
        "branch-stored": stored("branches", branch_key, lambda data: spans.decode(data[:-4]).encode_stored(branch_key)),
        "branch-blocks-key": Example(block_key, lambda data: holds(data in tables["branch_blocks"], data)),
        "branch-block": stored("branch_blocks", block_key, lambda data: checked(branch_key[32:])),
        "quarantine-key": Example(refused, lambda data: holds(data in tables["quarantine"], data)),
        "refusal": stored("quarantine", refused, lambda data: Refusal.decode(data[:-4]).encode() + data[-4:]),
        "quarantine-digest-key": Example(
            digest, lambda data: Refusal.decode(tables["quarantine"][refused][:-4]).digest()
        ),
        "quarantine-digest": stored("quarantine", digest, lambda data: u64(Reader(data, "number").u64())),
        "quarantine-source-key": Example(source, lambda data: holds(data in tables["quarantine"], data)),
        "quarantine-source": stored("quarantine", source, lambda data: holds(data == digest, data)),
        "meta-format": stored("meta", b"format", lambda data: data),
        "meta-next": stored(
            "meta", b"quarantine.next", lambda data: checked(u64(Reader(unchecked(data) or b"", "number").u64()))
        ),
    }


def _message_again(data: bytes) -> bytes:
    return message(message_pb2.Message.FromString(data))


def _body_again(data: bytes) -> bytes:
    return data[:16] + _message_again(data[16:])


# -- credentials and the party


def claims() -> dict[str, tuple[Claim, list[KeyPair], int]]:
    """One claim of each kind, who signs it, and when it expires."""
    word = credential.sign(PARTY.key, DeviceAdmission(ALICE.key, LAPTOP.key), [ALICE, LAPTOP])
    control = FeedAdmission(CONTROL.key, FeedKind.CONTROL, ALICE.key, LAPTOP.key, word)
    data = FeedAdmission(DATA.key, FeedKind.DATA, ALICE.key, LAPTOP.key, word)
    opened = credential.sign(PARTY.key, control, [LAPTOP, CONTROL])
    cut, frame = {bytes(DATA.key): 2}, Timeframe({CONTROL.key: 3})
    models = (ModelKey("antiphon/object", 1, 1), ModelKey("antiphon/text", 1, 1))
    heads = sha256(b"control").digest()
    return {
        "party-genesis": (PartyGenesis(ALICE.key, control, opened), [PARTY], 0),
        "child-genesis": (PartyGenesis(ALICE.key, control, opened, CLUB.key, CLUB_CONTROL.key), [PARTY], 0),
        "device-admission": (DeviceAdmission(ALICE.key, LAPTOP.key), [ALICE, LAPTOP], 0),
        "feed-admission": (data, [LAPTOP, DATA], 0),
        "member-admission": (MemberAdmission(BOB.key, frozenset({Role.EDITOR})), [LAPTOP], NOW_MS + 86_400_000),
        "group-admission": (GroupAdmission(TEAM.key, BOB.key), [TEAM, LAPTOP], 0),
        "narrowing": (Narrowing(bytes(BOB.key), frozenset({Role.READER}), {bytes(BOB_DATA.key): 1}), [LAPTOP], 0),
        "feed-end": (FeedEnd(ALICE.key, LAPTOP.key, {bytes(CONTROL.key): 4, bytes(DATA.key): 2}), [ALICE], 0),
        "policy": (Policy(True, bytes(LAPTOP.key), (bytes(LAPTOP.key),), 1, epoch_messages=1000), [LAPTOP], 0),
        "epoch-genesis": (EpochGenesis(0, 1, b"", cut, frame, bytes(SNAPSHOT), NOW_MS, models, heads), [LAPTOP], 0),
        "epoch-attestation": (EpochAttestation(0, 1, bytes(SNAPSHOT), sha256(b"genesis").digest()), [LAPTOP], 0),
        "epoch-refusal": (EpochRefusal(0, 1, bytes(SNAPSHOT), bytes(SNAPSHOT), "another CID"), [LAPTOP], 0),
        "epoch-endorsement": (EpochEndorsement(1, 1, bytes(LAPTOP.key), 0, bytes(SNAPSHOT)), [LAPTOP], 0),
        "erasure": (Erasure((Position(bytes(DATA.key), 1),)), [LAPTOP], 0),
        "continuation": (Continuation({bytes(BOB_DATA.key): 1}, {bytes(CONTROL.key): 4}), [LAPTOP], 0),
        "equivocation": (Equivocated(BOB_DATA.key, 1, evidence()), [LAPTOP], 0),
    }


def credential_examples() -> dict[str, Example]:
    pairs = {bytes(pair.key): pair for pair in (PARTY, ALICE, LAPTOP, CONTROL, DATA, BOB, TEAM)}

    def again(data: bytes) -> bytes:
        read = credential.read(PARTY.key, data)
        return credential.sign(PARTY.key, read.claim, map(pairs.__getitem__, read.signers), expires_ms=read.expires_ms)

    return {
        name: Example(credential.sign(PARTY.key, claim, signers, expires_ms=expires_ms), again)
        for name, (claim, signers, expires_ms) in claims().items()
    }


def rehearsed() -> Rehearsal:
    """A party whose state has every kind of part."""
    rehearsal = Rehearsal("party")
    alice = rehearsal.founder("alice")
    bob = rehearsal.actor("bob")
    alice.admit(bob, Role.EDITOR)
    alice.open_data(DATA)
    alice.group(TEAM.key, BOB.key)
    alice.write(Policy(True, bytes(LAPTOP.key), (bytes(LAPTOP.key),), 1))
    bob.hear(alice)
    bob.join()
    alice.hear(bob)
    genesis = claims()["epoch-genesis"][0]
    assert isinstance(genesis, EpochGenesis)
    alice.write(replace(genesis, control_hash=alice.machine.control_hash(genesis.control)))
    bob.hear(alice)
    return rehearsal


def state_examples() -> dict[str, Example]:
    rehearsal = rehearsed()
    state = rehearsal.actors[0].state
    order = [feed for feed, blocks in rehearsal.blocks().items() for _ in blocks]
    return {
        "party-state": Example(state.encode(), lambda data: rehearsal.machine(order).state().encode()),
        "party-digest": Example(state.digest, lambda data: sha256(state.encode()).digest()),
    }


# -- the key store and the metadata store


def contents() -> key_file.Contents:
    held = (
        key_file.HeldKey(key_file.KeyRecord(ALICE.key, key_file.KeyKind.IDENTITY, "Alice"), ALICE.seed),
        key_file.HeldKey(key_file.KeyRecord(LAPTOP.key, key_file.KeyKind.DEVICE, "laptop", ALICE.key), LAPTOP.seed),
    )
    return key_file.Contents(tuple(sorted(held, key=lambda entry: entry.key)), (key_file.Contact(BOB.key, "Bob"),))


def key_examples() -> dict[str, Example]:
    salt, nonce = bytes(range(16)), bytes(range(24))
    headers = {
        "unprotected": key_file.Header(key_file.Protection.UNPROTECTED),
        "passphrase": key_file.Header(key_file.Protection.PASSPHRASE, salt, key_file.MINIMUM),
        "keyring": key_file.Header(key_file.Protection.KEYRING, salt),
    }

    def key_of(header: key_file.Header) -> bytes:
        return key_file.derive_key(PASSPHRASE, header) if header.cost else BOX_KEY

    def again(data: bytes) -> bytes:
        file = key_file.decode_file(data)
        return key_file.seal(key_file.unseal(file, key_of(file.header)), file.header, key_of(file.header), nonce)

    return {
        f"keys-{name}": Example(key_file.seal(contents(), header, key_of(header), nonce), again)
        for name, header in headers.items()
    }


def meta_examples() -> dict[str, Example]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "meta.db"
        with MetaStore.open(path, clock=StillClock(NOW_MS)) as store:
            store.subscribe(PARTY.key, label="Book club", genesis_feed=CONTROL.key)
        with closing(sqlite3.connect(path)) as db:
            marks = [(name, db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")]
            schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
            row = db.execute("SELECT * FROM parties").fetchone()
    lines = [*(f"PRAGMA {name} = {value};" for name, value in marks), *(f"{sql};" for sql in schema)]
    cells = [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row[:-1]]
    preimage = b"parties" + b"".join(u32(len(cell)) + cell for cell in cells)
    return {
        "meta-schema": Example("\n".join(lines).encode(), lambda data: data, text=True),
        "meta-row": Example(preimage, lambda data: holds(zlib.crc32(data) == row[-1], data)),
    }


def examples() -> dict[str, Example]:
    """All examples of this module, by their names on the page."""
    feeds = feed_examples()
    return {
        **core_examples(),
        **feeds,
        **credential_examples(),
        **state_examples(),
        **key_examples(),
        **meta_examples(),
        **model_examples(),
        **other_examples(),
        **snapshot_examples(),
        **channel_examples(),
        **link_examples(),
        **mesh_examples(feeds["span"].data, Head.read(Reader(feeds["head"].data, "head"))),
    }
