"""Tables: what a run has found, for SQL; all of a run or nothing of it."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.budget import budget
from tests.cli.conftest import call, told
from tests.pipeline.helpers import contents
from tests.pipeline.published_runs import publisher
from tests.pipeline.small import small_jobs

import antiphon
from antiphon.core.errors import BadEncoding, DamagedTables, DiskFull, InvalidInput
from antiphon.pipeline.jobs.report import Report
from antiphon.pipeline.jobs.table_run import TableRun
from antiphon.pipeline.query.table_sql import ask
from antiphon.pipeline.tables.delta_folder import LAYOUT, DeltaFolder
from antiphon.pipeline.tables.run_tables import CurrentVersions
from antiphon.query.codec.json_form import to_json
from antiphon.query.filters import prop
from antiphon.query.query import Query
from antiphon.testing.peers import Peers

NAMES = {"blocks", "changes", "epochs", "items", "links", "progress", "quarantine", "standings"}


class Written(NamedTuple):
    home: Path
    log: DeltaFolder
    first: Report
    item: bytes


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Two runs, with a change between them; then one that ends when all is committed, and nothing published."""
    folder = tmp_path_factory.mktemp("tables")
    log = DeltaFolder(folder / "tables")
    with Peers(folder / "peers") as peers:
        alice = peers.add("alice of tables")
        board = alice.party.create("antiphon/object")
        board.edit("set", "title", "a board")
        task = alice.party.create("antiphon/object", parent=board.id)
        task.edit("set", "size", 3)
        first = TableRun(spark, log, [alice.folder]).run()
        task.edit("set", "size", 4)
        TableRun(spark, log, [alice.folder]).run()
        task.edit("set", "size", 5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DeltaFolder, "publish", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                TableRun(spark, log, [alice.folder]).run()
        return Written(Path(alice.folder), log, first, bytes(task.id))


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "no space is left")


def latest(log: DeltaFolder, table: str) -> list[Path]:
    """The files of a table as readers of Delta see it who know of nothing else."""
    return [Path(unquote(urlparse(file).path)) for file in DeltaTable(str(log.folder / table)).file_uris()]


def test_tables_hold_what_the_last_whole_run_found(spark: SparkSession, written: Written) -> None:
    found = f"FROM items WHERE item = X'{written.item.hex()}'"
    (row,) = ask(spark, written.log, f"SELECT state, get_json_object(state, '$.size') size {found}")

    assert written.log.current().run == 2
    assert set(written.log.current().versions) == NAMES
    assert (json.loads(row["state"]), row["size"]) == ({"size": 4}, "4")


def test_changes_say_which_run_has_made_what(spark: SparkSession, written: Written) -> None:
    rows = ask(spark, written.log, "SELECT run, item, change FROM changes ORDER BY run, item")

    assert {row["change"] for row in rows if row["run"] == 1} == {"created"}
    assert [(bytes(row["item"]), row["change"]) for row in rows if row["run"] == 2] == [(written.item, "changed")]
    assert {row["run"] for row in rows} == {1, 2}


def test_links_lead_from_children_to_parents_and_blocks_are_all_there(spark: SparkSession, written: Written) -> None:
    (link,) = ask(
        spark,
        written.log,
        "SELECT get_json_object(b.state, '$.title') title FROM links l JOIN items b ON l.target = b.item "
        f"WHERE l.way = 'parent' AND l.source = X'{written.item.hex()}'",
    )
    (count,) = ask(spark, written.log, "SELECT count(*) n, count(DISTINCT hash) m FROM blocks")

    assert link["title"] == "a board"
    assert count["n"] == count["m"] == written.first.counts["held"] + 1


def test_what_is_no_sql_is_told_with_the_tables_that_there_are(spark: SparkSession, written: Written) -> None:
    with pytest.raises(InvalidInput, match="blocks, changes, epochs, items, links, progress, quarantine, standings"):
        ask(spark, written.log, "SELECT * FROM nothing")
    with pytest.raises(InvalidInput) as syntax:
        ask(spark, written.log, "SELECT 1 one\n  FRAM items")
    with pytest.raises(InvalidInput) as column:
        ask(spark, written.log, "SELECT item, nmae FROM items")

    assert re.search(
        r"Syntax error at or near 'FRAM'.*\n    FRAM items\n    \^\nThe tables are blocks, ", str(syntax.value)
    )
    assert re.search(
        r"`nmae` cannot be resolved.*\n  SELECT item, nmae FROM items\n               \^\nThe tables are ",
        str(column.value),
    )


