"""The item store: all or nothing, rebuilt when it is not right, and bytes that changed are found."""

from __future__ import annotations

import random
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.party.store.forged_sums import forge_sums, spoil

from antiphon.core.errors import BadEncoding, DiskFull, InvalidInput, StoreError
from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.party.engine.ports import ItemRow, LaneState, Posting, Refused, Save, Void
from antiphon.party.engine.postings import decode_postings, encode_postings
from antiphon.party.store.item_store import (
    FORMAT,
    LONG,
    ItemStore,
    decode_lane,
    delete_file,
    encode_lane,
)
from antiphon.query.index.index import ItemIndex

PARTY, OTHER = b"p" * 32, b"o" * 32
FEED = b"f" * 32
A, B = b"a" * 16, b"b" * 16
SEQ = st.integers(0, (1 << 63) - 1)
POSTINGS = st.lists(st.builds(Posting, SEQ, SEQ, SEQ), max_size=20)
FRAMES = st.dictionaries(st.binary(min_size=32, max_size=32), SEQ, max_size=3)
LANES = st.builds(
    LaneState,
    st.just(FEED),
    st.just(1),
    SEQ,
    SEQ,
    st.binary(min_size=32, max_size=32),
    st.text(max_size=20),
    st.dictionaries(SEQ, FRAMES, max_size=3).map(lambda frames: Sightings(sorted(frames.items()))),
    st.lists(st.builds(Void, SEQ, SEQ, st.text(max_size=20)), max_size=3),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "items.db"


@pytest.fixture
def store(path: Path) -> Iterator[ItemStore]:
    with closing(ItemStore(path, PARTY)) as opened:
        yield opened


def _runs(postings: list[Posting]) -> bytes:
    return encode_postings([postings])[0]


def some() -> Save:
    return Save(
        rows=[ItemRow(A, b"state of a", "m/a", 1, B, True), ItemRow(B, b"state of b", "m/b", 2, opaque=True)],
        postings=[(A, _runs([Posting(1, 0, 3)])), (B, _runs([Posting(1, 3, 4), Posting(2, 0, 1)]))],
        verdicts=[(Stamp(4, FEED, 3), B, "malformed")],
        lanes=[LaneState(FEED, 1, 4, 9, b"h" * 32, "", Sightings([(0, {OTHER: 5})]), [Void(1, 2, "revoked")])],
    )


def put(store: ItemStore, save: Save) -> None:
    with store.saving() as add:
        add(save)


def test_a_long_row_is_stored_without_copies_of_it(store: ItemStore, path: Path) -> None:
    """Given rows around the length from which SQLite gets a record piece by piece, then they are read as they were."""
    long = random.Random(1).randbytes(3 * LONG)
    for records in ([long[:LONG], long[: LONG + 1], b"short"], [b"short", long, long[:LONG]], [long[1:], b"", b"x"]):
        ids = [bytes([nth]) * 16 for nth in range(3)]
        put(store, Save(rows=[ItemRow(item, record, "m", 1) for item, record in zip(ids, records, strict=True)]))
        assert [store.load([item])[item] for item in ids] == records
    save = Save(rows=[ItemRow(A, long, "m", 1)])
    tracemalloc.start()
    try:
        put(store, save)
        assert tracemalloc.get_traced_memory()[1] < LONG
    finally:
        tracemalloc.stop()
    store.close()
    with closing(ItemStore(path, PARTY)) as again:
        assert again.load([A]) == {A: long}
    spoil(path, "UPDATE items SET record = ? WHERE id = ?", bytes(len(long) + 4), A)
    with closing(ItemStore(path, PARTY)) as again, pytest.raises(StoreError, match="changed"):
        again.load([A])


def read(store: ItemStore) -> tuple[object, ...]:
    return (
        store.load([A, B]),
        store.postings(A),
        store.postings(B),
        store.refused(),
        store.lanes(),
        list(store.ids()),
        store.opaque(),
        store.count(),
    )


def test_what_is_saved_is_there_when_it_is_opened_again(path: Path) -> None:
    with closing(ItemStore(path, PARTY)) as store:
        put(store, some())
        put(store, Save(postings=[(A, _runs([Posting(2, 1, 2)]))]))
        before = read(store)
    with closing(ItemStore(path, PARTY)) as store:
        assert (read(store), store.why_rebuilt) == (before, "")
        assert store.load([A, B]) == {A: b"state of a", B: b"state of b"}
        assert store.postings(A) == [Posting(1, 0, 3), Posting(2, 1, 2)]
        assert store.refused() == [Refused(FEED, 3, B, "malformed")]
        assert store.lanes() == some().lanes
        assert store.opaque() == [(B, "m/b", 2)]
        put(store, Save(postings=[(A, _runs([Posting(3, 0, 1)]))]))
        assert store.postings(A)[-1] == Posting(3, 0, 1)


def test_ids_come_in_order_and_by_model(store: ItemStore) -> None:
    put(store, some())
    assert (list(store.ids()), list(store.ids("m/b")), list(store.ids("m/c"))) == ([A, B], [B], [])


def test_a_transaction_that_fails_has_not_been(store: ItemStore) -> None:
    put(store, some())
    before = read(store)
    with pytest.raises(ZeroDivisionError), store.saving() as add:  # noqa: PT012
        add(Save(rows=[ItemRow(A, b"other", "m/a", 1)], verdicts=[(Stamp(4, FEED, 3), B, "")]))
        raise ZeroDivisionError
    assert read(store) == before
    put(store, Save(rows=[ItemRow(A, b"other", "m/a", 1)]))
    assert store.load([A]) == {A: b"other"}


def test_what_sqlite_refuses_is_an_error_of_ours(store: ItemStore) -> None:
    with pytest.raises(StoreError, match=r"the item store at .*items\.db cannot be written"):
        put(store, Save(postings=[(A, _runs([Posting(1, 0, 1)])), (A, _runs([Posting(1, 1, 2)]))]))
    assert store.postings(A) == []


def test_a_full_disk_is_named(store: ItemStore) -> None:
    """Given a file that may not grow, as on a full disk, when a save needs more room, then the error says so."""
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFull, match="no space is left on the disk"):
        put(store, Save(rows=[ItemRow(A, b"large" * 10_000, "m/a", 1)]))
    assert store.load([A]) == {}


