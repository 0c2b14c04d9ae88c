"""The edits of bench/live.py, as one JSON file: the same for all sides."""

from __future__ import annotations

import gzip
import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TRACE = Path("editing-traces") / "automerge-paper.json.gz"
OBJECT_ITEMS = 10
WRITERS_ROUND = 5  # messages in a round of many writers
OBJECT_KEYS = 20


def make(count: int) -> dict[str, list[list[Any]]]:
    """`count` edits of each kind; what they change is always there."""
    chance = random.Random(1)
    return {"object": _object(count, chance), "array": _array(count, chance), "text": _typing(count, chance)}


def _object(count: int, chance: random.Random) -> list[list[Any]]:
    """Edits of objects: item, key, value."""
    return [
        [n % OBJECT_ITEMS, f"key {chance.randrange(OBJECT_KEYS)}", n if n % 2 else f"the value number {n}"]
        for n in range(count)
    ]


def _array(count: int, chance: random.Random) -> list[list[Any]]:
    """Edits of an array: index, number deleted, value inserted. Mostly at the end, some anywhere, a tenth deletes."""
    edits: list[list[Any]] = []
    length = 0
    for n in range(count):
        act = chance.random()
        if act < 0.1 and length:
            edits.append([chance.randrange(length), 1, []])
            length -= 1
        else:
            edits.append([length if act < 0.7 else chance.randint(0, length), 0, [n]])
            length += 1
    return edits


def _typing(count: int, chance: random.Random) -> list[list[Any]]:
    """Edits of a text: position, number deleted, character inserted. Words, some deletes, some jumps."""
    edits: list[list[Any]] = []
    length = cursor = 0
    for _ in range(count):
        if chance.random() < 0.02:
            cursor = chance.randint(0, length)
        if chance.random() < 0.15 and cursor:
            cursor -= 1
            length -= 1
            edits.append([cursor, 1, ""])
        else:
            edits.append([cursor, 0, chance.choice("etaoinshrdlu ")])
            cursor += 1
            length += 1
    return edits


def trace(count: int | None) -> tuple[list[list[Any]], str] | None:
    """The first edits of a real trace, and the text that they give; None if the data is missing."""
    folder = Path(os.environ.get("ANTIPHON_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / TRACE).is_file():
        return None
    with gzip.open(folder / TRACE, "rt") as file:
        data = json.load(file)
    edits = [patch for transaction in data["txns"] for patch in transaction["patches"]]
    if count is None or count >= len(edits):
        return edits, data["endContent"]
    text: list[str] = []
    for position, deleted, inserted in edits[:count]:
        text[position : position + deleted] = inserted
    return edits[:count], "".join(text)


@cache
def load(file: str) -> Any:
    return json.loads(Path(file).read_text())
