"""A peer declares an epoch with a snapshot computed on Spark; live peers compute the same and adopt it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions as f
from tests.cli.conftest import call, told
from tests.pipeline.helpers import flip

import antiphon
from antiphon.api.store import Store
from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import AntiphonError, InvalidInput, MissingBlob, NotAuthorised
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.epochs.snapshot_fold import EpochPlan
from antiphon.pipeline.epoch.epoch_job import EpochJob
from antiphon.testing.copy_feeds import copy_feeds

TEXT = "a title that a disk may lose a byte of"


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """Ada and Bob, who both must attest; Ada is to declare."""
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        party.epochs.set_policy(attesters=[ada.device, bob.device], generator=ada.device, deleted_epochs=1)
        party.epochs.declare()
        antiphon.sync(ada, bob)
        write(ada)
        write(bob)
        antiphon.sync(ada, bob)
        ada.party("Household").object({"title": "Bob has not seen this"})
    return tmp_path


def write(store: Store) -> None:
    party = store.party("Household")
    groceries = party.list(["milk", "bread"])
    groceries.append("salt")
    party.text("some text").insert(0, "and ")
    party.object({"title": TEXT})
    party.object({"title": "to go"}).delete()


@contextmanager
def live(own: Path, other: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("attester.py")), str(own), str(other)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def ask(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def test_a_live_process_attests_what_spark_has_computed(spark: SparkSession, homes: Path) -> None:
    with live(homes / "bob", homes / "ada") as bob:
        assert ask(bob)["number"] == 1
        (key,) = (row["party"] for row in told("party", "show", "--home", homes / "ada"))
        made = told("pipeline", "epoch", key[:8], "--home", homes / "ada")
        assert (made["epoch"], made["state"]) == (2, "proposed")
        assert made["blobs"] > 3
        after = ask(bob)

    assert after == {"number": 2, "base": made["snapshot"], "waits_for": ""}
    with Store.open(homes / "ada", unprotected=True) as ada:
        (party,) = ada
        with FeedStore.open(homes / "bob" / "feeds", readonly=True) as feeds:
            copy_feeds(feeds, ada.manager.feeds, bytes(party.key))
        party.refresh()
        party.epochs.step()
        base = ada.manager.epochs(party.key).base

        assert base is not None
        assert (party.epochs.number, str(base.cid)) == (2, made["snapshot"])
        assert not party.epochs.verify(2).wrong


def test_what_spark_makes_is_what_the_peer_would_have_made(
    spark: SparkSession, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it stands on it without folding: nothing is computed a second time. Its blobs come in parts."""
    parts: list[int] = []
    frame = type(spark.range(0))
    given = frame.toLocalIterator

    def noted(rows: DataFrame) -> Iterator[Row]:
        parts.append(rows.select(f.spark_partition_id()).distinct().count())
        return given(rows)

    monkeypatch.setattr(frame, "toLocalIterator", noted)
    with Store.open(homes / "ada", unprotected=True) as ada:
        (party,) = ada
        job = EpochJob(spark, homes / "ada", bytes(party.key), ada.manager.blobs)
        epochs = ada.manager.epochs(party.key)
        compared: list[tuple[Cid, Cid]] = []

        def both(plan: EpochPlan) -> Cid:
            made = job(plan)
            compared.append((made, epochs._compute(plan).cid))
            epochs._made = None
            return made

        party.epochs.declare(maker=both)

        ((spark_made, live_made),) = compared
        assert spark_made == live_made
        assert job.blob_count > 1
        assert parts[0] > 1  # of which each may have as much as Spark gives a program at once


def test_nothing_is_declared_where_it_is_not_this_devices_turn(homes: Path) -> None:
    (key,) = (row["party"] for row in told("party", "show", "--home", homes / "bob"))
    done = call("pipeline", "epoch", key, "--home", homes / "bob", "--json")

    assert isinstance(done.exception, NotAuthorised)
    assert "may not declare epoch 2" in str(done.exception)
    with (
        Store.open(homes / "bob", unprotected=True) as bob,
        pytest.raises(NotAuthorised, match="may not declare epoch 2"),
    ):
        next(iter(bob)).epochs.declare()


def test_what_came_while_it_was_computed_is_in_it(homes: Path) -> None:
    """A narrowing must be in the control state of an epoch, so it is computed again."""
    with Store.open(homes / "ada", unprotected=True) as ada:
        (party,) = ada
        epochs = ada.manager.epochs(party.key)
        plans: list[EpochPlan] = []

        def late(plan: EpochPlan) -> Cid:
            plans.append(plan)
            made = epochs._compute(plan).cid
            epochs._made = None
            if len(plans) == 1:
                (bob,) = (member.subject for member in party.members.members if member.subject != ada.me)
                party.member.revoke(bob)
            return made

        record = party.epochs.declare(maker=late)

        assert len(plans) == 2
        assert plans[1].control != plans[0].control
        assert record.number == 2


def test_a_snapshot_that_is_not_the_partys_is_not_declared(homes: Path) -> None:
    with Store.open(homes / "ada", unprotected=True) as ada:
        (party,) = ada
        old = Cid(party.epochs.snapshot(1).cid)
        with pytest.raises(InvalidInput, match="of epoch 1, and was declared as that of 2"):
            party.epochs.declare(maker=lambda _: old)
        with pytest.raises(MissingBlob):
            party.epochs.declare(maker=lambda _: Cid.of(b"nowhere"))
        other = _other_item(party.epochs.snapshot(1), ada)
        with pytest.raises(InvalidInput, match="nothing is declared"):
            party.epochs.declare(maker=other)
        assert [record.number for record in party.epochs] == [1]


def _other_item(base: Any, store: Store) -> Any:
    """A maker that leaves everything as the epoch before had it."""

    def make(plan: EpochPlan) -> Cid:
        told = {"number": plan.number, "previous": base.cid, "created_ms": plan.created_ms, "control": plan.control}
        root = replace(base.root, **told, models=plan.models, feed_count=len(plan.cut))
        return store.manager.blobs.put(root.encode(), DAG_CBOR)

    return make


def test_a_damaged_feed_makes_no_epoch(spark: SparkSession, homes: Path) -> None:
    with Store.open(homes / "ada", unprotected=True) as ada:
        (party,) = ada
        job = EpochJob(spark, homes / "ada", bytes(party.key), ada.manager.blobs)

        def damaged(plan: EpochPlan) -> Cid:
            flip(homes / "ada" / "feeds" / "data.mdb", TEXT.encode())
            return job(plan)

        with pytest.raises(AntiphonError, match=r"block \d: its stored bytes have changed"):
            party.epochs.declare(maker=damaged)
