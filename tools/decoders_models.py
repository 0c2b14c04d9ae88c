"""Fuzz targets: models, items and the item store.

A mutation is played as a hostile writer would send it: it may name messages that its sender cannot have seen, which
some peers have and others do not. A model that accepts it must reach the same state in both orders, also through a
snapshot; one that refuses it must be unchanged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message
from tools.example import PARTY, Example
from tools.examples_models import LANE, MODELS, REST, A, B, guarded_view, item_of
from tools.target import Target

from antiphon.core.codec import Reader
from antiphon.core.errors import AntiphonError, InvalidInput
from antiphon.core.stamp import STAMP_SIZE, Stamp
from antiphon.core.v1 import array_pb2, item_pb2, message_pb2, messenger_pb2, object_pb2, text_pb2, value_pb2
from antiphon.feed.header import Kind
from antiphon.halo.control.checkpoint_codec import decode_body, encode_body
from antiphon.model import item_codec
from antiphon.model.array.model import ArrayModel
from antiphon.model.array.position import KeyReader, between, span_of
from antiphon.model.file import FileModel
from antiphon.model.fold import ItemState, keeps_tail
from antiphon.model.message import content, read_change, read_genesis, wrap, write_change, write_genesis
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import InvalidMutation, Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.mutation_codec import read_mutation
from antiphon.model.object.state import ObjectState
from antiphon.model.raw import RAW_MODELS
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.value import read_value, value_bytes
from antiphon.party.engine.postings import decode_postings, encode_postings
from antiphon.party.engine.rest import Rest
from antiphon.party.store.item_store import decode_lane, encode_lane

SHARED, LATE, SEEDS = 8, 3, 24  # messages that all have, that some have, and mutations to begin with
_LAST = (1 << 63) - 1
MESSAGES: dict[str, tuple[type[Message], type[Message]]] = {
    "object": (object_pb2.ObjectMutation, object_pb2.ObjectSnapshot),
    "array": (array_pb2.ArrayMutation, array_pb2.ArrayState),
    "text": (text_pb2.TextMutation, text_pb2.TextSnapshot),
    "messenger": (messenger_pb2.MessengerMutation, messenger_pb2.MessengerState),
    "file": (object_pb2.ObjectMutation, object_pb2.ObjectSnapshot),
}

# -- mutations


class Sent(NamedTuple):
    mutation: bytes
    stamp: Stamp


class Stage:
    """A small item, Alice's concurrent messages to it, and the stamp of the fuzzed mutation, which is Bob's."""

    def __init__(self, model: Model[Any]) -> None:
        self.model = model
        self._chance = random.Random(1)
        state = model.initial()
        for number in range(SHARED):
            self._play(state, Stamp(number + 3, (A, B)[number % 2], number // 2 + 1))
        self.shared = model.snapshot(state)
        self.late = [self._play(state, Stamp(SHARED + 3 + number, A, SHARED + number)) for number in range(LATE)]
        self.all = model.snapshot(state)
        self.stamp = Stamp(SHARED + LATE + 9, B, SHARED)

    def _play(self, state: Any, stamp: Stamp) -> Sent:
        sent = Sent(self.model.rehearse(state, self._chance, stamp.feed), stamp)
        self.model.apply(state, sent.mutation, stamp)
        return sent

    def seeds(self) -> Iterator[bytes]:
        """Mutations that Bob might send, having seen Alice's late ones or not, and undos."""
        for snapshot in (self.shared, self.all):
            for _ in range(SEEDS):
                state = self.model.restore(snapshot)
                mutation = self.model.rehearse(state, self._chance, B)
                yield mutation
                before = Stamp(self.stamp.lamport - 1, B, self.stamp.seq - 1)
                captured = self.model.capture(state, mutation, before)
                self.model.apply(state, mutation, before)
                try:
                    yield from self.model.revert(state, captured, mutation, before, B)
                except InvalidInput:
                    continue  # there is no undo of a redaction

    def run(self, mutation: bytes) -> bytes:
        """Apply a mutation before and after the late messages; return the state's bytes."""
        model = self.model
        first, second = self.applied(self.all, mutation), self.applied(self.shared, mutation)
        end = model.snapshot(first)
        second = self._restored(model.snapshot(second))
        assert self._with_late(second) == end, "the state depends on the order of arrival"
        shown = value_key(model.value(first))
        assert shown == value_key(model.value(second)) == value_key(model.value(self._restored(end)))
        void = model.snapshot(self.applied(self.all, mutation, void=True))
        assert self._with_late(self.applied(self.shared, mutation, void=True)) == void, "and so if it is void"
        return end

    def applied(self, snapshot: bytes, mutation: bytes, *, void: bool = False) -> Any:
        state = self.model.restore(snapshot)
        try:
            self.model.apply(state, mutation, self.stamp, void=void)
        except InvalidMutation:
            assert self.model.snapshot(state) == snapshot, "it was refused, and has changed the state"
            raise
        except AntiphonError as error:
            raise AssertionError(f"a refusal that is no InvalidMutation: {error!r}") from error
        return state

    def _with_late(self, state: Any) -> bytes:
        for sent in self.late:
            self.model.apply(state, sent.mutation, sent.stamp)
        return self.model.snapshot(state)

    def _restored(self, snapshot: bytes) -> Any:
        try:
            return self.model.restore(snapshot)
        except AntiphonError as error:
            raise AssertionError(f"it refuses its own snapshot: {error!r}") from error


