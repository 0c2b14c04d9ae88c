"""The laboratory itself: plain sockets between its hosts measure the round trip, rate and loss that were asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.lab import Host, Lab

TALK = Path(__file__).with_name("talk.py")
PATIENCE = 60


@contextmanager
def talk(host: Host, *words: object) -> Iterator[subprocess.Popen[str]]:
    command = host.command(sys.executable, str(TALK), *map(str, words))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def echoes(lab: Lab, count: int) -> list[float]:
    with (
        talk(lab.one, "echo", lab.one.address) as echo,
        talk(lab.other, "ask", lab.one.address, line(echo), count) as asked,
    ):
        return [float(seconds) for seconds in line(asked)]


def transfer(lab: Lab, size: int) -> float:
    with (
        talk(lab.other, "take", lab.other.address, size) as taker,
        talk(lab.one, "send", lab.other.address, line(taker), size),
    ):
        return float(line(taker))


def datagrams(lab: Lab, count: int) -> list[int]:
    with (
        talk(lab.other, "hear", lab.other.address) as hearer,
        talk(lab.one, "throw", lab.other.address, line(hearer), count),
    ):
        return [int(number) for number in line(hearer)]


@pytest.mark.slow
def test_a_round_trip_takes_as_long_as_asked_for(make_lab: Callable[..., Lab]) -> None:
    from harness.lab import Link

    found = echoes(make_lab(Link(1e8, 60)), 15)
    assert min(found) >= 0.060
    assert median(found) < 0.075


@pytest.mark.slow
def test_bytes_come_at_the_rate_asked_for(make_lab: Callable[..., Lab]) -> None:
    from harness.lab import Link

    lab, size = make_lab(Link(4e6, 20)), 500_000
    seconds = transfer(lab, size)
    payload = 8 * size / 4e6 * 1448 / 1500  # the best that headers let through, if nothing is sent twice
    assert payload <= seconds < 1.4 * payload
    forth, back = lab.counts()
    assert size < forth.size < 1.3 * size
    assert back.size < size / 10


@pytest.mark.slow
def test_packets_vanish_as_often_as_asked_for_and_the_same_ones_for_a_seed(make_lab: Callable[..., Lab]) -> None:
    from harness.lab import Link

    first, again, other = (datagrams(make_lab(Link(1e9, 2, loss=0.1), seed=seed), 3000) for seed in (5, 5, 6))
    assert first == again != other
    assert 0.07 < 1 - len(first) / 3000 < 0.13
    assert first == sorted(first)


@pytest.mark.slow
def test_a_link_can_be_cut_and_mended(make_lab: Callable[..., Lab]) -> None:
    from harness.lab import Link

    lab = make_lab(Link(1e7, 4, loss=1.0))
    with (
        talk(lab.one, "echo", lab.one.address) as echo,
        talk(lab.other, "ask", lab.one.address, line(echo), 1) as asked,
    ):
        until = time.monotonic() + PATIENCE
        while not (forth := lab.counts()[1]).packets:
            assert time.monotonic() < until
        assert forth.lost == forth.packets
        lab.set(Link(1e7, 4))
        assert line(asked)


@pytest.mark.slow
def test_the_hosts_end_with_the_link(make_lab: Callable[..., Lab]) -> None:
    from harness.lab import Link

    lab = make_lab(Link(1e6, 1))
    reachable = lab.other.command("true")
    assert subprocess.run(reachable, check=False).returncode == 0
    lab.close()
    assert subprocess.run(reachable, check=False, capture_output=True).returncode != 0
