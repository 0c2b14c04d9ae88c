"""Equivocation: two signed histories of one feed are found, proven to anybody, and cut at one block by everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import (
    AntiphonError,
    BadEncoding,
    BadSignature,
    BrokenChain,
    Equivocation,
    RefusedBlocks,
    TooLarge,
)
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.chain import Head, span_hashes, span_headers, verify_span
from antiphon.feed.fork import Branch, Fork
from antiphon.feed.header import ENTRY_SIZE, HEADER_SIZE, Entry, Flag
from antiphon.feed.limits import EVIDENCE_SIZE_MAX, SPAN_HEADERS_SIZE_MAX
from antiphon.feed.rules import judge
from antiphon.feed.span import Span, decode
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import Forged, SpanWriter, hostile_span, joined, key_pair

OpenStore = Callable[..., FeedStore]


def two_branches(writer: SpanWriter, common: int = 4, mine: int = 3, theirs: int = 5) -> tuple[Span, Span]:
    """Two histories from block 0 on that differ from block `common` on."""
    begun = writer.write(common)
    other = writer.fork()
    return begun.joined(writer.write(mine)), begun.joined(other.write(theirs))


def evidence_of(one: Span, two: Span, seq: int) -> Fork:
    return Fork.between(one.tail(seq), two.tail(seq))


def cut_by(store: FeedStore, *ranges: Span) -> Equivocation:
    """Ingest ranges, of which the last shows the fork."""
    for span in ranges[:-1]:
        store.ingest_bytes(span.encode())
    with pytest.raises(Equivocation) as raised:
        store.ingest_bytes(ranges[-1].encode())
    return raised.value


def test_evidence_convinces_a_third_party_that_holds_nothing(writer: SpanWriter, alice: KeyPair) -> None:
    one, two = two_branches(writer)

    fork = Fork.decode(evidence_of(one, two, 4).encode())

    assert (fork.feed, fork.seq, fork.previous) == (alice.key, 4, one.hash_at(3))
    assert sorted(len(branch.headers) for branch in fork.branches) == [3, 5]
    assert {branch.head.hash for branch in fork.branches} == {one.hash_at(6), two.hash_at(8)}


def test_evidence_is_the_same_whichever_branch_comes_first(writer: SpanWriter) -> None:
    one, two = two_branches(writer)

    assert evidence_of(one, two, 4).encode() == evidence_of(two, one, 4).encode()


@given(st.data())
def test_tampered_evidence_is_refused(data: st.DataObject) -> None:
    evidence = bytearray(EVIDENCE)
    evidence[data.draw(st.integers(0, len(evidence) - 1))] ^= data.draw(st.integers(1, 255))

    with pytest.raises(AntiphonError):
        Fork.decode(bytes(evidence))


@given(st.data())
def test_cut_or_longer_evidence_is_refused(data: st.DataObject) -> None:
    with pytest.raises(BadEncoding):
        Fork.decode(EVIDENCE[: data.draw(st.integers(0, len(EVIDENCE) - 1))])
    with pytest.raises(BadEncoding, match="too many"):
        Fork.decode(EVIDENCE + data.draw(st.binary(min_size=1, max_size=9)))


def test_one_history_is_no_evidence(writer: SpanWriter) -> None:
    """A longer and a shorter head of the same history contradict nothing."""
    span = writer.write(2)
    longer = span.joined(writer.write(2))

    with pytest.raises(BrokenChain, match="do not differ"):
        Fork.decode(Fork(span.party, span.feed, 0, span.previous, (_branch(span), _branch(longer))).encode())


def test_evidence_against_another_writer_or_party_is_refused(writer: SpanWriter, bob: KeyPair) -> None:
    fork = evidence_of(*two_branches(writer), seq=4)

    for changed in (replace(fork, feed=bytes(bob.key)), replace(fork, party=bytes(bob.key))):
        with pytest.raises(BrokenChain, match="does not lead to its head"):
            Fork.decode(changed.encode())


def test_a_branch_that_nobody_signed_is_refused(writer: SpanWriter, bob: KeyPair, party: PublicKey) -> None:
    """Bob invents a second history of Alice's feed, linked rightly, and signs it himself."""
    common = writer.write(2)
    forger = SpanWriter(bob, party)
    forger.record = replace(writer.record, feed=bytes(bob.key))
    invented = forger.forge(Forged())
    invented = replace(invented, feed=common.feed, hashes=b"")
    fork = Fork.between(writer.write(1), replace(invented, hashes=span_hashes(invented)))

    with pytest.raises(BadSignature, match="not the writer's"):
        Fork.decode(fork.encode())


