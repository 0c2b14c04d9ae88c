"""The laws of a feed store, for any adapter: `run_feed_store_tests(open_store)` checks an adapter.

>>> import tempfile
>>> from antiphon.feed.store.feed_store import FeedStore
>>> with tempfile.TemporaryDirectory() as folder:
...     laws = run_feed_store_tests(lambda name: FeedStore.open(f"{folder}/{name}", durable=False))
>>> len(laws)
12
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from antiphon.core.errors import (
    AntiphonError,
    BadSignature,
    Equivocation,
    FeedRetired,
    MissingBlocks,
    RefusedBlocks,
    UnknownFeed,
)
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.block import Block, BodyState
from antiphon.feed.chain import Head
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import Bounds
from antiphon.feed.fork import Fork
from antiphon.feed.header import Entry, Flag
from antiphon.feed.span import Span, decode
from antiphon.feed.store.ingest import Base, Ingested, Outcome
from antiphon.feed.store.quarantine import Quarantine
from antiphon.testing.spans import Forged, SpanWriter, drafts, joined, key_pair

ALICE, BOB = key_pair("alice"), key_pair("bob")
PARTY = key_pair("party").key


class FeedStoreLike(Protocol):
    """The methods that an adapter needs for these tests; `FeedStore` has them."""

    def create(self, feed: bytes, party: bytes) -> None: ...
    def append(
        self,
        pair: KeyPair,
        party: bytes,
        drafts: Sequence[Draft],
        *,
        seen: Sequence[Entry] = (),
        atomic: bool = False,
    ) -> Sequence[Stamp]: ...
    def ingest(self, span: Span, base: Base | None = None) -> Ingested: ...
    def read(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[Block]: ...
    def block(self, feed: bytes, seq: int) -> Block: ...
    def spans(self, feed: bytes, start: int | None = None, *, bodies: bool = True) -> Iterator[Span]: ...
    def head(self, feed: bytes) -> Head | None: ...
    def bounds(self, feed: bytes) -> Bounds: ...
    def fork(self, feed: bytes) -> bytes | None: ...
    def quarantine(self) -> Quarantine: ...
    def prune(self, feed: bytes, before: int) -> Bounds: ...
    def erase(self, feed: bytes, seq: int) -> None: ...


#: Opens the store of a name: new at the first time, the same one later.
OpenStore = Callable[[str], AbstractContextManager[FeedStoreLike]]


def run_feed_store_tests(open_store: OpenStore) -> list[str]:
    """Check every law, each with stores of its own names. Returns the laws, or raises an AssertionError."""
    proven = []
    for number, law in enumerate(LAWS):
        name = law.__name__.replace("_", " ")

        def opened(store: str, number: int = number) -> AbstractContextManager[FeedStoreLike]:
            return open_store(f"law-{number}-{store}")

        try:
            law(opened)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        except AntiphonError as error:
            raise AssertionError(f"{name}: it raised {type(error).__name__}: {error}") from error
        proven.append(name)
    return proven


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _refuses(error: type[Exception], act: Callable[[], Any], otherwise: str) -> Any:
    try:
        act()
    except error as raised:
        return raised
    raise AssertionError(otherwise)


def _bodies(store: FeedStoreLike, feed: bytes) -> list[bytes | None]:
    return [block.body for block in store.read(feed)]


# -- the laws


def what_is_appended_is_read(open_store: OpenStore) -> None:
    with open_store("one") as store:
        store.create(ALICE.key, PARTY)
        written = [*store.append(ALICE, PARTY, drafts(3)), *store.append(ALICE, PARTY, drafts(2, 5000))]
        blocks = list(store.read(ALICE.key))
        _check([block.stamp for block in blocks] == written, "reading gives other stamps than appending gave")
        messages = [draft.message for draft in (*drafts(3), *drafts(2, 5000))]
        _check([block.message for block in blocks] == messages, "reading gives other messages")
        _check([store.block(ALICE.key, at) for at in range(5)] == blocks, "single blocks differ from the range")
        _check(blocks[1:4] == list(store.read(ALICE.key, 1, 4)), "a range is not a part of the whole")


def what_was_appended_is_there_when_the_store_is_opened_again(open_store: OpenStore) -> None:
    with open_store("one") as store:
        store.create(ALICE.key, PARTY)
        store.append(ALICE, PARTY, drafts(3))
        before = list(store.read(ALICE.key))
    with open_store("one") as store:
        _check(list(store.read(ALICE.key)) == before, "blocks changed between two openings")
        _check(store.append(ALICE, PARTY, drafts(1))[0] == Stamp(4, ALICE.key, 3), "it does not go on where it ended")


def the_head_is_signed_and_the_bounds_are_right(open_store: OpenStore) -> None:
    with open_store("one") as store:
        _refuses(UnknownFeed, lambda: store.bounds(ALICE.key), "an unknown feed has bounds")
        store.create(ALICE.key, PARTY)
        _check(store.head(ALICE.key) is None, "an empty feed has a head")
        store.append(ALICE, PARTY, drafts(4))
        head = store.head(ALICE.key)
        _check(head is not None and head.signed_by(PARTY, ALICE.key), "the head is not signed by the feed's key")
        _check(head is not None and head.hash == store.block(ALICE.key, 3).hash, "the head names another block")
        _check(store.bounds(ALICE.key) == Bounds(0, 4, None), "the bounds are wrong")
        _refuses(MissingBlocks, lambda: store.block(ALICE.key, 4), "a block beyond the end is there")


def lamports_and_advance_are_set(open_store: OpenStore) -> None:
    seen = SpanWriter(BOB, PARTY).write(7).block(6).entry
    with open_store("one") as store:
        store.create(ALICE.key, PARTY)
        store.append(ALICE, PARTY, drafts(2), seen=[seen])
        store.append(ALICE, PARTY, drafts(2), seen=[seen], atomic=True)
        blocks = list(store.read(ALICE.key))
        _check([block.lamport for block in blocks] == [8, 9, 10, 10], "lamports are not one above what was seen")
        _check([block.advance for block in blocks] == [(seen,), (), (), ()], "entries are not there exactly once")
        _check([block.flags for block in blocks[2:]] == [Flag.MORE, Flag.CONTINUED], "a batch is not marked")


def ranges_replicate(open_store: OpenStore) -> None:
    with open_store("one") as store, open_store("two") as peer:
        store.create(ALICE.key, PARTY)
        for count in (1, 5, 300):
            store.append(ALICE, PARTY, drafts(count, 50))
        for span in store.spans(ALICE.key):
            result = peer.ingest(decode(span.encode()))
            _check(result.outcome is Outcome.STORED, f"a good range is not stored: {result.outcome}")
        _check(list(peer.read(ALICE.key)) == list(store.read(ALICE.key)), "the peer reads other blocks")
        again = peer.ingest(next(store.spans(ALICE.key)))
        _check((again.outcome, again.added) == (Outcome.KNOWN, 0), "a repeated range is not known")
        _refuses(FeedRetired, lambda: peer.append(ALICE, PARTY, drafts(1)), "a feed is written from two places")


def only_what_links_up_is_taken(open_store: OpenStore) -> None:
    writer = SpanWriter(ALICE, PARTY)
    first, second, third = writer.write(2), writer.write(2), writer.write(2)
    with open_store("one") as store:
        store.ingest(first)
        _refuses(MissingBlocks, lambda: store.ingest(third), "a gap is taken")
        store.ingest(joined(first, second))
        _check(store.bounds(ALICE.key).length == 4, "an overlapping range does not add what is new")
    with open_store("two") as store:
        last = second.block(1)
        store.ingest(third, Base(3, last.hash, last.lamport))
        _check(store.bounds(ALICE.key) == Bounds(4, 6, None), "a feed does not begin at its base")


def what_does_not_verify_is_listed_and_not_stored(open_store: OpenStore) -> None:
    span = SpanWriter(ALICE, PARTY).write(2)
    other = SpanWriter(ALICE, key_pair("other party").key).write(2)
    forged = Span(other.party, span.feed, 0, span.previous, span.signature, span.headers, b"", span.bodies)
    with open_store("one") as store:
        _refuses(BadSignature, lambda: store.ingest(forged), "blocks of one party are taken in another")
        listed = store.quarantine().refusals
        _check([refusal.feed for refusal in listed] == [ALICE.key], "what was refused is not listed")
        _refuses(UnknownFeed, lambda: store.bounds(ALICE.key), "what was refused is stored")
        store.ingest(span)
        _refuses(RefusedBlocks, lambda: store.ingest(other), "a feed belongs to two parties")


def a_fault_ends_a_feed(open_store: OpenStore) -> None:
    writer = SpanWriter(ALICE, PARTY)
    good, bad = writer.write(2), writer.forge(Forged(flags=Flag.MORE), Forged(flags=Flag.CONTINUED, lamport=9))
    with open_store("one") as store:
        store.ingest(good)
        result = store.ingest(bad)
        _check(result.outcome is Outcome.FAULT, "a header that breaks the rules is no fault")
        _check(store.bounds(ALICE.key).end == 2, "the feed does not end at the start of the batch with the fault")
        _check(len(list(store.read(ALICE.key))) == 2, "blocks after the fault are read")
        _refuses(RefusedBlocks, lambda: store.ingest(writer.write(1)), "an ended feed grows")
        _check(len(store.quarantine().refusals) > 0, "the fault is not listed")


def a_fork_is_cut_at_the_last_common_block_by_everybody(open_store: OpenStore) -> None:
    writer = SpanWriter(ALICE, PARTY)
    begun = writer.write(3)
    branches = [joined(begun, writer.fork().write(4)), joined(begun, writer.write(1))]
    evidence = []
    for name, (mine, theirs) in {"one": branches, "two": branches[::-1]}.items():
        with open_store(name) as store:
            store.ingest(mine)
            error = _refuses(Equivocation, lambda store=store, theirs=theirs: store.ingest(theirs), "a fork is taken")  # type: ignore[misc]
            _check(store.bounds(ALICE.key).end == 3, "the cut is not at the last common block")
            _check(store.fork(ALICE.key) == error.evidence, "the evidence is not kept")
            _check(Fork.decode(error.evidence).seq == 3, "the evidence does not convince others")
            _check(len(list(store.read(ALICE.key))) == 3, "blocks after the cut are read")
            evidence.append(error.evidence)
    _check(evidence[0] == evidence[1], "the evidence depends on which branch came first")


def bodies_may_come_later(open_store: OpenStore) -> None:
    span = SpanWriter(ALICE, PARTY).write(3)
    with open_store("one") as store:
        store.ingest(span.without_bodies())
        _check(_bodies(store, ALICE.key) == [None] * 3, "bodies that were left out are there")
        _check(store.block(ALICE.key, 1).state is BodyState.LEFT_OUT, "a body that was left out is not marked")
        store.ingest(span)
        _check(_bodies(store, ALICE.key) == span.body_list(), "bodies do not come in later")


def erased_bodies_are_gone_and_the_chain_stays(open_store: OpenStore) -> None:
    writer = SpanWriter(ALICE, PARTY)
    span = writer.write(3)
    with open_store("one") as store, open_store("two") as peer:
        store.ingest(span)
        store.erase(ALICE.key, 1)
        store.ingest(span)
        _check(store.block(ALICE.key, 1).state is BodyState.ERASED, "an erased body came back")
        _check(store.block(ALICE.key, 1).hash == span.hash_at(1), "erasing changed a hash")
        for sent in store.spans(ALICE.key):
            peer.ingest(decode(sent.encode()))
        _check(peer.block(ALICE.key, 1).body is None, "an erased body was sent")
        _check(peer.block(ALICE.key, 2).body == span.body_list()[2], "a body beside an erased one was not sent")
        _check(peer.ingest(writer.write(1)).outcome is Outcome.STORED, "the chain does not go on after an erased body")


def pruning_forgets_the_beginning_and_never_half_a_batch(open_store: OpenStore) -> None:
    with open_store("one") as store:
        store.create(ALICE.key, PARTY)
        store.append(ALICE, PARTY, drafts(2))
        store.append(ALICE, PARTY, drafts(3), atomic=True)
        store.append(ALICE, PARTY, drafts(1))
        _check(store.prune(ALICE.key, 4).start == 2, "a batch is pruned in the middle")
        _check(store.prune(ALICE.key, 5).start == 5, "pruning stops too early")
        _refuses(MissingBlocks, lambda: list(store.read(ALICE.key, 4)), "pruned blocks are read")
        _check([block.seq for block in store.read(ALICE.key)] == [5], "pruning took too much")
        _check(store.append(ALICE, PARTY, drafts(1))[0].seq == 6, "a pruned feed does not go on")


LAWS: tuple[Callable[[OpenStore], None], ...] = (
    what_is_appended_is_read,
    what_was_appended_is_there_when_the_store_is_opened_again,
    the_head_is_signed_and_the_bounds_are_right,
    lamports_and_advance_are_set,
    ranges_replicate,
    only_what_links_up_is_taken,
    what_does_not_verify_is_listed_and_not_stored,
    a_fault_ends_a_feed,
    a_fork_is_cut_at_the_last_common_block_by_everybody,
    bodies_may_come_later,
    erased_bodies_are_gone_and_the_chain_stays,
    pruning_forgets_the_beginning_and_never_half_a_batch,
)
