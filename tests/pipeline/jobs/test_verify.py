"""Verifying, and damage of every kind: each feed has the reason that the store gives, and nothing else is harmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from tests.cli.conftest import call, told
from tests.pipeline.helpers import stored

import antiphon
from antiphon.api.store import Store
from antiphon.core.errors import AntiphonError
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.reasons import text_of
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span, split
from antiphon.feed.store.feed_store import FeedStore
from antiphon.model.message import wrap
from antiphon.pipeline.archive.export import export_archive
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.jobs.table_commit import quarantine_table
from antiphon.pipeline.jobs.verify import _findings
from antiphon.pipeline.plan.party_plan import FORKED, LanePlan, PartyPlan
from antiphon.pipeline.source.ranges import Fault
from antiphon.testing.copy_feeds import copy_feeds

LONG = 6_000  # characters: each message is a range of its own then
WRITERS = ("bob", "carol", "dave", "erin", "frank", "grace")


class Town(NamedTuple):
    """A home with two parties, whose feeds were damaged, and how its items and refusals were before."""

    home: Path
    feeds: dict[str, bytes]  # by who writes them
    items: dict[str, bytes]
    states: dict[bytes, dict[bytes, bytes]]  # by party and item
    refused: dict[tuple[bytes, int], str]
    spared: bytes


def flipped(home: Path, feed: bytes) -> None:
    """A byte changed on the disk."""
    with stored(home, feed) as (txn, table, keys):
        data = bytearray(txn.get(keys[3], db=table))
        data[-100] ^= 1
        txn.put(keys[3], bytes(data), db=table)


def lost(home: Path, feed: bytes) -> None:
    """A range in the middle is gone."""
    with stored(home, feed) as (txn, table, keys):
        txn.delete(keys[3], db=table)


def cut(home: Path, feed: bytes) -> None:
    """The last ranges are gone."""
    with stored(home, feed) as (txn, table, keys):
        for key in keys[-2:]:
            txn.delete(key, db=table)


def rewrite(home: Path, feed: bytes, change: Callable[[Span], Span]) -> None:
    """What one writes who knows how checksums are made."""
    with stored(home, feed) as (txn, table, keys):
        span = change(split(bytes(txn.get(keys[3], db=table))[:-4]))
        txn.put(keys[3], span.encode_stored(keys[3]), db=table)


def forged(home: Path, feed: bytes) -> None:
    """A head that its writer did not sign."""
    rewrite(home, feed, lambda span: replace(span, signature=bytes(64)))


def exchanged(home: Path, feed: bytes) -> None:
    """Another body under the same header."""
    rewrite(home, feed, lambda span: replace(span, bodies=bytes(len(span.bodies))))


HARM = {"bob": flipped, "carol": lost, "dave": forged, "erin": cut, "grace": exchanged}


def write(store: Store, name: str) -> bytes:
    note = store.party("Town").object({"title": f"{name}'s"})
    for number in range(6):
        note["text"] = f"{name} {number} " + "x" * LONG
    return bytes(note.id)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    folder = tmp_path_factory.mktemp("town")
    feeds: dict[str, bytes] = {}
    items: dict[str, bytes] = {}
    with ExitStack() as stack:
        ada = stack.enter_context(antiphon.open(folder / "ada", name="Ada", unprotected=True))
        party, spared = ada.create_party("Town"), ada.create_party("Spared")
        spared.object({"title": "nobody harms this"})
        others = {
            name: stack.enter_context(antiphon.open(folder / name, name=name, unprotected=True)) for name in WRITERS
        }
        for other in others.values():
            other.join(party.invite(other.me))
            antiphon.sync(ada, other)
        for name, other in others.items():
            items[name] = write(other, name)
            writer = other.party("Town").member.open_data_feed()
            feeds[name] = bytes(writer.feed)
            if name == "frank":
                writer.extend([Draft(Kind.MUTATION, items[name], wrap(Kind.MUTATION, b"\x99"))])
                writer.extend([Draft(Kind.GENESIS, items[name], b"no"), Draft(Kind.CREDENTIAL, items[name], b"y")])
        items["ada"] = write(ada, "ada")  # before she sees what will be lost: what has seen it waits
        for other in others.values():  # with the ranges of the writer: a session would join them
            copy_feeds(other.manager.feeds, ada.manager.feeds, bytes(party.key))
        states: dict[bytes, dict[bytes, bytes]] = {}
        refused: dict[tuple[bytes, int], str] = {}
        for each in ada:
            each.refresh()
            live = each.processor
            states[bytes(each.key)] = {bytes(item): live.snapshot(item) for item in live.items()}
            live.save()
            with live.locked() as engine:
                refused |= {(row.feed, row.seq): row.reason for row in engine.items.refused(1_000)}
        key = bytes(spared.key)
    for name, harm in HARM.items():
        harm(folder / "ada", feeds[name])
    return Town(folder / "ada", feeds, items, states, refused, key)


def store_says(home: Path, feed: bytes) -> str:
    with FeedStore.open(home / "feeds", readonly=True) as store:
        try:
            store.verify(feed)
        except AntiphonError as error:
            return str(error)
    return ""


@pytest.fixture(scope="module")
def verified(spark: SparkSession, town: Town) -> dict[str, Any]:
    done = call("pipeline", "verify", "--home", town.home, "--json")
    assert done.exit_code == 1
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_damage_is_told_by_feed_with_the_reason_of_the_store(town: Town, verified: dict[str, Any]) -> None:
    damaged = {row["feed"]: row for row in verified["findings"] if row["kind"] == "damaged"}

    assert damaged.keys() == {town.feeds[name].hex() for name in HARM}
    for name in HARM:
        feed = town.feeds[name]
        assert text_of(damaged[feed.hex()]["reason"]) == store_says(town.home, feed) != ""
        assert damaged[feed.hex()]["seq"] > 0
    words = {name: damaged[town.feeds[name].hex()]["reason"] for name in HARM}
    assert "changed" in words["bob"]
    assert "missing" in words["carol"]
    assert "missing" in words["erin"]
    assert "not signed by the feed's key" in words["dave"]
    assert "is not the one that its header names" in words["grace"]
    assert not verified["right"]


def test_a_party_that_nobody_harmed_is_right(spark: SparkSession, town: Town) -> None:
    done = told("pipeline", "verify", "--home", town.home, "--party", town.spared.hex())

    assert done["right"]
    assert (done["parties"], done["findings"]) == (1, [])
    assert done["blocks"] > 0


class Done(NamedTuple):
    report: Report
    states: dict[bytes, dict[bytes, bytes]]
    quarantine: list[tuple[bytes, int, str, str]]


@pytest.fixture(scope="module")
def done(spark: SparkSession, town: Town) -> Done:
    with Run.begin(spark, town.home) as run:
        report = run.report()
        states: dict[bytes, dict[bytes, bytes]] = {}
        for row in run.items.collect():
            states.setdefault(bytes(row.party), {})[bytes(row.item)] = bytes(row.snapshot)
        rows = quarantine_table(run).collect()
    return Done(report, states, [(bytes(row.feed), row.seq, row.standing, row.reason) for row in rows])


def test_damage_harms_neither_other_feeds_nor_other_parties(town: Town, done: Done) -> None:
    harmed = next(party for party in town.states if party != town.spared)

    assert done.report.counts["lost"] == 0
    assert done.states[town.spared].items() >= town.states[town.spared].items()
    assert {*done.states[town.spared]} - {*town.states[town.spared]} <= {bytes(SYSTEM_ITEM)}  # which is not listed live
    for name in ("ada", "frank"):
        item = town.items[name]
        assert done.states[harmed][item] == town.states[harmed][item]
    for name in HARM:
        item = town.items[name]
        assert done.states[harmed].get(item) != town.states[harmed][item]  # as far as it can be read, and no further


def test_the_quarantine_has_each_with_its_reason(town: Town, done: Done) -> None:
    for name in HARM:
        reasons = {text_of(reason) for feed, _, _, reason in done.quarantine if feed == town.feeds[name]}
        assert reasons == {store_says(town.home, town.feeds[name])}
    bad = {(feed, seq): reason for feed, seq, standing, reason in done.quarantine if standing == "refused"}
    assert bad == town.refused
    assert len(bad) == 3


def test_an_archive_takes_what_can_be_read_and_names_the_rest(town: Town, tmp_path: Path) -> None:
    done = export_archive(None, town.home, tmp_path / "archive")
    feeds = {fault.feed: fault for fault in done.faults}

    assert feeds.keys() == {
        town.feeds[name] for name in ("bob", "carol", "erin")
    }  # what else is wrong, an import finds
    assert all(fault.seq > 0 for fault in done.faults)


def test_what_a_writer_did_is_told_from_what_is_missing() -> None:
    waits = LanePlan(b"a" * 32, 0, 0, 3, 1 << 62, 5, waits="block 3 of feed 0123abcd")
    lies = LanePlan(b"b" * 32, 0, 0, 3, 1 << 62, 5, waits="block 3: its entry for feed 0123abcd tells a wrong lamport")
    forks = LanePlan(b"c" * 32, 0, 0, 4, 4, 5, ended=FORKED)
    fault = Fault(b"p" * 32, b"d" * 32, 7, "it has changed")
    plan = PartyPlan("home", b"p" * 32, (waits, lies, forks), {}, {b"e" * 32: 2}, faults=(fault,))

    assert [(one.feed[:1], one.seq, one.count, one.kind) for one in _findings(plan)] == [
        (b"d", 7, 1, "damaged"),
        (b"a", 3, 2, "waits"),
        (b"b", 3, 2, "broken"),
        (b"c", 4, 1, "broken"),
        (b"e", 0, 2, "waits"),
    ]
    (lost,) = _findings(PartyPlan("home", b"p" * 32, (), {}, {}, error="the party's genesis is not here"))
    assert (lost.kind, lost.feed) == ("unknown", b"")
