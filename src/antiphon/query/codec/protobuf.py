"""Queries as protobuf (`antiphon.v1.Query`), for other peers. A query has one encoding, so its bytes identify it.

>>> from antiphon.query.filters import Fact, prop
>>> query = Query(Fact.TYPE.is_("task") & prop("done").is_(False)).order_by("priority").take(10)
>>> decode(encode(query)) == query
True

Python equality would not identify a query: there 1, 1.0 and True are equal.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.v1 import query_pb2 as pb
from antiphon.model.value import read_value, to_proto
from antiphon.query.filters import All, Any, Compare, Contains, Fact, Filter, Has, Match, Not, Op, Path
from antiphon.query.query import Aggregate, Deleted, Function, OrderBy, Query, Step, Way
from antiphon.query.validate import DEPTH_MAX, check

SIZE_MAX = 1 << 16

_OPS: dict[Op, pb.QueryOp] = {
    "=": pb.QUERY_OP_EQUAL,
    "<": pb.QUERY_OP_LESS,
    "<=": pb.QUERY_OP_LESS_EQUAL,
    ">": pb.QUERY_OP_GREATER,
    ">=": pb.QUERY_OP_GREATER_EQUAL,
}
_FUNCTIONS: dict[Function, pb.QueryFunction] = {
    "count": pb.QUERY_FUNCTION_COUNT,
    "sum": pb.QUERY_FUNCTION_SUM,
    "mean": pb.QUERY_FUNCTION_MEAN,
    "min": pb.QUERY_FUNCTION_MIN,
    "max": pb.QUERY_FUNCTION_MAX,
}
_FACTS = {fact: f"QUERY_FACT_{fact.name}" for fact in Fact}
_WAYS = {way: f"QUERY_WAY_{way.name}" for way in Way}
_DELETED = {deleted: f"QUERY_DELETED_{deleted.name}" for deleted in Deleted}
_READ_OPS: dict[int, Op] = {number: op for op, number in _OPS.items()}
_READ_FUNCTIONS: dict[int, Function] = {number: function for function, number in _FUNCTIONS.items()}
_READ_FACTS: dict[int, Fact] = {pb.QueryFact.Value(name): fact for fact, name in _FACTS.items()}
_READ_WAYS: dict[int, Way] = {pb.QueryWay.Value(name): way for way, name in _WAYS.items()}
_READ_DELETED: dict[int, Deleted] = {pb.QueryDeleted.Value(name): deleted for deleted, name in _DELETED.items()}


# -- writing


def encode(query: Query) -> bytes:
    """Encode a query, or raise `InvalidInput` if it cannot run."""
    check(query)
    proto = pb.Query(where=_filter(query.where), limit=query.limit, deleted=_DELETED[query.deleted])
    for step in query.steps:
        proto.steps.add(way=_WAYS[step.way], where=_filter(step.where))
    for order in query.order:
        proto.order.add(path=_path(order.path), descending=order.descending)
    aggregate = query.aggregate
    if aggregate is not None:
        proto.aggregate.function = _FUNCTIONS[aggregate.function]
        if aggregate.function != "count":
            proto.aggregate.path.CopyFrom(_path(aggregate.path))
        if aggregate.group is not None:
            proto.aggregate.group.CopyFrom(_path(aggregate.group))
    data = proto.SerializeToString(deterministic=True)
    if len(data) > SIZE_MAX:
        raise TooLarge(f"a query of {len(data)} bytes; at most {SIZE_MAX}")
    return data


def _filter(where: Filter) -> pb.Filter:
    if isinstance(where, All):
        return pb.Filter(all=pb.FilterList(parts=map(_filter, where.parts)))
    if isinstance(where, Any):
        return pb.Filter(any=pb.FilterList(parts=map(_filter, where.parts)))
    if isinstance(where, Not):
        return pb.Filter(negated=_filter(where.part))
    if isinstance(where, Compare):
        compare = pb.FilterCompare(path=_path(where.path), op=_OPS[where.op], value=to_proto(where.value))
        return pb.Filter(compare=compare)
    if isinstance(where, Has):
        return pb.Filter(has=_path(where.path))
    if isinstance(where, Contains):
        return pb.Filter(contains=pb.FilterContains(path=_path(where.path), value=to_proto(where.value)))
    assert isinstance(where, Match)
    return pb.Filter(match=where.text)


def _path(path: Path) -> pb.QueryPath:
    if isinstance(path, Fact):
        return pb.QueryPath(fact=_FACTS[path])
    return pb.QueryPath(keys=pb.QueryKeys(keys=path))


# -- reading


def decode(data: bytes) -> Query:
    """Read a query from untrusted bytes, or raise `BadEncoding`, or `TooLarge` above the size limit."""
    if len(data) > SIZE_MAX:
        raise TooLarge(f"a query of {len(data)} bytes; at most {SIZE_MAX}")
    try:
        query = _query(pb.Query.FromString(data))
        canonical = encode(query) == data
    except DecodeError:
        raise BadEncoding("bytes that are no query") from None
    except KeyError as error:
        raise BadEncoding(f"a query with a part that this version does not know: {error}") from None
    except InvalidInput as error:
        raise BadEncoding(f"a query that cannot run: {error}") from None
    if not canonical:
        raise BadEncoding("a query that is not in its one encoding, or says what this version does not know")
    return query


def _query(proto: pb.Query) -> Query:
    return Query(
        where=_read_filter(proto.where, 1),
        steps=tuple(Step(_READ_WAYS[step.way], _read_filter(step.where, 1)) for step in proto.steps),
        order=tuple(OrderBy(_read_path(order.path), order.descending) for order in proto.order),
        limit=proto.limit if proto.HasField("limit") else None,
        aggregate=_read_aggregate(proto.aggregate) if proto.HasField("aggregate") else None,
        deleted=_READ_DELETED[proto.deleted],
    )


def _read_aggregate(proto: pb.QueryAggregate) -> Aggregate:
    function = _READ_FUNCTIONS[proto.function]
    path = () if function == "count" else _read_path(proto.path)
    return Aggregate(function, path, _read_path(proto.group) if proto.HasField("group") else None)


def _read_filter(proto: pb.Filter, depth: int) -> Filter:
    if depth > DEPTH_MAX:
        raise BadEncoding(f"filters nested more than {DEPTH_MAX} deep")
    kind = proto.WhichOneof("kind")
    if kind == "all":
        return All(tuple(_read_filter(part, depth + 1) for part in proto.all.parts))
    if kind == "any":
        return Any(tuple(_read_filter(part, depth + 1) for part in proto.any.parts))
    if kind == "negated":
        return Not(_read_filter(proto.negated, depth + 1))
    if kind == "compare":
        compare = proto.compare
        return Compare(_read_path(compare.path), _READ_OPS[compare.op], read_value(compare.value))
    if kind == "has":
        return Has(_read_path(proto.has))
    if kind == "contains":
        return Contains(_read_path(proto.contains.path), read_value(proto.contains.value))
    if kind == "match":
        return Match(proto.match)
    raise BadEncoding("a filter of a kind that this version does not know")


def _read_path(proto: pb.QueryPath) -> Path:
    kind = proto.WhichOneof("kind")
    if kind == "keys":
        return tuple(proto.keys.keys)
    if kind == "fact":
        return _READ_FACTS[proto.fact]
    raise BadEncoding("a path of a kind that this version does not know")
