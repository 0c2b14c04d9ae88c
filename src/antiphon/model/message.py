"""Messages to items, as the bodies of blocks hold them: genesis, change, mutation and metadata.

A mutation is the most common message, so its envelope is read and written by hand.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.ids import ITEM_ID_SIZE, NONCE_SIZE
from antiphon.core.keys import KEY_SIZE, SIGNATURE_SIZE
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import message_pb2
from antiphon.feed.header import Kind
from antiphon.model.access import Access
from antiphon.model.access_codec import read_access, write_access
from antiphon.model.factory import MODEL_NAME_SIZE_MAX
from antiphon.model.wire import number_at, tag_numbers, varint

_MESSAGE, _GENESIS = tag_numbers("Message", "Genesis")
_NONCE_HEAD, _PARENT_HEAD = bytes([_GENESIS.nonce, NONCE_SIZE]), bytes([_GENESIS.parent, ITEM_ID_SIZE])
_GENESIS_TAG, _MODEL, _VERSION = _MESSAGE.genesis, _GENESIS.model, _GENESIS.version
_TAGS: dict[int, int] = {Kind.MUTATION: _MESSAGE.mutation, Kind.METADATA: _MESSAGE.metadata}
_VIEW_TAG = b"antiphon.view.v1"
_FIELDS = {Kind.GENESIS: "genesis", Kind.CHANGE: "change", Kind.MUTATION: "mutation", Kind.METADATA: "metadata"}


class Note(NamedTuple):
    """A message to an item, as the fold takes it. `void` is the reason why it does not count, or empty."""

    kind: int
    lamport: int
    feed: bytes
    seq: int
    created_ms: int
    message: bytes | None  # None: the store does not have the body
    void: str = ""

    @property
    def stamp(self) -> Stamp:
        """The stamp of the message."""
        return Stamp(self.lamport, self.feed, self.seq)


class Inception(NamedTuple):
    """The inception key of a view, and the signature by which that key confirms the view."""

    key: bytes
    proof: bytes

    @staticmethod
    def statement(party: bytes, feed: bytes) -> bytes:
        """Return the bytes that the key signs: a view of this party, created in this feed."""
        return _VIEW_TAG + party + feed


class Genesis(NamedTuple):
    """The message that creates an item. A view has no nonce, because its id comes from its key."""

    nonce: bytes
    model: str
    version: int
    parent: bytes = b""
    link: tuple[bytes, bytes] | None = None
    view: Inception | None = None


class Change(NamedTuple):
    """A change of an item. One of: a new parent (empty for none), deletion or restoration, a fork, an access change."""

    parent: bytes | None = None
    deleted: bool | None = None
    forked_to: bytes | None = None
    access: Access | None = None


def content(kind: int, message: bytes) -> bytes:
    """Return the mutation or metadata mutation inside a message."""
    if len(message) > 1 and message[0] == _TAGS.get(kind):
        size, at = (message[1], 2) if message[1] < 0x80 else number_at(message, 1, len(message))
        if size == len(message) - at and at < 7:  # the one field, and nothing else: what every writer sends
            return message[at:]
    parsed = _parse(kind, message)
    return parsed.mutation if kind == Kind.MUTATION else parsed.metadata


def wrap(kind: Kind, data: bytes) -> bytes:
    """Return the message that holds a mutation or metadata mutation."""
    size = len(data)
    return b"%c%b%b" % (_TAGS[kind], varint(size), data) if size > 127 else b"%c%c%b" % (_TAGS[kind], size, data)


def _parse(kind: int, message: bytes) -> message_pb2.Message:
    try:
        parsed = message_pb2.Message.FromString(message)
    except DecodeError:
        raise InvalidMutation("its body is no message") from None
    if parsed.WhichOneof("content") != _FIELDS[Kind(kind)]:
        raise InvalidMutation("its body is not what its header says")
    return parsed


def _plain_genesis(message: bytes) -> Genesis | None:
    """Read a genesis without a link whose lengths all fit into one byte, as most do; None for any other."""
    size = len(message)
    if not 25 < size < 130 or message[0] != _GENESIS_TAG or message[1] != size - 2 or message[2:4] != _NONCE_HEAD:
        return None
    at = 22 + message[21]  # where the model's name ends
    if message[20] != _MODEL or not 22 < at < size - 1 or message[at] != _VERSION or not 0 < message[at + 1] < 0x80:
        return None
    parent = message[at + 4 :]
    if at + 2 != size and (message[at + 2 : at + 4] != _PARENT_HEAD or len(parent) != ITEM_ID_SIZE):
        return None
    try:
        return Genesis(message[4:20], message[22:at].decode(), message[at + 1], parent)
    except UnicodeDecodeError:
        return None


def read_genesis(message: bytes) -> Genesis:
    """Read a received genesis, or raise `InvalidMutation`."""
    plain = _plain_genesis(message)
    if plain is not None:
        return plain
    genesis = _parse(Kind.GENESIS, message).genesis
    link = (genesis.link.source, genesis.link.target) if genesis.HasField("link") else None
    view = Inception(genesis.view.key, genesis.view.proof) if genesis.HasField("view") else None
    if view is not None and (len(view.key), len(view.proof), len(genesis.nonce)) != (KEY_SIZE, SIGNATURE_SIZE, 0):
        raise InvalidMutation("the genesis of a view has an inception key, its signature, and no nonce")
    if view is None and len(genesis.nonce) != NONCE_SIZE:
        raise InvalidMutation(f"a genesis has a nonce of {NONCE_SIZE} bytes, not {len(genesis.nonce)}")
    if not 0 < len(genesis.model.encode()) <= MODEL_NAME_SIZE_MAX or not genesis.version:
        raise InvalidMutation("a genesis names a model and its version")
    if len(genesis.parent) not in (0, ITEM_ID_SIZE) or (link and any(len(end) != ITEM_ID_SIZE for end in link)):
        raise InvalidMutation("a parent or an end of a link is no item id")
    return Genesis(genesis.nonce, genesis.model, genesis.version, genesis.parent, link, view)


def write_genesis(genesis: Genesis) -> bytes:
    """Encode a genesis, or raise `InvalidInput` if receivers would refuse it."""
    proto = message_pb2.Genesis(
        nonce=genesis.nonce, model=genesis.model, version=genesis.version, parent=genesis.parent
    )
    if genesis.link is not None:
        proto.link.source, proto.link.target = genesis.link
    if genesis.view is not None:
        proto.view.key, proto.view.proof = genesis.view
    message = message_pb2.Message(genesis=proto).SerializeToString(deterministic=True)
    _refuse_own(read_genesis, message)
    return message


def read_change(message: bytes) -> Change:
    """Read a received change, or raise `InvalidMutation`."""
    change = _parse(Kind.CHANGE, message).change
    which = change.WhichOneof("change")
    if which is None:
        raise InvalidMutation("a change of a kind that this version does not know")
    if which == "deleted":
        return Change(deleted=change.deleted)
    if which == "access":
        return Change(access=read_access(change.access))
    item = change.parent if which == "parent" else change.forked_to
    if len(item) != ITEM_ID_SIZE and (which != "parent" or item):
        raise InvalidMutation(f"a change of {which} names {len(item)} bytes, which is no item id")
    return Change(parent=item) if which == "parent" else Change(forked_to=item)


def write_change(change: Change) -> bytes:
    """Encode a change, or raise `InvalidInput` if receivers would refuse it."""
    parts = {name: part for name, part in change._asdict().items() if part is not None}
    if change.access is not None:
        parts["access"] = write_access(change.access)
    proto = message_pb2.Change(**parts)
    message = message_pb2.Message(change=proto).SerializeToString(deterministic=True)
    _refuse_own(read_change, message)
    return message


def _refuse_own(read: object, message: bytes) -> None:
    """Refuse to write a message that every receiver would refuse."""
    try:
        read(message)  # type: ignore[operator]
    except InvalidMutation as error:
        raise InvalidInput(str(error)) from None