def test_branches_stand_in_one_order_only(writer: SpanWriter) -> None:
    fork = evidence_of(*two_branches(writer), seq=4)

    with pytest.raises(BadEncoding, match="not in order"):
        Fork.decode(replace(fork, branches=(fork.branches[1], fork.branches[0])).encode())


@pytest.mark.parametrize("count", [0, 4097, 2**32 - 1])
def test_a_branch_of_no_blocks_or_too_many_is_refused(writer: SpanWriter, count: int) -> None:
    evidence = bytearray(evidence_of(*two_branches(writer), seq=4).encode())
    at = 4 + 32 + 32 + 8 + 32
    evidence[at : at + 4] = count.to_bytes(4, "little")

    with pytest.raises(TooLarge, match="a branch of"):
        Fork.decode(bytes(evidence))


def test_the_largest_evidence_fits_its_bound(alice: KeyPair, party: PublicKey) -> None:
    """Both branches are as large as a signed head may cover, so evidence always fits into one credential."""
    entries = tuple(Entry(at.to_bytes(32, "big"), 1, 1, bytes(32)) for at in range(4096))
    rest = (SPAN_HEADERS_SIZE_MAX - HEADER_SIZE - 4096 * ENTRY_SIZE) // HEADER_SIZE
    branches = [
        hostile_span(alice, party, [Forged(body=salt * 16, advance=entries), *[Forged()] * rest])
        for salt in (b"a", b"b")
    ]
    for span in branches:
        assert judge(verify_span(decode(span.encode())), 0, lambda _: None).fault is None

    evidence = Fork.between(*branches).encode()

    assert 2 * SPAN_HEADERS_SIZE_MAX - 2 * HEADER_SIZE < len(evidence) <= EVIDENCE_SIZE_MAX
    assert Fork.decode(evidence).seq == 0
    with pytest.raises(TooLarge, match="at most"):
        Fork.decode(bytes(EVIDENCE_SIZE_MAX + 1))


# -- in a store


def test_the_store_cuts_at_the_last_common_block_and_keeps_the_evidence(
    store: FeedStore, writer: SpanWriter, alice: KeyPair
) -> None:
    one, two = two_branches(writer)

    error = cut_by(store, one, two)

    assert store.bounds(alice.key).end == 4
    assert [block.seq for block in store.read(alice.key)] == [0, 1, 2, 3]
    assert (error.feed, error.seq) == (alice.key, 4)
    assert store.fork(alice.key) == error.evidence
    assert store.forks() == [error.evidence]
    assert Fork.decode(error.evidence).seq == 4
    (refusal,) = store.quarantine().refusals
    assert (refusal.feed, refusal.seq, refusal.count) == (alice.key, 4, 3)
    assert "two different blocks 4" in refusal.reason


def test_nothing_after_a_cut_is_taken(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    one, two = two_branches(writer)
    cut_by(store, one, two)

    with pytest.raises(RefusedBlocks, match="ended at 4"):
        store.ingest(writer.write(1))
    with pytest.raises(Equivocation):
        store.ingest(two)

    assert store.bounds(alice.key).end == 4
    assert store.bounds(alice.key).length == 7


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (1, 9), (9, 1), (3, 5)])
def test_the_verdict_is_the_same_whichever_branch_came_first(
    open_store: OpenStore, writer: SpanWriter, alice: KeyPair, mine: int, theirs: int
) -> None:
    one, two = two_branches(writer, mine=mine, theirs=theirs)
    left, right = open_store("left"), open_store("right")

    first, second = cut_by(left, one, two), cut_by(right, two, one)

    assert first.evidence == second.evidence
    assert left.bounds(alice.key).end == right.bounds(alice.key).end == 4
    assert list(left.read(alice.key)) == list(right.read(alice.key))


def test_the_cut_is_the_same_however_the_branches_were_divided(
    open_store: OpenStore, writer: SpanWriter, alice: KeyPair
) -> None:
    begun = writer.write(4)
    other = writer.fork()
    mine, theirs = [writer.write(2), writer.write(2)], [other.write(1), other.write(4)]

    by_parts, at_once = open_store("parts"), open_store("once")
    cut_by(by_parts, begun, *mine, theirs[0])
    cut_by(at_once, joined(begun, *theirs), joined(begun, *mine))

    assert by_parts.bounds(alice.key).end == at_once.bounds(alice.key).end == 4


