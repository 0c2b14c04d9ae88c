"""The program on one of several homes, which each file of tests makes itself, as `homes`.

`run` calls the program in this process, which takes a tenth of the time. `start` starts it as a person does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from antiphon.cli import common
from antiphon.cli.app import app, main

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(homes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the program's entry point in this process: with its exit code, and its errors as lines."""
    for console in (common.out, common.err):  # they may have taken another width when they were made
        monkeypatch.setattr(console, "_width", 200)

    def call(*arguments: str, home: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("ANTIPHON_HOME", str(folder_of(homes, home)))
        monkeypatch.setattr(sys, "argv", ["antiphon", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def start(homes: Path) -> Run:
    """Start the program in a process of its own."""

    def call(*arguments: str, home: str = "") -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("antiphon")
        environment = {**os.environ, "ANTIPHON_HOME": str(folder_of(homes, home)), "COLUMNS": "200"}
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, check=False)

    return call


def folder_of(homes: Path, home: str) -> Path:
    return homes / (home or min(os.listdir(homes)))


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def call(*arguments: object, answers: str | None = None) -> Result:
    """Run a command in this process, with `answers` on its standard input; our errors are in `exception`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers, env={"COLUMNS": "200"})


def told(*arguments: object) -> Any:
    """Run a command in this process with `--json`, and return its answer."""
    done = call(*arguments, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)
