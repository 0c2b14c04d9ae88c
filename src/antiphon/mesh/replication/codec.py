"""Encode and decode messages (`antiphon.v1.Replication`). Fields and bodies of later versions are skipped.

>>> hello = Message(bytes(32), b"sender..", b"", 0, Announcement(0, 1, (Holding(bytes(32), 0, 3, bytes(32)),)))
>>> decode(encode(hello)) == hello
True
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.core.keys import KEY_SIZE
from antiphon.core.v1 import replication_pb2 as pb
from antiphon.feed.header import HASH_SIZE
from antiphon.halo.member.device_proof import CREDENTIALS_MAX
from antiphon.mesh.replication.limits import (
    BRANCH_SPANS_MAX,
    CIDS_MAX,
    HOLDINGS_MAX,
    MESSAGE_SIZE_MAX,
    PUSH_SIZE_MAX,
    RANGES_MAX,
    SHOW_SIZE_MAX,
    TIPS_MAX,
)
from antiphon.mesh.replication.message import (
    NONCE_SIZE,
    Announcement,
    Blobs,
    Body,
    Branch,
    Enough,
    Holding,
    Message,
    More,
    Ranges,
    Show,
    Tip,
    Tips,
    Want,
    WantBlobs,
    WantBranch,
    WantTips,
)

_INTEGER_MAX = (1 << 63) - 1


def encode(message: Message) -> bytes:
    """Return the bytes of a message."""
    proto = pb.Replication(
        party=message.party,
        sender=message.sender,
        receiver=message.receiver,
        heard=message.heard,
        digest=message.digest,
    )
    if message.body is not None:
        _put(proto, message.body)
    return proto.SerializeToString(deterministic=True)


def _put(proto: pb.Replication, body: Body) -> None:
    if isinstance(body, Announcement):
        proto.announcement.CopyFrom(pb.Announcement(since=body.since, upto=body.upto, spans=body.spans))
        for one in body.holdings:
            proto.announcement.holdings.add(
                feed=one.feed,
                start=one.start,
                length=one.length,
                hash=one.hash,
                control=one.control,
                fork=one.fork,
                branches=one.branches,
            )
    elif isinstance(body, Want):
        ranges = [pb.WantRange(feed=feed, first=first) for feed, first in body.ranges]
        proto.want.CopyFrom(pb.Want(request=body.request, size_max=body.size_max, ranges=ranges, forks=body.forks))
    elif isinstance(body, Ranges):
        lacks = [pb.Lack(feed=feed, first=first) for feed, first in body.lacks]
        made = pb.Ranges(request=body.request, lacks=lacks, forks=body.forks, part=body.part, last=body.last)
        made.spans.extend(body.spans)
        proto.ranges.CopyFrom(made)
    elif isinstance(body, More):
        proto.more.CopyFrom(pb.More(request=body.request, size_max=body.size_max, without=body.without))
    elif isinstance(body, Enough):
        proto.enough.CopyFrom(pb.Enough(feeds=body.feeds))
    elif isinstance(body, WantBranch):
        wanted = pb.WantBranch(request=body.request, feed=body.feed, seq=body.seq, hash=body.hash, first=body.first)
        proto.want_branch.CopyFrom(wanted)
    elif isinstance(body, Branch):
        proto.branch.CopyFrom(pb.Branch(request=body.request, spans=body.spans, proof=body.proof))
    elif isinstance(body, WantTips):
        proto.want_tips.CopyFrom(pb.WantTips(request=body.request, feed=body.feed, after=body.after))
    elif isinstance(body, Tips):
        tips = [pb.Tip(seq=tip.seq, hash=tip.hash) for tip in body.tips]
        proto.tips.CopyFrom(pb.Tips(request=body.request, tips=tips, more=body.more))
    elif isinstance(body, WantBlobs):
        proto.want_blobs.CopyFrom(pb.WantBlobs(request=body.request, cids=body.cids))
    elif isinstance(body, Show):
        proto.show.CopyFrom(pb.Show(credentials=body.credentials))
    else:
        blobs = [pb.Blob(cid=cid, data=data) for cid, data in body.blobs]
        made_blobs = pb.Blobs(request=body.request, blobs=blobs, lacks=body.lacks, part=body.part, last=body.last)
        proto.blobs.CopyFrom(made_blobs)


def decode(data: bytes) -> Message:
    """Decode bytes that may be hostile. Lists are bounded and keys have their size; nothing else is checked."""
    if len(data) > MESSAGE_SIZE_MAX:
        raise TooLarge(f"a message of {len(data)} bytes between peers; at most {MESSAGE_SIZE_MAX} are allowed")
    try:
        proto = pb.Replication.FromString(data)
    except DecodeError:
        raise BadEncoding("bytes that are no message between peers") from None
    receiver = _sized("receiver", proto.receiver, NONCE_SIZE) if proto.receiver else b""
    return Message(
        _sized("party", proto.party, KEY_SIZE) if proto.party else b"",
        _sized("sender", proto.sender, NONCE_SIZE),
        receiver,
        _integer(proto.heard),
        _body(proto),
        _sized("digest", proto.digest, HASH_SIZE) if proto.digest else b"",
    )


def _body(proto: pb.Replication) -> Body | None:
    kind = proto.WhichOneof("kind")
    if kind == "announcement":
        announced = proto.announcement
        _bounded("holdings", len(announced.holdings), HOLDINGS_MAX)
        if _integer(announced.since) > _integer(announced.upto):
            raise BadEncoding(f"an announcement from version {announced.since} back to {announced.upto}")
        _bounded("spans", len(announced.spans), RANGES_MAX)
        _bounded("bytes of spans", sum(map(len, announced.spans)), PUSH_SIZE_MAX)
        held = tuple(map(_holding, announced.holdings))
        return Announcement(announced.since, announced.upto, held, tuple(announced.spans))
    if kind == "want":
        want = proto.want
        _bounded("ranges and forks", len(want.ranges) + len(want.forks), RANGES_MAX)
        ranges = tuple((_key(one.feed), _integer(one.first)) for one in want.ranges)
        return Want(_integer(want.request), _integer(want.size_max), ranges, tuple(map(_key, want.forks)))
    if kind == "ranges":
        given = proto.ranges
        _bounded("spans, lacks and forks", len(given.spans) + len(given.lacks) + len(given.forks), RANGES_MAX)
        lacks = tuple((_key(one.feed), _integer(one.first)) for one in given.lacks)
        request, part = _integer(given.request), _integer(given.part)
        return Ranges(request, tuple(given.spans), lacks, tuple(given.forks), part, given.last)
    if kind == "more":
        _bounded("feeds", len(proto.more.without), RANGES_MAX)
        without = tuple(map(_key, proto.more.without))
        return More(_integer(proto.more.request), _integer(proto.more.size_max), without)
    if kind == "enough":
        _bounded("feeds", len(proto.enough.feeds), RANGES_MAX)
        return Enough(tuple(map(_key, proto.enough.feeds)))
    if kind in ("want_branch", "branch", "want_tips", "tips"):
        return _body_about_branches(proto, kind)
    if kind == "want_blobs":
        _bounded("CIDs", len(proto.want_blobs.cids), CIDS_MAX)
        return WantBlobs(_integer(proto.want_blobs.request), tuple(map(Cid, proto.want_blobs.cids)))
    if kind == "blobs":
        blobs = proto.blobs
        _bounded("blobs and lacks", len(blobs.blobs) + len(blobs.lacks), CIDS_MAX)
        pairs = tuple((Cid(one.cid), one.data) for one in blobs.blobs)
        request, part = _integer(blobs.request), _integer(blobs.part)
        return Blobs(request, pairs, tuple(map(Cid, blobs.lacks)), part, blobs.last)
    if kind == "show":
        _bounded("credentials", len(proto.show.credentials), CREDENTIALS_MAX)
        _bounded("bytes of credentials", sum(map(len, proto.show.credentials)), SHOW_SIZE_MAX)
        return Show(tuple(proto.show.credentials))
    return None


def _body_about_branches(proto: pb.Replication, kind: str) -> WantBranch | Branch | WantTips | Tips:
    if kind == "want_branch":
        wanted = proto.want_branch
        seq, first = _integer(wanted.seq), _integer(wanted.first)
        if first > seq:
            raise BadEncoding(f"a branch is requested from {first} back to {seq}")
        return WantBranch(_integer(wanted.request), _key(wanted.feed), seq, _hash(wanted.hash), first)
    if kind == "branch":
        _bounded("spans of a branch", len(proto.branch.spans), BRANCH_SPANS_MAX)
        return Branch(_integer(proto.branch.request), tuple(proto.branch.spans), proto.branch.proof)
    if kind == "want_tips":
        after = _hash(proto.want_tips.after) if proto.want_tips.after else b""
        return WantTips(_integer(proto.want_tips.request), _key(proto.want_tips.feed), after)
    _bounded("last blocks of branches", len(proto.tips.tips), TIPS_MAX)
    tips = tuple(Tip(_integer(one.seq), _hash(one.hash)) for one in proto.tips.tips)
    return Tips(_integer(proto.tips.request), tips, proto.tips.more)


def _holding(proto: pb.Holding) -> Holding:
    if not _integer(proto.start) <= _integer(proto.length):
        raise BadEncoding(f"feed {proto.feed.hex()[:8]} is announced from {proto.start} to {proto.length}")
    fork = _integer(proto.fork) if proto.HasField("fork") else None
    feed, last = _key(proto.feed), _hash(proto.hash)
    return Holding(feed, proto.start, proto.length, last, proto.control, fork, _integer(proto.branches))


def _key(raw: bytes) -> bytes:
    return _sized("feed", raw, KEY_SIZE)


def _hash(raw: bytes) -> bytes:
    return _sized("hash", raw, HASH_SIZE)


def _sized(what: str, raw: bytes, size: int) -> bytes:
    if len(raw) != size:
        raise BadEncoding(f"a message between peers: {what} has {len(raw)} bytes, not {size}")
    return raw


def _integer(value: int) -> int:
    if value > _INTEGER_MAX:
        raise BadEncoding(f"a message between peers: the integer {value} is above 2^63 - 1")
    return value


def _bounded(what: str, count: int, most: int) -> None:
    if count > most:
        raise TooLarge(f"a message between peers with {count} {what}; at most {most} are allowed")
