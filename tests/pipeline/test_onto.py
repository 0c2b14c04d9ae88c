"""A shelf that goes on has the rows that one written from nothing has: all columns of all tables, whatever has come.

No Spark here: one task does all of this, with real files.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.histories import PARTY, History, Message, plan_of, rows_of

from antiphon.model.factory import ModelFactory
from antiphon.pipeline import shelved
from antiphon.pipeline.goingplain import GoingPlain
from antiphon.pipeline.items import Folding
from antiphon.pipeline.onto import Job, Made, fold_onto
from antiphon.pipeline.plan import PartyPlan
from antiphon.pipeline.tablefile import Place, TableFiles, batches_in
from antiphon.pipeline.tableschema import arrow_table

SEEDS = 200 if os.environ.get("ANTIPHON_SOAK") else 12
TABLES = ("items", "links", "quarantine", "changes")

Row = dict[str, Any]


class Shelf:
    """Tables of one shelf, and how they are brought to where messages are."""

    def __init__(self, folder: Path, plan: PartyPlan, chance: random.Random) -> None:
        self.folder = folder
        self.plan = plan
        self.chance = chance
        self.files: dict[str, list[str]] = {name: [] for name in TABLES}
        self.run = 0

    def write(self, messages: Sequence[Message], *, afresh: bool) -> None:
        self.run += 1
        late = self._fold(messages, afresh=frozenset([PARTY]) if afresh else frozenset()).late
        self.late = {item for _, item in late}

    def again(self, messages: Sequence[Message]) -> None:
        """What could not be folded on, from all its messages."""
        if self.late:
            some = [message for message in messages if message[1] in self.late]
            assert not self._fold(some, whole={PARTY: self.late}).late

    def _fold(self, messages: Sequence[Message], **about: Any) -> Made:
        held = {name: {"0": tuple(files)} for name, files in self.files.items()}
        given = (str(self.folder), f"part-{self.run}", held, (self.plan,), ModelFactory.standard, self.run, 1)
        made = fold_onto(Job(*given, **about), 0, rows_of(messages, self.chance))
        for name, written in made.files.items():
            kept = [file for file in self.files[name] if file not in written.removed]
            self.files[name] = [*kept, *(str(self.folder / name / added.path) for added in written.added)]
        return made

    def rows(self, table: str) -> list[Row]:
        found = [row for file in self.files[table] for batch in batches_in(file) for row in batch.to_pylist()]
        return sorted(found, key=repr)


def both(folder: Path, chance: random.Random, wild: float) -> tuple[Shelf, Shelf]:
    """A shelf that went on in a few steps, and one that was written at once."""
    messages = History(chance, wild).write()
    plan = plan_of(messages, chance, wild)
    on, whole = Shelf(folder / "on", plan, chance), Shelf(folder / "whole", plan, chance)
    cuts = sorted({*chance.sample(range(len(messages)), min(3, len(messages))), len(messages)})
    start = 0
    for cut in cuts:
        on.write(messages[start:cut], afresh=start == 0)
        on.again(messages[:cut])
        start = cut
    whole.write(messages, afresh=True)
    return on, whole


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.5])
def test_a_shelf_that_goes_on_is_one_that_was_written_at_once(wild: float, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        on, whole = both(tmp_path / str(seed), random.Random(f"onto {seed} {wild}"), wild)
        for table in ("items", "links", "quarantine"):
            assert on.rows(table) == whole.rows(table), (seed, table)


def test_rows_that_are_not_held_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = shelved.Shelved.__post_init__

    def no_room(self: shelved.Shelved) -> None:
        original(self)
        self._room = 0

    monkeypatch.setattr(shelved.Shelved, "__post_init__", no_room)
    on, whole = both(tmp_path, random.Random("no room"), 0.1)

    assert on.rows("items") == whole.rows("items")


def test_most_items_go_on_on_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are made one by one are those of items that are not plain: without any such, there is none."""

    def never(*_: Any) -> Any:
        raise AssertionError("an item was folded by itself")

    monkeypatch.setattr(Folding, "row", never)
    on, whole = both(tmp_path, random.Random("columns"), 0.0)

    assert on.rows("items") == whole.rows("items")
    assert on.rows("items")


def test_changes_tell_what_each_run_has_made(tmp_path: Path) -> None:
    on, whole = both(tmp_path, random.Random("changes"), 0.0)
    items = {row["item"]: row for row in whole.rows("items")}
    told: dict[bytes, list[Row]] = {}
    for row in sorted(on.rows("changes"), key=lambda row: row["run"]):
        told.setdefault(row["item"], []).append(row)

    assert told.keys() == items.keys()
    for item, rows in told.items():
        assert rows[0]["change"] == "created"
        assert "created" not in [row["change"] for row in rows[1:]]
        assert rows[-1]["messages"] == items[item]["messages"]


def test_a_state_that_is_no_text_is_named_when_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns find that some text is none, and leave all to the models, which say whose it is."""
    chance = random.Random("damaged")
    history = History(chance, 0.0)
    history.create()
    for _ in range(4):
        history.plain(0, history.items[0])
    plan = plan_of([*history.messages, *history.messages], chance, 0.0)
    shelf = Shelf(tmp_path, plan, chance)
    shelf.write(history.messages, afresh=True)
    seen: list[bool] = []
    original = GoingPlain.__init__

    def spoilt(self: GoingPlain, ordered: Any, items: Any, snapshots: Sequence[bytes], new: Any) -> None:
        original(self, ordered, items, snapshots, new)
        seen.append(bool(self.plain.any()))

    monkeypatch.setattr(GoingPlain, "__init__", spoilt)
    monkeypatch.setattr("antiphon.pipeline.goingplain.show_plain", _refusing())
    count = len(history.messages)
    history.plain(1, history.items[0])
    shelf.write(history.messages[count:], afresh=False)

    assert seen == [False]
    assert shelf.rows("items")[0]["messages"] == count + 1


def _refusing() -> Any:
    from antiphon.pipeline.plainshown import show_plain

    def act(entries: Any, items: Any, wire: Any) -> Any:
        if len(items):
            raise pa.ArrowInvalid("Invalid UTF8 sequence")
        return show_plain(entries, items, wire)

    return act


@pytest.mark.parametrize("table", ["items", "blocks", "quarantine"])
def test_all_columns_of_files_are_packed_but_hashes(table: str, tmp_path: Path) -> None:
    """Parts of what is nested are columns of their own, and Parquet packs none that is not named."""
    schema = arrow_table(table)
    files = TableFiles(Place(str(tmp_path), "part", "0"), schema)
    files.write(pa.RecordBatch.from_pylist([{}], schema))
    group = pq.read_metadata(tmp_path / files.done().added[0].path).row_group(0)
    packed = {group.column(at).path_in_schema: group.column(at).compression for at in range(group.num_columns)}

    assert {path for path, how in packed.items() if how != "ZSTD"} == packed.keys() & {"hash", "body_hash"}
