"""The tutorial runs: its steps one after another, in one namespace and an empty folder, each printing what it says."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = "docs/tutorial.md"
STEP = re.compile(r"^```py\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """Code, what it prints, and its first line on the page."""

    line: int
    code: str
    prints: str


def steps_in(text: str) -> Iterator[Step]:
    for match in STEP.finditer(text):
        yield Step(text.count("\n", 0, match.start(1)) + 1, match[1], match[2] or "")


def run_steps(text: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in steps_in(text):
        printed = io.StringIO()
        padded = "\n" * (step.line - 1) + step.code  # so that a traceback names the page's own line
        with contextlib.redirect_stdout(printed):
            exec(compile(padded, PAGE, "exec"), names)  # our own page
        assert printed.getvalue() == step.prints, f"{PAGE}:{step.line}"


def test_the_steps_run_and_print_what_they_say(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_steps((root / PAGE).read_text())


def test_every_section_has_a_step_that_prints(root: Path) -> None:
    sections = re.split(r"^## (?=\d)", (root / PAGE).read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) >= 12
    for section in sections:
        assert any(step.prints for step in steps_in(section)), section.splitlines()[0]


def test_no_block_is_left_out(root: Path) -> None:
    text = (root / PAGE).read_text()
    assert "```python" not in text
    assert text.count("```py\n") == len(list(steps_in(text)))


def test_a_step_that_prints_something_else_fails_with_its_line() -> None:
    page = "Text.\n\n```py\nx = 1\n```\n\n```py\nprint(x)\n```\n\n```text\n2\n```\n"
    assert [(step.line, step.prints) for step in steps_in(page)] == [(4, ""), (8, "2\n")]
    with pytest.raises(AssertionError, match=f"{PAGE}:8"):
        run_steps(page)
