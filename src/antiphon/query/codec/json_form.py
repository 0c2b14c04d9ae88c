"""Queries as plain JSON, for configuration, logs and the command line.

>>> from antiphon.query.filters import Fact, prop
>>> to_json(Query(Fact.TYPE.is_("task")).order_by("due").take(3))
{'where': {'compare': {'path': {'fact': 'type'}, 'op': '=', 'value': 'task'}}, 'order': [{'path': ['due']}], 'limit': 3}
>>> from_json({"where": {"has": ["due"]}, "steps": [{"way": "children"}]}) == Query(prop("due").exists()).children()
True
>>> from_json({"where": {"all": [{"has": ["due"]}, {"hass": ["due"]}]}})
Traceback (most recent call last):
antiphon.core.errors.InvalidInput: where.all[1]: 'hass' is none of all, any, not, compare, has, contains, match

A path is a list of keys, or {"fact": name}. Values are those of JSON; others are {"$bytes": hex}, {"$time": ISO 8601},
{"$reference": hex}, {"$real": "nan", "inf" or "-inf"}, and {"$map": …} for every map.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any as AnyValue, TypeVar

from antiphon.core.errors import InvalidInput
from antiphon.model.value import Reference, Value, read_value, to_proto
from antiphon.query.filters import EVERYTHING, All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Path
from antiphon.query.query import Aggregate, Deleted, OrderBy, Query, Step, Way
from antiphon.query.validate import DEPTH_MAX, VALUE_DEPTH_MAX, check

Json = dict[str, AnyValue]
_Enum = TypeVar("_Enum", bound=enum.Enum)


# -- writing


def to_json(query: Query) -> Json:
    """The JSON form of a query, without defaults; `from_json` reads it back."""
    check(query)
    found: Json = {}
    if query.where != EVERYTHING:
        found["where"] = _filter(query.where)
    if query.steps:
        found["steps"] = [_step(step) for step in query.steps]
    if query.order:
        found["order"] = [{"path": _path(order.path)} | _if(descending=order.descending) for order in query.order]
    if query.limit is not None:
        found["limit"] = query.limit
    aggregate = query.aggregate
    if aggregate is not None:
        path = {} if aggregate.function == "count" else {"path": _path(aggregate.path)}
        group = {} if aggregate.group is None else {"group": _path(aggregate.group)}
        found["aggregate"] = {"function": aggregate.function, **path, **group}
    if query.deleted is not Deleted.HIDDEN:
        found["deleted"] = query.deleted.value
    return found


def _if(**fields: bool) -> Json:
    return {name: value for name, value in fields.items() if value}


def _step(step: Step) -> Json:
    return {"way": step.way.value} | ({} if step.where == EVERYTHING else {"where": _filter(step.where)})


def _path(path: Path) -> AnyValue:
    return {"fact": path.value} if isinstance(path, Fact) else list(path)


def _filter(where: Filter) -> Json:
    if isinstance(where, All):
        return {"all": [_filter(part) for part in where.parts]}
    if isinstance(where, Any):
        return {"any": [_filter(part) for part in where.parts]}
    if isinstance(where, Not):
        return {"not": _filter(where.part)}
    if isinstance(where, Compare):
        return {"compare": {"path": _path(where.path), "op": where.op, "value": _value(where.value)}}
    if isinstance(where, Has):
        return {"has": _path(where.path)}
    if isinstance(where, Contains):
        return {"contains": {"path": _path(where.path), "value": _value(where.value)}}
    assert isinstance(where, Match)
    return {"match": where.text}


def _value(value: Value) -> AnyValue:
    return plain(read_value(to_proto(value)))  # an item id becomes a reference, a tuple a list


def plain(value: Value) -> AnyValue:
    """The JSON form of a value."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, datetime):
        return {"$time": value.astimezone(UTC).isoformat()}
    if isinstance(value, Reference):
        return {"$reference": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"$real": str(value)}
    if isinstance(value, dict):
        return {"$map": {key: plain(part) for key, part in value.items()}}
    return [plain(part) for part in value] if isinstance(value, list) else value


# -- reading


def from_json(data: object) -> Query:
    """Read a query, or raise `InvalidInput`, which names the place of the error."""
    found = _fields(data, "the query", {}, {"where", "steps", "order", "limit", "aggregate", "deleted"})
    query = Query(
        where=_read_filter(found.get("where", {"all": []}), "where", 1),
        steps=tuple(_read_each(_read_step, found.get("steps", []), "steps")),
        order=tuple(_read_each(_read_order, found.get("order", []), "order")),
        limit=found.get("limit"),
        aggregate=_read_aggregate(found["aggregate"], "aggregate") if "aggregate" in found else None,
        deleted=_one_of(Deleted, found.get("deleted", "hidden"), "deleted"),
    )
    check(query)
    return query


