from antiphon.core.v1 import credential_pb2 as _credential_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Message(_message.Message):
    __slots__ = ("credential", "genesis", "change", "mutation", "metadata")
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    GENESIS_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    MUTATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    credential: _credential_pb2.SignedCredential
    genesis: Genesis
    change: Change
    mutation: bytes
    metadata: bytes
    def __init__(self, credential: _Optional[_Union[_credential_pb2.SignedCredential, _Mapping]] = ..., genesis: _Optional[_Union[Genesis, _Mapping]] = ..., change: _Optional[_Union[Change, _Mapping]] = ..., mutation: _Optional[bytes] = ..., metadata: _Optional[bytes] = ...) -> None: ...

class Genesis(_message.Message):
    __slots__ = ("nonce", "model", "version", "parent", "link")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    model: str
    version: int
    parent: bytes
    link: Link
    def __init__(self, nonce: _Optional[bytes] = ..., model: _Optional[str] = ..., version: _Optional[int] = ..., parent: _Optional[bytes] = ..., link: _Optional[_Union[Link, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: bytes
    target: bytes
    def __init__(self, source: _Optional[bytes] = ..., target: _Optional[bytes] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("parent", "deleted", "forked_to")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    FORKED_TO_FIELD_NUMBER: _ClassVar[int]
    parent: bytes
    deleted: bool
    forked_to: bytes
    def __init__(self, parent: _Optional[bytes] = ..., deleted: _Optional[bool] = ..., forked_to: _Optional[bytes] = ...) -> None: ...
