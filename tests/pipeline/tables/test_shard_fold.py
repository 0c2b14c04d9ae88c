"""An incremental run leaves the same rows in a shard as a full run: all columns of all tables, whatever has come.

No Spark here: one task does all of this, with real files.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.budget import budget
from tests.pipeline.histories import FEEDS, OBJECT, PARTY, History, Message, fold_whole, plan_of, rows_of

from antiphon.core.errors import BadEncoding
from antiphon.feed.header import Kind
from antiphon.model.factory import ModelFactory
from antiphon.model.message import wrap
from antiphon.pipeline.fold.item_fold import REASON, STATE, ItemFold
from antiphon.pipeline.fold.summary import Tally, combine_tallies
from antiphon.pipeline.order.shuffle_chunk import buckets_of, ids_of
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.tables import shard_rows
from antiphon.pipeline.tables.parquet_files import PartitionPath, PartitionWriter, read_batches
from antiphon.pipeline.tables.schemas import arrow_table
from antiphon.pipeline.tables.shard_fold import ShardJob, fold_shard

SEEDS = budget(12, 200)
TABLES = ("items", "links", "quarantine", "changes")

Row = dict[str, Any]


class Shards:
    """Tables with their files, and the folds that bring them up to date with messages."""

    def __init__(self, folder: Path, plan: PartyPlan, chance: random.Random, buckets: int = 1) -> None:
        self.folder = folder
        self.plan = plan
        self.chance = chance
        self.buckets = buckets
        self.files: dict[str, dict[str, list[str]]] = {name: {} for name in TABLES}
        self.run = 0
        self.tallies: list[Tally] = []

    def write(self, new: Sequence[Message], every: Sequence[Message], *, full: bool) -> None:
        self.run += 1
        late = self._fold(new, full=frozenset([PARTY]) if full else frozenset())
        if late:  # items that must be folded from all their messages
            assert not self._fold([message for message in every if message[1] in late], refold={PARTY: late})

    def _fold(self, messages: Sequence[Message], **about: Any) -> set[bytes]:
        held = {name: {digit: tuple(some) for digit, some in files.items()} for name, files in self.files.items()}
        given = (str(self.folder), f"part-{self.run}", held, (self.plan,), ModelFactory.standard, self.run)
        job = ShardJob(*given, self.buckets, **about, tallied=frozenset([PARTY]))
        where = buckets_of(ids_of(message[1] for message in messages), self.buckets).tolist()
        done = []
        for bucket in range(self.buckets):
            mine = [message for message, at in zip(messages, where, strict=True) if at == bucket]
            done.append(fold_shard(job, bucket, rows_of(mine, self.chance)))
        for made in done:
            for name, written in made.files.items():
                for one in written.added:
                    self.files[name].setdefault(one.values["bucket"], []).append(str(self.folder / name / one.path))
        for made in done:
            for name, written in made.files.items():
                for files in self.files[name].values():
                    files[:] = [file for file in files if file not in written.removed]
        self.tallies = [made.tally for made in done if made.tally is not None]
        return {item for made in done for _, item in made.refold}

    def rows(self, table: str) -> list[Row]:
        every = [file for files in self.files[table].values() for file in files]
        return sorted((row for file in every for batch in read_batches(file) for row in batch.to_pylist()), key=repr)


def both(
    folder: Path, chance: random.Random, wild: float, buckets: int = 1, *, late: bool = False
) -> tuple[Shards, Shards, list[Message]]:
    """Tables that went on in a few steps, and those that were written at once."""
    messages = History(chance, wild).write()
    if late:
        messages = one_feed_late(messages, chance)
    plan = plan_of(messages, chance, wild)
    on, whole = Shards(folder / "on", plan, chance, buckets), Shards(folder / "whole", plan, chance)
    cuts = sorted({*chance.sample(range(len(messages)), min(3, len(messages))), len(messages)})
    start = 0
    for cut in cuts:
        on.write(messages[start:cut], messages[:cut], full=start == 0)
        start = cut
    whole.write(messages, messages, full=True)
    return on, whole, messages


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.5])
def test_tables_that_went_on_are_those_that_were_written_at_once(wild: float, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        chance = random.Random(f"onto {seed} {wild}")
        on, whole, messages = both(tmp_path / str(seed), chance, wild, chance.choice((1, 2, 16, 32)))
        model = {row[1]: row[STATE] for row in fold_whole(messages, on.plan) if row[REASON] is None}
        assert {row["item"]: row["data"] for row in whole.rows("items")} == model, seed
        for table in ("items", "links", "quarantine"):
            assert on.rows(table) == whole.rows(table), (seed, table)
        assert combine_tallies(on.tallies) == combine_tallies(whole.tallies), seed


def one_feed_late(messages: Sequence[Message], chance: random.Random) -> list[Message]:
    """Delay one feed, by any number of messages: what others wrote to its items comes before these exist."""
    late = chance.randrange(len(FEEDS))
    waiting, others = ([one for one in messages if (one[0] == late) == is_late] for is_late in (True, False))
    at = chance.randrange(len(others) + 1)
    return [*others[:at], *waiting, *others[at:]]


@pytest.mark.parametrize("wild", [0.0, 0.1])
def test_a_late_genesis_takes_in_the_messages_that_were_refused_before_it(wild: float, tmp_path: Path) -> None:
    """Their verdicts change with a message that comes later: the item is folded from all of its messages."""
    taken_in = 0
    for seed in range(SEEDS):
        chance = random.Random(f"late {seed} {wild}")
        on, whole, messages = both(tmp_path / str(seed), chance, wild, chance.choice((1, 16)), late=True)
        for table in ("items", "links", "quarantine"):
            assert on.rows(table) == whole.rows(table), (seed, table)
        assert combine_tallies(on.tallies) == combine_tallies(whole.tallies), seed
        first = {item: note.kind for _, item, note in reversed(messages)}
        taken_in += sum(first[row["item"]] != Kind.GENESIS for row in whole.rows("items"))
    assert taken_in > SEEDS // 2


def test_most_items_are_updated_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are made one by one only for items that are not flat: without such items, there is none."""

    def never(*_: Any) -> Any:
        raise AssertionError("an item was folded by itself")

    monkeypatch.setattr(ItemFold, "row", never)
    on, whole, _ = both(tmp_path, random.Random("columns"), 0.0)

    assert on.rows("items") == whole.rows("items")
    assert on.rows("items")


