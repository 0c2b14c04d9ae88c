"""Items as bytes: the canonical snapshot, and the record that the local item store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, UnknownModel
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import item_pb2
from antiphon.model.access_codec import read_log, write_author, write_log
from antiphon.model.factory import ModelFactory
from antiphon.model.heard import FeedTable, kept_stamp, read_feeds
from antiphon.model.item_state import META, Checkpoint, ItemState, KeptMessage, Raw
from antiphon.model.late_messages import BASE, keeps_tail, replay, start_from_base
from antiphon.model.message import Inception
from antiphon.model.raw import RAW, RAW_MODELS
from antiphon.model.wire import NAME, OWN_NAME_FORM, field, name_field, number_at, tags, varint

_REIFIED, _SINCE, _ALL = item_pb2.ITEM_RAW_UNSPECIFIED, item_pb2.ITEM_RAW_SINCE, item_pb2.ITEM_RAW_ALL
_ITEM, _CLAIM, _RECORD = tags("ItemSnapshot", "Claim", "ItemRecord")
_ID_HEAD, _CLAIM_HEAD = (tag + bytes([ITEM_ID_SIZE]) for tag in (_ITEM.id, _CLAIM.item))
_FEED_HEAD, _FRAME_HEAD = (tag + bytes([KEY_SIZE]) for tag in (_ITEM.feeds, _RECORD.feeds))
_GENESIS_FORM = _ITEM.genesis + b"%c" + NAME.feed + b"\x01" + OWN_NAME_FORM
IN_BASE = "its genesis is void in the epoch"  # why an item that was restored from a snapshot is hidden
_DELETED, _BASED = _ITEM.is_deleted + b"\x01", _RECORD.based + b"\x01"


class Summary(NamedTuple):
    """The facts of a snapshot that need no code of a model."""

    name: str
    version: int
    codec: int
    raw: bool  # it holds mutations until an epoch lists the model
    is_deleted: bool
    parent: bytes = b""
    guarded: bool = False  # the item has an access list
    hidden: bool = False

    @property
    def is_dying(self) -> bool:
        """True if epochs drop the item after some time: it is deleted or hidden."""
        return self.is_deleted or self.hidden


def summary(data: bytes) -> Summary:
    """Return the facts of a snapshot. It checks nothing, because the bytes belong to an epoch."""
    proto = _parse(data)
    raw, parent = proto.raw != _REIFIED, proto.parents[-1].item if proto.parents else b""
    about = proto.model, proto.version, proto.codec or 1
    return Summary(*about, raw, proto.is_deleted, parent, bool(proto.access), proto.hidden)


def snapshot(item: ItemState, state: bytes | None = None) -> bytes:
    """Return the canonical bytes of an item, which are equal on all engines that folded the same messages.

    An item that was restored or folded with `RAW_MODELS` has a raw snapshot: the state of its base, and the mutations
    since. `state` is the snapshot of the model if the caller knows it already.
    """
    model = item.model
    if model is None:
        raise UnknownModel(
            f"item {item.id.hex()}: no code for its model {item.name} {item.version} is here; its messages are safe"
        )
    plain = _plain(item, state)
    if plain:
        return b"".join(plain)
    proto = _snapshot(item, () if model.has_snapshot else item.tail)
    if model is RAW:
        _write_raw(proto, _raw_of(item))
    else:
        proto.codec = model.codec if model.codec > 1 else 0
        if model.has_snapshot:
            proto.state = model.snapshot(item.state) if state is None else state
    return proto.SerializeToString(deterministic=True)


def _raw_of(item: ItemState) -> Raw:
    """Return the raw part of a raw item's snapshot. While no mutation follows the base, that is the base itself."""
    if item.raw is None:
        return Raw(b"", 0, _ALL)
    if item.raw.kind != _REIFIED or len(item.tail) == item.base_count:
        return item.raw
    # A base with messages belongs to a model without a snapshot. It consists of messages, and stays so.
    return Raw(b"", 0, _ALL) if item.base_count else item.raw._replace(kind=_SINCE)


def _write_raw(proto: item_pb2.ItemSnapshot, raw: Raw) -> None:
    proto.state, proto.codec = raw.state, raw.codec
    proto.raw = raw.kind  # type: ignore[assignment]