def damage_log(log: DeltaFolder) -> None:
    DeltaTable(str(log.folder / "items")).delete("NOT deleted")


def damage_file(log: DeltaFolder) -> None:
    for file in log.at_last_run().files("items"):
        Path(file).write_bytes(b"PAR1" + bytes(100) + b"PAR1")


@pytest.mark.parametrize(
    ("damage", "told"), [(damage_log, "changed rows of the table items"), (damage_file, "parquet cannot be read")]
)
def test_a_full_run_writes_tables_that_another_program_has_changed(
    quick: SparkSession, written: Written, tmp_path: Path, damage: Callable[[DeltaFolder], None], told: str
) -> None:
    log, fresh = DeltaFolder(tmp_path / "tables"), DeltaFolder(tmp_path / "fresh")
    shutil.copytree(written.log.folder, log.folder)
    TableRun(quick, fresh, [written.home]).run()
    log.recover()
    damage(log)

    with pytest.raises(DamagedTables, match=f"{told}.*`antiphon pipeline run --full` with all homes"):
        TableRun(quick, log, [written.home]).run()
    with pytest.raises(DamagedTables, match="name no party"):
        TableRun(quick, log, [written.home], written.first.parties[0].account.party.split()).run(full=True)
    report = TableRun(quick, log, [written.home]).run(full=True)

    assert report.counts["lost"] == 0
    assert log.current().run == 3
    assert contents(quick, log) == contents(quick, fresh)
    assert TableRun(quick, log, [written.home]).run().unchanged == 1


def test_an_answer_joins_tables_of_one_run_while_another_process_publishes(quick: SparkSession, tmp_path: Path) -> None:
    both = "SELECT (SELECT max(number) FROM epochs) one, (SELECT max(start) FROM standings) other"
    log, seen = DeltaFolder(tmp_path / "tables"), set[int]()
    with publisher(log.folder):
        while len(seen) < budget(6, 200):
            (row,) = ask(quick, log, both)
            assert row["one"] == row["other"]
            seen.add(row["one"])


