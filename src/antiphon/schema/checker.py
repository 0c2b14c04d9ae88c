"""`Checker`: a compiled schema that finds the problems of a value. Compiled once and cached."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Value
from antiphon.schema.acceptance import KEYWORD, vet
from antiphon.schema.canonical_json import JsonSchema, read_text
from antiphon.schema.errors import Problem
from antiphon.schema.explanations import explain
from antiphon.schema.limits import CHECKERS_MAX, EXPLAIN_WORK_MAX, VALUE_SIZE_MAX, WORK_MAX
from antiphon.schema.patterns import size_each
from antiphon.schema.stand_in import TAG, Extra, StandIn, for_stand_ins, no_values

# Keywords that apply to each field separately.
_BY_FIELD = ("properties", "patternProperties", "additionalProperties", "$defs", "definitions")


class Checker:
    """A compiled schema. Make it with `checker_of`."""

    __slots__ = ("_cost", "_made", "_patterns", "_validator", "root")

    def __init__(self, text: str) -> None:
        self.root = read_text(text)
        self._cost = vet(self.root)
        self._made = for_stand_ins(self.root)
        # The engine without backtracking: a pattern from a peer must not hang us.
        self._patterns = jsonschema_rs.RegexOptions(size_limit=size_each(self.root))
        try:
            self._validator = self._compile(self._made)
        except jsonschema_rs.ValidationError as error:
            where = "/".join(map(str, error.instance_path))
            raise InvalidInput(f"no schema of JSON Schema's: at #/{where}: {error.message}") from None

    def problems(self, value: Value, count: int) -> list[Problem]:
        """The problems of a value, at most `count`; an empty list if it fits."""
        stand_in = StandIn()
        made = stand_in.of(value)
        work = stand_in.size * self._cost.weight
        if stand_in.size > VALUE_SIZE_MAX or work > WORK_MAX:
            return [Problem((), f"too large to be checked against this schema: {stand_in.size} values in it")]
        found = list(islice(no_values(value), count)) if stand_in.bad else []
        if self._validator.is_valid(made):
            return found
        # Unlike the verdict, explanations multiply in cost with each level of a value in a recursive schema.
        if math.log(work) + (stand_in.depth + 1) * self._cost.level_log > math.log(EXPLAIN_WORK_MAX):
            reasons = self._by_field(made)
        else:
            reasons = explain(self._validator.iter_errors(made), value)
        told = {problem.path for problem in found}
        further = (problem for problem in reasons if problem.path not in told)
        return [*found, *islice(further, count - len(found))] or [Problem((), "does not fit")]

    def _by_field(self, made: Any) -> Iterator[Problem]:
        """The fields with problems, for a value that is too large or too deep to explain in full."""
        fields = made if isinstance(made, dict) and TAG not in made else {}
        validator = self._compile({word: self._made[word] for word in _BY_FIELD if word in self._made})
        wrong = [key for key, part in fields.items() if not validator.is_valid({key: part})]
        missing = [key for key in self.root.get("required", ()) if key not in fields]
        yield from (Problem((key,), "does not fit, and is too large or too deep to say where") for key in wrong)
        yield from (Problem((key,), "is missing") for key in missing)
        if not wrong and not missing:
            yield Problem((), "does not fit, and is too large or too deep to say where")

    def _compile(self, schema: JsonSchema) -> jsonschema_rs.Validator:
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=self._patterns, keywords={KEYWORD: Extra}, offline=True
        )


@lru_cache(maxsize=CHECKERS_MAX)
def checker_of(text: str) -> Checker:
    """Return the checker of a canonical text, or raise `InvalidInput` if the schema may not be used."""
    return Checker(text)
