"""Mutations and snapshots of messengers as protobuf. Reading checks everything, because peers may be hostile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from google.protobuf.message import DecodeError

from antiphon.core.stamp import Stamp
from antiphon.core.v1 import messenger_pb2 as pb
from antiphon.model.bounds import is_waited, waited
from antiphon.model.heard import (
    FeedTable,
    heard_fields,
    kept_stamp,
    read_canonical,
    read_feeds,
    read_heard,
    read_name,
    read_waits,
)
from antiphon.model.messenger.state import Entry, MessengerState
from antiphon.model.model import InvalidMutation, need
from antiphon.model.value import Value, read_value, value_bytes
from antiphon.model.wire import field, number_field, tags

SENT_MS_MAX = 1 << 62
_STATE, _ENTRY, _VERSION = tags("MessengerState", "MessengerEntry", "MessengerVersion")
_parse = pb.MessengerMutation.FromString  # looking it up takes as long as parsing


@dataclass(slots=True)
class Post:
    """A mutation that adds a post."""

    body: Value
    reply_to: Stamp | None
    sent_ms: int

    def change(self, state: MessengerState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.post(stamp, self.body, self.reply_to, self.sent_ms)


@dataclass(slots=True)
class Edit:
    """A mutation that replaces versions of a post by a new one."""

    target: Stamp
    body: Value
    replaces: list[Stamp]

    def change(self, state: MessengerState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.edit(self.target, stamp, self.body, self.replaces)


@dataclass(slots=True)
class Redact:
    """A mutation that removes the content of a post."""

    target: Stamp

    def change(self, state: MessengerState, stamp: Stamp) -> None:
        """Apply the act to a state."""
        state.redact(self.target, stamp)


def read_act(data: bytes, stamp: Stamp) -> Post | Edit | Redact:
    """Read a mutation, or raise `InvalidMutation`. The outcome depends on its bytes and stamp alone."""
    try:
        mutation = _parse(data)
    except DecodeError as error:
        raise InvalidMutation(f"no mutation of a messenger: {error}") from None
    table = mutation.feeds
    feeds = read_feeds(table, stamp.feed) if table else (stamp.feed,)
    kind = mutation.WhichOneof("op")
    if kind == "post":
        post = mutation.post
        need(post.sent_ms <= SENT_MS_MAX, "a post that was sent after 2^62 ms")
        reply_to = read_name(post.reply_to, feeds, stamp) if post.HasField("reply_to") else None
        return Post(read_value(post.body), reply_to, post.sent_ms)
    if kind == "edit":
        edit = mutation.edit
        replaces = [read_name(name, feeds, stamp) for name in edit.replaces]
        return Edit(read_name(edit.target, feeds, stamp), read_value(edit.body), replaces)
    need(kind == "redact", "an act of a kind that this version does not know")
    return Redact(read_name(mutation.redact.target, feeds, stamp))


def write_state(state: MessengerState) -> bytes:
    """Encode the canonical snapshot of a state."""
    table = FeedTable.of(_feeds(state))
    parts = heard_fields(state.heard, table)
    parts += [field(_STATE.posts, _packed(state.posts[stamp], table)) for stamp in sorted(state.posts)]
    parts += [field(_STATE.pending, _packed(state.pending[stamp], table)) for stamp in sorted(state.pending)]
    return b"".join(parts)


def _feeds(state: MessengerState) -> set[bytes]:
    found = {*state.heard, *(stamp[1] for stamp in state.posts), *(stamp[1] for stamp in state.pending)}
    for entries in (state.posts, state.pending):
        for entry in entries.values():
            if not entry.plain:
                found.update(stamp.feed for stamp in (entry.reply_to, entry.redacted) if stamp is not None)
                found.update(stamp.feed for stamp in entry.versions)
                found.update(entry.waits or ())
    return found


def _packed(entry: Entry, table: FeedTable) -> bytes:
    """Encode a row. The bytes of a plain post are cached: most posts have not changed since the last snapshot."""
    if not entry.plain:
        return _row(entry, table)
    where, body, packed = table.index(entry.stamp.feed), entry.versions[entry.stamp], entry.packed
    if packed is None or packed[0] is not body or packed[1] != where:
        packed = entry.packed = body, where, _row(entry, table)
    return packed[2]


def _row(entry: Entry, table: FeedTable) -> bytes:
    """Encode a `MessengerEntry` by hand: a party has thousands of them, and the library takes half as long again."""
    row = table.named(_ENTRY.name, entry.stamp)
    if entry.reply_to is not None:
        row += table.named(_ENTRY.reply_to, entry.reply_to)
    row += number_field(_ENTRY.sent_ms, entry.sent_ms)
    for stamp in sorted(entry.versions):
        written = b"" if stamp == entry.stamp else table.named(_VERSION.name, stamp)
        row += field(_ENTRY.versions, written + field(_VERSION.body, value_bytes(entry.versions[stamp])))
    for stamp in sorted(waited(entry.waits)):
        row += table.named(_ENTRY.waits, stamp)
    return row if entry.redacted is None else row + table.named(_ENTRY.redacted, entry.redacted)


def read_state(data: bytes) -> MessengerState:
    """Read a snapshot, or raise `BadEncoding` if the bytes are not canonical."""
    return read_canonical(data, "a messenger", lambda: _read_state(pb.MessengerState.FromString(data)), write_state)


def _read_state(proto: pb.MessengerState) -> MessengerState:
    feeds = read_feeds(proto.feeds)
    state = MessengerState()
    state.heard = read_heard(proto.heard, feeds)
    for row in proto.posts:
        entry = _read_row(row, feeds, state)
        need(state.heard.has(entry.stamp), "a post that was not heard")
        need(bool(entry.versions) is (entry.redacted is None), "a post with neither content nor redaction, or both")
        state.posts[entry.stamp] = entry
    for row in proto.pending:
        entry = _read_row(row, feeds, state)
        need(not state.heard.has(entry.stamp), "a pending post that was heard")
        need(not (entry.reply_to or entry.sent_ms), "a pending post that came")
        need(bool(entry.versions or entry.waits) is (entry.redacted is None), "a pending post without any effect on it")
        need(entry.stamp not in entry.versions, "a pending post that came")
        state.pending[entry.stamp] = entry
    state.index()
    return state


def _read_row(row: pb.MessengerEntry, feeds: Sequence[bytes], state: MessengerState) -> Entry:
    stamp = kept_stamp(row.name, feeds)
    stamps = [kept_stamp(version.name, feeds) if version.HasField("name") else stamp for version in row.versions]
    versions = {past: read_value(version.body) for past, version in zip(stamps, row.versions, strict=True)}
    need(row.sent_ms <= SENT_MS_MAX, "a post that was sent after 2^62 ms")
    need(all(one < other for one, other in pairwise(stamps)), "versions that are not in order")
    need(len({past.feed for past in stamps}) == len(stamps), "two versions of one feed")
    entry = Entry(stamp, versions, kept_stamp(row.reply_to, feeds) if row.HasField("reply_to") else None, row.sent_ms)
    entry.waits = read_waits(row.waits, feeds, state.heard)
    need(not any(is_waited(entry.waits, past) for past in stamps), "a version that is there and waited for")
    entry.redacted = kept_stamp(row.redacted, feeds) if row.HasField("redacted") else None
    need(entry.redacted is None or not entry.waits, "a redacted post that waits for versions")
    return entry
