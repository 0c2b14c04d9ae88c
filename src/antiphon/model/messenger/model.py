"""`MessengerModel`: a threaded log of posts, which can be edited and redacted, and discarded by age or number.

>>> messenger = MessengerModel()
>>> state, alice, bob = messenger.initial(), b"a" * 32, b"b" * 32
>>> hello = Stamp(1, alice, 0)
>>> messenger.apply(state, messenger.post(state, "Hello?", feed=alice), hello)
>>> messenger.apply(state, messenger.post(state, "Here!", reply_to=hello, feed=bob), Stamp(2, bob, 0))
>>> [(thread["body"], [reply["body"] for reply in thread["replies"]]) for thread in messenger.threads(state)]
[('Hello?', ['Here!'])]

A post is named by its stamp. Everybody who may write to the item may edit and redact any post. The stamp of each
version and redaction names the feed that it came from. A model knows no identities: readers map feeds to identities. A
redaction removes all versions of the content, and wins over concurrent edits. The position of the post remains.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import messenger_pb2 as pb
from antiphon.model.heard import FeedTable
from antiphon.model.messenger.codec import SENT_MS_MAX, Edit, Post, read_act, read_state, write_state
from antiphon.model.messenger.state import Entry, MessengerState
from antiphon.model.model import Discard, Model
from antiphon.model.undo import stands
from antiphon.model.value import Value, to_proto


class Captured(NamedTuple):
    """The state before an edit, for its undo: the body that showed, and the stamps of all versions."""

    body: Value
    stamps: frozenset[Stamp]


class MessengerModel(Model[MessengerState]):
    """Posts in threads. See docs/models/messenger.md."""

    name = "antiphon/messenger"
    commands = frozenset({"post", "edit", "redact"})

    def initial(self) -> MessengerState:
        return MessengerState()

    def apply(self, state: MessengerState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        act = read_act(mutation, stamp)
        state.heard.hear(stamp)
        if not void:
            act.change(state, stamp)
        if state.due:
            state.settle(stamp)

    def snapshot(self, state: MessengerState) -> bytes:
        return write_state(state)

    def restore(self, data: bytes) -> MessengerState:
        return read_state(data)

    # -- reading

    def value(self, state: MessengerState) -> list[dict[str, Any]]:
        """Return all posts by stamp. `reply_to` may name a post that is missing or was discarded."""
        return [_plain(state.posts[stamp]) for stamp in sorted(state.posts)]

    def document(self, state: MessengerState) -> list[Value]:
        """Return the bodies of all posts by stamp; None for redacted posts."""
        return [post["body"] for post in self.value(state)]

    def threads(self, state: MessengerState) -> list[dict[str, Any]]:
        """Return posts by stamp, each with its `replies`. A reply to a missing post is at the top level."""
        posts = {stamp: {**_plain(state.posts[stamp]), "replies": []} for stamp in sorted(state.posts)}
        top: list[dict[str, Any]] = []
        for post in posts.values():
            parent = posts.get(post["reply_to"])
            (top if parent is None else parent["replies"]).append(post)
        return top

    def get(self, state: MessengerState, post: Stamp) -> dict[str, Any]:
        """Return one post."""
        return _plain(_there(state, post))

    # -- commands

    def post(
        self, state: MessengerState, body: Value, *, reply_to: Stamp | None = None, sent_ms: int = 0, feed: bytes = b""
    ) -> bytes:
        """Add a post. `sent_ms` is the time of the writer's clock: it decides the age of the post, never its order."""
        if type(sent_ms) is not int or not 0 <= sent_ms <= SENT_MS_MAX:
            raise InvalidInput(f"sent_ms is in milliseconds since 1970, from 0 to 2^62, not {sent_ms!r}")
        table = FeedTable(feed)
        act = pb.MessengerPost(body=to_proto(body), sent_ms=sent_ms)
        if reply_to is not None:
            _there(state, reply_to)
            act.reply_to.CopyFrom(table.name(reply_to))
        return _encode(pb.MessengerMutation(post=act), table)

    def edit(self, state: MessengerState, post: Stamp, body: Value, *, feed: bytes = b"") -> bytes:
        """Replace the body of a post."""
        entry = _there(state, post)
        if entry.redacted is not None:
            raise InvalidInput(f"the post {post} is redacted and cannot be edited")
        return _edit(post, body, sorted(entry.versions), feed)

    def redact(self, state: MessengerState, post: Stamp, *, feed: bytes = b"") -> bytes:
        """Remove the content of a post."""
        _there(state, post)
        return _redact(post, feed)

    # -- retention

    def discard(self, state: MessengerState, policy: Discard) -> None:
        """Discard posts whose `sent_ms` is too old, then all but the newest by stamp.

        Later edits and redactions of them have no effect. Later replies to them are at the top level.
        """
        posts = state.posts
        if policy.age_ms_max:
            oldest = policy.now_ms - policy.age_ms_max
            for stamp in [stamp for stamp, entry in posts.items() if entry.sent_ms < oldest]:
                del posts[stamp]
        if policy.count_max:
            for stamp in sorted(posts)[: -policy.count_max]:
                del posts[stamp]

    # -- undo

    def capture(self, state: MessengerState, mutation: bytes, stamp: Stamp) -> Captured | None:
        act = read_act(mutation, stamp)
        entry = state.posts.get(act.target) if isinstance(act, Edit) else None
        if entry is None or not entry.versions:
            return None
        return Captured(entry.versions[max(entry.versions)], frozenset(entry.versions))

    def revert(
        self, state: MessengerState, captured: Captured | None, mutation: bytes, stamp: Stamp, feed: bytes
    ) -> list[bytes]:
        act = read_act(mutation, stamp)
        if isinstance(act, Post):
            entry = state.posts.get(stamp)
            return [_redact(stamp, feed)] if entry is not None and entry.redacted is None else []
        if not isinstance(act, Edit):
            raise InvalidInput(f"the redaction {stamp} of the post {act.target} cannot be undone: its content is gone")
        entry = state.posts.get(act.target)
        if captured is None or entry is None:
            return []
        if not stands(entry.versions, captured.stamps, stamp, act.body):
            return []  # edited or redacted since
        return [_edit(act.target, captured.body, sorted(entry.versions), feed)]

    # -- rehearsal

    def rehearse(self, state: MessengerState, chance: random.Random, feed: bytes) -> bytes:
        open_posts = [stamp for stamp in sorted(state.posts) if state.posts[stamp].redacted is None]
        act = chance.choice(["post", "post", "reply", "edit", "redact"]) if open_posts else "post"
        text = f"text {chance.randrange(1000)}"
        if act == "edit":
            return self.edit(state, chance.choice(open_posts), text, feed=feed)
        if act == "redact":
            return self.redact(state, chance.choice(open_posts), feed=feed)
        parent = chance.choice(open_posts) if act == "reply" else None
        return self.post(state, text, reply_to=parent, sent_ms=chance.randrange(10_000), feed=feed)


