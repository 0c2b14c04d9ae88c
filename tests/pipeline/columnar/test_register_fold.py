"""The fold in columns gives the same result as `fold`, whatever the messages are: bytes, verdicts and counts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.budget import budget
from tests.pipeline.histories import FEEDS, MODELS, OBJECT, PARTY, History, fold_whole, plan_of, rows_of

from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.feed.header import Kind
from antiphon.model.item_codec import restore
from antiphon.model.message import Genesis, Note, wrap, write_genesis
from antiphon.pipeline.columnar.mutation_reader import LaneIndex
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.fold.fold_job import fold_ordered
from antiphon.pipeline.fold.item_fold import ItemFold
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.plan.party_plan import LanePlan, PartyPlan

SEEDS = budget(30, 400)


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.5])
def test_partitions_are_folded_as_messages_one_by_one_are(wild: float) -> None:
    taken = 0
    for seed in range(SEEDS):
        chance = random.Random(f"{seed} {wild}")
        messages = History(chance, wild).write()
        plan = plan_of(messages, chance, wild)
        ordered = OrderedMessages.of(rows_of(messages, chance), [plan])
        assert ordered is not None
        taken += int(RegisterFold(ordered, LaneIndex.of([plan])).flat.sum())
        found = sorted(fold_ordered(ItemFold({PARTY: plan}, MODELS), ordered), key=repr)

        assert found == fold_whole(messages, plan), seed
    assert taken > SEEDS // 4, "next to nothing was folded in columns"


def test_an_object_of_plain_writes_is_folded_on_columns() -> None:
    chance = random.Random(7)
    messages = History(chance, 0.0).write()
    plan = plan_of(messages, chance, 0.0)
    ordered = OrderedMessages.of(rows_of(messages, chance), [plan])

    assert ordered is not None
    assert RegisterFold(ordered, LaneIndex.of([plan])).flat.all()


def test_items_whose_numbers_meet_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "antiphon.pipeline.order.total_order.hash_items", lambda items, party: np.zeros(len(items), dtype=np.uint64)
    )
    chance = random.Random(3)
    messages = History(chance, 1.0).write()
    plan = plan_of(messages, chance, 1.0)
    ordered = OrderedMessages.of(rows_of(messages, chance), [plan])

    assert ordered is not None
    found = sorted(fold_ordered(ItemFold({PARTY: plan}, MODELS), ordered), key=repr)
    assert found == fold_whole(messages, plan)


def chunks_of(feeds: Sequence[bytes], notes: Sequence[tuple[bytes, Note]]) -> list[tuple[Any, ...]]:
    """Shuffle chunks, one for each feed."""
    rows = []
    for lane, feed in enumerate(feeds):
        mine = [(item, note) for item, note in notes if note.feed == feed]
        numbers = [np.array([getattr(note, name) for _, note in mine]) for name in ("lamport", "seq", "created_ms")]
        bodies = [note.message or b"" for _, note in mine]
        sizes = np.array([len(body) for body in bodies], dtype=np.int32).tobytes()
        kinds, ids = bytes(note.kind for _, note in mine), b"".join(item for item, _ in mine)
        rows.append((0, lane, ids, *(column.tobytes() for column in numbers), kinds, sizes, b"".join(bodies)))
    return rows


def both(feeds: Sequence[bytes], notes: Sequence[tuple[bytes, Note]]) -> tuple[Any, Any, bool]:
    """What columns come to, what `fold` comes to, and whether it was columns that did it."""
    plan = PartyPlan("home", PARTY, tuple(LanePlan(feed, 0, 0, 99, 1 << 62, 99) for feed in feeds), {}, {})
    ordered = OrderedMessages.of(chunks_of(feeds, notes), [plan])
    assert ordered is not None
    folding, flat = ItemFold({PARTY: plan}, MODELS), RegisterFold(ordered, LaneIndex.of([plan])).flat.all()
    (found,) = fold_ordered(folding, ordered)
    (_, item), _, messages = next(ordered.groups())
    (expected,) = folding.fold(PARTY, item, None, messages)
    return found, expected, bool(flat)


def genesis_of(feed: bytes, lamport: int = 1) -> tuple[bytes, Note]:
    message = write_genesis(Genesis(b"n" * NONCE_SIZE, OBJECT.name, 1))
    item = bytes(ItemId.derive(lamport, party=PARTY, feed=feed, genesis=message))
    return item, Note(Kind.GENESIS, lamport, feed, 0, 5, message)


def test_an_object_of_hundreds_of_writers_has_the_bytes_of_its_model() -> None:
    """Their places in the table take two bytes, as do sizes of registers; stamps are of all sizes, and 0."""
    feeds = sorted(number.to_bytes(32, "big") for number in range(1, 300))
    item, genesis = genesis_of(feeds[0])
    notes = [(item, genesis)]
    for number, feed in enumerate(feeds):
        for seq in range(1 if number == 0 else 0, 2):
            lamport = 2 + (number << (number % 50)) + seq
            mutation = OBJECT.set(
                OBJECT.initial(), "kk\0"[: number % 4], (number << 20) - 7 if number % 2 else "t" * number
            )
            notes.append(
                (item, Note(Kind.MUTATION, lamport, feed, seq << (number % 38), 5, wrap(Kind.MUTATION, mutation)))
            )
    found, expected, flat = both(feeds, notes)

    assert flat
    assert found == expected


def test_a_write_in_the_batch_that_makes_the_item_is_folded_on_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the lamport of the genesis. Hot items often begin so, and were folded message by message."""
    item, genesis = genesis_of(FEEDS[0])
    mutation = wrap(Kind.MUTATION, OBJECT.set(OBJECT.initial(), "title", "x"))
    notes = [(item, genesis), (item, Note(Kind.MUTATION, 1, FEEDS[0], 1, 5, mutation))]
    monkeypatch.setattr(OrderedMessages, "group", None)  # by which whole items go to `fold`
    plan = plan_of([(0, item, note) for item, note in notes], random.Random(1), 0.0)
    ordered = OrderedMessages.of(chunks_of(FEEDS[:1], notes), [plan])
    assert ordered is not None

    (row,) = fold_ordered(ItemFold({PARTY: plan}, MODELS), ordered)
    assert restore(row[8], MODELS).value == {"title": "x"}


@pytest.mark.parametrize(
    "number", [b"\x80\x00", b"\x85\x00", b"\xff\x80\x00", b"\x05", b"\x00", b"\x85\x01"], ids=bytes.hex
)
def test_a_number_that_is_written_too_long_has_the_bytes_of_its_value(number: bytes) -> None:
    item, genesis = genesis_of(FEEDS[0])
    value = b"\x18" + number
    op = b"\x0a\x01k\x1a" + bytes([len(value)]) + value
    notes = [
        (item, genesis),
        (item, Note(Kind.MUTATION, 2, FEEDS[0], 1, 5, wrap(Kind.MUTATION, b"\x12" + bytes([len(op)]) + op))),
    ]
    found, expected, flat = both(FEEDS[:1], notes)

    assert found == expected
    assert flat is (number[-1] != 0 or len(number) == 1)
