"""Examples of the frames of a link."""

from __future__ import annotations

from hashlib import sha256

from tools.example import PARTY, Example

from antiphon.mesh.link.frames import Data, Digest, Frame, Ping, Pong, Show, Shown, Tags, decode, encode
from antiphon.mesh.link.party_tags import ANSWERING, DIALLER, PartyTags

_CHANNEL = bytes(range(32))  # a handshake hash
_DIALLER, _ANSWERING = PartyTags(_CHANNEL, DIALLER), PartyTags(_CHANNEL, ANSWERING)
_TAG = _DIALLER.tag(PARTY.key)
_FRAMES: dict[str, Frame] = {
    "tags": Tags(tuple(sorted((_TAG, *(bytes((number,)) * 16 for number in range(15)))))),
    "show": Show(_TAG, _DIALLER.close(PARTY.key, 0, b"a message")),
    "shown": Shown(),
    "digest": Digest(_ANSWERING.tag(PARTY.key), sha256(b"").digest()),
    "data": Data(_TAG, first=True, last=True, piece=b"a message"),
    "ping": Ping(b"12345678"),
    "pong": Pong(b"12345678"),
}


def link_examples() -> dict[str, Example]:
    """One frame of each kind."""
    return {f"link-{name}": Example(encode(frame), _again) for name, frame in _FRAMES.items()}


def _again(data: bytes) -> bytes:
    return encode(decode(data))
