"""`Responder`: answers requests with ranges, evidence of forks and blobs, up to a size, each request once."""

from __future__ import annotations

from antiphon.core.cid import Cid
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.limits import ANSWER_SIZE, ANSWERED_MAX, TIPS_MAX
from antiphon.mesh.replication.message import (
    Answer,
    Blobs,
    Branch,
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


class Responder:
    """The answering part of one end of a session."""

    def __init__(self, replica: Replica, gate: SessionGate) -> None:
        self._replica = replica
        self._gate = gate
        self._answered: dict[int, None] = {}
        self.answer_size = 0  # of the last answer

    def answer(self, want: Request) -> Answer | None:
        """Return an answer that fits a message, perhaps to a part of the request; None if it was answered before."""
        if want.request in self._answered:
            return None
        self._answered[want.request] = None
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]
        if isinstance(want, WantBranch):
            return self._branch(want)
        if isinstance(want, WantTips):
            return self._tips(want)
        return self._ranges(want) if isinstance(want, Want) else self._blobs(want)

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

    def _ranges(self, want: Want) -> Ranges:
        spans: list[bytes] = []
        lacks: list[tuple[bytes, int]] = []
        forks: list[bytes] = []
        left = min(want.size_max, ANSWER_SIZE)
        for feed in want.forks:
            evidence = self._replica.evidence(feed) if self._gives(feed) else None
            if evidence is not None and (len(evidence) <= left or not forks):
                forks.append(evidence)
                left -= len(evidence)
        for feed, first in want.ranges:
            if (spans or forks) and left <= 0:
                break
            span = self._replica.read_range(feed, first, left) if self._gives(feed) else None
            if span is None:
                lacks.append((feed, first))
            elif span.size <= left or not (spans or forks):
                spans.append(span.encode())
                left -= len(spans[-1])
        self.answer_size = _EMPTY_SIZE + sum(map(len, spans)) + sum(map(len, forks)) + _LACK_SIZE * len(lacks)
        return Ranges(want.request, tuple(spans), tuple(lacks), tuple(forks))

    def _gives(self, feed: bytes) -> bool:
        return self._gate.gives_feed(self._replica.holdings.get(feed))

    def _blobs(self, want: WantBlobs) -> Blobs:
        blobs: list[tuple[Cid, bytes]] = []
        lacks: list[Cid] = []
        left = ANSWER_SIZE
        for cid in want.cids:
            data = self._replica.read_blob(cid) if self._gate.gives is Access.WHOLE else None
            if data is None:
                lacks.append(cid)
            elif len(data) <= left or not blobs:
                blobs.append((cid, data))
                left -= len(data)
            if left <= 0:
                break
        self.answer_size = _EMPTY_SIZE + sum(len(data) for _, data in blobs) + _LACK_SIZE * (len(blobs) + len(lacks))
        return Blobs(want.request, tuple(blobs), tuple(lacks))
