"""The limits of schemas, which come from peers as well: all of this package's in one place."""

from __future__ import annotations

NAME_LENGTH_MAX = 128
VERSION_MAX = 2**31 - 1
SCHEMA_SIZE_MAX = 64 * 1024  # of the canonical JSON, in bytes
SCHEMA_DEPTH_MAX = 64
DEFINITIONS_MAX = 256  # places in a schema that a `$ref` leads to
#: How much one place of a value may cost: the JSON values in a schema, those behind a `$ref` once for each `$ref`.
WEIGHT_MAX = 1 << 16
#: Weight times the size of a value. Measured: about a second at worst.
WORK_MAX = 1 << 24
#: The same for saying what is wrong, which costs far more than finding that something is.
EXPLAIN_WORK_MAX = 1 << 16
INT_BITS_MAX = 128  # values have 64, but a counter may come to more
VALUE_SIZE_MAX = 1 << 20  # values in a value
PATTERN_SIZE_MAX = 1 << 18  # of a regular expression once it is compiled
PATTERNS_SIZE_MAX = 1 << 25  # of all of a schema's together: each may have its share. Measured: under a second
PATTERNS_LENGTH_MAX = 8192  # of the texts of all of them
#: How often the text of one counts that ignores case: a class of all characters takes milliseconds to fold then.
PATTERN_FOLDED = 16
VALUE_DEPTH_MAX = 64  # a path has at most 32 segments, and what is at its end nests at most 32 deep

PROBLEMS_MAX = 10  # that an error tells
READ_PROBLEMS_MAX = 100  # that a reader is told
READ_ROUNDS_MAX = 8  # of leaving out what does not fit

CHECKERS_MAX = 128  # compiled schemas that are kept
