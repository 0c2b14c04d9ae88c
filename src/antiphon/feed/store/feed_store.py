"""`FeedStore`: feeds on disk. One process writes, others may read at the same time.

>>> import tempfile
>>> from antiphon.core.keys import KeyPair
>>> from antiphon.feed.encoder import Draft
>>> from antiphon.feed.header import Kind
>>> party, pair = KeyPair.from_seed(b"p" * 32).key, KeyPair.from_seed(b"f" * 32)
>>> with tempfile.TemporaryDirectory() as folder, FeedStore.open(folder) as store:
...     store.create(pair.key, party)
...     stamps = store.append(pair, party, [Draft(Kind.MUTATION, bytes(16), b"hello")])
...     store.head(pair.key).length, next(store.read(pair.key)).message
(1, b'hello')
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from antiphon.core.errors import (
    BadEncoding,
    Equivocation,
    InvalidInput,
    RefusedBlocks,
    StoreError,
    TooLarge,
)
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE, KeyPair, PublicKey
from antiphon.core.ports import Clock, Randomness, SystemClock, SystemRandomness
from antiphon.core.reasons import Reason, coded
from antiphon.feed import span as spans
from antiphon.feed.chain import verify_span
from antiphon.feed.encoder import Append, Draft, Written
from antiphon.feed.feed_record import Bounds, End, FeedRecord
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import Entry, Kind
from antiphon.feed.limits import REST_SIZE, SALT_SIZE
from antiphon.feed.span import Span
from antiphon.feed.store import damage, ingest as receiving, quarantine
from antiphon.feed.store.disk import MACHINE, Disk
from antiphon.feed.store.env import Env
from antiphon.feed.store.group_commit import Change, Committer
from antiphon.feed.store.ingest import Base, Ingested, Outcome
from antiphon.feed.store.map_file import MAP_SIZE_START
from antiphon.feed.store.quarantine import NOBODY, Refusal
from antiphon.feed.store.reader import FeedReader, check_held
from antiphon.feed.store.tables import INDEXED, Tables

FORMAT = b"antiphon.feeds.1"
BATCH_SIZE_MAX = 256 << 20


class FeedStore(FeedReader):
    """Signed, hash-linked feeds on LMDB. Thread-safe; open one per process and share it.

    An append or ingest is on the disk when it returns. With `durable=False` it is only in the system's cache until
    `flush`; blocks that are read for a peer are flushed first, because nothing may leave before it is synced (rule 6).
    """

    def __init__(self, env: Env, clock: Clock, randomness: Randomness) -> None:
        super().__init__(env)
        self._clock = clock
        self._randomness = randomness
        self._committer = Committer(env, self._notify)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        readonly: bool = False,
        durable: bool = True,
        map_size: int = MAP_SIZE_START,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        disk: Disk = MACHINE,
    ) -> FeedStore:
        """Open the store in folder `path`; create it if it does not exist, unless `readonly`."""
        env = Env(Path(path), readonly=readonly, durable=durable, map_size=map_size, disk=disk)
        store = cls(env, clock or SystemClock(), randomness or SystemRandomness())
        try:
            store._enter()
        except BaseException:
            env.close()
            raise
        return store

    def _enter(self) -> None:
        with self._env.read() as tables:
            new, found, identity = tables.is_new, tables.meta("format"), tables.meta("file")
            indexed = tables.meta("branches.indexed")
        if found is not None and found != FORMAT:
            raise StoreError(f"the store at {self._env.path} has format {found[:32]!r}; this program knows {FORMAT!r}")
        if self._env.readonly:
            return
        here = self._env.file_identity()
        if found is None or identity != here:  # an entry that has changed on the disk is as good as a copy's
            self._env.write(lambda tables, _: _claim(tables, here, not new))
        if not new and indexed != INDEXED:
            self._env.write(lambda tables, _: tables.index_branches())

    # -- writing

    def create(self, feed: bytes, party: bytes) -> None:
        """Create a feed of `party` that this store writes. Creating it again changes nothing."""
        feed, party = PublicKey(feed), PublicKey(party)
        with self._env.read() as tables:
            known = tables.find(feed)
        if not self._env.readonly and known is not None and known.party == party and known.writable:
            return  # without a write, so that a party opens on a full disk

        def change(tables: Tables) -> None:
            known = tables.find(feed)
            if known is None:
                tables.put_record(FeedRecord(feed=bytes(feed), party=bytes(party), writable=True))
            elif known.party != party:
                raise InvalidInput(f"feed {feed.hex()[:8]} belongs to party {known.party.hex()[:8]}")
            elif not known.writable:
                raise InvalidInput(f"feed {feed.hex()[:8]} is another writer's; make a key of your own for a new feed")

        self._change(change)

    def append(
        self,
        pair: KeyPair,
        party: bytes,
        drafts: Sequence[Draft],
        *,
        seen: Sequence[Entry] = (),
        atomic: bool = False,
        created_ms: int | None = None,
        expect: tuple[int, int] | None = None,
    ) -> Written:
        """Append drafts to one's own feed; they are durable on return. Concurrent callers share a commit.

        With `expect`, the first block must get this seq and lamport; otherwise `MovedOn` is raised and nothing written.
        """
        append = self._append(pair, party, drafts, seen, atomic, created_ms, expect)
        return self._committer.submit([append])[0]  # type: ignore[no-any-return]

    def _append(
        self,
        pair: KeyPair,
        party: bytes,
        drafts: Sequence[Draft],
        seen: Sequence[Entry],
        atomic: bool,
        created_ms: int | None = None,
        expect: tuple[int, int] | None = None,
    ) -> Append:
        salts = self._randomness.bytes(len(drafts) * SALT_SIZE)
        created_ms = self._clock.now_ms() if created_ms is None else created_ms
        return Append(pair, party, drafts, seen, atomic=atomic, created_ms=created_ms, salts=salts, expect=expect)

    def ingest(self, span: Span, base: Base | None = None, *, source: bytes = NOBODY) -> Ingested:
        """Verify and store a range of blocks from a peer. A refused range is listed in the quarantine, and raised.

        A fork is raised as `Equivocation` with its evidence; the feed is cut at the last common block. `source` is the
        key of the peer that gave the range: its refusals displace no others.
        """
        return self.ingest_all([span], base, source=source)[0]

    def ingest_all(self, ranges: Sequence[Span], base: Base | None = None, *, source: bytes = NOBODY) -> list[Ingested]:
        """Store several ranges in one commit. If one does not verify or link up, none is stored."""
        if not ranges:
            return []
        with self._listing_refusals(source):
            verified = [verify_span(span) for span in ranges]
            for span in verified:
                receiving.check_complete(span)
            now_ms = self._clock.now_ms()
            results: list[Ingested] = self._committer.submit(
                [lambda tables, span=span: receiving.ingest(tables, span, base, now_ms) for span in verified]  # type: ignore[misc]
            )
        for span, result in zip(verified, results, strict=True):
            if result.outcome is Outcome.FORK:
                raise Equivocation(
                    f"feed {span.feed.hex()[:8]}: {result.reason}",
                    feed=span.feed,
                    seq=result.seq,
                    evidence=result.evidence,
                )
        return results

    def ingest_branch(
        self, spans: Sequence[Span], *, leads_to: tuple[int, bytes] | None = None, source: bytes = NOBODY
    ) -> list[Ingested]:
        """Verify and keep spans of any branches, in one commit. Other bodies than credentials and small geneses go.

        Blocks that refer to a branch are delivered once it is shown (`feed.branches`). Its size is not bounded: a
        branch of many spans comes in several calls. With `leads_to`, they must follow each other up to that block.
        """
        with self._listing_refusals(source):
            verified = [verify_span(span) for span in spans]
            for span in verified:
                receiving.check_complete(span)
            if leads_to is not None:
                receiving.check_trail(verified, *leads_to)
            now_ms = self._clock.now_ms()
            results: list[Ingested] = self._committer.submit(
                [lambda tables, span=span: receiving.ingest_branch(tables, span, now_ms) for span in verified]  # type: ignore[misc]
            )
            for span, done in zip(verified, results, strict=True):
                if done.lacks_bodies:  # the evidence of a fork is kept, and the branch is not
                    raise receiving.without_bodies(span.feed, done.seq)
            return results

    @contextmanager
    def _listing_refusals(self, source: bytes = NOBODY) -> Iterator[None]:
        try:
            yield
        except RefusedBlocks as error:
            self._list(error.feed, error.seq or 0, error, source)
            raise

    def _list(self, feed: bytes | None, seq: int, error: Exception, source: bytes) -> None:
        code = error.code if isinstance(error, RefusedBlocks) else Reason.ENCODING
        text = coded(code, str(error))
        self.refuse(Refusal(feed or bytes(KEY_SIZE), seq, 1, self._clock.now_ms(), text, source))

    def ingest_bytes(self, data: bytes, base: Base | None = None, *, source: bytes = NOBODY) -> Ingested:
        """Decode and ingest the bytes of a range."""
        try:
            span = spans.decode(data)
        except (BadEncoding, TooLarge) as error:
            self._list(spans.claimed_feed(data), 0, error, source)
            raise
        return self.ingest(span, base, source=source)

    def fill(self, feed: bytes, bodies: Mapping[int, bytes]) -> int:
        """Store bodies that were left out, by seq, for headers that are held. Return how many were stored.

        Each is compared with the hash in its header. If one does not match, none is stored.
        """

        def change(tables: Tables) -> int:
            record = tables.record(feed)
            for seq in bodies:
                check_held(record, seq)
            return receiving.fill(tables, record, bodies)

        with self._listing_refusals():
            return self._change(change)  # type: ignore[no-any-return]

    @contextmanager
    def batch(self, *, source: bytes = NOBODY) -> Iterator[Batch]:
        """Collect appends and ingests of any feeds, and commit them together at the end; all or none are made.

        `source` is the key of the peer that gave the ranges, as for `ingest`.
        """
        batch = Batch(self, source)
        yield batch
        if batch.changes:
            with self._listing_refusals(source):
                batch.results.extend(self._committer.submit(batch.changes))

    def prune(self, feed: bytes, before: int) -> Bounds:
        """Delete the blocks before seq `before`, rounded down to a batch's end. Control feeds are kept whole."""
        if self.first_kind(feed) is Kind.CREDENTIAL:
            raise InvalidInput(
                f"feed {feed.hex()[:8]} is a control feed, by which its party is judged; it is kept whole"
            )
        return self._change(lambda tables: receiving.prune(tables, tables.record(feed), before)).bounds  # type: ignore[no-any-return]

    def begin(self, party: bytes, bases: Mapping[bytes, Base]) -> int:
        """Let feeds of which nothing is here begin behind their last block inside a final epoch. Return how many."""

        def change(tables: Tables) -> int:
            return sum(receiving.begin(tables, bytes(party), feed, base) for feed, base in bases.items())

        with self._env.read() as tables:
            if all(tables.find(feed) is not None for feed in bases):
                return 0
        return self._change(change)  # type: ignore[no-any-return]

    def change_branch(self, feed: bytes, base: Base, proof: HeadProof) -> bool:
        """Let a feed begin behind the block that a final epoch holds, which is on another branch than the held blocks.

        These are kept as a branch, for blocks that refer to them. Its writer must have signed both; False if the proof
        does not show it, or if the held blocks are not on another branch, or one of control, which is kept whole.
        """
        if not proof.proves(self.record(feed).party, feed, base.seq, base.hash):
            return False
        if self.first_kind(feed) is Kind.CREDENTIAL:
            return False

        def change(tables: Tables) -> bool:
            record = tables.record(feed)
            if record.why is End.FORK or not record.start <= base.seq < record.length:
                return False
            if tables.hash_before(record, base.seq + 1) == base.hash:
                return False
            signature = bytes(SIGNATURE_SIZE) if proof.headers else proof.head.signature
            receiving.change_branch(tables, record, base, signature)
            return True

        return self._change(change)  # type: ignore[no-any-return]

    def erase(self, feed: bytes, seq: int) -> None:
        """Erase the body of a block; the chain stays whole. `compact` then removes the old bytes from the file."""

        def change(tables: Tables) -> None:
            record = tables.record(feed)
            check_held(record, seq)
            receiving.erase(tables, record, seq)

        self._change(change)

    def erase_in_branches(self, feed: bytes, seqs: Collection[int]) -> int:
        """Erase the bodies of blocks with these seqs in all kept branches of a feed. Return how many were there."""
        return self._change(lambda tables: receiving.erase_in_branches(tables, feed, seqs))  # type: ignore[no-any-return]

    def ignore(self, feed: bytes) -> None:
        """Drop the bodies of a feed, and take none until `heed`. `compact` then shrinks the file.

        Headers stay, and small geneses, which are given to others and not read here.
        """
        if self.record(feed).writable:
            raise InvalidInput(f"feed {feed.hex()[:8]} is written here; what a device wrote itself is not ignored")
        self._change(lambda tables: receiving.ignore(tables, tables.record(feed), ignored=True))

    def heed(self, feed: bytes) -> None:
        """Take bodies of an ignored feed again. Those that were dropped come with `fill`."""
        self._change(lambda tables: receiving.ignore(tables, tables.record(feed), ignored=False))

    def drop_damage(self, feed: bytes) -> Bounds | None:
        """Drop what has changed on the disk of a feed, and nothing else. Return its bounds; None if nothing is left.

        The feed has the blocks before the first rotten one; peers send the others again, and sound blocks behind the
        gap come back with them. A feed of this device that lost blocks is retired: the device opens a new one (rule 6).
        """
        now_ms = self._clock.now_ms()
        record = self._change(lambda tables: damage.drop_damage(tables, feed, now_ms))
        return None if record is None else record.bounds

    def drop_damaged_refusals(self) -> int:
        """Drop the entries of the quarantine that have changed on the disk. Return how many."""
        return self._change(damage.drop_refusals)  # type: ignore[no-any-return]

    def retire(self, feed: bytes) -> None:
        """Never write this feed again, for example after restoring a backup. It can still be read."""
        self._change(lambda tables: tables.put_record(replace(tables.record(feed), retired=True)))

    def put_rest(self, party: bytes, since: int) -> bytes | None:
        """Mark a party as unchanged from now on, and return the mark; None if anything was written after `since`.

        The mark is in the store until a feed of the party changes in any way, and no copy of the store that has changed
        can have it: so derived state that was saved with it is that of the feeds that are here (`rest`).
        """
        mark = self._randomness.bytes(REST_SIZE)
        return mark if self._env.put_rest(bytes(party), mark, since) else None

    def refuse(self, refusal: Refusal) -> None:
        """Add a refusal to the quarantine."""
        self._change(lambda tables: quarantine.add(tables, refusal))

    def flush(self) -> None:
        """With `durable=False`: put everything on the disk now."""
        self._env.flush()

    def compact(self) -> int:
        """Rewrite the store's file without pruned and erased bytes. Return its new size.

        It takes as long as copying the remaining data. No other process may have the store open.
        """
        return self._env.compact()

    def _change(self, change: Change) -> Any:
        return self._committer.submit([change])[0]

    @property
    def commits(self) -> int:
        """Number of transactions since the store was opened; concurrent appends share one."""
        return self._committer.commits

    def __enter__(self) -> FeedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Batch:
    """Changes that `FeedStore.batch` commits together at its end; then `results` holds one result for each."""

    def __init__(self, store: FeedStore, source: bytes = NOBODY) -> None:
        self._store = store
        self._source = source
        self._size = 0
        self.changes: list[Append | Change] = []
        self.results: list[Any] = []

    def append(
        self,
        pair: KeyPair,
        party: bytes,
        drafts: Sequence[Draft],
        *,
        seen: Sequence[Entry] = (),
        atomic: bool = False,
    ) -> None:
        """Append drafts to one's own feed when the batch is committed; see `FeedStore.append`."""
        self._grow(sum(len(draft.message) for draft in drafts))
        self.changes.append(self._store._append(pair, party, drafts, seen, atomic))

    def ingest(self, span: Span, base: Base | None = None) -> None:
        """Verify a range now, and store it with the batch. A fork or fault is in the results, not raised."""
        self._grow(span.size)
        with self._store._listing_refusals(self._source):
            verified = verify_span(span)
            receiving.check_complete(verified)
        now_ms = self._store._clock.now_ms()
        self.changes.append(lambda tables: receiving.ingest(tables, verified, base, now_ms))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > BATCH_SIZE_MAX:
            raise TooLarge(f"a batch of more than {BATCH_SIZE_MAX} bytes; commit in smaller ones")


def _claim(tables: Tables, identity: bytes, copied: bool) -> None:
    """Write the format and the file's identity. In a copy (a restored backup), retire the feeds (rule 6)."""
    tables.put_meta("format", FORMAT)
    tables.put_meta("file", identity)
    if not copied:
        tables.index_branches()
    else:
        for record in [record for record in tables.feeds() if record.writable]:
            tables.put_record(replace(record, retired=True))
