"""Columns come with the first query about a property and are kept up; damage to any of it is found and named."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from antiphon.core.errors import BadEncoding, DamagedItems, InvalidInput, StoreClosed
from antiphon.core.stamp import Stamp
from antiphon.model.value import Reference
from antiphon.query import evaluate, packed_json
from antiphon.query.codec import facts as factscodec
from antiphon.query.codec.facts import apart, decode_facts, decode_value, encode_facts
from antiphon.query.facts import Facts
from antiphon.query.filters import Fact, Has, Match, prop
from antiphon.query.index import columns
from antiphon.query.index.index import ItemIndex
from antiphon.query.index.tables import FIXED
from antiphon.query.query import Query
from antiphon.query.value_order import column
from antiphon.testing.query_strategies import IDS, items, parties

pytestmark = pytest.mark.slow

A, B, C = IDS[:3]


def index_of(db: sqlite3.Connection, facts: list[Facts]) -> ItemIndex:
    index = ItemIndex(db)
    index.create()
    index.put((each.id, encode_facts(each)) for each in facts)
    index.settle()
    return index


@pytest.fixture
def db() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def sized(item: bytes, size: object) -> Facts:
    return Facts(item, "object", 1, {"size": size})


def parts(db: sqlite3.Connection, kind: str) -> list[tuple[object, object]]:
    return db.execute("SELECT slot, value FROM parts WHERE kind = ? ORDER BY slot", (kind,)).fetchall()


# -- facts as bytes


@given(items(A))
def test_facts_come_back_as_they_were(facts: Facts) -> None:
    data = encode_facts(facts)
    found = decode_facts(data, b"p" * 16)
    assert repr(found) == repr(replace(facts, parent=b"p" * 16))
    assert encode_facts(found) == data
    assert repr(decode_value(apart(data)[1])) == repr(facts.value)


def test_what_is_equal_in_python_is_told_apart() -> None:
    different = [1, 1.0, True, "1", b"1", Reference(A), [1], {"a": 1}, -0.0, 0.0, None, 2**70, float("inf")]
    assert len({encode_facts(sized(A, value)) for value in different}) == len(different)
    for value in different:
        assert repr(decode_facts(encode_facts(sized(A, value))).value) == repr({"size": value})


def test_what_no_item_can_hold_is_refused() -> None:
    for value in ("\ud800", {"\ud800": ["b", "00"]}, {1, 2}, object()):
        with pytest.raises(InvalidInput):
            encode_facts(sized(A, value))


@pytest.mark.parametrize("text", ["", "{", "1 2", '{"\\ud800":["t",1e999]}', '{"\\ud800":["x",1]}', '{"\\ud800":[]}'])
def test_packed_text_that_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(BadEncoding):
        packed_json.unpack(text)


def test_every_changed_byte_of_facts_is_found() -> None:
    data = encode_facts(sized(A, 3))
    for at in range(len(data)):
        with pytest.raises(DamagedItems, match="built again"):
            decode_facts(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    for wrong in (b"", b"\0\0\0\0", apart(encode_facts(sized(A, 3)))[1][:-1]):
        with pytest.raises(DamagedItems):
            decode_value(wrong)


# -- columns


@settings(max_examples=settings().max_examples // 4)
@given(parties())
def test_the_columns_of_facts_are_what_queries_compare_with(facts: list[Facts]) -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    index_of(db, facts)
    names = ", ".join(FIXED.values())
    for each in facts:
        row = db.execute(f"SELECT {names} FROM docs WHERE id = ?", (column(each.get(Fact.ID)),)).fetchone()
        assert row == tuple(column(each.get(fact)) for fact in FIXED)


def test_a_property_gets_its_column_with_the_first_query(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(A, 1), sized(B, 2.5), sized(C, None)])
    assert parts(db, "column") == []

    assert index.run(Query(prop("size") > 1)).ids == (B,)
    assert parts(db, "column") == [(0, '["size"]')]
    assert db.execute("SELECT v0 FROM docs ORDER BY id").fetchall() == [(1,), (2.5,), (b"\x01",)]

    index.put([(A, encode_facts(sized(A, 7))), (B, None)])
    assert index.run(Query(prop("size") > 1)).ids == (A,)


def test_a_view_is_found_by_its_key_without_a_scan(db: sqlite3.Connection) -> None:
    index = index_of(db, [replace(sized(A, 1), view_key=b"k" * 32), sized(B, 2)])
    asked: list[str] = []
    db.set_trace_callback(asked.append)
    assert index.run(Query(Fact.VIEW_KEY.is_(b"k" * 32)).with_deleted()).ids == (A,)
    db.set_trace_callback(None)
    (plan,) = db.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()
    assert "docs_view_key" in plan[3]


def test_claims_that_stay_are_not_looked_at(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that was moved thousands of times has as many, and another name of it is not about them."""
    claims = tuple((Stamp(lamport, b"f" * 32, lamport), B) for lamport in range(1, 50))
    index = index_of(db, [replace(sized(A, 1), claims=claims), sized(B, 2)])
    with monkeypatch.context() as patch:
        patch.delattr(factscodec, "decode_claims")
        index.put([(A, encode_facts(replace(sized(A, 3), claims=claims)))])
    assert (index.parent(A), index.claims(A), index.run(Query(prop("size") == 3)).ids) == (B, claims, (A,))