def _snapshot(item: ItemState, log: Sequence[KeptMessage]) -> item_pb2.ItemSnapshot:
    stamps = [item.genesis, *(at for at, _ in item.parents), *(at for at, _ in item.forks)]
    if item.deleted is not None:
        stamps.append(item.deleted)
    stamps += [kept.stamp for kept in log]
    stamps += [act.stamp for act in item.access or ()]
    table = FeedTable.of({stamp.feed for stamp in stamps})
    proto = item_pb2.ItemSnapshot(
        id=item.id,
        model=item.name,
        version=item.version,
        feeds=table.feeds,
        genesis=table.name(item.genesis),
        created_ms=item.created_ms,
        is_deleted=item.is_deleted,
        hidden=bool(item.hidden),
    )
    if item.link is not None:
        proto.link.source, proto.link.target = item.link
    if item.parents:
        proto.parents.extend(_claims(item.parents, table))
    if item.forks:
        proto.forks.extend(_claims(item.forks, table))
    if item.deleted is not None:
        proto.deleted.at.CopyFrom(table.name(item.deleted))
    if item.meta is not None:
        proto.metadata = META.snapshot(item.meta)
    if item.view is not None:
        proto.view.key, proto.view.proof = item.view
    if item.access is not None:
        proto.creator.CopyFrom(write_author(item.access.creator))
        proto.access.extend(write_log(item.access, table))
    if log:  # without the reasons: the text of a refusal is no part of the state
        proto.messages.extend(_kept([kept._replace(void="void" if kept.void else "") for kept in log], table))
    return proto


def _claims(claims: Iterable[tuple[Stamp, bytes]], table: FeedTable) -> list[item_pb2.Claim]:
    return [item_pb2.Claim(at=table.name(at), item=item) for at, item in claims]


def _kept(tail: Iterable[KeptMessage], table: FeedTable) -> list[item_pb2.KeptMessage]:
    return [item_pb2.KeptMessage(at=table.name(kept.stamp), mutation=kept.mutation, void=kept.void) for kept in tail]


def record_of(data: bytes) -> bytes:
    """Return the row of an item that equals its snapshot in an epoch, without decoding it."""
    return field(_RECORD.item, data) + _BASED


def snapshot_of_record(record: bytes) -> bytes:
    """Return the snapshot that a row begins with. For a model with a snapshot, it is the snapshot of the item."""
    size, at = number_at(record, 1, len(record))
    return record[at : at + size]


def encode(item: ItemState) -> bytes:
    """Return the row of an item for the item store: everything that the fold needs to continue."""
    return _encode_plain(item) or _encode(item)


def _encode_plain(item: ItemState) -> bytes:
    """Encode the row of a simple item by hand; empty for any other item."""
    inside = [] if item.trimmed else _plain(item)
    if not inside:
        return b""
    size = varint(sum(map(len, inside)))
    return b"".join([_RECORD.item, size, *inside, _frame_of(item), _BASED if item.based else b""])


def _plain(item: ItemState, state: bytes | None = None) -> list[bytes]:
    """Encode by hand the snapshot of an item without link, view and access list, as most are; empty for any other.

    In parts, as the state may be long. Measured, the library takes as long for one as the fold of ten mutations.
    """
    model = item.model
    if model is None or model is RAW or not model.has_snapshot or keeps_tail(model):
        return []
    if item.link or item.view is not None or item.access is not None or model.codec != 1 or item.hidden:
        return []
    if not item.genesis.lamport:  # the system item has no genesis
        return []
    if state is None:
        state = model.snapshot(item.state)
    claims = b""
    if item.parents or item.forks or item.deleted is not None or item.is_deleted:
        feeds, named, claims = _placed(item)
    else:
        lamport, feed, seq = item.genesis
        first, second = varint(lamport), varint(seq)
        feeds, named = _FEED_HEAD + feed, _GENESIS_FORM % (4 + len(first) + len(second), first, second)
        if not seq:
            named = name_field(_ITEM.genesis, 1, item.genesis)
    name = item.name.encode()
    created = _ITEM.created_ms + varint(item.created_ms) if item.created_ms else b""
    parts = [_ID_HEAD, item.id, _ITEM.model, varint(len(name)), name, _ITEM.version, varint(item.version), feeds, named]
    parts += (created, claims)
    if item.meta is not None:
        meta = META.snapshot(item.meta)
        parts += (_ITEM.metadata, varint(len(meta)), meta) if meta else ()
    if state:
        parts += (_ITEM.state, varint(len(state)), state)
    return parts


