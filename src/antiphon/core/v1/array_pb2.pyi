from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ArrayMutation(_message.Message):
    __slots__ = ("feeds", "ops")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    ops: _containers.RepeatedCompositeFieldContainer[ArrayOp]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., ops: _Optional[_Iterable[_Union[ArrayOp, _Mapping]]] = ...) -> None: ...

class ArrayOp(_message.Message):
    __slots__ = ("insert", "delete", "set", "move")
    INSERT_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    insert: ArrayInsert
    delete: ArrayDelete
    set: ArraySet
    move: ArrayMove
    def __init__(self, insert: _Optional[_Union[ArrayInsert, _Mapping]] = ..., delete: _Optional[_Union[ArrayDelete, _Mapping]] = ..., set: _Optional[_Union[ArraySet, _Mapping]] = ..., move: _Optional[_Union[ArrayMove, _Mapping]] = ...) -> None: ...

class ArrayPlace(_message.Message):
    __slots__ = ("path", "offset", "extends")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    EXTENDS_FIELD_NUMBER: _ClassVar[int]
    path: bytes
    offset: int
    extends: bool
    def __init__(self, path: _Optional[bytes] = ..., offset: _Optional[int] = ..., extends: _Optional[bool] = ...) -> None: ...

class ArrayInsert(_message.Message):
    __slots__ = ("place", "values", "copies")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    place: ArrayPlace
    values: _containers.RepeatedCompositeFieldContainer[_value_pb2.Value]
    copies: _containers.RepeatedCompositeFieldContainer[ArrayElements]
    def __init__(self, place: _Optional[_Union[ArrayPlace, _Mapping]] = ..., values: _Optional[_Iterable[_Union[_value_pb2.Value, _Mapping]]] = ..., copies: _Optional[_Iterable[_Union[ArrayElements, _Mapping]]] = ...) -> None: ...

class ArrayDelete(_message.Message):
    __slots__ = ("elements",)
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    elements: _containers.RepeatedCompositeFieldContainer[ArrayElements]
    def __init__(self, elements: _Optional[_Iterable[_Union[ArrayElements, _Mapping]]] = ...) -> None: ...

class ArraySet(_message.Message):
    __slots__ = ("name", "index", "value", "replaces")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    index: int
    value: _value_pb2.Value
    replaces: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., index: _Optional[int] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., replaces: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ...) -> None: ...

class ArrayMove(_message.Message):
    __slots__ = ("place", "elements", "in_place")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    IN_PLACE_FIELD_NUMBER: _ClassVar[int]
    place: ArrayPlace
    elements: _containers.RepeatedCompositeFieldContainer[ArrayElements]
    in_place: bool
    def __init__(self, place: _Optional[_Union[ArrayPlace, _Mapping]] = ..., elements: _Optional[_Iterable[_Union[ArrayElements, _Mapping]]] = ..., in_place: _Optional[bool] = ...) -> None: ...

class ArrayElements(_message.Message):
    __slots__ = ("name", "indexes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEXES_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    indexes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., indexes: _Optional[_Iterable[int]] = ...) -> None: ...

class ArrayState(_message.Message):
    __slots__ = ("feeds", "heard", "elements", "pending")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    heard: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    elements: _containers.RepeatedCompositeFieldContainer[ArrayElement]
    pending: _containers.RepeatedCompositeFieldContainer[ArrayElement]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., heard: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., elements: _Optional[_Iterable[_Union[ArrayElement, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[ArrayElement, _Mapping]]] = ...) -> None: ...

class ArrayElement(_message.Message):
    __slots__ = ("name", "index", "shared", "path", "placed", "writes", "waits", "deleted", "more")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SHARED_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    PLACED_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    index: int
    shared: int
    path: bytes
    placed: _value_pb2.Name
    writes: _containers.RepeatedCompositeFieldContainer[ArrayWrite]
    waits: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    deleted: bool
    more: _containers.RepeatedCompositeFieldContainer[_value_pb2.Value]
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., index: _Optional[int] = ..., shared: _Optional[int] = ..., path: _Optional[bytes] = ..., placed: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., writes: _Optional[_Iterable[_Union[ArrayWrite, _Mapping]]] = ..., waits: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., deleted: _Optional[bool] = ..., more: _Optional[_Iterable[_Union[_value_pb2.Value, _Mapping]]] = ...) -> None: ...

class ArrayWrite(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    value: _value_pb2.Value
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...
