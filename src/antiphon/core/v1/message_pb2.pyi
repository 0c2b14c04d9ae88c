from antiphon.core.v1 import credential_pb2 as _credential_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
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
    __slots__ = ("nonce", "model", "version", "parent", "link", "view")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    model: str
    version: int
    parent: bytes
    link: Link
    view: View
    def __init__(self, nonce: _Optional[bytes] = ..., model: _Optional[str] = ..., version: _Optional[int] = ..., parent: _Optional[bytes] = ..., link: _Optional[_Union[Link, _Mapping]] = ..., view: _Optional[_Union[View, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: bytes
    target: bytes
    def __init__(self, source: _Optional[bytes] = ..., target: _Optional[bytes] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("key", "proof")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    proof: bytes
    def __init__(self, key: _Optional[bytes] = ..., proof: _Optional[bytes] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("parent", "deleted", "forked_to", "access")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    FORKED_TO_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    parent: bytes
    deleted: bool
    forked_to: bytes
    access: Access
    def __init__(self, parent: _Optional[bytes] = ..., deleted: _Optional[bool] = ..., forked_to: _Optional[bytes] = ..., access: _Optional[_Union[Access, _Mapping]] = ...) -> None: ...

class Access(_message.Message):
    __slots__ = ("grant", "revoke", "cuts")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    REVOKE_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    grant: _containers.RepeatedScalarFieldContainer[bytes]
    revoke: _containers.RepeatedScalarFieldContainer[bytes]
    cuts: _containers.RepeatedCompositeFieldContainer[FeedLength]
    def __init__(self, grant: _Optional[_Iterable[bytes]] = ..., revoke: _Optional[_Iterable[bytes]] = ..., cuts: _Optional[_Iterable[_Union[FeedLength, _Mapping]]] = ...) -> None: ...

class FeedLength(_message.Message):
    __slots__ = ("feed", "length")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    length: int
    def __init__(self, feed: _Optional[bytes] = ..., length: _Optional[int] = ...) -> None: ...
