"""Which schemas may be used. Schemas come from peers: none may refer outside itself, or cost without bound.

JSON Schema of draft 2020-12, with references only to places inside (`#`, `#/$defs/…`), and without the keywords whose
cost or meaning depends on more than that (`$id` inside, anchors, dynamic references, `unevaluated…`).

The cost of checking is bounded beforehand, since a running validator cannot be stopped. A recursive reference that goes
into a value costs one visit for each place of the value. Other references cost one visit for each time they are named:
a chain of 40 definitions that each name the next one twice would take days.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.limits import DEFINITIONS_MAX, WEIGHT_MAX

DRAFT = "https://json-schema.org/draft/2020-12/schema"
KEYWORD = "x-antiphon"
#: Kinds of values that JSON lacks; a schema that names one accepts nothing else.
EXTRAS = frozenset({"bytes", "datetime", "reference"})
#: Arrays that are sets, and integers that are counters. They differ in how they are written, not in their values.
ROLES = {"set": "array", "counter": "integer"}

_ONE = frozenset({"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_REFUSED = frozenset(
    {"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "$vocabulary", "dependencies"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)

_DEFINITIONS = frozenset({"$defs", "definitions"})
#: Keywords whose schemas apply to the same place of a value as the schema around them.
_HERE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})

Way = tuple[str, ...]  # the tokens of a JSON pointer


class _Reference(NamedTuple):
    way: Way
    start: int  # the length of the way to the definition around it: schemas in `$defs` count where they are named
    place: int  # the length of the way to the outermost schema for the same place of a value
    target: Way


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a schema at one place of a value; and, for explanations, the log of the factor of each level."""

    weight: int
    level_log: float


def parts(node: JsonSchema) -> Iterator[tuple[Way, Any]]:
    """The schemas directly inside one, with the way to each."""
    for word, inside in node.items():
        if word in _ONE:
            yield (word,), inside
        elif word in _MANY and isinstance(inside, list):
            for number, part in enumerate(inside):
                yield (word, str(number)), part
        elif word in _NAMED and isinstance(inside, dict):
            for name, part in inside.items():
                yield (word, name), part


def vet(root: JsonSchema) -> Cost:
    """Return the cost of checking, or raise `InvalidInput` if a schema, of bounded size and depth, is not allowed."""
    places: dict[Way, Any] = {}
    references: list[_Reference] = []
    waiting: list[tuple[Way, int, int, Any]] = [((), 0, 0, root)]
    while waiting:
        way, start, place, node = waiting.pop()
        places[way] = node
        if not isinstance(node, dict):
            continue
        _check_words(node, way)
        if "$ref" in node:
            references.append(_Reference(way, start, place, _target(node["$ref"], way)))
        for step, part in parts(node):
            inside, word = (*way, *step), step[0]
            begins = len(inside) if word in _DEFINITIONS else start
            waiting.append((inside, begins, place if word in _HERE else len(inside), part))
    for reference in references:
        if reference.target not in places:
            raise InvalidInput(f"{_at(reference.way)} of a schema refers to {_at(reference.target)}, which is none")
    return _Weigher(places, references).cost()


def _check_words(node: JsonSchema, way: Way) -> None:
    refused = sorted(_REFUSED & node.keys())
    if refused or (way and "$id" in node):
        raise InvalidInput(f"{_at(way)} of a schema has the word {refused[0] if refused else '$id'}, not used here")
    if str(node.get("$schema", DRAFT)).rstrip("#") != DRAFT:
        raise InvalidInput(f"a schema of {node['$schema']!r}; schemas here are of {DRAFT}")
    if KEYWORD not in node:
        return
    kind = node[KEYWORD]
    if not isinstance(kind, str) or kind not in EXTRAS | ROLES.keys():
        raise InvalidInput(f"{_at(way)} of a schema has the kind {kind!r}, which this version does not know")
    if kind in ROLES and node.get("type") != ROLES[kind]:
        raise InvalidInput(f"{_at(way)} of a schema is a {kind}, so its type must be {ROLES[kind]}")


def _target(reference: Any, way: Way) -> Way:
    if reference == "#" or (isinstance(reference, str) and reference.startswith("#/")):
        return pointer_of(reference)
    raise InvalidInput(f"{_at(way)} of a schema refers to {reference!r}; references lead to places inside: #/$defs/…")


def pointer_of(reference: str) -> Way:
    """The way that a reference inside a schema leads to."""
    tokens = unquote(reference).split("/")[1:]
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def _at(way: Way) -> str:
    return "#/" + "/".join(way) if way else "the root"


class _Weigher:
    """Computes the cost of definitions: the root, and each target of a reference."""

    def __init__(self, places: dict[Way, Any], references: list[_Reference]) -> None:
        targets = {reference.target for reference in references} | {()}
        if len(targets) > DEFINITIONS_MAX:
            raise TooLarge(f"a schema with {len(targets)} definitions; it has at most {DEFINITIONS_MAX}")
        self._own = {target: _own(places[target]) for target in targets}
        self._here: dict[Way, Counter[Way]] = {target: Counter() for target in targets}
        self._deeper: dict[Way, Counter[Way]] = {target: Counter() for target in targets}
        for way, start, place, target in references:
            for size in range(start, len(way) + 1):
                if way[:size] in targets:
                    (self._here if size >= place else self._deeper)[way[:size]][target] += 1
        self._named = {target: self._here[target] + self._deeper[target] for target in targets}
        self._reach = {target: _reached(target, self._named) for target in targets}
        self._weights: dict[Way, int] = {}

    def cost(self) -> Cost:
        for name in self._here:
            if name in _reached(name, self._here):
                raise InvalidInput(f"{_at(name)} of a schema leads back to itself without going into the value")
        recursive = [target for target, reach in self._reach.items() if target in reach]
        weight = sum(map(self._weight, {(), *recursive}))
        if weight > WEIGHT_MAX:
            raise TooLarge(f"a schema that looks at each place of a value {weight} times; at most {WEIGHT_MAX}")
        # On one level of a value, a path of references visits each definition at most once.
        turns = [sum(self._turns(name)) for name in recursive]
        return Cost(weight, math.log(math.prod(turns)))

    def _turns(self, name: Way) -> Iterator[int]:
        """How often a definition names others that lead back to it."""
        return (count for target, count in self._named[name].items() if name in self._reach[target])

    def _weight(self, name: Way) -> int:
        if name not in self._weights:
            weight = self._own[name]
            weight += sum(count * self._weight(target) for target, count in self._here[name].items())
            for target, count in self._deeper[name].items():
                weight += count * (1 if name in self._reach[target] else self._weight(target))
            self._weights[name] = min(weight, WEIGHT_MAX + 1)
        return self._weights[name]


def _reached(start: Way, named: dict[Way, Counter[Way]]) -> set[Way]:
    reached: set[Way] = set()
    waiting = [start]
    while waiting:
        found = named[waiting.pop()].keys() - reached
        reached |= found
        waiting += found
    return reached


def _own(node: Any) -> int:
    if not isinstance(node, dict):
        return 1
    return _count({word: inside for word, inside in node.items() if word not in _DEFINITIONS})


def _count(value: Any) -> int:
    """The number of JSON values in a value; long text counts several times."""
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    return 1 + len(value) // 64 if isinstance(value, str) else 1
