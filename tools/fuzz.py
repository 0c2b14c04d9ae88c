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
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
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
    """What became of one target."""

    name: str
    runs: int
    covered: int
    reproducer: Path | None
    failed: bool
    log: str


def load(table: Path) -> Any:
    """The module that holds `targets()`."""
    spec = importlib.util.spec_from_file_location(f"fuzzed_{table.stem}", table)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{table} is no Python module")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _peak_mb() -> int:
    """The peak of this process, which Linux counts as the peak of what it starts as well."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def fuzz(name: str, seeds: tuple[bytes, ...], folder: Path, *, limits: list[str], table: Path = TABLE) -> Outcome:
    """Run one target in a process of its own, beginning with what its corpus holds; `limits` are libFuzzer's."""
    corpus = folder / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (corpus / sha256(seed).hexdigest()[:16]).write_bytes(seed)
    prefix = f"{folder / name}-"
    options = [
        f"-max_len={max(INPUT_SIZE_MAX, *map(len, seeds))}",
        f"-rss_limit_mb={MEMORY_MB_MAX + _peak_mb()}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-artifact_prefix={prefix}",
        "-print_final_stats=1",
        *limits,
    ]
    command = [sys.executable, __file__, "--table", str(table), "--child", name, *options, str(corpus)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    log = done.stdout.decode(errors="replace")
    counts = [int(count) for count in re.findall(r"^(?:stat::number_of_executed_units: |#)(\d+)", log, re.MULTILINE)]
    covered = [int(count) for count in re.findall(r"\bcov: (\d+)", log)]
    kept = re.findall(r"Test unit written to (.+)$", log, re.MULTILINE)
    return Outcome(
        name,
        max(counts, default=0),
        max(covered, default=0),
        Path(kept[-1]) if kept else None,
        done.returncode != 0,
        log,
    )


def child(name: str, table: Path, options: list[str]) -> None:
    """Inside the process: instrument our code as it is imported, and hand over to libFuzzer, which does not return."""
    import atheris

    with atheris.instrument_imports(include=["antiphon"]):
        target = load(table).targets()[name]
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
    """Changes a message's fields as often as its bytes. (Atheris' own `Mutate` does not work in every release.)"""
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
    """A line for the table; for a finding, also how to see it again."""
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
    """Run targets one after the other; the number of findings."""
    known = load(table).targets()
    folder = corpus or Path(tempfile.mkdtemp(prefix="antiphon-fuzz-"))
    print(f"{'target':20} {'executions':>12} {'covered':>9}")
    findings = 0
    for name in names or list(known):
        outcome = fuzz(name, known[name].seeds, folder, limits=limits, table=table)
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
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args(arguments)
    if options.child:
        child(options.child, options.table, rest)
    if rest:
        parser.error(f"unknown: {' '.join(rest)}")
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
