"""The rules of headers. What breaks one is signed by its writer, so all peers find the same fault at the same place."""

from __future__ import annotations

from collections.abc import Mapping
from unittest import mock

import pytest
from hypothesis import given, strategies as st

from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed import rules
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import ADVANCE_MAX, BODY_SIZE_MAX, LAMPORT_MAX, SALT_SIZE
from antiphon.feed.rules import Fault, Verdict, batch_start, judge
from antiphon.feed.span import Span
from antiphon.testing.feed_strategies import ALICE, PARTY, forged_blocks, histories
from antiphon.testing.spans import Forged, SpanWriter, hostile_span, joined, key_pair

MORE, CONTINUED = Flag.MORE, Flag.CONTINUED
BOB, CAROL = bytes(key_pair("bob").key), bytes(key_pair("carol").key)
GOOD = Forged()


def entry(feed: bytes = BOB, seq: int = 0, lamport: int = 1) -> Entry:
    return Entry(feed, seq, lamport, bytes(32))


def verdict(span: Span, previous: int | None = 0, frontier: Mapping[bytes, Entry] | None = None) -> Verdict:
    return judge(span, previous, (frontier or {}).get)


def fault_of(*blocks: Forged, frontier: Mapping[bytes, Entry] | None = None) -> Fault | None:
    """The fault of blocks that follow two good ones, of which the last has lamport 2."""
    return verdict(hostile_span(ALICE, PARTY, [GOOD, GOOD, *blocks]), frontier=frontier).fault


