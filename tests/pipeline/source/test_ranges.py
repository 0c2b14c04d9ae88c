"""Spans verified together give the same faults as spans verified one by one; spans before a fault are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from antiphon.core.errors import CorruptBlock
from antiphon.core.keys import KeyPair
from antiphon.feed.block import BodyState
from antiphon.feed.chain import sign_head, span_hashes
from antiphon.feed.encoder import Draft
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import HEADER, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.reader import FeedReader
from antiphon.feed.writer import FeedWriter
from antiphon.pipeline.source import ranges
from antiphon.pipeline.source.ranges import Fault, Range, read_range

PARTY, PAIR = KeyPair.from_seed(b"p" * 32).key, KeyPair.from_seed(b"f" * 32)
SPANS, EACH, HURT = 12, 300, 7


@dataclass
class Shelf(FeedReader):
    """A store that holds these spans, whatever they are."""

    kept: list[Span]
    known: FeedRecord

    def record(self, feed: bytes) -> FeedRecord:
        return self.known

    def runs(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[tuple[Span, int, int]]:
        for span in self.kept:
            if not span.headers:
                raise CorruptBlock("it cannot be read", feed=feed, seq=span.first)
            yield span, 0, span.count


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    with FeedStore.open(tmp_path_factory.mktemp("feeds"), durable=False) as store:
        writer = FeedWriter.open(store, PAIR, PARTY)
        for nth in range(SPANS):
            writer.extend([Draft(Kind.MUTATION, bytes(16), b"%d %d" % (nth, place)) for place in range(EACH)])
        spans = [span for span, _, _ in store.runs(PAIR.key)]
        return Shelf(spans, store.record(PAIR.key))


def signed(span: Span) -> Span:
    """A span as its own writer would sign it, hashes and all."""
    hashes = span_hashes(replace(span, hashes=b""))
    return replace(span, hashes=hashes, signature=sign_head(PAIR, PARTY, span.end, hashes[-32:]))


def with_header(span: Span, index: int, name: str, value: int) -> Span:
    import numpy as np

    headers = np.frombuffer(span.headers, dtype=HEADER).copy()
    headers[name][index] = value
    return replace(span, headers=headers.tobytes())


HURTS: dict[str, Callable[[Span], Span]] = {
    "nothing": lambda span: span,
    "a body": lambda span: replace(span, bodies=span.bodies[:-1] + b"?"),
    "a header": lambda span: with_header(span, 5, "created_ms", 77),
    "a hash": lambda span: replace(span, hashes=span.hashes[:-1] + b"?"),
    "the signature": lambda span: replace(span, signature=bytes(64)),
    "the link": lambda span: replace(span, previous=bytes(32)),
    "another party": lambda span: replace(span, party=bytes(32)),
    "sizes that do not fit": lambda span: replace(span, bodies=span.bodies + b"?"),
    "a lamport, signed": lambda span: signed(with_header(span, 9, "lamport", 1 << 20)),
    "a batch from before, signed": lambda span: signed(with_header(span, 0, "flags", 2)),
    "what cannot be read": lambda span: replace(span, headers=b""),
    "bodies that are left out": lambda span: span.without_bodies(),
    "an erased body": lambda span: span.with_bodies(
        [None, *span.body_list()[1:]], bytes([BodyState.ERASED]) + bytes(span.count - 1)
    ),
}


def found(shelf: Shelf) -> tuple[list[Span], list[Fault]]:
    faults: list[Fault] = []
    whole = Range("home", PARTY, PAIR.key, 0, SPANS * EACH)
    return list(read_range(shelf, whole, faults.append)), faults


@pytest.mark.parametrize("hurt", HURTS)
def test_spans_together_tell_what_each_by_itself_tells(
    shelf: Shelf, hurt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(shelf.kept) >= SPANS
    kept = [HURTS[hurt](span) if nth == HURT else span for nth, span in enumerate(shelf.kept)]
    hurt_shelf = replace(shelf, kept=kept)
    together = found(hurt_shelf)
    monkeypatch.setattr(ranges, "CHECKED_BLOCKS", 1)
    monkeypatch.setattr(ranges, "_all_right", lambda spans, previous, lamport: False)

    assert together == found(hurt_shelf)
    harmless = hurt in ("nothing", "bodies that are left out", "an erased body")
    assert len(together[0]) == (len(kept) if harmless else HURT)
    assert bool(together[1]) is not harmless
