"""Damage in the file of an item store: queries answer rightly after it is opened again, or say what is wrong."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.budget import FIRST_SEED, budget

import antiphon
from antiphon import Object, Query, Store, prop
from antiphon.api.health.file_checks import check_items
from antiphon.api.health.finding import FindingCode
from antiphon.core.errors import StoreError
from antiphon.core.keys import PublicKey
from antiphon.party.store.item_check import item_store_fault
from antiphon.party.store.page_check import PageCheck, find_damage
from antiphon.party.store.page_sums import PageSums
from antiphon.query.filters import Match

ITEMS = 120
Answers = list[Any]


def fill(home: Path, salt: int = 0) -> PublicKey:
    """Make a small party with all kinds of rows in its index, and ask once, so that columns and words exist."""
    with antiphon.open(home, unprotected=True) as store:
        party = store.create_party("Shop")
        with party.batch():
            shelf = party.object({"type": "shelf"})
            first = party.object({"name": "first"})
            for at in range(ITEMS):
                item = party.object({"size": at + salt, "name": f"thing {at} of many", "tags": [f"t{at % 7}", "all"]})
                item.move_under(shelf)
                item["other"] = first
                if at % 10 == 0:
                    party.link(shelf, item)
        ask(store, party.key)
        return party.key


def ask(store: Store, key: PublicKey) -> Answers:
    """Ask about every table of the index."""
    party = store.party(key)
    queries = [
        Query(),
        Query(prop("size") >= 60),
        Query(prop("size") < 20).order_by("name", descending=True).take(7),
        Query(prop("tags").has("t3")),
        Query(Match("thing 77")),
        Query(prop("name") == "first").referrers(),
        Query(prop("type") == "shelf").children(),
        Query(prop("type") == "shelf").links(),
        Query(prop("size") == 33).parent(),
    ]
    values = [party.aggregate(Query().sum("size")), party.aggregate(Query().count()), party.status().refused]
    found = [[bytes(item.id) for item in party.query(query)] for query in queries]
    return [
        found,
        values,
        sorted((bytes(item.id), str(item.value)) for item in party.query(Query(prop("size") >= 100))),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PublicKey, Answers]:
    """A closed home, its party, and the right answers."""
    home = tmp_path_factory.mktemp("homes") / "home"
    key = fill(home)
    with antiphon.open(home) as store:
        return home, key, ask(store, key)


@pytest.fixture
def home(made: tuple[Path, PublicKey, Answers], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "home"))


def file_in(home: Path, suffix: str = "") -> Path:
    (path,) = (home / "items").glob("*.db")
    return path.with_name(path.name + suffix)


def opened_answers(home: Path, key: PublicKey) -> tuple[Answers, str]:
    """Answers after opening, and why the items were built again."""
    with antiphon.open(home) as store:
        return ask(store, key), store.party(key).status().rebuilt


# -- one bit


@pytest.mark.parametrize("large", [False, True], ids=["checked when it is opened", "checked by the first query"])
def test_no_flipped_bit_changes_an_answer(
    made: tuple[Path, PublicKey, Answers], home: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr("antiphon.party.store.item_store.AT_ONCE_SIZE_MAX", 0)
    _, key, right = made
    whole = file_in(home).read_bytes()
    chance = random.Random(FIRST_SEED)
    sums = file_in(home, "-sums").read_bytes()
    for at in sorted(chance.sample(range(len(whole)), budget(16, 3000))):
        bit = 1 << chance.randrange(8)
        file_in(home).write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        file_in(home, "-sums").write_bytes(sums)
        found, why = opened_answers(home, key)
        assert found == right, f"byte {at}"
        assert why, f"byte {at}: it was not told"


def test_every_flipped_bit_is_found(home: Path) -> None:
    path, chance = file_in(home), random.Random(FIRST_SEED)
    whole = path.read_bytes()
    for at in sorted(chance.sample(range(len(whole)), budget(460, 20_000))):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        assert find_damage(path), f"byte {at}"


def test_a_flipped_bit_is_told_with_its_table(made: tuple[Path, PublicKey, Answers], home: Path) -> None:
    _, key, right = made
    path = file_in(home)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"thing 77 of many") + 6] ^= 1
    path.write_bytes(data)
    told = find_damage(path)
    assert str(path) in told
    assert "has changed since it was written (" in told
    assert find_damage(path) == told  # it only looks
    found, why = opened_answers(home, key)
    assert (found, why) == (right, told + "; it is built again")
    assert find_damage(path) == ""


# -- whole files


def _truncate(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def _cut_in_a_page(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def _zero(path: Path, other: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _zero_a_page(path: Path, other: Path) -> None:
    data = path.read_bytes()
    half = len(data) // 8192 * 4096
    path.write_bytes(data[:half] + bytes(4096) + data[half + 4096 :])


def _empty(path: Path, other: Path) -> None:
    path.write_bytes(b"")


def _delete(path: Path, other: Path) -> None:
    path.unlink()


def _swap(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


DAMAGE = [_truncate, _cut_in_a_page, _zero, _zero_a_page, _empty, _delete, _swap]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("suffix", ["", "-sums"])
def test_whatever_happens_to_a_file_the_answers_are_right(
    made: tuple[Path, PublicKey, Answers], home: Path, tmp_path: Path, damage: Callable[[Path, Path], None], suffix: str
) -> None:
    _, key, right = made
    fill(tmp_path / "other", 1000)
    damage(file_in(home, suffix), file_in(tmp_path / "other", suffix))
    assert opened_answers(home, key)[0] == right
    assert opened_answers(home, key) == (right, "")


def _flip_all(path: Path) -> None:
    """Change the rows of things 70 to 79 in all tables and indexes."""
    path.write_bytes(path.read_bytes().replace(b"thing 7", b"thing 8"))


@pytest.mark.parametrize("large", [False, True], ids=["checked when it is opened", "checked by the first query"])
@pytest.mark.parametrize("in_use", [False, True], ids=["closed", "in use"])
@pytest.mark.parametrize("kept", [0, 1, 5])
def test_checksums_that_were_cut_off_hide_no_damage(
    made: tuple[Path, PublicKey, Answers],
    home: Path,
    kept: int,
    in_use: bool,
    large: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if large:
        monkeypatch.setattr("antiphon.party.store.item_store.AT_ONCE_SIZE_MAX", 0)
    _, key, right = made
    path, sums = file_in(home), file_in(home, "-sums")
    data = bytearray(sums.read_bytes()[: 16 + 4 * kept])
    if in_use:
        data[4] = 0
    sums.write_bytes(data)
    assert find_damage(path)
    _flip_all(path)
    found, why = opened_answers(home, key)
    assert found == right
    assert why
    assert opened_answers(home, key) == (right, "")


def test_checksums_that_are_cut_off_while_a_party_is_open_are_not_filled_in(
    made: tuple[Path, PublicKey, Answers], home: Path
) -> None:
    _, key, _ = made
    with antiphon.open(home) as store:
        store.party(key).object({"size": 500})
        right = ask(store, key)
        os.truncate(file_in(home, "-sums"), 16)
    assert find_damage(file_in(home))
    _flip_all(file_in(home))
    found, why = opened_answers(home, key)
    assert found == right
    assert why


def test_the_whole_item_store_of_another_party_is_not_taken(
    made: tuple[Path, PublicKey, Answers], home: Path, tmp_path: Path
) -> None:
    _, key, right = made
    fill(tmp_path / "other", 1000)
    for suffix in ("", "-sums"):
        _swap(file_in(home, suffix), file_in(tmp_path / "other", suffix))
    assert opened_answers(home, key)[0] == right


@pytest.mark.parametrize("suffixes", [("",), ("-sums",), ("", "-sums")])
def test_an_older_copy_gives_the_answers_of_now(
    made: tuple[Path, PublicKey, Answers], home: Path, tmp_path: Path, suffixes: tuple[str, ...]
) -> None:
    _, key, _ = made
    old = {suffix: file_in(home, suffix).read_bytes() for suffix in suffixes}
    with antiphon.open(home) as store:
        party = store.party(key)
        for found in party.query(Query(prop("size") < 50)):
            party.item(found.id, Object)["size"] = 7
        right = ask(store, key)
    for suffix, data in old.items():
        file_in(home, suffix).write_bytes(data)
    assert opened_answers(home, key)[0] == right


# -- a look from outside


def contents(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "items").iterdir()}


@pytest.mark.parametrize("damage", [None, *DAMAGE])
@pytest.mark.parametrize("suffix", ["", "-sums"])
def test_a_look_writes_nothing(home: Path, damage: Callable[[Path, Path], None] | None, suffix: str) -> None:
    path = file_in(home)
    if damage is not None and damage is not _swap:
        damage(file_in(home, suffix), path)
    file_in(home, "-wal").write_bytes(b"a log") if damage is _empty else None
    before = contents(home)
    found = find_damage(path)
    if path.exists():
        item_store_fault(path, bytes.fromhex(path.stem))
    assert contents(home) == before
    assert bool(found) == (damage not in (None, _swap) and path.exists())


def test_a_look_needs_no_right_to_write(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, really_open = file_in(home), os.open

    def read_only(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return really_open(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", read_only)
    assert item_store_fault(path, bytes.fromhex(path.stem)) == ""


def test_a_file_that_cannot_be_read_is_not_called_damaged(home: Path) -> None:
    sums = file_in(home, "-sums")
    sums.rename(home / "elsewhere")
    sums.symlink_to(home / "elsewhere")  # links are not followed
    with pytest.raises(StoreError, match="could not be checked"):
        find_damage(file_in(home))
    codes = [finding.code for finding in check_items(home)]
    assert codes == [FindingCode.FILE_LOCKED]


def test_a_look_while_a_process_opens_the_file_and_writes_finds_no_damage(
    made: tuple[Path, PublicKey, Answers], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, key, _ = made
    compare, looks = PageSums._differences, []

    def compare_late(self: PageSums, *values: Any) -> Any:
        looks.append(1)
        if len(looks) == 1 and (pid := os.fork()) == 0:
            try:
                with antiphon.open(home, epochs=False) as store:
                    store.party(key).object({"size": 500})
            finally:
                os._exit(0)
        elif len(looks) == 1:
            os.waitpid(pid, 0)
        return compare(self, *values)

    monkeypatch.setattr(PageSums, "_differences", compare_late)
    assert find_damage(file_in(home)) == ""
    assert len(looks) == 2


# -- the log of a killed process


def killed(home: Path, key: PublicKey) -> tuple[Answers, bytes]:
    """Change items and kill the process, so that its log stays. Return the right answers, and an earlier log."""
    pid = os.fork()
    if pid == 0:
        try:
            store = antiphon.open(home, epochs=False)
            party = store.party(key)
            for size in (200, 300):
                for found in party.query(Query(prop("size") < 50)):
                    party.item(found.id, Object)["size"] = size
                party.object({"size": size})
                ask(store, key)
                if size == 200:
                    shutil.copy(file_in(home, "-wal"), home / "earlier")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert file_in(home, "-wal").stat().st_size > 0
    right = opened_answers(Path(shutil.copytree(home, home.with_name("copy"))), key)
    assert right[1] == ""  # nothing was built again
    return right[0], (home / "earlier").read_bytes()


def test_damage_in_the_log_of_a_killed_process_changes_no_answer(
    made: tuple[Path, PublicKey, Answers], home: Path
) -> None:
    _, key, _ = made
    right, earlier = killed(home, key)
    before = {path: path.read_bytes() for path in (home / "items").iterdir()}
    log = file_in(home, "-wal")
    whole = log.read_bytes()
    chance = random.Random(FIRST_SEED)
    logs = [whole[:at] for at in chance.sample(range(len(whole)), budget(8, 200))]
    logs += [
        whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :]
        for at in chance.sample(range(len(whole)), budget(16, 1000))
    ]
    for data in [b"", bytes(len(whole)), earlier, None, *logs]:
        for path in (home / "items").iterdir():
            path.unlink()
        for path, kept in before.items():
            path.write_bytes(kept)
        if data is None:
            log.unlink()
        else:
            log.write_bytes(data)
        assert opened_answers(home, key)[0] == right


def test_a_log_beside_a_file_that_was_closed_is_not_taken(made: tuple[Path, PublicKey, Answers], home: Path) -> None:
    _, key, _ = made
    right, earlier = killed(home, key)
    assert opened_answers(home, key) == (right, "")
    assert not file_in(home, "-wal").exists()
    file_in(home, "-wal").write_bytes(earlier)
    found, why = opened_answers(home, key)
    assert found == right
    assert "which was closed" in why


# -- while it is open


def _flip_open(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The item store is due for another check at each query."""
    monkeypatch.setattr("antiphon.party.store.item_store.AGAIN_AFTER_S", -1.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("size", [0, 16, 20])
def test_checksums_that_are_cut_off_while_a_party_is_open_are_missed_by_the_next_check(
    made: tuple[Path, PublicKey, Answers], home: Path, size: int
) -> None:
    _, key, right = made
    with antiphon.open(home) as store:
        assert ask(store, key) == right
        os.truncate(file_in(home, "-sums"), size)
        for _ in range(1000):  # each query may start a check, and finds what the last one found
            assert ask(store, key) == right  # also if a check ends half-way
            if store.party(key).status().rebuilt:
                break
        assert ask(store, key) == right
        assert store.party(key).status().rebuilt


@pytest.mark.usefixtures("impatient")
def test_damage_while_a_party_is_open_is_found_by_the_next_check_and_standing_results_are_corrected(
    made: tuple[Path, PublicKey, Answers], home: Path
) -> None:
    _, key, right = made
    with antiphon.open(home) as store:
        party = store.party(key)
        standing = party.subscribe(Query(prop("size") >= 60))
        assert ask(store, key) == right
        path = file_in(home)
        _flip_open(path, path.read_bytes().rindex(b"thing 77 of many") + 6)
        while not party.status().rebuilt:  # each query may start a check, and finds what the last one found
            ask(store, key)
        assert ask(store, key) == right
        assert sorted(standing.result.ids) == right[0][1]


def test_an_item_store_that_nobody_closes_is_not_built_again(made: tuple[Path, PublicKey, Answers], home: Path) -> None:
    _, key, _ = made
    store = antiphon.open(home)
    party = store.party(key)
    party.object({"size": 500})
    right = ask(store, key)
    store.close()
    del party, store
    assert opened_answers(home, key) == (right, "")


def test_a_check_can_be_ended(home: Path) -> None:
    path = file_in(home)
    sums = PageSums(path)
    sums.open()
    check = PageCheck(path, sums)
    check.stop()
    assert (check.running, check.damage) == (False, "")
    sums.close()
