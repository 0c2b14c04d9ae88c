"""`make demo` as a newcomer sees it: three processes on a network, and they agree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_three_devices_agree(tmp_path: Path, root: Path) -> None:
    home = tmp_path / "demo"
    command = [sys.executable, "examples/three_devices.py", "--home", str(home)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "All three agree." in ended.stdout
    assert "revokes carol" in ended.stdout
    assert "the same on all, byte for byte" in ended.stdout
    assert "The 25 notes are void" in ended.stdout
    assert "The same snapshot, the same items." in ended.stdout
    cids = re.findall(r"bafy\w+", ended.stdout)
    assert len(cids) == 2, "the attesters' snapshot, and the newcomer's"
    assert len(set(cids)) == 1
    live = json.loads((home / "live.json").read_text())
    assert live["alice"] == live["bob"] == live["dora"]
