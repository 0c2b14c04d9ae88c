"""The state of a messenger: its posts by stamp, and effects on posts that have not arrived."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from antiphon.core.stamp import Stamp
from antiphon.model.heard import Heard
from antiphon.model.value import Value

Versions = dict[Stamp, Value]  # the greatest stamp wins, the others are concurrent
_NONE: frozenset[Stamp] = frozenset()


class Entry:
    """A post, or the effects on a post that has not arrived."""

    __slots__ = ("packed", "redacted", "reply_to", "sent_ms", "stamp", "versions", "waits")

    def __init__(self, stamp: Stamp, versions: Versions, reply_to: Stamp | None, sent_ms: int) -> None:
        self.stamp = stamp
        self.versions = versions
        self.reply_to = reply_to
        self.sent_ms = sent_ms
        self.waits: set[Stamp] | frozenset[Stamp] = _NONE  # versions that are replaced already and have not arrived
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
        # By feed, a heap of: the seq of a message that has not arrived, the post with an effect for it, its stamp.
        self.due: dict[bytes, list[tuple[int, Stamp, Stamp]]] = {}

    def post(self, stamp: Stamp, body: Value, reply_to: Stamp | None, sent_ms: int) -> None:
        """Add a post, with the effects that arrived before it."""
        entry = Entry(stamp, {stamp: body}, reply_to, sent_ms)
        if self.pending and (said := self.pending.pop(stamp, None)) is not None:
            if said.redacted is not None or stamp in said.waits:
                entry.versions = {}
            entry.versions |= said.versions
            entry.waits, entry.redacted = said.waits, said.redacted
        self.posts[stamp] = entry

    def edit(self, post: Stamp, stamp: Stamp, body: Value, replaces: Sequence[Stamp]) -> None:
        """Replace versions of a post by a new one."""
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
        """Remove all versions of a post."""
        entry = self.posts.get(post) or self._said(post)
        if entry is not None:
            entry.versions, entry.waits = {}, _NONE
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
        heappush(self.due.setdefault(stamp.feed, []), (stamp.seq, post, stamp))

    def settle(self, stamp: Stamp) -> None:
        """Drop the effects kept for a message and for earlier ones of its feed: they took effect, or never will."""
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
        """Rebuild `due` after a restore."""
        for entry in (*self.posts.values(), *self.pending.values()):
            for past in entry.waits:
                self._owe(past, entry.stamp)
        for post in self.pending:
            self._owe(post, post)
