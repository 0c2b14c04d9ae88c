"""Sessions that users open themselves: `prepare` makes the data source work in them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import antiphon
from antiphon.pipeline.session import session


def test_workers_of_any_session_here_run_a_python_that_has_antiphon(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without PYSPARK_PYTHON, Spark starts the first `python3` of the PATH: often not that of a virtual environment."""
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        store.create_party().object({"title": "milk"})
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "python3"))
    monkeypatch.setattr(session, "_PREPARED", set())

    found = session.prepare(spark).read.format("antiphon").load(str(tmp_path / "home"))

    assert found.where("item IS NOT NULL").count() > 0


@pytest.mark.parametrize(("master", "chosen"), [("local[2]", True), ("spark://host:7077", False)])
def test_the_python_of_a_user_and_that_of_a_cluster_stay(
    master: str, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec="/opt/python3"))
    if chosen:
        monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python3")
    else:
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    session._choose_python(spark)  # type: ignore[arg-type]
    assert spark.sparkContext.pythonExec == "/opt/python3"
