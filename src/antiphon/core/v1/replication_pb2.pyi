from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Replication(_message.Message):
    __slots__ = ("party", "sender", "receiver", "heard", "announcement", "want", "ranges", "want_blobs", "blobs", "show", "want_branch", "branch", "want_tips", "tips", "more", "enough", "digest")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    HEARD_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCEMENT_FIELD_NUMBER: _ClassVar[int]
    WANT_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    WANT_BLOBS_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    SHOW_FIELD_NUMBER: _ClassVar[int]
    WANT_BRANCH_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    WANT_TIPS_FIELD_NUMBER: _ClassVar[int]
    TIPS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    ENOUGH_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    party: bytes
    sender: bytes
    receiver: bytes
    heard: int
    announcement: Announcement
    want: Want
    ranges: Ranges
    want_blobs: WantBlobs
    blobs: Blobs
    show: Show
    want_branch: WantBranch
    branch: Branch
    want_tips: WantTips
    tips: Tips
    more: More
    enough: Enough
    digest: bytes
    def __init__(self, party: _Optional[bytes] = ..., sender: _Optional[bytes] = ..., receiver: _Optional[bytes] = ..., heard: _Optional[int] = ..., announcement: _Optional[_Union[Announcement, _Mapping]] = ..., want: _Optional[_Union[Want, _Mapping]] = ..., ranges: _Optional[_Union[Ranges, _Mapping]] = ..., want_blobs: _Optional[_Union[WantBlobs, _Mapping]] = ..., blobs: _Optional[_Union[Blobs, _Mapping]] = ..., show: _Optional[_Union[Show, _Mapping]] = ..., want_branch: _Optional[_Union[WantBranch, _Mapping]] = ..., branch: _Optional[_Union[Branch, _Mapping]] = ..., want_tips: _Optional[_Union[WantTips, _Mapping]] = ..., tips: _Optional[_Union[Tips, _Mapping]] = ..., more: _Optional[_Union[More, _Mapping]] = ..., enough: _Optional[_Union[Enough, _Mapping]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class Announcement(_message.Message):
    __slots__ = ("since", "upto", "holdings", "spans")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UPTO_FIELD_NUMBER: _ClassVar[int]
    HOLDINGS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    since: int
    upto: int
    holdings: _containers.RepeatedCompositeFieldContainer[Holding]
    spans: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, since: _Optional[int] = ..., upto: _Optional[int] = ..., holdings: _Optional[_Iterable[_Union[Holding, _Mapping]]] = ..., spans: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Enough(_message.Message):
    __slots__ = ("feeds",)
    FEEDS_FIELD_NUMBER: _ClassVar[int]
    feeds: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, feeds: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Holding(_message.Message):
    __slots__ = ("feed", "start", "length", "hash", "control", "fork", "branches")
    FEED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    FORK_FIELD_NUMBER: _ClassVar[int]
    BRANCHES_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    start: int
    length: int
    hash: bytes
    control: bool
    fork: int
    branches: int
    def __init__(self, feed: _Optional[bytes] = ..., start: _Optional[int] = ..., length: _Optional[int] = ..., hash: _Optional[bytes] = ..., control: _Optional[bool] = ..., fork: _Optional[int] = ..., branches: _Optional[int] = ...) -> None: ...

class Want(_message.Message):
    __slots__ = ("request", "size_max", "ranges", "forks")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_MAX_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    FORKS_FIELD_NUMBER: _ClassVar[int]
    request: int
    size_max: int
    ranges: _containers.RepeatedCompositeFieldContainer[WantRange]
    forks: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, request: _Optional[int] = ..., size_max: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[WantRange, _Mapping]]] = ..., forks: _Optional[_Iterable[bytes]] = ...) -> None: ...

class WantRange(_message.Message):
    __slots__ = ("feed", "first")
    FEED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    first: int
    def __init__(self, feed: _Optional[bytes] = ..., first: _Optional[int] = ...) -> None: ...

