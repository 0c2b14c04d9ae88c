"""Access lists as protobuf: one change, as a message holds it, and the log of changes, as a snapshot holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import item_pb2, message_pb2
from antiphon.model.access import KEY_SIZE, NAMES_MAX, Access, AccessLog, Act, Author
from antiphon.model.heard import FeedTable, kept_stamp
from antiphon.model.model import InvalidMutation


def write_access(access: Access) -> message_pb2.Access:
    """Return the protobuf form of a change."""
    cuts = [message_pb2.FeedLength(feed=feed, length=length) for feed, length in access.cuts]
    return message_pb2.Access(grant=access.grant, revoke=access.revoke, cuts=cuts)


def read_access(proto: message_pb2.Access) -> Access:
    """Read a received change, or raise `InvalidMutation`."""
    cuts = tuple((cut.feed, cut.length) for cut in proto.cuts)
    return Access(tuple(proto.grant), tuple(proto.revoke), cuts).check()


def write_author(author: Author) -> item_pb2.Author:
    """Return the protobuf form of an author."""
    return item_pb2.Author(identity=author.identity, groups=author.groups, owner=author.owner)


def _read_author(proto: item_pb2.Author) -> Author:
    groups = tuple(proto.groups)
    if len(proto.identity) != KEY_SIZE or any(len(group) != KEY_SIZE for group in groups):
        raise BadEncoding("an item's snapshot: an author is named by keys of 32 bytes")
    if list(groups) != sorted(set(groups)) or len(groups) > NAMES_MAX:
        raise BadEncoding("an item's snapshot: the groups of an author ascend, each once")
    return Author(proto.identity, groups, proto.owner)


def write_log(log: AccessLog, table: FeedTable) -> Iterable[item_pb2.KeptAccess]:
    """Yield the protobuf form of each change."""
    for act in log:
        yield item_pb2.KeptAccess(
            at=table.name(act.stamp), author=write_author(act.author), access=write_access(act.access)
        )


def read_log(
    genesis: Stamp, creator: item_pb2.Author, kept: Iterable[item_pb2.KeptAccess], feeds: Sequence[bytes]
) -> AccessLog:
    """Read the log of a snapshot, or raise `BadEncoding` if it is not canonical."""
    try:
        acts = [Act(kept_stamp(part.at, feeds), _read_author(part.author), read_access(part.access)) for part in kept]
    except InvalidMutation as error:
        raise BadEncoding(f"an item's snapshot: {error}") from None
    log = AccessLog(genesis, _read_author(creator), acts)
    if log.creator != Author(log.creator.identity):
        raise BadEncoding("an item's snapshot: of its creator it holds the identity alone")
    if acts and (log.acts != acts or acts[0].stamp <= genesis):
        raise BadEncoding("an item's snapshot: its changes of access ascend from its genesis on, not too many a feed")
    return log
