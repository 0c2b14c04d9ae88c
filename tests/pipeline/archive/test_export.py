"""Archives: a home rebuilt from an archive is the same; an archive that was tampered with is refused."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.budget import budget
from tests.cli.conftest import call, told
from tests.party.forked import Forked, confront
from tests.pipeline.archives import Rows, blocks, branches, ends, redigest, states, tamper

import antiphon
from antiphon.api.health.check import check_home
from antiphon.api.store import Store
from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, BadEncoding, InvalidInput, RefusedBlocks, StoreLocked
from antiphon.feed.block import BodyState
from antiphon.feed.feed_record import End
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.pipeline.archive.export import _locked, export_archive
from antiphon.pipeline.archive.import_ import import_archive
from antiphon.pipeline.archive_format.manifest import MANIFEST, Manifest
from antiphon.pipeline.archive_format.reader import ArchiveBlobs
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.plan.survey import survey
from antiphon.pipeline.source.home import open_feeds
from antiphon.testing.peers import Peers

CHANGES = budget(60, 1_000)
SECRET = "a secret that nobody is to read again"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several parties, with epochs, revocations, forks and lies."""
    folder = tmp_path_factory.mktemp("archived") / "home"
    generate(folder, Options(parties=3, items=60, messages=900, epochs=2, bad=0.03))
    return folder


@pytest.fixture(scope="module")
def archive(spark: SparkSession, home: Path) -> Path:
    folder = home.with_name("archive")
    done = export_archive(spark, home, folder, blocks=300)
    assert not done.faults
    assert done.blocks == sum(map(len, blocks(home).values()))
    assert len(Manifest.read(folder).spans) > 1  # executors write beside each other
    return folder


@pytest.fixture
def copied(archive: Path, tmp_path: Path) -> Path:
    return shutil.copytree(archive, tmp_path / "archive")


def test_only_the_owner_may_read_an_archive(archive: Path) -> None:
    every = [archive, *archive.rglob("*")]

    assert {path for path in every if path.stat().st_mode & 0o777 != (0o700 if path.is_dir() else 0o600)} == set()


def test_a_home_rebuilt_from_its_archive_is_the_same_live(home: Path, archive: Path, tmp_path: Path) -> None:
    done = import_archive(archive, tmp_path / "back")

    assert blocks(tmp_path / "back") == blocks(archive) == blocks(home)
    assert ends(tmp_path / "back") == ends(archive) == ends(home)
    assert any(end[3] is not End.NONE for end in ends(home).values())
    assert branches(tmp_path / "back") == branches(archive) == branches(home)
    assert any(branches(home).values())
    assert not (tmp_path / "back" / "keys").exists()
    found = states(home)
    assert states(tmp_path / "back") == found
    assert done.parties == len(found) == 3
    assert any(number for number, _, _ in found.values())


def test_a_run_over_an_archive_is_one_over_the_home(spark: SparkSession, home: Path, archive: Path) -> None:
    rows = spark.read.format("antiphon").option("columns", "feed,seq,hash,body").load(str(archive)).collect()
    found = {(bytes(row.feed), row.seq): (bytes(row.hash), row.body and bytes(row.body)) for row in rows}
    with open_feeds(home) as store:
        every = [block for record in store.feeds() for block in store.read(record.feed)]
    assert found == {(block.feed, block.seq): (block.hash, block.body) for block in every}
    assert len(rows) == len(every)

    looked = survey(spark, home, verify=False)
    with Run.begin(spark, archive) as run:
        assert run.survey.plans == tuple(replace(plan, home=str(archive)) for plan in looked.plans)
        report = run.report()
    live = states(home)
    for one in report.parties:
        number, snapshot, digest = live[one.account.party]
        assert (one.epoch, one.snapshot, one.states) == (number, bytes(Cid.parse(snapshot)) if number else b"", digest)
    assert report.counts["lost"] == 0
    assert report.counts["held"] == sum(map(len, blocks(home).values()))
    assert report.reasons["refused"].total() > 0


