"""The column `facts` of items: all that a query can ask of one, in its own words, and so that Spark can filter by it.

data        the facts as the item index keeps them (`query.codec.facts`), without claims, and without the value
value       the value, as packed text; null where `state` of the same row says it in JSON, or there is none
claims      to be under others, by ascending stamp
forked_to   what it was forked into
keys        by path: the sort key of what is there (`sort_key`), or its beginning; by name for what no value holds,
            unless it is an empty list
members     by path: those of the elements of a list

A path is its keys as a list in JSON; paths of one to four keys are kept, and of a value that is a list, its elements,
at `[]`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, BinaryType, LongType, MapType, StringType, StructField, StructType

from antiphon.model.value import Value
from antiphon.pipeline.tables.sort_key import kept, key_of
from antiphon.query.codec.facts import encode_rest
from antiphon.query.facts import MISSING, Facts, finder
from antiphon.query.filters import Fact, Keys, Path
from antiphon.query.packed_json import pack

KEYS_MAX = 4  # of a path that is kept

#: Facts that are no part of the value; but for id and model, which have columns, and the parent, which all items say.
_SAID = [(fact.value, finder(fact)) for fact in Fact if fact not in (Fact.ID, Fact.MODEL, Fact.PARENT)]
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

Kept = list[tuple[str, bytes]]
Members = list[tuple[str, list[bytes]]]


class Asked(NamedTuple):
    """What Spark can filter an item by."""

    data: bytes
    value: str | None
    keys: Kept
    members: Members


@lru_cache(maxsize=1 << 14)
def name_of(path: Path) -> str:
    """Under which name `keys` and `members` have a path."""
    return path.value if isinstance(path, Fact) else pack(list(path))


def asked_of(facts: Facts, *, told: bool = False) -> Asked:
    """What queries ask, of facts as they are; without the value where that is told elsewhere."""
    keys: Kept = []
    members: Members = []
    for name, find in _SAID:
        value = find(facts)
        if value is MISSING or value == []:  # most lists are empty
            continue
        keys.append((name, kept(key_of(value))))
        if isinstance(value, list):
            members.append((name, [kept(key_of(element)) for element in value]))
    value = facts.value
    if isinstance(value, dict):
        for key, part in value.items():
            _inside((key,), part, keys, members)
    elif isinstance(value, _LISTS):
        members.append((name_of(()), [kept(key_of(element)) for element in value]))
    return Asked(encode_rest(facts), None if told else pack(value), keys, members)


def facts_column(facts: Facts, told: bool) -> dict[str, Any]:
    """The value of the column; `told` if the state beside it is the value."""
    claims = [(at.lamport, at.feed, at.seq, parent) for at, parent in facts.claims]
    return {**asked_of(facts, told=told)._asdict(), "claims": claims, "forked_to": facts.forked_to or None}


def _inside(path: Keys, value: Value, keys: Kept, members: Members) -> None:
    """A value and all that is in it, as far as paths go."""
    name = name_of(path)
    keys.append((name, kept(key_of(value))))
    if isinstance(value, dict):
        if len(path) < KEYS_MAX:
            for key, part in value.items():
                _inside((*path, key), part, keys, members)
    elif isinstance(value, _LISTS):
        members.append((name, [kept(key_of(element)) for element in value]))
