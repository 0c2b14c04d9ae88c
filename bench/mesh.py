"""Guards the network: what it takes to bring a feed, a write or a joiner to another machine, and to bring nothing.

The anchor of replication is npm's `hypercore` 11.37.1, which also encrypts, verifies and stores; that of latency is a
bare socket whose ends each sync a file. All devices are processes of their own. Slow links are laboratories
(`harness/lab.py`): two network namespaces, joined by a link of a given rate, delay and loss.

    .venv/bin/python bench/mesh.py --json [--quick] [--only replication]

1. Blocks a second of a feed that another device lacks, over loopback, verified and durable.
2. From a write to a subscriber on the other device: over loopback, and with 50 ms of delay.
3. A thousand parties in which nothing happens: memory, descriptors, and what a commit in one of them costs.
4. Slow links: time and bytes, beside the best that the link allows.
5. The bytes that a joiner takes, beside the least that it needs.

`--quick` has goals of its own (`QUICK_GOALS`): with a shorter feed, the start of a connection is a larger share of its
time, and fewer parties leave more of the memory to the interpreter.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from harness.lab import Lab, Link, why_not
from harness.mesh_pair import OURS, Pair
from harness.report import Goal, Report, alternate, megabytes, per_second, ratio, run_in_folder, times
from harness.side import Side

HERE = Path(__file__).resolve().parent
ANCHOR = HERE / "anchors" / "hypercore.js"
BODY_SIZE = 150
LARGE_SIZE = 1_000  # of a value, where the link is measured and not the blocks
PARTS = ("replication", "latency", "idle", "slow", "joiner")


class Goals(NamedTuple):
    """The figures that a run is held to."""

    replicated: float  # × hypercore's replication
    echo: float  # × a bare echo with two syncs, the median over loopback
    delayed: float  # ms from a write to a subscriber with 50 ms of delay, beside two syncs
    memory: float  # MB with idle parties
    descriptors: float
    commit: float  # ms of CPU time of a commit in one of many parties, in either process
    slow_time: float  # × the least time of the slow link
    slow_size: float  # × the bytes of the spans
    long: float  # % of the long link's rate
    joiner: float  # × snapshot, tail and control feeds


FULL_GOALS = Goals(10, 2, 75, 150, 300, 5, 1.25, 1.1, 50, 1.2)
QUICK_GOALS = Goals(5, 3, 75, 110, 300, 5, 1.4, 1.15, 15, 1.3)


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    blocks: int
    blocks_theirs: int  # fewer, since each takes longer
    writes: int
    parties: int
    commits: int
    slow: int  # values of `LARGE_SIZE` over the slow link
    long: int  # and over the long one
    history: int
    tail: int
    goals: Goals


FULL = Plan(3, 200_000, 30_000, 200, 1_000, 40, 1_100, 50_000, 20_000, 300, FULL_GOALS)
QUICK = Plan(1, 30_000, 4_000, 60, 60, 20, 350, 12_000, 2_000, 60, QUICK_GOALS)
TINY = Plan(1, 300, 100, 4, 3, 3, 60, 200, 200, 20, QUICK_GOALS)

SLOW = Link(rate=1e6, rtt_ms=40, loss=0.02)
LONG = Link(rate=100e6, rtt_ms=300)
DELAYED = Link(rate=100e6, rtt_ms=100)
DELAYED_PAUSE_MS = 200  # between writes

NOTES = (
    "Replication: two processes that are members of one party; the one connects to the other, and lacks its data feed. "
    "The clock runs from connecting until all blocks are in the receiver's feed store: decrypted, every hash, body "
    "and head verified, the rules judged. Ours is synced to the disk with each commit. hypercore's core.replicate() "
    "encrypts and verifies, too, and syncs nothing (see feed.py): it survives a killed process, but no power cut. "
    "Its bodies have the size of our values. Ours also folds the messages into items meanwhile, which the "
    "second figure includes; theirs has nothing to fold.",
    "From a write to a subscriber: one device writes a number into an object; a subscription of the other device "
    "calls back. Both sync their disks before anything leaves or is shown. The echo is a socket: write 250 bytes to a "
    "file and sync it, send them; receive, write and sync. One way, both.",
    "Idle parties: two devices share all of them and are connected, and nothing happens; then one writes into the "
    "first party. Memory is VmRSS, of the larger process; CPU time is user and system, of the dearer process, "
    "less what both use when nothing is written.",
    "Slow links: the receiver connects and lacks a feed. The least time is the bytes of the spans at the rate of the "
    "link; headers of IP and TCP, lost packets, the handshakes and the start of TCP come on top. Bytes are of all "
    "packets from the sender, counted by the link, headers and repetitions included. A bare socket is measured on the "
    "same link beside it. The kernels of both hosts let one connection have 32 MB under way: with Linux's usual 4, "
    "a bare socket takes a fifth longer over the long link.",
    "A joiner: a party with a history, a final epoch that holds it, and a tail. Nothing is pruned. The joiner is "
    "admitted, connects and fetches what it needs. All bytes to it through the socket are counted.",
)


class Crossing(NamedTuple):
    """A feed over a slow link."""

    size: int  # of its spans
    seconds: float
    least: float  # seconds that the link takes for so many bytes, without anything else
    bare: float  # seconds that a bare socket takes for them
    packets: int  # bytes of all packets from the sender


class Bench:
    """One run."""

    def __init__(self, plan: Plan, report: Report, folder: Path) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self._rows: list[tuple[str, ...]] = []
        self.no_lab = why_not(folder)
        if self.no_lab:
            report.notes.append(f"NO LABORATORY, so goals of slow links are not met: {self.no_lab}.")

    def run(self) -> None:
        for part in PARTS:
            if part in self.report.parts or not self.report.parts:
                getattr(self, part)()
        self.report.notes.extend(NOTES)

    # -- 1. replication

    def replication(self) -> None:
        plan = self.plan
        with ExitStack() as stack:
            ours = stack.enter_context(self._pair("replication", readers=plan.rounds + 1))
            self.report.progress("filling feeds")
            feed = ours.fill(plan.blocks, BODY_SIZE)
            ours.listen()
            measures: list[Callable[[], dict[str, float]]] = [partial(ours.take, feed)]
            if anchor := self._anchor(stack):
                measures.append(anchor)
            self.report.progress(f"replicating {feed['length']:,} blocks")
            rounds = alternate(plan.rounds, [partial(_rate, measure) for measure in measures])
        found = median(rounds[0])
        theirs = median(rounds[1]) if len(rounds) > 1 else None
        applied = median(ours.applied[1:])
        self.report.figures["replication"] = {"ours": found, "hypercore": theirs, "applied": applied, "rounds": rounds}
        rows = [
            ("stored, verified; ours synced", per_second(found), per_second(theirs), times(ratio(found, theirs))),
            ("and applied to items", per_second(applied), "-", "-"),
        ]
        self.report.table("Blocks a second, over loopback", ("", "ours", "hypercore", "ratio"), rows)
        name = "blocks replicated, × hypercore"
        self.report.goals.append(Goal.at_least(name, ratio(found, theirs), plan.goals.replicated))

    def _anchor(self, stack: ExitStack) -> Callable[[], dict[str, float]] | None:
        """Return a measure of hypercore's replication, or None where it is not installed."""
        node = shutil.which("node")
        if node is None or not (ANCHOR.parent / "node_modules" / "hypercore").is_dir():
            self.report.notes.append(
                "NO ANCHOR, so its goal is not met: install node 20 and run `cd bench/anchors && npm ci`."
            )
            return None
        sender, receiver = (stack.enter_context(closing(Side("hypercore", [node, str(ANCHOR)]))) for _ in range(2))
        bodies = self.folder / "bodies"
        bodies.write_bytes(os.urandom(BODY_SIZE * self.plan.blocks_theirs))
        source, fresh = self.folder / "theirs", self.folder / "theirs-fresh"
        how = {"bodies": str(bodies), "count": self.plan.blocks_theirs, "batch": 100, "durable": False}
        sender.ask("append", folder=str(source), **how)

        def measure() -> dict[str, float]:
            offer = sender.ask("serve", folder=str(source))
            answer = receiver.ask("receive", folder=str(fresh), **offer)
            sender.ask("idle")
            shutil.rmtree(fresh)
            return answer

        return measure

    # -- 2. latency

    def latency(self) -> None:
        some, found = self.plan.writes // 4, dict[str, list[float]]()
        with self._pair("latency") as ours:
            self.report.progress("from a write to a subscriber, over loopback")
            ours.hear()
            turns = [(ours.latency(some), ours.echo(some, self.folder)) for _ in range(4)]
            found["loopback"], found["echo"] = ([span for turn in turns for span in turn[side]] for side in (0, 1))
        if not self.no_lab:
            self.report.progress("from a write to a subscriber, 50 ms one way")
            with Lab(DELAYED, self.folder) as lab, self._pair("delayed", lab) as ours:
                ours.hear(DELAYED_PAUSE_MS)
                found["delayed"] = ours.latency(some, DELAYED_PAUSE_MS)
        self.report.figures["latency"] = found
        rows = [
            (name, *(f"{value:.2f}" for value in (median(spans), _part(spans, 0.95), max(spans))))
            for name, spans in found.items()
        ]
        self.report.table("From a write to a subscriber, ms", ("", "median", "p95", "longest"), rows)
        echo = median(found["echo"])
        value = median(found["loopback"]) / echo
        self.report.goals.append(
            Goal.below("write to subscriber over loopback, × a bare echo", value, self.plan.goals.echo)
        )
        delayed = median(found["delayed"]) - echo if "delayed" in found else None
        name = "write to subscriber at 50 ms one way, beside two syncs, ms"
        self.report.goals.append(Goal.below(name, delayed, self.plan.goals.delayed))

    # -- 3. idle parties

    def idle(self) -> None:
        plan = self.plan
        self.report.progress(f"making {plan.parties:,} parties")
        with self._pair("idle", parties=plan.parties) as ours:
            self.report.progress("idle parties")
            ours.meet()
            found = ours.idle(plan.commits)
        self.report.figures["idle"] = found
        rows = [
            (
                name,
                megabytes(int(side["memory"])),
                str(side["descriptors"]),
                str(side["open"]),
                f"{side['commit_ms']:.2f}",
            )
            for name, side in found.items()
        ]
        columns = ("device", "memory, MB", "descriptors", "open parties", "CPU of a commit, ms")
        self.report.table(f"{plan.parties:,} idle parties", columns, rows)
        for name, key, scale, goal in (
            ("memory, MB", "memory", 1e6, plan.goals.memory),
            ("descriptors", "descriptors", 1, plan.goals.descriptors),
            ("CPU of a commit, ms", "commit_ms", 1, plan.goals.commit),
        ):
            value = max(side[key] for side in found.values()) / scale
            self.report.goals.append(Goal.below(f"{plan.parties:,} idle parties: {name}", value, goal))

    # -- 4. slow links

    def slow(self) -> None:
        plan = self.plan
        slow = self._link("1 Mbit/s, 40 ms, 2 % loss", SLOW, plan.slow)
        long = self._link("100 Mbit/s, 300 ms", LONG, plan.long)
        self.report.figures["slow links"] = {"slow": slow, "long": long}
        columns = ("link", "spans, MB", "s", "least, s", "bare socket, s", "packets, MB", "% of the rate")
        self.report.table("Slow links", columns, self._rows)
        goals = plan.goals
        for name, value, goal in (
            ("× the least time", slow and slow.seconds / slow.least, goals.slow_time),
            ("× the bytes", slow and slow.packets / slow.size, goals.slow_size),
        ):
            self.report.goals.append(Goal.below(f"1 Mbit/s, 40 ms, 2 % loss: {name}", value, goal))
        share = long and 100 * long.least / long.seconds
        self.report.goals.append(Goal.at_least("100 Mbit/s, 300 ms: % of the rate", share, goals.long))

    def _link(self, name: str, link: Link, values: int) -> Crossing | None:
        if self.no_lab:
            return None
        self.report.progress(name)
        with Lab(link, self.folder, seed=values) as lab, self._pair(name.replace("/", " "), lab) as ours:
            feed = ours.fill(values, LARGE_SIZE)
            ours.listen()
            bare = ours.bare(feed["size"])
            before, _ = lab.counts()
            seconds = ours.take(feed)["stored"]
            after, _ = lab.counts()
        found = Crossing(feed["size"], seconds, 8 * feed["size"] / link.rate, bare, after.size - before.size)
        cells = (f"{found.seconds:.2f}", f"{found.least:.2f}", f"{bare:.2f}", f"{found.packets / 1e6:.2f}")
        share = f"{100 * found.least / found.seconds:.0f}"
        self._rows.append((name, f"{found.size / 1e6:.2f}", *cells, share))
        return found

    # -- 5. a joiner

    def joiner(self) -> None:
        plan = self.plan
        self.report.progress("a joiner")
        with self._pair("joiner") as ours, closing(Side("joiner", OURS)) as joiner:
            found = ours.join(joiner, self.folder / "joins", plan.history, plan.tail)
        self.report.figures["joiner"] = found
        least = found["control"] + found["snapshot"] + found["tail"]
        rows = [
            (name, f"{found[name] / 1000:,.1f}") for name in ("control", "snapshot", "tail", "history", "taken", "sent")
        ]
        self.report.table("A joiner, kB", ("", ""), rows)
        value = found["taken"] / least
        self.report.goals.append(Goal.below("a joiner, × snapshot, tail and control feeds", value, plan.goals.joiner))

    @contextmanager
    def _pair(self, name: str, lab: Lab | None = None, *, parties: int = 1, readers: int = 1) -> Iterator[Pair]:
        with ExitStack() as stack:
            hosts = (lab.one, lab.other) if lab else None
            pair = Pair(self.folder / name, hosts, parties, readers=readers)
            stack.callback(shutil.rmtree, pair.folder, ignore_errors=True)
            stack.callback(pair.close)
            yield pair


def _rate(measure: Callable[[], dict[str, float]]) -> float:
    answer = measure()
    return answer["blocks"] / answer["seconds"]


def _part(values: list[float], part: float) -> float:
    return sorted(values)[int(part * (len(values) - 1))]


def main(plan: Plan | None = None) -> None:
    run_in_folder(
        "The network",
        "The network: replication, latency, idle parties, slow links, and joiners.",
        lambda quick, report, folder: Bench(plan or (QUICK if quick else FULL), report, folder).run(),
        PARTS,
    )


if __name__ == "__main__":
    main()
