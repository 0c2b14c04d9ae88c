"""Two devices of bench/mesh.py that share parties: a writer, which listens, and a reader, which connects."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from harness.lab import Host
from harness.mesh_sockets import CountingRelay
from harness.side import Side

OURS = (sys.executable, "-m", "harness.mesh_side")
LOOPBACK = "127.0.0.1"
PAUSE_MS = 15.0  # between writes that are timed: longer than one of them takes
SETTLING = 30  # looks, at most, until nothing happens any more
IDLE_SECONDS = 0.5


class Pair:
    """All homes are made in one process before: the writer's, and one for each feed that a reader takes anew."""

    def __init__(self, folder: Path, hosts: tuple[Host, Host] | None, parties: int, *, readers: int = 1) -> None:
        self.folder = folder
        self.host = hosts[0].address if hosts else LOOPBACK
        commands = [host.command(*OURS) for host in hosts] if hosts else [list(OURS)] * 2
        self.writer, self.reader = Side("writer", commands[0]), Side("reader", commands[1])
        self.homes = [str(folder / f"reader {number}") for number in range(readers)]
        self.address = ""
        self.applied: list[float] = []  # blocks a second of each `take`, with the fold
        home = str(folder / "writer")
        with closing(Side("maker", OURS)) as maker:  # a process that has made many parties is larger
            maker.ask("prepare", home=home, others=self.homes, parties=parties)
        self.writer.ask("open", home=home)

    def close(self) -> None:
        self.writer.close()
        self.reader.close()

    def listen(self) -> None:
        self.address = self.writer.ask("listen", host=self.host)["address"]

    def meet(self) -> None:
        """Open the reader, and connect it."""
        self.listen()
        self.reader.ask("open", home=self.homes.pop())
        self.reader.ask("connect", address=self.address)

    # -- a feed

    def fill(self, count: int, size: int) -> dict[str, Any]:
        return self.writer.ask("fill", count=count, size=size)

    def take(self, feed: dict[str, Any]) -> dict[str, float]:
        """Bring the feed to a reader that has none of it."""
        self.reader.ask("open", home=self.homes.pop())
        found = self.take_here(feed)
        self.reader.ask("close")
        return found

    def take_here(self, feed: dict[str, Any]) -> dict[str, float]:
        """Bring what is new of the feed to the reader that is open, and part again."""
        found = self.reader.ask("take", address=self.address, feed=feed["feed"], length=feed["length"])
        self.reader.ask("leave", address=self.address)
        self.applied.append(feed["length"] / found["applied"])
        return {"blocks": feed["length"], "seconds": found["stored"], **found}

    def bare(self, size: int) -> float:
        """Return the seconds that a bare socket takes for so many bytes, from the writer to the reader."""
        port = self.writer.ask("pour", host=self.host, size=size)["port"]
        return float(self.reader.ask("drain", host=self.host, port=port, size=size)["seconds"])

    # -- latency

    def hear(self, pause_ms: float = PAUSE_MS) -> None:
        """Connect, and subscribe. The first writes are not counted."""
        self.meet()
        self.reader.ask("hear")
        self.latency(3, pause_ms)

    def latency(self, count: int, pause_ms: float = PAUSE_MS) -> list[float]:
        """Return milliseconds from writes to the reader's subscriber."""
        began = self.writer.ask("write", count=count, pause_ms=pause_ms)["times"]
        spans: list[float] = self.reader.ask("heard", last=began[-1])["spans"]
        return spans

    def echo(self, count: int, folder: Path) -> list[float]:
        port = self.reader.ask("echo", host=self.host, folder=str(folder), count=count)["port"]
        where = {"host": self.host, "port": port, "folder": str(folder)}
        began = self.writer.ask("ask", count=count, pause_ms=PAUSE_MS, **where)["times"]
        return _spans(began, self.reader.ask("echoed")["times"])

    # -- idle parties

    def idle(self, commits: int) -> dict[str, dict[str, float]]:
        """Return what each device uses once nothing happens, and the CPU time that a commit in one party adds."""
        self._settle()
        seconds = commits * PAUSE_MS / 1000 + IDLE_SECONDS
        resting = self._spent(seconds)
        before = self._usage()
        began = time.monotonic()
        self.writer.ask("write", count=commits, pause_ms=PAUSE_MS)
        time_left = max(0.0, seconds - (time.monotonic() - began))
        self.writer.ask("rest", seconds=time_left)
        after = self._usage()
        return {
            name: {**before[name], "commit_ms": 1000 * max(0.0, _cpu(before, after, name) - resting[name]) / commits}
            for name in before
        }

    def _usage(self) -> dict[str, dict[str, float]]:
        return {side.name: side.ask("usage") for side in (self.writer, self.reader)}

    def _spent(self, seconds: float) -> dict[str, float]:
        before = self._usage()
        self.writer.ask("rest", seconds=seconds)
        after = self._usage()
        return {name: _cpu(before, after, name) for name in before}

    def _settle(self) -> None:
        for _ in range(SETTLING):
            if sum(self._spent(IDLE_SECONDS).values()) < 0.1 * IDLE_SECONDS:
                return

    # -- a joiner

    def join(self, joiner: Side, home: Path, history: int, tail: int) -> dict[str, Any]:
        """Let a new device join after an epoch. Return the sizes that it needs, and those that came and went."""
        self.fill(history, 100)
        number = self.writer.ask("epoch")["number"]
        self.fill(tail, 100)
        identity = joiner.ask("open", home=str(home))["identity"]
        invitation = self.writer.ask("invite", identity=identity)["invitation"]
        ideal, state = self.writer.ask("ideal"), self.writer.ask("state")
        self.listen()
        device, port = self.address.rpartition(":")[0], int(self.address.rpartition(":")[2])
        relay = CountingRelay(port)
        address = f"{device}:{relay.port}"
        took = joiner.ask("join", address=address, invitation=invitation, number=number, items=state["items"])
        found = joiner.ask("state")
        joiner.ask("close")
        relay.close()
        if found != state:
            raise RuntimeError(f"the joiner has {found}, the writer {state}")
        return {**ideal, **took, "taken": relay.back, "sent": relay.forth}


def _cpu(before: dict[str, dict[str, float]], after: dict[str, dict[str, float]], name: str) -> float:
    return after[name]["cpu"] - before[name]["cpu"]


def _spans(began: list[int], ended: list[int]) -> list[float]:
    """Return milliseconds from each beginning to its end."""
    return [(end - begin) / 1e6 for begin, end in zip(began, ended, strict=True)]
