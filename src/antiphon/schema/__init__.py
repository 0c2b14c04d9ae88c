"""Schemas: typed items from dataclasses, pydantic models or JSON Schema; checked when written, read with tolerance.

definition       `Schema`, and the decorator `typed`, which gives a class the name and version of its schema
type_form        `Form`: a Python type, analysed once; `Keywords` and `Counter`
fields           the fields of a dataclass or pydantic model
json_schema      Python types as JSON Schema
acceptance       which schemas may be used, and what checking with them costs
patterns         the cost of regular expressions in a schema
checker          `Checker`: a compiled schema that finds the problems of a value
stand_in         values as the validator gets them, which knows only JSON
explanations     the errors of the validator in plain words
reader           `Read`: tolerant reading of any value
builder          objects from plain values
plain_values     plain values from objects
shape            `Shape`: what a schema says of one place in a value
changes          `Changes`: the minimal difference of two values
unknown_fields   fields that a schema does not name, kept when an object is saved
document         schemas as items
canonical_json   the canonical text of a schema, and its digest
migrations       `Migrations`: steps from older versions of a schema
errors           `SchemaViolation` and `Problem`
limits           all limits of this package

In: classes of the application, schemas and values from peers. Out: checked values, objects and changes, to
`antiphon.api`. Imports `antiphon.core` and `antiphon.model`. Start reading at `definition`.
"""

from antiphon.schema.changes import Changes as Changes
from antiphon.schema.definition import Schema as Schema, typed as typed
from antiphon.schema.document import from_document as from_document, same as same, to_document as to_document
from antiphon.schema.errors import Problem as Problem, SchemaViolation as SchemaViolation
from antiphon.schema.migrations import Migrations as Migrations
from antiphon.schema.reader import Read as Read
from antiphon.schema.type_form import Counter as Counter, Keywords as Keywords
