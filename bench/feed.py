"""Guards feeds: how fast they are appended to, read, and received and verified from a peer.

The anchor is npm's `hypercore` 11.37.1, another signed append-only log, in the same run, on the same bodies (150 bytes;
our blocks carry a salt of 16 bytes and a header of 82 beside them) and the same disk. A change that makes an append
pay for a transaction twice, verification work a block at a time, or ingest hold more than a commit in memory shows
here.

    .venv/bin/python bench/feed.py --json [--quick]

Both sides are processes that stay for all rounds; measures alternate between them, and medians are compared.

`--quick` has goals of its own (`QUICK_GOALS`): with few blocks, opening a transaction and the noise of the disk
are a larger share of an append, on both sides.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness.report import Goal, Report, alternate, arguments, megabytes, per_second, ratio, times
from harness.side import Side

HERE = Path(__file__).resolve().parent
ANTIPHON = (sys.executable, str(HERE / "harness" / "feed_side.py"))
ANCHOR = HERE / "anchors" / "hypercore.js"
BODY_SIZE = 150


class Goals(NamedTuple):
    """The figures that a run is held to."""

    appended: dict[int, float]  # batch → × hypercore, unsynced
    arrow: float  # blocks/s
    ingested: float  # × hypercore
    memory: float  # MB, at most


FULL_GOALS = Goals(appended={100: 5.0, 1000: 5.0, 1: 3.0}, arrow=1e6, ingested=20.0, memory=200.0)
QUICK_GOALS = Goals(appended={100: 3.0, 1000: 3.0, 1: 1.5}, arrow=5e5, ingested=20.0, memory=200.0)

NOTES = (
    "Bodies are 150 random bytes, the same on both sides and made before the clock starts; to each we add 16 bytes of "
    "salt and a header of 82. Opening and closing a store is not timed.",
    "Not synced, equal durability: when an append returns, both sides have handed the bytes to the kernel and synced "
    "nothing, so they survive a killed process but not a power cut. hypercore 11.37.1 writes through rocksdb-native, "
    "which passes no write options (binding.cc: rocksdb_write(…, nullptr, …)), so RocksDB's log is written and not "
    "synced; strace shows no fsync between appends, but for a full memtable's (64 MB, in the background). Ours is "
    "LMDB with MDB_NOSYNC, without any. After a power cut they differ: "
    "RocksDB recovers a prefix of its log, LMDB may find its file damaged, so `durable=False` is not our default.",
    "Synced: each of our commits is on the disk when it returns (our default). hypercore has no such mode; here its "
    "memtable is flushed into a synced file after each append, the only way to the disk that rocksdb-native offers. "
    "For information; no goal.",
    "Reads come from the page cache. Ours verify: a random read by the block's hashes, the others by each span's "
    "checksum.",
    "Ingest: another process sends over TCP on 127.0.0.1; the clock runs at the receiver, from the connection to the "
    "last block stored. Ours: length-prefixed spans, decoded, every hash, body and head verified, the rules judged, a "
    "commit per MiB. Theirs: core.replicate() and download() of the whole core (tried: `linear` is slower, a larger "
    "inflightRange no faster). Theirs is encrypted, ours not: that is the mesh's part. The goal compares unsynced "
    "with unsynced, batches of 100.",
    "Memory: the goal is held against VmHWM, the peak of all resident memory, the strictest of them. It counts the "
    "interpreter with its imports and the pages of the store that are mapped (RssFile, which the kernel may take back "
    "at any time); what ingest itself allocates is in RssAnon. Synced, as by default.",
)


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    unsynced: dict[int, int]  # batch → blocks
    synced: dict[int, int]
    random: int
    ingest: int
    ingest_theirs: int  # fewer: at 30 times the time per block, the rate is as steady
    memory: int
    goals: Goals


FULL = Plan(
    rounds=5,
    unsynced={1: 10_000, 100: 100_000, 1000: 200_000},
    synced={1: 500, 100: 20_000, 1000: 48_000},
    random=20_000,
    ingest=200_000,
    ingest_theirs=30_000,
    memory=1_000_000,
    goals=FULL_GOALS,
)
QUICK = Plan(
    rounds=3,
    unsynced={1: 1_500, 100: 20_000, 1000: 50_000},
    synced={1: 100, 100: 4_000, 1000: 12_000},
    random=2_000,
    ingest=50_000,
    ingest_theirs=4_000,
    memory=100_000,
    goals=QUICK_GOALS,
)


class Contender:
    """Antiphon or the anchor: a process that does what is measured, and one that sends to it."""

    def __init__(self, name: str, command: Sequence[str], ingest: int) -> None:
        self.name = name
        self.ingest = ingest
        self.feeds: dict[int, str] = {}  # batch → a filled store
        self.worker = Side(name, command)
        self.sender = Side(f"{name}, sending", command)

    def close(self) -> None:
        self.worker.close()
        self.sender.close()


class Bench:
    """One run. Where the anchor is missing, its figures are null and its goals not met."""

    def __init__(self, plan: Plan, report: Report, folder: Path) -> None:
        self.plan = plan
        self.report = report
        self.folder = folder
        self.rows: list[tuple[str, str, str, str]] = []
        self.bodies = folder / "bodies"
        self.bodies.write_bytes(os.urandom(BODY_SIZE * max(plan.ingest, *plan.unsynced.values())))
        self.ours = Contender("antiphon", ANTIPHON, plan.ingest)
        self.theirs = self._anchor()

    def _anchor(self) -> Contender | None:
        self.report.figures["anchor"] = None
        node = shutil.which("node")
        if node is None or not (ANCHOR.parent / "node_modules" / "hypercore").is_dir():
            self.report.notes.append(
                "NO ANCHOR, so its goals are not met: install node 20 and run `cd bench/anchors && npm ci`."
            )
            return None
        anchor = Contender("hypercore", [node, str(ANCHOR)], self.plan.ingest_theirs)
        try:
            self.report.figures["anchor"] = anchor.worker.ask("version")
        except RuntimeError as error:
            anchor.close()
            self.report.notes.append(f"NO ANCHOR, so its goals are not met: {error}.")
            return None
        return anchor

    def close(self) -> None:
        for contender in self._contenders():
            contender.close()

    def _contenders(self) -> list[Contender]:
        return [self.ours] if self.theirs is None else [self.ours, self.theirs]

    def run(self) -> None:
        self.appends()
        self.fill()
        self.reads()
        self.ingests()
        self.report.table("Blocks a second", ("", "ours", "hypercore", "ratio"), self.rows)
        self.memory()
        self.report.notes.extend(NOTES)

    def appends(self) -> None:
        for durable, counts in ((False, self.plan.unsynced), (True, self.plan.synced)):
            for batch, count in counts.items():
                name = f"append, batches of {batch}, {_mode(durable)}"
                self._compare(name, partial(self._append, count, batch, durable))
        for batch, goal in self.plan.goals.appended.items():
            found = self.report.figures[f"append, batches of {batch}, unsynced"]["ratio"]
            self.report.goals.append(Goal.at_least(f"unsynced appends, batches of {batch}, × hypercore", found, goal))

    def _append(self, count: int, batch: int, durable: bool, contender: Contender) -> float:
        with self._fresh() as store:
            return _rate(self._write(contender.worker, store, count, batch, durable))

    def _write(self, side: Side, store: str, count: int, batch: int, durable: bool) -> dict[str, Any]:
        return side.ask("append", folder=store, bodies=str(self.bodies), count=count, batch=batch, durable=durable)

    def fill(self) -> None:
        """The feeds that are read and sent."""
        self.report.progress("filling feeds")
        for contender in self._contenders():
            for batch in (100, 1000):
                store = contender.feeds[batch] = str(self.folder / f"{contender.name}-{batch}")
                self._write(contender.worker, store, contender.ingest, batch, False)

    def reads(self) -> None:
        shared = min(contender.ingest for contender in self._contenders())
        picks = random.Random(1).choices(range(shared), k=self.plan.random)
        for how, seqs in (("sequential", range(shared)), ("random", picks)):
            self._compare(f"read, {how}", partial(self._read, how, self._seqs(seqs)))
        everything = self._seqs(range(self.plan.ingest))
        found = self._compare("read, Arrow batches", partial(self._read, "arrow", everything), alone=True)
        self.report.goals.append(Goal.at_least("Arrow read, blocks/s", found["ours"], self.plan.goals.arrow))

    def _seqs(self, seqs: Iterable[int]) -> str:
        file = self.folder / "seqs"
        file.write_text(json.dumps(list(seqs)))
        return str(file)

    def _read(self, how: str, seqs: str, contender: Contender) -> float:
        return _rate(contender.worker.ask("read", folder=contender.feeds[100], how=how, seqs=seqs))

    def ingests(self) -> None:
        for batch in (100, 1000):
            name = f"verified ingest, batches of {batch}"
            self._compare(f"{name}, unsynced", partial(self._ingest, batch, False))
            self._compare(f"{name}, synced", partial(self._ingest, batch, True), alone=True)
        found = self.report.figures["verified ingest, batches of 100, unsynced"]["ratio"]
        self.report.goals.append(
            Goal.at_least("verified ingest, × hypercore's replication", found, self.plan.goals.ingested)
        )

    def _ingest(self, batch: int, durable: bool, contender: Contender) -> float:
        with self._fresh() as store:
            return _rate(_transfer(contender, contender.worker, contender.feeds[batch], store, durable=durable))

    def memory(self) -> None:
        """In a process of its own, whose peak is then this ingest's."""
        self.report.progress(f"memory of ingesting {self.plan.memory:,} blocks")
        source = str(self.folder / "large")
        self._write(self.ours.sender, source, self.plan.memory, 100, False)
        receiver = Side("antiphon, watched", ANTIPHON)
        with closing(receiver), self._fresh() as store:
            answer = _transfer(self.ours, receiver, source, store, durable=True, watch=True)
        found = answer["memory"]
        self.report.figures["memory"] = {"blocks": answer["blocks"], "seconds": answer["seconds"], **found}
        rows = [
            (name, megabytes(found["before"][name]), megabytes(found["peak"][name]))
            for name in ("VmHWM", "RssAnon", "RssFile")
        ]
        title = f"Memory of ingesting {self.plan.memory:,} blocks, MB"
        self.report.table(title, ("", "before, all imported", "peak"), rows)
        peak = found["peak"]["VmHWM"] / 1e6
        self.report.goals.append(Goal.below("memory of ingesting, VmHWM, MB", peak, self.plan.goals.memory))

    def _compare(self, name: str, measure: Callable[[Contender], float], *, alone: bool = False) -> dict[str, Any]:
        """A row of the table; `alone` where the anchor has nothing of the kind."""
        self.report.progress(name)
        contenders = [self.ours] if alone else self._contenders()
        rounds = alternate(self.plan.rounds, [partial(measure, contender) for contender in contenders])
        ours, theirs = median(rounds[0]), median(rounds[1]) if len(rounds) > 1 else None
        found = {"ours": ours, "hypercore": theirs, "ratio": ratio(ours, theirs), "rounds": rounds}
        self.report.figures[name] = found
        self.rows.append((name, per_second(ours), per_second(theirs), times(ratio(ours, theirs))))
        return found

    @contextmanager
    def _fresh(self) -> Iterator[str]:
        """A place for a new store; it goes afterwards, and with it what was still to be written to the disk."""
        store = self.folder / "fresh"
        try:
            yield str(store)
        finally:
            shutil.rmtree(store, ignore_errors=True)


def _transfer(contender: Contender, receiver: Side, source: str, store: str, **how: Any) -> dict[str, Any]:
    """One process sends a feed, another takes it."""
    offer = contender.sender.ask("serve", folder=source)
    answer = receiver.ask("receive", folder=store, **offer, **how)
    contender.sender.ask("idle")  # it has closed its store
    return answer


def _rate(answer: dict[str, Any]) -> float:
    blocks, seconds = answer["blocks"], answer["seconds"]
    return float(blocks / seconds)


def _mode(durable: bool) -> str:
    return "synced" if durable else "unsynced"


def main() -> None:
    options = arguments("Feeds: appends, reads, verified ingest and its memory, beside hypercore.")
    report = Report("Feeds", options.quick)
    plan = QUICK if options.quick else FULL
    with (
        tempfile.TemporaryDirectory(dir=options.dir, prefix="antiphon-bench-") as folder,
        closing(Bench(plan, report, Path(folder))) as bench,
    ):
        bench.run()
    report.finish(as_json=options.json)


if __name__ == "__main__":
    main()
