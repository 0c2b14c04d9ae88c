"""A laboratory for networks: two hosts, each a network namespace, and a link of a given rate, delay and loss.

`lab_link.c` is the link, and its process holds the namespaces: they end with it, whatever happens to this program.
Nothing in them leads to any other network. They need Linux, a C compiler, `nsenter`, TUN devices, and rights to make
namespaces: root has them, in most containers nobody has. `why_not` says what is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_SOURCE = Path(__file__).with_name("lab_link.c")
_QUEUE_MIN = 64 << 10  # a cheap router's


class Link(NamedTuple):
    """What a link does to packets. `loss` is the share of packets that vanish; `rtt_ms` is there and back."""

    rate: float  # bits a second
    rtt_ms: float
    loss: float = 0.0

    @property
    def queue(self) -> int:
        """The bytes that may wait for the rate: one round trip of them, or those of a cheap router."""
        return max(_QUEUE_MIN, int(self.rate * self.rtt_ms / 8000))

    def _words(self) -> list[str]:
        return [str(self.rate), str(int(self.rtt_ms * 500)), str(self.loss), str(self.queue)]


class Way(NamedTuple):
    """The packets of one direction, with their headers of IP and TCP."""

    packets: int
    size: int
    lost: int
    dropped: int  # by a full queue; not in `packets`


class Host(NamedTuple):
    """One end of the link."""

    address: str
    space: str

    def command(self, *words: str) -> list[str]:
        """Return the command that runs another one on this host."""
        return ["nsenter", f"--net={self.space}", *words]


class Lab:
    """Two hosts and the link between them, until `close`."""

    def __init__(self, link: Link, folder: Path, *, seed: int = 0) -> None:
        program = folder / "lab_link"
        if not program.exists():
            subprocess.run(["cc", "-O2", "-o", program, _SOURCE], check=True, capture_output=True)
        words = [str(program), *link._words(), str(seed)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        spaces = self._line().split()
        if len(spaces) != 2:
            self.close()
            raise OSError(f"no laboratory: {self._said.strip()}")
        self.one, self.other = (
            Host(f"10.64.0.{number}", f"/proc/{self._process.pid}/fd/{space}")
            for number, space in enumerate(spaces, start=1)
        )

    def set(self, link: Link) -> None:
        """Change the link for packets that come from now on. A loss of 1 cuts it."""
        self._tell(" ".join(["set", *link._words()]))

    def counts(self) -> tuple[Way, Way]:
        """Return the packets from the first host, and those from the second."""
        self._tell("count")
        one, other = (Way(**way) for way in json.loads(self._line()))
        return one, other

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the link and both namespaces."""
        _, self._said = self._process.communicate(timeout=10)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def why_not(folder: Path) -> str | None:
    """Return why no laboratory can be made here, or None. The program is compiled into `folder`."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are Linux's"
    missing = [name for name in ("cc", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"no {' and no '.join(missing)} here"
    try:
        Lab(Link(1e6, 1), folder).close()
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None