def _placed(item: ItemState) -> tuple[bytes, bytes, bytes]:
    """Encode parts of an item that was moved, deleted or forked: its table of feeds, its genesis, and the claims."""
    stamps = [item.genesis, *(at for at, _ in item.parents), *(at for at, _ in item.forks)]
    if item.deleted is not None:
        stamps.append(item.deleted)
    table = FeedTable.of({stamp.feed for stamp in stamps})
    claims = [field(_ITEM.parents, _claim(at, parent, table)) for at, parent in item.parents]
    if item.deleted is not None:
        claims.append(field(_ITEM.deleted, _claim(item.deleted, b"", table)))
    if item.is_deleted:
        claims.append(_DELETED)
    claims += [field(_ITEM.forks, _claim(at, other, table)) for at, other in item.forks]
    feeds = b"".join([_FEED_HEAD + feed for feed in table.feeds])
    return feeds, table.named(_ITEM.genesis, item.genesis), b"".join(claims)


def _claim(at: Stamp, item: bytes, table: FeedTable) -> bytes:
    named = table.named(_CLAIM.at, at)
    return named + _CLAIM_HEAD + item if item else named


def _frame_of(item: ItemState) -> bytes:
    """Encode the feeds of a record, and the last message of each."""
    names = [name_field(_RECORD.frame, number, last) for number, last in enumerate(item.frame.values(), start=1)]
    return b"".join([*(_FRAME_HEAD + feed for feed in item.frame), *names])


def _encode(item: ItemState) -> bytes:
    table = FeedTable()
    model = item.model
    record = item_pb2.ItemRecord(item=_snapshot(item, item.tail if model is None else ()), trimmed=item.trimmed)
    if model is not None:
        record.item.codec = model.codec if model.codec > 1 else 0
        if model.has_snapshot:
            record.item.state = model.snapshot(item.state)
    elif item.raw is not None:
        _write_raw(record.item, item.raw)
    record.frame.extend([table.name(stamp) for stamp in item.frame.values()])
    if model is not None and keeps_tail(model):
        record.checkpoints.extend([_checkpoint(point, table) for point in item.checkpoints])
        record.tail.extend(_kept(item.tail, table))
        record.base_count = item.base_count
    record.based, record.hidden = item.based, item.hidden
    record.feeds.extend(table.feeds)
    return record.SerializeToString()


def _checkpoint(point: Checkpoint, table: FeedTable) -> item_pb2.Checkpoint:
    return item_pb2.Checkpoint(at=None if point.stamp == BASE else table.name(point.stamp), state=point.state)


def decode(data: bytes, models: ModelFactory) -> ItemState:
    """Read an item from its row. The code of its model may have come or gone since: see `ItemState.model`."""
    try:
        record = item_pb2.ItemRecord.FromString(data)
    except DecodeError:
        raise BadEncoding("an item's record does not parse") from None
    item = _restore(record.item, models)
    if record.based:
        start_from_base(item)
    feeds = read_feeds(record.feeds)
    if record.frame:
        item.frame = {stamp.feed: stamp for stamp in [kept_stamp(name, feeds) for name in record.frame]}
    item.trimmed, item.hidden = record.trimmed, record.hidden or item.hidden
    if item.model is not None and keeps_tail(item.model) and (record.tail or record.checkpoints):
        item.tail = _read_kept(record.tail, feeds)
        item.base_count = record.base_count
        item.checkpoints = [
            Checkpoint(kept_stamp(point.at, feeds) if point.HasField("at") else BASE, point.state)
            for point in record.checkpoints
        ]
        if item.base_count > len(item.tail):
            raise BadEncoding("an item's record: its base has more messages than there are")
        if not item.model.has_snapshot:
            item.state = item.model.initial()
            replay(item.model, item.state, item.tail)
    return item


def restore(data: bytes, models: ModelFactory) -> ItemState:
    """Read an item from its canonical snapshot: the base onto which messages outside the cut of an epoch are folded.

    The waiting mutations of a raw snapshot are applied if the code of the model is here. The next `snapshot` is then
    reified.
    """
    proto = _parse(data)
    item = _restore(proto, models)
    start_from_base(item)
    reified = item.model is not None and proto.raw == _REIFIED and (proto.codec or 1) == item.model.codec
    again = item
    if not reified and item.model is not RAW:  # then the codec of the model does not determine the bytes
        again = _restore(proto, RAW_MODELS)
        start_from_base(again)
    if snapshot(again) != data:
        raise BadEncoding(f"item {item.id.hex()}: not the canonical bytes of its state")
    return item


