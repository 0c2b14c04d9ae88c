"""Folding new messages onto snapshots in columns gives the same bytes and display columns as a fold of all messages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.budget import budget
from tests.pipeline.histories import FEEDS, MODELS, OBJECT, History, Message, fold_whole, plan_of, rows_of

from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.item_codec import restore, summary
from antiphon.model.message import wrap
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.pipeline.columnar import register_fold
from antiphon.pipeline.fold.item_fold import DELETED, MESSAGES, MODEL, REASON, STATE
from antiphon.pipeline.order.total_order import OrderedMessages
from antiphon.pipeline.plan.party_plan import PartyPlan
from antiphon.pipeline.tables.columnar_display import DisplayColumns
from antiphon.pipeline.tables.columnar_resume import FlatResume
from antiphon.pipeline.tables.facts_column import fact_columns
from antiphon.pipeline.tables.state_json import state_json
from antiphon.query.facts import facts_of

SEEDS = budget(40, 600)

Row = tuple[Any, ...]


def items_in(messages: list[Message], plan: PartyPlan) -> dict[bytes, Row]:
    return {row[1]: row for row in fold_whole(messages, plan) if row[REASON] is None}


def gone_on(before: dict[bytes, Row], more: list[Message], plan: PartyPlan, chance: random.Random) -> Iterator[Any]:
    """Yield each item with only mutations that was folded in columns: snapshot, count, JSON and sort keys."""
    ordered = OrderedMessages.of(rows_of(more, chance), [plan])
    if ordered is None:
        return
    ids = [bytes(item) for item in ordered.items[ordered.starts[:-1]]]
    simple = [not (ordered.kinds[low:high] != Kind.MUTATION).any() for low, high in pairwise(ordered.starts.tolist())]
    items = np.array([nth for nth, item in enumerate(ids) if _is_object(before.get(item))], dtype=np.int64)
    new = np.zeros(len(ids), dtype=np.bool_)
    resume = FlatResume(ordered, items, [before[ids[nth]][STATE] for nth in items.tolist()], new)
    shown = resume.display(np.flatnonzero(resume.flat))
    states = shown.state.to_pylist()
    for place, nth in enumerate(items.tolist()):
        if resume.flat[nth] and simple[nth]:
            (data,) = resume.snapshots(np.array([place]), np.array([nth]))
            (at,) = shown.positions(np.array([nth])).tolist()
            yield ids[nth], data, resume.registers.message_count(nth), states[at], keys_in(shown, at)


def _is_object(row: Row | None) -> bool:
    return row is not None and row[MODEL] == OBJECT.name and not summary(row[STATE]).guarded


def keys_in(shown: DisplayColumns, at: int) -> list[tuple[str, bytes]]:
    low, high = shown.begins[at : at + 2].tolist()
    return list(zip(shown.names[low:high].to_pylist(), shown.keys[low:high].to_pylist(), strict=True))


@pytest.mark.parametrize("wild", [0.0, 0.1, 0.5])
def test_what_is_folded_on_is_what_a_fold_of_all_comes_to(wild: float) -> None:
    taken = 0
    for seed in range(SEEDS):
        chance = random.Random(f"on {seed} {wild}")
        messages = History(chance, wild).write()
        plan = plan_of(messages, chance, wild)
        cut = chance.randrange(len(messages))
        before, after = items_in(messages[:cut], plan), items_in(messages, plan)
        for item, data, count, state, keys in gone_on(before, messages[cut:], plan, chance):
            row = after[item]
            said = facts_of(restore(row[STATE], MODELS))
            assert data == row[STATE], seed
            assert before[item][MESSAGES] + count == row[MESSAGES], seed
            assert before[item][DELETED] == row[DELETED], seed
            assert state == state_json(said.value).text, seed
            assert keys == [pair for pair in fact_columns(said).keys if pair[0].startswith('["')], seed
            taken += 1
    assert taken > SEEDS // 8, "next to nothing was folded in columns"


def plain_item(chance: random.Random) -> tuple[History, bytes]:
    history = History(chance, 0.0)
    history.create()
    return history, history.items[0]


def written(history: History, lane: int, key: str, value: Any, names: list[Stamp]) -> Stamp:
    mutation = write_mutation([Op((key,), value, names)], FEEDS[lane])
    return history.add(lane, Kind.MUTATION, history.items[0], wrap(Kind.MUTATION, mutation))


def test_writes_replace_what_is_held_and_what_is_gone_is_gone() -> None:
    """One names what is held; another, from elsewhere, what is replaced already; a third something at another key."""
    chance = random.Random(5)
    history, item = plain_item(chance)
    first = written(history, 0, "title", "one", [])
    second = written(history, 1, "title", "two", [first])
    other = written(history, 1, "size", 7, [])
    cut = len(history.messages)
    written(history, 2, "title", "three", [first])
    written(history, 0, "size", 8, [second])
    written(history, 1, "size", -9, [other])
    plan = plan_of(history.messages, chance, 0.0)
    before, after = items_in(history.messages[:cut], plan), items_in(history.messages, plan)

    ((found, data, count, state, _),) = gone_on(before, history.messages[cut:], plan, chance)
    assert (found, data, count) == (item, after[item][STATE], 3)
    assert state == '{"size":-9,"title":"three"}'


def test_an_item_is_left_to_the_model_where_a_write_names_what_nobody_has_heard_of() -> None:
    chance = random.Random(6)
    history, _ = plain_item(chance)
    written(history, 0, "title", "one", [])
    cut = len(history.messages)
    written(history, 0, "title", "two", [Stamp(2, FEEDS[1], 40)])
    plan = plan_of(history.messages, chance, 0.0)
    before = items_in(history.messages[:cut], plan)

    assert not list(gone_on(before, history.messages[cut:], plan, chance))


def test_entries_that_cannot_be_told_apart_are_left_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_fold, "_mixed", lambda *columns: np.zeros(len(columns[0]), dtype=np.uint64))
    chance = random.Random(7)
    history, _ = plain_item(chance)
    first = written(history, 0, "title", "one", [])
    written(history, 0, "size", 1, [])
    cut = len(history.messages)
    written(history, 1, "title", "two", [first])
    plan = plan_of(history.messages, chance, 0.0)
    before = items_in(history.messages[:cut], plan)

    assert not list(gone_on(before, history.messages[cut:], plan, chance))


ODD_TEXTS = ('a "quoted" \\ text', "line\nand\ttab", "\x00", "\x7f\u2028", "", "x" * 400, "δέλτα" * 90)
ODD_NUMBERS = (0, 1, -1, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1, (1 << 54) + 3, -(1 << 54))


@pytest.mark.parametrize("value", [*ODD_TEXTS, *ODD_NUMBERS], ids=repr)
def test_values_are_shown_as_models_show_them(value: Any) -> None:
    chance = random.Random(8)
    history, item = plain_item(chance)
    first = written(history, 0, 'a "key"\\', value, [])
    written(history, 0, "κλειδί", value, [])
    cut = len(history.messages)
    written(history, 1, 'a "key"\\', value, [first])
    plan = plan_of(history.messages, chance, 0.0)
    before, after = items_in(history.messages[:cut], plan), items_in(history.messages, plan)

    ((_, data, _, state, keys),) = gone_on(before, history.messages[cut:], plan, chance)
    said = facts_of(restore(after[item][STATE], MODELS))
    assert data == after[item][STATE]
    assert state == state_json(said.value).text
    assert keys == [pair for pair in fact_columns(said).keys if pair[0].startswith('["')]


def test_snapshots_that_are_damaged_harm_no_other() -> None:
    """Whatever the bytes are, nothing raises, and what lies behind them is read as if they were whole."""
    chance, played = random.Random(9), 0
    for _ in range(SEEDS * 5):
        history = History(chance, 0.0)
        history.create()
        history.create()
        for _ in range(chance.randrange(2, 14)):
            history.plain(chance.randrange(3), chance.choice(history.items))
        cut = len(history.messages)
        for item in history.items:
            history.plain(chance.randrange(3), item)
        plan = plan_of(history.messages, chance, 0.0)
        rows = items_in(history.messages[:cut], plan)
        ordered = OrderedMessages.of(rows_of(history.messages[cut:], chance), [plan])
        assert ordered is not None
        if len(rows) < 2:  # both were made at once, and one has the id of another place
            continue
        whole = [rows[bytes(item)][STATE] for item in ordered.items[ordered.starts[:-1]]]
        played += 1
        data = bytearray(whole[0])
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x1A, 0x22, 0x6A, 0x7F, 0x80, 0xFF))
        bad = bytes(data[: chance.choice((len(data), len(data) - 1, len(data) // 2, 1))])
        new, both = np.zeros(2, dtype=np.bool_), np.arange(2)

        right, wrong = (FlatResume(ordered, both, [first, whole[1]], new) for first in (whole[0], bad))
        if wrong.flat[1]:  # else a text of the other is none, and all are left to the models
            assert wrong.snapshots(both[1:], both[1:]) == right.snapshots(both[1:], both[1:])
    assert played > SEEDS
