from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MessengerMutation(_message.Message):
    __slots__ = ("feeds", "post", "edit", "redact")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    POST_FIELD_NUMBER: _ClassVar[int]
    EDIT_FIELD_NUMBER: _ClassVar[int]
    REDACT_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    post: MessengerPost
    edit: MessengerEdit
    redact: MessengerRedact
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., post: _Optional[_Union[MessengerPost, _Mapping]] = ..., edit: _Optional[_Union[MessengerEdit, _Mapping]] = ..., redact: _Optional[_Union[MessengerRedact, _Mapping]] = ...) -> None: ...

class MessengerPost(_message.Message):
    __slots__ = ("body", "reply_to", "sent_ms")
    BODY_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    SENT_MS_FIELD_NUMBER: _ClassVar[int]
    body: _value_pb2.Value
    reply_to: _value_pb2.Name
    sent_ms: int
    def __init__(self, body: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., reply_to: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., sent_ms: _Optional[int] = ...) -> None: ...

class MessengerEdit(_message.Message):
    __slots__ = ("target", "body", "replaces")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    target: _value_pb2.Name
    body: _value_pb2.Value
    replaces: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    def __init__(self, target: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., body: _Optional[_Union[_value_pb2.Value, _Mapping]] = ..., replaces: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ...) -> None: ...

class MessengerRedact(_message.Message):
    __slots__ = ("target",)
    TARGET_FIELD_NUMBER: _ClassVar[int]
    target: _value_pb2.Name
    def __init__(self, target: _Optional[_Union[_value_pb2.Name, _Mapping]] = ...) -> None: ...

class MessengerState(_message.Message):
    __slots__ = ("feeds", "heard", "posts", "pending")
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    POSTS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    heard: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    posts: _containers.RepeatedCompositeFieldContainer[MessengerEntry]
    pending: _containers.RepeatedCompositeFieldContainer[MessengerEntry]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ..., heard: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., posts: _Optional[_Iterable[_Union[MessengerEntry, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[MessengerEntry, _Mapping]]] = ...) -> None: ...

class MessengerEntry(_message.Message):
    __slots__ = ("name", "reply_to", "sent_ms", "versions", "waits", "redacted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    SENT_MS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    REDACTED_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    reply_to: _value_pb2.Name
    sent_ms: int
    versions: _containers.RepeatedCompositeFieldContainer[MessengerVersion]
    waits: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    redacted: _value_pb2.Name
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., reply_to: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., sent_ms: _Optional[int] = ..., versions: _Optional[_Iterable[_Union[MessengerVersion, _Mapping]]] = ..., waits: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., redacted: _Optional[_Union[_value_pb2.Name, _Mapping]] = ...) -> None: ...

class MessengerVersion(_message.Message):
    __slots__ = ("name", "body")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    name: _value_pb2.Name
    body: _value_pb2.Value
    def __init__(self, name: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., body: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...
