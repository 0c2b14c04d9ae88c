"""`Migrations`: steps that turn values of older versions of a schema into values of this version.

>>> from antiphon.schema.definition import Schema
>>> task = Schema.of({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}, "task", 2)
>>> migrations = Migrations(task)
>>> @migrations.step(1)
... def name_to_title(value):
...     value["title"] = value.pop("name")
...     return value
>>> migrations.upgrade({"name": "Plan"}, 1)
{'title': 'Plan'}
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from antiphon.core.errors import InvalidInput
from antiphon.schema.definition import Schema

Step = Callable[[dict[str, Any]], dict[str, Any]]


class Migrations:
    """The steps to a schema, from each version to the next. A step is pure, but may change its argument."""

    def __init__(self, schema: Schema[Any]) -> None:
        self.schema = schema
        self._steps: dict[int, Step] = {}

    def step(self, from_version: int) -> Callable[[Step], Step]:
        """Register the step from a version to the next one."""
        if not 1 <= from_version < self.schema.version:
            raise InvalidInput(f"a step from version {from_version}; steps lead from 1 or later up to {self.schema}")
        if from_version in self._steps:
            raise InvalidInput(f"a second step from version {from_version} of the schema {self.schema.name}")

        def register(function: Step) -> Step:
            self._steps[from_version] = function
            return function

        return register

    def upgrade(self, value: dict[str, Any], from_version: int) -> dict[str, Any]:
        """Turn a value of an older version into one of this version, and check it.

        A value of this version or a newer one is returned unchanged, for `Schema.read`.
        """
        if from_version >= self.schema.version:
            return value
        versions = range(from_version, self.schema.version)
        missing = next((version for version in versions if version not in self._steps), None)
        if missing is not None:
            raise InvalidInput(f"{self.schema} has no step from version {missing} to {missing + 1}; register one")
        for version in versions:
            value = self._run(version, deepcopy(value))
        self.schema.check(value)
        return value

    def _run(self, version: int, value: dict[str, Any]) -> dict[str, Any]:
        try:
            made = self._steps[version](value)
        except Exception as error:
            raise InvalidInput(f"the step from version {version} of {self.schema} failed: {error!r}") from error
        if not isinstance(made, dict):
            raise InvalidInput(f"the step from version {version} of {self.schema} gave no dict")
        return made
