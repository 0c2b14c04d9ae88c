from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TextPlace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_PLACE_RIGHT: _ClassVar[TextPlace]
    TEXT_PLACE_LEFT: _ClassVar[TextPlace]
    TEXT_PLACE_NEXT: _ClassVar[TextPlace]
    TEXT_PLACE_ROOT: _ClassVar[TextPlace]
TEXT_PLACE_RIGHT: TextPlace
TEXT_PLACE_LEFT: TextPlace
TEXT_PLACE_NEXT: TextPlace
TEXT_PLACE_ROOT: TextPlace

class TextMutation(_message.Message):
    __slots__ = ("feeds", "offset", "inserts", "deletes", "marks")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    INSERTS_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    offset: int
    inserts: _containers.RepeatedCompositeFieldContainer[TextInsert]
    deletes: _containers.RepeatedCompositeFieldContainer[TextDelete]
    marks: _containers.RepeatedCompositeFieldContainer[TextMark]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., offset: _Optional[int] = ..., inserts: _Optional[_Iterable[_Union[TextInsert, _Mapping]]] = ..., deletes: _Optional[_Iterable[_Union[TextDelete, _Mapping]]] = ..., marks: _Optional[_Iterable[_Union[TextMark, _Mapping]]] = ...) -> None: ...

class TextInsert(_message.Message):
    __slots__ = ("feed", "lamport", "offset", "place", "text", "item", "revived")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REVIVED_FIELD_NUMBER: _ClassVar[int]
    feed: int
    lamport: int
    offset: int
    place: TextPlace
    text: str
    item: bytes
    revived: _containers.RepeatedCompositeFieldContainer[TextDelete]
    def __init__(self, feed: _Optional[int] = ..., lamport: _Optional[int] = ..., offset: _Optional[int] = ..., place: _Optional[_Union[TextPlace, str]] = ..., text: _Optional[str] = ..., item: _Optional[bytes] = ..., revived: _Optional[_Iterable[_Union[TextDelete, _Mapping]]] = ...) -> None: ...

class TextDelete(_message.Message):
    __slots__ = ("feed", "lamport", "offset", "span")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    feed: int
    lamport: int
    offset: int
    span: int
    def __init__(self, feed: _Optional[int] = ..., lamport: _Optional[int] = ..., offset: _Optional[int] = ..., span: _Optional[int] = ...) -> None: ...

class TextMark(_message.Message):
    __slots__ = ("name", "value", "start", "end")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: _value_pb2.Value
    start: TextAnchor
    end: TextAnchor
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., start: _Optional[_Union[TextAnchor, _Mapping]] = ..., end: _Optional[_Union[TextAnchor, _Mapping]] = ...) -> None: ...

class TextAnchor(_message.Message):
    __slots__ = ("feed", "lamport", "offset", "after", "inserted", "edge")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    INSERTED_FIELD_NUMBER: _ClassVar[int]
    EDGE_FIELD_NUMBER: _ClassVar[int]
    feed: int
    lamport: int
    offset: int
    after: bool
    inserted: int
    edge: bool
    def __init__(self, feed: _Optional[int] = ..., lamport: _Optional[int] = ..., offset: _Optional[int] = ..., after: _Optional[bool] = ..., inserted: _Optional[int] = ..., edge: _Optional[bool] = ...) -> None: ...

class TextCursor(_message.Message):
    __slots__ = ("feed", "lamport", "offset", "after")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    lamport: int
    offset: int
    after: bool
    def __init__(self, feed: _Optional[bytes] = ..., lamport: _Optional[int] = ..., offset: _Optional[int] = ..., after: _Optional[bool] = ...) -> None: ...

class TextSnapshot(_message.Message):
    __slots__ = ("writers", "waiting", "marks")
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    writers: _containers.RepeatedCompositeFieldContainer[TextWriter]
    waiting: _containers.RepeatedCompositeFieldContainer[TextWaiting]
    marks: _containers.RepeatedCompositeFieldContainer[TextKeptMark]
    def __init__(self, writers: _Optional[_Iterable[_Union[TextWriter, _Mapping]]] = ..., waiting: _Optional[_Iterable[_Union[TextWaiting, _Mapping]]] = ..., marks: _Optional[_Iterable[_Union[TextKeptMark, _Mapping]]] = ...) -> None: ...

class TextWriter(_message.Message):
    __slots__ = ("feed", "floor_lamport", "floor_offset", "clocks", "shown", "chains", "text", "embeds", "items", "doomed")
    FEED_FIELD_NUMBER: _ClassVar[int]
    FLOOR_LAMPORT_FIELD_NUMBER: _ClassVar[int]
    FLOOR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CLOCKS_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    EMBEDS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DOOMED_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    floor_lamport: int
    floor_offset: int
    clocks: _containers.RepeatedScalarFieldContainer[int]
    shown: _containers.RepeatedScalarFieldContainer[int]
    chains: _containers.RepeatedScalarFieldContainer[int]
    text: str
    embeds: _containers.RepeatedScalarFieldContainer[int]
    items: bytes
    doomed: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, feed: _Optional[bytes] = ..., floor_lamport: _Optional[int] = ..., floor_offset: _Optional[int] = ..., clocks: _Optional[_Iterable[int]] = ..., shown: _Optional[_Iterable[int]] = ..., chains: _Optional[_Iterable[int]] = ..., text: _Optional[str] = ..., embeds: _Optional[_Iterable[int]] = ..., items: _Optional[bytes] = ..., doomed: _Optional[_Iterable[int]] = ...) -> None: ...

class TextWaiting(_message.Message):
    __slots__ = ("writer", "lamport", "offset", "parent_writer", "parent_lamport", "parent_offset", "left", "shown", "text", "item")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PARENT_WRITER_FIELD_NUMBER: _ClassVar[int]
    PARENT_LAMPORT_FIELD_NUMBER: _ClassVar[int]
    PARENT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    writer: int
    lamport: int
    offset: int
    parent_writer: int
    parent_lamport: int
    parent_offset: int
    left: bool
    shown: _containers.RepeatedScalarFieldContainer[int]
    text: str
    item: bytes
    def __init__(self, writer: _Optional[int] = ..., lamport: _Optional[int] = ..., offset: _Optional[int] = ..., parent_writer: _Optional[int] = ..., parent_lamport: _Optional[int] = ..., parent_offset: _Optional[int] = ..., left: _Optional[bool] = ..., shown: _Optional[_Iterable[int]] = ..., text: _Optional[str] = ..., item: _Optional[bytes] = ...) -> None: ...

class TextKeptMark(_message.Message):
    __slots__ = ("name", "lamport", "writer", "seq", "nth", "value", "start", "end")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAMPORT_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    NTH_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    name: str
    lamport: int
    writer: int
    seq: int
    nth: int
    value: _value_pb2.Value
    start: TextAnchor
    end: TextAnchor
    def __init__(self, name: _Optional[str] = ..., lamport: _Optional[int] = ..., writer: _Optional[int] = ..., seq: _Optional[int] = ..., nth: _Optional[int] = ..., value: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., start: _Optional[_Union[TextAnchor, _Mapping]] = ..., end: _Optional[_Union[TextAnchor, _Mapping]] = ...) -> None: ...
