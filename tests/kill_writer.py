"""Kill a process from outside while it writes, and return what it acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256


def kill_while_writing(command: Sequence[str], lines_min: int, chance: random.Random) -> list[bytes]:
    """Run a Python program, kill it after it printed so many lines, and return all whole lines."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    heard = b""
    while heard.count(b"\n") < lines_min:
        more = os.read(process.stdout.fileno(), 1 << 16)
        assert more, "the writer ended by itself"
        heard += more
    for _ in range(chance.randrange(3000)):  # so that the kill does not always come at the same moment of a write
        sha256(heard)
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    return (heard + rest).split(b"\n")[:-1]
