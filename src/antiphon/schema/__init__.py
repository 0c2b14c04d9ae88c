"""Schemas: typed items from dataclasses, pydantic models or JSON Schema; checked when written, read with tolerance.

definition   `Schema`, and `typed`, which gives a class its name and version
mapping      types of Python as JSON Schema; `form` is a type, `fields` are a class's
checker      a compiled schema; `vetting` what may be one, `stand_in` values for it, `explain` what it found
reader       objects from whatever is there; `build` makes them, `shape` says what a place is
plain        objects as plain values; `changes` between two of those
document     schemas as items; `canonical` is their text
migrations   from older versions to this one
"""

from antiphon.schema.changes import Changes
from antiphon.schema.definition import Schema, typed
from antiphon.schema.document import from_document, same, to_document
from antiphon.schema.errors import Problem, SchemaViolation
from antiphon.schema.migrations import Migrations
from antiphon.schema.reader import Read
from antiphon.schema.type_form import Counter, Keywords

__all__ = [
    "Changes",
    "Counter",
    "Keywords",
    "Migrations",
    "Problem",
    "Read",
    "Schema",
    "SchemaViolation",
    "from_document",
    "same",
    "to_document",
    "typed",
]
