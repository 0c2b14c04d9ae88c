"""Homes that are damaged, pruned or misnamed: a run, an incremental run and a stream report it, and read the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.conftest import call
from tests.pipeline.helpers import contents, damage, flip

from antiphon.core.errors import AntiphonError, BadEncoding, CorruptBlock, UnknownParty
from antiphon.core.reasons import code_of
from antiphon.model.fold import NO_BODY
from antiphon.party.live.item import Item
from antiphon.pipeline.jobs import table_run
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.jobs.report import PartyReport, Report
from antiphon.pipeline.jobs.stream_job import BatchResult, StreamJob
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.plan import replan
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.plan.replan import DAMAGED, MANY_BODILESS, PartyStep, ReplanRequest, _why_afresh, replan_parties
from antiphon.pipeline.plan.resume_point import ResumePoint
from antiphon.pipeline.source.datasource import _batch_end
from antiphon.pipeline.source.ranges import Limits, Range
from antiphon.pipeline.tables import delta_folder
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.run_tables import CurrentVersions
from antiphon.pipeline.tables.schemas import SCHEMAS
from antiphon.testing.peers import Peer, Peers

EDITS = 200


def two(peers: Peers, name: str) -> tuple[Peer, Item]:
    """Alice, whose home is read, and what bob wrote, one by one; with alice it lies in a few spans."""
    alice, bob = peers.add(f"alice of {name}"), peers.add(f"bob of {name}")
    mine = alice.party.create("antiphon/object")
    mine.edit("set", "title", "mine")
    peers.sync()
    item = bob.party.create("antiphon/object")
    for number in range(EDITS):
        item.edit("set", "key", f"{name} wrote this, and it is number {number}")
        if number == EDITS // 2:
            peers.sync()
    peers.sync()
    return alice, item


def set_of(report: Report) -> dict[bytes, PartyReport]:
    return {one.account.party: one for one in report.parties}


def harm(peer: Peer, name: str, number: int) -> None:
    flip(peer.folder / "feeds" / "data.mdb", f"{name} wrote this, and it is number {number}".encode())


def test_a_flipped_byte_costs_a_run_and_a_stream_no_more_than_its_span(quick: SparkSession, tmp_path: Path) -> None:
    log, streamed, seen = DeltaFolder(tmp_path / "my tables"), DeltaFolder(tmp_path / "streamed"), list[BatchResult]()
    with Peers(tmp_path / "harm") as peers, Peers(tmp_path / "whole") as others:
        alice, _ = two(peers, "harm")
        whole, _ = two(others, "whole")
        homes = [alice.folder, whole.folder]
        harm(alice, "harm", 150)
        with Run.begin(quick, homes) as run:
            live = run.report()
        first = TableRun(quick, log, homes).run()
        StreamJob(TableRun(quick, streamed, homes), tmp_path / "checkpoint", EDITS, 0.0, True, seen.append).run()

    party = set_of(live)[bytes(alice.party.key)]
    assert party.error == ""
    assert party.items >= 1  # alice's own
    assert [(count, "changed" in reason) for reason, count in party.account.reasons["ended"].items()] == [
        (party.account.ended, True)
    ]
    assert 0 < party.account.ended <= EDITS + 1
    assert live.counts["lost"] == 0
    assert set_of(first) == set_of(live)
    assert len(seen) > 1
    assert seen[-1].account == first.counts
    assert contents(quick, streamed) == contents(quick, log)


def test_damage_to_verified_blocks_makes_their_party_be_read_in_full_and_no_other(
    quick: SparkSession, tmp_path: Path
) -> None:
    log = DeltaFolder(tmp_path / "tables")
    with Peers(tmp_path / "harm") as peers, Peers(tmp_path / "whole") as others:
        alice, item = two(peers, "harm")
        whole, _ = two(others, "whole")
        homes = [alice.folder, whole.folder]
        TableRun(quick, log, homes).run()
        item.restrict_writers(alice.key)  # this asks for all messages of the item
        peers.sync()
        more = whole.party.create("antiphon/object")
        more.edit("set", "title", "more")
        harm(alice, "harm", 20)
        again = TableRun(quick, log, homes)
        report = again.run()
        with Run.begin(quick, homes) as run:
            fresh = run.report()
        still = TableRun(quick, log, homes).run().unchanged

    assert again.full == {DAMAGED: 1}
    assert set_of(report) == set_of(fresh)
    assert report.counts["lost"] == 0
    assert report.counts["ended"] > 0
    assert still == 2


def test_a_party_of_which_nothing_can_be_said_is_not_read_again_and_again(quick: SparkSession, tmp_path: Path) -> None:
    log = DeltaFolder(tmp_path / "tables")
    with Peers(tmp_path / "harm") as peers:
        alice, _ = two(peers, "harm")
        assert alice.member is not None
        damage(alice, bytes(alice.member.genesis_feed), 0)
        said = call("pipeline", "run", "--home", alice.folder, "--tables", log.folder)
        again = TableRun(quick, log, [alice.folder]).run()

    (party,) = again.parties
    assert "genesis" in party.error
    assert (again.unchanged, again.counts["lost"]) == (1, 0)
    assert {reason for reasons in party.account.reasons.values() for reason in reasons} >= {party.error}
    assert f"nothing can be said of party {party.account.party.hex()}: {party.error}" in said.output


def test_the_end_of_a_micro_batch_is_not_asked_of_blocks_that_are_not_there(tmp_path: Path) -> None:
    """A stream that fell behind would never start again."""
    with Peers(tmp_path) as peers:
        alice, item = two(peers, "harm")
        store, party = alice.store, bytes(alice.party.key)
        with alice.party.batch() as batch:
            for number in range(5):
                alice.party.item(item.id).edit("set", "key", number)
        mine, theirs = (
            Range(str(alice.folder), party, record.feed, 0, record.length)
            for record in (store.record(batch.feed), max(store.feeds(party), key=lambda record: record.length))
        )
        assert _batch_end(store, mine, mine.count - 2) == mine.stop - 1  # nobody sees half of a batch
        assert _batch_end(store, replace(mine, stop=mine.stop - 1), mine.count - 3) == mine.stop - 2  # a fork cut it
        store.prune(theirs.feed, 30)
        assert _batch_end(store, replace(theirs, start=5), 3) == 32
        harm(alice, "harm", 150)
        with pytest.raises(CorruptBlock):
            store.block(theirs.feed, 151)
        assert _batch_end(store, replace(theirs, start=150), 2) == 151


def test_relative_homes_and_tables_behind_a_link_are_found(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's workers stand in another folder."""
    seen: list[BatchResult] = []
    (tmp_path / "disk").mkdir()
    (tmp_path / "my tables").symlink_to(tmp_path / "disk")
    log = DeltaFolder(tmp_path / "my tables")
    with Peers(tmp_path) as peers:
        alice = peers.add("alice of a link")
        item = alice.party.create("antiphon/object")
        monkeypatch.chdir(alice.folder.parent)
        job = StreamJob(TableRun(quick, log, [alice.folder.name]), tmp_path / "c", 99, 0.0, True, seen.append)
        job.run()
        item.edit("set", "title", "more")
        monkeypatch.setattr(delta_folder, "FILES_MAX", 1)
        second = TableRun(quick, log, [alice.folder.name]).run()

    assert [batch.account["lost"] for batch in seen] == [0]
    assert second.counts["lost"] == 0
    assert second.counts["applied"] == seen[0].account["applied"] + 1
    assert max(map(len, log.at_last_run().files_by_partition("changes").values())) == 1  # they were put together