def value_key(value: Any) -> str:
    """A value as text: NaN is like NaN, 1 is not like 1.0, and the order of a map's keys does not matter."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {value_key(value[key])}' for key in sorted(value))}}}"
    return f"[{', '.join(map(value_key, value))}]" if isinstance(value, list) else repr(value)


class SlowObject(ObjectModel):
    """An object that reads every mutation with the general decoder."""

    def apply(self, state: ObjectState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        ops = read_mutation(mutation, stamp)
        if not void:
            state.take(ops, stamp)
        state.hear(stamp)


class SlowText(TextModel):
    """A text that reads every mutation with the general decoder."""

    def _apply_quickly(self, state: TextState, mutation: bytes, stamp: Stamp) -> bool:
        return False


def run_both(stage: Stage, slow: Model[Any], mutation: bytes) -> bytes:
    """Check that the fast decoder of common mutations agrees with the general one."""
    end: bytes | None = None
    with suppress(InvalidMutation):
        end = stage.run(mutation)
    state = slow.restore(stage.all)
    try:
        slow.apply(state, mutation, stage.stamp)
    except InvalidMutation:
        assert end is None, "the quick decoder takes what the general one refuses"
        raise
    assert slow.snapshot(state) == end, "the quick decoder and the general one differ"
    return end


# -- snapshots


def restored(model: Model[Any], data: bytes) -> bytes:
    """Check that a state from hostile bytes can be shown, changed and saved; return its bytes before the change."""
    state = model.restore(data)
    before = model.snapshot(state)
    model.value(state)
    try:
        mutation = model.rehearse(state, random.Random(1), A)
        model.apply(state, mutation, Stamp(_LAST, A, _LAST))
    except InvalidInput:
        return before  # too long keys, say, or ids that are used up
    after = model.snapshot(state)
    assert model.snapshot(model.restore(after)) == after
    model.value(state)
    return before


# -- values and messages


def value_again(data: bytes) -> bytes:
    try:
        proto = value_pb2.Value.FromString(data)
    except DecodeError as error:
        raise InvalidMutation(str(error)) from None
    return value_bytes(read_value(proto))


def contents(message: bytes) -> tuple[Kind, bytes]:
    """The fields of a message by the fast decoder and by the library."""
    for kind, name in ((Kind.MUTATION, "mutation"), (Kind.METADATA, "metadata")):
        try:
            found = content(kind, message)
        except InvalidMutation:
            continue
        parsed = message_pb2.Message.FromString(message)
        assert (parsed.WhichOneof("content"), getattr(parsed, name)) == (name, found)
        return kind, found
    raise InvalidMutation("it is neither")


# -- position keys


def placed(data: bytes) -> list[bytes]:
    """Check that positions can be made around and between the keys of a hostile position."""
    reader = Reader(data, "place")
    how = reader.u8()
    offset = int.from_bytes(reader.take(7), "little", signed=True)
    stamp = Stamp(9, A, 5)
    keys = list(span_of(reader.rest(), bool(how & 1), offset, 1 + (how >> 1) % 4, stamp).all_keys())
    assert keys == sorted(set(keys))
    for key in keys:
        assert KeyReader().read(key[:-STAMP_SIZE], stamp).key(0) == key
    later = Stamp(10, B, 7)
    for left, right in zip([None, *keys], [*keys, None], strict=True):
        place = between(left, right, 2, B)
        try:
            made = list(span_of(place.path, place.extends, place.offset, 2, later).all_keys())
        except InvalidMutation:
            continue  # too long, or out of offsets
        assert all(left is None or left < key for key in made)
        assert all(right is None or key < right for key in made)
    return keys


def place_seeds(model: ArrayModel) -> tuple[bytes, ...]:
    """Places in a small array, and one in front of a run, with the stamp's own run and a new one."""
    state = model.initial()
    for number, feed in enumerate((A, B, A, B), start=1):
        model.apply(state, model.insert(state, number // 2, [1, 2], feed=feed), Stamp(number, feed, number))
    keys = model.keys(state)
    places = [between(*pair, 1, A) for pair in zip([None, *keys], [*keys, None], strict=True)]
    return tuple(
        bytes([place.extends]) + place.offset.to_bytes(7, "little", signed=True) + place.path for place in places
    )


# -- items


def item_snapshot(data: bytes) -> tuple[ItemState, bytes]:
    item = item_codec.restore(data, MODELS)
    value_key((item.value, item.metadata, item.parent, item.forked_to))
    return item, data


def item_snapshot_again(found: tuple[ItemState, bytes]) -> bytes:
    """Check that an item that is raw, or whose model has no code here, is kept as it came and can be reified."""
    item, data = found
    if item.model is not None and not item_codec.summary(data).raw:
        return item_codec.snapshot(item)
    if item.model is not None:
        reified = item_codec.snapshot(item)
        assert item_codec.snapshot(item_codec.restore(reified, MODELS)) == reified, (
            "it is reified to what is no snapshot"
        )
    return item_codec.snapshot(item_codec.restore(data, RAW_MODELS))


def item_record(data: bytes) -> bytes:
    item = item_codec.decode(data, MODELS)
    value_key((item.value, item.metadata, item.parent, item.forked_to))
    if item.model is not None:
        item_codec.snapshot(item)
    record = item_codec.encode(item)
    assert kept(item_codec.decode(record, MODELS)) == kept(item), "its record does not keep all of it"
    return record


def kept(item: ItemState) -> list[Any]:
    """The fields of an item's record, without the states."""
    told = [item.id, item.name, item.version, item.genesis, item.created_ms, item.link, item.parents, item.forks]
    told += [item.deleted, item.is_deleted, item.frame, item.trimmed, item.view, item.based, item.raw]
    told += [None] if item.access is None else [item.access.creator, item.access.acts, item.access.names()]
    return (
        [*told, item.tail, item.base_count, item.checkpoints]
        if item.model is not None and keeps_tail(item.model)
        else told
    )


def plain_record() -> bytes:
    """The record of an item that received only mutations."""
    model = ObjectModel()
    return item_codec.encode(item_of(model.name, [model.set(model.initial(), "a", "b", feed=A)], [], parent=b""))


def cursor_target() -> Target:
    model = TextModel()
    stage = Stage(model)
    state = model.restore(stage.all)
    seeds = [
        model.cursor(state, at, after=after) for at in (0, state.length // 2, state.length) for after in (False, True)
    ]

    def index_of(data: bytes) -> int:
        index = model.index_of(state, data)
        assert 0 <= index <= state.length
        return index

    return Target(
        index_of,
        lambda index: model.cursor(state, index),
        tuple(seeds),
        canonical=False,
        message=text_pb2.TextCursor,
    )


def same(data: bytes) -> bytes:
    return data


def model_targets(made: dict[str, Example]) -> dict[str, Target]:
    models: dict[str, Model[Any]] = {
        "object": ObjectModel(),
        "array": ArrayModel(),
        "text": TextModel(),
        "messenger": MessengerModel(),
        "file": FileModel(),
    }
    stages = {name: Stage(model) for name, model in models.items()}
    runs: dict[str, Callable[[bytes], bytes]] = {
        "object": partial(run_both, stages["object"], SlowObject()),
        "array": stages["array"].run,
        "text": partial(run_both, stages["text"], SlowText()),
        "messenger": stages["messenger"].run,
        "file": stages["file"].run,
    }
    found: dict[str, Target] = {}
    for name, model in models.items():
        stage = stages[name]
        mutation, snapshot = MESSAGES[name]
        seeds = tuple(dict.fromkeys(stage.seeds()))
        found[f"{name}-mutation"] = Target(runs[name], None, seeds, message=mutation)
        snapshots = (made[f"{name}-snapshot"].data, stage.shared, stage.all, *waiting(stage))
        found[f"{name}-snapshot"] = Target(partial(restored, model), same, snapshots, message=snapshot)
    return {**found, **other_targets(made)}


def waiting(stage: Stage) -> Iterator[bytes]:
    """Snapshots of states that wait for messages: Bob's mutation names messages that have not come."""
    for mutation in [*stage.seeds()][-SEEDS // 2 :]:
        state = stage.model.restore(stage.shared)
        stage.model.apply(state, mutation, stage.stamp)
        yield stage.model.snapshot(state)


def other_targets(made: dict[str, Example]) -> dict[str, Target]:
    def data(*names: str) -> tuple[bytes, ...]:
        return tuple(made[name].data for name in names)

    message = message_pb2.Message
    records = (
        *data("item-record", "item-record-ordered", "item-record-based"),
        plain_record(),
        item_codec.encode(guarded_view()[2]),
    )
    snapshots = data("item-snapshot", "item-snapshot-messages", "item-snapshot-access", "item-snapshot-raw")
    geneses, changes = data("message-genesis", "message-genesis-view"), data("message-change", "message-change-access")
    return {
        "value": Target(value_again, same, data("value"), canonical=False, message=value_pb2.Value),
        "message-content": Target(
            contents, lambda found: wrap(*found), data("message-mutation", "message-metadata"), canonical=False
        ),
        "genesis": Target(read_genesis, write_genesis, geneses, canonical=False, message=message),
        "change": Target(read_change, write_change, changes, canonical=False, message=message),
        "item-snapshot": Target(item_snapshot, item_snapshot_again, snapshots, message=item_pb2.ItemSnapshot),
        "item-record": Target(item_record, same, records, canonical=False, message=item_pb2.ItemRecord),
        "text-cursor": cursor_target(),
        "position-key": Target(placed, None, place_seeds(ArrayModel())),
        "postings": Target(
            decode_postings, lambda found: encode_postings([found])[0], (made["postings"].data[:-4], b"")
        ),
        "lane-state": Target(
            lambda raw: decode_lane(LANE.number, A, raw), encode_lane, (made["lane-state"].data[:-4],)
        ),
        "rest": Target(Rest.decode, Rest.encode, (made["rest"].data[8:-4], REST.encode())),
        "control-checkpoints": Target(
            lambda raw: decode_body(PARTY.key, raw),
            lambda found: encode_body(PARTY.key, found.values()),
            (made["control-checkpoints"].data[:-32],),
        ),
    }
