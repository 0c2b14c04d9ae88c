"""A run over a home: its report accounts for every block, and its digests are those of a live peer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from antiphon.api.store import Store
from antiphon.core.reasons import Reason, code_of
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.fold.digest import states_digest
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.jobs.table_commit import quarantine_table

OPTIONS = Options(parties=3, items=60, messages=900, epochs=1, bad=0.03)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "home"
    generate(folder, OPTIONS)
    return folder


class Done(NamedTuple):
    report: Report
    quarantine: dict[str, int]
    codes: dict[str, str]  # reason → code


@pytest.fixture(scope="module")
def done(spark: SparkSession, home: Path) -> Done:
    with Run.begin(spark, home) as run:
        report = run.report()
        rows = quarantine_table(run).groupBy("standing").sum("count").collect()
        codes = quarantine_table(run).select("reason", "code").distinct().collect()
        return Done(
            report, {row["standing"]: row["sum(count)"] for row in rows}, {row.reason: row.code for row in codes}
        )


@pytest.fixture
def report(done: Done) -> Report:
    return done.report


def test_the_quarantine_table_has_all_that_does_not_count(done: Done) -> None:
    counts = {name: done.report.counts[name] for name in ("refused", "pending", "ended")}

    assert done.quarantine == {name: count for name, count in counts.items() if count}
    assert len(done.quarantine) > 1


def test_each_reason_in_the_quarantine_has_its_code(done: Done) -> None:
    assert done.codes == {reason: code_of(reason).value for reason in done.codes}
    assert len(set(done.codes.values()) - {Reason.OTHER.value}) > 2
    assert Reason.OTHER.value not in done.codes.values()


def test_the_report_of_a_run_accounts_for_every_block_and_has_the_digests_of_a_peer(report: Report, home: Path) -> None:
    counts = report.counts
    assert counts["lost"] == 0
    assert counts["held"] == sum(
        counts[name] for name in ("control", "based", "applied", "refused", "pending", "ended")
    )
    for name, reasons in report.reasons.items():
        assert counts[name] == reasons.total(), name
    assert counts["refused"]
    assert counts["pending"] + counts["ended"]
    with Store.open(home, unprotected=True) as store:
        for one in report.parties:
            party = store.party(one.account.party)
            party.refresh()
            live = party.processor

            assert one.states == states_digest((bytes(item), live.snapshot(item)) for item in live.items())
            assert one.items == len(list(live.items()))
            assert one.epoch == live.status().epoch
    assert any(one.snapshot for one in report.parties)
    assert json.loads(json.dumps(report.row()))["blocks"] == counts


def test_a_run_over_one_party_leaves_the_others_alone(spark: SparkSession, home: Path, report: Report) -> None:
    chosen = report.parties[1]
    told: list[tuple[str, int]] = []
    with Run.begin(spark, home, [chosen.account.party], tell=lambda *stage: told.append(stage)) as run:
        (alone,) = run.report().parties

    folded = chosen.account.applied + chosen.account.refused
    assert told == [("verify and plan", 0), ("verify and plan", chosen.account.held), ("fold", folded)]
    assert alone == chosen
