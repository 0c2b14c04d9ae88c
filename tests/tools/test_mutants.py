"""Mutation testing: which mutants are drawn, which are judged, and that a gap in tests is found."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def load() -> Any:
    """The module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location("antiphon_tools_mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutants = load()


def test_every_room_has_tests() -> None:
    rooms = mutants.rooms(ROOT)

    assert {"halo/control", "party/epochs", "snapshot"} <= set(rooms)
    assert all(mutants.tests_of(ROOT, room) for room in rooms)
    assert "tests/party/test_laws.py" in mutants.tests_of(ROOT, "party/epochs")


def test_modules_with_derived_state_are_drawn_more_often() -> None:
    derived = mutants.derived_modules((ROOT / mutants.TABLE).read_text())
    weights = {
        path: mutants.weight_of(path, derived)
        for path in ("src/antiphon/party/epochs/pruning.py", "src/antiphon/halo/keys/identity.py")
    }

    assert list(weights.values()) == [mutants.WEIGHT, 1]
    first = [mutants.shuffled(weights, random.Random(seed))[0] for seed in range(400)]
    assert 250 < first.count("src/antiphon/party/epochs/pruning.py") < 350
    assert mutants.shuffled(weights, random.Random(7)) == mutants.shuffled(weights, random.Random(7))


@pytest.mark.parametrize(
    ("was", "becomes", "texts"),
    [
        ('f("a part")', 'f("XXa partXX")', True),
        ('f("a part")', 'f("A PART")', True),
        ('f("a part")', 'f("a part", )', False),
        ("return length < 2", "return length <= 2", False),
        ('words["a"] = 1', 'words["a"] = None', False),
    ],
)
def test_mutants_of_texts_are_told_from_others(was: str, becomes: str, *, texts: bool) -> None:
    assert mutants.only_texts(was, becomes) is texts


def test_a_diff_gives_the_code_before_and_after() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n def f(n):\n-    return n < 2\n+    return n <= 2"
    assert mutants.changed(diff) == ("return n < 2", "return n <= 2")


def test_every_judged_mutant_is_of_code_that_exists() -> None:
    for (module, was, becomes), reason in mutants.judged(ROOT).items():
        lines = [line.strip() for line in (ROOT / module).read_text().splitlines()]
        assert all(line in lines for line in was.splitlines()), f"{module} has no line {was!r} any more"
        assert was != becomes
        assert reason


CODE = '''"""A room."""


def is_small(size: int) -> bool:
    """True if a size is below ten."""
    return size < 10


def is_large(size: int) -> bool:
    """True if a size is above twenty."""
    return size > 20


def is_round(size: int) -> bool:
    """True if a size is five."""
    return size == 5
'''

TESTS = """from antiphon.halo.room.sizes import is_large, is_round, is_small


def test_sizes() -> None:
    assert is_small(3)
    assert not is_small(12)
    assert is_large(21)
    assert not is_large(20)
    assert not is_round(9)
"""

TESTS_ELSEWHERE = """from antiphon.halo.room.sizes import is_round


def test_round() -> None:
    assert is_round(5)


def test_that_fails_anyway() -> None:
    assert False
"""

JUDGED = """[[mutant]]
module = "src/antiphon/halo/room/sizes.py"
was = "return size < 10"
becomes = "return size < 11"
reason = "nothing has that size"
"""


@pytest.mark.slow
def test_a_gap_in_the_tests_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a function whose tests do not look at its edge, when its room is mutated, then the mutant of that edge
    survives, also the other tests of the package; one that is judged is not drawn; the tree itself is never changed.
    """
    root = tmp_path / "tree"
    for path, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n",
        "src/antiphon/__init__.py": "",
        "src/antiphon/halo/__init__.py": "",
        "src/antiphon/halo/room/__init__.py": "",
        "src/antiphon/halo/room/sizes.py": CODE,
        "tests/halo/room/test_sizes.py": TESTS,
        "tests/halo/other/test_round.py": TESTS_ELSEWHERE,
        str(mutants.JUDGED): JUDGED,
        str(mutants.TABLE): "| state | where | law |\n|---|---|---|\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    monkeypatch.setattr(mutants, "ROOT", root)
    asked = ["--count", "9", "--processes", "1", "--room", "halo/room", "--report", str(tmp_path)]

    mutants.main(asked)

    found = json.loads((tmp_path / "report.json").read_text())
    assert [entry["becomes"] for entry in found if entry["verdict"] == "survived"] == ["return size <= 10"]
    assert {entry["becomes"] for entry in found if entry["verdict"] == "killed"} == {
        "return size >= 20",
        "return size > 21",
        "return size != 5",
        "return size == 6",
    }
    assert "+    return size <= 10" in (tmp_path / "report.txt").read_text()
    assert (root / "src/antiphon/halo/room/sizes.py").read_text() == CODE
    assert not (root / "mutants").exists()
