"""Helpers of the tests of texts: build sequences, and look into them."""

from __future__ import annotations

from antiphon.model.text.fugue import Sequence
from antiphon.model.text.leaves import Leaf
from antiphon.model.text.runs import Run, Unit, Writer
from antiphon.model.text.siblings import Child, Siblings, next_child, outermost


def put(
    sequence: Sequence, feed: bytes, clock: int, text: str, parent: tuple[bytes, int] | None, *, left: bool = False
) -> None:
    writer = sequence.writer(feed)
    unit = Unit(writer, clock, len(text), text, None)
    if parent is not None:
        unit.above, unit.above_clock = sequence.writer(parent[0]), parent[1]
    unit.left = left
    sequence.insert(unit)
    writer.raise_floor(clock + len(text))


def open_all(sequence: Sequence) -> None:
    """Open all leaves."""
    leaf: Leaf | None = sequence.head
    while leaf is not None:
        leaf.open()
        leaf = leaf.after


def runs_by_clock(writer: Writer) -> list[Run]:
    return list(writer.runs.since(0)) if len(writer.runs) else []


def ascending(siblings: Siblings | None) -> list[Child]:
    found = []
    child = outermost(siblings, True)
    while child is not None:
        found.append(child)
        child = next_child(siblings, child, 1)
    return found


def in_order(sequence: Sequence) -> list[Run]:
    """The runs of a tree in the order of the document, without recursion: chains may be very deep."""
    found: list[Run] = []
    stack: list[tuple[Run, bool]] = [(sequence.root, False)]
    while stack:
        run, visited = stack.pop()
        if not visited:
            stack.append((run, True))
            stack += [(sequence.run(child), False) for child in reversed(ascending(run.lefts))]
        else:
            found.append(run)
            stack += [(sequence.run(child), False) for child in reversed(ascending(run.rights))]
    return found
