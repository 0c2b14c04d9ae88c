"""A registry of names: which models and view classes exist, their purpose, and the packages with their code.

The specification (docs/SPEC-LEDGER.md) calls it DXNS, a shared name system. Here it is a port, with a local
implementation: a file that an operator writes. Names decide nothing about data. They let people find views by class,
and let a program that meets an unknown model report, or load, the missing package.

>>> registry = LocalRegistry("names.json")
>>> registry.register(RegistryEntry("org.example:planner", "view class", "Boards with lists of tasks"))
>>> registry.find("org.example:planner").description
'Boards with lists of tasks'
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from antiphon.api.json_file import JsonFile
from antiphon.api.key_text import is_unicode
from antiphon.core.errors import BadEncoding, InvalidInput, UnknownModel
from antiphon.model.model import Model

NAME_SIZE_MAX = 256
TEXT_SIZE_MAX = 4096
RECORDS_MAX = 10_000

Kind = Literal["model", "view class"]


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """The meaning of one name. For a model, `entry` is "module:Class", and `package` is the package to install."""

    name: str
    kind: Kind
    description: str = ""
    version: int = 1
    entry: str = ""
    package: str = ""

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not 0 < len(name) <= NAME_SIZE_MAX or name.split() != [name]:
            raise InvalidInput(f"{self.name!r:.100} is no name: 1 to {NAME_SIZE_MAX} characters without spaces")
        if self.kind not in get_args(Kind) or type(self.version) is not int or self.version < 1:
            raise InvalidInput(f"the name {self.name}: it is a model or a view class, of a version from 1")
        texts: tuple[object, ...] = (self.description, self.entry, self.package)
        if any(not isinstance(text, str) or len(text) > TEXT_SIZE_MAX for text in texts):
            raise InvalidInput(f"the name {self.name}: its texts have at most {TEXT_SIZE_MAX} characters")
        if not all(map(is_unicode, (self.name, self.description, self.entry, self.package))):
            raise InvalidInput(f"the name {self.name!r:.100}: a text of it is not valid Unicode")


class Registry(Protocol):
    """A lookup of names. An implementation may use a network; it may then not know a name for some time."""

    def find(self, name: str, version: int | None = None) -> RegistryEntry | None:
        """Return the entry of a name, of this version or of the latest; None if there is none."""

    def records(self, kind: Kind | None = None) -> Iterable[RegistryEntry]:
        """Return all entries, or those of one kind, by name and version."""

    def register(self, record: RegistryEntry) -> None:
        """Add an entry. It replaces an entry with the same name and version."""


class LocalRegistry:
    """A registry in one JSON file. The file is replaced as a whole: a crash leaves the old one or the new one."""

    def __init__(self, path: str | Path) -> None:
        self._file = JsonFile(Path(path), "the registry")
        self._lock = threading.Lock()

    def find(self, name: str, version: int | None = None) -> RegistryEntry | None:
        """Return the entry of a name, of this version or of the latest; None if there is none."""
        found = [record for record in self._read() if record.name == name and version in (None, record.version)]
        return max(found, key=lambda record: record.version, default=None)

    def records(self, kind: Kind | None = None) -> list[RegistryEntry]:
        """Return all entries, or those of one kind, by name and version."""
        found = [record for record in self._read() if kind in (None, record.kind)]
        return sorted(found, key=lambda record: (record.name, record.version))

    def register(self, record: RegistryEntry) -> None:
        """Add an entry, and write the file. It replaces an entry with the same name and version."""
        if not isinstance(record, RegistryEntry):
            raise InvalidInput(f"a registry takes a RegistryEntry, not {record!r:.80}")
        with self._lock:
            key = (record.name, record.version)
            kept = [known for known in self._read() if (known.name, known.version) != key]
            if len(kept) >= RECORDS_MAX:
                raise InvalidInput(f"{self._file} holds {RECORDS_MAX} names already")
            self._file.write([asdict(one) for one in (*kept, record)])

    def _read(self) -> list[RegistryEntry]:
        rows = self._file.read()
        if rows is None:
            return []
        if not isinstance(rows, list) or len(rows) > RECORDS_MAX:
            raise BadEncoding(f"{self._file} is a list of at most {RECORDS_MAX} names; this is not")
        return [_record(row, self._file) for row in rows]


def _record(row: Any, file: JsonFile) -> RegistryEntry:
    try:
        return RegistryEntry(**row)
    except (TypeError, InvalidInput) as error:
        raise BadEncoding(f"{file}: {error}") from None


def load_model(record: RegistryEntry) -> type[Model[Any]]:
    """Import the class of the model that an entry names. The writer of the registry is trusted: this runs its code."""
    module, _, name = record.entry.partition(":")
    try:
        found = getattr(import_module(module), name) if record.kind == "model" and module and name else None
    except Exception as error:  # the code of a package may raise anything
        raise UnknownModel(
            f"the model {record.name} {record.version} cannot be loaded from {record.entry!r}: {error!r}"
            + (f"; install {record.package}" if record.package else "")
        ) from None
    if not isinstance(found, type) or not issubclass(found, Model):
        raise UnknownModel(f"the name {record.name} names no model: its entry is {record.entry!r}")
    if (found.name, found.version) != (record.name, record.version):
        raise UnknownModel(f"{record.entry} is the model {found.name} {found.version}, not {record.name}")
    return found
