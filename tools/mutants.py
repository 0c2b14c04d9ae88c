"""Mutation testing of halo, party and snapshot with mutmut: which small changes of the code does no test notice?

tools/mutants.py                                20 mutants of each room
tools/mutants.py --room party/epochs --count 50
tools/mutants.py --first-seed 7                 the sample that seed 7 draws

The packages have tens of thousands of mutants, so each run draws a sample. The first seed decides which one; modules
that docs/design/derived-state.md names are drawn three times as often. Each room is mutated in a copy of the tree; a
mutant is tried with those tests of its room and its package that call the mutated function, and a survivor with all
other tests of the package and the attacks. Mutants that change texts alone are not drawn, nor those that
tools/mutants.toml judges. The report lists the rest: killed, survived, timed out, and the change of each survivor.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("halo", "party", "snapshot")
JUDGED = Path("tools/mutants.toml")
TABLE = Path("docs/design/derived-state.md")
WEIGHT = 3  # of a module that keeps derived state
DRAWN_PER_MUTANT = 3  # many are not tried: they change texts, or are judged
NOT_COPIED = (".git", ".venv", "node_modules", "build", "dist", "mutants", ".hypothesis", ".*_cache", "__pycache__")
_SPINNER = re.compile(r"^[\u2800-\u28ff] .*[\r\n]", re.MULTILINE)
NOTHING = "no mutant has this name"
#: mutmut's exit codes of a mutant's tests.
VERDICTS = {0: "survived", 1: "killed", 3: "killed", 5: "untested", 33: "untested", None: "not tried"}


class Mutant(NamedTuple):
    """One change of one function, and what became of it."""

    name: str
    path: str
    verdict: str
    was: str
    becomes: str
    diff: str


# -- what is mutated, and what tests it


def rooms(root: Path) -> list[str]:
    """Return the rooms of the packages; a package without rooms is one itself."""
    found = []
    for package in PACKAGES:
        folder = root / "src" / "antiphon" / package
        inside = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
        found += [f"{package}/{name}" for name in inside] or [package]
    return found


def tests_of(root: Path, room: str) -> list[str]:
    """Return the tests of a room and those of its whole package."""
    package = room.split("/", maxsplit=1)[0]
    paths = [*(root / "tests" / room).glob("**/test_*.py"), *(root / "tests" / package).glob("test_*.py")]
    return sorted({str(path.relative_to(root)) for path in paths})


def other_tests_of(root: Path, room: str) -> list[str]:
    """Return all tests that may notice a change of a room, beside its own: those of its package, and the attacks."""
    package = room.split("/", maxsplit=1)[0]
    paths = [path for folder in (package, "attacks") for path in (root / "tests" / folder).glob("**/test_*.py")]
    return sorted({str(path.relative_to(root)) for path in paths} - set(tests_of(root, room)))


def derived_modules(table: str) -> set[str]:
    """Return the folders and modules that the second column of the table of derived state names."""
    cells = [line.split("|")[2] for line in table.splitlines() if line.startswith("|") and line.count("|") >= 4]
    return {name for cell in cells for name in re.findall(r"`((?:halo|party|snapshot)[\w/.]*)`", cell)}


def weight_of(path: str, derived: Iterable[str]) -> int:
    """Return how often a mutant of this module is drawn, beside others."""
    inside = path.partition("antiphon/")[2]
    return WEIGHT if any(inside == name or inside.startswith(f"{name}/") for name in derived) else 1


def shuffled(weights: dict[str, int], chance: random.Random) -> list[str]:
    """Return the names in a random order, where heavy ones tend to come early."""
    keys = {name: chance.random() ** (1 / weight) for name, weight in sorted(weights.items())}
    return sorted(keys, key=keys.__getitem__, reverse=True)


# -- one change


def changed(diff: str) -> tuple[str, str]:
    """Return the lines that a diff takes away, and those that it puts there."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    sides = ("\n".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    was, becomes = sides
    return was, becomes


