"""Ownership of folders that have the names of our tables, before a run deletes or writes anything in them.

A run that died leaves tables that no run has published. They are deleted only if each commit in them is of that run.
Anything else under the name of a table is a user's, or tables that have lost their `current.json`: it is left alone.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

from antiphon.core.errors import BadEncoding, DamagedTables, InvalidInput
from antiphon.pipeline.tables.delta_log import LOG, Commit, log_versions, read_commits
from antiphon.pipeline.tables.parquet_files import WRITE_AGAIN


def check_ours(table: Path) -> None:
    """Raise `InvalidInput` if there is something under the name of a table that no run of ours has written."""
    if table.is_dir() and not table.is_symlink():
        commits = _commits(table)
        if any(commit.ours for commit in commits):
            return
        others = sorted(entry.name for entry in table.iterdir() if entry.name != LOG and not _is_part(entry.name))
        if not commits and not others:
            return  # a run died before its first commit
        found = f"a table {table.name} of another program" if commits else f"{table.name}/{others[0]}, no table of ours"
    elif table.exists() or table.is_symlink():
        found = f"{table.name}, which is no folder"
    else:
        return
    raise InvalidInput(f"there is {found} in {table.parent}: move {table} away, or name another folder for the tables")


def check_of_run(table: Path, run: int) -> None:
    """Raise `DamagedTables` if a table that is not in `current.json` has anything of another run than `run`."""
    known = {commit.run if commit.ours else None for commit in _commits(table)}
    if table.is_dir() and (known - {run} or any(_is_part(name) and not _is_part(name, run) for name in _names(table))):
        raise DamagedTables(
            f"the table {table.name} in {table.parent} has rows of other runs than {run}, the next one, and "
            f"current.json does not name it. If that file was lost, put a copy of it back; or {WRITE_AGAIN}"
        )


def drop_run(table: Path, run: int) -> None:
    """Delete what a run that died has left of a table: its log and its files, and the folder if it is empty then."""
    shutil.rmtree(table / LOG, ignore_errors=True)
    drop_parts(table, run)
    with suppress(OSError):  # there are other files in it
        table.rmdir()


def drop_parts(table: Path, run: int) -> None:
    """Delete the files of a table that a run has written and not published."""
    for name in _names(table):
        if _is_part(name, run):
            shutil.rmtree(table / name)


def _names(table: Path) -> list[str]:
    return [entry.name for entry in table.iterdir()] if table.is_dir() else []


def _is_part(name: str, run: int | None = None) -> bool:
    """True if a name is one of `part_of`, of any run or of this one."""
    return re.fullmatch(rf"part-{r'[0-9]+' if run is None else run}-[0-9a-f]{{32}}", name) is not None


def _commits(table: Path) -> list[Commit]:
    """Return the commits in the log of a table; those that cannot be read are nobody's."""
    found: list[Commit] = []
    for version in log_versions(table):
        try:
            found += read_commits(table, version - 1, version)
        except BadEncoding:
            found.append(Commit(version, "", None, (), True))
    return found
