"""`Responder`: answers requests with ranges, evidence of forks and blobs, a part is read when it can leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from antiphon.core.cid import Cid
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.limits import (
    ANSWER_SIZE,
    ANSWERED_MAX,
    FIRST_SIZE,
    RANGES_MAX,
    REQUESTS_MAX,
    TIPS_MAX,
    TURN_SIZE,
    WINDOW_MAX,
)
from antiphon.mesh.replication.message import (
    Answer,
    Blobs,
    Branch,
    More,
    Ranges,
    Request,
    Tips,
    Want,
    WantBlobs,
    WantBranch,
    WantTips,
)
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session_gate import SessionGate

_EMPTY_SIZE = 256  # of an empty answer, about
_LACK_SIZE = 64  # of an entry for a range or blob that is not held here, about


@dataclass(slots=True)
class _Cursor:
    """A request that is not fully answered: what is left of it, and how many bytes its answer may still have."""

    want: Request
    left: int = ANSWER_SIZE
    allowed: int = 0  # since the request
    part: int = 0
    forks: deque[bytes] = field(default_factory=deque)
    ranges: deque[tuple[bytes, int]] = field(default_factory=deque)
    cids: deque[Cid] = field(default_factory=deque)

    @property
    def is_done(self) -> bool:
        return not (self.forks or self.ranges or self.cids)


class Responder:
    """The answering part of one end of a session. It remembers requests, and reads the store when a part can leave.

    Requests take turns, and in a part of an answer its feeds do. Control feeds come first.
    """

    def __init__(self, replica: Replica, gate: SessionGate, gave: Callable[[bytes, int], None]) -> None:
        self._replica = replica
        self._gate = gate
        self._gave = gave  # is told of each feed that is given, and up to which seq
        self._cursors: dict[int, _Cursor] = {}
        self._answered: dict[int, None] = {}
        self.answer_size = 0  # of the last part

    def __len__(self) -> int:
        return len(self._cursors)

    @property
    def has_work(self) -> bool:
        """True if a part of an answer can leave."""
        return any(cursor.left > 0 for cursor in self._cursors.values())

    def serves(self, feed: bytes) -> bool:
        """True if a feed is in an answer that is not finished."""
        return any(feed == one for cursor in self._cursors.values() for one, _ in cursor.ranges)

    def close(self) -> None:
        """Forget all requests: the other end makes those again that it still has a right to."""
        self._cursors.clear()

    def ask(self, want: Request) -> None:
        """Note a request. One that came before is not answered again; of too many, the oldest are forgotten."""
        if want.request in self._answered:
            return
        self._answered[want.request] = None
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]
        cursor = _Cursor(want)
        if isinstance(want, Want):
            feeds = {feed for feed, _ in want.ranges}
            for other in self._cursors.values():  # the requester has given up the older request
                other.ranges = deque(one for one in other.ranges if one[0] not in feeds)
            cursor.left = min(want.size_max, WINDOW_MAX)
            cursor.allowed = want.size_max
            cursor.forks.extend(want.forks)
            cursor.ranges.extend(want.ranges)
        elif isinstance(want, WantBlobs):
            cursor.cids.extend(want.cids)
        while len(self._cursors) >= REQUESTS_MAX:
            del self._cursors[next(iter(self._cursors))]
        self._cursors[want.request] = cursor

    def extend(self, more: More) -> None:
        """Allow the answer to a request more bytes; with 0, forget it."""
        cursor = self._cursors.get(more.request)
        if cursor is None:
            return
        if not more.size_max:
            del self._cursors[more.request]
            return
        if more.without:
            cursor.ranges = deque(one for one in cursor.ranges if one[0] not in more.without)
        if more.size_max > cursor.allowed:
            cursor.left = min(cursor.left + more.size_max - cursor.allowed, WINDOW_MAX)
            cursor.allowed = more.size_max

    def next_part(self, size: int) -> Answer | None:
        """Return a part of an answer, of about `size` bytes at most; None if none can leave."""
        number = next((number for number, cursor in self._cursors.items() if cursor.left > 0), None)
        if number is None:
            return None
        cursor = self._cursors.pop(number)
        want = cursor.want
        if isinstance(want, WantBranch):
            return self._branch(want)
        if isinstance(want, WantTips):
            return self._tips(want)
        answer: Ranges | Blobs
        if isinstance(want, Want):
            first = FIRST_SIZE << min(cursor.part, 16)  # small, so that its way tells the delay of the link
            answer = self._ranges(want, cursor, min(size, ANSWER_SIZE, cursor.left, first))
        else:
            answer = self._blobs(want, cursor, min(size, ANSWER_SIZE))
        cursor.part += 1
        if not answer.last:
            self._cursors[number] = cursor  # behind the others
        return answer

    def _branch(self, want: WantBranch) -> Branch:
        found = self._replica.read_branch(want, ANSWER_SIZE) if self._gives(want.feed) else []
        spans = tuple(span.encode() for span in found)
        proof = self._replica.read_proof(want) if self._gives(want.feed) and not spans else b""
        self.answer_size = _EMPTY_SIZE + sum(map(len, spans)) + len(proof)
        return Branch(want.request, spans, proof)

    def _tips(self, want: WantTips) -> Tips:
        tips = self._replica.read_tips(want) if self._gives(want.feed) else []
        self.answer_size = _EMPTY_SIZE + _LACK_SIZE * len(tips)
        return Tips(want.request, tuple(tips[:TIPS_MAX]), len(tips) > TIPS_MAX)

    def _ranges(self, want: Want, cursor: _Cursor, size: int) -> Ranges:
        forks = self._forks(cursor, size)
        left = size - sum(map(len, forks))
        spans: list[bytes] = []
        lacks: list[tuple[bytes, int]] = []
        rest: tuple[list[tuple[bytes, int]], ...] = [], []  # of control feeds, and of others
        turn = max(TURN_SIZE, left // max(1, len(cursor.ranges)))
        while cursor.ranges and left > 0 and len(spans) + len(lacks) + len(forks) < RANGES_MAX:
            feed, first = cursor.ranges[0]
            held = self._replica.holdings.get(feed)
            span = None
            if held is not None and self._gate.gives_feed(held):
                span = self._replica.read_range(feed, first, left if held.control else min(left, turn))
            if span is not None and span.size > left and (spans or forks):
                break
            cursor.ranges.popleft()
            if span is None or held is None:
                lacks.append((feed, first))
                continue
            spans.append(span.encode())
            left -= len(spans[-1])
            self._gave(feed, span.end)
            if span.end < held.length:
                rest[not held.control].append((feed, span.end))
        cursor.ranges.extendleft(reversed(rest[0]))
        cursor.ranges.extend(rest[1])
        answer = Ranges(want.request, tuple(spans), tuple(lacks), tuple(forks), cursor.part, cursor.is_done)
        cursor.left -= answer.size
        self.answer_size = _EMPTY_SIZE + answer.size + _LACK_SIZE * len(lacks)
        return answer

    def _forks(self, cursor: _Cursor, size: int) -> list[bytes]:
        forks: list[bytes] = []
        while cursor.forks and size > 0:
            feed = cursor.forks[0]
            evidence = self._replica.evidence(feed) if self._gives(feed) else None
            if evidence is not None:
                if len(evidence) > size and forks:
                    break
                forks.append(evidence)
                size -= len(evidence)
            cursor.forks.popleft()
        return forks

    def _gives(self, feed: bytes) -> bool:
        return self._gate.gives_feed(self._replica.holdings.get(feed))

    def _blobs(self, want: WantBlobs, cursor: _Cursor, size: int) -> Blobs:
        blobs: list[tuple[Cid, bytes]] = []
        lacks: list[Cid] = []
        while cursor.cids and (size > 0 or not blobs):
            cid = cursor.cids[0]
            data = self._replica.read_blob(cid) if self._gate.gives is Access.WHOLE else None
            if data is not None and len(data) > size and blobs:
                break
            cursor.cids.popleft()
            if data is None:
                lacks.append(cid)
            else:
                blobs.append((cid, data))
                size -= len(data)
        self.answer_size = _EMPTY_SIZE + sum(len(data) for _, data in blobs) + _LACK_SIZE * (len(blobs) + len(lacks))
        return Blobs(want.request, tuple(blobs), tuple(lacks), cursor.part, cursor.is_done)
