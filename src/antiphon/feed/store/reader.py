"""`FeedReader`: reads a feed store by block, by range, as Arrow batches, or as spans for a peer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from weakref import WeakValueDictionary

import pyarrow as pa

from antiphon.core.errors import CorruptBlock, MissingBlocks
from antiphon.feed import arrow
from antiphon.feed.block import Block, BodyState
from antiphon.feed.chain import Head, verify_span
from antiphon.feed.feed_record import Bounds, End, FeedRecord
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE, Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store import damage, quarantine, rest_marks
from antiphon.feed.store.damage import Damage
from antiphon.feed.store.env import Env
from antiphon.feed.store.map_file import FrozenMap
from antiphon.feed.store.party_records import ChangedFeeds, PartyRecords
from antiphon.feed.store.quarantine import Quarantine
from antiphon.feed.store.watch import Watch

_READ_SIZE = 1 << 20

#: Is told of which parties feeds were written; None if that is not known, and it may be any.
CommitListener = Callable[[frozenset[bytes] | None], None]


class FeedReader:
    """The reading half of `FeedStore`. No transaction is open while a caller's code runs."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._watches: frozenset[Watch] = frozenset()
        self._listeners: tuple[CommitListener, ...] = ()
        self._told = -1  # the last transaction of which the listeners were told
        self._watching = threading.Lock()
        self._parties: WeakValueDictionary[bytes, PartyRecords] = WeakValueDictionary()  # those that are in use
        self._latest: PartyRecords | None = None

    def feeds(self, party: bytes | None = None) -> tuple[FeedRecord, ...]:
        """Return the records of all feeds, or of one party's, in the order of keys."""
        if party is not None:
            return self._records_of(party).update().listed
        with self._env.read() as tables:
            return tuple(tables.feeds())

    def changed_feeds(self, party: bytes) -> ChangedFeeds:
        """Return what tells which feeds of a party have changed, each time that it is asked; at first, all."""
        return ChangedFeeds(self._records_of(party))

    def records_of_all(self) -> list[PartyRecords]:
        """Read the records of all parties at once. Who keeps the result needs no scan for each party."""
        at, found = self._env.transaction(), dict[bytes, list[FeedRecord]]()
        with self._env.read() as tables:
            for record in tables.feeds():
                found.setdefault(record.party, []).append(record)
        known = [(self._records_of(party), records) for party, records in found.items()]
        for one, records in known:
            one.begin(records, at)
        return [one for one, _ in known]

    def _records_of(self, party: bytes) -> PartyRecords:
        with self._watching:
            known = self._parties.get(bytes(party))
            if known is None:
                known = self._parties[bytes(party)] = PartyRecords(bytes(party), self._env)
            self._latest = known
            return known

    def record(self, feed: bytes) -> FeedRecord:
        latest = self._latest
        if latest is not None and latest.at == self._env.transaction():
            known = latest.by_feed.get(feed)
            if known is not None:
                return known
        with self._env.read() as tables:
            return tables.record(feed)

    def find(self, feed: bytes) -> FeedRecord | None:
        """Return the record of a feed; None if it is not here."""
        with self._env.read() as tables:
            return tables.find(feed)

    def head(self, feed: bytes) -> Head | None:
        """Return the last signed head; None for a feed without blocks."""
        return self.record(feed).head

    def bounds(self, feed: bytes) -> Bounds:
        return self.record(feed).bounds

    def frontier(self, feed: bytes) -> dict[bytes, Entry]:
        """Return the whole timeframe of a feed's last block: the fold of its advance entries."""
        with self._env.read() as tables:
            return {entry.feed: entry for entry in tables.frontiers(feed)}

    def block(self, feed: bytes, seq: int, *, past_end: bool = False) -> Block:
        """Return one block, verified by its own hashes; with `past_end`, also one beyond the end of a forked feed."""
        with self._env.read() as tables:
            record = tables.record(feed)
            check_held(record, seq, record.length if past_end else None)
            found = tables.block_at(record, seq)
        if record.ignored and found.state is BodyState.PRESENT:
            return replace(found, body=None, state=BodyState.LEFT_OUT)
        return found

    def first_kind(self, feed: bytes) -> Kind | None:
        """Return the kind of a feed's first block, if it is held and well-formed; else None.

        A control feed begins with a credential. A fork does not change that of the history that is held here.
        """
        record = self.record(feed)
        if record.start or not record.length or (record.why is End.FAULT and not record.end):
            return None
        try:
            return next(self.held(feed, 0, 1)).block(0).kind
        except MissingBlocks:  # another thread has pruned it since the record was read
            return None

    def read(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[Block]:
        """Yield blocks [start, stop); by default from the first held block to the feed's end."""
        for span, low, high in self.runs(feed, start, stop):
            yield from span.blocks(low, high)

    def arrow(
        self, feed: bytes, start: int | None = None, stop: int | None = None, columns: Iterable[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the blocks that `read` yields as Arrow record batches (`antiphon.feed.arrow.SCHEMA`)."""
        return arrow.batches((cut(span, low, high) for span, low, high in self.runs(feed, start, stop)), columns)

    def spans(
        self, feed: bytes, start: int | None = None, *, bodies: bool = True, size: int | None = None
    ) -> Iterator[Span]:
        """Yield all blocks from `start` on as spans under signed heads, to send to a peer. Synced first.

        About `size` bytes are read at a time, by default 1 MiB.
        Only here and in `trail` is anything of an ignored feed present: the small geneses that others may need.
        """
        synced = 0
        for span in self._stored(feed, start, None, valid=False, ignored=True, size=size):
            if span.end > synced:  # at first, and if the feed has grown meanwhile
                synced = self.record(feed).length
                self._flush_for_others()
            yield span if bodies else span.without_bodies()

    def held(self, feed: bytes, start: int, stop: int) -> Iterator[Span]:
        """Yield blocks [start, stop), also beyond the end of a forked feed: attestations are judged by held blocks."""
        for span in self._stored(feed, start, stop, valid=False):
            yield span if span.end <= stop else cut(span, 0, stop - span.first)

    def fork(self, feed: bytes) -> bytes | None:
        """Return the evidence that a feed's writer signed two histories, or None."""
        with self._env.read() as tables:
            return tables.fork(feed)

    def forks(self) -> list[bytes]:
        """Return the evidence of all forks."""
        with self._env.read() as tables:
            return tables.forks()

    def branches(self, feed: bytes, known: Mapping[bytes, int] | None = None) -> list[Span]:
        """Return the spans that are kept of other branches of a feed than the held history.

        Those that are known are left out, and not read. `known` has, by the hash of its last block, the first block of
        a span: a span that was kept may become longer, at its beginning.
        """
        with self._env.read() as tables:
            return list(tables.branches(feed, known))

    def branch_with(self, feed: bytes, seq: int, hash_: bytes) -> Span | None:
        """Return the span of another branch of a feed that holds a block by its hash; None if none does."""
        with self._env.read() as tables:
            return tables.branch_with(feed, seq, hash_)

    def branch_ending(self, feed: bytes, hash_: bytes) -> Span | None:
        """Return the span of another branch of a feed that ends with a block; None if there is none."""
        with self._env.read() as tables:
            return tables.branch_ending(feed, hash_)

    def branch_firsts(self, feed: bytes) -> dict[bytes, int]:
        """Return the first blocks of the kept spans of other branches, by the hash of the last block. None is read."""
        with self._env.read() as tables:
            return tables.branch_firsts(feed)

    def branch_tips(self, feed: bytes, after: bytes, count: int) -> list[tuple[int, bytes]]:
        """Return seq and hash of the last blocks of kept spans of other branches, by hash, behind the hash `after`."""
        with self._env.read() as tables:
            return tables.branch_tips(feed, after, count)

    def missing(self, feed: bytes, blocks: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return those blocks, by seq and hash, that are neither in the held history nor on a kept branch."""
        with self._env.read() as tables:
            record = tables.find(feed)
            return [*blocks] if record is None else tables.missing(record, blocks)

    def branch_start(self, feed: bytes) -> Span | None:
        """Return a span of another branch of a feed that begins with its first block; None if there is none."""
        with self._env.read() as tables:
            return tables.branch_start(feed)

    def trail(self, feed: bytes, seq: int, hash_: bytes, first: int, size: int) -> list[Span]:
        """Return spans that lead to a block by its hash, of whichever branch, ascending; empty if it is not here.

        They begin at `first`, or later if they would have much more than `size` bytes: the rest is before them. Synced.
        """
        found: list[Span] = []
        with self._env.read() as tables:
            record = tables.find(feed)
            while record is not None and seq >= first and size > 0:
                span = tables.span_with(record, seq, hash_)
                if span is None or (found and span.end != found[-1].first):  # a span is not cut short of its head
                    break
                found.append(span.tail(max(first, span.first)))
                size -= found[-1].size
                seq, hash_ = span.first - 1, span.previous
        if found:
            self._flush_for_others()
        return found[::-1]

    def proof(self, feed: bytes, seq: int, hash_: bytes) -> HeadProof | None:
        """Return a proof that the writer of a feed signed a block that is not here as history.

        It is the last one that was pruned, or is kept on a branch; None if it is neither. Synced.
        """
        with self._env.read() as tables:
            record = tables.find(feed)
            if record is None:
                return None
            found: HeadProof | None = None
            if (record.start, record.start_hash) != (seq + 1, hash_):
                span = tables.branch_with(feed, seq, hash_)
                found = None if span is None else HeadProof.after(span, seq)
            elif record.length > record.start:
                found = HeadProof.after(tables.span_at(record, record.start), seq)
            elif record.head is not None and any(record.signature):
                found = HeadProof((), record.head)
        if found is not None:
            self._flush_for_others()
        return found

    def quarantine(self) -> Quarantine:
        """Return the refused blocks, with reasons."""
        with self._env.read() as tables:
            return quarantine.listed(tables)

    def verify(self, feed: bytes) -> Bounds:
        """Read all held blocks of a feed and check every hash, link, body and head."""
        record = self.record(feed)
        previous, at = record.start_hash, record.start
        for span in self._stored(feed, None, None, valid=False):
            if span.previous != previous:
                raise CorruptBlock(f"feed {feed.hex()[:8]}, block {at}: it does not link up", feed=feed, seq=at)
            checked = verify_span(span)
            previous, at = checked.hash_at(checked.end - 1), checked.end
            if at == record.length and (previous, checked.signature) != (record.hash, record.signature):
                raise CorruptBlock(f"feed {feed.hex()[:8]}, block {at - 1}: it is not the head", feed=feed, seq=at - 1)
        return record.bounds

    def rest(self, party: bytes) -> bytes | None:
        """Return the mark of a party of whose feeds nothing has changed since it was put; None without one."""
        with self._env.read() as tables:
            return rest_marks.find(tables, bytes(party))

    def check_structure(self) -> None:
        """Follow the trees of the store's file by hand; raise `DamagedStore` if they have changed."""
        self._env.check_structure()

    @contextmanager
    def frozen(self) -> Iterator[FrozenMap]:
        """Hold the state of this moment, to copy it. It is synced: a copy may leave this machine (rule 6).

        Until it is left, the thread must not use this store in another way.
        """
        with self._env.frozen() as frozen:
            self._env.sync_file()
            yield frozen

    def feed_keys(self) -> list[bytes]:
        """Return the keys of all feeds of which anything is here, also of those without a sound record."""
        with self._env.read() as tables:
            return damage.feed_keys(tables)

    def damages(self, feed: bytes) -> list[Damage]:
        """Read all that is here of a feed; return what has changed on the disk, for `FeedStore.drop_damage` to drop."""
        return damage.find_damage(self._env, feed)

    def damaged_refusals(self) -> list[Damage]:
        """Return the entries of the quarantine that have changed on the disk."""
        return damage.refusals_damaged(self._env)

    @property
    def transaction(self) -> int:
        """A number that rises with each commit to the store, of any process."""
        return self._env.transaction()

    def watch(self, parties: Collection[bytes] = ()) -> Watch:
        """Return a watch that reports which feeds grow from now on. With `parties`, it wakes only for their commits."""
        watch = Watch(self._lengths, self._env.transaction, self._forget, parties, remote=self._env.readonly)
        with self._watching:
            self._watches |= {watch}
        return watch

    @property
    def map_size(self) -> int:
        return self._env.map_size()

    def close(self) -> None:
        for watch in self._watches:
            watch.close()
        self._env.close()

    def _lengths(self, after: int, upto: int) -> dict[bytes, int]:
        """Return the lengths of the feeds that have changed in these transactions, and perhaps of others."""
        touched = self._env.touched(after, upto) if after >= 0 else None
        with self._env.read() as tables:
            if touched is None:
                return tables.lengths()
            return {record.feed: record.length for record in filter(None, map(tables.find, touched))}

    def listen(self, listener: CommitListener) -> Callable[[], None]:
        """Call `listener` after each commit of this process with the parties whose feeds it wrote, until it is undone.

        It is called in the committing thread, and must neither block nor raise. Return the function that undoes it.
        """
        with self._watching:
            self._listeners += (listener,)
            if self._told < 0:
                self._told = self._env.transaction()

        def undo() -> None:
            with self._watching:
                self._listeners = tuple(known for known in self._listeners if known is not listener)

        return undo

    def _notify(self) -> None:
        """Tell watches and listeners of the commits since the last call. Nobody is told before a commit can be read."""
        if not self._watches and not self._listeners:
            self._told = -1
            return
        with self._watching:
            now = self._env.transaction()
            touched = self._env.touched(self._told, now) if self._told >= 0 else None
            self._told = max(now, self._told)
        parties = None if touched is None else frozenset(touched.values())
        for watch in self._watches:
            watch.notify(parties)
        for listener in self._listeners:
            listener(parties)

    def _forget(self, watch: Watch) -> None:
        with self._watching:
            self._watches -= {watch}

    def _flush_for_others(self) -> None:
        if self._env.readonly or not self._env.durable:
            self._env.flush()

    def runs(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[tuple[Span, int, int]]:
        """Yield the blocks that `read` yields as stored spans, each with its indexes [low, high)."""
        record = self.record(feed)
        low = record.start if start is None else start
        high = record.valid_length if stop is None else min(stop, record.valid_length)
        for span in self._stored(feed, low, high, valid=True):
            yield span, max(0, low - span.first), min(span.count, high - span.first)

    def _stored(
        self,
        feed: bytes,
        start: int | None,
        stop: int | None,
        *,
        valid: bool,
        ignored: bool = False,
        size: int | None = None,
    ) -> Iterator[Span]:
        """Yield stored spans from `start`, about `size` bytes per transaction, so that none is open across a yield.

        Bodies of an ignored feed are left out, but with `ignored`.
        """
        at, read, size = start, -1, _READ_SIZE if size is None else size
        while read != (now := self._env.transaction()):  # otherwise the feed has not grown since
            with self._env.read() as tables:
                record = tables.record(feed)
                at = record.start if at is None else at
                length = record.valid_length if valid else record.length
                end = length if stop is None else min(stop, length)
                if at >= end:
                    return
                if at < record.start:
                    raise MissingBlocks(
                        f"feed {feed.hex()[:8]}: blocks {at} to {record.start - 1} are pruned here; ask a peer"
                    )
                spans = tables.spans_from(record, at, end, size)
            for stored in spans:
                span = stored.without_bodies() if record.ignored and not ignored else stored
                yield span if valid else span.tail(max(at, span.first))
            at = spans[-1].end
            read = now if at >= end else -1


def check_held(record: FeedRecord, seq: int, length: int | None = None) -> None:
    """Raise `MissingBlocks` if block `seq` is not held, or not below a length: by default, the end of the feed."""
    length = record.valid_length if length is None else length
    if not record.start <= seq < length:
        raise MissingBlocks(
            f"feed {record.feed.hex()[:8]}: block {seq} is not held here; blocks {record.start} to {length - 1} are"
        )


def cut(span: Span, low: int, high: int) -> Span:
    """Return blocks [low, high) of a span, for reading; its head no longer applies."""
    if low == 0 and high == span.count:
        return span
    part = span.tail(span.first + low)
    if high == span.count:
        return part
    count = high - low
    return replace(
        part,
        headers=part.headers[: count * HEADER_SIZE],
        advance=part.advance[: part.advance_offsets[count]],
        bodies=part.bodies[: part.body_offsets[count]],
        hashes=part.hashes[: count * HASH_SIZE],
        states=part.states[:count],
    )
