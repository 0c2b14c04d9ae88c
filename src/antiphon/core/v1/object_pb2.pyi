from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ObjectMark(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECT_MARK_UNSPECIFIED: _ClassVar[ObjectMark]
    OBJECT_MARK_DELETE: _ClassVar[ObjectMark]
    OBJECT_MARK_MAP: _ClassVar[ObjectMark]
    OBJECT_MARK_SET: _ClassVar[ObjectMark]
    OBJECT_MARK_MEMBER: _ClassVar[ObjectMark]
OBJECT_MARK_UNSPECIFIED: ObjectMark
OBJECT_MARK_DELETE: ObjectMark
OBJECT_MARK_MAP: ObjectMark
OBJECT_MARK_SET: ObjectMark
OBJECT_MARK_MEMBER: ObjectMark

class ObjectMutation(_message.Message):
    __slots__ = ("feeds", "ops")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    ops: _containers.RepeatedCompositeFieldContainer[ObjectOp]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., ops: _Optional[_Iterable[_Union[ObjectOp, _Mapping]]] = ...) -> None: ...

class ObjectOp(_message.Message):
    __slots__ = ("path", "element", "write", "mark", "counter", "increment", "replaces")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    INCREMENT_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    element: _value_pb2.Value
    write: _value_pb2.Value
    mark: ObjectMark
    counter: int
    increment: int
    replaces: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    def __init__(self, path: _Optional[_Iterable[str]] = ..., element: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., write: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., mark: _Optional[_Union[ObjectMark, str]] = ..., counter: _Optional[int] = ..., increment: _Optional[int] = ..., replaces: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ...) -> None: ...

class ObjectSnapshot(_message.Message):
    __slots__ = ("feeds", "heard", "registers", "kept")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    REGISTERS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    heard: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    registers: _containers.RepeatedCompositeFieldContainer[ObjectRegister]
    kept: _containers.RepeatedCompositeFieldContainer[ObjectKept]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., heard: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., registers: _Optional[_Iterable[_Union[ObjectRegister, _Mapping]]] = ..., kept: _Optional[_Iterable[_Union[ObjectKept, _Mapping]]] = ...) -> None: ...

class ObjectRegister(_message.Message):
    __slots__ = ("path", "element", "entries")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    element: _value_pb2.Value
    entries: _containers.RepeatedCompositeFieldContainer[ObjectEntry]
    def __init__(self, path: _Optional[_Iterable[str]] = ..., element: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[ObjectEntry, _Mapping]]] = ...) -> None: ...

class ObjectEntry(_message.Message):
    __slots__ = ("feed", "lamport", "seq", "value", "mark", "counter")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MARK_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    feed: int
    lamport: int
    seq: int
    value: _value_pb2.Value
    mark: ObjectMark
    counter: bytes
    def __init__(self, feed: _Optional[int] = ..., lamport: _Optional[int] = ..., seq: _Optional[int] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., mark: _Optional[_Union[ObjectMark, str]] = ..., counter: _Optional[bytes] = ...) -> None: ...

class ObjectKept(_message.Message):
    __slots__ = ("path", "element", "gone", "increments")
    PATH_FIELD_NUMBER: _ClassVar[int]
    ELEMENT_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    INCREMENTS_FIELD_NUMBER: _ClassVar[int]
    path: _containers.RepeatedScalarFieldContainer[str]
    element: _value_pb2.Value
    gone: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    increments: _containers.RepeatedCompositeFieldContainer[ObjectEntry]
    def __init__(self, path: _Optional[_Iterable[str]] = ..., element: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., gone: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., increments: _Optional[_Iterable[_Union[ObjectEntry, _Mapping]]] = ...) -> None: ...
