"""`make demo` as a newcomer sees it: three processes, and they agree, whatever the order of exchange."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.budget import only_in_soak


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=only_in_soak)])
def test_three_devices_agree(tmp_path: Path, root: Path, seed: int) -> None:
    command = [sys.executable, "examples/three_devices.py", "--home", str(tmp_path / "demo"), "--seed", str(seed)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "All three agree." in ended.stdout
    assert "bob revokes carol" in ended.stdout
    assert "the same on both, byte for byte" in ended.stdout
    assert "The same snapshot, the same items." in ended.stdout
