"""An act: one block of a control feed, with its claim read and its whole timeframe known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile

from google.protobuf.message import DecodeError

from antiphon.core.errors import AntiphonError, BadEncoding
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.reasons import Reason, because, code_of
from antiphon.core.sightings import Seen, Sightings
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import message_pb2
from antiphon.feed.block import Block
from antiphon.feed.header import Kind
from antiphon.halo.credentials import credential, lists
from antiphon.halo.credentials.claims import (
    Claim,
    Continuation,
    EpochAct,
    FeedAdmission,
    FeedKind,
    PartyGenesis,
    Policy,
    Position,
)
from antiphon.halo.credentials.credential import Credential


def advance(log: Sightings, block: Block) -> Seen:
    """Add the entries of a feed's next block to the feed's log. Return the block's timeframe."""
    if block.advance:
        log.see(block.seq, {entry.feed: entry.seq for entry in block.advance})
    return log.at(block.seq)


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a feed, with the timeframe of its writer there. A feed has seen its own blocks before `seq`."""

    feed: bytes
    seq: int
    seen: Seen

    def sees(self, position: Position) -> bool:
        return position.seq < self.reach(position.feed)

    def reach(self, feed: bytes) -> int:
        """Return how many blocks of a feed it has seen."""
        return self.seq if feed == self.feed else self.seen.get(feed, -1) + 1


@dataclass(frozen=True, slots=True, order=True)
class Void:
    """An act that is not in force, and why."""

    stamp: Stamp
    reason: str

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """A control block as the party state machine sees it. `problem` says why its body cannot be used."""

    stamp: Stamp
    place: Place
    created_ms: int
    claim: Claim | None
    signers: frozenset[bytes] = frozenset()
    expires_ms: int = 0
    problem: str = ""
    digest: bytes = b""  # of its credential's payload
    continued: int = 0  # in how many of the next blocks its lists go on
    hash: bytes = b""  # of its block
    after: Act | None = field(default=None, repr=False)  # on a branch: the act before it; a history knows its order
    position: Position = field(init=False)  # computed once: every question of rights needs some of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", Position(self.stamp.feed, self.stamp.seq))

    def follow(self, after: Act | None) -> None:
        """Note the act before this one: its place in the history has turned out to be on a branch."""
        object.__setattr__(self, "after", after)

    @property
    def electoral(self) -> bool:
        """True if it concerns epochs, opens a control feed, or may change who decides on epochs."""
        return self.admission is not None or isinstance(self.claim, EpochAct | Policy | PartyGenesis)

    @property
    def admission(self) -> FeedAdmission | None:
        """The admission of its own control feed, if this is the block 0 that carries it."""
        claim = self.claim.admission if isinstance(self.claim, PartyGenesis) else self.claim
        if self.stamp.seq or not isinstance(claim, FeedAdmission):
            return None
        return claim if claim.kind is FeedKind.CONTROL and claim.feed == self.stamp.feed else None


def read_act(party: bytes, block: Block, seen: Seen, after: Act | None = None) -> Act:
    """Read a control block by itself. A block that cannot be read becomes an act without a claim."""
    return read_batch(party, [(block, seen)], after)[0]


def read_batch(party: bytes, blocks: Sequence[tuple[Block, Seen]], after: Act | None = None) -> list[Act]:
    """Read the control blocks of a batch. Lists that go on from one block to the next are joined in the first act.

    If what follows an act is not what it announces, the act has no claim: half a list would cut the feeds of the other
    half at nothing. A continuation that continues no list has no claim, either. `after` is the act before the batch.
    """
    acts: list[Act] = []
    for act in read_history(party, blocks):
        acts.append(replace(act, after=acts[-1] if acts else after))
    return acts


def read_history(party: bytes, blocks: Sequence[tuple[Block, Seen]]) -> list[Act]:
    """Read the control blocks of a batch in the history of a feed. Its acts do not hold on to those before them."""
    read = [_read(party, *found) for found in blocks]
    if len(read) == 1 and not read[0][1] and not _dangles(read[0][0]):
        return [read[0][0]]
    acts: list[Act] = []
    while len(acts) < len(read):
        act, rest = read[len(acts)]
        parts = [part for part, _ in takewhile(_continues, read[len(acts) + 1 :])] if rest else []
        if rest and act.claim is not None:
            try:
                more = [part.claim for part in parts if isinstance(part.claim, Continuation)]
                claim = lists.join(act.claim, more, rest)
                acts += [replace(act, claim=claim, continued=len(parts)), *parts]
                continue
            except AntiphonError as error:
                act = _unreadable(act, str(error))
        elif _dangles(act):
            act = _unreadable(act, "credential: it continues no list")
        acts.append(act)
    return acts


def _dangles(act: Act) -> bool:
    """True for a continuation of no list. An empty one says nothing: its block tells what its writer has seen."""
    return isinstance(act.claim, Continuation) and bool(act.claim.cuts or act.claim.control)


def _continues(found: tuple[Act, bytes]) -> bool:
    return isinstance(found[0].claim, Continuation) and not found[1]


def _read(party: bytes, block: Block, seen: Seen) -> tuple[Act, bytes]:
    """Read a block, and what its credential says about the rest of its lists."""
    place = Place(block.feed, block.seq, seen)
    try:
        found = _read_credential(party, block)
    except AntiphonError as error:
        return _unreadable(Act(block.stamp, place, block.created_ms, None, hash=block.hash), str(error)), b""
    claim, signers, expires_ms = found.claim, found.signers, found.expires_ms
    act = Act(block.stamp, place, block.created_ms, claim, signers, expires_ms, digest=found.digest, hash=block.hash)
    return act, found.rest


_known: dict[tuple[bytes, bytes], Credential] | None = None  # credentials by party and message, inside `read_once`
_KNOWN_MAX = 1 << 14


def _read_credential(party: bytes, block: Block) -> Credential:
    if _known is None:
        return credential.read(party, credential_of(block))
    key = party, block.message or b""
    found = _known.get(key) if block.kind is Kind.CREDENTIAL and block.item == SYSTEM_ITEM else None
    if found is None:
        found = credential.read(party, credential_of(block))
        if len(_known) < _KNOWN_MAX:
            _known[key] = found
    return found


@contextmanager
def read_once() -> Iterator[None]:
    """Cache credentials that were read until the context ends: for a process that simulates many peers.

    What is read depends only on the bytes, and no credential changes, so peers can share it. A real peer hardly reads
    a control block twice.
    """
    global _known  # see `verified_once`
    before, _known = _known, {}
    try:
        yield
    finally:
        _known = before


def _unreadable(act: Act, problem: str) -> Act:
    why = because(Reason.ACT_UNREADABLE, problem)
    return Act(act.stamp, act.place, act.created_ms, None, problem=why, hash=act.hash)


def credential_of(block: Block) -> bytes:
    """Return the signed credential in a control block."""
    if block.kind is not Kind.CREDENTIAL or block.item != SYSTEM_ITEM:
        raise BadEncoding("a control feed holds credentials of the system item only")
    if block.message is None:
        raise BadEncoding("its body is not here")
    message = message_pb2.Message()
    try:
        message.ParseFromString(block.message)
    except DecodeError as error:
        raise BadEncoding(f"not a message: {error}") from None
    if message.WhichOneof("content") != "credential":
        raise BadEncoding("a control feed holds credentials only")
    return message.credential.SerializeToString()
