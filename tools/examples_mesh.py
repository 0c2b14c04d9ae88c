"""Examples of the messages of the replication protocol."""

from __future__ import annotations

from tools.example import ALICE, BOB_DATA, CONTROL, DATA, LAPTOP, PARTY, SNAPSHOT, Example

from antiphon.feed.chain import Head
from antiphon.feed.head_proof import HeadProof
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.member.device_proof import vouch
from antiphon.mesh.replication.codec import decode, encode
from antiphon.mesh.replication.message import (
    Announcement,
    Blobs,
    Body,
    Branch,
    Enough,
    Holding,
    Message,
    More,
    Ranges,
    Show,
    Tip,
    Tips,
    Want,
    WantBlobs,
    WantBranch,
    WantTips,
)

_HOLDINGS = (
    Holding(bytes(CONTROL.key), 0, 3, bytes(range(32)), control=True),
    Holding(bytes(DATA.key), 40, 42, bytes(range(32, 64)), fork=41, branches=1),
)
_WORD = vouch(PARTY.key, Identity(ALICE), Device(LAPTOP, ALICE.key))
_BODIES: dict[str, Body | None] = {
    "greeting": None,
    "show": Show((_WORD,)),
    "announcement": Announcement(0, 3, _HOLDINGS),
    "want": Want(1, 512 << 10, ((bytes(CONTROL.key), 0),), (bytes(DATA.key),)),
    "more": More(1, 2 << 20, (bytes(BOB_DATA.key),)),
    "enough": Enough((bytes(DATA.key),)),
    "want-branch": WantBranch(3, bytes(DATA.key), 1, bytes(range(32)), 0),
    "want-tips": WantTips(4, bytes(CONTROL.key)),
    "tips": Tips(4, (Tip(2, bytes(range(32))), Tip(5, bytes(range(32, 64)))), more=True),
    "want-blobs": WantBlobs(2, (SNAPSHOT,)),
    "blobs": Blobs(2, (), (SNAPSHOT,)),
}


def mesh_examples(span: bytes, head: Head) -> dict[str, Example]:
    """A session from its first word on; `span` is a range of a feed, and `head` that of one."""
    bodies = {**_BODIES, "ranges": Ranges(1, (span,), ((bytes(BOB_DATA.key), 7),)), "branch": Branch(3, (span,))}
    bodies["pushed"] = Announcement(3, 4, (Holding(bytes(DATA.key), 0, 2, bytes(range(32))),), (span,))
    bodies["branch-pruned"] = Branch(3, (), HeadProof((), head).encode())
    return {f"mesh-{name}": Example(encode(_message(name, body)), _again) for name, body in bodies.items()}


def _message(name: str, body: Body | None) -> Message:
    if name in ("greeting", "show"):
        return Message(bytes(PARTY.key), b"alice's.", b"", 0, body, bytes(range(32)))
    return Message(b"", b"alice's.", b"bob's...", 5, body)


def _again(data: bytes) -> bytes:
    return encode(decode(data))
