"""Taking blocks from others: verified, linked up, whole batches only, and each way that can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import BadEncoding, BadSignature, BrokenChain, Equivocation, MissingBlocks, RefusedBlocks
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.block import BodyState
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import Bounds
from antiphon.feed.header import Flag, Kind
from antiphon.feed.limits import BRANCH_GENESIS_SIZE_MAX
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base, Outcome, is_complete
from antiphon.testing.spans import Forged, SpanWriter, hostile_span, joined, key_pair, on_the_wire

OpenStore = Callable[..., FeedStore]


def bodies(store: FeedStore, feed: bytes) -> list[bytes | None]:
    return [block.body for block in store.read(feed)]


def test_ranges_that_follow_each_other_are_stored(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    history = [writer.write(3), writer.write(1), writer.write(4, atomic=True)]

    results = [store.ingest_bytes(span.encode()) for span in history]

    assert [(result.outcome, result.added) for result in results] == [(Outcome.STORED, n) for n in (3, 1, 4)]
    assert store.bounds(alice.key) == Bounds(0, 8, None)
    assert bodies(store, alice.key) == [body for span in history for body in span.body_list()]
    assert store.verify(alice.key).length == 8


def test_a_gap_asks_for_what_is_missing(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    first, second, third = writer.write(2), writer.write(2), writer.write(2)

    with pytest.raises(MissingBlocks, match="blocks 0 to 1 are missing"):
        store.ingest(second)
    store.ingest(first)
    with pytest.raises(MissingBlocks, match="blocks 2 to 3 are missing"):
        store.ingest(third)

    assert store.bounds(alice.key).length == 2
    assert store.quarantine().refusals == ()  # nothing is wrong with it


def test_a_repeated_range_is_known(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    first, second = writer.write(2), writer.write(2)
    store.ingest_all([first, second])

    for span in (first, second, joined(first, second)):
        result = store.ingest(on_the_wire(span))
        assert (result.outcome, result.added) == (Outcome.KNOWN, 0)

    assert store.bounds(alice.key).length == 4


def test_an_overlapping_range_adds_what_is_new(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    first, second = writer.write(3), writer.write(3)
    store.ingest(first)

    result = store.ingest(joined(first, second).tail(1))

    assert (result.outcome, result.added) == (Outcome.STORED, 3)
    assert store.verify(alice.key).length == 6


def test_several_ranges_go_in_together_or_not_at_all(
    store: FeedStore, writer: SpanWriter, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    good, bad = writer.write(2), SpanWriter(bob, party).write(2)

    with pytest.raises(BadSignature):
        store.ingest_all([good, replace(bad, signature=bytes(64))])

    assert store.feeds() == ()
    (refusal,) = store.quarantine().refusals
    assert refusal.feed == bob.key  # not Alice, whose range came with it
    assert store.ingest_all([]) == []
    assert [result.added for result in store.ingest_all([good, bad])] == [2, 2]


def test_the_same_range_from_two_peers_at_once_is_taken_once(store: FeedStore, writer: SpanWriter) -> None:
    span = writer.write(2)

    results = store.ingest_all([span, span])

    assert [result.outcome for result in results] == [Outcome.STORED, Outcome.KNOWN]


def test_a_head_inside_a_batch_is_refused(store: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    cut = hostile_span(alice, party, [Forged(), Forged(flags=Flag.MORE)])

    with pytest.raises(RefusedBlocks, match="stands inside a batch; ask for a longer range"):
        store.ingest(cut)
    whole = hostile_span(alice, party, [Forged(), Forged(flags=Flag.MORE), Forged(flags=Flag.CONTINUED)])
    assert store.ingest(whole).outcome is Outcome.STORED


def test_another_party_may_not_serve_the_feed(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    """Rule 4. Alice's key signed in two parties; what is held here stays one party's."""
    store.ingest(writer.write(2))
    elsewhere = SpanWriter(alice, key_pair("other party").key).write(3)

    with pytest.raises(RefusedBlocks, match="a feed belongs to one party"):
        store.ingest(elsewhere)

    assert store.bounds(alice.key) == Bounds(0, 2, None)
    assert store.fork(alice.key) is None


def test_what_does_not_verify_is_listed_and_not_stored(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    span = writer.write(2)

    with pytest.raises(BrokenChain):
        store.ingest(span.with_bodies([b"x" * 16, span.body_list()[1]], b""))
    with pytest.raises(BadEncoding):
        store.ingest_bytes(span.encode()[:-1])

    assert store.feeds() == ()
    unfit, cut = store.quarantine().refusals
    assert (unfit.feed, unfit.seq) == (cut.feed, cut.seq) == (alice.key, 0)
    assert "do not fit each other" in unfit.reason
    assert "bytes announced" in cut.reason


# -- faults


def test_a_fault_ends_the_feed_and_stays_as_evidence(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    good, bad = writer.write(3), writer.forge(Forged(), Forged(lamport=77), Forged())

    store.ingest(good)
    result = store.ingest(bad)

    assert (result.outcome, result.added, result.seq) == (Outcome.FAULT, 1, 4)
    assert "block 4: its lamport" in result.reason
    assert store.bounds(alice.key) == Bounds(0, 6, 4)
    assert [block.seq for block in store.read(alice.key)] == [0, 1, 2, 3]
    assert [span.end for span in store.spans(alice.key)][-1] == 6  # others must be able to see why
    (refusal,) = store.quarantine().refusals
    assert (refusal.seq, refusal.count, refusal.reason) == (4, 2, result.reason)
    with pytest.raises(RefusedBlocks, match="ended at 4"):
        store.ingest(writer.write(1))


def test_a_fault_is_found_alike_by_whoever_gets_the_evidence(
    open_store: OpenStore, writer: SpanWriter, alice: KeyPair
) -> None:
    near, far = open_store("near"), open_store("far")
    near.ingest(writer.write(3))
    near.ingest(writer.forge(Forged(flags=Flag.MORE), Forged(flags=Flag.CONTINUED, kind=9), Forged()))

    far.ingest_all(list(near.spans(alice.key)))

    assert near.bounds(alice.key) == far.bounds(alice.key) == Bounds(0, 6, 3)
    assert list(near.read(alice.key)) == list(far.read(alice.key))
    assert near.verify(alice.key) == far.verify(alice.key)


def test_entries_before_a_fault_count_and_those_after_it_do_not(
    store: FeedStore, writer: SpanWriter, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    seen = SpanWriter(bob, party).write(2)
    one, two = seen.block(0).entry, seen.block(1).entry

    store.ingest(writer.forge(Forged(advance=(one,)), Forged(advance=(two,), lamport=1)))

    assert store.frontier(alice.key) == {bob.key: one}


# -- beyond a pruned start


def test_a_feed_may_begin_at_a_final_cut(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    before, after = writer.write(5), writer.write(3)
    last = before.block(4)

    result = store.ingest(after, Base(4, last.hash, last.lamport))

    assert (result.outcome, result.added) == (Outcome.STORED, 3)
    assert store.bounds(alice.key) == Bounds(5, 8, None)
    assert [block.seq for block in store.read(alice.key)] == [5, 6, 7]
    assert store.ingest(before).outcome is Outcome.KNOWN
    assert store.ingest(writer.write(2)).added == 2
    assert store.verify(alice.key) == Bounds(5, 10, None)


def test_feeds_of_which_nothing_is_here_begin_at_a_final_cut(
    store: FeedStore, writer: SpanWriter, alice: KeyPair, bob: KeyPair, party: PublicKey
) -> None:
    held = SpanWriter(bob, party)
    store.ingest(held.write(2))
    last, after = writer.write(5).block(4), writer.write(3)
    bases = {bytes(alice.key): Base(4, last.hash, last.lamport), bytes(bob.key): Base(0, b"x" * 32, 1)}

    assert store.begin(party, bases) == 1
    assert store.begin(party, bases) == 0

    assert store.bounds(alice.key) == Bounds(5, 5, None)
    assert store.bounds(bob.key) == Bounds(0, 2, None), "what is held stays"
    assert store.ingest(after).added == 3
    assert store.verify(alice.key) == Bounds(5, 8, None)


def test_a_base_must_be_the_block_before(store: FeedStore, writer: SpanWriter) -> None:
    last, after = writer.write(5).block(4), writer.write(3)

    for base in (Base(3, last.hash, 5), Base(5, last.hash, 5), Base(4, b"x" * 32, 5)):
        with pytest.raises(MissingBlocks):
            store.ingest(after, base)


def test_the_lamport_of_a_base_is_checked(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    last, after = writer.write(5).block(4), writer.write(3)

    result = store.ingest(after, Base(4, last.hash, last.lamport + 1))

    assert result.outcome is Outcome.FAULT
    assert store.bounds(alice.key).end == 5


def test_a_base_beyond_what_is_held_drops_what_is_held(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    held, missing, after = writer.write(2), writer.write(3), writer.write(2)
    store.ingest(held)

    store.ingest(after, Base(4, missing.block(2).hash, missing.block(2).lamport))

    assert store.bounds(alice.key) == Bounds(5, 7, None)
    with pytest.raises(MissingBlocks, match="pruned"):
        list(store.read(alice.key, 0))
    assert store.verify(alice.key).length == 7


def test_an_ended_feed_does_not_begin_again_at_a_base(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    begun = writer.write(2)
    store.ingest(joined(begun, writer.fork().forge(Forged(version=9))))
    missing, after = writer.write(3), writer.write(2)

    with pytest.raises(RefusedBlocks, match="ended at 2"):
        store.ingest(after, Base(4, missing.block(2).hash, missing.block(2).lamport))

    assert [block.seq for block in store.read(alice.key)] == [0, 1]


# -- bodies that are not here


@settings(max_examples=settings().max_examples // 3)
@given(chosen=st.data())
def test_bodies_that_were_left_out_come_in_later(
    chosen: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    writer = SpanWriter(key_pair("alice"), key_pair("party").key)
    history = [writer.write(chosen.draw(st.integers(1, 4))) for _ in range(3)]
    whole = joined(*history)
    folder = tmp_path_factory.mktemp("store")
    with FeedStore.open(folder, durable=False) as store:
        store.ingest(whole.without_bodies())
        assert bodies(store, whole.feed) == [None] * whole.count
        wanted: list[bytes | None] = [None] * whole.count
        for _ in range(4):
            low = chosen.draw(st.integers(0, whole.count - 1))
            here = [i for i in range(low, whole.count) if chosen.draw(st.booleans())]
            states = bytes(0 if i in here else 1 for i in range(low, whole.count))
            offered = [body if i in here else None for i, body in enumerate(whole.body_list())][low:]
            assert store.ingest(whole.tail(low).with_bodies(offered, states)).outcome is Outcome.KNOWN
            for i in here:
                wanted[i] = whole.body_list()[i]
            assert bodies(store, whole.feed) == wanted
        store.ingest(whole)
        assert bodies(store, whole.feed) == whole.body_list()
        assert store.verify(whole.feed).length == whole.count


def test_an_erased_body_never_comes_back(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    span = writer.write(3)
    store.ingest(span)
    store.erase(alice.key, 1)

    assert store.ingest(span).outcome is Outcome.KNOWN

    assert store.block(alice.key, 1).state is BodyState.ERASED
    assert bodies(store, alice.key) == [span.body_list()[0], None, span.body_list()[2]]


def test_a_sender_cannot_erase_a_body_here(store: FeedStore, writer: SpanWriter, alice: KeyPair) -> None:
    """Erasure is a credential (rule 13). If a sender's word were enough, it could keep a body from us for ever."""
    span = writer.write(2)
    withheld = span.with_bodies([None, span.body_list()[1]], bytes([BodyState.ERASED, BodyState.PRESENT]))

    store.ingest_bytes(withheld.encode())
    assert store.block(alice.key, 0).state is BodyState.LEFT_OUT
    store.ingest(span)

    assert bodies(store, alice.key) == span.body_list()


