"""Homes, tables and arguments of the pipeline are checked before Spark starts, which takes half a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import call

import antiphon
from antiphon.core.errors import InvalidInput

pytest.importorskip("pyspark")

from pyspark.logger import PySparkLogger

from antiphon.pipeline.session import session


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark is started")

    monkeypatch.setattr(session, "open_session", refuse)
    monkeypatch.chdir(tmp_path)


NO_HOME = "nowhere is no home: it has no feeds; name the folder that `antiphon.open` was given, or an archive"
NO_TABLES = "there are no tables in .*nowhere; `antiphon pipeline run --tables` writes them"
NO_KEY = "'xyz' does not name parties; give their keys in hex"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--home", "nowhere"), NO_HOME),
        (("run", "--home", "nowhere", "--master", "local[1]"), NO_HOME),
        (("stream", "--home", "nowhere"), NO_HOME),
        (("verify", "--home", "nowhere"), NO_HOME),
        (("archive", "export", "nowhere", "archive"), NO_HOME),
        (("archive", "check", "nowhere"), "nowhere is no archive"),
        (("run", "--party", "xyz"), NO_KEY),
        (("stream", "--party", "xyz"), NO_KEY),
        (("verify", "--party", "xyz"), NO_KEY),
        (("query", "{}", "--party", "xyz"), NO_KEY),
        (("query", "{}", "--tables", "nowhere"), NO_TABLES),
        (("sql", "SELECT 1", "--tables", "nowhere"), NO_TABLES),
    ],
)
def test_wrong_arguments_are_told_at_once(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    done = call("pipeline", *arguments)

    assert isinstance(done.exception, InvalidInput), done.exception
    with pytest.raises(InvalidInput, match=told):
        raise done.exception
    assert not list(tmp_path.iterdir())


def test_a_refused_query_is_told_without_the_trace_of_java(capfd: pytest.CaptureFixture[str]) -> None:
    """PySpark logs each refused query itself, with the trace, to the standard error of the process."""
    antiphon.open("ada", unprotected=True).close()
    assert str(call("pipeline", "run", "--home", "ada").exception) == "Spark is started"

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).exception("Py4JJavaError at java.base", errorClass="UNRESOLVED_COLUMN")

    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("command", ["run", "stream", "verify"])
def test_a_party_in_two_homes_is_told_at_once(command: str, tmp_path: Path) -> None:
    with antiphon.open("ada", unprotected=True) as ada, antiphon.open("bob", unprotected=True) as bob:
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        own = bob.create_party("Bob's own")

    done = call("pipeline", command, "--home", "ada", "--home", "bob")

    assert isinstance(done.exception, InvalidInput), done.exception
    assert str(done.exception).endswith(f"is in {tmp_path / 'ada'} and in {tmp_path / 'bob'}; name one of them")
    asked = call("pipeline", command, "--home", "ada", "--home", "bob", "--party", own.key.hex())
    assert str(asked.exception) == "Spark is started"


@pytest.mark.parametrize(
    "arguments",
    [
        ("pipeline", "run", "--home", "s3://home"),
        ("pipeline", "run", "--tables", "s3://bucket/tables"),
        ("pipeline", "stream", "--home", "s3://home"),
        ("pipeline", "stream", "--tables", "s3://tables"),
        ("pipeline", "stream", "--checkpoint", "s3://checkpoint"),
        ("pipeline", "changes", "--tables", "s3://tables"),
        ("pipeline", "tables", "--tables", "s3://tables"),
        ("pipeline", "sql", "SELECT 1", "--tables", "s3://tables"),
        ("pipeline", "query", "{}", "--tables", "s3://tables"),
        ("pipeline", "verify", "--home", "s3://home"),
        ("pipeline", "epoch", "3f", "--home", "s3://home"),
        ("pipeline", "archive", "export", "s3://home", "archive"),
        ("pipeline", "archive", "export", "home", "s3://archive"),
        ("pipeline", "archive", "import", "s3://archive", "home"),
        ("pipeline", "archive", "import", "archive", "s3://home"),
        ("pipeline", "archive", "check", "s3://archive"),
        ("generate", "--home", "s3://home"),
        ("feeds", "--home", "s3://home"),
    ],
)
def test_a_uri_is_refused_wherever_a_folder_is_named(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = call(*arguments)

    assert isinstance(done.exception, InvalidInput), done.exception
    with pytest.raises(InvalidInput, match=r"'s3:/.*' is a URI, and only folders of this machine can be used"):
        raise done.exception
    assert not list(tmp_path.iterdir())
