"""Coverage-guided fuzzing of every decoder with atheris: no crash, no hang, no unbounded allocation.

tools/fuzz.py --list                      the targets (tools/decoders.py)
tools/fuzz.py --seconds 60                each of them for a minute
tools/fuzz.py --seconds 600 --target span --corpus corpus
tools/fuzz.py --target span --replay FILE

Each target runs in a process of its own. A finding is any exception but an AntiphonError, an input of 4 KiB that takes
more than five seconds, or more than 512 MiB of memory. The input is kept, and the command that replays it is printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).resolve().with_name("decoders.py")
INPUT_SIZE_MAX = 4096
MEMORY_MB_MAX = 512
INPUT_SECONDS_MAX = 5
_TAIL_LINES = 25


class Outcome(NamedTuple):
    """The result of one target."""

    name: str
    runs: int
    covered: int
    reproducer: Path | None
    failed: bool
    log: str


def load(table: Path) -> Any:
    """Load the module that holds `targets()`."""
    spec = importlib.util.spec_from_file_location(f"fuzzed_{table.stem}", table)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{table} is no Python module")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _peak_mb() -> int:
    """Peak memory of this process, which Linux also counts as the peak of processes that it starts."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def fuzz(targets: dict[str, Any], folder: Path, *, limits: list[str], table: Path = TABLE) -> Iterator[Outcome]:
    """Run targets, each beginning with its corpus; `limits` are options of libFuzzer.

    One process imports and instruments our code, which takes longer than a short run, and forks for each target.
    """
    plan = {name: _options(name, target.seeds, folder, limits) for name, target in targets.items()}
    for name, target in targets.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for seed in target.seeds:
            (folder / name / sha256(seed).hexdigest()[:16]).write_bytes(seed)
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, __file__, "--table", str(table), "--children", json.dumps(plan), "--logs", logs]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as children:
            assert children.stdout is not None
            for line in children.stdout:
                name, code = line.decode().rsplit(maxsplit=1)
                yield _outcome(name, int(code), (Path(logs) / name).read_text(errors="replace"))
        if children.returncode:
            raise SystemExit(f"the targets of {table} cannot be loaded, or the fuzzer cannot")


def _options(name: str, seeds: tuple[bytes, ...], folder: Path, limits: list[str]) -> list[str]:
    return [
        f"-max_len={max(INPUT_SIZE_MAX, *map(len, seeds))}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-artifact_prefix={folder / name}-",
        "-print_final_stats=1",
        *limits,
        str(folder / name),
    ]


def _outcome(name: str, code: int, log: str) -> Outcome:
    counts = [int(count) for count in re.findall(r"^(?:stat::number_of_executed_units: |#)(\d+)", log, re.MULTILINE)]
    covered = [int(count) for count in re.findall(r"\bcov: (\d+)", log)]
    kept = re.findall(r"Test unit written to (.+)$", log, re.MULTILINE)
    return Outcome(
        name, max(counts, default=0), max(covered, default=0), Path(kept[-1]) if kept else None, code != 0, log
    )


def children(plan: dict[str, list[str]], table: Path, logs: Path) -> None:
    """In the fuzzing process: instrument our code on import, then fork for each target and report its exit code."""
    import atheris

    with atheris.instrument_imports(include=["antiphon"]):
        known = load(table).targets()
    for name, options in plan.items():
        child = os.fork()
        if not child:
            with (logs / name).open("wb") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            begin(known[name], [f"-rss_limit_mb={MEMORY_MB_MAX + _peak_mb()}", *options])
        _, status = os.waitpid(child, 0)
        print(name, os.waitstatus_to_exitcode(status), flush=True)


def begin(target: Any, options: list[str]) -> None:
    """Call libFuzzer, which does not return."""
    import atheris

    # Memory that is asked for and not touched does not count as resident: refuse it, so that it ends in an error.
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (MEMORY_MB_MAX << 20),) * 2)

    def one(data: bytes) -> None:
        target.run(data)

    message = getattr(target, "message", None)
    mutators = {} if message is None else {"custom_mutator": mutator(message)}
    atheris.Setup([sys.argv[0], *options], one, **mutators)
    atheris.Fuzz()


def mutator(message: Any) -> Callable[[bytes, int, int], bytes]:
    """Mutate a message's fields as often as its bytes. (Atheris' own `Mutate` does not work in every release.)"""
    from google.protobuf.message import DecodeError
    from tools.altered import altered, scrambled

    def changed(data: bytes, size_max: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            with suppress(DecodeError):
                return altered(message, data, chance)[:size_max]
        return scrambled(data, chance)[:size_max]

    return changed


def report(outcome: Outcome, table: Path) -> str:
    """A line for the table; for a finding, also the command that replays it."""
    line = f"{outcome.name:20} {outcome.runs:>12,} {outcome.covered:>9}  {'FINDING' if outcome.failed else 'ok'}"
    if not outcome.failed:
        return line
    tail = "\n".join(f"    {text}" for text in outcome.log.splitlines()[-_TAIL_LINES:])
    if outcome.reproducer is None:
        return f"{line}\n{tail}\n  no input was kept: the target did not start, or was killed"
    other = "" if table == TABLE else f" --table {table}"
    replay = f"{sys.executable} {__file__}{other} --target {outcome.name} --replay {outcome.reproducer}"
    return f"{line}\n{tail}\n  input:  {outcome.reproducer}\n  replay: {replay}"


def run(names: list[str], table: Path, corpus: Path | None, limits: list[str]) -> int:
    """Run targets one after the other; return the number of findings."""
    known = load(table).targets()
    folder = corpus or Path(tempfile.mkdtemp(prefix="antiphon-fuzz-"))
    print(f"{'target':20} {'executions':>12} {'covered':>9}")
    findings = 0
    for outcome in fuzz({name: known[name] for name in names or known}, folder, limits=limits, table=table):
        print(report(outcome, table), flush=True)
        findings += outcome.failed
    if corpus is None and not findings:
        shutil.rmtree(folder)
    return findings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Coverage-guided fuzzing of every decoder.")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--runs", type=int, default=-1, help="at most so many executions of each target")
    parser.add_argument("--target", action="append", default=[], help="only this one; may be given several times")
    parser.add_argument("--corpus", type=Path, help="a folder that keeps inputs from run to run; temporary by default")
    parser.add_argument("--list", action="store_true", help="list the targets")
    parser.add_argument("--replay", type=Path, help="run the target on this file once, and show what it raises")
    parser.add_argument("--table", type=Path, default=TABLE, help="a module with other targets")
    parser.add_argument("--children", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--logs", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.children:
        children(options.children, options.table, options.logs)
        return 0
    known = load(options.table).targets()
    if options.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in options.target if name not in known]
    if unknown or (options.replay and len(options.target) != 1):
        parser.error(f"name one of: {', '.join(known)}")
    if options.replay:
        print("taken" if known[options.target[0]].run(options.replay.read_bytes()) else "refused, as it should be")
        return 0
    limits = [f"-max_total_time={options.seconds}", f"-runs={options.runs}"]
    findings = run(options.target, options.table, options.corpus, limits)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
