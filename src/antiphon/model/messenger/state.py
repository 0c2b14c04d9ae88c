"""The state of a messenger: its posts by stamp, and effects on posts that have not arrived."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from antiphon.core.stamp import Stamp
from antiphon.model.bounds import Bounds, Waits, covers, is_waited, still_waited, waited
from antiphon.model.heard import Heard
from antiphon.model.value import Value

Versions = dict[Stamp, Value]  # one of each feed: the greatest stamp wins, the others are concurrent


class Entry:
    """A post, or the effects on a post that has not arrived."""

    __slots__ = ("packed", "redacted", "reply_to", "sent_ms", "stamp", "versions", "waits")

    def __init__(self, stamp: Stamp, versions: Versions, reply_to: Stamp | None, sent_ms: int) -> None:
        self.stamp = stamp
        self.versions = versions
        self.reply_to = reply_to
        self.sent_ms = sent_ms
        self.waits: Waits | None = None
        self.redacted: Stamp | None = None  # the least stamp of its redactions
        self.packed: tuple[Value, int, bytes] | None = None  # its bytes in a snapshot: see `codec`

    @property
    def plain(self) -> bool:
        """True for a post that was never edited or redacted and is no reply, as most posts are."""
        alone = len(self.versions) == 1 and self.stamp in self.versions
        return alone and self.reply_to is None and self.redacted is None and not self.waits


class MessengerState:
    """Posts that have arrived, and in `pending` effects on posts to come. `due` finds the entries a message settles."""

    __slots__ = ("due", "heard", "pending", "posts")

    def __init__(self) -> None:
        self.heard = Heard()
        self.posts: dict[Stamp, Entry] = {}
        self.pending: dict[Stamp, Entry] = {}
        # By feed, a heap of: the seq of a message that has not arrived, and a post with an effect for it.
        self.due: dict[bytes, list[tuple[int, Stamp]]] = {}

    def post(self, stamp: Stamp, body: Value, reply_to: Stamp | None, sent_ms: int) -> None:
        """Add a post, with the effects that arrived before it."""
        entry = Entry(stamp, {stamp: body}, reply_to, sent_ms)
        if self.pending and (said := self.pending.pop(stamp, None)) is not None:
            if said.redacted is not None or is_waited(said.waits, stamp):
                entry.versions = {}
            entry.versions |= said.versions
            entry.waits, entry.redacted = said.waits, said.redacted
        self.posts[stamp] = entry

    def edit(self, post: Stamp, stamp: Stamp, body: Value, replaces: Sequence[Stamp]) -> None:
        """Replace versions of a post by a new one."""
        entry = self.posts.get(post) or self._said(post)
        if entry is None or entry.redacted is not None:
            return
        versions = entry.versions
        last = {known.feed: known for known in versions}
        own = last.pop(stamp.feed, None)
        if own is not None:  # a writer has always seen its own
            del versions[own]
        for past in replaces:
            known = last.get(past.feed)
            if known is not None and covers(past, known):
                del versions[known], last[past.feed]
            if not self.heard.has(past):
                if entry.waits is None:
                    entry.waits = {}
                if entry.waits.setdefault(past.feed, Bounds()).add(past) >= 0:
                    self._owe(past, post)
        if not is_waited(entry.waits, stamp):
            versions[stamp] = body

    def redact(self, post: Stamp, stamp: Stamp) -> None:
        """Remove all versions of a post."""
        entry = self.posts.get(post) or self._said(post)
        if entry is not None:
            entry.versions, entry.waits = {}, None
            if entry.redacted is None or stamp < entry.redacted:
                entry.redacted = stamp

    def _said(self, post: Stamp) -> Entry | None:
        """Return the pending entry of a post that has not arrived; None if it was discarded or never existed."""
        said = self.pending.get(post)
        if said is None and not self.heard.has(post):
            said = self.pending[post] = Entry(post, {}, None, 0)
            self._owe(post, post)
        return said

    def _owe(self, stamp: Stamp, post: Stamp) -> None:
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, post))

    def settle(self, stamp: Stamp) -> None:
        """Drop the effects kept for a message and for earlier ones of its feed: they took effect, or never will."""
        due = self.due.get(stamp.feed)
        if not due:
            return
        while due and due[0][0] <= stamp.seq:
            _, post = heappop(due)
            if self.heard.has(post):
                self.pending.pop(post, None)
            entry = self.posts.get(post) or self.pending.get(post)
            if entry is not None:
                entry.waits = still_waited(entry.waits, stamp)
        if not due:
            del self.due[stamp.feed]

    def index(self) -> None:
        """Rebuild `due` after a restore."""
        for entry in (*self.posts.values(), *self.pending.values()):
            for past in waited(entry.waits):
                self._owe(past, entry.stamp)
        for post in self.pending:
            self._owe(post, post)