def _there(state: MessengerState, post: Stamp) -> Entry:
    entry = state.posts.get(post)
    if entry is None:
        raise InvalidInput(f"there is no post {post} here: it was discarded, or never was")
    return entry


def _plain(entry: Entry) -> dict[str, Any]:
    """Return a post as users see it. A redacted one has no content and no versions."""
    versions = [
        {"id": stamp, "by": stamp.feed, "body": copy.deepcopy(entry.versions[stamp])}
        for stamp in sorted(entry.versions, reverse=True)
    ]
    edited = bool(versions) and versions[0]["id"] != entry.stamp
    return {
        "id": entry.stamp,
        "by": entry.stamp.feed,
        "body": versions[0]["body"] if versions else None,
        "edited": edited,
        "edited_by": versions[0]["by"] if edited else None,
        "versions": versions,  # the concurrent ones, the winner first; usually one
        "reply_to": entry.reply_to,
        "sent_ms": entry.sent_ms,
        "redacted": entry.redacted is not None,
        "redacted_by": None if entry.redacted is None else entry.redacted.feed,
    }


def _edit(post: Stamp, body: Value, replaces: Iterable[Stamp], feed: bytes) -> bytes:
    table = FeedTable(feed)
    names = [table.name(stamp) for stamp in replaces]
    act = pb.MessengerEdit(target=table.name(post), body=to_proto(body), replaces=names)
    return _encode(pb.MessengerMutation(edit=act), table)


def _redact(post: Stamp, feed: bytes) -> bytes:
    table = FeedTable(feed)
    return _encode(pb.MessengerMutation(redact=pb.MessengerRedact(target=table.name(post))), table)


def _encode(mutation: pb.MessengerMutation, table: FeedTable) -> bytes:
    mutation.feeds.extend(table.feeds)
    return mutation.SerializeToString(deterministic=True)


__all__ = ["MessengerModel", "MessengerState"]
