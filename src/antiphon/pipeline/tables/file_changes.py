"""The files of tables while a run changes them, step by step: what is added and removed is what it comes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from antiphon.pipeline.tables.parquet_files import PARTITION, Added, Written


class FileSet:
    """By table and partition. What one step adds and another takes away was never there."""

    def __init__(self, folder: Path, held: Mapping[str, Mapping[str, Iterable[str]]]) -> None:
        self.folder = folder
        self.held: dict[str, dict[str, list[str]]] = {
            table: {digit: list(files) for digit, files in shelves.items()} for table, shelves in held.items()
        }
        self.added: dict[str, dict[str, Added]] = defaultdict(dict)
        self.removed: dict[str, set[str]] = defaultdict(set)
        self._dropped: set[str] = set()

    def take(self, table: str, written: Written) -> None:
        """What a task has done. Tasks that share a file remove it each."""
        shelves = self.held.setdefault(table, {})
        for one in written.added:
            path = str(self.folder / table / one.path)
            self.added[table][path] = one
            shelves.setdefault(one.values[PARTITION], []).append(path)
        for path in written.removed:
            if self.added[table].pop(path, None) is not None:
                self._dropped.add(path)
                Path(path).unlink()
            elif path not in self._dropped:
                self.removed[table].add(path)
            for files in shelves.values():
                if path in files:
                    files.remove(path)

    def changed(self, table: str) -> bool:
        return bool(self.added[table] or self.removed[table])

    def counts(self) -> dict[str, int]:
        """How many files each table has."""
        return {table: sum(map(len, shelves.values())) for table, shelves in self.held.items()}