def _parse(data: bytes) -> item_pb2.ItemSnapshot:
    try:
        return item_pb2.ItemSnapshot.FromString(data)
    except DecodeError:
        raise BadEncoding("an item's snapshot does not parse") from None


def _restore(proto: item_pb2.ItemSnapshot, models: ModelFactory) -> ItemState:
    feeds = read_feeds(proto.feeds)
    _check_ids(proto)
    _check_raw(proto)
    model = models.find(proto.model, proto.version)
    if model is not None and model is not RAW and model.codec < proto.codec:
        model = None  # a newer format than this code can read
    item = ItemState(proto.id, proto.model, proto.version, None, kept_stamp(proto.genesis, feeds))
    item.model = model  # set here, because no initial state is needed
    item.created_ms = proto.created_ms
    item.link = (proto.link.source, proto.link.target) if proto.HasField("link") else None
    if proto.parents or proto.forks:
        item.parents = [(kept_stamp(claim.at, feeds), claim.item) for claim in proto.parents[:]]
        item.forks = [(kept_stamp(claim.at, feeds), claim.item) for claim in proto.forks[:]]
        _ascending([stamp for stamp, _ in item.parents])
        _ascending([stamp for stamp, _ in item.forks])
    item.deleted = kept_stamp(proto.deleted.at, feeds) if proto.HasField("deleted") else None
    item.is_deleted = proto.is_deleted
    item.hidden = IN_BASE if proto.hidden else ""
    item.view = Inception(proto.view.key, proto.view.proof) if proto.HasField("view") else None
    if proto.access:
        item.access = read_log(item.genesis, proto.creator, proto.access, feeds)
    item.meta = META.restore(proto.metadata) if proto.metadata else None
    _restore_state(item, proto, _read_kept(proto.messages, feeds) if proto.messages else [])
    return item


def _restore_state(item: ItemState, proto: item_pb2.ItemSnapshot, messages: list[KeptMessage]) -> None:
    model = item.model
    if model is None or model is RAW:
        item.raw, item.tail = Raw(proto.state, proto.codec, proto.raw), messages
        return
    if not model.has_snapshot:
        item.tail = messages
    begun = model.has_snapshot and (proto.raw == _SINCE or not (proto.raw or messages))
    item.state = model.restore(proto.state) if begun else model.initial()
    replay(model, item.state, messages)


def _check_ids(proto: item_pb2.ItemSnapshot) -> None:
    ids = [proto.id]
    if proto.parents or proto.forks:
        ids += [claim.item for claim in proto.forks[:]]
        ids += [claim.item for claim in proto.parents[:] if claim.item]
    if proto.HasField("link"):
        ids += [proto.link.source, proto.link.target]
    if {*map(len, ids)} != {ITEM_ID_SIZE} or not proto.model or not proto.version:
        raise BadEncoding("an item's snapshot names what is no item, or no model")
    if proto.HasField("view") and (len(proto.view.key), len(proto.view.proof)) != (KEY_SIZE, SIGNATURE_SIZE):
        raise BadEncoding("an item's snapshot: a view has an inception key and its signature")


def _check_raw(proto: item_pb2.ItemSnapshot) -> None:
    """Check that a snapshot holds a state, or messages, or, if raw, both."""
    if not (proto.raw or proto.codec or proto.messages):  # the common case
        return
    has = {
        _REIFIED: not (proto.state and proto.messages),
        _SINCE: bool(proto.messages),
        _ALL: not (proto.state or proto.codec),
    }
    if not has.get(proto.raw) or proto.codec == 1:
        raise BadEncoding("an item's snapshot: its state and its messages are not what it says that they are")


def _ascending(stamps: Sequence[Stamp]) -> None:
    if any(one >= other for one, other in pairwise(stamps)):
        raise BadEncoding("an item's snapshot: its stamps do not ascend")


def _read_kept(messages: Iterable[item_pb2.KeptMessage], feeds: Sequence[bytes]) -> list[KeptMessage]:
    """Read messages in the order of application.

    The messages of an epoch follow all those of the epoch before, whatever their stamps. So only the messages of each
    feed ascend.
    """
    found = [KeptMessage(kept_stamp(kept.at, feeds), kept.mutation, kept.void) for kept in messages]
    last: dict[bytes, Stamp] = {}
    for kept in found:
        before = last.get(kept.stamp.feed)
        if before is not None and (kept.stamp.seq <= before.seq or kept.stamp.lamport < before.lamport):
            raise BadEncoding("an item's snapshot: the messages of a feed do not ascend")
        last[kept.stamp.feed] = kept.stamp
    return found