def only_texts(was: str, becomes: str) -> bool:
    """True if two pieces of code differ in texts alone."""
    text = re.compile(r"(?<!\w)[rbfu]{0,2}(\"[^\"]*\"|'[^']*')", re.IGNORECASE)
    return text.sub("''", was.replace("XX", "")) == text.sub("''", becomes.replace("XX", "")) or was == becomes


def judged(root: Path) -> dict[tuple[str, str, str], str]:
    """Return the reasons for which survivors are no gap in the tests, by module, old and new code."""
    path = root / JUDGED
    entries = tomllib.loads(path.read_text()).get("mutant", []) if path.exists() else []
    return {(entry["module"], entry["was"], entry["becomes"]): entry["reason"] for entry in entries}


# -- a copy of the tree, and mutmut in it


class Workshop:
    """A copy of the tree, in which mutmut changes one room."""

    def __init__(self, root: Path, folder: Path, room: str, processes: int) -> None:
        self.folder, self.processes = folder, str(processes)
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True, symlinks=True)
        settings = {
            "source_paths": ["src"],
            "only_mutate": [f"src/antiphon/{room}/*.py"],
            "do_not_mutate_patterns": [r"^\s*raise\b", r"^__"],
            "pytest_add_cli_args_test_selection": tests_of(root, room),
            "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:xdist"],
            "also_copy": sorted(path.name for path in folder.iterdir() if path.name not in ("src", "tests")),
            "timeout_multiplier": 2.0,
            "timeout_constant": 10.0,
            "track_dependencies": False,
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        with (folder / "pyproject.toml").open("a") as file:
            file.write("\n[tool.mutmut]\n" + "\n".join(lines) + "\n")
        data = os.environ.get("ANTIPHON_TEST_DATA", str(root.parent / "shared" / "data"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
        mutated = folder / "mutants" / "src"
        mutated.mkdir(parents=True)  # Python remembers that a folder on its path was not there when it started
        self.environment = kept | {"ANTIPHON_MUTANTS": "1", "ANTIPHON_TEST_DATA": data, "PYTHONPATH": str(mutated)}

    def run(self, *arguments: str, seconds: float | None = None) -> str:
        """Run Python in the copy, for so long at most, and return what it printed."""
        command = [sys.executable, *arguments]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode(errors="replace")
        return _SPINNER.sub("", done.stdout + done.stderr)

    def generate(self, tests_seconds: float) -> dict[str, str]:
        """Write all mutants and run the tests unchanged. Return the module of each mutant that may be drawn: tests
        reach it, and take less than so long together.
        """
        output = self.run("-m", "mutmut", "run", "--max-children", self.processes, NOTHING)
        kept = self.folder / "mutants" / "mutmut-stats.json"
        if not kept.exists():
            raise SystemExit(f"antiphon: the tests fail before anything is mutated:\n{output[-6000:]}")
        stats = json.loads(kept.read_text())
        seconds = {
            function: sum(stats["duration_by_test"][test] for test in tests)
            for function, tests in stats["tests_by_mangled_function_name"].items()
            if tests
        }
        return {
            name: path
            for name, path, _ in self.results()
            if seconds.get(name.rpartition("__mutmut_")[0], math.inf) < tests_seconds
        }

    def results(self) -> Iterator[tuple[str, str, int | None]]:
        """Yield the name, the module and the exit code of each mutant; the code is None if it was not tried."""
        for meta in sorted((self.folder / "mutants" / "src").rglob("*.py.meta")):
            path = str(meta.relative_to(self.folder / "mutants")).removesuffix(".meta")
            for name, code in json.loads(meta.read_text())["exit_code_by_key"].items():
                yield name, path, code

    def diffs(self, names: Sequence[str]) -> dict[str, str]:
        """Return the changes that mutants make. `mutmut show` would start a process for each."""
        program = "from mutmut.__main__ import show\nfor name in __import__('sys').argv[1:]: show.callback(name)"
        shown = self.run("-c", program, *names)
        parts = re.split(r"^# (\S+): [\w ]+\n", shown, flags=re.MULTILINE)
        return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))

    def play(self, names: Sequence[str], seconds: float) -> None:
        """Try these mutants, for so long at most; results() has what became of each."""
        self.run("-m", "mutmut", "run", "--max-children", self.processes, *names, seconds=seconds)

    def failures(self, name: str, tests: Sequence[str], *options: str) -> list[str]:
        """Return the tests that fail with a mutant, or with none if the name is empty."""
        command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-n", self.processes]
        environment = self.environment | {"MUTANT_UNDER_TEST": name}
        done = subprocess.run(
            [*command, *options, *tests], cwd=self.folder / "mutants", env=environment, capture_output=True, text=True
        )
        named = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return named or ["the process"] if done.returncode else []

    def killed_elsewhere(self, names: Sequence[str], tests: Sequence[str]) -> set[str]:
        """Return the mutants that other tests kill. Tests that fail without a mutant, for example because mutmut's code
        takes time and memory, do not count.
        """
        if not names or not tests:
            return set()
        left_out = [f"--deselect={test}" for test in self.failures("", tests)]
        return {name for name in names if self.failures(name, tests, "-x", *left_out)}


