"""The parents in an index follow from the claims of all items, however a save is divided into parts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from hypothesis import given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.query.codec.facts import encode_facts
from antiphon.query.facts import Facts
from antiphon.query.index.index import ItemIndex

IDS = [bytes([n]) * 16 for n in range(1, 5)]

Claimed = Mapping[int, bytes]  # by lamport: the parent
Row = tuple[bytes, bytes | None]


def row(item: bytes, claims: Claimed) -> Row:
    stamped = tuple((Stamp(lamport, b"f" * 32, lamport), parent) for lamport, parent in sorted(claims.items()))
    return item, encode_facts(Facts(item, "object", 1, {}, claims=stamped))


def index_of(*rows: Row) -> ItemIndex:
    index = ItemIndex(sqlite3.connect(":memory:"))
    index.create()
    index.put(rows)
    index.settle()
    return index


def parents(index: ItemIndex) -> dict[bytes, bytes]:
    return {facts.id: facts.parent for facts in index.everything()}


def test_an_item_moves_in_one_part_and_its_last_child_leaves_in_the_next() -> None:
    x, y, p = IDS[:3]
    index = index_of(row(x, {}), row(y, {1: x}), row(p, {}))
    index.put([row(x, {2: p})])
    index.put([(y, None)])
    index.settle()
    assert parents(index) == {x: p, p: b""}


#: A part of a save: items and what each claims after it; None for an item that is removed.
parts = st.dictionaries(
    st.sampled_from(IDS),
    st.none() | st.dictionaries(st.integers(1, 4), st.sampled_from(IDS), max_size=2),
    min_size=1,
    max_size=2,
)


@settings(max_examples=200)
@given(st.lists(st.lists(parts, min_size=2, max_size=4), max_size=3))
def test_parts_of_saves_give_the_parents_of_a_new_index(saves: Sequence[Sequence[dict[bytes, Claimed | None]]]) -> None:
    index, latest = index_of(row(IDS[1], {1: IDS[0]})), dict[bytes, Claimed]({IDS[1]: {1: IDS[0]}})
    for save in saves:
        for part in save:
            index.put([(item, None) if claims is None else row(item, claims) for item, claims in part.items()])
            latest |= {item: claims for item, claims in part.items() if claims is not None}
            latest = {item: claims for item, claims in latest.items() if part.get(item, claims) is not None}
        index.settle()
        assert parents(index) == parents(index_of(*(row(item, claims) for item, claims in latest.items())))