def test_exporting_again_adds_only_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    with Store.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        notes = [party.object({"title": f"note {number}"}) for number in range(5)]
    first = export_archive(None, tmp_path / "home", folder)
    before = {path: path.read_bytes() for path in folder.glob("*.parquet")}
    assert export_archive(None, tmp_path / "home", folder).size == 0
    with Store.open(tmp_path / "home", unprotected=True) as store:
        store.party(bytes(party.key)).item(notes[0].id).edit("set", "title", "changed")
    second = export_archive(None, tmp_path / "home", folder)

    assert (second.number, second.blocks) == (2, 1)
    assert second.size < first.size
    assert all(path.read_bytes() == data for path, data in before.items())
    assert blocks(folder) == blocks(tmp_path / "home")
    import_archive(folder, tmp_path / "back")
    assert states(tmp_path / "back") == states(tmp_path / "home")
    assert check_home(tmp_path / "back").wrong == ()
    with Store.open(tmp_path / "back", unprotected=True) as store:
        assert store.party("Household").name == "Household"


@pytest.fixture
def pruned(tmp_path: Path) -> Path:
    """A home with an epoch whose messages are gone, and one body that was erased."""
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.epochs.set_policy(keep_epochs=1)
        for number in range(3):
            note = party.object({"title": f"note {number}"})
            note["text"] = SECRET if number == 2 else "said"
            if number == 2:
                party.erase(next(record.stamp for record in note.history() if SECRET in str(record)))
            party.epochs.declare()
            party.epochs.prune()
        party.object({"title": "after"})
        store.collect_garbage()
    return tmp_path / "home"


def test_pruned_and_erased_blocks_survive(pruned: Path, tmp_path: Path) -> None:
    export_archive(None, pruned, tmp_path / "archive")
    import_archive(tmp_path / "archive", tmp_path / "back")

    assert any(start for start, *_ in ends(pruned).values())
    assert any(block.state is BodyState.ERASED for some in blocks(pruned).values() for block in some)
    assert ends(tmp_path / "back") == ends(tmp_path / "archive") == ends(pruned)
    assert blocks(tmp_path / "back") == blocks(tmp_path / "archive") == blocks(pruned)
    assert states(tmp_path / "back") == states(pruned)


