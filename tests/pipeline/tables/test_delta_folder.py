"""A folder of tables: one run at a time for its readers, whatever other programs do to it. No Spark here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.budget import budget
from tests.pipeline.published_runs import NAMES, PARTY, publish_run, publisher, rows_of

from antiphon.core.errors import BadEncoding, DamagedTables, InvalidInput
from antiphon.pipeline.tables import delta_folder
from antiphon.pipeline.tables.dead_files import files_in
from antiphon.pipeline.tables.delta_folder import DeltaFolder
from antiphon.pipeline.tables.run_tables import CurrentVersions, RunTables
from antiphon.pipeline.tables.schemas import SCHEMAS

READS, RUNS = budget((40, 4), (1_000, 100))  # reads, and runs that were read

Act = Callable[[DeltaFolder], None]


@pytest.fixture
def log(tmp_path: Path) -> DeltaFolder:
    """A folder with three runs."""
    found = DeltaFolder(tmp_path / "tables")
    for _ in range(3):
        publish_run(found)
    return found


def table(log: DeltaFolder, name: str = "epochs") -> DeltaTable:
    """A table as other programs open it."""
    return DeltaTable(str(log.folder / name))


def runs_in(tables: RunTables) -> dict[str, set[tuple[int, int]]]:
    """By table: the runs that its rows are of, and how many rows there are."""
    rows = {name: tables.read_small(name) for name in NAMES}
    numbers = {"epochs": "number", "standings": "start"}
    return {name: {(row[numbers[name]], len(some)) for row in some} for name, some in rows.items()}


# -- one run at a time


def test_all_reads_are_of_the_run_that_was_the_last_when_the_tables_were_opened(log: DeltaFolder) -> None:
    tables = log.at_last_run()
    first = tables.read_small("epochs")
    publish_run(log)

    assert {row["number"] for row in first} == {3}
    assert {row["start"] for row in tables.read_small("standings")} == {3}
    assert log.at_last_run().run == 4
    assert {row["start"] for row in log.at_last_run().read_small("standings")} == {4}


def test_no_read_is_torn_while_another_process_publishes(tmp_path: Path) -> None:
    log, seen = DeltaFolder(tmp_path / "tables"), Counter[int]()
    with publisher(log.folder):
        while seen.total() < READS or len(seen) < RUNS:
            tables = log.at_last_run()
            rows = tables.run % 50
            assert runs_in(tables) == {name: {(tables.run, rows)} if rows else set() for name in NAMES}
            seen[tables.run] += 1


# -- commits of other programs


def test_properties_that_another_program_sets_are_kept(log: DeltaFolder) -> None:
    table(log).alter.set_table_properties({"delta.logRetentionDuration": "interval 5 days"})
    publish_run(log)
    publish_run(log)

    assert table(log).metadata().configuration == {"delta.logRetentionDuration": "interval 5 days"}
    assert runs_in(log.at_last_run()) == {name: {(5, 5)} for name in NAMES}


def test_properties_are_kept_when_a_killed_run_is_rolled_back(log: DeltaFolder) -> None:
    log.write_small("epochs", SCHEMAS["epochs"], rows_of("epochs", 9))  # and nothing is published
    table(log).alter.set_table_properties({"delta.logRetentionDuration": "interval 5 days"})

    assert runs_in(log.recover()) == {name: {(3, 3)} for name in NAMES}
    assert table(log).metadata().configuration == {"delta.logRetentionDuration": "interval 5 days"}


def test_files_that_another_program_merged_and_deleted_are_found_again(log: DeltaFolder) -> None:
    """OPTIMIZE keeps the rows, and VACUUM then deletes the files that the last run had left."""
    two_files(log)
    merged = table(log).optimize.compact()
    table(log).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    with pytest.raises(DamagedTables, match=r"is gone, a file of the table epochs of run 4.*antiphon pipeline run"):
        log.at_last_run().read_small("epochs")

    assert merged["numFilesRemoved"] == 2
    assert len(log.recover().read_small("epochs")) == 4
    assert len(log.at_last_run().read_small("epochs")) == 4
    publish_run(log)
    assert runs_in(log.at_last_run()) == {name: {(5, 5)} for name in NAMES}


def two_files(log: DeltaFolder) -> None:
    """Publish a fourth run of which the table `epochs` has two files."""
    base = log.recover()
    version = log.write_small("epochs", SCHEMAS["epochs"], rows_of("epochs", 4)[:2], base=base)
    between = RunTables(log.folder, CurrentVersions(3, {**base.current.versions, "epochs": version}))
    kept, removed = between.files("epochs"), list[str]()
    assert len(kept) == 1
    added = log.added_file("epochs", SCHEMAS["epochs"], rows_of("epochs", 4)[2:], f"part-{version}")
    version = log.commit("epochs", SCHEMAS["epochs"], [added], removed, partitions=[], base=between)
    log.publish(CurrentVersions(4, {**base.current.versions, "epochs": version}))


def append(log: DeltaFolder) -> None:
    rows = pa.table({"party": pa.array([PARTY], pa.binary()), "number": pa.array([7], pa.int64())})
    write_deltalake(str(log.folder / "epochs"), rows, mode="append", schema_mode="merge")


def delete(log: DeltaFolder) -> None:
    table(log).delete("home = '1'")


@pytest.mark.parametrize(("change", "told"), [(append, "WRITE is its version 3"), (delete, "DELETE is its version 3")])
def test_rows_that_another_program_changed_are_told_and_written_again(log: DeltaFolder, change: Act, told: str) -> None:
    change(log)

    with pytest.raises(DamagedTables, match=f"another program has changed rows of the table epochs.*{told}.*--full"):
        log.recover()
    assert runs_in(log.at_last_run()) == {name: {(3, 3)} for name in NAMES}  # readers see nothing of it
    write_all_again(log)
    assert runs_in(log.recover()) == {name: {(4, 4)} for name in NAMES}


def write_all_again(log: DeltaFolder) -> None:
    base = log.forget()
    versions = {name: log.write_small(name, SCHEMAS[name], rows_of(name, 4), base=base) for name in NAMES}
    log.publish(CurrentVersions(4, versions))


def cut_log(log: DeltaFolder) -> None:
    os.truncate(log.folder / "epochs" / "_delta_log" / f"{2:020}.json", 40)


def drop_log(log: DeltaFolder) -> None:
    (log.folder / "epochs" / "_delta_log" / f"{1:020}.json").unlink()


def drop_file(log: DeltaFolder) -> None:
    Path(log.at_last_run().files("epochs")[0]).unlink()


def other_json(log: DeltaFolder) -> None:
    (log.folder / "current.json").write_text("{}")


def newer_protocol(log: DeltaFolder) -> None:
    text = '{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}\n'
    (log.folder / "epochs" / "_delta_log" / f"{3:020}.json").write_text(text)


@pytest.mark.parametrize("damage", [cut_log, drop_log, drop_file, other_json, newer_protocol])
def test_tables_that_cannot_be_read_are_told_and_written_again(log: DeltaFolder, damage: Act) -> None:
    damage(log)

    with pytest.raises(BadEncoding, match="`antiphon pipeline run --full`"):
        log.recover()
    write_all_again(log)
    assert runs_in(log.recover()) == {name: {(4, 4)} for name in NAMES}


def test_a_table_of_another_program_is_not_overwritten(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "items"), pa.table({"mine": [1, 2, 3]}))

    with pytest.raises(InvalidInput, match="a table items of another program"):
        DeltaFolder(tmp_path).recover()
    assert DeltaTable(str(tmp_path / "items")).count() == 3


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder, with their bytes."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_folders_of_a_user_are_not_deleted(tmp_path: Path) -> None:
    for name in ("items", "links"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "my-thesis.txt").write_text("years of work")
    (tmp_path / "links" / "part-1-notes").mkdir()
    before = contents(tmp_path)

    for call in (DeltaFolder(tmp_path).recover, DeltaFolder(tmp_path).forget):
        with pytest.raises(InvalidInput, match=r"items/my-thesis.txt, no table of ours in .*: move .*items away"):
            call()
    assert contents(tmp_path) == before


def test_a_folder_beside_the_tables_is_not_looked_into(log: DeltaFolder) -> None:
    (log.folder / "notes" / "part-4-drafts").mkdir(parents=True)
    log.recover()

    assert (log.folder / "notes" / "part-4-drafts").is_dir()


def test_tables_without_current_json_are_kept_until_they_are_written_again(log: DeltaFolder) -> None:
    (log.folder / "current.json").unlink()
    before = contents(log.folder)

    with pytest.raises(DamagedTables, match=r"epochs .*rows of other runs than 1.*current.json.*run --full"):
        log.recover()
    assert contents(log.folder) == before
    write_all_again(log)
    assert runs_in(log.recover()) == {name: {(4, 4)} for name in NAMES}


def test_a_table_of_another_program_beside_ours_is_not_deleted(log: DeltaFolder) -> None:
    write_deltalake(str(log.folder / "items"), pa.table({"mine": [1, 2, 3]}))
    delete(log)  # which lets a full run write all tables again

    for call in (log.recover, log.forget):
        with pytest.raises(InvalidInput, match="a table items of another program"):
            call()
    assert DeltaTable(str(log.folder / "items")).count() == 3


def test_a_table_of_a_run_that_died_is_deleted(log: DeltaFolder) -> None:
    """Of the first run of all, and of the first run that has this table."""
    fresh = DeltaFolder(log.folder.parent / "fresh")
    for one in (log, fresh):
        one.write_small("progress", SCHEMAS["progress"], [])
        one.added_file("links", SCHEMAS["links"], [], delta_folder.part_of(one.current().run + 1))
        one.recover()
        assert not (one.folder / "progress").exists()
        assert not (one.folder / "links").exists()


@pytest.mark.parametrize("part", ["keys", "feeds/data.mdb", "meta.db"])
def test_a_home_is_no_folder_for_tables(tmp_path: Path, part: str) -> None:
    log = DeltaFolder(tmp_path)
    for name in (part, "items/ab.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"of a peer")

    for call in (log.recover, log.forget, log.locked().__enter__):
        with pytest.raises(InvalidInput, match="is the home of a peer"):
            call()
    assert set(contents(tmp_path)) == {str(tmp_path / name) for name in (part, "items/ab.db")}


# -- dead files


def test_dead_files_go_when_they_have_more_bytes_than_the_live_ones(
    log: DeltaFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_folder, "DEAD_SIZE_MIN", 1)
    for _ in range(7):
        publish_run(log)
    assert log.vacuum_when_due() == 0  # a reader may have begun with any of these runs
    assert len(files_in(log.folder / "epochs")) == 10

    monkeypatch.setattr(delta_folder, "FILES_STAY", (timedelta(days=7), timedelta()))
    log.vacuum_when_due()
    assert len(files_in(log.folder / "epochs")) == 1
    assert not [folder for folder in (log.folder / "epochs").glob("part-*") if not any(folder.iterdir())]
    assert runs_in(log.at_last_run()) == {name: {(10, 10)} for name in NAMES}


def test_files_of_the_runs_within_the_time_stay(log: DeltaFolder) -> None:
    tables, home = log.at_last_run(), log.folder / "epochs"
    for file in [*(home / "_delta_log").iterdir(), *files_in(home)]:  # the third run was the last one, an hour ago
        os.utime(file, (0, 0))
    publish_run(log)
    log.vacuum("epochs", timedelta(minutes=15))

    assert len(files_in(home)) == 2
    assert runs_in(tables) == {name: {(3, 3)} for name in NAMES}


@pytest.mark.parametrize("keep", [timedelta(minutes=15), timedelta()])
def test_files_that_another_program_has_merged_since_the_last_run_stay(log: DeltaFolder, keep: timedelta) -> None:
    two_files(log)
    assert table(log).optimize.compact()["numFilesAdded"] == 1
    log.vacuum("epochs", keep)

    assert len(log.at_last_run().read_small("epochs")) == 4
    assert len(log.recover().read_small("epochs")) == 4
    assert len(log.at_last_run().files("epochs")) == 1


def test_files_that_another_program_is_about_to_commit_stay(log: DeltaFolder) -> None:
    for file in (log.folder / "epochs").rglob("*"):
        os.utime(file, (0, 0))
    publish_run(log)
    merged = log.folder / "epochs" / "part-00000-merged.parquet"
    merged.write_bytes(b"PAR1")
    log.vacuum("epochs", timedelta(minutes=15))

    assert merged.exists()


def test_a_version_without_its_files_is_not_published(log: DeltaFolder) -> None:
    two_files(log)
    table(log).optimize.compact()
    before = log.current()
    Path(table(log).file_uris()[0].removeprefix("file://")).unlink()

    with pytest.raises(DamagedTables, match="is gone, a file of the table epochs"):
        log.recover()
    assert log.current() == before
    assert len(log.at_last_run().read_small("epochs")) == 4


# -- who may read them


def test_only_the_owner_may_read_tables(log: DeltaFolder) -> None:
    log.compact()
    every = [log.folder, *log.folder.rglob("*")]

    assert {path for path in every if path.stat().st_mode & 0o777 != (0o700 if path.is_dir() else 0o600)} == set()


@pytest.mark.parametrize("name", ["s3://bucket/tables", "file:///tables", "abfss:/tables", "hdfs://host/x"])
def test_a_uri_is_no_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (name, Path(name)):
        with pytest.raises(InvalidInput, match="is a URI, and only folders of this machine"):
            DeltaFolder(given)
    assert not list(tmp_path.iterdir())
