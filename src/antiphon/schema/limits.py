"""All limits of this package. Schemas come from peers too, so everything is bounded."""

from __future__ import annotations

NAME_LENGTH_MAX = 128
VERSION_MAX = 2**31 - 1
SCHEMA_SIZE_MAX = 64 * 1024  # of the canonical JSON, in bytes
SCHEMA_DEPTH_MAX = 64
DEFINITIONS_MAX = 256  # places in a schema that a `$ref` leads to
#: The cost at one place of a value: the JSON values in a schema, those behind a `$ref` once for each `$ref`.
WEIGHT_MAX = 1 << 16
#: Weight times the size of a value. Measured: about a second at worst.
WORK_MAX = 1 << 24
#: The same for explanations, which cost far more than the verdict.
EXPLAIN_WORK_MAX = 1 << 16
INT_BITS_MAX = 128  # values have 64, but a counter may reach more
VALUE_SIZE_MAX = 1 << 20  # values in a value
PATTERN_SIZE_MAX = 1 << 18  # of a compiled regular expression
PATTERNS_SIZE_MAX = 1 << 25  # of all of a schema together, divided equally. Measured: under a second
PATTERNS_LENGTH_MAX = 8192  # of the texts of all of them
#: The weight of the text of a pattern that ignores case: folding a class of all characters takes milliseconds.
PATTERN_FOLDED = 16
VALUE_DEPTH_MAX = 64  # a path has at most 32 segments, and the value at its end nests at most 32 deep

PROBLEMS_MAX = 10  # in an error
READ_PROBLEMS_MAX = 100  # for a reader
READ_ROUNDS_MAX = 8  # of removing parts that do not fit

CHECKERS_MAX = 128  # compiled schemas in the cache
