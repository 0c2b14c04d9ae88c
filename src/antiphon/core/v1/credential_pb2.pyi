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
    __slots__ = ("party", "expires_ms", "nonce", "rest", "party_genesis", "device", "feed", "member", "group", "narrowing", "feed_end", "policy", "epoch_genesis", "epoch_attestation", "equivocation", "epoch_refusal", "epoch_endorsement", "erasure", "continuation")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    REST_FIELD_NUMBER: _ClassVar[int]
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
    EPOCH_REFUSAL_FIELD_NUMBER: _ClassVar[int]
    EPOCH_ENDORSEMENT_FIELD_NUMBER: _ClassVar[int]
    ERASURE_FIELD_NUMBER: _ClassVar[int]
    CONTINUATION_FIELD_NUMBER: _ClassVar[int]
    party: bytes
    expires_ms: int
    nonce: bytes
    rest: bytes
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
    epoch_refusal: EpochRefusal
    epoch_endorsement: EpochEndorsement
    erasure: Erasure
    continuation: Continuation
    def __init__(self, party: _Optional[bytes] = ..., expires_ms: _Optional[int] = ..., nonce: _Optional[bytes] = ..., rest: _Optional[bytes] = ..., party_genesis: _Optional[_Union[PartyGenesis, _Mapping]] = ..., device: _Optional[_Union[DeviceAdmission, _Mapping]] = ..., feed: _Optional[_Union[FeedAdmission, _Mapping]] = ..., member: _Optional[_Union[MemberAdmission, _Mapping]] = ..., group: _Optional[_Union[GroupAdmission, _Mapping]] = ..., narrowing: _Optional[_Union[Narrowing, _Mapping]] = ..., feed_end: _Optional[_Union[FeedEnd, _Mapping]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., epoch_genesis: _Optional[_Union[EpochGenesis, _Mapping]] = ..., epoch_attestation: _Optional[_Union[EpochAttestation, _Mapping]] = ..., equivocation: _Optional[_Union[Equivocation, _Mapping]] = ..., epoch_refusal: _Optional[_Union[EpochRefusal, _Mapping]] = ..., epoch_endorsement: _Optional[_Union[EpochEndorsement, _Mapping]] = ..., erasure: _Optional[_Union[Erasure, _Mapping]] = ..., continuation: _Optional[_Union[Continuation, _Mapping]] = ...) -> None: ...

class Continuation(_message.Message):
    __slots__ = ("cuts", "control")
    CUTS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    control: _containers.RepeatedCompositeFieldContainer[Cut]
    def __init__(self, cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., control: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("identity", "admission", "parent", "parent_feed")
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PARENT_FEED_FIELD_NUMBER: _ClassVar[int]
    identity: bytes
    admission: SignedCredential
    parent: bytes
    parent_feed: bytes
    def __init__(self, identity: _Optional[bytes] = ..., admission: _Optional[_Union[SignedCredential, _Mapping]] = ..., parent: _Optional[bytes] = ..., parent_feed: _Optional[bytes] = ...) -> None: ...

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
    __slots__ = ("subject", "roles", "is_group")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    IS_GROUP_FIELD_NUMBER: _ClassVar[int]
    subject: bytes
    roles: _containers.RepeatedScalarFieldContainer[Role]
    is_group: bool
    def __init__(self, subject: _Optional[bytes] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., is_group: _Optional[bool] = ...) -> None: ...

class GroupAdmission(_message.Message):
    __slots__ = ("group", "subject", "is_group")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    IS_GROUP_FIELD_NUMBER: _ClassVar[int]
    group: bytes
    subject: bytes
    is_group: bool
    def __init__(self, group: _Optional[bytes] = ..., subject: _Optional[bytes] = ..., is_group: _Optional[bool] = ...) -> None: ...

class Narrowing(_message.Message):
    __slots__ = ("subject", "roles", "cuts", "expired", "group", "echo")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    subject: bytes
    roles: _containers.RepeatedScalarFieldContainer[Role]
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    expired: bool
    group: bytes
    echo: bool
    def __init__(self, subject: _Optional[bytes] = ..., roles: _Optional[_Iterable[_Union[Role, str]]] = ..., cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., expired: _Optional[bool] = ..., group: _Optional[bytes] = ..., echo: _Optional[bool] = ...) -> None: ...

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
    __slots__ = ("editors_admit", "generator", "attesters", "attestations_min", "tightens", "cuts", "liars", "silent_ms", "skew_ms", "epoch_messages", "epoch_bytes", "epoch_age_ms", "epoch_idle_ms", "message_age_ms", "message_count", "deleted_epochs", "keep_epochs")
    EDITORS_ADMIT_FIELD_NUMBER: _ClassVar[int]
    GENERATOR_FIELD_NUMBER: _ClassVar[int]
    ATTESTERS_FIELD_NUMBER: _ClassVar[int]
    ATTESTATIONS_MIN_FIELD_NUMBER: _ClassVar[int]
    TIGHTENS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    LIARS_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    SKEW_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_BYTES_FIELD_NUMBER: _ClassVar[int]
    EPOCH_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELETED_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    KEEP_EPOCHS_FIELD_NUMBER: _ClassVar[int]
    editors_admit: bool
    generator: bytes
    attesters: _containers.RepeatedScalarFieldContainer[bytes]
    attestations_min: int
    tightens: bool
    cuts: _containers.RepeatedCompositeFieldContainer[Cut]
    liars: bool
    silent_ms: int
    skew_ms: int
    epoch_messages: int
    epoch_bytes: int
    epoch_age_ms: int
    epoch_idle_ms: int
    message_age_ms: int
    message_count: int
    deleted_epochs: int
    keep_epochs: int
    def __init__(self, editors_admit: _Optional[bool] = ..., generator: _Optional[bytes] = ..., attesters: _Optional[_Iterable[bytes]] = ..., attestations_min: _Optional[int] = ..., tightens: _Optional[bool] = ..., cuts: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., liars: _Optional[bool] = ..., silent_ms: _Optional[int] = ..., skew_ms: _Optional[int] = ..., epoch_messages: _Optional[int] = ..., epoch_bytes: _Optional[int] = ..., epoch_age_ms: _Optional[int] = ..., epoch_idle_ms: _Optional[int] = ..., message_age_ms: _Optional[int] = ..., message_count: _Optional[int] = ..., deleted_epochs: _Optional[int] = ..., keep_epochs: _Optional[int] = ...) -> None: ...

class ModelKey(_message.Message):
    __slots__ = ("name", "version", "codec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CODEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: int
    codec: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[int] = ..., codec: _Optional[int] = ...) -> None: ...

class EpochGenesis(_message.Message):
    __slots__ = ("term", "number", "previous", "cut", "snapshot", "created_ms", "control", "models", "control_hash")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_HASH_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    previous: bytes
    cut: _containers.RepeatedCompositeFieldContainer[Cut]
    snapshot: bytes
    created_ms: int
    control: _containers.RepeatedCompositeFieldContainer[Cut]
    models: _containers.RepeatedCompositeFieldContainer[ModelKey]
    control_hash: bytes
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., previous: _Optional[bytes] = ..., cut: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., snapshot: _Optional[bytes] = ..., created_ms: _Optional[int] = ..., control: _Optional[_Iterable[_Union[Cut, _Mapping]]] = ..., models: _Optional[_Iterable[_Union[ModelKey, _Mapping]]] = ..., control_hash: _Optional[bytes] = ...) -> None: ...

class EpochAttestation(_message.Message):
    __slots__ = ("term", "number", "snapshot", "genesis")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    GENESIS_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    snapshot: bytes
    genesis: bytes
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., snapshot: _Optional[bytes] = ..., genesis: _Optional[bytes] = ...) -> None: ...

