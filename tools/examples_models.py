"""Examples of mutations, snapshots and rows of models, items and the item store.

Each model's mutations are told as a small history, by Alice (from lamport 3 on, for her feed's first block is the
item's genesis) and Bob; the snapshot stands at its end.
"""

from __future__ import annotations

import sqlite3
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import Message
from tools.example import BOB_DATA, CONTROL, DATA, ITEM, NOW_MS, PARTY, Example, holds

from antiphon.core.cid import Cid
from antiphon.core.codec import u32, u64
from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.sightings import Sightings
from antiphon.core.stamp import STAMP_SIZE, Stamp
from antiphon.core.v1 import array_pb2, messenger_pb2, object_pb2, text_pb2, value_pb2
from antiphon.feed.header import Entry, Kind
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.act_columns import ActColumns
from antiphon.halo.acts.barren_acts import BarrenActs, BarrenKind, Row
from antiphon.halo.control.branch_checkpoint import BranchCheckpoint, SettledSpan
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.credentials.claims import Claim, FeedAdmission, FeedKind, Narrowing, Role
from antiphon.model import item_codec
from antiphon.model.access import EVERYONE, Access
from antiphon.model.array.model import ArrayModel
from antiphon.model.array.position import KeyReader
from antiphon.model.epoch_fold import fold_epoch
from antiphon.model.factory import ModelFactory
from antiphon.model.file import FileModel
from antiphon.model.fold import Checkpoint, ItemState, fold
from antiphon.model.heard import FeedTable, read_name
from antiphon.model.message import (
    Change,
    Genesis,
    Inception,
    Note,
    read_change,
    read_genesis,
    wrap,
    write_change,
    write_genesis,
)
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Feeding, InvalidMutation, Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.raw import RAW_MODELS
from antiphon.model.text.model import TextModel
from antiphon.model.value import Reference, Value, read_value, value_bytes
from antiphon.party.engine.ports import ItemRow, LaneState, Posting, Save, Void
from antiphon.party.engine.postings import decode_postings, encode_postings
from antiphon.party.engine.rest import Rest, digest_of
from antiphon.party.store.item_store import ItemStore, decode_lane, encode_lane, row_key
from antiphon.party.store.page_sums import Header, decode_sums, encode_sums

A, B = bytes(DATA.key), bytes(BOB_DATA.key)
VIEW = KeyPair.from_seed(sha256(b"a view").digest())
VALUE: Value = {
    "at": datetime(2023, 11, 14, tzinfo=UTC),
    "done": False,
    "none": None,
    "parts": [1, -2, 0.5, b"\x00\xff"],
    "see": Reference(ITEM),
    "text": "é",
}
LANE = LaneState(
    feed=A,
    number=1,
    position=3,
    lamport=4,
    hash=bytes(range(32)),
    segments=Sightings([(0, {bytes(CONTROL.key): 2}), (2, {bytes(CONTROL.key): 4})]),
    voids=[Void(2, 3, "a reader may not write")],
)
REST = Rest(bytes(range(16)), True, digest_of([(TextModel.name, 1)]), bytes(range(32)) + bytes(CONTROL.key) + A)
POSTINGS = [Posting(1, 0, 2), Posting(2, 0, 300)]
SUMS = [zlib.crc32(bytes(4096))] * 2 + [0x484F4C45]  # two pages of zeros, and one that was never written