def test_changes_tell_what_each_run_has_made(tmp_path: Path) -> None:
    on, whole, _ = both(tmp_path, random.Random("changes"), 0.0)
    items = {row["item"]: row for row in whole.rows("items")}
    told: dict[bytes, list[Row]] = {}
    for row in sorted(on.rows("changes"), key=lambda row: row["run"]):
        told.setdefault(row["item"], []).append(row)

    assert told.keys() == items.keys()
    for item, rows in told.items():
        assert rows[0]["change"] == "created"
        assert "created" not in [row["change"] for row in rows[1:]]
        assert rows[-1]["messages"] == items[item]["messages"]


def test_a_state_that_is_no_text_is_told_by_its_model(tmp_path: Path) -> None:
    """Columns find that some text is none, and leave it to the model, which says what is wrong."""
    chance = random.Random("damaged")
    history = History(chance, 0.0)
    history.create()
    mutation = wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "title", "a text to be damaged"))
    history.add(0, Kind.MUTATION, history.items[0], mutation)
    cut = len(history.messages)
    history.add(1, Kind.MUTATION, history.items[0], mutation)
    shards = Shards(tmp_path, plan_of(history.messages, chance, 0.0), chance)
    shards.write(history.messages[:cut], history.messages[:cut], full=True)
    ((file,),) = shards.files["items"].values()
    table = pq.ParquetFile(file).read()
    (data,) = table.column("data").to_pylist()
    bad = pa.array([data.replace(b"a text", b"a\xfftext")], pa.binary())
    pq.write_table(table.set_column(table.schema.get_field_index("data"), "data", bad), file)

    with pytest.raises(BadEncoding, match="snapshot of an object"):
        shards.write(history.messages[cut:], history.messages, full=False)


@pytest.mark.parametrize("room", ["_tried", "_room"])
def test_what_there_is_no_room_for_goes_another_way(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are not kept in memory are read again, and objects beyond the size limits are folded by their model."""
    original = shard_rows.ShardRows.__post_init__

    def no_room(self: shard_rows.ShardRows) -> None:
        original(self)
        setattr(self, room, 0)

    monkeypatch.setattr(shard_rows.ShardRows, "__post_init__", no_room)
    on, whole, _ = both(tmp_path, random.Random("no room"), 0.1)

    assert on.rows("items") == whole.rows("items")


@pytest.mark.parametrize("table", ["items", "blocks", "quarantine"])
def test_all_columns_of_files_are_packed_but_hashes(table: str, tmp_path: Path) -> None:
    """Parts of what is nested are columns of their own, and Parquet packs none that is not named."""
    schema = arrow_table(table)
    files = PartitionWriter(PartitionPath(str(tmp_path), "part", "0"), schema)
    files.write(pa.RecordBatch.from_pylist([{}], schema))
    group = pq.read_metadata(tmp_path / files.finish().added[0].path).row_group(0)
    packed = {group.column(at).path_in_schema: group.column(at).compression for at in range(group.num_columns)}

    assert {path for path, how in packed.items() if how != "ZSTD"} == packed.keys() & {"hash", "body_hash"}
