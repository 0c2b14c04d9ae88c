"""What is generated, simulated and shown by an example stays below a tenth of each limit of the security page.

The limits are format constants. With a tenth in place of each, generated homes open with the same verdicts, simulated
runs are the same to the last event, and the example runs.
"""

from __future__ import annotations

import pkgutil
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.test_security import ROW
from tests.generate.test_home import USUAL, check

import antiphon
from antiphon.api.store import Store
from antiphon.generate.home import generate
from antiphon.sim.run import run
from antiphon.sim.scenario import Fault, make

pytestmark = pytest.mark.slow

#: Of these a tenth is less than one, or than the format needs.
TOO_FEW = {
    "halo.limits.DEVICE_FEEDS_MAX": "a device has a control and a data feed; see tests/generate/test_home.py",
    "halo.credentials.credential.SIGNATURES_MAX": "a feed is admitted with the signatures of its device and of itself",
    "snapshot.limits.LEAF_ENTRIES_MAX": "a tree fills its leaves",
    "snapshot.limits.INNER_ENTRIES_MAX": "and its inner nodes",
}


@contextmanager
def a_tenth(root: Path) -> Iterator[list[str]]:
    """Set every limit to a tenth, wherever it was imported to; yield the names of all."""
    for found in pkgutil.walk_packages(antiphon.__path__, "antiphon."):
        if not found.name.endswith("__main__"):
            import_module(found.name)  # else it would be imported with a tenth, and keep it
    modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "antiphon"]
    limits = {name: int(value.replace(",", "")) for name, value in ROW.findall((root / "docs/security.md").read_text())}
    with pytest.MonkeyPatch.context() as patch:
        for name in limits.keys() - TOO_FEW.keys():
            home, constant = name.rsplit(".", 1)
            whole = getattr(sys.modules[f"antiphon.{home}"], constant)
            for module in modules:
                if vars(module).get(constant) == whole == limits[name]:
                    patch.setattr(module, constant, whole // 10)
        yield sorted(limits)


@pytest.mark.parametrize("epochs", [0, 2])
def test_a_generated_home_stays_below_a_tenth_of_each_limit(root: Path, tmp_path: Path, epochs: int) -> None:
    made = generate(tmp_path / "home", replace(USUAL, epochs=epochs))
    with a_tenth(root) as names, Store.open(tmp_path / "home", unprotected=True) as store:
        assert len(names) > 30
        for party in made.parties:
            check(store, party)


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_run_without_liars_stays_below_a_tenth_of_each_limit(root: Path, seed: int) -> None:
    scenario = make(seed, faults=[fault for fault in Fault if fault is not Fault.LIARS])
    wanted = run(scenario)
    with a_tenth(root):
        assert run(scenario).trace.digest() == wanted.trace.digest()
    assert not wanted.broken


def test_an_example_stays_below_a_tenth_of_each_limit(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "examples" / "planner.py"
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [str(path), "--home", str(tmp_path / "home")])
    with a_tenth(root):
        runpy.run_path(str(path), run_name="__main__")
