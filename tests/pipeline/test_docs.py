"""What the page and the example say about the pipeline is so: both are run here, where a Spark session is at hand."""

from __future__ import annotations

import json
import runpy
import sys
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from examples.bulk import LIVE, compare
from examples.three_devices import direct
from pyspark.sql import SparkSession
from rich.console import Console
from tests.docs.test_examples import SPARK_PAGES, Example, examples_in, run_example
from tests.pipeline.small import small_jobs

from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.jobs import stages

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = [
    example for page in SPARK_PAGES for example in examples_in(str(page.relative_to(REPO)), page.read_text("utf-8"))
]


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_example_runs(
    spark: SparkSession, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with small_jobs(spark):
        run_example(example)


def test_the_page_has_an_example() -> None:
    assert EXAMPLES


def test_the_analysis_leads_from_feeds_to_a_table_and_a_picture(
    spark: SparkSession, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    made = generate(home, Options(parties=1, items=10, messages=150, writers=2, epochs=0, bad=0.0))
    monkeypatch.setattr(sys, "argv", ["analysis.py", "--home", str(home), "--out", str(out)])
    with small_jobs(spark):
        runpy.run_path(str(root / "examples" / "analysis.py"))

    table = pq.read_table(out / "activity.parquet")
    assert sum(table["messages"].to_pylist()) == made.messages
    assert len(set(table["member"].to_pylist())) == 2
    picture = (out / "activity.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg ")
    for member in set(table["member"].to_pylist()):
        assert member[:8] in picture
    assert f"wrote {out / 'activity.parquet'}" in capsys.readouterr().out


def test_the_demo_ends_with_the_same_states_and_the_same_cid_on_spark(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    home, console = tmp_path / "demo", Console(file=StringIO(), width=120)
    assert direct(home, console)
    live = json.loads((home / LIVE).read_text())
    assert live["alice"] == live["bob"] == live["dora"]
    with small_jobs(spark):
        agreed = compare(console, spark, home, live, ["bob"])

    assert agreed
    assert isinstance(console.file, StringIO)
    told = console.file.getvalue()
    assert f"{live['bob']['snapshot']}  bob, Spark" in told
    assert "0 are lost" in told
    recipe = (root / "Makefile").read_text().split("\ndemo:", 1)[1].split("\n\n", 1)[0]
    assert recipe.index("examples/three_devices.py") < recipe.index("examples/bulk.py")


def test_every_stage_is_there_under_its_name_and_says_what_it_does() -> None:
    assert stages.__doc__ is not None
    public = {name for name in vars(stages) if not name.startswith("_")} - {"annotations"}
    for name in public:
        assert (getattr(stages, name).__doc__ or "").strip(), name
    listed = {line.split()[0] for line in stages.__doc__.splitlines() if " → " in line}
    assert listed <= public
    assert {"blocks", "judged", "quarantine", "messages", "items", "snapshot", "links", "changes"} <= listed
