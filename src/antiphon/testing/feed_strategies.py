"""Hypothesis strategies for feeds: honest histories, and spans in which any header may be wrong.

from antiphon.testing.feed_strategies import histories

@given(histories())
def test_something(spans: list[Span]) -> None: ...
"""

from __future__ import annotations

from hypothesis import strategies as st

from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.testing.spans import Forged, SpanWriter, key_pair

PARTY = key_pair("party").key
ALICE = key_pair("alice")

kinds = st.sampled_from(Kind)
items = st.sampled_from([bytes([number] * 16) for number in range(4)])
hashes = st.binary(min_size=32, max_size=32)
u64s = st.integers(0, 2**64 - 1)


def messages(size_max: int = 40) -> st.SearchStrategy[Draft]:
    return st.builds(Draft, kinds, items, st.binary(max_size=size_max))


def entries(lamport_max: int = 1000) -> st.SearchStrategy[Entry]:
    """Entries for feeds of some other writers."""
    feeds = st.sampled_from([bytes(key_pair(name).key) for name in ("bob", "carol", "dave")])
    known = st.sampled_from([bytes([number] * 32) for number in range(4)])
    return st.builds(Entry, feeds, st.integers(0, 1000), st.integers(1, lamport_max), known)


@st.composite
def histories(
    draw: st.DrawFn, pair: KeyPair = ALICE, party: bytes = PARTY, spans_max: int = 3, blocks_max: int = 4
) -> list[Span]:
    """Consecutive honest spans of one feed, some of them batches, some with entries."""
    writer = SpanWriter(pair, party, seed=draw(st.integers(0, 999)))
    spans: list[Span] = []
    for _ in range(draw(st.integers(1, spans_max))):
        batch = draw(st.lists(messages(), min_size=1, max_size=blocks_max))
        seen = draw(st.lists(entries(), max_size=2))
        spans += writer.extend(batch, atomic=draw(st.booleans()), seen=seen)
    return spans


def forged_blocks() -> st.SearchStrategy[Forged]:
    """Blocks whose fields are right about as often as they are wrong."""
    small = st.integers(0, 12)
    return st.builds(
        Forged,
        body=st.binary(min_size=0, max_size=40),
        version=st.sampled_from([1, 1, 1, 0, 2]),
        kind=st.sampled_from([1, 2, 3, 4, 5, 5, 0, 6, 255]),
        flags=st.sampled_from([0, 0, 1, 2, 3, 4, 65535]),
        seq=st.none() | small | u64s,
        lamport=st.none() | st.none() | small | u64s,
        created_ms=st.sampled_from([0, 1000, 1 << 62, (1 << 64) - 1]),
        body_size=st.none() | st.none() | st.integers(0, 2**32 - 1),
        advance=st.lists(entries(lamport_max=12), max_size=3).map(tuple),
    )