class Tally(Model[list[int]]):
    """A model without a snapshot: the list of its messages is kept."""

    name = "example/tally"

    def initial(self) -> list[int]:
        return [0]

    def apply(self, state: list[int], mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if len(mutation) != 1:
            raise InvalidMutation(f"a tally takes one byte, not {len(mutation)}")
        if not void:
            state[0] += mutation[0]

    def value(self, state: list[int]) -> int:
        return state[0]


class Last(Model[bytearray]):
    """A model that takes messages in the total order: its state is the last mutation."""

    name = "example/last"
    feeding = Feeding.ORDERED

    def initial(self) -> bytearray:
        return bytearray()

    def apply(self, state: bytearray, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if not void:
            state[:] = mutation

    def snapshot(self, state: bytearray) -> bytes:
        return bytes(state)

    def restore(self, data: bytes) -> bytearray:
        return bytearray(data)

    def value(self, state: bytearray) -> bytes:
        return bytes(state)


MODELS = ModelFactory(ObjectModel, ArrayModel, TextModel, MessengerModel, FileModel, Tally, Last)


# -- values


def value_examples() -> dict[str, Example]:
    named, at = Stamp(3, B, 1), Stamp(4, A, 2)

    def name_again(data: bytes) -> bytes:
        table = FeedTable(A)
        found = read_name(value_pb2.Name.FromString(data), (A, B), at)
        return table.name(found).SerializeToString(deterministic=True)

    return {
        "value": Example(value_bytes(VALUE), lambda data: value_bytes(read_value(value_pb2.Value.FromString(data)))),
        "name": Example(FeedTable(A).name(named).SerializeToString(deterministic=True), name_again),
    }


# -- the four models


class Story:
    """A history of one item. Each step is an example; decoding and applying it again gives the same state."""

    def __init__(self, kind: str, model: Model[Any], mutation: type[Message], show: Callable[[Any], Any]) -> None:
        self.kind, self.model, self.state = kind, model, model.initial()
        self._mutation, self._show = mutation, show
        self._seqs = {A: 1, B: 0}  # Alice's first block is the genesis
        self._lamport = 2
        self.examples: dict[str, Example] = {}

    def tell(self, name: str, mutation: bytes, feed: bytes) -> Stamp:
        self._lamport += 1
        stamp = Stamp(self._lamport, feed, self._seqs[feed])
        self._seqs[feed] += 1
        before = self.model.snapshot(self.state)
        self.model.apply(self.state, mutation, stamp)
        shown = self._show(self.state)

        def again(data: bytes) -> bytes:
            state = self.model.restore(before)
            self.model.apply(state, data, stamp)
            parsed = self._mutation.FromString(data)
            return holds(self._show(state) == shown, parsed.SerializeToString(deterministic=True))

        self.examples[f"{self.kind}-{name}"] = Example(mutation, again)
        return stamp

    def end(self) -> dict[str, Example]:
        """All examples, with the snapshot."""
        again = Example(self.model.snapshot(self.state), lambda data: self.model.snapshot(self.model.restore(data)))
        return {**self.examples, f"{self.kind}-snapshot": again}


def object_examples() -> dict[str, Example]:
    model = ObjectModel()
    story = Story("object", model, object_pb2.ObjectMutation, model.value)
    story.tell("set", model.set(story.state, "title", "Plan", feed=A), A)
    story.tell("add", model.add(story.state, ("list", "tags"), "new", feed=A), A)
    story.tell("counter", model.counter(story.state, "votes", 1, feed=A), A)
    story.tell("increment", model.increment(story.state, "votes", 2, feed=B), B)
    story.tell("delete", model.delete(story.state, "title", feed=B), B)
    assert model.value(story.state) == {"list": {"tags": ["new"]}, "votes": 3}
    return story.end()


def array_examples() -> dict[str, Example]:
    model = ArrayModel()
    story = Story("array", model, array_pb2.ArrayMutation, model.value)
    story.tell("insert", model.insert(story.state, 0, ["milk", "bread", "tea"], feed=A), A)
    key = model.keys(story.state)[1]
    story.tell("set", model.set(story.state, 1, "rye", feed=A), A)
    story.tell("move", model.move(story.state, 2, 0, feed=B), B)
    story.tell("delete", model.delete(story.state, 1, feed=B), B)
    assert model.value(story.state) == ["tea", "rye"]

    def key_again(data: bytes) -> bytes:
        return KeyReader().read(data[:-STAMP_SIZE], Stamp.decode(data[-STAMP_SIZE:])).key(0)

    return {"position-key": Example(key, key_again), **story.end()}


def text_examples() -> dict[str, Example]:
    model = TextModel()
    story = Story("text", model, text_pb2.TextMutation, model.spans)
    story.tell("insert", model.insert(story.state, 0, "hello", feed=A), A)
    story.tell("delete", model.delete(story.state, 0, 2, feed=B), B)
    story.tell("mark", model.mark(story.state, 0, 2, "bold", feed=A), A)
    story.tell("embed", model.embed(story.state, 3, ITEM, feed=A), A)
    assert model.spans(story.state) == [("ll", {"bold": True}), ("o", {}), (Reference(ITEM), {})]
    state = story.state

    def cursor_again(data: bytes) -> bytes:
        return model.cursor(state, model.index_of(state, data))

    return {**story.end(), "text-cursor": Example(model.cursor(state, 1), cursor_again)}


def messenger_examples() -> dict[str, Example]:
    model = MessengerModel()
    story = Story("messenger", model, messenger_pb2.MessengerMutation, model.value)
    hello = story.tell("post", model.post(story.state, "Hello?", sent_ms=NOW_MS, feed=A), A)
    reply = story.tell("reply", model.post(story.state, "Hree!", reply_to=hello, sent_ms=NOW_MS, feed=B), B)
    story.tell("edit", model.edit(story.state, reply, "Here!", feed=B), B)
    story.tell("redact", model.redact(story.state, hello, feed=A), A)
    assert [post["body"] for post in model.value(story.state)] == [None, "Here!"]
    return story.end()


def file_examples() -> dict[str, Example]:
    model = FileModel()
    story = Story("file", model, object_pb2.ObjectMutation, model.value)
    story.tell("set", model.set(story.state, Cid.of(b"hello"), 5, "text/plain", "hello.txt", feed=A), A)
    story.tell("rename", model.rename(story.state, "greeting.txt", feed=B), B)
    assert model.value(story.state)["name"] == "greeting.txt"
    return story.end()


# -- items


def item_of(
    model: str, mutations: list[bytes], others: list[tuple[Kind, bytes]], *, parent: bytes = bytes(16)
) -> ItemState:
    """An item that Alice created and mutated, and to which Bob sent other messages."""
    genesis = write_genesis(Genesis(bytes(range(16)), model, 1, parent))
    notes = [Note(Kind.GENESIS, 2, A, 0, NOW_MS, genesis)]
    for seq, mutation in enumerate(mutations, start=1):
        notes.append(Note(Kind.MUTATION, 2 + seq, A, seq, NOW_MS, wrap(Kind.MUTATION, mutation)))
    for seq, (kind, message) in enumerate(others):
        notes.append(Note(kind, 9 + seq, B, seq, NOW_MS, message))
    item = ItemId.derive(2, party=PARTY.key, feed=A, genesis=genesis)
    folded = fold(bytes(PARTY.key), item, None, notes, MODELS)
    assert folded.item is not None
    assert not folded.verdicts
    return folded.item


def items() -> dict[str, ItemState]:
    """A text with all parts outside its model, and one item of each kind that keeps its messages."""
    text, metadata = TextModel(), ObjectModel()
    others = [
        (Kind.METADATA, wrap(Kind.METADATA, metadata.set(metadata.initial(), "title", "Plan", feed=B))),
        (Kind.CHANGE, write_change(Change(parent=ITEM[:15] + b"\x00"))),
        (Kind.CHANGE, write_change(Change(deleted=True))),
    ]
    ordered = item_of(Last.name, [b"one", b"two"], [])
    ordered.checkpoints.append(Checkpoint(ordered.tail[0].stamp, b"one"))  # there would be one after 256 messages
    return {
        "text": item_of(text.name, [text.insert(text.initial(), 0, "hello", feed=A)], others),
        "kept": item_of(Tally.name, [b"\x02", b"\x03"], []),
        "ordered": ordered,
    }


def epoch_items() -> tuple[bytes, ItemState]:
    """Snapshots of epochs: a raw item, and one based on an epoch, with a message from before it."""

    def said(lamport: int, feed: bytes, seq: int, mutation: bytes) -> Note:
        return Note(Kind.MUTATION, lamport, feed, seq, NOW_MS, wrap(Kind.MUTATION, mutation))

    last = item_of(Last.name, [b"one", b"two"], [])
    base = item_codec.snapshot(last)
    raw, _ = fold_epoch(bytes(PARTY.key), last.id, base, [said(3, B, 0, b"three")], MODELS, ())
    kept = item_codec.restore(item_codec.snapshot(item_of(Tally.name, [b"\x02"], [])), MODELS)
    fold(bytes(PARTY.key), kept.id, kept, [said(2, B, 0, b"\x03")], MODELS)
    assert raw is not None
    return raw, kept


def guarded_view() -> tuple[bytes, bytes, ItemState]:
    """A view that Alice created and closed to all but Bob: its genesis, the access change, and the state."""
    party, key = bytes(PARTY.key), bytes(VIEW.key)
    inception = Inception(key, VIEW.sign(Inception.statement(party, A)))
    genesis = write_genesis(Genesis(b"", ObjectModel.name, 1, view=inception))
    access = Access((B,), (EVERYONE,), ((A, 1),))
    change = write_change(Change(access=access))
    notes = [Note(Kind.GENESIS, 2, A, 0, NOW_MS, genesis), Note(Kind.CHANGE, 3, A, 1, NOW_MS, change)]
    folded = fold(party, ItemId.of_view(2, party=party, key=key), None, notes, MODELS)
    assert folded.item is not None
    assert not folded.verdicts
    return genesis, change, folded.item


def access_examples() -> dict[str, Example]:
    genesis, change, item = guarded_view()
    return {
        "message-genesis-view": Example(genesis, lambda data: write_genesis(read_genesis(data))),
        "message-change-access": Example(change, lambda data: write_change(read_change(data))),
        "item-snapshot-access": Example(
            item_codec.snapshot(item), lambda data: item_codec.snapshot(item_codec.restore(data, MODELS))
        ),
    }


def item_examples() -> dict[str, Example]:
    made = items()

    def snapshot_again(data: bytes) -> bytes:
        return item_codec.snapshot(item_codec.restore(data, MODELS))

    def record_again(data: bytes) -> bytes:
        return item_codec.encode(item_codec.decode(data, MODELS))

    raw, based = epoch_items()
    return {
        "item-snapshot-raw": Example(raw, lambda data: item_codec.snapshot(item_codec.restore(data, RAW_MODELS))),
        "item-record-based": Example(item_codec.encode(based), record_again),
        "item-snapshot": Example(item_codec.snapshot(made["text"]), snapshot_again),
        "item-snapshot-messages": Example(item_codec.snapshot(made["kept"]), snapshot_again),
        "item-record": Example(item_codec.encode(made["text"]), record_again),
        "item-record-ordered": Example(item_codec.encode(made["ordered"]), record_again),
    }


# -- the item store


def summed(data: bytes, key: bytes) -> bytes:
    """Data as it is in an item store, under a key."""
    return data + u32(zlib.crc32(key + data))


def store_examples() -> dict[str, Example]:
    record = item_codec.encode(items()["text"])
    lane_key = u64(LANE.number) + A
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.db"
        store = ItemStore(path, bytes(PARTY.key))
        with store.saving() as put:
            put(
                Save(
                    rows=[ItemRow(ITEM, record, TextModel.name, 1)],
                    postings=[(ITEM, encode_postings([POSTINGS])[0])],
                    lanes=[LANE],
                    rest=REST.encode(),
                )
            )
        store.close()
        with closing(sqlite3.connect(path)) as db:
            schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")]
            (kept,) = (row for (row,) in db.execute("SELECT record FROM items"))
            (runs,) = (row for (row,) in db.execute("SELECT runs FROM postings"))
            (lane,) = (row for (row,) in db.execute("SELECT state FROM feeds"))
            (rest,) = (row for (row,) in db.execute("SELECT value FROM meta WHERE key = 'rest'"))
    assert kept == summed(record, row_key((ITEM, TextModel.name, 1, b"", False, False, False)))
    return {
        "items-schema": Example("\n".join(f"{sql};" for sql in schema).encode(), lambda data: data, text=True),
        "page-sums": Example(encode_sums(Header(True, 7), SUMS), lambda data: encode_sums(*decode_sums(data))),
        "postings": Example(runs, lambda data: summed(encode_postings([decode_postings(data[:-4])])[0], ITEM)),
        "rest": Example(rest, lambda data: summed(data[:8] + Rest.decode(data[8:-4]).encode(), b"rest")),
        "lane-state": Example(lane, lambda data: summed(encode_lane(decode_lane(LANE.number, A, data[:-4])), lane_key)),
    }


def checkpoint() -> LaneCheckpoint:
    """The columns of Alice's control feed: an unreadable act, admissions to a group and of a data feed, a narrowing."""
    rows = (Row(1, BarrenKind.NOTHING), Row(2, BarrenKind.GROUP, bytes(range(32)), bytes(range(32, 64))))
    feed, device = bytes(CONTROL.key), bytes(range(96, 128))
    admission = FeedAdmission(A, FeedKind.DATA, bytes(range(64, 96)), device, b"word")
    narrowing = Narrowing(bytes(range(128, 160)), frozenset({Role.READER}), {A: 9})
    said: list[tuple[Claim, frozenset[bytes]]] = [(admission, frozenset({device, A})), (narrowing, frozenset({device}))]
    acts = [
        Act(Stamp(seq + 4, feed, seq), Place(feed, seq, {}), NOW_MS, claim, signers, 0, "", sha256(b"a").digest(), 0, B)
        for seq, (claim, signers) in enumerate(said, 3)
    ]
    table, seen = BarrenActs.of(feed, rows), Sightings([(2, {B: 5})])
    waits, one, two = Entry(B, 9, 12, sha256(b"far").digest()), sha256(b"one").digest(), sha256(b"two").digest()
    spans = (SettledSpan(two, 5, 5, (one, two), (7, 8), 1, waits), SettledSpan(sha256(b"vote").digest(), 5, 0))
    votes = BarrenActs.of(feed, (Row(0, BarrenKind.COPIED_VOTE, (u64(1) + b"\x01").ljust(32, b"\0"), A),))
    branches = BranchCheckpoint.of(5, 5, bytes(32), spans, {bytes(range(32))}, {A: one}, votes)
    valid = np.array([2], dtype=np.int64)
    return LaneCheckpoint(feed, 5, bytes(32), table, ActColumns.of(acts), seen, valid, branches)


def model_examples() -> dict[str, Example]:
    """All examples of this module, by their names on the page."""
    lanes = encode_checkpoints(bytes(PARTY.key), [checkpoint()])
    return {
        "control-checkpoints": Example(
            lanes, lambda data: encode_checkpoints(PARTY.key, decode_checkpoints(PARTY.key, data).values())
        ),
        **value_examples(),
        **object_examples(),
        **array_examples(),
        **text_examples(),
        **messenger_examples(),
        **file_examples(),
        **item_examples(),
        **access_examples(),
        **store_examples(),
    }