def test_the_command_line_runs_again_what_was_interrupted_and_asks(written: Written, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(written.log.folder, folder)
    assert DeltaFolder(folder).at_last_run().table("changes").version() < DeltaTable(str(folder / "changes")).version()

    made = told("pipeline", "run", "--home", written.home, "--tables", folder)
    rows = told(
        "pipeline", "sql", "SELECT run, item, change FROM changes WHERE run > 1 ORDER BY run", "--tables", folder
    )
    listed = told("pipeline", "tables", "--compact", "--tables", folder)

    assert made["blocks"]["lost"] == 0
    assert set(made["versions"]) == NAMES
    item = written.item.hex()
    assert rows == [{"run": run, "item": item, "change": "changed"} for run in (2, 3)]  # the third once, not twice
    assert {row["table"]: row["rows"] for row in listed}["items"] == made["items"]


def test_the_command_line_asks_each_party_a_query(spark: SparkSession, written: Written, tmp_path: Path) -> None:
    file, total = tmp_path / "query.json", '{"aggregate": {"function": "sum", "path": ["size"]}}'
    file.write_text(json.dumps(to_json(Query(prop("title") == "a board").children(prop("size") > 3))))
    with small_jobs(spark):
        (task,) = told("pipeline", "query", file, "--tables", written.log.folder)
        (size,) = told("pipeline", "query", total, "--tables", written.log.folder, "--party", task["party"])

    assert (task["item"], json.loads(task["state"])) == (written.item.hex(), {"size": 4})
    assert size == {"party": task["party"], "group": None, "value": 4}


def test_an_interrupt_ends_with_130_and_publishes_nothing(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.pipeline.tables.incremental_write.shuffle_and_apply", _interrupted)

    done = call("pipeline", "run", "--home", written.home, "--tables", tmp_path / "tables")

    assert done.exit_code == 130
    assert DeltaFolder(tmp_path / "tables").current().run == 0
    assert not list((tmp_path / "tables").rglob("*.parquet"))


def test_tables_of_another_layout_are_refused(tmp_path: Path) -> None:
    """Rows are looked for where they would be written: those of another version might be missed, and written twice."""
    log = DeltaFolder(tmp_path)
    log.publish(CurrentVersions(3, {"items": 1}))
    file = tmp_path / "current.json"
    file.write_text(file.read_text().replace(f'"layout": {LAYOUT}', '"layout": 1'))

    with pytest.raises(BadEncoding, match=f"layout 1, and this version writes {LAYOUT}; .*run --full"):
        log.current()


SECRET = "the key is under the mat"


def texts_in(folder: Path) -> str:
    """All that is in any file of any version."""
    return " ".join(str(pq.read_table(file, partitioning=None).to_pylist()) for file in folder.rglob("*.parquet"))


@pytest.mark.parametrize("way", ["incremental", "full", "killed between"])
def test_what_is_erased_is_in_no_file_of_any_version(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    home, log = tmp_path / "home", DeltaFolder(tmp_path / "tables")
    with antiphon.open(home, name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.epochs.set_policy(keep_epochs=1)
        note = party.object({"title": "note"})
        note["text"] = SECRET
    TableRun(quick, log, [home]).run()
    with antiphon.open(home, unprotected=True) as store:
        store.party("Household").object({"title": "another"})
    TableRun(quick, log, [home]).run()
    assert SECRET in texts_in(log.folder)
    with antiphon.open(home, unprotected=True) as store:
        party = store.party("Household")
        party.erase(*(record.stamp for record in party.item(note.id).history() if SECRET in str(record)))
        party.epochs.declare()
        party.epochs.prune()
    if way == "killed between":
        with monkeypatch.context() as patched:
            patched.setattr(DeltaFolder, "vacuum", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                TableRun(quick, log, [home]).run()
        assert SECRET in texts_in(log.folder)
        assert log.current().run == 3
    report = TableRun(quick, log, [home]).run(full=way == "full")

    assert report.counts["lost"] == 0
    assert not log.current().vacuum_due
    assert SECRET not in texts_in(log.folder)
    assert "note" in texts_in(log.folder)


def test_a_run_that_is_interrupted_when_it_is_published_loses_nothing(
    quick: SparkSession, written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaFolder(tmp_path / "tables")

    def sync(folder: Path) -> None:
        if (folder / "current.json").exists():  # it is the last thing that `publish` does
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("antiphon.feed.store.private_files.sync_folder", sync)
        with pytest.raises(KeyboardInterrupt):
            TableRun(quick, log, [written.home]).run()

    assert log.current().run == 1
    report = TableRun(quick, log, [written.home]).run()
    assert report.unchanged == len(report.parties)
    assert report.counts["lost"] == 0


def test_a_run_that_fails_while_it_commits_is_done_again(
    quick: SparkSession, written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some tables are committed then, and nothing is published: all of them go, and with them the files."""
    log = DeltaFolder(tmp_path / "tables")
    with monkeypatch.context() as patched:
        patched.setattr(DeltaFolder, "write_small", _no_space)
        with pytest.raises(DiskFull, match=r"no space is left to write .*tables .*bytes free in .*Free some space"):
            TableRun(quick, log, [written.home]).run()
    assert log.current().run == 0
    assert not list(log.folder.rglob("*.parquet"))

    assert TableRun(quick, log, [written.home]).run().counts["lost"] == 0
    assert all(file.exists() for file in latest(log, "items"))


def test_blocks_that_cannot_be_written_end_a_run_that_leaves_nothing(
    quick: SparkSession, written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaFolder(tmp_path / "tables")
    monkeypatch.setattr("antiphon.pipeline.tables.incremental_write.write_rows", _no_space)
    with pytest.raises(DiskFull, match="no space is left to write"):
        TableRun(quick, log, [written.home]).run()

    assert not list(log.folder.rglob("*.parquet"))
    assert log.current().run == 0
