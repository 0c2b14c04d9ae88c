"""The workload: which items edits go to, and what must show of them."""

from __future__ import annotations

import random
from contextlib import nullcontext
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from antiphon.core.stamp import Stamp
from antiphon.sim import workload as simworkload
from antiphon.sim.disk import Crashed
from antiphon.sim.workload import Workload


@pytest.mark.parametrize(("stay", "wanted"), [(1, [0, 1, 2, 3, 4, 5]), (4, [0, 0, 0, 0, 1, 1])])
def test_people_who_are_busy_stay_with_an_item(stay: int, wanted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    items = count()
    monkeypatch.setattr(Workload, "_find", lambda *_: next(items))
    workload, nobody = Workload(stay=stay), Any
    assert [workload._choose(nobody, random.Random(1)) for _ in wanted] == wanted  # type: ignore[arg-type]


class Written(NamedTuple):
    """An item of a model in which tokens stay, as far as `_rehearsed` looks at it."""

    value: list[str]
    model: tuple[str, int] = ("antiphon/messenger", 1)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_token_that_was_removed_right_before_a_crash_need_not_show(
    crashes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the crash was seen, and the removal was on the disk: the law said that a post was dropped."""

    def redact(item: Any, *_: Any) -> Stamp:
        item.value.remove("<alice 1>")
        if crashes:
            raise Crashed
        return Stamp(1, bytes(32), 0)

    monkeypatch.setattr(simworkload, "_rehearsed", redact)
    workload, item, nobody = Workload(), Written(["<alice 1>", "<alice 2>"]), Any
    with pytest.raises(Crashed) if crashes else nullcontext():
        workload._rehearsed(item, nobody, random.Random(1))  # type: ignore[arg-type]
    assert "<alice 1>" in workload.taken_away
    assert crashes or "<alice 2>" not in workload.taken_away


def test_a_writer_knows_what_is_delivered_and_not_what_waits_in_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A revocation that waited for another block counted as known, so what it took had to show (seed 431000044)."""
    stamp, item = Stamp(1, bytes(32), 0), SimpleNamespace(id=bytes(16), model=("antiphon/object", 1))
    monkeypatch.setattr(Workload, "_choose", lambda *_: item)
    monkeypatch.setattr(Workload, "_change", lambda *_: (stamp, True))
    peer: Any = SimpleNamespace(
        name="simon",
        genesis_feed=bytes(32),
        store=SimpleNamespace(record=lambda _: SimpleNamespace(length=22)),
        member=SimpleNamespace(machine=SimpleNamespace(delivered=lambda _: 19)),
    )
    workload = Workload()
    workload._edit(peer, random.Random(1), [])
    assert workload.opened == {bytes(32): 19}
