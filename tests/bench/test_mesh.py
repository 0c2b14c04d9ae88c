"""The benchmark of the network runs to its end, and answers with every goal."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.conftest import run
from tests.budget import only_in_soak


@pytest.mark.slow
@only_in_soak
def test_it_answers_with_every_goal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    answer = run("mesh", tmp_path)
    assert [goal["name"] for goal in answer["goals"]] == [
        "blocks replicated, × hypercore",
        "write to subscriber over loopback, × a bare echo",
        "write to subscriber at 50 ms one way, beside two syncs, ms",
        "3 idle parties: memory, MB",
        "3 idle parties: descriptors",
        "3 idle parties: CPU of a commit, ms",
        "1 Mbit/s, 40 ms, 2 % loss: × the least time",
        "1 Mbit/s, 40 ms, 2 % loss: × the bytes",
        "100 Mbit/s, 300 ms: % of the rate",
        "a joiner, × snapshot, tail and control feeds",
    ]
    figures = answer["figures"]
    assert figures["replication"]["ours"]
    assert len(figures["latency"]["loopback"]) == 4
    assert figures["joiner"]["taken"] > figures["joiner"]["tail"]
