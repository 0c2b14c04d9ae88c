"""The program, run as a person runs it on one of several homes, which each file of tests makes itself, as `homes`; and
called in this process, which takes far less time.
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

from antiphon.cli.app import app

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(homes: Path) -> Run:
    def call(*arguments: str, home: str = "") -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("antiphon")
        folder = homes / (home or min(os.listdir(homes)))
        environment = {**os.environ, "ANTIPHON_HOME": str(folder), "COLUMNS": "200"}
        return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, check=False)

    return call


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def call(*arguments: object, answers: str | None = None) -> Result:
    """Run a command in this process, with `answers` on its standard input; our errors are in `exception`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers, env={"COLUMNS": "200"})


def told(*arguments: object) -> Any:
    """What a call answers to a machine."""
    done = call(*arguments, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)
