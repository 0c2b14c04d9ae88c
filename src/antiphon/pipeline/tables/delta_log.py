"""Commits in the Delta log of a table: which of them are ours, and what those of other programs have changed.

Our commits have the key `antiphon` in their commit info. Another program may set properties, merge files (OPTIMIZE) and
delete old ones (VACUUM): the rows stay the same, and the next run builds on it. Any other change is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from antiphon.core.errors import BadEncoding

LOG = "_delta_log"
OURS = "antiphon"  # key in the commit info
COMMIT_SIZE_MAX = 256 << 20  # bytes of one commit; an entry for a file has about 500


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table, as far as its log entry tells."""

    version: int
    operation: str
    run: int | None  # that made it; 0 if it belongs to none, None if another program made it
    adds: tuple[str, ...]  # files, relative to the table
    changes_rows: bool  # it adds or removes rows, or changes columns

    @property
    def ours(self) -> bool:
        """True if Antiphon made it."""
        return self.run is not None


def log_entry(table: Path, version: int) -> Path:
    """Return the path of the log entry of a version."""
    return table / LOG / f"{version:020}.json"


def log_versions(table: Path) -> list[int]:
    """Return the versions of which there are log entries, ascending."""
    found = (table / LOG).glob("[0-9]*.json")
    return sorted(int(path.stem) for path in found if path.stem.isdecimal() and path.is_file())


def read_commits(table: Path, after: int, last: int) -> Iterator[Commit]:
    """Yield the commits of the versions after `after`, up to `last`. Raise `BadEncoding` if one cannot be read."""
    for version in range(after + 1, last + 1):
        path = log_entry(table, version)
        try:
            with path.open("rb") as file:
                text = file.read(COMMIT_SIZE_MAX + 1)
            if len(text) > COMMIT_SIZE_MAX:
                raise ValueError(f"it has more than {COMMIT_SIZE_MAX} bytes")
            yield _commit(version, [json.loads(line) for line in text.splitlines() if line.strip()])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadEncoding(f"{path} is no commit of a Delta table: {error!s:.200}") from None


def _commit(version: int, actions: Sequence[dict[str, Any]]) -> Commit:
    info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    adds = [one["add"] for one in actions if "add" in one]
    files = [*adds, *(one["remove"] for one in actions if "remove" in one)]
    changes = any(one.get("dataChange", True) or one.get("deletionVector") for one in files)
    return Commit(
        version,
        str(info.get("operation", "a commit without a name"))[:80],
        _run_of(info[OURS]) if OURS in info else None,
        tuple(unquote(one["path"]) for one in adds),
        changes,
    )


def _run_of(told: str) -> int:
    """Return the number of the run that a commit of ours tells: `run 3`."""
    return int(told.removeprefix("run "))