def test_a_party_that_is_not_there_is_told(quick: SparkSession, tmp_path: Path) -> None:
    log = DeltaFolder(tmp_path / "tables")
    with Peers(tmp_path) as peers, Peers(tmp_path / "elsewhere") as others:
        alice, other = peers.add("alice"), others.add("somebody else")
        parties = [bytes(alice.party.key), bytes(other.party.key)]
        told = f"nothing of party {parties[1].hex()} in {alice.folder}"
        with pytest.raises(UnknownParty, match=told):
            Run.begin(quick, alice.folder, parties)
        with pytest.raises(UnknownParty, match=told):
            TableRun(quick, log, [alice.folder], parties).run()
        with pytest.raises(UnknownParty, match=told):
            StreamJob(TableRun(quick, log, [alice.folder], parties), tmp_path / "checkpoint", available_now=True).run()
        done = call("pipeline", "verify", "--home", alice.folder, "--party", parties[1].hex())

    assert done.exit_code != 0
    assert isinstance(done.exception, UnknownParty)


def test_a_block_that_no_table_accounts_for_ends_a_stream(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held is the word of the store's records, so a plan that forgets a feed is found out."""
    seen: list[BatchResult] = []
    monkeypatch.setattr(
        table_run, "replan_parties", lambda *given, **named: list(map(_forgetful, replan_parties(*given, **named)))
    )
    with Peers(tmp_path) as peers:
        alice = peers.add("alice of lost blocks")
        for _ in range(5):
            alice.party.create("antiphon/object")
        follow = TableRun(quick, DeltaFolder(tmp_path / "tables"), [alice.folder])
        with pytest.raises(AntiphonError, match=f"nobody accounts for, by party: {{'{alice.party.key.hex()[:8]}': 5}}"):
            StreamJob(follow, tmp_path / "checkpoint", 99, 0.0, True, seen.append).run()

    assert [batch.account["lost"] for batch in seen] == [5]


def _forgetful(step: PartyStep) -> PartyStep:
    """A planner that takes the feed with the messages for none."""
    return replace(step, now=replace(step.now, plan=replace(step.plan, lanes=())))


@pytest.mark.parametrize(
    "text",
    [
        '{"run": 1, "versions": {"../elsewhere": 0}}',
        '{"run": 1, "versions": {"items": -1}}',
        '{"run": 1, "versions": {}, "more": "' + "x" * delta_folder.CURRENT_SIZE_MAX + '"}',
        "[" * 100_000,
    ],
)
def test_what_names_other_tables_is_no_list_of_tables(tmp_path: Path, text: str) -> None:
    (tmp_path / delta_folder.CURRENT).write_text(text)
    with pytest.raises(BadEncoding, match="run --full"):
        DeltaFolder(tmp_path).current()


def test_a_table_whose_log_is_gone_says_what_to_do(tmp_path: Path) -> None:
    log = DeltaFolder(tmp_path)
    log.publish(CurrentVersions(1, {"items": 3}))
    with pytest.raises(BadEncoding, match=r"the table items in .* run --full"):
        log.at_last_run().read_small("items")


def test_a_party_with_too_many_bodiless_messages_is_read_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those beyond the limit would never be asked for again."""
    monkeypatch.setattr(table_run, "BODILESS_MAX", 2)
    monkeypatch.setattr(replan, "BODILESS_MAX", 2)
    log, many, few = DeltaFolder(tmp_path), b"m" * 32, b"n" * 32
    why = ("refused", NO_BODY, code_of(NO_BODY).value)
    rows = [(party, b"f" * 32, seq, 1, b"i" * 16, *why) for party in (few, many) for seq in range(5)]
    version = log.write_small("quarantine", SCHEMAS["quarantine"], rows[3:], None)
    log.publish(CurrentVersions(1, {"quarantine": version}))

    found = table_run._bodiless(log.at_last_run())
    known = {party: ResumePoint(PartyPlan("", party, (), {}, {})) for party in (few, many)}
    look = ReplanRequest((), Limits(), known, found, "", frozenset())

    with Peers(tmp_path / "peers") as peers:
        store = peers.add("alice").store
        assert [_why_afresh(store, look, party) for party in (few, many)] == ["", MANY_BODILESS]
