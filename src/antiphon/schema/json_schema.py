"""Python types as JSON Schema, with the keyword `x-antiphon` for kinds of values that JSON lacks.

| Python | JSON Schema |
|---|---|
| `str`, `int`, `float`, `bool`, `None` | `string`, `integer`, `number`, `boolean`, `null` |
| `bytes`, `datetime`, `Reference` | `{"x-antiphon": "bytes"}` and so on |
| `list[T]`, `tuple[T, ...]`, `dict[str, T]` | `array`, `object` |
| `set[T]`, `frozenset[T]`, `Counter` | an `array` or `integer` with its role in `x-antiphon` |
| `A | B`, `Literal`, an `Enum` | `anyOf`, `enum` |
| a dataclass or a pydantic model | an `object` in `$defs` |

>>> from dataclasses import dataclass
>>> @dataclass
... class Task:
...     title: str
...     done: bool = False
...     raw: bytes | None = None
>>> json_schema_of(Task)["properties"]["raw"]
{'anyOf': [{'x-antiphon': 'bytes'}, {'type': 'null'}], 'default': None}
"""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Any

from antiphon.model.value import Reference
from antiphon.schema.acceptance import DRAFT, KEYWORD
from antiphon.schema.canonical_json import JsonSchema
from antiphon.schema.fields import MISSING, Field, fields_of
from antiphon.schema.type_form import Form, Kind

_SCALARS: dict[type, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {KEYWORD: "bytes"},
    datetime: {KEYWORD: "datetime"},
    Reference: {KEYWORD: "reference"},
}


def json_schema_of(cls: type) -> JsonSchema:
    """Return the JSON Schema of a class, or raise `InvalidInput` that names the unsupported field."""
    return Mapper(cls).root()


class Mapper:
    """Maps one class, and the classes of its fields."""

    def __init__(self, cls: type) -> None:
        self._root = cls
        self._names: dict[type, str] = {}
        self._definitions: dict[str, JsonSchema] = {}

    def root(self) -> JsonSchema:
        """The schema of the class, with its definitions."""
        made = {"$schema": DRAFT, **self._record(self._root)}
        return {**made, "$defs": self._definitions} if self._definitions else made

    def _record(self, cls: type) -> JsonSchema:
        fields = fields_of(cls)
        made = {"type": "object", "properties": {field.name: self._field(field) for field in fields}}
        required = [field.name for field in fields if field.required]
        return {**made, "required": required} if required else made

    def _field(self, field: Field) -> JsonSchema:
        made, default = self.of(field.form), _default(field)
        return made if default is MISSING else {**made, "default": default}

    def of(self, form: Form) -> JsonSchema:
        """The schema of a form."""
        made = self._bare(form)
        for keywords in form.words:
            made |= keywords.words
        return made

    def _bare(self, form: Form) -> JsonSchema:
        if form.kind is Kind.SCALAR:
            return dict(_SCALARS[form.python])
        if form.kind in (Kind.LITERAL, Kind.ENUM):
            return {"enum": list(form.options)}
        if form.kind is Kind.RECORD:
            return self._reference(form.python)
        if form.kind is Kind.ANY:
            return {}
        inside = [self.of(part) for part in form.parts]
        if form.kind is Kind.UNION:
            return {"anyOf": inside}
        if form.kind is Kind.MAP:
            return {"type": "object", "additionalProperties": inside[0]}
        role = {"uniqueItems": True, KEYWORD: "set"} if form.python in (set, frozenset) else {}
        return {"type": "array", "items": inside[0], **role}

    def _reference(self, cls: type) -> JsonSchema:
        if cls is self._root:
            return {"$ref": "#"}
        if cls not in self._names:
            name, number = cls.__name__, 2
            while name in self._definitions:  # another class of the same name
                name, number = f"{cls.__name__}{number}", number + 1
            self._names[cls] = name
            self._definitions[name] = {}  # a placeholder: a class may have fields of its own type
            self._definitions[name] = self._record(cls)
        return {"$ref": f"#/$defs/{self._names[cls]}"}


def _default(field: Field) -> Any:
    """A default that JSON can express. Other factories are not called, since their results may differ each time."""
    if field.factory in (list, set, frozenset):
        return []
    if field.factory is dict:
        return {}
    default = field.default.value if isinstance(field.default, enum.Enum) else field.default
    return default if default is None or type(default) in (str, int, float, bool) else MISSING
