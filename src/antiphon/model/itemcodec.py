"""An item's bytes: its canonical snapshot, and the record that this machine's item store keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, UnknownModel
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import item_pb2
from antiphon.model.accesscodec import read_log, write_author, write_log
from antiphon.model.envelope import Inception
from antiphon.model.factory import ModelFactory
from antiphon.model.heard import FeedTable, kept_stamp, read_feeds
from antiphon.model.interface import Model
from antiphon.model.item import META, Checkpoint, ItemState, Kept, keeps_tail
from antiphon.model.objectwire import varint


def snapshot(item: ItemState) -> bytes:
    """The canonical bytes of an item: equal on all engines that folded the same messages."""
    if item.model is None:
        raise UnknownModel(
            f"item {item.id.hex()}: no code for its model {item.name} {item.version} is here; its messages are safe"
        )
    whole_log = not item.model.has_snapshot
    proto = _snapshot(item, item.tail if whole_log else ())
    if not whole_log:
        proto.state = item.model.snapshot(item.state)
    return proto.SerializeToString(deterministic=True)


def _snapshot(item: ItemState, log: Sequence[Kept]) -> item_pb2.ItemSnapshot:
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
    if log:  # without the reasons: in which words a message was refused is no part of the state
        proto.messages.extend(_kept([kept._replace(void="void" if kept.void else "") for kept in log], table))
    return proto


def _claims(claims: Iterable[tuple[Stamp, bytes]], table: FeedTable) -> list[item_pb2.Claim]:
    return [item_pb2.Claim(at=table.name(at), item=item) for at, item in claims]


def _kept(tail: Iterable[Kept], table: FeedTable) -> list[item_pb2.KeptMessage]:
    return [item_pb2.KeptMessage(at=table.name(kept.stamp), mutation=kept.mutation, void=kept.void) for kept in tail]


def encode(item: ItemState) -> bytes:
    """A row for the item store: all that is needed to go on from here."""
    return _encode_plain(item) or _encode(item)


def _encode_plain(item: ItemState) -> bytes:
    """The row of an item to which nothing but mutations came, put together by hand: that is most items.

    Measured, the library takes as long for it as ten mutations. Empty for any other item.
    """
    model = item.model
    if model is None or item.parents or item.forks or item.meta is not None or item.link or keeps_tail(model):
        return b""
    if item.view is not None or item.access is not None:
        return b""
    if item.deleted is not None or item.is_deleted or item.trimmed or len(item.frame) != 1:
        return b""
    feed, lamport, seq = item.genesis.feed, varint(item.genesis.lamport), item.genesis.seq
    named = b"\x08\x01\x10%b\x18%b" % (lamport, varint(seq)) if seq else b"\x08\x01\x10%b" % lamport
    name, state = item.name.encode(), model.snapshot(item.state)
    inside = b"\x0a\x10%b\x12%b%b\x18%b\x22\x20%b\x2a%b%b" % (
        item.id,
        varint(len(name)),
        name,
        varint(item.version),
        feed,
        varint(len(named)),
        named,
    )
    if item.created_ms:
        inside += b"\x30" + varint(item.created_ms)
    if state:
        inside += b"\x6a%b%b" % (varint(len(state)), state)
    ((feed, last),) = item.frame.items()
    named = b"\x08\x01\x10%b" % varint(last.lamport)
    if last.seq:
        named += b"\x18" + varint(last.seq)
    return b"\x0a%b%b\x12\x20%b\x1a%b%b" % (varint(len(inside)), inside, feed, varint(len(named)), named)


def _encode(item: ItemState) -> bytes:
    table = FeedTable()
    record = item_pb2.ItemRecord(item=_snapshot(item, ()), trimmed=item.trimmed)
    if item.model is not None and item.model.has_snapshot:
        record.item.state = item.model.snapshot(item.state)
    record.frame.extend([table.name(stamp) for stamp in item.frame.values()])
    if item.model is not None and keeps_tail(item.model):
        record.checkpoints.extend(
            [item_pb2.Checkpoint(at=table.name(point.stamp), state=point.state) for point in item.checkpoints]
        )
        record.tail.extend(_kept(item.tail, table))
    record.feeds.extend(table.feeds)
    return record.SerializeToString()


def decode(data: bytes, models: ModelFactory) -> ItemState:
    """An item from its row. The code for its model may have come, or gone, since: see `ItemState.model`."""
    try:
        record = item_pb2.ItemRecord.FromString(data)
    except DecodeError:
        raise BadEncoding("an item's record does not parse") from None
    item = _restore(record.item, models)
    feeds = read_feeds(record.feeds)
    item.frame = {stamp.feed: stamp for stamp in [kept_stamp(name, feeds) for name in record.frame]}
    item.trimmed = record.trimmed
    if record.tail or record.checkpoints:
        item.tail = _read_kept(record.tail, feeds)
        item.checkpoints = [Checkpoint(kept_stamp(point.at, feeds), point.state) for point in record.checkpoints]
        if item.model is not None and not item.model.has_snapshot:
            _replay(item.model, item)
    return item


def restore(data: bytes, models: ModelFactory) -> ItemState:
    """An item from its canonical snapshot."""
    try:
        proto = item_pb2.ItemSnapshot.FromString(data)
    except DecodeError:
        raise BadEncoding("an item's snapshot does not parse") from None
    item = _restore(proto, models)
    if item.model is not None and snapshot(item) != data:
        raise BadEncoding(f"item {item.id.hex()}: not the canonical bytes of its state")
    return item


def _restore(proto: item_pb2.ItemSnapshot, models: ModelFactory) -> ItemState:
    feeds = read_feeds(proto.feeds)
    _check_ids(proto)
    model = models.find(proto.model, proto.version)
    item = ItemState.__new__(ItemState)
    item.id, item.name, item.version, item.model = proto.id, proto.model, proto.version, model
    item.genesis = kept_stamp(proto.genesis, feeds)
    item.created_ms = proto.created_ms
    item.link = (proto.link.source, proto.link.target) if proto.HasField("link") else None
    item.parents = [(kept_stamp(claim.at, feeds), claim.item) for claim in proto.parents]
    item.forks = [(kept_stamp(claim.at, feeds), claim.item) for claim in proto.forks]
    _ascending([stamp for stamp, _ in item.parents])
    _ascending([stamp for stamp, _ in item.forks])
    item.deleted = kept_stamp(proto.deleted.at, feeds) if proto.HasField("deleted") else None
    item.is_deleted = proto.is_deleted
    item.view = Inception(proto.view.key, proto.view.proof) if proto.HasField("view") else None
    item.access = None
    if proto.access:
        item.access = read_log(item.genesis, proto.creator, proto.access, feeds)
    item.meta = META.restore(proto.metadata) if proto.metadata else None
    item.frame, item.tail, item.checkpoints, item.trimmed = {}, [], [], False
    item.state = None
    if model is not None:
        item.state = model.restore(proto.state) if model.has_snapshot else model.initial()
        if not model.has_snapshot:
            item.tail = _read_kept(proto.messages, feeds)
            _replay(model, item)
    return item


def _check_ids(proto: item_pb2.ItemSnapshot) -> None:
    ids = [proto.id, *(claim.item for claim in proto.forks)]
    ids += [claim.item for claim in proto.parents if claim.item]
    if proto.HasField("link"):
        ids += [proto.link.source, proto.link.target]
    if any(len(item) != ITEM_ID_SIZE for item in ids) or not proto.model or not proto.version:
        raise BadEncoding("an item's snapshot names what is no item, or no model")
    if proto.HasField("view") and (len(proto.view.key), len(proto.view.proof)) != (KEY_SIZE, SIGNATURE_SIZE):
        raise BadEncoding("an item's snapshot: a view has an inception key and its signature")


def _ascending(stamps: Sequence[Stamp]) -> None:
    if any(one >= other for one, other in pairwise(stamps)):
        raise BadEncoding("an item's snapshot: its stamps do not ascend")


def _read_kept(messages: Iterable[item_pb2.KeptMessage], feeds: Sequence[bytes]) -> list[Kept]:
    found = [Kept(kept_stamp(kept.at, feeds), kept.mutation, kept.void) for kept in messages]
    _ascending([kept.stamp for kept in found])
    return found


def _replay(model: Model[Any], item: ItemState) -> None:
    for stamp, mutation, void in item.tail:
        try:
            model.apply(item.state, mutation, stamp, void=bool(void))
        except Exception:  # noqa: S112 - refused when it came, and listed then; it changes nothing now either
            continue
