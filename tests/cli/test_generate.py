"""`antiphon generate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import call, told

from antiphon.core.errors import InvalidInput

SMALL = ("--parties", 2, "--items", 12, "--messages", 200, "--epochs", 1)


def test_a_home_is_made_and_other_commands_read_it(tmp_path: Path) -> None:
    home = tmp_path / "home"

    answer = told("generate", "--home", home, *SMALL, "--seed", 3)

    assert (answer["messages"], answer["items"], len(answer["parties"])) == (200, 12, 2)
    assert told("verify", "--home", home)["wrong"] == []
    assert {row["party"] for row in told("party", "show", "--home", home)} == {
        row["party"] for row in answer["parties"]
    }


def test_it_is_told_to_people_what_was_made(tmp_path: Path) -> None:
    done = call("generate", "--home", tmp_path / "home", *SMALL)

    assert done.exit_code == 0
    assert "antiphon/object" in done.output
    assert "µs a message" in done.output
    assert "party 1" in done.output


def test_what_cannot_be_made_is_refused(tmp_path: Path) -> None:
    done = call("generate", "--home", tmp_path / "home", "--items", 5, "--parties", 6)

    assert isinstance(done.exception, InvalidInput)
    assert not (tmp_path / "home").exists()


def test_an_interrupt_ends_with_130_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("antiphon.generate.sink.Sink.flush", interrupted)

    done = call("generate", "--home", tmp_path / "home", *SMALL)

    assert done.exit_code == 130
    assert not (tmp_path / "home").exists()
