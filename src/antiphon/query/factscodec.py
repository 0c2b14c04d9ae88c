"""The bytes of `Facts`, as the item index keeps them: a checksum, and packed JSON.

>>> facts = Facts(b"i" * 16, "object", 1, {"size": 1.0, "raw": b"x"}, name="a")
>>> decode_facts(encode_facts(facts)) == facts
True

The parent is left out, for an item cannot say it alone: `decode_facts` is told.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding, DamagedItems, InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.value import Reference, Value
from antiphon.query.facts import Facts
from antiphon.query.packed import pack, unpack

_VALUE = 3  # its place in the list


def encode_facts(facts: Facts) -> bytes:
    """Equal facts from equal models have equal bytes, so that it is seen when nothing has changed."""
    first = pack([facts.id.hex(), facts.model, facts.version])
    rest = pack(
        [
            facts.type,
            facts.name,
            int(facts.deleted),
            facts.created_ms,
            [[stamp[0], stamp[1].hex(), stamp[2], parent.hex()] for stamp, parent in facts.claims],
            [end.hex() for end in facts.link or ()],
            facts.view_class,
            facts.view_key.hex(),
            [item.hex() for item in facts.embeds],
            [[reference.item.hex(), reference.party.hex()] for reference in facts.references],
        ]
    )
    data = f"{first[:-1]},{pack(facts.value)},{rest[1:]}".encode()  # apart: only the value can be long and hold text
    return u32(zlib.crc32(data)) + data


def decode_facts(data: bytes, parent: bytes = b"") -> Facts:
    """The facts, or `DamagedItems`: only the index's own bytes come here."""
    try:
        return _facts(_fields(data), parent)
    except (BadEncoding, InvalidInput, ValueError, TypeError, AttributeError) as error:
        raise _damaged(error) from None


def decode_value(data: bytes) -> Value:
    """Only the value, at half the price."""
    try:
        return _fields(data)[_VALUE]
    except (BadEncoding, ValueError, TypeError, LookupError) as error:
        raise _damaged(error) from None


def _fields(data: bytes) -> Any:
    text = data[4:]
    if u32(zlib.crc32(text)) != data[:4]:
        raise BadEncoding("their checksum is another")
    return unpack(text.decode())


def _damaged(error: Exception) -> DamagedItems:
    return DamagedItems(f"the item index: the facts of an item have changed ({error}); it is built again")


def _facts(fields: Any, parent: bytes) -> Facts:
    (item, model, version, value, kind, name, deleted, created_ms, claims, link, view, key, embeds, references) = fields
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
        tuple(
            [(Stamp(lamport, from_hex(feed), seq), from_hex(above)) for lamport, feed, seq, above in claims]
            if claims
            else ()
        ),
        (from_hex(source), from_hex(target)) if link else None,
        view,
        from_hex(key),
        tuple([from_hex(each) for each in embeds]),
        (),
        parent,
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
