"""Generated homes, of several parties each: Spark and a peer that opens them come to the same, epochs included."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.counted_blocks import by_plans, by_rows

from antiphon.api.store import Store
from antiphon.core.cid import Cid
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.epoch.epoch_snapshot import changed, plan_epoch, snapshot
from antiphon.pipeline.fold.block_account import account
from antiphon.pipeline.fold.item_fold import folded, items, refused
from antiphon.pipeline.fold.summary import summary
from antiphon.pipeline.order.messages import bases, messages
from antiphon.pipeline.plan.standings import judged
from antiphon.pipeline.plan.survey import blocks, survey

OPTIONS = Options(parties=5, items=120, messages=1_800, epochs=2, bad=0.02)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "home"
    generate(folder, OPTIONS)
    return folder


def test_spark_folds_a_generated_home_as_a_peer_does(spark: SparkSession, home: Path) -> None:
    looked = survey(spark, home)
    found = judged(blocks(spark, looked), looked.plans).cache()
    made = folded(messages(found, bases(spark, looked)), looked.plans).cache()
    rows, listed, books = items(made).collect(), refused(made).collect(), account(looked, summary(made))
    assert by_rows(found) == by_plans(looked)
    made.unpersist()
    found.unpersist()

    assert len(looked.plans) == OPTIONS.parties
    with Store.open(home, unprotected=True) as store:
        for plan in looked.plans:
            party = store.party(plan.party)
            party.refresh()
            live = party.processor
            states = {bytes(row.item): bytes(row.snapshot) for row in rows if bytes(row.party) == plan.party}
            reasons = {(bytes(row.feed), row.seq): row.reason for row in listed if bytes(row.party) == plan.party}
            live.save()
            with live.locked() as engine:
                wanted = {(row.feed, row.seq): row.reason for row in engine.items.refused(1 << 20)}

            assert plan.number == live.status().epoch
            known = {*live.items(), *(states.keys() & {bytes(SYSTEM_ITEM)})}  # that one is not listed
            assert states == {item: live.snapshot(item) for item in known}
            assert reasons == wanted
            assert books[plan.party].lost == 0
    assert any(plan.number for plan in looked.plans)
    assert listed


def test_spark_makes_the_snapshots_that_a_generated_home_has(spark: SparkSession, home: Path) -> None:
    plan = next(plan for plan in survey(spark, home, verify=False).plans if plan.number)
    made = plan_epoch(spark, home, plan.party, plan.number)
    (root,) = [row for row in snapshot(changed(spark, made), made).select("cid", "root").collect() if row.root]

    assert Cid(bytes(root.cid)) == Cid(plan.base)
