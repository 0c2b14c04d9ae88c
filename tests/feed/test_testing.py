"""The kit for adapters: `FeedStore` keeps every law, and a store that breaks one is told which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.errors import Equivocation
from antiphon.feed.block import Block
from antiphon.feed.chain import verify_span
from antiphon.feed.feed_record import Bounds
from antiphon.feed.header import Entry
from antiphon.feed.rules import judge
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Base, Ingested, Outcome
from antiphon.feed.store.quarantine import Quarantine
from antiphon.testing.feed_store_laws import LAWS, run_feed_store_tests
from antiphon.testing.spans import Forged, SeededRandomness, SpanWriter, StillClock, drafts, hostile_span, key_pair


def test_a_feed_store_keeps_every_law(tmp_path: Path) -> None:
    laws = run_feed_store_tests(lambda name: FeedStore.open(tmp_path / name, durable=False))

    assert len(laws) == len(LAWS) >= 12


class ForgetsSeen(FeedStore):
    def _append(
        self,
        pair: Any,
        party: bytes,
        drafts: Any,
        seen: Any,
        atomic: bool,
        created_ms: int | None = None,
        expect: Any = None,
    ) -> Any:
        return super()._append(pair, party, drafts, (), atomic, created_ms)


class ErasesNothing(FeedStore):
    def erase(self, feed: bytes, seq: int) -> None:
        pass


class TakesForks(FeedStore):
    def ingest(self, span: Span, base: Base | None = None, *, source: bytes = bytes(32)) -> Ingested:
        try:
            return super().ingest(span, base, source=source)
        except Equivocation:
            return Ingested(Outcome.KNOWN, 0)


class ListsNothing(FeedStore):
    def quarantine(self) -> Quarantine:
        return Quarantine((), 0)


class PrunesNothing(FeedStore):
    def prune(self, feed: bytes, before: int) -> Bounds:
        return replace(self.bounds(feed), start=min(before, 2))


class ReadsPastTheEnd(FeedStore):
    def read(self, feed: bytes, start: int | None = None, stop: int | None = None) -> Iterator[Block]:
        for span in self.spans(feed, start):
            for index in range(span.count):
                if stop is None or span.first + index < stop:
                    yield span.block(index)


class LosesLateBodies(FeedStore):
    def ingest(self, span: Span, base: Base | None = None, *, source: bytes = bytes(32)) -> Ingested:
        known = {record.feed: record.length for record in self.feeds()}
        return super().ingest(span.without_bodies() if known.get(span.feed) == span.end else span, base, source=source)


class WritesBatchesSingly(FeedStore):
    def append(
        self,
        pair: Any,
        party: bytes,
        drafts: Any,
        *,
        seen: Any = (),
        atomic: bool = False,
        created_ms: int | None = None,
        expect: tuple[int, int] | None = None,
    ) -> Any:
        return super().append(pair, party, drafts, seen=seen)


@pytest.mark.parametrize(
    ("store", "law"),
    [
        (ForgetsSeen, "lamports and advance are set"),
        (ErasesNothing, "erased bodies are gone"),
        (TakesForks, "a fork is cut"),
        (ListsNothing, "is listed and not stored"),
        (PrunesNothing, "pruning forgets"),
        (ReadsPastTheEnd, "a fault ends a feed"),
        (LosesLateBodies, "bodies may come later"),
        (WritesBatchesSingly, "lamports and advance are set"),
    ],
)
def test_a_store_that_breaks_a_law_is_told_which(store: type[FeedStore], law: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=law):
        run_feed_store_tests(lambda name: store.open(tmp_path / name, durable=False))


def test_an_error_inside_a_law_is_told_with_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="what is appended is read: it raised StoreError: the store at"):
        run_feed_store_tests(lambda name: FeedStore.open(tmp_path / name, readonly=True))


def test_forged_blocks_are_honest_where_nothing_else_is_said() -> None:
    pair, party = key_pair("alice"), key_pair("party").key
    entry = Entry(b"b" * 32, 1, 40, bytes(32))

    span = hostile_span(pair, party, [Forged(), Forged(advance=(entry,)), Forged()])

    assert judge(verify_span(span), 0, lambda _: None).fault is None
    assert span.columns["lamport"].tolist() == [1, 41, 42]


def test_a_writer_in_memory_signs_what_a_store_signs(tmp_path: Path) -> None:
    pair, party = key_pair("alice"), key_pair("party").key
    messages = drafts(3)

    (span,) = SpanWriter(pair, party, seed=5).extend(messages, atomic=True)

    with FeedStore.open(tmp_path / "store", clock=StillClock(), randomness=SeededRandomness(5)) as store:
        store.create(pair.key, party)
        store.append(pair, party, messages, atomic=True)
        assert next(store.spans(pair.key)) == span
