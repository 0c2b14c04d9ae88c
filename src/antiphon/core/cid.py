"""CIDs name blobs by their content: version 1, SHA-256, codec raw or DAG-CBOR, and nothing else.

>>> cid = Cid.of(b"hello")
>>> str(cid)
'bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq'
>>> Cid.parse(str(cid)) == cid, cid.matches(b"hullo")
(True, False)
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import libipld

from antiphon.core.errors import BadEncoding, TooLarge

RAW = 0x55
DAG_CBOR = 0x71
CID_SIZE = 36
BLOB_SIZE_MAX = 4 << 20
_CODECS = (RAW, DAG_CBOR)
_TEXT_MAX = 128


class Cid(bytes):
    """36 bytes: version, codec, hash function, length, digest."""

    __slots__ = ()

    def __new__(cls, raw: bytes) -> Cid:
        if len(raw) != CID_SIZE or raw[0] != 1 or raw[1] not in _CODECS or raw[2:4] != b"\x12\x20":
            raise BadEncoding(f"{raw[:40].hex()} is no CID of version 1 with SHA-256 and codec raw or DAG-CBOR")
        return super().__new__(cls, raw)

    @classmethod
    def of(cls, data: bytes, codec: int = RAW) -> Cid:
        """Return the CID of a blob."""
        return cls(bytes((1, codec, 0x12, 0x20)) + sha256(data).digest())

    @classmethod
    def parse(cls, text: str) -> Cid:
        """Parse the text form; only the canonical one (base32, lower case) is accepted."""
        if not text.isascii() or len(text) > _TEXT_MAX:
            raise BadEncoding(f"{text[:60]!r} is no CID")
        try:
            parts = libipld.decode_cid(text)
            digest = parts["hash"]["digest"]
            raw = bytes((parts["version"], parts["codec"], parts["hash"]["code"], len(digest))) + digest
        except (ValueError, TypeError, OverflowError) as error:
            raise BadEncoding(f"{text!r} is no CID: {error}") from None
        cid = cls(raw)
        if str(cid) != text:
            raise BadEncoding(f"{text!r} is not the canonical text of {cid}")
        return cid

    @property
    def codec(self) -> int:
        """Codec of the blob: `RAW` or `DAG_CBOR`."""
        return self[1]

    @property
    def digest(self) -> bytes:
        """SHA-256 digest of the blob."""
        return self[4:]

    def matches(self, data: bytes) -> bool:
        """True if these are the bytes that the CID names."""
        return sha256(data).digest() == self.digest

    def __str__(self) -> str:
        text: str = libipld.encode_cid(bytes(self))
        return text

    def __repr__(self) -> str:
        return f"Cid({self})"


def encode_node(value: Any) -> bytes:
    """Encode a value as DAG-CBOR."""
    try:
        blob: bytes = libipld.encode_dag_cbor(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadEncoding(f"not a DAG-CBOR value: {error}") from None
    return blob


def decode_node(blob: bytes) -> Any:
    """Decode a DAG-CBOR blob; refuse it unless it is the canonical encoding of its value."""
    if len(blob) > BLOB_SIZE_MAX:
        raise TooLarge(f"a blob of {len(blob)} bytes, at most {BLOB_SIZE_MAX} are allowed")
    try:
        value = libipld.decode_dag_cbor(blob)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadEncoding(f"not DAG-CBOR: {error}") from None
    # libipld accepts one non-minimal integer form; a second form of a value would have a second CID.
    if encode_node(value) != blob:
        raise BadEncoding("not the canonical DAG-CBOR encoding of its value")
    return value
