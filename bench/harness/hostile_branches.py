"""What a hostile member signs for `bench/hostile.py` that no store would append: second histories, chosen entries.

A `Pen` continues a feed in memory, from the block where the feed stands. Two pens at one place sign two histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Append, Draft, build
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, MemberAdmission, Policy, Role
from antiphon.model.message import Genesis, write_genesis
from harness.hostile_member import Mallory, key_pairs, mutation

SPAN_BLOCKS = 8  # blocks under one head of a branch: few, so that there are many spans
ENTRY_BLOCKS = 32  # blocks under one head, where each of them has entries
BRANCH_SPANS = 8  # spans of a branch, before the next one begins at the fork again
FAR = 1_000_000  # blocks ahead of what an honest feed has


class Pen:
    """Signs blocks of one feed in memory, each with the entries that it is told."""

    def __init__(self, pair: KeyPair, record: FeedRecord, seed: int = 0) -> None:
        self._pair = pair
        self._record = record
        self._seed = seed  # of the salts, so that two pens never sign the same block
        self._frontier: dict[bytes, Entry] = {}

    def write(self, drafts: Sequence[tuple[Draft, Sequence[Entry]]]) -> Span:
        """Sign drafts as blocks under one head; each has seen the entries beside it."""
        appends = [
            Append(self._pair, self._record.party, [draft], seen, atomic=False, created_ms=1_000, salts=self._salt(at))
            for at, (draft, seen) in enumerate(drafts)
        ]
        built = build(self._record, appends, self._frontier.get)
        self._record = built.record
        self._frontier.update(built.moved)
        (span,) = built.spans
        return span

    def _salt(self, at: int) -> bytes:
        return sha256(f"{self._seed} {self._record.length + at}".encode()).digest()[:SALT_SIZE]


def _pen(mallory: Mallory, feed: bytes, seed: int = 0) -> Pen:
    return Pen(mallory.keys.pair(feed), mallory.feeds.record(feed), seed)


def branches(mallory: Mallory, size: int) -> None:
    """Many histories of both feeds from one place on, in short spans: acts that name members, and geneses."""
    members = key_pairs("named on a branch")
    number, control, data = 0, _pen(mallory, mallory.control.feed), _pen(mallory, mallory.data.feed)
    while mallory.spent < size:
        if number % BRANCH_SPANS == 1:  # span 0 is the history that is held
            control = _pen(mallory, mallory.control.feed, number)
            data = _pen(mallory, mallory.data.feed, number)
        acts = [
            mallory.signed(MemberAdmission(bytes(next(members).key), frozenset({Role.READER})), number)
            for _ in range(SPAN_BLOCKS)
        ]
        mallory.show(control.write([(act, ()) for act in acts]))
        mallory.show(data.write([(_genesis(number * SPAN_BLOCKS + at), ()) for at in range(SPAN_BLOCKS)]))
        number += 1


def _genesis(number: int) -> Draft:
    nonce = sha256(f"on a branch {number}".encode()).digest()[:16]
    return Draft(Kind.GENESIS, nonce, write_genesis(Genesis(nonce, "antiphon/object", 1)))


def entries(mallory: Mallory, size: int) -> None:
    """Blocks on branches of both feeds, each of which waits for another far block of an honest member's feed."""
    feeds = {
        FeedKind.CONTROL: (mallory.control.feed, mallory.signed(Policy(), 0)),
        FeedKind.DATA: (mallory.data.feed, mutation(bytes(16), b"")),
    }
    pens = {}
    for kind, (feed, draft) in feeds.items():
        mallory.show(_pen(mallory, feed).write([(draft, ())]))  # the history that is held
        pens[kind] = _pen(mallory, feed, 1)
    number = 0
    while mallory.spent < size:
        for kind, (_, draft) in feeds.items():
            far = [_far(mallory.honest[kind], number + at) for at in range(ENTRY_BLOCKS)]
            mallory.show(pens[kind].write([(draft, [entry]) for entry in far]))
        number += ENTRY_BLOCKS


def _far(feed: bytes, number: int) -> Entry:
    return Entry(feed, FAR + number, FAR + number, sha256(number.to_bytes(8, "big")).digest())


def timeframes(mallory: Mallory, size: int) -> None:
    """Two control feeds that tell each other of every block, and a data feed that has seen both."""
    second, policy = next(key_pairs("second control feed")), mallory.signed(Policy(), 0)
    device = mallory.member.device
    claim = FeedAdmission(bytes(second.key), FeedKind.CONTROL, device.identity, device.key, mallory.vouch())
    other = Pen(second, FeedRecord(feed=bytes(second.key), party=mallory.party, writable=True))
    seen = list(mallory.member.machine.entries())
    mallory.show(other.write([(mallory.signed(claim, 0, second), seen)]))
    one, data = (_pen(mallory, feed) for feed in (mallory.control.feed, mallory.data.feed))
    last: list[Entry] = []
    while mallory.spent < size:
        ours = one.write([(policy, [entry]) for entry in last] or [(policy, ())] * ENTRY_BLOCKS)
        mallory.show(ours)
        theirs = other.write([(policy, [entry]) for entry in _entries(ours)])
        mallory.show(theirs)
        last = list(_entries(theirs))
        both = zip(_entries(ours), last, strict=True)
        mallory.show(data.write([(mutation(bytes(16), b""), list(pair)) for pair in both]))


def _entries(span: Span) -> Iterator[Entry]:
    return (span.block(index).entry for index in range(span.count))


BRANCH_ATTACKS: dict[str, Callable[[Mallory, int], None]] = {
    "branches": branches,
    "entries": entries,
    "timeframes": timeframes,
}