def test_many_large_bodies_that_were_left_out_can_all_come_in(
    store: FeedStore, writer: SpanWriter, alice: KeyPair
) -> None:
    """Header by header they are small and would be gathered into one span, which their bodies would make too large."""
    history: list[Span] = [writer.write(1, size=(1 << 20) - 16) for _ in range(12)]
    for span in history:
        store.ingest(span.without_bodies())

    for span in history:
        store.ingest(span)

    assert [block.state for block in store.read(alice.key)] == [BodyState.PRESENT] * 12
    assert store.verify(alice.key).length == 12


@pytest.mark.parametrize("before", [False, True])
def test_of_an_ignored_feed_small_geneses_are_given_to_others_and_nothing_is_read(
    store: FeedStore, writer: SpanWriter, alice: KeyPair, before: bool
) -> None:
    small, other = Draft(Kind.GENESIS, bytes(16), b"a"), Draft(Kind.MUTATION, bytes(16), b"text")
    large = Draft(Kind.GENESIS, bytes(16), bytes(BRANCH_GENESIS_SIZE_MAX + 1))
    (only,) = writer.extend([small])
    (mixed,) = writer.extend([small, large, other, other])
    store.ingest_all([only, mixed])
    if before:
        store.erase(alice.key, 4)
    store.ignore(alice.key)
    (last,) = writer.extend([small, other])
    store.ingest(last)

    assert bodies(store, alice.key) == [None] * 7
    assert [block.message for block in store.read(alice.key)] == [store.block(alice.key, at).message for at in range(7)]
    assert {state for span in store.held(alice.key, 0, 7) for state in span.states} <= {1, 2}
    trail = store.trail(alice.key, 6, last.hash_at(6), 0, 1 << 20)
    assert all(is_complete(span) for span in trail)
    given = {
        block.seq: block.message for span in trail for block in span.blocks(0, span.count) if block.message is not None
    }
    assert given == dict.fromkeys((0, 1, 5), b"a")
    assert (store.block(alice.key, 4).state is BodyState.ERASED) is before

    store.heed(alice.key)
    assert {at for at, body in enumerate(bodies(store, alice.key)) if body is not None} == {0, 1, 5}
    store.ingest_all([only, mixed, last])
    assert [body is None for body in bodies(store, alice.key)] == [at == 4 and before for at in range(7)]
    assert store.verify(alice.key).length == 7


@pytest.mark.parametrize("parts", range(1, 6))
def test_a_second_history_is_found_wherever_it_parts(
    store: FeedStore, writer: SpanWriter, alice: KeyPair, parts: int
) -> None:
    """The held history has six stored spans; one long range is the same up to `parts` of them, and goes on otherwise.

    A store that compared only the first of these spans spliced the rest of the second history onto the first.
    """
    history = [writer.write(1, size=9_000) for _ in range(parts)]
    other = writer.fork(2)
    history += [writer.write(1, size=9_000) for _ in range(6 - parts)]
    second = [*history[:parts], *(other.write(1, size=9_000) for _ in range(8 - parts))]
    store.ingest_all(history)

    with pytest.raises(Equivocation):
        store.ingest(on_the_wire(joined(*second)))

    [record] = store.feeds(writer.party)
    assert (record.length, record.valid_length) == (6, parts)
    assert [block.hash for block in store.read(alice.key)] == [span.hash_at(span.first) for span in history[:parts]]
    assert store.verify(alice.key).length == 6
