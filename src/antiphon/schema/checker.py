"""`Checker`: a compiled schema, that says what is wrong with a value. Compiled once, and kept for the next time."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import islice

import jsonschema_rs

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Value
from antiphon.schema.canonical import read_text
from antiphon.schema.errors import Problem
from antiphon.schema.explain import explain
from antiphon.schema.limits import CHECKERS_MAX, PATTERN_SIZE_MAX, VALUE_SIZE_MAX, WORK_MAX
from antiphon.schema.standin import Extra, StandIn, for_stand_ins, no_values
from antiphon.schema.vetting import KEYWORD, vet

# The engine without backtracking: a pattern from a peer must not hang us.
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=PATTERN_SIZE_MAX)


class Checker:
    """A compiled schema. Make it with `checker_of`."""

    __slots__ = ("_cost", "_validator", "root")

    def __init__(self, text: str) -> None:
        self.root = read_text(text)
        self._cost = vet(self.root)
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                for_stand_ins(self.root), pattern_options=_PATTERNS, keywords={KEYWORD: Extra}, offline=True
            )
        except jsonschema_rs.ValidationError as error:
            where = "/".join(map(str, error.instance_path))
            raise InvalidInput(f"no schema of JSON Schema's: at #/{where}: {error.message}") from None

    def problems(self, value: Value, count: int) -> list[Problem]:
        """What is wrong with a value, at most `count` of it; nothing if it fits."""
        stand_in = StandIn()
        made = stand_in.of(value)
        work = stand_in.size * self._cost.weight
        if stand_in.size > VALUE_SIZE_MAX or work > WORK_MAX:
            return [Problem((), f"too large to be checked against this schema: {stand_in.size} values in it")]
        found = list(islice(no_values(value), count)) if stand_in.bad else []
        if self._validator.is_valid(made):
            return found
        # Unlike the verdict, the reasons cost more with each level of a value in a recursive schema.
        if math.log(work) + (stand_in.depth + 1) * self._cost.level_log > math.log(WORK_MAX):
            return [Problem((), "does not fit, and is nested too deep in a recursive schema to say where")]
        told = {problem.path for problem in found}
        further = (each for each in explain(self._validator.iter_errors(made), value) if each.path not in told)
        return [*found, *islice(further, count - len(found))] or [Problem((), "does not fit")]


@lru_cache(maxsize=CHECKERS_MAX)
def checker_of(text: str) -> Checker:
    """The checker of a canonical text; `InvalidInput` if it is no schema that may be used."""
    return Checker(text)