def try_room(root: Path, room: str, options: argparse.Namespace) -> list[Mutant]:
    """Draw a sample of a room's mutants, try it, and return all of it."""
    chance = random.Random(f"{options.first_seed} {room}")
    derived = derived_modules((root / TABLE).read_text())
    reasons = judged(root)
    with tempfile.TemporaryDirectory(prefix="antiphon-mutants-") as folder:
        workshop = Workshop(root, Path(folder), room, options.processes)
        modules = workshop.generate(options.tests_seconds)
        order = shuffled({name: weight_of(path, derived) for name, path in modules.items()}, chance)
        diffs = workshop.diffs(order[: options.count * DRAWN_PER_MUTANT])
        drawn = {
            name: (*changed(diff), diff)
            for name, diff in diffs.items()
            if not only_texts(*changed(diff)) and (modules[name], *changed(diff)) not in reasons
        }
        drawn = dict(list(drawn.items())[: options.count])
        if drawn:
            workshop.play(sorted(drawn), options.seconds)
        found = [
            Mutant(name, path, VERDICTS.get(code, "timed out"), *drawn[name])
            for name, path, code in workshop.results()
            if name in drawn
        ]
        survivors = [mutant.name for mutant in found if mutant.verdict == "survived"]
        elsewhere = workshop.killed_elsewhere(survivors, other_tests_of(root, room))
        return [mutant._replace(verdict="killed") if mutant.name in elsewhere else mutant for mutant in found]


# -- the report


def report(mutants: Sequence[Mutant], first_seed: int) -> str:
    """Return the report for people: the counts, then each survivor with its change."""
    counts = Counter(mutant.verdict for mutant in mutants)
    head = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    lines = [f"antiphon: {len(mutants)} mutants of first seed {first_seed}: {head}"]
    for mutant in mutants:
        if mutant.verdict in ("survived", "timed out"):
            lines += ["", f"{mutant.verdict}: {mutant.name}", mutant.diff]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Try a sample of each room that was asked for, and write the report."""
    parser = argparse.ArgumentParser(description=ast.get_docstring(ast.parse(Path(__file__).read_text())))
    parser.add_argument("--room", action="append", help="such as party/epochs; all of them if not given")
    parser.add_argument("--count", type=int, default=20, help="mutants of each room")
    parser.add_argument("--seconds", type=float, default=1800, help="for the mutants of each room, after its tests ran")
    parser.add_argument("--tests-seconds", type=float, default=math.inf, help="skip mutants whose tests take longer")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first-seed", type=int, default=int(os.environ.get("ANTIPHON_FIRST_SEED", "0")))
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "mutants", help="report.txt and report.json")
    options = parser.parse_args(arguments)
    options.report.mkdir(parents=True, exist_ok=True)
    found: list[Mutant] = []
    for room in options.room or rooms(ROOT):
        print(f"antiphon: mutating {room}", flush=True)
        found += try_room(ROOT, room, options)
        (options.report / "report.txt").write_text(report(found, options.first_seed) + "\n")
        entries = [mutant._asdict() for mutant in found]
        (options.report / "report.json").write_text(json.dumps(entries, indent=1) + "\n")
    print(report(found, options.first_seed))


if __name__ == "__main__":
    main()
