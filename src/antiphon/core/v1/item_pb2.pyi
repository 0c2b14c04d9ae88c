from antiphon.core.v1 import message_pb2 as _message_pb2
from antiphon.core.v1 import value_pb2 as _value_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ItemRaw(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_RAW_UNSPECIFIED: _ClassVar[ItemRaw]
    ITEM_RAW_SINCE: _ClassVar[ItemRaw]
    ITEM_RAW_ALL: _ClassVar[ItemRaw]
ITEM_RAW_UNSPECIFIED: ItemRaw
ITEM_RAW_SINCE: ItemRaw
ITEM_RAW_ALL: ItemRaw

class ItemSnapshot(_message.Message):
    __slots__ = ("id", "model", "version", "feeds", "genesis", "created_ms", "link", "parents", "deleted", "is_deleted", "forks", "metadata", "state", "messages", "view", "creator", "access", "codec", "raw", "hidden")
    ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    GENESIS_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    IS_DELETED_FIELD_NUMBER: _ClassVar[int]
    FORKS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    model: str
    version: int
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    genesis: _value_pb2.Name
    created_ms: int
    link: _message_pb2.Link
    parents: _containers.RepeatedCompositeFieldContainer[Claim]
    deleted: Claim
    is_deleted: bool
    forks: _containers.RepeatedCompositeFieldContainer[Claim]
    metadata: bytes
    state: bytes
    messages: _containers.RepeatedCompositeFieldContainer[KeptMessage]
    view: _message_pb2.View
    creator: Author
    access: _containers.RepeatedCompositeFieldContainer[KeptAccess]
    codec: int
    raw: ItemRaw
    hidden: bool
    def __init__(self, id: _Optional[bytes] = ..., model: _Optional[str] = ..., version: _Optional[int] = ..., feeds: _Optional[_Iterable[bytes]] = ..., genesis: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., created_ms: _Optional[int] = ..., link: _Optional[_Union[_message_pb2.Link, _Mapping]] = ..., parents: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., deleted: _Optional[_Union[Claim, _Mapping]] = ..., is_deleted: _Optional[bool] = ..., forks: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ..., metadata: _Optional[bytes] = ..., state: _Optional[bytes] = ..., messages: _Optional[_Iterable[_Union[KeptMessage, _Mapping]]] = ..., view: _Optional[_Union[_message_pb2.View, _Mapping]] = ..., creator: _Optional[_Union[Author, _Mapping]] = ..., access: _Optional[_Iterable[_Union[KeptAccess, _Mapping]]] = ..., codec: _Optional[int] = ..., raw: _Optional[_Union[ItemRaw, str]] = ..., hidden: _Optional[bool] = ...) -> None: ...

class Author(_message.Message):
    __slots__ = ("identity", "groups", "owner")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    groups: _containers.RepeatedScalarFieldContainer[bytes]
    owner: bool
    def __init__(self, identity: _Optional[bytes] = ..., groups: _Optional[_Iterable[bytes]] = ..., owner: _Optional[bool] = ...) -> None: ...

class KeptAccess(_message.Message):
    __slots__ = ("at", "author", "access")
    AT_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    at: _value_pb2.Name
    author: Author
    access: _message_pb2.Access
    def __init__(self, at: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., author: _Optional[_Union[Author, _Mapping]] = ..., access: _Optional[_Union[_message_pb2.Access, _Mapping]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("at", "item")
    AT_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    at: _value_pb2.Name
    item: bytes
    def __init__(self, at: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., item: _Optional[bytes] = ...) -> None: ...

class KeptMessage(_message.Message):
    __slots__ = ("at", "mutation", "void")
    AT_FIELD_NUMBER: _ClassVar[int]
    MUTATION_FIELD_NUMBER: _ClassVar[int]
    VOID_FIELD_NUMBER: _ClassVar[int]
    at: _value_pb2.Name
    mutation: bytes
    void: str
    def __init__(self, at: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., mutation: _Optional[bytes] = ..., void: _Optional[str] = ...) -> None: ...

class ItemRecord(_message.Message):
    __slots__ = ("item", "feeds", "frame", "checkpoints", "tail", "trimmed", "based", "base_count", "hidden")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_FIELD_NUMBER: _ClassVar[int]
    BASED_FIELD_NUMBER: _ClassVar[int]
    BASE_COUNT_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_FIELD_NUMBER: _ClassVar[int]
    item: ItemSnapshot
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    frame: _containers.RepeatedCompositeFieldContainer[_value_pb2.Name]
    checkpoints: _containers.RepeatedCompositeFieldContainer[Checkpoint]
    tail: _containers.RepeatedCompositeFieldContainer[KeptMessage]
    trimmed: bool
    based: bool
    base_count: int
    hidden: str
    def __init__(self, item: _Optional[_Union[ItemSnapshot, _Mapping]] = ..., feeds: _Optional[_Iterable[bytes]] = ..., frame: _Optional[_Iterable[_Union[_value_pb2.Name, _Mapping]]] = ..., checkpoints: _Optional[_Iterable[_Union[Checkpoint, _Mapping]]] = ..., tail: _Optional[_Iterable[_Union[KeptMessage, _Mapping]]] = ..., trimmed: _Optional[bool] = ..., based: _Optional[bool] = ..., base_count: _Optional[int] = ..., hidden: _Optional[str] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("at", "state")
    AT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    at: _value_pb2.Name
    state: bytes
    def __init__(self, at: _Optional[_Union[_value_pb2.Name, _Mapping]] = ..., state: _Optional[bytes] = ...) -> None: ...