def _fields(data: object, place: str, needed: AnyValue, allowed: AnyValue) -> Json:
    """The fields of an object, which has all needed fields and no unknown ones."""
    if not isinstance(data, dict):
        raise InvalidInput(f"{place}: an object is wanted, not {_short(data)}")
    for name in needed:
        if name not in data:
            raise InvalidInput(f"{place}: {name!r} is missing")
    for name in data:
        if name not in needed and name not in allowed:
            raise InvalidInput(f"{place}: there is no {name!r}; there are {', '.join(sorted({*needed, *allowed}))}")
    return data


def _short(data: object) -> str:
    return repr(data)[:60]


_T = TypeVar("_T")


def _read_each(read: Callable[[object, str], _T], data: object, place: str) -> list[_T]:
    if not isinstance(data, list):
        raise InvalidInput(f"{place}: a list is wanted, not {_short(data)}")
    return [read(part, f"{place}[{at}]") for at, part in enumerate(data)]


def _one_of(kind: type[_Enum], data: object, place: str) -> _Enum:
    try:
        return kind(data)
    except ValueError:
        names = ", ".join(each.value for each in kind)
        raise InvalidInput(f"{place}: {_short(data)} is none of {names}") from None


def _read_step(data: object, place: str) -> Step:
    found = _fields(data, place, {"way"}, {"where"})
    where = _read_filter(found.get("where", {"all": []}), f"{place}.where", 1)
    return Step(_one_of(Way, found["way"], f"{place}.way"), where)


def _read_order(data: object, place: str) -> OrderBy:
    found = _fields(data, place, {"path"}, {"descending"})
    descending = found.get("descending", False)
    if not isinstance(descending, bool):
        raise InvalidInput(f"{place}.descending: true or false is wanted, not {_short(descending)}")
    return OrderBy(_read_path(found["path"], f"{place}.path"), descending)


def _read_aggregate(data: object, place: str) -> Aggregate:
    found = _fields(data, place, {"function"}, {"path", "group"})
    path = _read_path(found.get("path", []), f"{place}.path")
    return Aggregate(
        found["function"], path, _read_path(found["group"], f"{place}.group") if "group" in found else None
    )


def _read_path(data: object, place: str) -> Path:
    if isinstance(data, list) and all(isinstance(key, str) for key in data):
        return tuple(data)
    if isinstance(data, dict) and set(data) == {"fact"}:
        return _one_of(Fact, data["fact"], f"{place}.fact")
    raise InvalidInput(f'{place}: a path is a list of keys, or {{"fact": name}}; not {_short(data)}')


_KINDS = ("all", "any", "not", "compare", "has", "contains", "match")


def _read_filter(data: object, place: str, depth: int) -> Filter:
    if depth > DEPTH_MAX:
        raise InvalidInput(f"{place}: filters nested more than {DEPTH_MAX} deep")
    if not isinstance(data, dict) or len(data) != 1:
        raise InvalidInput(f"{place}: a filter is an object with one field, not {_short(data)}")
    ((kind, inner),) = data.items()
    if kind not in _KINDS:
        raise InvalidInput(f"{place}: {_short(kind)} is none of {', '.join(_KINDS)}")
    place = f"{place}.{kind}"
    if kind in ("all", "any"):
        parts = tuple(_read_each(lambda part, at: _read_filter(part, at, depth + 1), inner, place))
        return All(parts) if kind == "all" else Any(parts)
    if kind == "not":
        return Not(_read_filter(inner, place, depth + 1))
    if kind == "has":
        return Has(_read_path(inner, place))
    if kind == "match":
        return Match(inner)
    found = _fields(inner, place, {"path", "value"} | ({"op"} if kind == "compare" else set()), ())
    path, value = _read_path(found["path"], f"{place}.path"), _read_value(found["value"], f"{place}.value", 0)
    return Compare(path, found["op"], value) if kind == "compare" else Contains(path, value)


def _read_value(data: object, place: str, depth: int) -> Value:
    if depth > VALUE_DEPTH_MAX:
        raise InvalidInput(f"{place}: a value nested more than {VALUE_DEPTH_MAX} deep")
    if isinstance(data, list):
        return _read_each(lambda part, at: _read_value(part, at, depth + 1), data, place)
    if not isinstance(data, dict):
        return data
    ((tag, inner),) = data.items() if len(data) == 1 else (("", None),)
    if tag == "$map" and isinstance(inner, dict):
        return {key: _read_value(part, f"{place}.{key}", depth + 1) for key, part in inner.items()}
    if tag not in _READ or not isinstance(inner, str):
        raise InvalidInput(f'{place}: a map is written {{"$map": …}}; {_short(data)} is no value')
    try:
        return _READ[tag](inner)
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"{place}: {_short(inner)} is no {tag[1:]}: {error}") from None


def _read_reference(text: str) -> Reference:
    party, _, item = text.rpartition("/")
    return Reference(bytes.fromhex(item), bytes.fromhex(party))


_READ: dict[AnyValue, Callable[[str], Value]] = {
    "$bytes": bytes.fromhex,
    "$time": datetime.fromisoformat,
    "$reference": _read_reference,
    "$real": {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.__getitem__,
}
