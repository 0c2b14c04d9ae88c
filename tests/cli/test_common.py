"""Shared by commands: text of peers on a terminal, and passphrases that no other user of the machine can see."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.table import Table
from tests.cli.conftest import call, told

import antiphon
from antiphon.cli.common import PlainConsole, table

HOSTILE = "Ada\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m\r"


def test_text_of_peers_does_not_command_a_terminal() -> None:
    """A name with escape sequences cleared the screen, and set the title of the window."""
    shown = io.StringIO()
    console = PlainConsole(file=shown, force_terminal=True, width=200)
    console.print(HOSTILE, markup=False, highlight=False)
    raw = Table("name")
    raw.add_row(HOSTILE)
    console.print(raw)
    console.print(table(["name"], [{"name": HOSTILE}]))
    console.print("[bold]our own style[/bold]")
    text = shown.getvalue()
    assert "Ada\\x1b]0;owned\\x1b[2J\\u202egnp.exe\\x9b31m" in text, "Rich leaves bells out"
    assert "Ada\\x1b]0;owned\\x07\\x1b[2J\\u202egnp.exe\\x9b31m" in text, (
        "in tables of ours, the columns are wide enough"
    )
    assert "\x1b[1mour own style\x1b[0m" in text
    for control in ("\x1b]", "\x1b[2J", "\x07", "\u202e", "\x9b", "\r"):
        assert control not in text


@pytest.fixture
def protected(tmp_path: Path) -> Path:
    with antiphon.open(tmp_path / "home", passphrase="open sesame") as store:
        store.create_party("Household")
    return tmp_path / "home"


@pytest.mark.slow
def test_a_passphrase_comes_from_a_file_or_the_environment_or_a_terminal(
    protected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [row] = told("party", "--home", protected)
    devices = ("party", "devices", row["party"], "--home", protected)
    assert "is under a passphrase" in str(call(*devices).exception)
    secret = tmp_path / "secret"
    secret.write_text("open sesame\nanything else\n")
    assert told(*devices, "--passphrase-file", secret)
    assert call(*devices, "--passphrase-file", "-", answers="open sesame\n").exit_code == 0
    monkeypatch.setenv("ANTIPHON_PASSPHRASE", "open sesame")
    assert told(*devices)
    monkeypatch.delenv("ANTIPHON_PASSPHRASE")
    monkeypatch.setattr("antiphon.cli.common.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    assert call(*devices, answers="open sesame\n").exit_code == 0


@pytest.mark.slow
def test_there_is_no_option_for_the_passphrase_itself(protected: Path, tmp_path: Path) -> None:
    """The arguments of a program are shown by `ps` to all users of a machine."""
    assert "No such option" in call("gc", "--passphrase", "open sesame", "--home", protected).output
    (tmp_path / "large").write_bytes(b"x" * 2000)
    (tmp_path / "binary").write_bytes(b"\xff\n")
    for name, why in (("none", "cannot be read"), ("large", "more than 1024 bytes"), ("binary", "no text in UTF-8")):
        done = call("gc", "--passphrase-file", tmp_path / name, "--home", protected)
        assert why in str(done.exception)


@pytest.mark.parametrize("command", [("gc",), ("compact",), ("party", "costs", "1f3a"), ("epoch", "declare", "1f3a")])
def test_a_folder_that_is_no_home_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    """A wrong `--home` is the commonest mistake: what the command says must not be about keys."""
    told = str(call(*command, "--home", tmp_path / "nowhere").exception)
    assert "nowhere" in told
    assert "--home" in told
