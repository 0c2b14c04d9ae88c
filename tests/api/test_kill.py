"""A process is killed from outside while it writes, declares epochs and prunes: nothing acknowledged is lost."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.budget import FIRST_SEED, budget
from tests.kill_writer import kill_while_writing

import antiphon

WRITER = Path(__file__).with_name("journal_writer.py")
HOMES = budget(2, 20)  # a test of 250 kills would exceed the time that one test may take
KILLS = budget(10, 500) // HOMES
EMPTY: dict[str, Any] = {"object": {}, "list": [], "text": ""}


def apply(state: dict[str, Any], act: list[Any]) -> None:
    """Apply an act of the journal to a state, as Python's own values do."""
    kind, *about = act
    if kind in ("object", "batch"):
        state["object"][about[0]] = about[1]
    if kind in ("list", "batch"):
        state["list"].append(about[0])
    if kind in ("text", "batch"):
        state["text"] += about[0] if kind == "text" else f"{about[0]};"


def possible(state: dict[str, Any], found: dict[str, Any]) -> bool:
    """True if a home holds all acknowledged acts, and beside them at most the one that was under way, as a whole."""
    if found == state:
        return True
    names = {*found["object"]} - {*state["object"]} | {*found["list"]} - {*state["list"]}
    names |= {part for part in found["text"].split(";") if part} - {*state["text"].split(";")}
    if len(names) != 1:
        return False
    [name] = names
    number = int(name.split(".")[-1])
    for act in (["object", name, number], ["list", name], ["text", f"{name};"], ["batch", name, number]):
        after = deepcopy(state)
        apply(after, act)
        if found == after:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("number", range(HOMES))
def test_what_was_acknowledged_survives_a_kill(number: int, tmp_path: Path) -> None:
    chance = random.Random(FIRST_SEED + number)
    state, home, epochs = deepcopy(EMPTY), tmp_path / "home", 0
    for kill in range(KILLS):
        wanted = chance.choice([1, 2, chance.randrange(1, 40), chance.randrange(40, 200)])
        lines = kill_while_writing([str(WRITER), str(home), f"{FIRST_SEED + number}-{kill}"], wanted, chance)
        found, *acts = map(json.loads, lines)  # what the writer found in its home, and the acts that it acknowledged
        assert possible(state, found), f"kill {kill}: the home does not hold what was acknowledged"
        state = found
        for act in acts:
            apply(state, act)
            epochs += act == ["epoch"]
    with antiphon.open(home, unprotected=True, epochs=False) as store:
        party = store.party("Journal")
        items = {item.name: item for item in party.query()}
        found = {"object": items["object"].value, "list": items["list"].value, "text": items["text"].value}
        assert possible(state, found)
        assert len(party.epochs.list()) >= epochs, "an acknowledged epoch is there"
        assert party.refused() == []


def test_a_lost_act_and_half_a_batch_are_told() -> None:
    """The judge itself: it accepts one whole act more, and nothing less or other."""
    state: dict[str, Any] = {"object": {"a.1": 1}, "list": ["a.2"], "text": "a.3;"}
    more, half, less = deepcopy(state), deepcopy(state), deepcopy(state)
    apply(more, ["batch", "a.4", 4])
    half["object"]["a.4"] = 4
    half["list"].append("a.4")
    less["list"].clear()
    assert possible(state, state)
    assert possible(state, more)
    assert not possible(state, half)
    assert not possible(state, less)