def test_an_index_is_current_until_a_save_without_it(path: Path) -> None:
    """Given a store with an index, when it is opened again, then the index is current and is not made anew; but it is,
    and with `only_known` it is not attached, once a save has passed it by.
    """
    with closing(ItemStore(path, PARTY)) as store:
        assert not store.attach(ItemIndex, only_known=True)
        assert store.index is None
        assert not store.attach(ItemIndex)
        put(store, Save(rows=[ItemRow(A, b"state of a", "m/a", 1)]))
    with closing(ItemStore(path, PARTY)) as store:
        assert store.attach(ItemIndex, only_known=True)
        assert store.index is not None
    with closing(ItemStore(path, PARTY)) as store:
        put(store, Save(rows=[ItemRow(B, b"state of b", "m/b", 1)]))
        assert not store.attach(ItemIndex, only_known=True)
        assert store.index is None
        assert not store.attach(ItemIndex)


def test_a_forgotten_item_is_gone_at_once_and_after_the_next_transaction_for_good(store: ItemStore) -> None:
    put(store, some())
    store.forget(B)
    assert (store.load([A, B]), store.postings(B)) == ({A: b"state of a"}, [])
    put(store, Save(rows=[ItemRow(B, b"anew", "m/b", 2)], postings=[(B, _runs([Posting(1, 3, 4)]))]))
    assert (store.load([B]), store.postings(B), store.refused()) == ({B: b"anew"}, [Posting(1, 3, 4)], [])


def test_an_id_without_a_valid_genesis_is_known_but_no_item(store: ItemStore) -> None:
    put(store, Save(rows=[ItemRow(A, None)], postings=[(A, _runs([Posting(1, 0, 1)]))]))
    assert (store.load([A]), list(store.ids()), store.count()) == ({A: b""}, [], 0)


def test_a_verdict_is_cleared_when_a_message_counts_after_all(store: ItemStore) -> None:
    put(store, some())
    put(store, Save(verdicts=[(Stamp(4, FEED, 3), B, "")]))
    assert (store.refused(), store.refused_count()) == ([], 0)


def test_without_a_path_it_is_in_memory() -> None:
    with closing(ItemStore(None, PARTY)) as store:
        put(store, some())
        assert store.load([A]) == {A: b"state of a"}


