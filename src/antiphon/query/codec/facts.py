"""The encoding of `Facts` in the item index: claims to parents, then the rest as packed JSON, with checksums.

>>> facts = Facts(b"i" * 16, "object", 1, {"size": 1.0, "raw": b"x"}, name="a")
>>> decode_facts(encode_facts(facts)) == facts
True

The parent is left out, since it depends on other items too: the caller passes it to `decode_facts`. Claims are stored
apart, in rows of one size: an item that was moved thousands of times has thousands, and few changes concern them.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache, partial
from typing import Any

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, DamagedItems, InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.value import Reference, Value
from antiphon.query.facts import Facts
from antiphon.query.packed_json import pack, unpack

Claims = tuple[tuple[Stamp, bytes], ...]
Encoded = bytes | memoryview
_VALUE = 3  # its index in the list
_CLAIM = struct.Struct("<Q32sQ?16s")  # lamport, feed, seq, has a parent, parent
_U32_SIZE = 4
_LONG = 1 << 16  # bytes of a value that is stored after the other fields, so that it need not be read with them
_APART = b"\0"  # what facts with such a value begin with; JSON does not
_NO_VALUE = b"null"
_new = tuple.__new__  # half the price of calling the class


def encode_facts(facts: Facts) -> bytes:
    """Encode facts. Equal facts of equal models have equal bytes, so that an unchanged item is recognised."""
    claims = _encode_claims(facts.claims)
    value = pack(facts.value).encode()
    parts: tuple[bytes, ...]
    if len(value) < _LONG:
        parts = (_fields_text(facts, value),)
    else:
        fields = _fields_text(facts, _NO_VALUE)
        parts = _APART, u32(len(fields)), fields, value
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join((u32(len(claims)), claims, u32(checksum), *parts))


def encode_rest(facts: Facts) -> bytes:
    """Encode all but claims and value, for callers that store these elsewhere: see `decode_rest`."""
    fields = _fields_text(facts, _NO_VALUE)
    return u32(zlib.crc32(fields)) + fields


def _fields_text(facts: Facts, value: bytes) -> bytes:
    rest = pack(
        [
            facts.type,
            facts.name,
            int(facts.deleted),
            facts.created_ms,
            [end.hex() for end in facts.link or ()],
            facts.view_class,
            facts.view_key.hex(),
            [item.hex() for item in facts.embeds],
            [[reference.item.hex(), reference.party.hex()] for reference in facts.references],
            facts.forked_to.hex(),
        ]
    )
    # The value is encoded apart, since only the value can be long.
    return b'["%b",%b,%b,%b' % (facts.id.hex().encode(), _model(facts.model, facts.version), value, rest[1:].encode())


@lru_cache(maxsize=1 << 10)
def _model(name: str, version: int) -> bytes:
    return pack([name, version])[1:-1].encode()


def _encode_claims(claims: Claims) -> bytes:
    pack_claim = _CLAIM.pack
    rows = b"".join([pack_claim(at[0], at[1], at[2], bool(parent), parent) for at, parent in claims])
    return u32(zlib.crc32(rows)) + rows if rows else b""


def decode_claims(claims: bytes) -> Claims:
    """Read claims as `apart` returns them, or raise `DamagedItems`."""
    rows = claims[_U32_SIZE:]
    if claims[:_U32_SIZE] != (u32(zlib.crc32(rows)) if rows else b"") or len(rows) % _CLAIM.size:
        raise _damaged(BadEncoding("the checksum of claims is another"))
    known: dict[bytes, bytes] = {b"": b""}  # each feed and parent once, however often they are named
    once = known.setdefault
    return tuple(
        [
            (_new(Stamp, (lamport, once(feed, feed), seq)), once(above, above) if under else b"")
            for lamport, feed, seq, under, above in _CLAIM.iter_unpack(rows)
        ]
    )


def decode_both(before: bytes, after: bytes) -> tuple[Claims, Claims]:
    """Read the claims of an item before and after a change. If claims were only added, both share their values."""
    found = decode_claims(after)
    shared = len(before) <= len(after) and before[_U32_SIZE:] == after[_U32_SIZE : len(before)]
    return found[: len(before) // _CLAIM.size] if shared else decode_claims(before), found


def apart(encoded: bytes) -> tuple[bytes, Encoded]:
    """Split encoded facts into the two stored parts: the claims, and the rest, which is not copied if it is long."""
    end = _U32_SIZE + int.from_bytes(encoded[:_U32_SIZE], "little")
    rest = encoded[end:] if len(encoded) < _LONG else memoryview(encoded)[end:]
    return encoded[_U32_SIZE:end], rest


def decode_facts(encoded: bytes, parent: bytes = b"") -> Facts:
    """Read facts, or raise `DamagedItems`: only bytes of the index come here."""
    claims, data = apart(encoded)
    return decode_parts(data, claims, parent)


def decode_parts(data: Encoded, claims: bytes | Claims = b"", parent: bytes = b"") -> Facts:
    """Read facts from the two parts; without claims where the caller does not use them, or with decoded ones.

    A long value is read when it is first used: most changes concern no query that reads it.
    """
    try:
        known = claims if isinstance(claims, tuple) else decode_claims(claims) if claims else ()
        if not _is_apart(data):
            return _facts(_fields(data), known, parent)
        fields, value = _fields_and_value(data)
        facts = _facts(fields, known, parent)
        facts.read_later(partial(_read_value, value))
        return facts
    except (BadEncoding, InvalidInput, ValueError, TypeError, AttributeError) as error:
        raise _damaged(error) from None


def decode_rest(data: bytes, value: str | None) -> Facts:
    """Read the bytes of `encode_rest`, with the value as packed text; or raise `DamagedItems`."""
    try:
        fields = _fields(data)
        if value is not None:
            fields[_VALUE] = unpack(value)
        return _facts(fields, (), b"")
    except (BadEncoding, InvalidInput, ValueError, TypeError, LookupError, AttributeError) as error:
        raise _damaged(error) from None


def decode_value(data: Encoded) -> Value:
    """Read only the value, at half the cost."""
    try:
        return _read_value(_fields_and_value(data)[1]) if _is_apart(data) else _fields(data)[_VALUE]
    except (BadEncoding, ValueError, TypeError, LookupError) as error:
        raise _damaged(error) from None


def _read_value(encoded: memoryview) -> Value:
    try:
        return unpack(str(encoded, "utf-8"))
    except (BadEncoding, ValueError) as error:
        raise _damaged(error) from None


def _is_apart(data: Encoded) -> bool:
    """True if the value follows the other fields, because it is long."""
    return data[_U32_SIZE : _U32_SIZE + 1] == _APART


def _fields_and_value(data: Encoded) -> tuple[Any, memoryview]:
    """Read all fields but the value, and return the encoded value."""
    view = memoryview(data)[_U32_SIZE:]
    if u32(zlib.crc32(view)) != data[:_U32_SIZE]:
        raise BadEncoding("their checksum is another")
    begin = len(_APART) + _U32_SIZE
    end = begin + int.from_bytes(view[len(_APART) : begin], "little")
    return unpack(str(view[begin:end], "utf-8")), view[end:]


def _fields(data: Encoded) -> Any:
    text = data[_U32_SIZE:]
    if u32(zlib.crc32(text)) != data[:_U32_SIZE]:
        raise BadEncoding("their checksum is another")
    return unpack(str(text, "utf-8"))


def _damaged(error: Exception) -> DamagedItems:
    return DamagedItems(f"the item index: the facts of an item have changed ({error}); it is built again")


def _facts(fields: Any, claims: Claims, parent: bytes) -> Facts:
    item, model, version, value, kind, name, deleted, created_ms, link, view, key, embeds, references, fork = fields
    from_hex = bytes.fromhex
    source, target = link or ("", "")
    facts = Facts(
        from_hex(item),
        model,
        version,
        value,
        kind,
        name,
        bool(deleted),
        created_ms,
        claims,
        (from_hex(source), from_hex(target)) if link else None,
        view,
        from_hex(key),
        tuple([from_hex(each) for each in embeds]),
        (),
        parent,
        from_hex(fork),
    )
    if references:
        facts.refer_later(partial(_references, references))
    return facts


def _references(fields: list[list[str]]) -> tuple[Reference, ...]:
    from_hex = bytes.fromhex
    try:
        return tuple([Reference(from_hex(item), from_hex(party)) for item, party in fields])
    except (InvalidInput, ValueError, TypeError) as error:
        raise _damaged(error) from None
