"""A party of many writers, for bench/live.py: a device catches up with a few new messages, and then writes one.

The measured devices have the live engine, credentials, and stores on a disk: the founder's, which writes, and another
one, which only receives. All other writers are a `Crowd`. Four of them are at work, as in real histories: a message
lists each feed that has moved since its writer last wrote, so if all wrote in turn, each message would list all feeds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import Any

import antiphon
from antiphon.feed import span as spans
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.control.machine import PartyMachine
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.live.processor import PartyProcessor
from antiphon.testing.crowd import Crowd
from antiphon.testing.peers import Peer
from harness import live_work

NEWS = live_work.WRITERS_ROUND - 1  # messages of as many others that the device catches up with before it writes
WARM_UP = 3  # rounds that are not counted: the first message of a writer lists all feeds
OPENED = 5

now = time.perf_counter


class Sums:
    """Seconds of the parts of all rounds."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("ingest", "catch_up", "write"), 0.0)
        self._began = now()

    def begin(self) -> None:
        self._began = now()

    def end(self, part: str) -> None:
        """Add the time since `begin`, or since the last part."""
        at = now()
        self.seconds[part] += at - self._began
        self._began = at


def writers(folder: str, count: int, rounds: int) -> dict[str, Any]:
    """Return the seconds of each part, in a party of `count` writers."""
    home = Path(folder)
    with ExitStack() as stack:
        founder = Peer("founder", home / "founder", ModelFactory.standard(), founder=None, open_party=None)
        stack.callback(founder.close)
        crowd = stack.enter_context(Crowd(founder, home / "crowd", count - 1))
        founder.take(crowd.new_spans())
        reader = Reader(founder, home / "reader", stack)
        sums = Sums()
        for nth in range(rounds + WARM_UP):
            if nth == WARM_UP:
                reader.take(founder)
                sums = Sums()
            crowd.write(NEWS, active=NEWS)
            wire = [span.encode() for span in crowd.new_spans()]
            sums.begin()
            founder.store.ingest_all([spans.decode(data) for data in wire])
            sums.end("ingest")
            founder.party.process()
            sums.end("catch_up")
            stamp = founder.party.item(crowd.items[nth % NEWS]).edit("set", "title", nth)
            sums.end("write")
            crowd.see(founder.store.block(stamp.feed, stamp.seq).entry)
        received, messages = reader.take(founder)
        assert messages == rounds * (NEWS + 1)
        assert not founder.party.refused()
        items = crowd.items[:NEWS]
        assert [reader.party.snapshot(item) for item in items] == [founder.party.snapshot(item) for item in items]
        return {**sums.seconds, "receive": received, **reader.open_again()}


def home(folder: str, count: int, rounds: int) -> dict[str, Any]:
    """Return the least CPU seconds of opening a home of the founder of a party of `count` writers, which was closed.

    `opened`: the home, the party and the value of one item. `party`: the party alone. `first`: the first write then.
    """
    place = Path(folder)
    with antiphon.open(place / "home", unprotected=True) as store:
        party = store.create_party("Club")
        with Crowd(party, place / "crowd", count - 1) as crowd:
            store.manager.feeds.ingest_all(crowd.new_spans())
            party.refresh()
            crowd.write(10 * NEWS, active=NEWS)
            store.manager.feeds.ingest_all(crowd.new_spans())
            party.refresh()
    found: dict[str, list[float]] = defaultdict(list)
    for nth in range(rounds + 1):
        start = process_time()
        with antiphon.open(place / "home") as store:
            began = process_time()
            party = store.party("Club")
            found["party"].append(process_time() - began)
            assert party.item(crowd.items[0]).value
            found["opened"].append(process_time() - start)
            assert party.processor.rest() is not None
            if nth == rounds:
                began = process_time()
                party.item(crowd.items[0]).item.edit("set", "title", nth)
                found["first"].append(process_time() - began)
    return {"opened": min(found["opened"][1:]), "party": min(found["party"][1:]), "first": found["first"][-1]}


class Reader:
    """A device that receives what the founder's holds."""

    def __init__(self, founder: Peer, folder: Path, stack: ExitStack) -> None:
        assert founder.member is not None
        self._path = folder / "items.db"
        self._models = ModelFactory.standard()
        self._key = founder.party.key
        self._store = stack.enter_context(FeedStore.open(folder / "feeds"))
        self._genesis_feed = founder.member.genesis_feed
        self._authority = self._new_authority()
        self.party = self._open()
        stack.callback(lambda: self.party.close())

    def _new_authority(self) -> PartyAuthority:
        return PartyAuthority(self._store, PartyMachine(self._key, self._genesis_feed))

    def _open(self) -> PartyProcessor:
        return PartyProcessor(self._key, self._store, self._authority, path=self._path, models=self._models)

    def take(self, founder: Peer) -> tuple[float, int]:
        """Take in all new blocks, and process them. Return the seconds of the latter, and the number of messages."""
        have = {record.feed: record.length for record in self._store.feeds(self._key)}
        self._store.ingest_all(founder.ranges(have))
        self._authority.look()
        start = now()
        messages = self.party.process()
        return now() - start, messages

    def open_again(self) -> dict[str, float]:
        """Return the seconds that opening takes: warm, warm with the control feeds (`whole`), and cold for a message.

        For `warm` and `cold` the control feeds have been folded before.
        """
        warm = []
        for _ in range(OPENED):
            self.party.close()
            start = now()
            self.party = self._open()
            warm.append(now() - start)
        self.party.close()
        start = now()
        self._authority = self._new_authority()
        self._authority.look()
        self.party = self._open()
        whole = now() - start
        self.party.delete()
        start = now()
        self.party = self._open()
        cold = now() - start
        messages = sum(seq + 1 for seq in self.party.timeframe.values())
        return {"warm": sorted(warm)[OPENED // 2], "whole": whole, "cold": cold / messages}
