"""Guards the simulator: how much of a party's life it plays in a second, and that many peers cost no more than few.

A change that makes a peer look at everything whenever something comes, a session tell what the other knows, or an
epoch fold what it has folded shows here first: twenty peers do it twenty times. There is no anchor; the sides are runs
of different sizes, played in the same run of this program, each in a process of its own. All laws are checked after
each of them, and one that breaks ends the benchmark.

    .venv/bin/python bench/sim.py --json [--quick]

1. A busy party with epochs: seconds of wall time, and messages a second.
2. Where that time goes.
3. The same work for each peer, with more and more peers, without epochs and with them.
4. Small runs with all faults, as the tests and `antiphon sim search` play them: seeds a minute.

`--quick` has goals of its own (`QUICK_GOALS`): its busy party is a tenth of the full one, each size is played
once, and twelve small runs leave more noise.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness.report import Goal, Report, per_second, run_in_folder, times
from harness.side import Side

HERE = Path(__file__).resolve().parent
OURS = (sys.executable, "-m", "harness.sim_side")
REST = "rest"
RECEIVING = ("protocol", "links", "ingest", "delivery and fold", "epochs", REST)  # what nobody does once for all peers
WRITTEN_MIN = 0.95  # of what was asked for; if less was, or fewer epochs were made, it was another party


class Goals(NamedTuple):
    """The figures that a run is held to."""

    busy: float  # s, at most
    attributed: float  # % of the time that is some part's
    growth: float  # × from the fewest peers to the most, at most
    seeds: float  # a minute: 60 of them are in the tests, which have half a minute for them


FULL_GOALS = Goals(busy=20.0, attributed=90.0, growth=1.5, seeds=100.0)
QUICK_GOALS = Goals(busy=5.0, attributed=80.0, growth=1.8, seeds=60.0)

NOTES = (
    "Written: messages that were acknowledged to their writers. Delivered: blocks that a peer received from another, "
    "at all peers together; those of control feeds are among them. Seconds are of the whole run: stores are made, "
    "peers join, the laws are checked after it, stores are closed.",
    "Peers have all that a real one has, stores on the disk too; but a signature is computed once for all of them: it "
    "would be 4 % of the time. So is a credential read. Each run has a fresh process, which has played a small party "
    "before.",
    "Parts are timed by wrapping their methods, in another run of the same seed. Time in a part that another part "
    "calls is its own: what is delivered while somebody writes is not the writing's. Epochs: due, planned, folded, "
    "attested, stood on, pruned. Rest: the queue of the world, its trace, and what peers do between the parts.",
    "People who write so much type, paste and import: an act of several edits stays with an item for eight of them, "
    "and seven in ten such acts are one batch.",
    "With more and more peers, each writes the same number of messages and looks at what is new at the same pace; "
    "three attest, every other one prunes. As everybody gets everything, the time of a run grows with the square of "
    "the peers; the cost of a message that is delivered should not. Writing it is paid once, however many get it, so "
    "that many peers have it easier: received is the cost without writing, founding, checks and closing. All sizes "
    "but the largest are played before and after it, and their median counts. A few batches are refused, as one of "
    "their messages is: then less was written than asked for.",
)


class Plan(NamedTuple):
    """How much is measured."""

    busy: tuple[int, int, int]  # peers, messages, epochs
    growth: tuple[int, ...]  # peers
    each: int  # messages that each of them writes; with so few peers, still enough for a busy party
    epochs: int
    back: bool  # the smaller ones once more, after the largest
    seeds: int
    goals: Goals


FULL = Plan(busy=(20, 10_000, 5), growth=(5, 10, 20, 50), each=210, epochs=2, back=True, seeds=100, goals=FULL_GOALS)
QUICK = Plan(busy=(8, 1_050, 3), growth=(5, 10), each=210, epochs=2, back=False, seeds=12, goals=QUICK_GOALS)
TINY = Plan(busy=(3, 40, 2), growth=(2, 3), each=15, epochs=1, back=True, seeds=2, goals=QUICK_GOALS)


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder

    def run(self) -> None:
        self.busy()
        self.growth()
        self.seeds()
        self.report.notes.extend(NOTES)

    def _ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Of a fresh process."""
        with closing(Side("antiphon", OURS)) as side:
            side.ask("warm", folder=str(self.folder))
            return side.ask(do, folder=str(self.folder), **values)

    # -- 1. and 2. a busy party

    def busy(self) -> None:
        peers, messages, epochs = self.plan.busy
        what = f"{peers} peers, {messages:,} messages, {epochs} epochs"
        size = {"peers": peers, "messages": messages, "epochs": epochs}
        self.report.progress(what)
        found = self._ask("play", size=size)
        self.report.progress(f"{what}, in parts")
        timed = self._ask("play", size=size, parts=True)
        assert found["delivered"] == timed["delivered"], "one seed, two runs"
        self.report.figures["busy"] = {"alone": found, "in parts": timed}
        seconds = found["seconds"]
        cells = (f"{found['epochs']}", f"{found['virtual']:.0f}", f"{seconds:.1f}")
        row = (what, *cells, per_second(found["messages"] / seconds), per_second(found["delivered"] / seconds))
        columns = ("asked for", "epochs made", "virtual s", "wall s", "written/s", "delivered/s")
        self.report.table("A busy party", columns, [row])
        whole = found["messages"] >= WRITTEN_MIN * messages and found["epochs"] >= epochs
        self.report.goals.append(Goal.below(f"{what}, s", seconds if whole else None, self.plan.goals.busy))
        self._parts(timed)

    def _parts(self, timed: dict[str, Any]) -> None:
        whole: float = timed["seconds"]
        rows = [
            (part, f"{taken:.2f}", f"{100 * taken / whole:.1f}", f"{1e6 * taken / timed['delivered']:.1f}")
            for part, taken in timed["parts"].items()
        ]
        columns = ("part", "s", "%", "µs of each delivered")
        self.report.table(f"Where its time goes, {whole:.1f} s in another run", columns, rows)
        share = 100 * sum(taken for part, taken in timed["parts"].items() if part != REST) / whole
        self.report.goals.append(Goal.at_least("time that a part was found for, %", share, self.plan.goals.attributed))

    # -- 3. more and more peers

    def growth(self) -> None:
        plan = self.plan
        found: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for peers in (*plan.growth, *(reversed(plan.growth[:-1]) if plan.back else ())):
            for epochs in (0, plan.epochs):
                self.report.progress(f"{peers} peers, {plan.each} messages each, {epochs} epochs")
                size = {"peers": peers, "messages": peers * plan.each, "epochs": epochs, "even": True}
                one = self._ask("play", size=size, parts=True)
                each = f"{one['delivered']:,} delivered, {_cost([one]):.0f} µs each"
                self.report.progress(f"… {one['seconds']:.1f} s, {each}")  # should the rest not come to its end
                found.setdefault((epochs, peers), []).append(one)
        self.report.figures["growth"] = [
            {"epochs asked for": epochs, "peers": peers, "runs": runs} for (epochs, peers), runs in found.items()
        ]
        rows = []
        least, most = plan.growth[0], plan.growth[-1]
        for epochs in (0, plan.epochs):
            costs = {peers: _cost(found[epochs, peers]) for peers in plan.growth}
            received = {peers: _cost(found[epochs, peers], RECEIVING) for peers in plan.growth}
            for peers in plan.growth:
                last, cost, less = found[epochs, peers][-1], costs[peers], received[peers]
                cells = (str(last["epochs"]), f"{last['messages']:,}", f"{last['delivered']:,}")
                both = (f"{cost:.0f}", times(cost / costs[least]), f"{less:.0f}", times(less / received[least]))
                rows.append((f"{peers} peers", *cells, f"{last['seconds']:.1f}", *both))
            name = f"a message delivered to {most} peers, {'' if epochs else 'no '}epochs, × of {least}"
            self.report.goals.append(Goal.below(name, costs[most] / costs[least], plan.goals.growth))
        ratio = f"× of {least}"
        columns = ("", "epochs", "written", "delivered", "wall s", "µs of each delivered", ratio, "received, µs", ratio)
        self.report.table(f"More and more peers, {plan.each} messages each", columns, rows)

    # -- 4. small runs

    def seeds(self) -> None:
        self.report.progress(f"{self.plan.seeds} small runs with all faults")
        found = self._ask("seeds", count=self.plan.seeds)
        taken: list[float] = found["seconds"]
        rate = 60 * len(taken) / sum(taken)
        self.report.figures["seeds"] = found
        row = (f"{len(taken)}", f"{median(taken):.2f}", f"{max(taken):.2f}", per_second(rate))
        self.report.table("Small runs with all faults", ("runs", "median, s", "longest, s", "seeds a minute"), [row])
        wanted = self.plan.goals.seeds
        self.report.goals.append(Goal.at_least("small runs with all faults, seeds a minute", rate, wanted))


def _cost(runs: list[dict[str, Any]], parts: tuple[str, ...] = ()) -> float:
    """µs of each message that was delivered, of all the time or of that of some parts."""
    found: list[float] = []
    for run in runs:
        seconds = sum(run["parts"][part] for part in parts) if parts else run["seconds"]
        found.append(1e6 * seconds / run["delivered"])
    return median(found)


def main(plan: Plan | None = None) -> None:
    run_in_folder(
        "Simulation",
        "The simulator: a busy party, where its time goes, many peers, and small runs with faults.",
        lambda quick, report, folder: Bench(plan or (QUICK if quick else FULL), report, folder).run(),
    )


if __name__ == "__main__":
    main()