class EpochRefusal(_message.Message):
    __slots__ = ("term", "number", "snapshot", "computed", "reason")
    TERM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    COMPUTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    term: int
    number: int
    snapshot: bytes
    computed: bytes
    reason: str
    def __init__(self, term: _Optional[int] = ..., number: _Optional[int] = ..., snapshot: _Optional[bytes] = ..., computed: _Optional[bytes] = ..., reason: _Optional[str] = ...) -> None: ...

class EpochEndorsement(_message.Message):
    __slots__ = ("number", "term", "candidate", "accepted_term", "accepted")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TERM_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    number: int
    term: int
    candidate: bytes
    accepted_term: int
    accepted: bytes
    def __init__(self, number: _Optional[int] = ..., term: _Optional[int] = ..., candidate: _Optional[bytes] = ..., accepted_term: _Optional[int] = ..., accepted: _Optional[bytes] = ...) -> None: ...

class Erasure(_message.Message):
    __slots__ = ("positions",)
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[Position]
    def __init__(self, positions: _Optional[_Iterable[_Union[Position, _Mapping]]] = ...) -> None: ...

class Equivocation(_message.Message):
    __slots__ = ("evidence",)
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    evidence: bytes
    def __init__(self, evidence: _Optional[bytes] = ...) -> None: ...