def test_a_query_uses_the_index_of_its_property(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(number.to_bytes(16, "big"), number) for number in range(1, 3001)])
    asked: list[str] = []
    db.set_trace_callback(asked.append)
    index.run(Query(prop("size") == 7))
    index.run(Query().order_by("size", descending=True).take(2))
    index.run(Query().order_by(Fact.CREATED).take(2))
    db.set_trace_callback(None)

    lines = [line for line in asked if line.startswith("SELECT substr")]
    plans = [" ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {line}")) for line in lines]
    used = [plan.split(" INDEX ")[1].split()[0] for plan in plans]
    assert used[0] in ("docs_v0", "docs_v0_desc")
    assert used[1:] == ["docs_v0_desc", "docs_created_asc"]
    assert not any("TEMP B-TREE" in plan for plan in plans)


def test_the_column_that_was_not_used_for_longest_is_given_away(db: sqlite3.Connection) -> None:
    values = {f"p{number}": number for number in range(columns.COLUMNS_MAX + 2)}
    first = {name: values[name] for name in list(values)[: columns.COLUMNS_MAX]}
    facts = [Facts(A, "object", 1, values), Facts(B, "object", 1, first)]
    index = index_of(db, facts)
    for name in list(values)[: columns.COLUMNS_MAX]:
        index.run(Query(Has((name,))))
    index.run(Query().order_by("p1", descending=True).take(1))
    index.run(Query(Has(("p0",))))
    for number in range(2, columns.COLUMNS_MAX):
        index.run(Query(Has((f"p{number}",))))

    for name, found in (("p64", (A,)), ("p65", (A,)), ("p1", (A, B))):
        assert index.run(Query(Has((name,)))).ids == found

    kept = {value for _, value in parts(db, "column")}
    assert len(kept) == columns.COLUMNS_MAX
    assert {'["p64"]', '["p65"]', '["p1"]'} <= kept
    assert '["p0"]' not in kept
    newest = Query().order_by("p64", descending=True).take(1)
    assert index.run(newest) == evaluate.run(newest, facts)


def test_so_are_the_elements_of_lists(db: sqlite3.Connection) -> None:
    index = index_of(db, [Facts(A, "object", 1, {"p0": ["x"], "p64": ["y"]})])
    for number in range(columns.COLUMNS_MAX + 1):
        index.run(Query(prop(f"p{number}").has("x")))
    assert len(parts(db, "members")) == columns.COLUMNS_MAX
    for name, element, found in (("p64", "x", ()), ("p64", "y", (A,)), ("p0", "x", (A,))):
        assert index.run(Query(prop(name).has(element))).ids == found


def test_a_rollback_takes_new_columns_along(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(A, 1)])
    db.execute("BEGIN")
    index.put([(B, encode_facts(sized(B, 1)))])
    assert index.run(Query((prop("size") == 1) | Match("a"))).ids == (A, B)
    db.execute("ROLLBACK")

    assert parts(db, "column") == []
    index.put([(C, encode_facts(sized(C, 1)))])
    assert index.run(Query((prop("size") == 1) | Match("a"))).ids == (A, C)


def test_a_failure_leaves_the_callers_transaction_as_it_was(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(A, 1)])
    db.execute("BEGIN")
    index.put([(B, encode_facts(sized(B, 1)))])
    db.execute("UPDATE facts SET data = x'00' WHERE n = 1")
    with pytest.raises(DamagedItems):
        index.run(Query(prop("size") == 1))
    assert db.in_transaction
    assert parts(db, "column") == []
    db.execute("UPDATE facts SET data = ? WHERE n = 1", (apart(encode_facts(sized(A, 1)))[1],))
    assert index.run(Query(prop("size") == 1)).ids == (A, B)


def test_words_of_another_unicode_are_made_anew(db: sqlite3.Connection) -> None:
    index = index_of(db, [replace(sized(A, 1), name="one")])
    assert index.run(Query(Match("one"))).ids == (A,)
    db.execute("UPDATE parts SET value = '1.0' WHERE kind = 'words'")
    index.put([(B, encode_facts(replace(sized(B, 1), name="one")))])
    assert parts(db, "words") == []
    assert index.run(Query(Match("one"))).ids == (A, B)


