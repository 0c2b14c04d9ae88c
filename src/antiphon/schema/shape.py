"""`Shape`: what a schema says of one place in a value, as far as reading and writing must know it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.schema.acceptance import KEYWORD, pointer_of
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.limits import SCHEMA_DEPTH_MAX

ANYTHING: JsonSchema = {}
#: Words that may speak of further keys. Where one is, we do not know which keys a schema does not speak of.
_COMPOSED = frozenset({"allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"})


class Shape:
    """A place in a schema: behind references, and behind `anyOf` where only one of its schemas takes more than None."""

    __slots__ = ("_root", "node")

    def __init__(self, root: JsonSchema, node: Any = None) -> None:
        self._root = root
        self.node = self._resolved(root if node is None else node)

    def _resolved(self, node: Any) -> JsonSchema:
        for _ in range(SCHEMA_DEPTH_MAX):  # references may lead in circles
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
        """`set` or `counter`, or nothing."""
        return str(self.node.get(KEYWORD, ""))

    @property
    def properties(self) -> dict[str, Any]:
        return self.node.get("properties", {})  # type: ignore[no-any-return]  # vetted

    @property
    def required(self) -> Iterable[str]:
        return self.node.get("required", ())  # type: ignore[no-any-return]  # vetted

    def is_extra(self, key: str) -> bool:
        """Whether a key is one that the schema does not speak of: a newer version's, or a stranger's."""
        if not self.properties or isinstance(self.node.get("additionalProperties"), dict):
            return False
        if not _COMPOSED.isdisjoint(self.node):
            return False
        return key not in self.properties

    def inside(self, key: str) -> Shape:
        further = self.node.get("additionalProperties", ANYTHING)
        return Shape(self._root, self.properties.get(key, further if isinstance(further, dict) else ANYTHING))

    @property
    def element(self) -> Shape:
        """What is said of the elements of a list."""
        return Shape(self._root, self.node.get("items", ANYTHING))


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"