@given(histories())
def test_what_an_honest_writer_signs_has_no_fault(history: list[Span]) -> None:
    lamport, frontier = 0, dict[bytes, Entry]()
    for span in history:
        judged = verdict(span, lamport, frontier)

        assert judged.fault is None
        lamport = int(span.columns["lamport"][-1])
        frontier.update(judged.moved)
    assert verdict(joined(*history)) == Verdict(None, frontier)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (Forged(version=0), "version is not known"),
        (Forged(version=2), "version is not known"),
        (Forged(kind=0), "kind is not known"),
        (Forged(kind=max(Kind) + 1), "kind is not known"),
        (Forged(flags=4), "unknown flags [feed.header]"),
        (Forged(flags=1 << 15), "unknown flags [feed.header]"),
        (Forged(seq=1), "its seq is not its position [feed.header]"),
        (Forged(seq=3), "its seq is not its position [feed.header]"),
        (Forged(seq=2**64 - 1), "its seq is not its position [feed.header]"),
        (Forged(created_ms=(1 << 62) + 1), "creation time is out of range"),
        (Forged(body=bytes(SALT_SIZE - 1)), "body size is out of bounds"),
        (Forged(body=b""), "body size is out of bounds"),
        (Forged(body_size=BODY_SIZE_MAX + 1), "body size is out of bounds"),
        (Forged(lamport=0), "not one above"),
        (Forged(lamport=2), "not one above"),
        (Forged(lamport=4), "not one above"),
        (Forged(lamport=2**64 - 1), "its lamport is above"),
        (Forged(flags=CONTINUED, lamport=2), "continues a batch that had ended"),
        (Forged(advance=(entry(lamport=5),), lamport=3), "not one above"),
        (Forged(advance=(entry(lamport=5),), lamport=7), "not one above"),
        (Forged(advance=(entry(CAROL), entry(BOB)) if BOB < CAROL else (entry(BOB), entry(CAROL))), "do not ascend"),
        (Forged(advance=(entry(BOB, 1), entry(BOB, 2))), "do not ascend"),
        (Forged(advance=(entry(bytes(ALICE.key)),)), "name its own feed"),
        (Forged(advance=(entry(seq=2**63),)), "an advance entry is out of range [feed.entries]"),
        (Forged(advance=(entry(lamport=2**63),), lamport=3), "not one above"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_header_that_breaks_a_rule_ends_the_feed_there(block: Forged, reason: str) -> None:
    fault = fault_of(block, GOOD)

    assert fault is not None
    assert fault.seq == 2
    assert fault.reason.startswith("block 2: ")
    assert reason in fault.reason


@pytest.mark.parametrize(
    "block",
    [
        Forged(created_ms=1 << 62),
        Forged(body=bytes(SALT_SIZE)),
        Forged(body_size=BODY_SIZE_MAX),
        Forged(advance=(entry(lamport=1),), lamport=3),
        Forged(advance=(entry(lamport=5),), lamport=6),
        Forged(advance=tuple(sorted((entry(BOB), entry(CAROL))))),
        *(Forged(kind=kind) for kind in Kind),
    ],
)
def test_what_stands_at_a_bound_is_right(block: Forged) -> None:
    assert fault_of(block, GOOD) is None


def test_a_lamport_has_40_bits() -> None:
    top = hostile_span(ALICE, PARTY, [Forged(advance=(entry(lamport=LAMPORT_MAX - 1),)), GOOD])

    judged = verdict(top)

    assert int(top.columns["lamport"][0]) == LAMPORT_MAX
    assert judged.fault == Fault(1, f"block 1: its lamport is above {LAMPORT_MAX} [feed.lamport]")


def test_the_lamport_before_a_span_counts() -> None:
    span = hostile_span(ALICE, PARTY, [GOOD], first=9, previous=b"h" * 32, lamport=41)

    assert verdict(span, 41).fault is None
    assert verdict(span, None).fault is None
    assert verdict(span, 40).fault == Fault(9, "block 9: its lamport is not one above what it has seen [feed.lamport]")
    assert verdict(span, 42).fault is not None


def test_so_many_entries_are_allowed_and_no_more() -> None:
    entries = tuple(entry(at.to_bytes(32, "big")) for at in range(ADVANCE_MAX + 1))

    assert fault_of(Forged(advance=entries[:-1])) is None
    fault = fault_of(Forged(advance=entries))
    assert fault is not None
    assert f"more than {ADVANCE_MAX} advance entries" in fault.reason


def test_an_entry_that_does_not_move_is_passed_over() -> None:
    """Who joins at an epoch does not know the frontier before the cut, so this cannot be a fault (rule 2)."""
    known = {BOB: entry(BOB, 7, 70)}

    for seq, lamport in [(7, 70), (7, 71), (6, 71), (0, 1)]:
        entries = tuple(sorted((entry(BOB, seq, lamport), entry(CAROL, 1))))
        judged = verdict(hostile_span(ALICE, PARTY, [Forged(advance=entries)]), frontier=known)
        assert (judged.fault, judged.moved) == (None, {CAROL: entry(CAROL, 1)})
    for seq, lamport in [(8, 70), (8, 69)]:
        moving = hostile_span(ALICE, PARTY, [Forged(advance=(entry(BOB, seq, lamport),))])
        assert verdict(moving, frontier=known).moved == {BOB: entry(BOB, seq, lamport)}
    back = [Forged(advance=(entry(BOB, 3),)), Forged(), Forged(advance=(entry(BOB, 2),))]
    assert verdict(hostile_span(ALICE, PARTY, back)).moved == {BOB: entry(BOB, 3)}


def test_good_headers_before_a_fault_still_move_the_timeframe() -> None:
    one, two = entry(BOB, 1), entry(CAROL, 1)
    judged = verdict(hostile_span(ALICE, PARTY, [Forged(advance=(one,)), Forged(advance=(two,)), Forged(version=9)]))
    within = verdict(
        hostile_span(
            ALICE,
            PARTY,
            [Forged(advance=(one,)), Forged(advance=(two,), flags=MORE), Forged(flags=CONTINUED, version=9)],
        )
    )

    assert (judged.fault, judged.moved) == (
        Fault(2, "block 2: its version is not known [feed.header]"),
        {BOB: one, CAROL: two},
    )
    assert (within.fault, within.moved) == (Fault(1, "block 2: its version is not known [feed.header]"), {BOB: one})


@pytest.mark.parametrize(
    ("blocks", "seq", "reason"),
    [
        ([Forged(flags=MORE), GOOD], 2, "block 3: the batch before it has no end [feed.batch]"),
        ([Forged(flags=MORE), Forged(flags=MORE)], 2, "block 3: the batch before it has no end [feed.batch]"),
        ([Forged(flags=CONTINUED)], 2, "block 2: it continues a batch that had ended [feed.batch]"),
        (
            [Forged(flags=MORE | CONTINUED), Forged(flags=CONTINUED)],
            2,
            "block 2: it continues a batch that had ended [feed.batch]",
        ),
        (
            [Forged(flags=MORE), Forged(flags=CONTINUED), Forged(flags=CONTINUED)],
            4,
            "block 4: it continues a batch that had ended [feed.batch]",
        ),
        (
            [Forged(flags=MORE), Forged(flags=CONTINUED, advance=(entry(),))],
            2,
            "block 3: only the first block of a batch may advance [feed.batch]",
        ),
        (
            [GOOD, Forged(flags=MORE), Forged(flags=MORE | CONTINUED), Forged(flags=CONTINUED, kind=0)],
            3,
            "block 5: its kind is not known [feed.header]",
        ),
        (
            [Forged(flags=MORE), Forged(flags=CONTINUED, lamport=4)],
            2,
            "block 3: its lamport is not one above what it has seen [feed.lamport]",
        ),
    ],
)
def test_the_feed_ends_at_the_start_of_the_batch_that_holds_the_fault(
    blocks: list[Forged], seq: int, reason: str
) -> None:
    assert fault_of(*blocks, GOOD) == Fault(seq, reason)


def test_a_span_must_not_begin_inside_a_batch() -> None:
    span = hostile_span(ALICE, PARTY, [Forged(flags=CONTINUED)], first=5, previous=b"h" * 32, lamport=8)

    assert verdict(span, 8).fault == Fault(
        5, "block 5: it continues a batch of which the beginning is missing [feed.batch]"
    )


def test_no_foreign_message_sorts_into_the_middle_of_a_batch(alice: KeyPair, bob: KeyPair, party: PublicKey) -> None:
    """Rule 3. With a lamport for each block, Bob's message (2, bob, 0) would stand between (1, …) and (3, …)."""
    writer, other = SpanWriter(alice, party), SpanWriter(bob, party)
    batch = writer.write(3, atomic=True)
    foreign = other.write(5)

    stamps = [batch.block(i).stamp for i in range(3)]

    assert len({stamp.lamport for stamp in stamps}) == 1
    assert [flag & 3 for flag in batch.columns["flags"].tolist()] == [MORE, MORE | CONTINUED, CONTINUED]
    in_order = sorted([*stamps, *(foreign.block(i).stamp for i in range(5))])
    at = in_order.index(stamps[0])
    assert in_order[at : at + 3] == stamps
    risen = [Forged(flags=MORE), Forged(flags=MORE | CONTINUED, lamport=2), Forged(flags=CONTINUED, lamport=3)]
    assert verdict(hostile_span(alice, party, risen)).fault is not None


def test_only_the_first_block_of_a_batch_advances(writer: SpanWriter, bob: KeyPair, party: PublicKey) -> None:
    seen = SpanWriter(bob, party).write(4).block(3).entry

    batch = writer.write(3, atomic=True, seen=[seen])

    assert [len(batch.block(i).advance) for i in range(3)] == [1, 0, 0]
    assert batch.columns["lamport"].tolist() == [5, 5, 5]


nearly_right = st.builds(Forged, flags=st.integers(0, 3), version=st.sampled_from([1] * 8 + [2]))


@given(st.lists(nearly_right | nearly_right | forged_blocks(), min_size=2, max_size=6), st.data())
def test_the_verdict_does_not_depend_on_where_heads_stand(blocks: list[Forged], data: st.DataObject) -> None:
    """One peer gets all under one head, another gets two ranges: the feed ends at the same block for both."""
    cut = data.draw(st.integers(1, len(blocks) - 1))
    whole = hostile_span(ALICE, PARTY, blocks)
    if blocks[cut - 1].flags & MORE:
        return  # a head inside a batch is refused, and a longer range asked for

    first = hostile_span(ALICE, PARTY, blocks[:cut])
    judged = verdict(first)
    if judged.fault is None:
        lamport = int(first.columns["lamport"][-1])
        second = hostile_span(ALICE, PARTY, blocks[cut:], first=cut, previous=first.hash_at(cut - 1), lamport=lamport)
        assert second.hash_at(second.end - 1) == whole.hash_at(whole.end - 1)
        later = verdict(second, lamport, judged.moved)
        judged = Verdict(later.fault, {**judged.moved, **later.moved})
    together = verdict(whole)

    assert (judged.fault and judged.fault.seq) == (together.fault and together.fault.seq)
    assert judged.moved == together.moved


@given(st.lists(forged_blocks(), min_size=1, max_size=6))
def test_judging_anything_signed_never_fails(blocks: list[Forged]) -> None:
    span = hostile_span(ALICE, PARTY, blocks)

    judged = verdict(span)

    if judged.fault is not None:
        assert 0 <= judged.fault.seq < span.end
        assert batch_start(span, judged.fault.seq) == judged.fault.seq


@given(st.lists(nearly_right | nearly_right | forged_blocks(), min_size=1, max_size=6), st.integers(0, 3) | st.none())
def test_few_blocks_are_judged_as_many_are(blocks: list[Forged], previous: int | None) -> None:
    span = hostile_span(ALICE, PARTY, blocks, lamport=previous or 0)

    one_by_one = verdict(span, previous)
    with mock.patch.object(rules, "_FEW", 0):
        by_column = verdict(span, previous)

    assert one_by_one == by_column


@given(histories())
def test_few_blocks_of_an_honest_writer_need_no_columns(history: list[Span]) -> None:
    assert all(rules._is_plain(span, 0) for span in history if not span.first)
