"""CPU time and peak memory of this process and its descendants, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
DRIVER, JVM, WORKERS = "driver", "JVM", "workers"


class Process(NamedTuple):
    """One process. `dead` is the CPU time of its children that have ended."""

    id: int
    name: str
    parent: int
    own: float
    dead: float


def _all() -> dict[int, Process]:
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:  # it has just ended
            continue
        name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        own, dead = (sum(map(int, rest[at : at + 2])) / TICKS for at in (11, 13))
        found[int(folder.name)] = Process(int(folder.name), name, int(rest[1]), own, dead)
    return found


def _below() -> Iterator[tuple[str, Process]]:
    """The kind of each process: driver, JVM or worker."""
    known = _all()
    for process in known.values():
        at, path = process, [process]
        while at.id != os.getpid() and at.parent in known:
            at = known[at.parent]
            path.append(at)
        if at.id != os.getpid():
            continue
        if len(path) == 1:
            yield DRIVER, process
        elif process.name == "java":
            yield JVM, process
        else:
            yield WORKERS, process


def cpu_seconds() -> dict[str, float]:
    """CPU seconds so far of the driver, the JVM, and Spark's Python workers."""
    found = dict.fromkeys((DRIVER, JVM, WORKERS), 0.0)
    for kind, process in _below():
        found[kind] += process.own + (process.dead if kind == WORKERS else 0.0)
    return found


def jvm_seconds() -> dict[str, float]:
    """CPU seconds so far of the threads of the JVM that compile, and that collect garbage."""
    found = {"compiling": 0.0, "garbage": 0.0}
    for kind, process in _below():
        if kind != JVM:
            continue
        for file in Path(f"/proc/{process.id}/task").glob("*/stat"):
            try:
                text = file.read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            part = "compiling" if "Compile" in name else "garbage" if name.startswith(("GC ", "G1 ")) else ""
            if part:
                found[part] += sum(map(int, rest[11:13])) / TICKS
    return found


def peaks() -> dict[str, int]:
    """Peak memory of the largest process of each kind, in bytes, and the number of workers."""
    found = {DRIVER: 0, JVM: 0, WORKERS: 0, "count": 0}
    for kind, process in _below():
        try:
            lines = Path(f"/proc/{process.id}/status").read_text().splitlines()
        except OSError:
            continue
        peak = next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)
        found[kind] = max(found[kind], peak)
        found["count"] += kind == WORKERS
    return found
