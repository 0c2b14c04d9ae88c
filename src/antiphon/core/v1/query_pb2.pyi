from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueryDeleted(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_DELETED_HIDDEN: _ClassVar[QueryDeleted]
    QUERY_DELETED_SHOWN: _ClassVar[QueryDeleted]
    QUERY_DELETED_ONLY: _ClassVar[QueryDeleted]

class QueryOp(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_OP_UNSPECIFIED: _ClassVar[QueryOp]
    QUERY_OP_EQUAL: _ClassVar[QueryOp]
    QUERY_OP_LESS: _ClassVar[QueryOp]
    QUERY_OP_LESS_EQUAL: _ClassVar[QueryOp]
    QUERY_OP_GREATER: _ClassVar[QueryOp]
    QUERY_OP_GREATER_EQUAL: _ClassVar[QueryOp]

class QueryFact(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_FACT_UNSPECIFIED: _ClassVar[QueryFact]
    QUERY_FACT_ID: _ClassVar[QueryFact]
    QUERY_FACT_TYPE: _ClassVar[QueryFact]
    QUERY_FACT_MODEL: _ClassVar[QueryFact]
    QUERY_FACT_VERSION: _ClassVar[QueryFact]
    QUERY_FACT_NAME: _ClassVar[QueryFact]
    QUERY_FACT_CREATED: _ClassVar[QueryFact]
    QUERY_FACT_PARENT: _ClassVar[QueryFact]
    QUERY_FACT_SOURCE: _ClassVar[QueryFact]
    QUERY_FACT_TARGET: _ClassVar[QueryFact]
    QUERY_FACT_VIEW_CLASS: _ClassVar[QueryFact]
    QUERY_FACT_VIEW_KEY: _ClassVar[QueryFact]
    QUERY_FACT_EMBEDS: _ClassVar[QueryFact]
    QUERY_FACT_REFERENCES: _ClassVar[QueryFact]

class QueryWay(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_WAY_UNSPECIFIED: _ClassVar[QueryWay]
    QUERY_WAY_CHILDREN: _ClassVar[QueryWay]
    QUERY_WAY_PARENT: _ClassVar[QueryWay]
    QUERY_WAY_LINKS: _ClassVar[QueryWay]
    QUERY_WAY_BACKLINKS: _ClassVar[QueryWay]
    QUERY_WAY_SOURCE: _ClassVar[QueryWay]
    QUERY_WAY_TARGET: _ClassVar[QueryWay]
    QUERY_WAY_EMBEDS: _ClassVar[QueryWay]
    QUERY_WAY_EMBEDDERS: _ClassVar[QueryWay]
    QUERY_WAY_REFERENCES: _ClassVar[QueryWay]
    QUERY_WAY_REFERRERS: _ClassVar[QueryWay]

class QueryFunction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUERY_FUNCTION_UNSPECIFIED: _ClassVar[QueryFunction]
    QUERY_FUNCTION_COUNT: _ClassVar[QueryFunction]
    QUERY_FUNCTION_SUM: _ClassVar[QueryFunction]
    QUERY_FUNCTION_MEAN: _ClassVar[QueryFunction]
    QUERY_FUNCTION_MIN: _ClassVar[QueryFunction]
    QUERY_FUNCTION_MAX: _ClassVar[QueryFunction]
QUERY_DELETED_HIDDEN: QueryDeleted
QUERY_DELETED_SHOWN: QueryDeleted
QUERY_DELETED_ONLY: QueryDeleted
QUERY_OP_UNSPECIFIED: QueryOp
QUERY_OP_EQUAL: QueryOp
QUERY_OP_LESS: QueryOp
QUERY_OP_LESS_EQUAL: QueryOp
QUERY_OP_GREATER: QueryOp
QUERY_OP_GREATER_EQUAL: QueryOp
QUERY_FACT_UNSPECIFIED: QueryFact
QUERY_FACT_ID: QueryFact
QUERY_FACT_TYPE: QueryFact
QUERY_FACT_MODEL: QueryFact
QUERY_FACT_VERSION: QueryFact
QUERY_FACT_NAME: QueryFact
QUERY_FACT_CREATED: QueryFact
QUERY_FACT_PARENT: QueryFact
QUERY_FACT_SOURCE: QueryFact
QUERY_FACT_TARGET: QueryFact
QUERY_FACT_VIEW_CLASS: QueryFact
QUERY_FACT_VIEW_KEY: QueryFact
QUERY_FACT_EMBEDS: QueryFact
QUERY_FACT_REFERENCES: QueryFact
QUERY_WAY_UNSPECIFIED: QueryWay
QUERY_WAY_CHILDREN: QueryWay
QUERY_WAY_PARENT: QueryWay
QUERY_WAY_LINKS: QueryWay
QUERY_WAY_BACKLINKS: QueryWay
QUERY_WAY_SOURCE: QueryWay
QUERY_WAY_TARGET: QueryWay
QUERY_WAY_EMBEDS: QueryWay
QUERY_WAY_EMBEDDERS: QueryWay
QUERY_WAY_REFERENCES: QueryWay
QUERY_WAY_REFERRERS: QueryWay
QUERY_FUNCTION_UNSPECIFIED: QueryFunction
QUERY_FUNCTION_COUNT: QueryFunction
QUERY_FUNCTION_SUM: QueryFunction
QUERY_FUNCTION_MEAN: QueryFunction
QUERY_FUNCTION_MIN: QueryFunction
QUERY_FUNCTION_MAX: QueryFunction

class Query(_message.Message):
    __slots__ = ("where", "steps", "order", "limit", "aggregate", "deleted")
    WHERE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    where: Filter
    steps: _containers.RepeatedCompositeFieldContainer[QueryStep]
    order: _containers.RepeatedCompositeFieldContainer[QueryOrder]
    limit: int
    aggregate: QueryAggregate
    deleted: QueryDeleted
    def __init__(self, where: _Optional[_Union[Filter, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[QueryStep, _Mapping]]] = ..., order: _Optional[_Iterable[_Union[QueryOrder, _Mapping]]] = ..., limit: _Optional[int] = ..., aggregate: _Optional[_Union[QueryAggregate, _Mapping]] = ..., deleted: _Optional[_Union[QueryDeleted, str]] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("all", "any", "negated", "compare", "has", "contains", "match")
    ALL_FIELD_NUMBER: _ClassVar[int]
    ANY_FIELD_NUMBER: _ClassVar[int]
    NEGATED_FIELD_NUMBER: _ClassVar[int]
    COMPARE_FIELD_NUMBER: _ClassVar[int]
    HAS_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    MATCH_FIELD_NUMBER: _ClassVar[int]
    all: FilterList
    any: FilterList
    negated: Filter
    compare: FilterCompare
    has: QueryPath
    contains: FilterContains
    match: str
    def __init__(self, all: _Optional[_Union[FilterList, _Mapping]] = ..., any: _Optional[_Union[FilterList, _Mapping]] = ..., negated: _Optional[_Union[Filter, _Mapping]] = ..., compare: _Optional[_Union[FilterCompare, _Mapping]] = ..., has: _Optional[_Union[QueryPath, _Mapping]] = ..., contains: _Optional[_Union[FilterContains, _Mapping]] = ..., match: _Optional[str] = ...) -> None: ...

class FilterList(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[Filter]
    def __init__(self, parts: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ...) -> None: ...

class FilterCompare(_message.Message):
    __slots__ = ("path", "op", "value")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    path: QueryPath
    op: QueryOp
    value: _value_pb2.Value
    def __init__(self, path: _Optional[_Union[QueryPath, _Mapping]] = ..., op: _Optional[_Union[QueryOp, str]] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...

class FilterContains(_message.Message):
    __slots__ = ("path", "value")
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    path: QueryPath
    value: _value_pb2.Value
    def __init__(self, path: _Optional[_Union[QueryPath, _Mapping]] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...

class QueryPath(_message.Message):
    __slots__ = ("keys", "fact")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    keys: QueryKeys
    fact: QueryFact
    def __init__(self, keys: _Optional[_Union[QueryKeys, _Mapping]] = ..., fact: _Optional[_Union[QueryFact, str]] = ...) -> None: ...

class QueryKeys(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keys: _Optional[_Iterable[str]] = ...) -> None: ...

class QueryStep(_message.Message):
    __slots__ = ("way", "where")
    WAY_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    way: QueryWay
    where: Filter
    def __init__(self, way: _Optional[_Union[QueryWay, str]] = ..., where: _Optional[_Union[Filter, _Mapping]] = ...) -> None: ...

class QueryOrder(_message.Message):
    __slots__ = ("path", "descending")
    PATH_FIELD_NUMBER: _ClassVar[int]
    DESCENDING_FIELD_NUMBER: _ClassVar[int]
    path: QueryPath
    descending: bool
    def __init__(self, path: _Optional[_Union[QueryPath, _Mapping]] = ..., descending: _Optional[bool] = ...) -> None: ...

class QueryAggregate(_message.Message):
    __slots__ = ("function", "path", "group")
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    function: QueryFunction
    path: QueryPath
    group: QueryPath
    def __init__(self, function: _Optional[_Union[QueryFunction, str]] = ..., path: _Optional[_Union[QueryPath, _Mapping]] = ..., group: _Optional[_Union[QueryPath, _Mapping]] = ...) -> None: ...
