"""The state of a messenger: its posts by stamp, and what was said of posts that have not come yet."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from antiphon.core.stamp import Stamp
from antiphon.model.heard import Heard
from antiphon.model.value import Value

Versions = dict[Stamp, Value]  # the greatest stamp wins, the others are concurrent
_NONE: frozenset[Stamp] = frozenset()


class Entry:
    """A post, or what was said of one before it came."""

    __slots__ = ("packed", "redacted", "reply_to", "sent_ms", "stamp", "versions", "waits")

    def __init__(self, stamp: Stamp, versions: Versions, reply_to: Stamp | None, sent_ms: int) -> None:
        self.stamp = stamp
        self.versions = versions
        self.reply_to = reply_to
        self.sent_ms = sent_ms
        self.waits: set[Stamp] | frozenset[Stamp] = _NONE  # versions that are replaced already, and have not come
        self.redacted: Stamp | None = None  # the least of its redactions
        self.packed: tuple[Value, int, bytes] | None = None  # its bytes in a snapshot: see `codec`

    @property
    def plain(self) -> bool:
        """Whether nobody said anything of it since it was posted, and it answers nothing, as most posts."""
        alone = len(self.versions) == 1 and self.stamp in self.versions
        return alone and self.reply_to is None and self.redacted is None and not self.waits


class MessengerState:
    """Posts that are there, and in `pending` those whose message did not come yet. `due` finds what one settles."""

    __slots__ = ("due", "heard", "pending", "posts")

    def __init__(self) -> None:
        self.heard = Heard()
        self.posts: dict[Stamp, Entry] = {}
        self.pending: dict[Stamp, Entry] = {}
        # By feed, a heap: the seq of a message that has not come, a post that something was said of for it, and it.
        self.due: dict[bytes, list[tuple[int, Stamp, Stamp]]] = {}

    def post(self, stamp: Stamp, body: Value, reply_to: Stamp | None, sent_ms: int) -> None:
        entry = Entry(stamp, {stamp: body}, reply_to, sent_ms)
        if self.pending and (said := self.pending.pop(stamp, None)) is not None:
            if said.redacted is not None or stamp in said.waits:
                entry.versions = {}
            entry.versions |= said.versions
            entry.waits, entry.redacted = said.waits, said.redacted
        self.posts[stamp] = entry

    def edit(self, post: Stamp, stamp: Stamp, body: Value, replaces: Sequence[Stamp]) -> None:
        entry = self.posts.get(post) or self._said(post)
        if entry is None or entry.redacted is not None:
            return
        for past in replaces:
            entry.versions.pop(past, None)
            if not self.heard.has(past) and past not in entry.waits:
                if isinstance(entry.waits, frozenset):
                    entry.waits = set()
                entry.waits.add(past)
                self._owe(past, post)
        if stamp not in entry.waits:
            entry.versions[stamp] = body

    def redact(self, post: Stamp, stamp: Stamp) -> None:
        entry = self.posts.get(post) or self._said(post)
        if entry is not None:
            entry.versions, entry.waits = {}, _NONE
            if entry.redacted is None or stamp < entry.redacted:
                entry.redacted = stamp

    def _said(self, post: Stamp) -> Entry | None:
        """The post that is not here yet; none if it was here, or never will be."""
        said = self.pending.get(post)
        if said is None and not self.heard.has(post):
            said = self.pending[post] = Entry(post, {}, None, 0)
            self._owe(post, post)
        return said

    def _owe(self, stamp: Stamp, post: Stamp) -> None:
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, post, stamp))

    def settle(self, stamp: Stamp) -> None:
        """After a message: what was kept for it, or for any before it in its feed, has taken effect or never will."""
        due = self.due.get(stamp.feed)
        if not due:
            return
        while due and due[0][0] <= stamp.seq:
            _, post, past = heappop(due)
            if self.heard.has(post):
                self.pending.pop(post, None)
            entry = self.posts.get(post) or self.pending.get(post)
            if entry is not None and isinstance(entry.waits, set):
                entry.waits.discard(past)
                entry.waits = entry.waits or _NONE
        if not due:
            del self.due[stamp.feed]

    def index(self) -> None:
        """What is derived, after a restore."""
        for entry in (*self.posts.values(), *self.pending.values()):
            for past in entry.waits:
                self._owe(past, entry.stamp)
        for post in self.pending:
            self._owe(post, post)
