"""Ranges of blocks: select them from homes, divide them into tasks of about equal size, read and verify them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from antiphon.core.errors import AntiphonError, BadSignature, BrokenChain, InvalidInput, RefusedBlocks
from antiphon.core.keys import verify as verify_signature
from antiphon.core.reasons import Reason, because, coded
from antiphon.core.timeframe import Timeframe
from antiphon.feed import rules
from antiphon.feed.chain import head_message, verify_span
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import Entry, Flag
from antiphon.feed.span import Span
from antiphon.feed.store.reader import FeedReader, cut
from antiphon.pipeline.source.home import open_feeds

RANGE_BLOCKS = 100_000
FEEDS_PER_TASK = 64  # a home may have many small feeds
CHECKED_BLOCKS, CHECKED_SIZE = 4_096, 4 << 20  # verified together

SpanPart = tuple[Span, int, int]  # a stored span, and the blocks [low, high) of it that are in the range


@dataclass(frozen=True, slots=True)
class Range:
    """Blocks [start, stop) of a feed in a home."""

    home: str
    party: bytes
    feed: bytes
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Limits:
    """A selection of blocks. An empty set of parties or of feeds selects all."""

    parties: frozenset[bytes] = frozenset()
    feeds: frozenset[bytes] = frozenset()
    seq_min: int = 0
    seq_max: int = (1 << 63) - 1
    after: Timeframe = field(default_factory=Timeframe)
    until: Timeframe | None = None  # excludes feeds that it does not name

    def of(self, home: str, record: FeedRecord) -> Range | None:
        """The selected range of a feed; None if it is empty."""
        if (self.parties and record.party not in self.parties) or (self.feeds and record.feed not in self.feeds):
            return None
        # After an anchor no block may be skipped: if the blocks there are pruned, reading the range reports a fault.
        start = max(self.after[record.feed] + 1 if record.feed in self.after else record.start, self.seq_min)
        stop = min(record.valid_length, self.seq_max + 1)
        if self.until is not None:
            stop = min(stop, self.until.get(record.feed, -1) + 1)
        return Range(home, record.party, record.feed, start, stop) if start < stop else None


def find_ranges(homes: Iterable[str], limits: Limits) -> list[Range]:
    """The selected ranges that some homes hold now. Refuse a party in two homes."""
    found: list[Range] = []
    seen: dict[bytes, str] = {}
    for home in homes:
        with open_feeds(home) as store:
            ranges = [one for record in store.feeds() if (one := limits.of(home, record)) is not None]
        for party in {one.party for one in ranges}:
            if party in seen:
                raise InvalidInput(f"party {party.hex()[:8]} is in {seen[party]} and in {home}; name one of them")
            seen[party] = home
        found += ranges
    return found


def divide_ranges(found: Sequence[Range], size: int = RANGE_BLOCKS) -> list[tuple[Range, ...]]:
    """Divide ranges into tasks of about `size` blocks, the largest first. Cut long ranges, combine short ones."""
    tasks: list[tuple[Range, ...]] = []
    small: list[Range] = []
    held = 0
    for one in sorted(found, key=lambda one: (one.home, one.party, one.feed, one.start)):
        parts = max(1, -(-one.count // size))
        if parts > 1 or one.count >= size // 2:
            cuts = [one.start + one.count * part // parts for part in range(parts + 1)]
            tasks += [(replace(one, start=low, stop=high),) for low, high in pairwise(cuts)]
            continue
        small.append(one)
        held += one.count
        if held >= size or len(small) >= FEEDS_PER_TASK:
            tasks.append(tuple(small))
            small, held = [], 0
    if small:
        tasks.append(tuple(small))
    return sorted(tasks, key=lambda task: -sum(one.count for one in task))


@dataclass(frozen=True, slots=True)
class Fault:
    """The first block of a range that cannot be read or does not verify, and why."""

    party: bytes
    feed: bytes
    seq: int
    reason: str


def read_ranges(
    task: Iterable[Range], emit: Callable[[Fault], None], *, verify: bool = True
) -> Iterator[Iterator[Span]]:
    """Yield the spans of each range of a task. Homes are opened one after the other."""
    for home, ranges in groupby(task, key=lambda one: one.home):
        with open_feeds(home) as store:
            for one in ranges:
                yield read_range(store, one, emit, verify=verify)


def read_range(store: FeedReader, one: Range, emit: Callable[[Fault], None], *, verify: bool = True) -> Iterator[Span]:
    """Yield the spans of a range up to its first fault, and pass the fault to `emit`.

    With `verify`, every hash, link, body, head and rule is checked. Ranges can be checked in any order, because the
    only facts from outside the range are the hash and the lamport of the block before it, and the task of that block
    checks those.
    """
    at = one.start
    try:
        before: tuple[bytes, int] | None = None
        for some in _together(store.runs(one.feed, one.start, one.stop)):
            if verify and before is None:
                before = _before(store, some[0][0])
            right = not verify or _all_right([span for span, _, _ in some], *(before or (b"", 0)))
            for span, low, high in some:
                if verify:
                    if not right:
                        _check(span, before or (b"", 0))
                    before = span.hash_at(span.end - 1), int(span.columns["lamport"][-1])
                yield cut(span, low, high)
                at = span.first + high
    except RefusedBlocks as error:
        emit(Fault(one.party, one.feed, at if error.seq is None else max(error.seq, at), coded(error.code, str(error))))
        return
    except AntiphonError as error:  # pruned meanwhile, or damaged: the store returns no block of such a span
        emit(Fault(one.party, one.feed, at, coded(Reason.DAMAGED, str(error))))
        return
    if at < one.stop:
        gone = f"feed {one.feed.hex()[:8]}: blocks {at} to {one.stop - 1} are gone"
        emit(Fault(one.party, one.feed, at, because(Reason.DAMAGED, gone)))


def _together(runs: Iterator[SpanPart]) -> Iterator[list[SpanPart]]:
    """Group spans that are verified together. If a span cannot be read, yield those before it first, then raise."""
    some: list[SpanPart] = []
    count = size = 0
    try:
        for run in runs:
            some.append(run)
            count, size = count + run[0].count, size + run[0].size
            if count >= CHECKED_BLOCKS or size >= CHECKED_SIZE:
                yield some
                some, count, size = [], 0, 0
    except AntiphonError:
        if some:
            yield some
        raise
    if some:
        yield some


def _all_right(spans: Sequence[Span], previous: bytes, lamport: int) -> bool:
    """True if consecutive spans have no fault. If False, the caller checks each span by itself to find the fault.

    The spans are joined into one, which takes a third of the time: most of the cost of a span is not for its blocks.
    """
    first = spans[0]
    for span, after in pairwise(spans):
        if after.first != span.end or after.previous != span.hash_at(span.end - 1):
            return False
        if (after.party, after.feed) != (first.party, first.feed) or int(after.columns["flags"][0]) & Flag.CONTINUED:
            return False
    try:
        verify_span(whole := _joined(spans))
    except (BrokenChain, BadSignature):
        return False
    if first.previous != previous or rules.judge(whole, lamport, _nothing).fault is not None:
        return False
    heads = (
        (head_message(span.party, span.feed, span.end, span.hash_at(span.end - 1)), span.signature)
        for span in spans[:-1]
    )
    return all(verify_signature(first.feed, head, signature) for head, signature in heads)


def _joined(spans: Sequence[Span]) -> Span:
    """Consecutive spans as one span under the head of the last."""
    if len(spans) == 1:
        return spans[0]
    first, last = spans[0], spans[-1]
    states = b"".join([span.states or bytes(span.count) for span in spans])
    headers, advance, bodies, hashes = (
        b"".join([getattr(span, name) for span in spans]) for name in ("headers", "advance", "bodies", "hashes")
    )
    whole = Span(first.party, first.feed, first.first, first.previous, last.signature, headers, advance, bodies)
    return replace(whole, hashes=hashes, states=states if any(states) else b"")


def _before(store: FeedReader, span: Span) -> tuple[bytes, int]:
    record = store.record(span.feed)
    if span.first == record.start:
        return record.start_hash, record.start_lamport
    block = store.block(span.feed, span.first - 1)
    return block.hash, block.lamport


def _check(span: Span, before: tuple[bytes, int]) -> None:
    previous, lamport = before
    if span.previous != previous:
        raise BrokenChain(
            f"feed {span.feed.hex()[:8]}, block {span.first}: it does not link up", feed=span.feed, seq=span.first
        )
    verify_span(span)
    fault = rules.judge(span, lamport, _nothing).fault
    if fault is not None:
        raise BrokenChain(f"feed {span.feed.hex()[:8]}, {fault.reason}", feed=span.feed, seq=fault.seq)


def _nothing(feed: bytes) -> Entry | None:
    """No known entries: this check does not follow the timeframe entries of headers."""
    return None
