"""The file under a `MetaStore`: crashes, other processes, damage, and files that are somebody else's."""

from __future__ import annotations

import random
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.budget import budget

from antiphon.core.errors import StoreError, StoreLocked
from antiphon.core.keys import PublicKey
from antiphon.halo.credentials.claims import FeedKind
from antiphon.party.store.meta_file import APPLICATION_ID, SCHEMA, VERSION
from antiphon.party.store.meta_store import MetaStore, SubscriptionState

PARTY = PublicKey(b"p" * 32)
KEYS = 50  # of the preferences that the children set in turn

# Each line that it prints acknowledges one change.
WRITER = """
import itertools, sys
from antiphon.party.store.meta_store import MetaStore
with MetaStore.open(sys.argv[1]) as store:
    store.subscribe(bytes([int(sys.argv[2])]) * 32)
    for number in itertools.islice(itertools.count(), int(sys.argv[3]) or None):
        store.set(f"{sys.argv[2]}/{number % %d}", number)
        print(number, flush=True)
""".replace("%d", str(KEYS))


def start(path: Path, name: int, count: int = 0) -> subprocess.Popen[str]:
    """A process that writes `count` times; for ever if that is 0."""
    command = [sys.executable, "-c", WRITER, str(path), str(name), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "meta.db"


def fill(path: Path) -> None:
    with MetaStore.open(path) as store:
        store.subscribe(PARTY, label="Book club", genesis_feed=b"g" * 32)
        for number in range(3):
            store.subscribe(bytes([number]) * 32)
            store.add_feed(bytes([100 + number]) * 32, PARTY, FeedKind.DATA, device=b"d" * 32)
        store.set("theme", "dark")
        store.set("theme", ["light", 3], party=PARTY)


def contents(path: Path) -> tuple[object, ...]:
    with MetaStore.open(path) as store:
        singly = [store.find(known.party) for known in store.parties()]
        return store.parties(), store.feeds(), store.feeds(PARTY), store.preferences(), store.preferences(PARTY), singly


def test_the_file_is_its_owners_alone_and_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "meta.db"
    fill(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["meta.db"], "nothing is left beside it"
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert all(strict for *_, strict in db.execute("SELECT * FROM pragma_table_list WHERE name NOT LIKE 'sqlite%'"))
    db.close()


def test_a_commit_is_synced_before_it_is_acknowledged(path: Path) -> None:
    with MetaStore.open(path) as store:
        assert store._file._db.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize("seed", range(budget(4, 50)))
def test_what_was_acknowledged_survives_a_kill(path: Path, seed: int) -> None:
    lines = random.Random(seed).randrange(1, 120)
    child = start(path, 7)
    assert child.stdout is not None

    acknowledged = [int(child.stdout.readline()) for _ in range(lines)]
    child.kill()
    acknowledged += [int(line) for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()

    with MetaStore.open(path) as store:
        assert [known.state for known in store.parties()] == [SubscriptionState.ACTIVE]
        kept = store.preferences()
    last = acknowledged[-1]
    assert acknowledged == list(range(last + 1))
    for number in acknowledged[-KEYS:]:
        found = kept[f"7/{number % KEYS}"]
        # At most one change was under way, and it may have been made.
        assert found in (number, last + 1)


def test_processes_share_a_file(path: Path) -> None:
    children = [start(path, name, 40) for name in (1, 2)]  # they also race for making it
    for child in children:
        output, _ = child.communicate()
        assert child.returncode == 0
        assert len(output.splitlines()) == 40

    with MetaStore.open(path) as store:
        assert len(store.preferences()) == 80
        third = start(path, 3, 1)
        third.communicate()
        assert store.get("3/0", -1) == 0, "seen without opening it again"
        assert [known.party[0] for known in store.parties()] == [1, 2, 3]


def test_two_stores_of_one_process_share_a_file(path: Path) -> None:
    with MetaStore.open(path) as first:
        with MetaStore.open(path) as second:
            second.set("theme", "dark")
        first.set("size", 1)
        assert first.preferences() == {"size": 1, "theme": "dark"}


def test_a_writer_that_does_not_end_is_named_as_the_reason(path: Path) -> None:
    fill(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with MetaStore.open(path, busy_timeout_ms=1) as store:
        assert store.find(PARTY) is not None, "readers do not wait"
        with pytest.raises(StoreLocked, match="another process"):
            store.pause(PARTY)
        other.execute("ROLLBACK")
        assert store.pause(PARTY).state is SubscriptionState.PAUSED
    other.close()


def test_a_refused_change_leaves_nothing(path: Path) -> None:
    fill(path)
    before = contents(path)

    def fail(store: MetaStore) -> None:
        with store._file.write() as rows:
            assert rows.drop("parties") == 4
            raise ZeroDivisionError

    with MetaStore.open(path) as store:
        with pytest.raises(ZeroDivisionError):
            fail(store)
        assert len(store.parties()) == 4
    assert contents(path) == before


# -- files that are not ours, or not whole


def check_refused(path: Path, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as refusal:
        MetaStore.open(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("data", [b"", b"hello", b"x" * 5000, b"SQLite format 3\x00" + bytes(84)])
def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    check_refused(path, "metadata store")
    assert path.read_bytes() == data


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE parties (party BLOB)")
    db.close()
    before = path.read_bytes()

    check_refused(path, "another database")
    assert path.read_bytes() == before


def test_a_folder_and_a_missing_right_are_refused(tmp_path: Path) -> None:
    check_refused(tmp_path, "cannot be used")
    (tmp_path / "file").write_bytes(b"")
    check_refused(tmp_path / "file" / "meta.db", "cannot be used")


def test_a_newer_version_is_refused(path: Path) -> None:
    fill(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    check_refused(path, "a newer one")


def test_another_schema_is_refused(path: Path) -> None:
    fill(path)
    db = sqlite3.connect(path)
    db.execute("ALTER TABLE feeds ADD COLUMN colour TEXT")
    db.close()
    check_refused(path, "tables are not those")
    assert set(SCHEMA) == {"parties", "feeds", "feeds_by_party", "preferences"}


def test_a_row_that_somebody_changed_is_refused(path: Path) -> None:
    fill(path)
    db = sqlite3.connect(path)
    db.execute("UPDATE parties SET state = 'active', label = 'Crook club'")
    db.commit()
    db.close()
    check_refused(path, "a row of its table parties has changed")


def test_a_flipped_byte_is_found_or_does_not_matter(path: Path) -> None:
    fill(path)
    before, whole = contents(path), path.read_bytes()
    assert not path.with_name("meta.db-wal").exists(), "a clean end writes the log back"
    positions = random.Random(1).sample(range(len(whole)), budget(400, len(whole)))
    used = [position for position in positions if whole[position]]

    found = 0
    for position in [*range(100), *used, *positions[:50]]:
        flip = random.Random(position).choice([0x01, 0x11, 0x80])  # 0x80: bytes that are no text, also in the schema
        path.write_bytes(whole[:position] + bytes((whole[position] ^ flip,)) + whole[position + 1 :])
        try:
            assert contents(path) == before, position
        except StoreError:
            found += 1
    assert found > len(used) // 2


def test_a_byte_of_the_schema_that_is_no_text_is_refused(path: Path) -> None:
    """SQLite quotes it in its message, which Python could not decode."""
    fill(path)
    whole = path.read_bytes()
    for position in range(whole.index(b"CREATE TABLE parties"), whole.index(b"CREATE TABLE parties") + 60):
        path.write_bytes(whole[:position] + bytes((whole[position] ^ 0x80,)) + whole[position + 1 :])
        check_refused(path, "is damaged: .* Move it away")


def test_a_torn_file_is_refused(path: Path) -> None:
    fill(path)
    whole = path.read_bytes()
    for size in (1, 50, 99, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:size])
        check_refused(path, "metadata store")
