"""The files of tables during a run: the net of what its tasks add and remove, for the commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from antiphon.pipeline.tables.parquet_files import PARTITION, AddedFile, WrittenFiles


class FileChanges:
    """Files by table and partition. A file that one fold adds and a later one removes is deleted, and not committed."""

    def __init__(self, folder: Path, held: Mapping[str, Mapping[str, Iterable[str]]]) -> None:
        self.folder = folder
        self.current: dict[str, dict[str, list[str]]] = {
            table: {digit: list(files) for digit, files in partitions.items()} for table, partitions in held.items()
        }
        self.added: dict[str, dict[str, AddedFile]] = defaultdict(dict)
        self.removed: dict[str, set[str]] = defaultdict(set)
        self._dropped: set[str] = set()

    def apply(self, table: str, written: WrittenFiles) -> None:
        """Apply the result of a task. Tasks that share a file all report it as removed."""
        partitions = self.current.setdefault(table, {})
        for one in written.added:
            path = str(self.folder / table / one.path)
            self.added[table][path] = one
            partitions.setdefault(one.values[PARTITION], []).append(path)
        for path in written.removed:
            if self.added[table].pop(path, None) is not None:
                self._dropped.add(path)
                Path(path).unlink()
            elif path not in self._dropped:
                self.removed[table].add(path)
            for files in partitions.values():
                if path in files:
                    files.remove(path)

    def changed(self, table: str) -> bool:
        """True if files of a table were added or removed."""
        return bool(self.added[table] or self.removed[table])

    def counts(self) -> dict[str, int]:
        """Return the number of files of each table."""
        return {table: sum(map(len, partitions.values())) for table, partitions in self.current.items()}
