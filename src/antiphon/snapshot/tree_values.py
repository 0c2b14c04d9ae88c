"""Values of a tree: small ones are in the leaf, larger ones are content that the leaf links."""

from __future__ import annotations

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.snapshot import content
from antiphon.snapshot.blobs import BlobBatch, Blobs
from antiphon.snapshot.chunks import ITEM_CHUNKS, cut
from antiphon.snapshot.limits import VALUE_INLINE_MAX, VALUE_SIZE_MAX


def store(value: bytes, batch: BlobBatch) -> bytes | Cid:
    """Return the leaf's form of a value: the bytes, or the link to content that is put into the batch."""
    if len(value) <= VALUE_INLINE_MAX:
        return bytes(value)  # never a Cid, even if the caller passes one
    if len(value) > VALUE_SIZE_MAX:
        raise TooLarge(f"a value of {len(value)} bytes, at most {VALUE_SIZE_MAX} are allowed; keep it as a file")
    return content.add(cut(value, ITEM_CHUNKS), batch)


def load(held: bytes | Cid, blobs: Blobs) -> bytes:
    """Return the value for its form in a leaf. Refuse a form that `store` would not make: a value has one CID."""
    if not isinstance(held, Cid):
        return held
    value = content.read(held, blobs, rule=ITEM_CHUNKS)
    if len(value) <= VALUE_INLINE_MAX:
        raise BadEncoding(f"content {held}: a value of {len(value)} bytes belongs into its leaf")
    return value
