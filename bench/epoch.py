"""Guards epochs: the cost of starting from one, the cost of making one, and the pauses of writers meanwhile.

A change shows here that makes a joiner read more than the path to an item, makes an epoch pay for unchanged items, or
holds the party's lock while a snapshot is made. The anchor is the same party without its epochs: all
of its feeds, replayed in the same run. Both must give the same bytes.

    .venv/bin/python bench/epoch.py --json [--quick]

1. Starting with the blobs and the tail, against a full replay: time and bytes to the first item and to everything.
2. One item opened from the tree.
3. What an epoch costs for each live and each changed item, and how many bytes of blobs it rewrites.
4. Pauses of a writer while an epoch is declared and attested, and while the device switches to it.

`--quick` has goals of its own (`QUICK_GOALS`): a replay of 6,000 items is short beside opening the stores,
and one round has no median of pauses.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness.report import Goal, Report, megabytes, run_in_folder, times
from harness.side import Side

HERE = Path(__file__).resolve().parent
OURS = (sys.executable, "-m", "harness.epoch_side")
SHARE = 0.01  # of the items change


class Goals(NamedTuple):
    """The figures that a run is held to."""

    first: float  # × less time than a replay, to the first item
    everything: float  # × less time than a replay, to all items
    opened: float  # ms, at most
    scattered: float  # % of the snapshot's bytes, at most
    newest: float  # the same
    pause: float  # ms, at most


FULL_GOALS = Goals(first=50.0, everything=10.0, opened=10.0, scattered=25.0, newest=3.0, pause=50.0)
QUICK_GOALS = Goals(first=10.0, everything=2.0, opened=10.0, scattered=25.0, newest=3.0, pause=100.0)

PARTS = {"first": "the first item", "listed": "everything", "read": "every value read"}
NOTES = (
    "Four devices write in turns of 200 messages, each having seen the others'; 85 of 100 items are objects, the "
    "others texts, lists and threads; three quarters of the messages go to the 1,000 newest items, the others to any. "
    "Then each item is changed once more through the API. Every message is judged by the party's credentials.",
    "Replay: all feeds, no blobs. Epoch: the blobs of the last epoch, the control feeds, and what came after its cut "
    "(1 % more messages, and what the writers wrote beside the epoch). Both begin without an item store, in a fresh "
    "process after imports; opening the stores is timed. Everything: all items have their rows, and are listed. Every "
    "value read: each of them is opened and its value asked for as well. Bytes are those of feed blocks and blobs.",
    "Opened: an item and its value, for the first time, from a party that has just begun at the epoch.",
    "An epoch is made with nobody writing, then, after every item has changed, beside a writer: a thread of the same "
    "process with one durable batch of 5 changes after another. The goal is about its longest batch in a whole round;"
    " of several rounds the median counts, for a disk that others use as well keeps everybody waiting now and then, "
    "and all are shown. What was written before is on the disk when something begins. Nothing: the same writer alone."
    " Declared: by one device; attested: recomputed and signed by another, which then switches to it.",
    "Rewritten: bytes of the blobs of an epoch's snapshot that the one before does not have, of all its bytes. Feed "
    "bytes are those that a peer is sent.",
)


class Plan(NamedTuple):
    """How much is measured."""

    items: int
    mutations: int  # those through the API come on top: one for each item
    rounds: int
    opened: int
    alone: float  # seconds that a writer writes beside nothing
    goals: Goals


FULL = Plan(items=100_000, mutations=900_000, rounds=3, opened=2_000, alone=5.0, goals=FULL_GOALS)
QUICK = Plan(items=6_000, mutations=54_000, rounds=1, opened=500, alone=1.0, goals=QUICK_GOALS)
TINY = Plan(items=300, mutations=2_000, rounds=1, opened=20, alone=0.1, goals=QUICK_GOALS)


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder

    def run(self) -> None:
        plan = self.plan
        self.report.progress(f"writing {plan.items:,} items and {plan.mutations:,} mutations")
        self._ask("build", items=plan.items, mutations=plan.mutations)
        self.report.progress("declaring, attesting and standing on epochs")
        found = self._ask("epochs", share=SHARE, tail=plan.mutations // 100, alone=plan.alone, rounds=plan.rounds)
        self.report.figures["epochs"] = found
        self.starting()
        self.opening()
        self.making(found)
        self.pauses(found["pauses"])
        self.report.notes.extend(NOTES)

    def _ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Of a fresh process."""
        with closing(Side("antiphon", OURS)) as side:
            return side.ask(do, folder=str(self.folder), **values)

    # -- 1. starting

    def starting(self) -> None:
        answers: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for number in range(self.plan.rounds):
            for replay in (True, False):
                self.report.progress(f"{'a full replay' if replay else 'the epoch and the tail'}, round {number + 1}")
                answers[replay].append(self._ask("start", replay=replay))
        assert len({answer["items"] for some in answers.values() for answer in some}) == 1
        self.report.figures["starting"] = {"replay": answers[True], "epoch": answers[False]}
        rows = []
        ratios: dict[str, float] = {}
        for part, name in PARTS.items():
            replay, epoch = (median(one["seconds"][part] for one in answers[way]) for way in (True, False))
            read, less = (answers[way][0]["bytes"][part] for way in (True, False))
            ratios[part] = replay / epoch
            cells = (f"{replay:.3f}", f"{epoch:.3f}", times(replay / epoch))
            rows.append((name, *cells, f"{read / 1e6:,.1f}", f"{less / 1e6:,.1f}", times(read / less)))
        columns = ("", "replay, s", "epoch, s", "less time", "replay, MB read", "epoch, MB read", "less read")
        self.report.table(f"Starting with {self.plan.items:,} items", columns, rows)
        self.report.goals.append(Goal.at_least("first item, × less time", ratios["first"], self.plan.goals.first))
        self.report.goals.append(Goal.at_least("everything, × less time", ratios["listed"], self.plan.goals.everything))

    # -- 2. one item

    def opening(self) -> None:
        self.report.progress(f"{self.plan.opened:,} items opened")
        found = self._ask("opened", count=self.plan.opened)
        taken: list[float] = found["seconds"]
        p99 = 1e3 * taken[int(len(taken) * 0.99)]
        cells = [f"{value:.3f}" for value in (1e3 * median(taken), p99, 1e3 * taken[-1])]
        self.report.figures["opened"] = {"median, ms": 1e3 * median(taken), "p99, ms": p99, "max, ms": 1e3 * taken[-1]}
        columns = ("", "median, ms", "p99, ms", "longest, ms", "bytes read of each")
        row = (f"one of {self.plan.items:,}", *cells, f"{found['bytes']:,.0f}")
        self.report.table("An item opened from the tree", columns, [row])
        self.report.goals.append(Goal.below("an item opened, p99, ms", p99, self.plan.goals.opened))

    # -- 3. making epochs

    def making(self, found: dict[str, Any]) -> None:
        counts = {"first": found["items"], "scattered": found["changed"], "newest": found["changed"]}
        names = {"first": "the first", "scattered": "1 % changed, scattered", "newest": "1 % changed, the newest"}
        rows = []
        shares: dict[str, float] = {}
        for part, name in names.items():
            one = found[part]
            shares[part] = 100 * one["new bytes"] / one["bytes"]
            cells = [f"{1e6 * one[what] / counts[part]:,.0f}" for what in ("declared", "attested", "stood on")]
            rows.append((name, f"{counts[part]:,}", *cells, megabytes(one["new bytes"]), f"{shares[part]:.1f}"))
        columns = ("epoch", "items", "declared, µs each", "attested, µs each", "stood on, µs each", "MB new", "% new")
        self.report.table("Making an epoch, for each live or changed item", columns, rows)
        size, feeds = found["newest"]["bytes"], found["feed bytes"]
        row = (f"{found['messages']:,}", megabytes(feeds), megabytes(size), times(feeds / size))
        self.report.table("Bytes", ("messages", "feeds, MB", "snapshot, MB", "feeds ÷ snapshot"), [row])
        goals = self.plan.goals
        self.report.goals.append(
            Goal.below("1 % changed, scattered: % rewritten", shares["scattered"], goals.scattered)
        )
        self.report.goals.append(Goal.below("1 % changed, the newest: % rewritten", shares["newest"], goals.newest))

    # -- 4. pauses

    def pauses(self, rounds: list[dict[str, dict[str, Any]]]) -> None:
        rows = []
        for nth, found in enumerate(rounds, 1):
            for name, one in found.items():
                cells = [f"{1e3 * one[what]:.1f}" for what in ("median", "p99", "longest")]
                rows.append((str(nth), name, f"{one['seconds']:.1f}", f"{one['batches']:,}", *cells))
        columns = ("round", "beside", "seconds", "batches", "median, ms", "p99, ms", "longest, ms")
        self.report.table("A writer beside an epoch", columns, rows)
        longest = [max(one["longest"] for name, one in found.items() if name != "nothing") for found in rounds]
        pause = 1e3 * median(longest)
        self.report.goals.append(Goal.below("a writer's longest pause, ms", pause, self.plan.goals.pause))


def main(plan: Plan | None = None) -> None:
    run_in_folder(
        "Epochs",
        "Epochs: starting from one, making one, and what a writer sees of it.",
        lambda quick, report, folder: Bench(plan or (QUICK if quick else FULL), report, folder).run(),
    )


if __name__ == "__main__":
    main()
