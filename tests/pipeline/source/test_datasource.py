"""The data source returns each block of a home once, with the selected columns; faults become rows."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession, functions as f
from tests.pipeline.helpers import flip

from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.header import Flag
from antiphon.pipeline.source.home import write_anchor
from antiphon.testing.peers import Peer, Peers


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with Peers(tmp_path_factory.mktemp("peers")) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        for peer in (alice, bob):
            for _ in range(3):
                item = peer.party.create("antiphon/object")
                with peer.party.batch():
                    for number in range(7):
                        item.edit("set", f"key {number}", number)
            peers.sync()
        yield alice


def blocks_of(peer: Peer) -> list[Block]:
    return [block for record in peer.store.feeds() for block in peer.store.read(record.feed)]


def read(spark: SparkSession, peer: Peer, **options: str) -> DataFrame:
    return spark.read.format("antiphon").options(**options).load(str(peer.folder))


def plan_of(frame: DataFrame) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain()
    return said.getvalue()


def test_every_block_of_a_home_is_a_row(spark: SparkSession, alice: Peer) -> None:
    rows = read(spark, alice, columns="party,feed,seq,lamport,kind,flags,created_ms,item,hash,body_hash,body").collect()
    wanted = {
        (
            *(bytes(alice.party.key), block.feed, block.seq, block.lamport, int(block.kind), int(block.flags)),
            *(block.created_ms, block.item, block.hash, block.body_hash, block.body),
        )
        for block in blocks_of(alice)
    }

    assert len(rows) == len(wanted)
    assert {tuple(bytes(part) if isinstance(part, bytearray) else part for part in row) for row in rows} == wanted


def test_a_message_is_a_body_without_its_salt(spark: SparkSession, alice: Peer) -> None:
    rows = read(spark, alice, columns="feed,seq,message", blocks="10").collect()

    assert {(bytes(row.feed), row.seq): bytes(row.message) for row in rows} == {
        (block.feed, block.seq): block.message for block in blocks_of(alice)
    }


def test_small_tasks_read_the_same_as_large_ones(spark: SparkSession, alice: Peer) -> None:
    small, large = (read(spark, alice, blocks=size) for size in ("4", "100000"))

    assert small.rdd.getNumPartitions() > large.rdd.getNumPartitions()
    assert small.exceptAll(large).count() == 0
    assert small.count() == large.count() == len(blocks_of(alice))


def test_filters_decide_what_is_read(spark: SparkSession, alice: Peer) -> None:
    feed = max(alice.store.feeds(), key=lambda record: record.length).feed
    found = read(spark, alice, columns="feed,seq,item").where(
        (f.col("feed") == f.lit(feed)) & f.col("seq").between(2, 4)
    )

    assert sorted(row.seq for row in found.collect()) == [2, 3, 4]
    assert "Filter (" not in plan_of(found)


def test_an_anchor_says_where_to_begin_and_where_to_end(spark: SparkSession, alice: Peer) -> None:
    feed = max(alice.store.feeds(), key=lambda record: record.length).feed
    rows = read(
        spark, alice, after=write_anchor(Timeframe({feed: 1})), until=write_anchor(Timeframe({feed: 3}))
    ).collect()

    assert [(bytes(row.feed), row.seq) for row in rows] == [(feed, 2), (feed, 3)]


def test_what_has_changed_on_the_disk_is_a_row_with_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        for peer in (alice, bob):
            item = peer.party.create("antiphon/object")
            with peer.party.batch():
                for number in range(300):
                    item.edit("set", "key", f"{peer.name} wrote this, and it is number {number}")
        peers.sync()
        flip(alice.folder / "feeds" / "data.mdb", b"bob wrote this, and it is number 150")
        rows = read(spark, alice, columns="feed,seq,fault", verify="false").collect()
        (fault,) = [row for row in rows if row.fault]
        feeds = {bytes(row.feed) for row in rows if row.seq > 200 and not row.fault}

        assert "changed" in fault.fault
        assert bytes(fault.feed) not in feeds  # nothing is served past it
        assert len(feeds) == 1  # the other feed is unharmed
        with pytest.raises(PythonException, match="add the column `fault`"):
            read(spark, alice, columns="feed,seq").collect()


def drain(spark: SparkSession, peer: Peer, folder: Path, **options: str) -> list[list[tuple[bytes, int]]]:
    """What a stream reads, batch by batch, until there is nothing more."""
    taken: list[list[tuple[bytes, int]]] = []

    def take(frame: DataFrame, _: int) -> None:
        taken.append([(bytes(row.feed), row.seq) for row in frame.select("feed", "seq").collect()])

    stream = spark.readStream.format("antiphon").options(columns="feed,seq,flags", **options).load(str(peer.folder))
    query = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query.start().awaitTermination()
    return taken


def test_a_stream_reads_each_block_once_and_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path, alice: Peer
) -> None:
    before = drain(spark, alice, tmp_path, maxBlocksPerTrigger="25")
    item = alice.party.create("antiphon/object")
    item.edit("set", "key", 1)
    after = drain(spark, alice, tmp_path, maxBlocksPerTrigger="25")

    assert len(before) > 1
    assert [len(part) for part in after] == [2]
    read_twice_or_not = sorted(place for part in before + after for place in part)
    assert read_twice_or_not == sorted((block.feed, block.seq) for block in blocks_of(alice))


def test_a_stream_never_sees_half_of_a_batch(spark: SparkSession, tmp_path: Path, alice: Peer) -> None:
    more = {(block.feed, block.seq) for block in blocks_of(alice) if block.flags & Flag.MORE}

    for part in drain(spark, alice, tmp_path, maxBlocksPerTrigger="3"):
        assert all((feed, seq + 1) in part for feed, seq in part if (feed, seq) in more)
