"""Guards the cost of a hostile member: what it makes the others spend, for each byte that it sends.

A change shows here that gives one member a lever: memory beyond its bytes, an opening that pays for void acts, a
later act that pays for them again, or a cost that grows faster than the input. The anchor is the same party without the
attack.

    .venv/bin/python bench/hostile.py --json [--quick] [--only branches --only entries]

A party of five members has 1,000 items and 10,000 messages. One editor spends 10 MB in the dearest way known, for each
surface: control acts, feeds, narrowings, policies, ends of its own device, erasures, votes, geneses of epochs,
refusals of them, branches of forked feeds, entries that wait for far blocks, timeframes that grow with each block,
objects, arrays, texts, deletions in texts, insertions scattered over a text, marks of a text with a name each,
insertions that wait, deletions in texts that name absent feeds, messengers, access lists, parents, schemas, queries.
Measured at an honest owner:

1. Memory while it receives the blocks, and beyond the usual one while it opens its store, for each byte received.
2. Opening its store afterwards, × without the attack.
3. Each later act: write, query, invite, revoke, set policy, edit the attacked item, declare an epoch; × without.
   Two declarations cannot be free of the attack, since they write its bytes into a snapshot for the first time: the
   first one, which holds all that was received, and one after edits of the attacked item, which is encoded again. They
   are compared for each byte: of all that is held, and of the attack, with the first declaration without an attack.
4. Growth: the CPU time of receiving all bytes, × that of receiving half of them.

`--quick` has goals of its own (`QUICK_GOALS`): with 200 kB for each surface, fixed costs and noise are larger than
what they are divided by.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from harness.report import Goal, Report, run_in_folder, times
from harness.side import Side

OURS = (sys.executable, "-m", "harness.hostile_side")
SURFACES = (
    "control acts",
    "feeds",
    "narrowings",
    "policies",
    "ends",
    "erasures",
    "votes",
    "geneses",
    "refusals",
    "branches",
    "entries",
    "timeframes",
    "objects",
    "arrays",
    "texts",
    "deletions",
    "scattered",
    "marks",
    "waiting",
    "absent feeds",
    "messengers",
    "access lists",
    "parents",
    "schemas",
    "queries",
)
NOTES = (
    "The hostile member's blocks are signed, and their headers are right. They are ingested as blocks from a peer are, "
    "and judged and folded as those, 64 KiB at a time, in the order in which they were written. (In the order of the "
    "feeds' random keys, some runs waited for a control block and folded all blocks at once; growth compared the two.)",
    "Memory is the growth of the greatest resident size while the blocks are received, and while the store is opened, "
    "less than without. Received: the least of up to three rounds. Opened: the least of five. Acts: the median of nine "
    "(set policy and declare: three, first declare and after edits: one). First declare: × without, and × without "
    "for each byte that is held.",
    "Without: the same home without the attack. The attacked item is compared with an item of its kind that the owner "
    "has made.",
)


class Goals(NamedTuple):
    """The figures that a run is held to."""

    memory: float  # × the bytes received, at most
    opening: float  # × without the attack, at most
    acts: float  # × without the attack, at most, for the act that suffers most; declaring new bytes: for each byte
    growth: float  # × the cost of half the bytes, at most


FULL_GOALS = Goals(memory=10.0, opening=3.0, acts=3.0, growth=2.4)
QUICK_GOALS = Goals(memory=100.0, opening=4.0, acts=4.0, growth=3.5)


class Plan(NamedTuple):
    """How much is measured."""

    items: int
    messages: int
    size: int  # bytes that the hostile member spends on each surface
    goals: Goals


FULL = Plan(items=1_000, messages=10_000, size=10_000_000, goals=FULL_GOALS)
QUICK = Plan(items=200, messages=2_000, size=200_000, goals=QUICK_GOALS)
TINY = Plan(items=20, messages=100, size=20_000, goals=QUICK_GOALS)


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self._rows: list[tuple[str, ...]] = []

    def run(self) -> None:
        plan = self.plan
        with closing(Side("antiphon", OURS)) as side:
            self.report.progress(f"a party of five with {plan.items:,} items")
            self._ask(side, "build", items=plan.items, messages=plan.messages)
            without = self._measured(side, "", 0)
            for surface in self.report.parts:
                self._surface(side, surface, without)
        acts = ("dearest act", "", "first declare", "… a byte", "after edits, a byte")
        columns = ("surface", "MB", "memory", "… of opening", "opened", *acts, "received, s", "growth")
        self.report.table("What a hostile member costs an honest one", columns, self._rows)
        self.report.notes.extend(NOTES)

    def _surface(self, side: Side, surface: str, without: dict[str, Any]) -> None:
        half = self._received(side, surface, self.plan.size // 2)
        whole = self._measured(side, surface, self.plan.size)
        self.report.figures[surface] = {"half": half, "whole": whole}
        goals = self.plan.goals
        memory = whole["received"]["memory"] / whole["bytes"]
        resident = max(0, whole["opened"]["memory"] - without["opened"]["memory"]) / whole["bytes"]
        opening = whole["opened"]["seconds"] / without["opened"]["seconds"]
        ratios = {act: taken / without["acts"][act] for act, taken in whole["acts"].items()}
        first, edits = ratios.pop("first declare"), ratios.pop("declare after edits", None)
        each = first * without["held"] / whole["held"]
        if edits is not None:
            usual = without["acts"]["first declare"] / without["held"]
            edits = whole["acts"]["declare after edits"] / whole["bytes"] / usual
        dearest = max(ratios, key=lambda act: ratios[act])
        growth = whole["received"]["cpu"] / half["received"]["cpu"]
        self.report.goals += [
            Goal.below(f"{surface}: memory, × the bytes received", memory, goals.memory),
            Goal.below(f"{surface}: memory of opening, × the bytes received", resident, goals.memory),
            Goal.below(f"{surface}: opening, × without", opening, goals.opening),
            Goal.below(f"{surface}: {dearest}, × without", ratios[dearest], goals.acts),
            Goal.below(f"{surface}: first declare, each byte × without", each, goals.acts),
            Goal.below(f"{surface}: twice the bytes, × the cost", growth, goals.growth),
        ]
        if edits is not None:
            edited = f"{surface}: declare after edits, each byte × the first without"
            self.report.goals.append(Goal.below(edited, edits, goals.acts))
        seconds = f"{whole['received']['seconds']:.2f}"
        size = f"{whole['bytes'] / 1e6:.1f}"
        cells = (
            size,
            times(memory),
            times(resident),
            times(opening),
            dearest,
            times(ratios[dearest]),
            times(first),
            times(each),
            "-" if edits is None else times(edits),
            seconds,
            times(growth),
        )
        self._rows.append((surface, *cells))

    def _measured(self, side: Side, surface: str, size: int) -> dict[str, Any]:
        """Measure all that an attack of a size costs; an empty surface is no attack."""
        found = self._received(side, surface, size)
        return {**found, **self._ask(side, "measure", surface=surface, item=found["item"])}

    def _received(self, side: Side, surface: str, size: int) -> dict[str, Any]:
        """Write an attack of a size, and measure what it costs to receive it."""
        self.report.progress(f"{surface}: {size / 1e6:g} MB" if surface else "without an attack")
        return {**self._ask(side, "attack", surface=surface, size=size), **self._ask(side, "receive")}

    def _ask(self, side: Side, do: str, **values: Any) -> dict[str, Any]:
        return side.ask(do, folder=str(self.folder), **values)


def main(plan: Plan | None = None) -> None:
    run_in_folder(
        "Hostile",
        "What one hostile member costs the others, for each surface.",
        lambda quick, report, folder: Bench(plan or (QUICK if quick else FULL), report, folder).run(),
        SURFACES,
    )


if __name__ == "__main__":
    main()
