from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_OWNER: _ClassVar[Role]
    ROLE_EDITOR: _ClassVar[Role]
    ROLE_READER: _ClassVar[Role]
    ROLE_EPOCH_GENERATOR: _ClassVar[Role]

class FeedKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FEED_KIND_UNSPECIFIED: _ClassVar[FeedKind]
    FEED_KIND_CONTROL: _ClassVar[FeedKind]
    FEED_KIND_DATA: _ClassVar[FeedKind]
ROLE_UNSPECIFIED: Role
ROLE_OWNER: Role
ROLE_EDITOR: Role
ROLE_READER: Role
ROLE_EPOCH_GENERATOR: Role
FEED_KIND_UNSPECIFIED: FeedKind
FEED_KIND_CONTROL: FeedKind
FEED_KIND_DATA: FeedKind

class SignedCredential(_message.Message):
    __slots__ = ("payload", "signatures")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    payload: bytes
    signatures: _containers.RepeatedCompositeFieldContainer[Signature]
    def __init__(self, payload: _Optional[bytes] = ..., signatures: _Optional[_Iterable[_Union[Signature, _Mapping]]] = ...) -> None: ...

class Signature(_message.Message):
    __slots__ = ("key", "signature")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    signature: bytes
    def __init__(self, key: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class Credential(_message.Message):
    __slots__ = ("party", "expires_ms", "nonce", "party_genesis", "device", "feed", "member", "group", "narrowing", "feed_end", "policy", "epoch_genesis", "epoch_attestation", "equivocation")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PARTY_GENESIS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    FEED_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NARROWING_FIELD_NUMBER: _ClassVar[int]
    FEED_END_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    EPOCH_GENESIS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_ATTESTATION_FIELD_NUMBER: _ClassVar[int]
    EQUIVOCATION_FIELD_NUMBER: _ClassVar[int]
    party: bytes
    expires_ms: int
    nonce: bytes
    party_genesis: PartyGenesis
    device: DeviceAdmission
    feed: FeedAdmission
    member: MemberAdmission
    group: GroupAdmission
    narrowing: Narrowing
    feed_end: FeedEnd
    policy: Policy
    epoch_genesis: EpochGenesis
    epoch_attestation: EpochAttestation
    equivocation: Equivocation
    def __init__(self, party: _Optional[bytes] = ..., expires_ms: _Optional[int] = ..., nonce: _Optional[bytes] = ..., party_genesis: _Optional[_Union[PartyGenesis, _Mapping]] = ..., device: _Optional[_Union[DeviceAdmission, _Mapping]] = ..., feed: _Optional[_Union[FeedAdmission, _Mapping]] = ..., member: _Optional[_Union[MemberAdmission, _Mapping]] = ..., group: _Optional[_Union[GroupAdmission, _Mapping]] = ..., narrowing: _Optional[_Union[Narrowing, _Mapping]] = ..., feed_end: _Optional[_Union[FeedEnd, _Mapping]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., epoch_genesis: _Optional[_Union[EpochGenesis, _Mapping]] = ..., epoch_attestation: _Optional[_Union[EpochAttestation, _Mapping]] = ..., equivocation: _Optional[_Union[Equivocation, _Mapping]] = ...) -> None: ...

class Position(_message.Message):
    __slots__ = ("feed", "seq")
    FEED_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    seq: int
    def __init__(self, feed: _Optional[bytes] = ..., seq: _Optional[int] = ...) -> None: ...

class Cut(_message.Message):
    __slots__ = ("feed", "length")
    FEED_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    length: int
    def __init__(self, feed: _Optional[bytes] = ..., length: _Optional[int] = ...) -> None: ...

class PartyGenesis(_message.Message):
    __slots__ = ("identity", "admission")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    admission: SignedCredential
    def __init__(self, identity: _Optional[bytes] = ..., admission: _Optional[_Union[SignedCredential, _Mapping]] = ...) -> None: ...

class DeviceAdmission(_message.Message):
    __slots__ = ("identity", "device")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    device: bytes
    def __init__(self, identity: _Optional[bytes] = ..., device: _Optional[bytes] = ...) -> None: ...

class FeedAdmission(_message.Message):
    __slots__ = ("feed", "kind", "device")
    FEED_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    feed: bytes
    kind: FeedKind
    device: SignedCredential
    def __init__(self, feed: _Optional[bytes] = ..., kind: _Optional[_Union[FeedKind, str]] = ..., device: _Optional[_Union[SignedCredential, _Mapping]] = ...) -> None: ...

class MemberAdmission(_message.Message):
    __slots__ = ("subject", "roles")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    subject: bytes
    roles: _containers.RepeatedScalarFieldContainer[Role]
    def __init__(self, subject: _Optional[bytes] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ...) -> None: ...

class GroupAdmission(_message.Message):
    __slots__ = ("group", "subject")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    group: bytes
    subject: bytes
    def __init__(self, group: _Optional[bytes] = ..., subject: _Optional[bytes] = ...) -> None: ...

class Narrowing(_message.Message):
    __slots__ = ("admissions", "roles", "cuts", "expired")
    ADMISSIONS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    admissions: _containers.RepeatedCompositeFieldContainer[Position]
    roles: _containers.RepeatedScalarFieldContainer[Role]
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    expired: bool
    def __init__(self, admissions: _Optional[_Iterable[_Union[Position, _Mapping]]] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., expired: _Optional[bool] = ...) -> None: ...

class FeedEnd(_message.Message):
    __slots__ = ("identity", "device", "cuts")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    device: bytes
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    def __init__(self, identity: _Optional[bytes] = ..., device: _Optional[bytes] = ..., cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("editors_admit", "generator", "attesters", "attestations_min", "tightens", "cuts")
    EDITORS_ADMIT_FIELD_NUMBER: _ClassVar[int]
    GENERATOR_FIELD_NUMBER: _ClassVar[int]
    ATTESTERS_FIELD_NUMBER: _ClassVar[int]
    ATTESTATIONS_MIN_FIELD_NUMBER: _ClassVar[int]
    TIGHTENS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    editors_admit: bool
    generator: bytes
    attesters: _containers.RepeatedScalarFieldContainer[bytes]
    attestations_min: int
    tightens: _containers.RepeatedCompositeFieldContainer[Position]
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    def __init__(self, editors_admit: _Optional[bool] = ..., generator: _Optional[bytes] = ..., attesters: _Optional[_Iterable[bytes]] = ..., attestations_min: _Optional[int] = ..., tightens: _Optional[_Iterable[_Union[Position, _Mapping]]] = ..., cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ...) -> None: ...

class EpochGenesis(_message.Message):
    __slots__ = ("term", "number", "previous", "timeframe", "snapshot", "created_ms")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    TIMEFRAME_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    previous: bytes
    timeframe: bytes
    snapshot: bytes
    created_ms: int
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., previous: _Optional[bytes] = ..., timeframe: _Optional[bytes] = ..., snapshot: _Optional[bytes] = ..., created_ms: _Optional[int] = ...) -> None: ...

class EpochAttestation(_message.Message):
    __slots__ = ("term", "number", "snapshot")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    snapshot: bytes
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., snapshot: _Optional[bytes] = ...) -> None: ...

class Equivocation(_message.Message):
    __slots__ = ("evidence",)
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    evidence: bytes
    def __init__(self, evidence: _Optional[bytes] = ...) -> None: ...