def test_the_cut_rounds_down_to_the_start_of_a_batch(open_store: OpenStore, alice: KeyPair, party: PublicKey) -> None:
    """Both branches share the first two blocks of a batch; nobody may see a part of it."""
    begun = [Forged(), Forged(flags=Flag.MORE), Forged(flags=Flag.MORE | Flag.CONTINUED)]
    one = hostile_span(alice, party, [*begun, Forged(flags=Flag.CONTINUED, body=b"1" * 16)])
    two = hostile_span(alice, party, [*begun, Forged(flags=Flag.CONTINUED, body=b"2" * 16), Forged()])
    left, right = open_store("left"), open_store("right")

    assert cut_by(left, one, two).seq == cut_by(right, two, one).seq == 3

    assert left.bounds(alice.key).end == right.bounds(alice.key).end == 1
    assert [block.seq for block in left.read(alice.key)] == [0]


def test_a_branch_that_also_breaks_a_rule_is_cut_at_the_same_block(
    open_store: OpenStore, writer: SpanWriter, alice: KeyPair
) -> None:
    """One branch goes on with a block that claims to continue a batch that never was."""
    begun = writer.write(3)
    faulty = joined(begun, writer.fork().forge(Forged(flags=Flag.CONTINUED)))
    good = joined(begun, writer.write(2))
    left, right = open_store("left"), open_store("right")

    evidence = cut_by(left, good, faulty).evidence
    cut_by(right, faulty, good)

    assert left.bounds(alice.key).end == right.bounds(alice.key).end == 3
    assert left.fork(alice.key) == right.fork(alice.key) == evidence


def test_an_earlier_fork_moves_the_cut_down_and_a_later_one_changes_nothing(
    store: FeedStore, writer: SpanWriter, alice: KeyPair
) -> None:
    first = writer.write(2)
    early = writer.fork(seed=1)
    second = writer.write(2)
    late = writer.fork(seed=2)
    main, third = joined(first, second, writer.write(2)), late.write(1)

    cut_by(store, main, joined(first, second, third))
    assert store.bounds(alice.key).end == 4
    evidence = cut_by(store, joined(first, early.write(1))).evidence
    assert store.bounds(alice.key).end == 2
    cut_by(store, joined(first, second, third, late.write(1)))

    assert store.bounds(alice.key).end == 2
    assert store.fork(alice.key) == evidence


def test_a_branch_without_its_root_asks_for_an_earlier_range(
    store: FeedStore, writer: SpanWriter, alice: KeyPair
) -> None:
    begun = writer.write(2)
    other = writer.fork()
    store.ingest(joined(begun, writer.write(4)))
    fork, later = other.write(1), other.write(1)

    with pytest.raises(BrokenChain, match="ask for an earlier range"):
        store.ingest(later)
    assert store.bounds(alice.key).end is None
    cut_by(store, joined(fork, later))
    assert store.bounds(alice.key).end == 2


def test_an_honest_writer_is_not_blamed_for_what_an_equivocator_showed_it(
    open_store: OpenStore, writer: SpanWriter, bob: KeyPair, party: PublicKey
) -> None:
    """Rule 1. The equivocator shows Bob branch a (lamport 500) and the rest branch b (lamport 2). Bob's lamport is
    right by the entry in his own header, which carries lamport and hash; a bare (feed, seq) would make him a liar."""
    begun = writer.write(1)
    other = writer.fork()
    far = Entry(b"x" * 32, 1, 498, bytes(32))
    shown_to_bob, shown_to_others = writer.write(1, seen=[far]), other.write(1)
    honest = SpanWriter(bob, party).write(1, seen=[shown_to_bob.block(0).entry])

    rest = open_store("rest")
    rest.ingest_all([begun, shown_to_others, honest])

    block = rest.block(bob.key, 0)
    assert block.lamport == 500
    assert block.advance[0].hash != rest.block(shown_to_others.feed, 1).hash
    assert rest.bounds(bob.key).end is None
    cut_by(rest, shown_to_bob)
    assert rest.bounds(shown_to_bob.feed).end == 1
    assert rest.bounds(bob.key).end is None


def _branch(span: Span) -> Branch:
    return Branch(tuple(span_headers(span)), Head(span.end, span.hash_at(span.end - 1), span.signature))


def _evidence() -> bytes:
    writer = SpanWriter(key_pair("alice"), key_pair("party").key)
    return evidence_of(*two_branches(writer, 2, 2, 1), seq=2).encode()


EVIDENCE = _evidence()
