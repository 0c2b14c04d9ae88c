"""Later exports into an archive: erased bodies are removed, damage is reported, long feeds are divided."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.pipeline.archives import blocks, ends, states
from tests.pipeline.helpers import stored

import antiphon
from antiphon.api.store import Store
from antiphon.pipeline.archive import export as archive, plan as archiveplan
from antiphon.pipeline.archive.export import export_archive
from antiphon.pipeline.archive.import_ import import_archive
from antiphon.pipeline.archive.plan import ExportPlan, plan_export
from antiphon.pipeline.archive_format import manifest, reader as archivereader
from antiphon.pipeline.archive_format.manifest import Manifest, open_file
from antiphon.pipeline.archive_format.reader import ArchiveBlobs
from antiphon.pipeline.source.home import open_feeds

SECRET = "a secret that nobody is to read again"


def has_secret(folder: Path) -> bool:
    return any(SECRET.encode() in (block.body or b"") for some in blocks(folder).values() for block in some)


def on_disk(folder: Path) -> bool:
    """Whether any file of an archive has it, named or not."""
    rows = [row for path in folder.glob("spans*") for row in pq.read_table(path).to_pylist()]
    return any(SECRET.encode() in row["bodies"] for row in rows)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a secret, and an archive that has it, too."""
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.epochs.set_policy(keep_epochs=1)
        note = party.object({"title": "note"})
        note["text"] = SECRET
    export_archive(None, tmp_path / "home", tmp_path / "archive")
    assert on_disk(tmp_path / "archive")
    return tmp_path / "home"


def erase(home: Path, *, epochs: int, more: int = 0) -> None:
    with antiphon.open(home, unprotected=True) as store:
        party = store.party("Household")
        records = [record for item in party.processor.items() for record in party.item(item).history()]
        party.erase(*(record.stamp for record in records if SECRET in str(record)))
        for number in range(more):
            party.object({"title": f"more {number}"})
        for number in range(epochs):
            if number:
                party.object({"title": f"epoch {number}"})
            party.epochs.declare()
        party.epochs.prune()


@pytest.mark.parametrize(
    ("epochs", "more"),
    [
        pytest.param(1, 0, id="the home has its block"),
        pytest.param(2, 0, id="the home has pruned it"),
        pytest.param(2, 5, id="the home has pruned more than the archive has"),
    ],
)
def test_what_is_erased_is_in_no_file_of_the_archive_and_does_not_come_back(
    home: Path, tmp_path: Path, epochs: int, more: int
) -> None:
    folder = tmp_path / "archive"
    erase(home, epochs=epochs, more=more)
    with open_feeds(home) as store, open_feeds(folder) as before:
        assert any(record.start > 0 for record in store.feeds()) == (epochs > 1)
        assert any(record.start > before.record(record.feed).length for record in store.feeds()) == (more > 0)
    done = export_archive(None, home, folder)

    assert done.erased == 1
    assert not has_secret(folder)
    assert not on_disk(folder)
    assert export_archive(None, home, folder).size == 0
    import_archive(folder, tmp_path / "back")
    assert not has_secret(tmp_path / "back")
    assert states(tmp_path / "back") == states(home)


def test_a_body_that_an_archive_still_has_goes_on_import(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase(home, epochs=1)
    monkeypatch.setattr(archiveplan, "_erased", lambda *_: {})
    export_archive(None, home, tmp_path / "archive")
    assert has_secret(tmp_path / "archive")
    import_archive(tmp_path / "archive", tmp_path / "back")

    assert blocks(tmp_path / "back") == blocks(home)
    assert SECRET.encode() not in (tmp_path / "back" / "feeds" / "data.mdb").read_bytes()
    assert states(tmp_path / "back") == states(home)


def test_a_body_that_no_epoch_covers_yet_stays_as_in_the_home(home: Path, tmp_path: Path) -> None:
    erase(home, epochs=0)
    assert export_archive(None, home, tmp_path / "archive").erased == 0
    import_archive(tmp_path / "archive", tmp_path / "back")

    assert has_secret(home)
    assert blocks(tmp_path / "back") == blocks(tmp_path / "archive") == blocks(home)


# -- damage


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, bytes, bytes]:
    """A home with two parties; a long data feed and the control feed of one of them."""
    with Store.open(tmp_path / "two", name="Ada", unprotected=True) as store:
        party = store.create_party("Long")
        note = party.object({"title": "note"})
        for number in range(24):
            note["text"] = f"{number}" + "x" * 6_000
        store.create_party("Other").object({"title": "other"})
        data = bytes(party.member.open_data_feed().feed)
    with open_feeds(tmp_path / "two") as feeds:
        (control,) = (record.feed for record in feeds.feeds(bytes(party.key)) if record.feed != data)
    return tmp_path / "two", data, control


