"""A run reads a home as of one moment. Blocks that a peer writes during the run are left to the next one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pyspark.sql import SparkSession
from tests.party.forked import Forked, confront

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.timeframe import Timeframe
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.credentials.claims import Role
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.plan.party_plan import PartyPlan, Planner
from antiphon.testing.peers import Peer, Peers

#: Writes numbers into a home, one message each, until its input ends; then it says how far it came.
WRITER = """
import sys, threading
import antiphon

over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
with antiphon.open(sys.argv[1], unprotected=True) as store:
    diary = store.create_party("diary").processor.create("antiphon/object")
    number = 0
    while not over.is_set():
        number += 1
        diary.edit("set", "number", number)
        if number == 20:
            print("begun", flush=True)
print(number, flush=True)
"""


@contextmanager
def writer(home: Path) -> Iterator[tuple[IO[str], IO[str]]]:
    """A live process that writes, by its input and output."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "begun\n"
            yield process.stdin, process.stdout
        finally:
            process.kill()


def look(spark: SparkSession, home: Path) -> tuple[int, int, Any]:
    """How many messages to the diary a run counts, how many blocks are lost, and which number the diary has."""
    with Run.begin(spark, home) as run:
        (party,) = run.report().parties
        (row,) = [row for row in run.items.collect() if bytes(row.item) != SYSTEM_ITEM]  # the party has a name
    item = item_codec.restore(bytes(row.snapshot), ModelFactory.standard())
    assert item.model is not None
    return row.messages, party.account.lost, item.model.value(item.state)


def test_a_run_sees_one_moment_of_a_home_to_which_a_live_process_writes(spark: SparkSession, tmp_path: Path) -> None:
    with writer(tmp_path / "home") as (given, said):
        first = look(spark, tmp_path / "home")
        second = look(spark, tmp_path / "home")
        given.close()
        last = int(said.readline())
    third = look(spark, tmp_path / "home")

    for count, lost, value in (first, second, third):
        assert lost == 0
        assert value == {"number": count - 1}  # the first message is the genesis
    assert 20 < first[0] < second[0] < third[0] == last + 1


def plan(store: FeedReader, peer: Peer, until: Timeframe | None = None) -> PartyPlan:
    return Planner(str(peer.folder), store, peer.blobs, bytes(peer.party.key), until=until, exact=True).plan()


def test_a_plan_has_nothing_that_came_after_the_moment_it_is_for(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        item = bob.party.create("antiphon/object")
        peers.sync()
        before = plan(alice.store, alice)
        late = peers.add("late")
        late.party.create("antiphon/object")
        item.edit("set", "title", "later")
        assert alice.member is not None
        alice.member.demote(bob.key, [Role.READER])
        item.edit("set", "title", "later still")
        peers.sync()
        after = plan(alice.store, alice)

        assert plan(alice.store, alice, before.anchor) == before
        assert plan(alice.store, alice, after.anchor) == after != before


def test_blocks_beyond_the_end_of_a_feed_are_held_at_any_moment(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        forked = Forked(peers, longer=2)
        confront(peers)
        carol = forked.carol
        read = {record.feed: record.valid_length - 1 for record in carol.store.feeds() if record.valid_length}
        now = plan(carol.store, carol)
        (lane,) = [lane for lane in now.lanes if lane.feed == forked.feed]

        assert lane.position == lane.end < lane.length
        assert plan(carol.store, carol, Timeframe(read)) == now