# -- damage


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(b"no database at all" * 2048), "not a database"),
        (lambda path: spoil(path, "UPDATE meta SET value = ? WHERE key = 'format'", "antiphon.items.9"), "format"),
        (lambda path: spoil(path, "UPDATE meta SET value = ? WHERE key = 'party'", OTHER), "another party"),
        (lambda path: spoil(path, "DROP TABLE meta"), "no such table: meta"),
        (lambda path: spoil(path, "DROP TABLE postings"), "no such table: postings"),
    ],
    ids=["rubbish", "another version", "another party", "meta is gone", "a table is gone"],
)
def test_a_file_that_is_not_right_is_built_anew(path: Path, damage: Callable[[Path], None], why: str) -> None:
    with closing(ItemStore(path, PARTY)) as store:
        put(store, some())
    damage(path)
    forge_sums(path)
    with closing(ItemStore(path, PARTY)) as store:
        assert why in store.why_rebuilt
        assert (store.count(), store.lanes()) == (0, [])
        put(store, some())
    with closing(ItemStore(path, PARTY)) as store:
        assert (store.why_rebuilt, store.count()) == ("", 2)


def test_a_path_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError, match=r"folder\.db cannot be opened"):
        ItemStore(tmp_path / "folder.db", PARTY)


@pytest.mark.parametrize(
    ("table", "column", "ask"),
    [
        ("items", "record", lambda store: store.load([A])),
        ("postings", "runs", lambda store: store.postings(A)),
        ("feeds", "state", lambda store: store.lanes()),
    ],
)
def test_a_flipped_byte_in_a_row_is_found(
    path: Path, table: str, column: str, ask: Callable[[ItemStore], object]
) -> None:
    with closing(ItemStore(path, PARTY)) as store:
        put(store, Save(rows=some().rows[:1], postings=some().postings[:1], lanes=some().lanes))
    with closing(sqlite3.connect(path)) as db:
        (data,) = db.execute(f"SELECT {column} FROM {table}").fetchone()
    for at in range(len(data)):
        spoil(path, f"UPDATE {table} SET {column} = ?", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with (
            closing(ItemStore(path, PARTY)) as store,
            pytest.raises(BadEncoding, match=r"bytes in the item store have changed"),
        ):
            ask(store)


def test_a_row_under_another_key_is_found(path: Path) -> None:
    with closing(ItemStore(path, PARTY)) as store:
        put(store, Save(rows=some().rows[:1]))
    spoil(path, "UPDATE items SET id = ?", B)
    with closing(ItemStore(path, PARTY)) as store, pytest.raises(BadEncoding):
        store.load([B])


def test_the_file_goes_with_all_that_sqlite_keeps_beside_it(path: Path) -> None:
    with closing(ItemStore(path, PARTY)) as store:
        put(store, some())
        delete_file(path)
    assert not list(path.parent.iterdir())
    delete_file(path)


def test_the_format_is_named_in_the_file(store: ItemStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() == (FORMAT,)


# -- codecs


@given(postings=POSTINGS)
def test_postings_go_round(postings: list[Posting]) -> None:
    assert decode_postings(_runs(postings)) == postings


@given(lane=LANES)
def test_a_lane_goes_round(lane: LaneState) -> None:
    assert decode_lane(1, FEED, encode_lane(lane)) == lane


@given(data=st.binary(max_size=120))
def test_rubbish_is_neither_postings_nor_a_lane(data: bytes) -> None:
    with suppress(BadEncoding):
        assert all(len(posting) == 3 for posting in decode_postings(data))
    with suppress(InvalidInput):
        assert decode_lane(1, FEED, data).feed == FEED


@given(lane=LANES, cut=st.integers(1, 40), more=st.binary(max_size=3))
def test_a_lane_that_is_cut_is_none(lane: LaneState, cut: int, more: bytes) -> None:
    data = encode_lane(lane)
    with pytest.raises(InvalidInput):
        decode_lane(1, FEED, data[:-cut])
    if more:
        with pytest.raises(InvalidInput):
            decode_lane(1, FEED, data + more)


@pytest.mark.parametrize("data", [b"\x01", b"\x80", b"\x01\x02\x80", b"\xff" * 11 + b"\x01\x01\x01"])
def test_postings_that_end_in_the_middle_are_refused(data: bytes) -> None:
    with pytest.raises(BadEncoding, match="postings"):
        decode_postings(data)
