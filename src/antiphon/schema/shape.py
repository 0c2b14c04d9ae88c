"""`Shape`: the part of a schema for one place in a value, as reading and writing need it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.schema.acceptance import KEYWORD, pointer_of
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.limits import SCHEMA_DEPTH_MAX

ANYTHING: JsonSchema = {}
#: Keywords that may allow further keys. With one of them, unknown keys cannot be determined.
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"})


class Shape:
    """A place in a schema, with references resolved, and `anyOf` if only one alternative accepts more than None."""

    __slots__ = ("_root", "node")

    def __init__(self, root: JsonSchema, node: Any = None) -> None:
        self._root = root
        self.node = self._resolved(root if node is None else node)

    def _resolved(self, node: Any) -> JsonSchema:
        for _ in range(SCHEMA_DEPTH_MAX):  # references may be cyclic
            if not isinstance(node, dict):
                return ANYTHING
            if "$ref" in node:
                if "properties" in node or not _COMPOSED.isdisjoint(node):
                    return ANYTHING
                node = self._target(node["$ref"])
                continue
            options = [option for option in node.get("anyOf") or node.get("oneOf") or () if not _is_null(option)]
            if len(options) != 1 or "properties" in node:
                return node
            node = options[0]
        return ANYTHING

    def _target(self, reference: str) -> Any:
        node: Any = self._root
        for token in pointer_of(reference):
            node = node[int(token)] if isinstance(node, list) else node[token]
        return node

    @property
    def role(self) -> str:
        """`set` or `counter`, or empty."""
        return str(self.node.get(KEYWORD, ""))

    @property
    def properties(self) -> dict[str, Any]:
        """The schemas of the named fields."""
        return self.node.get("properties", {})  # type: ignore[no-any-return]  # vetted

    @property
    def required(self) -> Iterable[str]:
        """The names of the required fields."""
        return self.node.get("required", ())  # type: ignore[no-any-return]  # vetted

    def is_extra(self, key: str) -> bool:
        """True if the schema does not know a key: of a newer version, or of another program."""
        if not self.properties or isinstance(self.node.get("additionalProperties"), dict):
            return False
        if not _COMPOSED.isdisjoint(self.node):
            return False
        return key not in self.properties

    def inside(self, key: str) -> Shape:
        """The shape of the value at a key."""
        further = self.node.get("additionalProperties", ANYTHING)
        return Shape(self._root, self.properties.get(key, further if isinstance(further, dict) else ANYTHING))

    @property
    def element(self) -> Shape:
        """The shape of the elements of a list."""
        return Shape(self._root, self.node.get("items", ANYTHING))


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"