def test_what_is_erased_goes_from_the_archive_too(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "archive"
    with antiphon.open(home, name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.epochs.set_policy(keep_epochs=1)
        note = party.object({"title": "note"})
        note["text"] = SECRET
    export_archive(None, home, folder)
    assert any(SECRET.encode() in (block.body or b"") for some in blocks(folder).values() for block in some)
    with antiphon.open(home, unprotected=True) as store:
        party = store.party("Household")
        stamps = [record.stamp for record in party.item(note.id).history() if SECRET in str(record)]
        party.erase(*stamps)
        party.epochs.declare()
        party.epochs.prune()
    done = export_archive(None, home, folder)

    assert done.erased == 1
    assert blocks(folder) == blocks(home)
    assert not any(SECRET.encode() in (block.body or b"") for some in blocks(folder).values() for block in some)
    assert export_archive(None, home, folder).size == 0
    import_archive(folder, tmp_path / "back")
    assert states(tmp_path / "back") == states(home)


def test_evidence_of_a_fork_survives(tmp_path: Path) -> None:
    with Peers(tmp_path) as peers:
        forked = Forked(peers, longer=2)
        confront(forked.peers)
        folder, feed = forked.carol.folder, forked.feed
    export_archive(None, folder, tmp_path / "archive")
    import_archive(tmp_path / "archive", tmp_path / "back")

    assert ends(folder)[feed][3:] == (End.FORK, True)
    assert ends(tmp_path / "back") == ends(folder)
    assert blocks(tmp_path / "back") == blocks(folder)

    def forge(rows: Rows) -> None:
        for row in rows:
            if row["fork"]:
                row["fork"] = row["fork"][:-1] + bytes([row["fork"][-1] ^ 1])

    tamper(tmp_path / "archive", "records", forge)
    with pytest.raises(AntiphonError, match="not the writer's"):
        import_archive(tmp_path / "archive", tmp_path / "other")


# -- what is refused


def flip(name: str) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        row = max(rows, key=lambda row: len(row[name]))
        data = bytearray(row[name])
        data[len(data) // 2] ^= 1
        row[name] = bytes(data)

    return change


def swap(rows: Rows) -> None:
    one, other = rows[0], next(row for row in rows if row["feed"] != rows[0]["feed"])
    for name in ("headers", "advance", "states", "bodies", "count"):
        one[name], other[name] = other[name], one[name]


def lose(rows: Rows) -> Rows:
    return rows[1:]


def renumber(rows: Rows) -> None:
    rows[-1]["first"] += 1


def lengthen(rows: Rows) -> None:
    rows[0]["length"] += 1


def begin_later(rows: Rows) -> None:
    row = max(rows, key=lambda row: row["length"])
    row["start"], row["start_hash"] = 1, bytes(32)


def end_early(rows: Rows) -> None:
    row = max(rows, key=lambda row: row["length"])
    row["end"], row["why"] = 1, int(End.FAULT)


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("spans", flip("headers"), "feed [0-9a-f]{8}, block"),
        ("spans", flip("bodies"), "body of block [0-9]+ is not the one"),
        ("spans", flip("signature"), "not signed by the feed's key"),
        ("spans", flip("previous"), "feed [0-9a-f]{8}"),
        ("spans", swap, "feed [0-9a-f]{8}"),
        ("spans", lose, "missing from the archive"),
        ("spans", renumber, "feed [0-9a-f]{8}"),
        ("records", lengthen, "missing from the archive"),
        ("records", begin_later, "feed [0-9a-f]{8}"),
        ("records", end_early, "feed [0-9a-f]{8}: its record contradicts"),
        ("records", lambda rows: [*rows, rows[0]], "two records"),
        ("records", flip("hash"), "its record contradicts its blocks: hash"),
        ("blobs", flip("data"), "blob"),
    ],
)
def test_what_was_tampered_with_is_refused(
    copied: Path, kind: str, change: Callable[[Rows], Rows | None], reason: str
) -> None:
    tamper(copied, kind, change)

    with pytest.raises(AntiphonError, match=reason):
        import_archive(copied, copied.parent / "back")
    assert [path.name for path in copied.parent.iterdir()] == ["archive"]


def test_a_file_that_has_changed_or_is_gone_is_named(copied: Path, tmp_path: Path) -> None:
    name = Manifest.read(copied).spans[0].name
    data = (copied / name).read_bytes()
    for now in (data[:-1], data[:100], data[: len(data) // 2] + b"?" + data[len(data) // 2 + 1 :], None):
        (copied / name).unlink()
        if now is not None:
            (copied / name).write_bytes(now)
        with pytest.raises(BadEncoding, match=name):
            import_archive(copied, tmp_path / "back")
        (copied / name).write_bytes(data)
    import_archive(copied, tmp_path / "back")
    with pytest.raises(InvalidInput, match="is there already"):
        import_archive(copied, tmp_path / "back")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "antiphon.archive.2"},
        {"spans": [{"name": "../../elsewhere.parquet", "rows": 1, "bytes": 1, "sha256": ""}]},
        {"number": -1},
        {"labels": {"zz": "no key"}},
        {"records": 5},
    ],
)
def test_a_manifest_that_says_something_else_is_refused(copied: Path, change: dict[str, object]) -> None:
    told = json.loads((copied / MANIFEST).read_text())
    (copied / MANIFEST).write_text(json.dumps(told | change))

    with pytest.raises(BadEncoding, match=MANIFEST):
        import_archive(copied, copied.parent / "back")


