"""Run a benchmark with hardly any data: its figures mean nothing, but it runs to its end and its sides agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parents[2] / "bench"


def run(name: str, folder: Path, *, seconds: float = 120, **environment: str) -> dict[str, Any]:
    """Return the last line of `bench/<name>.py --json`, and check that it leaves nothing in the folder."""
    command = [sys.executable, "-c", f"import {name}; {name}.main({name}.TINY)", "--json", "--dir", str(folder)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(BENCH), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
