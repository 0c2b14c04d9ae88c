"""The pictures of docs/simulation.md are what the simulator draws now, and show what the page says."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from antiphon.sim.run import Outcome
from antiphon.sim.trace import Event, Kind

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "simulation.md"


def load() -> ModuleType:
    """A module of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location("antiphon_tools_pictures", ROOT / "tools" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pictures = load()


@cache
def played(name: str) -> Outcome:
    outcome: Outcome = pictures.play(name)
    return outcome


def stands(name: str, number: int) -> dict[str, int]:
    return {event.peer: event.at_ms for event in played(name).trace.of(Kind.STAND) if event.number == number}


def only(name: str, kind: Kind) -> Event:
    (event,) = played(name).trace.of(kind)
    return event


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_picture_is_current(name: str) -> None:
    drawn = pictures.picture(name, played(name))
    assert (pictures.FOLDER / f"{name}.svg").read_text() == drawn, "if this was meant, run tools/pictures.py"


def test_the_page_shows_all_of_them() -> None:
    shown = re.findall(r"!\[[^]]+\]\(pictures/(\w+)\.svg\)", PAGE.read_text())
    assert sorted(shown) == sorted(pictures.PICTURES)
    assert sorted(shown) == sorted(path.stem for path in pictures.FOLDER.iterdir())


def test_one_side_of_the_partition_goes_on_to_an_epoch_alone_and_the_other_joins_the_next() -> None:
    part, heal = only("partition", Kind.PART), only("partition", Kind.HEAL)
    first, second = stands("partition", 1), stands("partition", 2)
    alone = {name for name, at in first.items() if at < heal.at_ms}
    assert alone == {"alice", "bob", "carol"}
    assert min(first.values()) > part.at_ms
    assert len(second) == 6
    apart = [event for event in played("partition").trace.of(Kind.WRITE) if part.at_ms < event.at_ms < heal.at_ms]
    assert len({event.peer for event in apart} - alone) >= 2


def test_the_sleeper_writes_and_stands_on_no_epoch_before_it_is_awake() -> None:
    sleep, wake = only("sleeper", Kind.SLEEP), only("sleeper", Kind.WAKE)
    for number in (1, 2):
        during = {name for name, at in stands("sleeper", number).items() if sleep.at_ms < at < wake.at_ms}
        assert during == {"alice", "bob", "carol", "emil"}
    first = next(event for event in played("sleeper").trace.of(Kind.STAND) if event.peer == "dora")
    assert first.at_ms > wake.at_ms
    assert first.number > 1
    written = [event for event in played("sleeper").trace.of(Kind.WRITE) if event.peer == "dora"]
    assert sum(sleep.at_ms < event.at_ms < wake.at_ms for event in written) >= 3


def test_everybody_knows_of_the_equivocator_and_epochs_go_on() -> None:
    outcome = played("equivocator")
    lie = only("equivocator", Kind.LIE)
    refused = [event for event in outcome.trace.of(Kind.REFUSE) if "two histories" in event.text]
    assert lie.peer == "emil"
    assert {event.peer for event in refused} == {"alice", "bob", "carol", "dora", "emil"}
    assert all(event.at_ms > lie.at_ms for event in refused)
    assert outcome.epochs > 0


def test_the_takeover_is_of_alices_epoch_by_others() -> None:
    trace, wake = played("takeover").trace, only("takeover", Kind.WAKE)
    endorsed = [event for event in trace.of(Kind.ENDORSE) if event.number == 2]
    assert {event.peer for event in endorsed} == {"bob", "carol"}
    first, second, *_ = trace.of(Kind.DECLARE)
    assert (first.peer, first.number, second.number) == ("carol", 1, 2)
    assert second.peer in ("bob", "carol")
    assert second.text.endswith("term 1")
    assert min(event.at_ms for event in trace.of(Kind.STAND) if event.peer == "alice") > wake.at_ms
