"""The column `facts` of the table `items`: all that a query can ask of an item, in a form that Spark can filter by.

data        the facts as the item index stores them (`query.codec.facts`), without claims and without the value
value       the value as packed JSON; null if the column `state` gives exactly this value, or if there is none
claims      the parents that the item claimed, by ascending stamp
forked_to   the item that it was forked into
keys        by path: the sort key of the value there (`sort_key`), truncated if it is long; by name for the facts that
            are not part of the value, unless it is an empty list
members     by path: the sort keys of the elements of a list

The name of a path is its list of keys in JSON. Paths of one to four keys are stored; if the value itself is a list, its
elements are stored at `[]`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, BinaryType, LongType, MapType, StringType, StructField, StructType

from antiphon.model.value import Value
from antiphon.pipeline.tables.sort_key import key_of, truncate
from antiphon.query.codec.facts import encode_rest
from antiphon.query.facts import MISSING, Facts, finder
from antiphon.query.filters import Fact, Keys, Path
from antiphon.query.packed_json import pack

KEYS_MAX = 4  # keys of a path that is stored

#: Facts outside the value. Id and model have columns of their own; parents follow from the claims of all items.
_NAMED_FACTS = [(fact.value, finder(fact)) for fact in Fact if fact not in (Fact.ID, Fact.MODEL, Fact.PARENT)]
_LISTS = (list, tuple)
CLAIM = StructType(
    [
        StructField("lamport", LongType()),
        StructField("feed", BinaryType()),
        StructField("seq", LongType()),
        StructField("parent", BinaryType()),
    ]
)
KEYS = MapType(StringType(), BinaryType())
MEMBERS = MapType(StringType(), ArrayType(BinaryType()))
SCHEMA = StructType(
    [
        StructField("data", BinaryType()),
        StructField("value", StringType()),
        StructField("claims", ArrayType(CLAIM)),
        StructField("forked_to", BinaryType()),
        StructField("keys", KEYS),
        StructField("members", MEMBERS),
    ]
)

KeyList = list[tuple[str, bytes]]
Members = list[tuple[str, list[bytes]]]


class FactColumns(NamedTuple):
    """The fields of `facts` that depend on where forks lead."""

    data: bytes
    value: str | None
    keys: KeyList
    members: Members


@lru_cache(maxsize=1 << 14)
def name_of(path: Path) -> str:
    """Return the name of a path in `keys` and `members`."""
    return path.value if isinstance(path, Fact) else pack(list(path))


def fact_columns(facts: Facts, *, in_state: bool = False) -> FactColumns:
    """Return the fields for facts; without the value if the column `state` gives it (`in_state`)."""
    keys: KeyList = []
    members: Members = []
    for name, find in _NAMED_FACTS:
        value = find(facts)
        if value is MISSING or value == []:  # most lists are empty
            continue
        keys.append((name, truncate(key_of(value))))
        if isinstance(value, list):
            members.append((name, [truncate(key_of(element)) for element in value]))
    value = facts.value
    if isinstance(value, dict):
        for key, part in value.items():
            _inside((key,), part, keys, members)
    elif isinstance(value, _LISTS):
        members.append((name_of(()), [truncate(key_of(element)) for element in value]))
    return FactColumns(encode_rest(facts), None if in_state else pack(value), keys, members)


def facts_column(facts: Facts, in_state: bool) -> dict[str, Any]:
    """Return the value of the column; `in_state` if the column `state` gives the value exactly."""
    claims = [(at.lamport, at.feed, at.seq, parent) for at, parent in facts.claims]
    return {**fact_columns(facts, in_state=in_state)._asdict(), "claims": claims, "forked_to": facts.forked_to or None}


def _inside(path: Keys, value: Value, keys: KeyList, members: Members) -> None:
    """Add the keys and members of a value and of all values in it, up to `KEYS_MAX` keys deep."""
    name = name_of(path)
    keys.append((name, truncate(key_of(value))))
    if isinstance(value, dict):
        if len(path) < KEYS_MAX:
            for key, part in value.items():
                _inside((*path, key), part, keys, members)
    elif isinstance(value, _LISTS):
        members.append((name, [truncate(key_of(element)) for element in value]))
