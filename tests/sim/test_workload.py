"""The workload: which items edits go to."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest

from antiphon.sim.workload import Workload


@pytest.mark.parametrize(("stay", "wanted"), [(1, [0, 1, 2, 3, 4, 5]), (4, [0, 0, 0, 0, 1, 1])])
def test_people_who_are_busy_stay_with_an_item(stay: int, wanted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    items = count()
    monkeypatch.setattr(Workload, "_find", lambda *_: next(items))
    workload, nobody = Workload(stay=stay), Any
    assert [workload._choose(nobody, random.Random(1)) for _ in wanted] == wanted  # type: ignore[arg-type]