def test_what_did_not_change_is_not_written(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(A, 1)])
    index.run(Query((prop("size") == 1) & Match("a")))
    before = db.total_changes
    index.put([(A, encode_facts(sized(A, 1))), (B, None)])
    assert index.settle() == []
    assert db.total_changes == before


def test_edges_and_words_of_an_item_are_written_only_where_they_change(db: sqlite3.Connection) -> None:
    ends = [Reference(bytes([number]) * 16) for number in range(1, 201)]
    text = "milk " * 1000

    def facts(size: int, count: int, text: str) -> Facts:
        return Facts(A, "object", 1, {"size": size, "of": ends[:count], "text": text}, references=tuple(ends[:count]))

    index = index_of(db, [facts(1, 199, text)])
    index.run(Query(Match("milk")))

    def written(now: Facts) -> int:
        before = db.total_changes
        index.put([(A, encode_facts(now))])
        assert list(index.run(Query(Match("beer"))).ids) == ([A] if "beer" in str(now.value) else [])
        assert index.run(Query(Fact.REFERENCES.has(ends[199]))).ids == ((A,) if ends[199] in now.references else ())
        return db.total_changes - before

    first = written(facts(2, 199, text))
    assert first < 5
    assert first < written(facts(3, 200, text)) < 10
    assert first < written(facts(4, 200, text + "beer"))
    assert written(facts(5, 200, text + "beer")) == first


def test_it_begins_again_when_it_is_cleared(db: sqlite3.Connection) -> None:
    index = index_of(db, [sized(A, 1)])
    index.run(Query((prop("size") == 1) & Match("a")))
    index.clear()
    index.create()
    index.create()
    assert list(index.everything()) == []
    assert index.run(Query(prop("size") == 1)).ids == ()
    index.put([(B, encode_facts(sized(B, 1)))])
    assert index.run(Query(prop("size") == 1)).ids == (B,)
    assert [each.id for each in index.everything()] == [B]


def test_parents_follow_claims_that_come_and_go(db: sqlite3.Connection) -> None:
    def under(item: bytes, *claims: tuple[int, bytes]) -> tuple[bytes, bytes]:
        stamped = tuple((Stamp(lamport, b"f" * 32, lamport), parent) for lamport, parent in claims)
        return item, encode_facts(replace(sized(item, 1), claims=stamped))

    index = index_of(db, [])
    index.put([under(A, (5, B)), under(B, (6, A), (7, C)), under(C, (3, A))])
    assert index.settle() == []
    assert {item: facts.parent for item, facts in index.facts([A, B, C]).items()} == {A: B, B: b"", C: A}

    index.put([(C, None)])
    assert index.settle() == [B]  # the claim of C closed the circle
    assert index.facts([B])[B].parent == C
    assert index.children(C) == [B]  # which is not here, and its children are all the same
    assert index.claims(B)[-1][1] == C
    assert index.claims(C) == ()

    index.put([under(C, (3, A))])
    assert index.settle() == [B]  # and closes it again
    assert index.children(C) == []


# -- damage


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE facts SET data = x'0102'",
        "UPDATE facts SET data = 'text'",
        "UPDATE docs SET id = 7",
        "UPDATE docs SET id = 'text'",
        "UPDATE docs SET id = x'01'",
        "UPDATE docs SET v0 = x'ff'",
        "UPDATE docs SET parent = 5",
        "DROP TABLE docs",
        "DROP TABLE facts",
        "DROP TABLE parts",
        "DROP TABLE words",
        "ALTER TABLE docs RENAME COLUMN v0 TO w0",
        "UPDATE parts SET value = 'nothing' WHERE kind = 'column'",
        "UPDATE parts SET value = x'00' WHERE kind = 'members'",
        "UPDATE parts SET value = 'antiphon.index.0' WHERE kind = 'format'",
    ],
)
def test_damage_is_named(db: sqlite3.Connection, harm: str) -> None:
    index = index_of(db, [sized(A, b"1")])
    index.run(Query((prop("size") == 1) & Match("a") & prop("size").has(1)))
    db.execute(harm)

    def everything() -> None:
        index.run(Query())
        index.run(Query().max("size", group="size"))
        index.run(Query(Match("a") & prop("size").has(1)))
        index.facts([A])
        index.put([(A, encode_facts(sized(A, 2)))])

    with pytest.raises(DamagedItems, match="built again"):
        everything()
    index.clear()
    index.create()
    everything()


def test_a_file_that_was_overwritten_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "items"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    index_of(db, [sized(number.to_bytes(16, "big"), "x" * 100) for number in range(1, 500)])
    db.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))

    db = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(DamagedItems, match="damaged"):
        ItemIndex(db).run(Query())
    db.close()
    with pytest.raises(StoreClosed):
        ItemIndex(db).run(Query())
