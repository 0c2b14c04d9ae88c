"""From drafts to blocks: lamport and advance as receivers check them, and spans within their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import FeedRetired, InvalidInput, TooLarge
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.chain import verify_span
from antiphon.feed.encoder import Append, Draft, Written, build, encode_blocks, encode_columns
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.header import HEADER_SIZE, Entry, Flag, Kind, encode_entries
from antiphon.feed.limits import (
    ADVANCE_MAX,
    BODY_SIZE_MAX,
    LAMPORT_MAX,
    SALT_SIZE,
    SPAN_BLOCKS_MAX,
    SPAN_HEADERS_SIZE_MAX,
)
from antiphon.feed.rules import judge
from antiphon.feed.span import Span, decode
from antiphon.testing.feed_strategies import ALICE, PARTY, entries, messages
from antiphon.testing.spans import SpanWriter, drafts, joined

BOB, CAROL = b"b" * 32, b"c" * 32
RECORD = FeedRecord(feed=bytes(ALICE.key), party=bytes(PARTY), writable=True)


def entry(feed: bytes = BOB, seq: int = 0, lamport: int = 1) -> Entry:
    return Entry(feed, seq, lamport, bytes(32))


def append(messages: Sequence[Draft], seen: Sequence[Entry] = (), *, atomic: bool = False) -> Append:
    salts = bytes(SALT_SIZE * len(messages))
    return Append(ALICE, PARTY, messages, seen, atomic=atomic, created_ms=5, salts=salts)


def lamports(span: Span) -> list[int]:
    return [int(lamport) for lamport in span.columns["lamport"]]


def test_lamports_rise_by_one_and_a_batch_shares_one(writer: SpanWriter) -> None:
    assert lamports(writer.write(3)) == [1, 2, 3]
    assert lamports(writer.write(3, atomic=True)) == [4, 4, 4]
    assert lamports(writer.write(2)) == [5, 6]


def test_a_lamport_is_one_above_what_was_seen(writer: SpanWriter) -> None:
    writer.write(2)

    span = writer.write(2, seen=[entry(BOB, 3, 40), entry(CAROL, 9, 30)])

    assert lamports(span) == [41, 42]
    assert span.block(0).advance == (entry(BOB, 3, 40), entry(CAROL, 9, 30))
    assert span.block(1).advance == ()


def test_only_what_moved_is_in_the_header(writer: SpanWriter) -> None:
    writer.write(1, seen=[entry(BOB, 3, 4)])

    again = writer.write(1, seen=[entry(BOB, 3, 4), entry(BOB, 2, 3), entry(CAROL, 0, 1)])

    assert again.block(0).advance == (entry(CAROL, 0, 1),)


def test_of_two_entries_for_a_feed_the_later_one_counts(writer: SpanWriter) -> None:
    span = writer.write(1, seen=[entry(BOB, 5, 9), entry(BOB, 3, 7)])

    assert span.block(0).advance == (entry(BOB, 5, 9),)


def test_an_entry_that_receivers_would_refuse_is_not_written(writer: SpanWriter) -> None:
    """An epoch picked the other branch of an equivocator: its seq is above, its lamport below what was seen."""
    writer.write(1, seen=[entry(BOB, 5, 500)])

    span = writer.write(1, seen=[entry(BOB, 6, 3)])

    assert span.block(0).advance == ()
    assert judge(span, 501, {BOB: entry(BOB, 5, 500)}.get).fault is None


def test_the_own_feed_is_never_in_the_header(writer: SpanWriter, alice: KeyPair) -> None:
    seen = writer.write(1).block(0).entry

    assert writer.write(1, seen=[seen]).block(0).advance == ()
    assert seen.feed == alice.key


def test_so_many_entries_go_into_one_header() -> None:
    seen = [entry(at.to_bytes(32, "big"), lamport=at + 1) for at in range(ADVANCE_MAX + 5)]

    built = build(RECORD, [append(drafts(2), seen)], lambda _: None)

    (span,) = built.spans
    assert len(span.block(0).advance) == ADVANCE_MAX
    assert judge(span, 0, lambda _: None).fault is None


@given(
    st.lists(st.tuples(st.lists(messages(), min_size=1, max_size=4), st.lists(entries(), max_size=4), st.booleans()))
)
def test_whatever_is_appended_a_receiver_finds_it_right(
    plan: list[tuple[list[Draft], list[Entry], bool]],
) -> None:
    writer = SpanWriter(ALICE, PARTY)
    lamport, frontier = 0, dict[bytes, Entry]()
    for batch, seen, atomic in plan:
        for span in writer.extend(batch, atomic=atomic, seen=seen):
            judged = judge(verify_span(decode(span.encode())), lamport, frontier.get)
            assert judged.fault is None
            frontier.update(judged.moved)
            lamport = lamports(span)[-1]
            assert [span.block(i).message for i in range(span.count)] == [draft.message for draft in batch]
            assert [(span.block(i).kind, span.block(i).item) for i in range(span.count)] == [d[:2] for d in batch]
    assert frontier == writer.frontier


@given(
    st.lists(messages(), min_size=1, max_size=60),
    st.lists(entries(), max_size=4),
    st.booleans(),
    st.binary(min_size=32, max_size=32),
    st.data(),
)
def test_columns_encode_the_same_bytes_as_the_loop_over_blocks(
    batch: list[Draft], seen: list[Entry], atomic: bool, before: bytes, data: st.DataObject
) -> None:
    salts = data.draw(st.binary(min_size=SALT_SIZE * len(batch), max_size=SALT_SIZE * len(batch)))
    made = Append(ALICE, PARTY, batch, (), atomic=atomic, created_ms=5, salts=salts)
    start = 0 if made.atomic else data.draw(st.integers(0, len(batch) - 1))
    stop = len(batch) if made.atomic else data.draw(st.integers(start + 1, len(batch)))
    place = (made, start, stop, (bytes(128), before, 1 << 40, 7), encode_entries(seen))

    one_by_one, by_columns = encode_blocks(*place), encode_columns(*place)

    assert [b"".join(pieces) for pieces in one_by_one] == [b"".join(pieces) for pieces in by_columns]


def test_several_appends_share_one_signature() -> None:
    appends = [
        append(drafts(2)),
        append(drafts(3), [entry(BOB, 1, 7)], atomic=True),
        append(drafts(1), [entry(BOB, 1, 7)]),
    ]

    built = build(RECORD, appends, lambda _: None)

    (span,) = built.spans
    assert lamports(span) == [1, 2, 8, 8, 8, 9]
    assert [list(written) for written in built.written] == [
        [Stamp(1, ALICE.key, 0), Stamp(2, ALICE.key, 1)],
        [Stamp(8, ALICE.key, 2), Stamp(8, ALICE.key, 3), Stamp(8, ALICE.key, 4)],
        [Stamp(9, ALICE.key, 5)],
    ]
    assert built.moved == {BOB: entry(BOB, 1, 7)}
    assert (built.record.length, built.record.lamport) == (6, 9)


def test_each_body_begins_with_its_own_salt() -> None:
    salts = bytes(range(48))

    built = build(
        RECORD, [Append(ALICE, PARTY, drafts(3), (), atomic=False, created_ms=5, salts=salts)], lambda _: None
    )

    bodies = built.spans[0].body_list()
    assert [body[:SALT_SIZE] for body in bodies if body] == [salts[:16], salts[16:32], salts[32:]]
    assert built.spans[0].block(0).created_ms == 5


@pytest.mark.parametrize(
    ("count", "size", "heads"),
    [
        (SPAN_BLOCKS_MAX, 1, 1),
        (SPAN_BLOCKS_MAX + 1, 1, 2),
        (3 * SPAN_BLOCKS_MAX, 1, 3),
        (17, BODY_SIZE_MAX - SALT_SIZE, 3),
    ],
)
def test_a_large_append_is_split_into_signed_spans(count: int, size: int, heads: int) -> None:
    built = build(RECORD, [append(drafts(count, size), [entry()])], lambda _: None)

    assert len(built.spans) == heads
    lamport, seq, frontier = 0, 0, dict[bytes, Entry]()
    for span in built.spans:
        checked = verify_span(decode(span.encode()))
        judged = judge(checked, lamport, frontier.get)
        assert (checked.first, judged.fault) == (seq, None)
        frontier.update(judged.moved)
        lamport, seq = lamports(span)[-1], span.end
    assert seq == count
    assert list(built.written[0]) == [Stamp(at + 2, ALICE.key, at) for at in range(count)]


def test_a_batch_is_never_split() -> None:
    most = 4000
    appends = [append(drafts(1000, 1)), append(drafts(most, 1), atomic=True), append(drafts(1000, 1))]

    built = build(RECORD, appends, lambda _: None)

    assert [(span.first, span.end) for span in built.spans] == [(0, 1000), (1000, 1000 + most + 96), (5096, 6000)]
    flags = built.spans[1].columns["flags"][:most]
    assert flags[0] == Flag.MORE
    assert flags[-1] == Flag.CONTINUED
    assert judge(joined(built.spans[1]), 1000, lambda _: None).fault is None


def test_a_batch_that_no_head_could_cover_is_refused() -> None:
    fits = (SPAN_HEADERS_SIZE_MAX - 800 * 80) // HEADER_SIZE
    seen = [entry(at.to_bytes(32, "big")) for at in range(800)]

    append(drafts(SPAN_BLOCKS_MAX, 1), atomic=True)
    append(drafts(fits, 1), seen, atomic=True)
    for count, size, entries_ in [
        (SPAN_BLOCKS_MAX + 1, 1, []),
        (fits + 1, 1, seen),
        (8, BODY_SIZE_MAX - SALT_SIZE, []),
    ]:
        with pytest.raises(TooLarge, match="so split it"):
            append(drafts(count, size), entries_, atomic=True)


def test_a_batch_of_one_is_no_batch(writer: SpanWriter) -> None:
    assert writer.write(1, atomic=True).columns["flags"].tolist() == [0]


@pytest.mark.parametrize(
    ("draft", "error", "says"),
    [
        (Draft(Kind.MUTATION, bytes(16), bytes(BODY_SIZE_MAX - SALT_SIZE + 1)), TooLarge, "belongs into blobs"),
        (Draft(Kind.MUTATION, bytes(15), b""), InvalidInput, "an item id has 16 bytes"),
        (Draft(0, bytes(16), b""), InvalidInput, "kind of block"),  # type: ignore[arg-type]
        (Draft(6, bytes(16), b""), InvalidInput, "kind of block"),  # type: ignore[arg-type]
    ],
)
def test_a_draft_that_no_receiver_would_take_is_refused(draft: Draft, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        append([*drafts(2), draft])


def test_an_append_needs_drafts_salts_and_a_time() -> None:
    with pytest.raises(InvalidInput, match="takes drafts"):
        append([])
    with pytest.raises(InvalidInput, match="16 bytes of salt"):
        Append(ALICE, PARTY, drafts(2), (), atomic=False, created_ms=1, salts=bytes(16))
    for created_ms in (-1, 1 << 62):
        with pytest.raises(InvalidInput, match="and a time"):
            Append(ALICE, PARTY, drafts(1), (), atomic=False, created_ms=created_ms, salts=bytes(16))


def test_a_lamport_that_is_out_of_range_is_refused() -> None:
    build(RECORD, [append(drafts(1), [entry(lamport=LAMPORT_MAX - 2)])], lambda _: None)
    with pytest.raises(InvalidInput, match="out of range"):
        build(RECORD, [append(drafts(1), [entry(lamport=LAMPORT_MAX - 1)])], lambda _: None)
    with pytest.raises(InvalidInput, match="out of range"):
        build(replace(RECORD, lamport=LAMPORT_MAX), [append(drafts(1))], lambda _: None)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (replace(RECORD, retired=True), "restored or closed"),
        (replace(RECORD, writable=False), "came from peers"),
        (replace(RECORD, length=5).ended(3, End.FORK), "has ended"),
        (RECORD.ended(0, End.FORK), "has ended"),
    ],
)
def test_a_feed_that_must_not_be_written_is_not(record: FeedRecord, why: str) -> None:
    with pytest.raises(FeedRetired, match=why):
        build(record, [append(drafts(1))], lambda _: None)


def test_a_feed_is_written_in_its_own_party_only(alice: KeyPair, party: PublicKey) -> None:
    with pytest.raises(InvalidInput, match=f"belongs to party {BOB.hex()[:8]}"):
        build(replace(RECORD, party=BOB), [append(drafts(1))], lambda _: None)


def test_stamps_are_a_sequence() -> None:
    written = Written(BOB, 10, range(3, 7))

    assert len(written) == 4
    assert written[0] == Stamp(3, BOB, 10)
    assert written[-1] == Stamp(6, BOB, 13)
    assert written[1:3] == [Stamp(4, BOB, 11), Stamp(5, BOB, 12)]
    assert list(written) == written[:]
    with pytest.raises(IndexError):
        written[4]
