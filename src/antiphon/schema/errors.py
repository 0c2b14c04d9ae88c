"""`SchemaViolation`: the error for a value that does not fit its schema, with its problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from antiphon.core.errors import InvalidInput
from antiphon.schema.limits import PROBLEMS_MAX

Step = str | int  # a key of a map, or a place in a list


class Problem(NamedTuple):
    """A problem at one path of a value: the expected and the found value."""

    path: tuple[Step, ...]
    message: str

    def __str__(self) -> str:
        return f"at {show_path(self.path)}: {self.message}" if self.path else self.message


class SchemaViolation(InvalidInput):
    """A value does not fit its schema; nothing was written. Fix the `problems`, and write again."""

    def __init__(self, name: str, version: int, problems: Sequence[Problem]) -> None:
        told = problems[:PROBLEMS_MAX]
        more = f"; and {len(problems) - len(told)} more" if len(problems) > len(told) else ""
        super().__init__(f"does not fit the schema {name} {version}: {'; '.join(map(str, told))}{more}")
        self.name = name
        self.version = version
        self.problems = list(told)


def show_path(path: Sequence[Step]) -> str:
    """A path as text, for example `owner/tags[2]`."""
    shown = "".join(f"[{step}]" if isinstance(step, int) else f"/{step}" for step in path)
    return shown.removeprefix("/")
