"""Both engines on one history: control feeds in `PartyMachine` and data feeds in `Delivery` stop at the same blocks."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings, strategies as st

from antiphon.feed.header import NO_END, Entry
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.acts.act import Act
from antiphon.halo.control.known_feeds import KnownFeeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.engine.delivery import Delivery
from antiphon.testing.spans import Forged, SpanWriter, key_pair

PARTY = key_pair("party").key
PAIRS = [key_pair(f"writer {number}") for number in range(4)]
FEEDS = [bytes(pair.key) for pair in PAIRS]

#: By feed: how far it is delivered, the entry that it waits for, and why it ended.
Stops = dict[bytes, tuple[int, Entry | None, str]]


def make_spans(chance: random.Random) -> list[Span]:
    """Spans of one block each in the order of writing; some entries name blocks or lamports that are not there."""
    writers = [SpanWriter(pair, PARTY) for pair in PAIRS]
    spans: list[Span] = []
    for _ in range(chance.randint(2, 24)):
        writer = chance.choice(writers)
        seen: dict[bytes, Entry] = {}
        for span in chance.sample(spans, min(len(spans), chance.choice([0, 1, 1, 2, 3]))):
            entry = span.block(0).entry
            if entry.feed != writer.pair.key:
                seen[entry.feed] = entry._replace(
                    seq=entry.seq + (chance.random() < 0.1) * 9,
                    lamport=entry.lamport + (chance.random() < 0.1),
                    hash=bytes(32) if chance.random() < 0.1 else entry.hash,
                )
        spans.append(writer.forge(Forged(advance=tuple(sorted(seen.values())))))
    return spans


class Everybody(KnownFeeds):
    """Every feed is known: these have no credentials."""

    def welcomes(self, opening: Act) -> bool:
        return True


def control_stops(spans: list[Span], ends: dict[bytes, int]) -> Stops:
    machine = PartyMachine(PARTY, FEEDS[0])
    machine.known_feeds = Everybody(FEEDS[0])
    for feed, end in ends.items():
        machine.end_fork(feed, end)
    for span in spans:
        machine.add([span.block(0)])
    waits = {waiting.stamp.feed: waiting.entry for waiting in machine.waiting()}
    faults = {void.stamp.feed: void.reason for void in reversed(machine.voids()) if "wrong lamport" in void.reason}
    delivered = machine.timeframe()
    return {
        pair.key: (delivered.get(pair.key, -1) + 1, waits.get(pair.key), faults.get(pair.key, "")) for pair in PAIRS
    }


def data_stops(spans: list[Span], ends: dict[bytes, int]) -> Stops:
    with TemporaryDirectory() as folder, FeedStore.open(Path(folder), durable=False) as store:
        delivery = Delivery(store, OpenAuthority(store, PARTY))
        for feed in FEEDS:
            delivery.activate(feed)
        for feed, end in ends.items():
            delivery.end_fork(feed, end)
        for span in spans:
            store.ingest(span)
            delivery.wake(span.feed)
            delivery.take_branches(store.record(span.feed))
            list(delivery.pump())
        waits = {blocked.feed: blocked.waits_for for blocked in delivery.blocked()}
        lanes = [lane.state for lane in delivery.lanes.values()]
        return {state.feed: (state.position, waits.get(state.feed), state.fault) for state in lanes}


def cut(stops: Stops, ends: dict[bytes, int]) -> Stops:
    """Compare feeds up to their ends: neither delivers more of them."""
    return {feed: stop if stop[0] < ends.get(feed, NO_END) else (ends[feed], None, "") for feed, stop in stops.items()}


@settings(max_examples=60)
@given(st.integers(0, 1 << 32))
def test_control_feeds_and_data_feeds_stop_at_the_same_blocks_for_the_same_reasons(seed: int) -> None:
    chance = random.Random(seed)
    spans = make_spans(chance)
    ends = {feed: chance.randint(0, 4) for feed in FEEDS if chance.random() < 0.2}
    if chance.random() < 0.5:  # one feed after the other
        ranks = {feed: chance.random() for feed in FEEDS}
        spans.sort(key=lambda span: (ranks[span.feed], span.first))
    assert cut(control_stops(spans, ends), ends) == cut(data_stops(spans, ends), ends)