def damage(home: Path, feed: bytes, which: int) -> None:
    with stored(home, feed) as (txn, table, keys):
        data = bytearray(txn.get(keys[which], db=table))
        data[-100] ^= 1
        txn.put(keys[which], bytes(data), db=table)


@pytest.mark.parametrize("which", [0, 1], ids=["a data feed", "a control feed"])
def test_a_home_that_was_damaged_since_is_exported_but_for_that(
    two: tuple[Path, bytes, bytes], tmp_path: Path, which: int
) -> None:
    home, folder, feed = two[0], tmp_path / "archive", two[1:][which]
    export_archive(None, home, folder)
    before = blocks(folder)
    damage(home, feed, -1)
    with Store.open(home, unprotected=True) as store:
        store.party("Other").object({"title": "more"})
    done = export_archive(None, home, folder)

    assert done.blocks > 0
    assert [fault.feed for fault in done.faults] == [feed]
    now = blocks(folder)
    assert now[feed] == before[feed]
    assert sum(map(len, now.values())) == sum(map(len, before.values())) + done.blocks


# -- long feeds


def test_a_long_feed_is_cut_into_tasks_and_files(
    two: tuple[Path, bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, feed, _ = two

    def files_of(folder: Path) -> int:
        names = [file.name for file in Manifest.read(folder).spans]
        return sum(feed in pq.read_table(folder / name)["feed"].to_pylist() for name in names)

    export_archive(None, home, tmp_path / "tasks", blocks=6)
    monkeypatch.setattr(manifest, "FILE_SIZE", 60_000)
    monkeypatch.setattr("antiphon.party.bundle.export.SPAN_BLOB_SIZE_MAX", 20_000)
    export_archive(None, home, tmp_path / "files")

    for folder in (tmp_path / "tasks", tmp_path / "files"):
        assert files_of(folder) > 2
        assert blocks(folder) == blocks(home)
        assert export_archive(None, home, folder, blocks=6).size == 0
        import_archive(folder, folder.with_suffix(".back"))
        assert ends(folder.with_suffix(".back")) == ends(home)


def test_of_a_long_feed_that_is_damaged_the_archive_has_what_is_before_and_later_the_rest(
    two: tuple[Path, bytes, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, feed, _ = two
    shutil.copytree(home, tmp_path / "whole")
    whole = blocks(home)
    with stored(home, feed) as (_, _, keys):
        middle = len(keys) // 2

    def late(asked: tuple[str, str, int]) -> ExportPlan:
        """It is damaged once it has been cut."""
        plan = plan_export(asked)
        damage(home, feed, middle)
        return plan

    with monkeypatch.context() as patch:
        patch.setattr(archive, "plan_export", late)
        done = export_archive(None, home, tmp_path / "archive", blocks=4)

    assert [fault.feed for fault in done.faults] == [feed]
    found = blocks(tmp_path / "archive")
    assert 0 < len(found[feed]) < len(whole[feed])
    assert found[feed] == whole[feed][: len(found[feed])]
    assert done.blocks == sum(map(len, found.values()))
    named = {file.name for file in Manifest.read(tmp_path / "archive").files()}
    assert {path.name for path in (tmp_path / "archive").glob("*.parquet")} == named
    assert not export_archive(None, tmp_path / "whole", tmp_path / "archive", blocks=4).faults
    assert blocks(tmp_path / "archive") == whole
    rows = [row for path in (tmp_path / "archive").glob("spans*") for row in pq.read_table(path).to_pylist()]
    assert sum(row["count"] for row in rows) == sum(map(len, whole.values()))  # none is there twice


# -- what is left behind


def test_what_a_killed_import_has_left_goes_with_the_next(home: Path, tmp_path: Path) -> None:
    names = (f".antiphon-{'0' * 32}.partial", f".antiphon-{'1' * 32}.partial", ".antiphon-mine.partial")
    left, busy, other = (tmp_path / name for name in names)
    for path in (left, busy, other):
        (path / "feeds").mkdir(parents=True)
    handle = os.open(busy, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)  # as an import does that goes on
    import_archive(tmp_path / "archive", tmp_path / "back")
    os.close(handle)

    assert not left.exists()
    assert (busy / "feeds").exists()
    assert (other / "feeds").exists()
    assert blocks(tmp_path / "back") == blocks(home)


def test_files_of_an_archive_are_closed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with antiphon.open(home, unprotected=True) as store:
        store.party("Household").epochs.declare()
    export_archive(None, home, tmp_path / "archive")
    opened: list[pq.ParquetFile] = []

    def noted(*given: Any) -> pq.ParquetFile:
        opened.append(open_file(*given))
        return opened[-1]

    monkeypatch.setattr(archivereader, "open_file", noted)
    blobs = ArchiveBlobs(tmp_path / "archive")
    assert all(blobs.get(cid) for cid in blobs)
    blobs.close()

    assert len(opened) == 2
    assert all(file.closed for file in opened)
