"""Which Java Spark uses; and Spark runs with the bundled Java on a machine without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.budget import only_in_soak

from antiphon.pipeline.session import java
from antiphon.pipeline.session.java import NoJava, find_java, use_java


def fake_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    named, other = fake_java(tmp_path / "named", "21.0.1"), fake_java(tmp_path / "other", "17.0.2")
    found = find_java({"JAVA_HOME": str(tmp_path / "named"), "PATH": str(other.parent)})

    assert (found.home, found.version, found.bundled) == (named.parent.parent, 21, False)


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "17")
    found = find_java({"JAVA_HOME": str(old.parent.parent), "PATH": str(new.parent)})

    assert found.home == new.parent.parent


def test_without_any_the_bundled_one_is_used_behind_the_wrapper() -> None:
    environment = {"PATH": ""}
    found = use_java(environment)

    assert found.bundled
    assert found.version >= java.VERSION_MIN
    assert environment["JAVA_HOME"] == str(found.home)
    assert use_java(environment) == found  # the wrapper is not taken for a Java of the machine


def test_where_there_is_none_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled", lambda: None)
    old = fake_java(tmp_path, "1.8.0")

    with pytest.raises(NoJava, match=r"is Java 1.*pip install '\.\[spark\]'.*set JAVA_HOME"):
        find_java({"PATH": str(old.parent)})


def test_the_wrapper_drops_the_word_that_its_java_does_not_know(tmp_path: Path) -> None:
    program = tmp_path / "java"
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    program.chmod(0o755)
    wrapper = Path(java.__file__).with_name("jre") / "bin" / "java"
    said = subprocess.run(
        [wrapper, "-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", ""],
        env={"ANTIPHON_JAVA": str(program)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout == "<-Xmx1g>\n<a b>\n<>\n"


@only_in_soak
@pytest.mark.usefixtures("spark_worker")
def test_spark_runs_without_a_java_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "bin"  # what Spark's scripts need, and no Java
    folder.mkdir()
    for name in ("bash", "sh", "env", "dirname", "ps", "cat", "uname"):
        program = shutil.which(name)
        if program is not None:
            (folder / name).symlink_to(program)
    code = (
        "from antiphon.pipeline import open_session\n"
        "spark = open_session(master='local[1]', memory_mb=512)\n"
        "print(spark.range(10).selectExpr('sum(id)').collect()[0][0], spark.conf.get('spark.master'))\n"
        "spark.stop()\n"
    )
    known = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "PATH")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**known, "PATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == ["45", "local[1]"], done.stderr