def test_whatever_bytes_change_an_archive_is_refused_or_the_same(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        for number in range(4):
            party.object({"title": f"note {number}"})
        party.epochs.declare()
        party.object({"title": "after"})
    export_archive(None, tmp_path / "home", tmp_path / "archive")
    wanted = blocks(tmp_path / "home")
    files = {path: path.read_bytes() for path in (tmp_path / "archive").glob("*.*") if path.name != "archive.lock"}
    chance = random.Random(7)
    refused = 0
    for _ in range(CHANGES):
        path = chance.choice(sorted(files))
        data = bytearray(files[path])
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data))
        try:
            if path.name != MANIFEST:
                redigest(tmp_path / "archive")
            import_archive(tmp_path / "archive", tmp_path / "back")
        except AntiphonError:
            refused += 1
            assert not (tmp_path / "back").exists()
        else:
            assert blocks(tmp_path / "back") == wanted
            shutil.rmtree(tmp_path / "back")
        for each, before in files.items():
            each.write_bytes(before)
    assert refused > 20


def test_one_export_at_a_time_and_only_into_a_folder_of_its_own(home: Path, copied: Path, tmp_path: Path) -> None:
    with _locked(copied), pytest.raises(StoreLocked, match="is being written by process"):
        export_archive(None, home, copied)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "diary").write_text("mine")
    with pytest.raises(InvalidInput, match="neither empty nor an archive"):
        export_archive(None, home, tmp_path / "taken")
    with pytest.raises(InvalidInput, match="is an archive already"):
        export_archive(None, copied, tmp_path / "other")


def test_an_archive_of_another_history_is_not_gone_on_with(tmp_path: Path) -> None:
    with Store.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        party = store.create_party("Household")
        party.object({"title": "note"})
    shutil.copytree(tmp_path / "home", tmp_path / "old")
    with Store.open(tmp_path / "home", unprotected=True) as store:
        store.party("Household").object({"title": "more"})
    export_archive(None, tmp_path / "home", tmp_path / "archive")
    with pytest.raises(InvalidInput, match="an older home was restored"):
        export_archive(None, tmp_path / "old", tmp_path / "archive")

    tamper(tmp_path / "archive", "records", flip("hash"))
    with pytest.raises(InvalidInput, match="another history"):
        export_archive(None, tmp_path / "home", tmp_path / "archive")


def test_what_an_export_has_left_that_was_killed_goes(home: Path, copied: Path) -> None:
    left = copied / f"spans-9-{'0' * 32}.parquet"
    left.write_bytes(b"half of it")
    export_archive(None, home, copied)

    assert not left.exists()
    assert blocks(copied) == blocks(home)


def test_a_feed_without_epochs_that_vouch_for_it_is_refused(pruned: Path, tmp_path: Path) -> None:
    export_archive(None, pruned, tmp_path / "archive")
    root = max(ArchiveBlobs(tmp_path / "archive"), key=lambda cid: cid.codec)
    assert root
    tamper(tmp_path / "archive", "blobs", lambda rows: [])

    with pytest.raises(RefusedBlocks, match="where no final epoch that is here was cut"):
        import_archive(tmp_path / "archive", tmp_path / "back")


def test_the_commands(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    done = told("pipeline", "archive", "export", home, folder)
    assert done["blocks"] == sum(map(len, blocks(home).values()))
    checked = told("pipeline", "archive", "check", folder)
    assert checked["right"]
    assert {"void", "broken"} <= checked["kinds"].keys()  # what writers did, and not what the archive lost
    back = told("pipeline", "archive", "import", folder, tmp_path / "back")
    assert back["parties"] == 3
    with open_feeds(tmp_path / "back") as store:
        assert len(store.feeds()) == back["feeds"]
    tamper(folder, "spans", flip("bodies"))
    wrong = call("pipeline", "archive", "check", folder, "--json")
    assert wrong.exit_code == 1
    found = json.loads(wrong.stdout)["findings"]
    assert any(row["kind"] == "damaged" and "is not the one" in row["reason"] for row in found)