class More(_message.Message):
    __slots__ = ("request", "size_max", "without")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SIZE_MAX_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_FIELD_NUMBER: _ClassVar[int]
    request: int
    size_max: int
    without: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, request: _Optional[int] = ..., size_max: _Optional[int] = ..., without: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Ranges(_message.Message):
    __slots__ = ("request", "spans", "lacks", "forks", "part", "last")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    FORKS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    request: int
    spans: _containers.RepeatedScalarFieldContainer[bytes]
    lacks: _containers.RepeatedCompositeFieldContainer[Lack]
    forks: _containers.RepeatedScalarFieldContainer[bytes]
    part: int
    last: bool
    def __init__(self, request: _Optional[int] = ..., spans: _Optional[_Iterable[bytes]] = ..., lacks: _Optional[_Iterable[_Union[Lack, _Mapping]]] = ..., forks: _Optional[_Iterable[bytes]] = ..., part: _Optional[int] = ..., last: _Optional[bool] = ...) -> None: ...

class Lack(_message.Message):
    __slots__ = ("feed", "first")
    FEED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    first: int
    def __init__(self, feed: _Optional[bytes] = ..., first: _Optional[int] = ...) -> None: ...

class WantBranch(_message.Message):
    __slots__ = ("request", "feed", "seq", "hash", "first")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    FEED_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    request: int
    feed: bytes
    seq: int
    hash: bytes
    first: int
    def __init__(self, request: _Optional[int] = ..., feed: _Optional[bytes] = ..., seq: _Optional[int] = ..., hash: _Optional[bytes] = ..., first: _Optional[int] = ...) -> None: ...

class Branch(_message.Message):
    __slots__ = ("request", "spans", "proof")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    request: int
    spans: _containers.RepeatedScalarFieldContainer[bytes]
    proof: bytes
    def __init__(self, request: _Optional[int] = ..., spans: _Optional[_Iterable[bytes]] = ..., proof: _Optional[bytes] = ...) -> None: ...

class WantTips(_message.Message):
    __slots__ = ("request", "feed", "after")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    FEED_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    request: int
    feed: bytes
    after: bytes
    def __init__(self, request: _Optional[int] = ..., feed: _Optional[bytes] = ..., after: _Optional[bytes] = ...) -> None: ...

class Tips(_message.Message):
    __slots__ = ("request", "tips", "more")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIPS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    request: int
    tips: _containers.RepeatedCompositeFieldContainer[Tip]
    more: bool
    def __init__(self, request: _Optional[int] = ..., tips: _Optional[_Iterable[_Union[Tip, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...

class Tip(_message.Message):
    __slots__ = ("seq", "hash")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    seq: int
    hash: bytes
    def __init__(self, seq: _Optional[int] = ..., hash: _Optional[bytes] = ...) -> None: ...

class WantBlobs(_message.Message):
    __slots__ = ("request", "cids")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CIDS_FIELD_NUMBER: _ClassVar[int]
    request: int
    cids: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, request: _Optional[int] = ..., cids: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Blobs(_message.Message):
    __slots__ = ("request", "blobs", "lacks", "part", "last")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    request: int
    blobs: _containers.RepeatedCompositeFieldContainer[Blob]
    lacks: _containers.RepeatedScalarFieldContainer[bytes]
    part: int
    last: bool
    def __init__(self, request: _Optional[int] = ..., blobs: _Optional[_Iterable[_Union[Blob, _Mapping]]] = ..., lacks: _Optional[_Iterable[bytes]] = ..., part: _Optional[int] = ..., last: _Optional[bool] = ...) -> None: ...

class Blob(_message.Message):
    __slots__ = ("cid", "data")
    CID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    cid: bytes
    data: bytes
    def __init__(self, cid: _Optional[bytes] = ..., data: _Optional[bytes] = ...) -> None: ...

class Show(_message.Message):
    __slots__ = ("credentials",)
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    credentials: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, credentials: _Optional[_Iterable[bytes]] = ...) -> None: ...
