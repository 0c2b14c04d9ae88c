"""Nodes of a tree: how they are written, and the rule that gives a tree its one shape.

A leaf is [0, [key, value, …]], an inner node [level, [last key, link, count, …]]. The end of a node follows from the
hashes of keys alone, and from the maximum number of entries if no key ends it before.

>>> node = Node.leaf([LeafEntry(b"k" * 16, b"value")])
>>> Node.decode(node.encode(), "example") == node
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from operator import lt
from typing import NamedTuple

from antiphon.core.cid import CID_SIZE, DAG_CBOR, Cid
from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.snapshot.cbor import LINK_HEAD, LINK_SIZE, RAW_BYTES, CborReader, array, head, uint
from antiphon.snapshot.limits import (
    COUNT_MAX,
    INNER_ENTRIES_MAX,
    LEAF_ENTRIES_MAX,
    LEVEL_MAX,
    VALUE_INLINE_MAX,
)

KEY_SIZES = (16, 32)
#: Low bits of a key's SHA-256 that must be zero for the key to end a node of a level: 4, then 6 more for each level.
_MASKS = tuple((1 << (4 + 6 * level)) - 1 for level in range(LEVEL_MAX))
_KEY_HEADS = {size: head(RAW_BYTES, size) for size in KEY_SIZES}
_VALUE_HEADS = tuple(head(RAW_BYTES, size) for size in range(VALUE_INLINE_MAX + 1))
_ROOM = bytes(16)  # after the data, so that reading the head of an item needs no bounds check


def ends(key: bytes, level: int) -> bool:
    """True if a node of this level ends at this key."""
    return level < LEVEL_MAX and not int.from_bytes(sha256(key).digest()[-8:], "big") & _MASKS[level]


def entries_max(level: int) -> int:
    return INNER_ENTRIES_MAX if level else LEAF_ENTRIES_MAX


def check_key(key: bytes, size: int) -> None:
    """Refuse a key of the wrong size; `size` is the size of the tree's other keys, or 0."""
    if len(key) not in KEY_SIZES or (size and len(key) != size):
        raise InvalidInput(f"a key has {size or '16 or 32'} bytes in this tree, not {len(key)}: {key.hex()[:80]}")


class LeafEntry(NamedTuple):
    """A key with its value, or the link to a large value. A `Cid` is always a link."""

    key: bytes
    value: bytes | Cid


class InnerEntry(NamedTuple):
    """The last key of a child, the link to it, and the number of leaf entries below it."""

    key: bytes
    link: Cid
    below: int


class Node(NamedTuple):
    """One node, as columns: keys, and for each the value or link of a leaf, or the link to a child with its count."""

    level: int
    keys: tuple[bytes, ...]
    held: tuple[bytes | Cid, ...]
    below: tuple[int, ...] = ()

    @classmethod
    def leaf(cls, entries: Sequence[LeafEntry]) -> Node:
        return cls(0, tuple(key for key, _ in entries), tuple(value for _, value in entries))

    @classmethod
    def inner(cls, level: int, entries: Sequence[InnerEntry]) -> Node:
        keys, links, below = zip(*entries, strict=True)
        return cls(level, keys, links, below)

    @property
    def entries(self) -> list[LeafEntry]:
        """The entries of a leaf."""
        assert self.level == 0
        return list(map(LeafEntry, self.keys, self.held))

    def child(self, index: int) -> InnerEntry:
        return InnerEntry(self.keys[index], Cid(self.held[index]), self.below[index])

    @property
    def total(self) -> int:
        """The number of leaf entries in and below the node."""
        return sum(self.below) if self.level else len(self.keys)

    def encode(self) -> bytes:
        key_head = _KEY_HEADS[len(self.keys[0])]
        parts = [array(2), uint(self.level), array((3 if self.level else 2) * len(self.keys))]
        if self.level:
            for key, link, below in zip(self.keys, self.held, self.below, strict=True):
                parts += (key_head, key, LINK_HEAD, link, uint(below))
        else:
            for key, value in zip(self.keys, self.held, strict=True):
                parts += (key_head, key, LINK_HEAD if isinstance(value, Cid) else _VALUE_HEADS[len(value)], value)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, what: str) -> Node:
        """Decode a node; refuse bytes that are not one. `check_shape` then checks where it ends."""
        reader = CborReader(data, what)
        if reader.array() != 2:
            raise BadEncoding(f"{what}: a node is a level and a list")
        level, items = reader.uint(), reader.array()
        if level > LEVEL_MAX:
            raise BadEncoding(f"{what}: level {level}, at most {LEVEL_MAX} is allowed")
        count, over = divmod(items, 3 if level else 2)
        if over or not 0 < count <= entries_max(level):
            raise BadEncoding(f"{what}: {items} items in a node of level {level}")
        if level:
            node = cls(level, *_read_inner(data, reader.at, count, what))
        else:
            node = cls(level, *_read_leaf(data, reader.at, count, what))
        if not all(map(lt, node.keys, node.keys[1:])):
            raise BadEncoding(f"{what}: keys do not ascend")
        return node

    def check_shape(self, what: str, *, rightmost: bool) -> None:
        """Refuse a node that does not end by the rule; only the last of its level may end early."""
        level, last = self.level, self.keys[-1]
        low = _MASKS[level > 0] & 0xFF  # the last byte excludes most keys
        for key in self.keys[:-1]:
            if not sha256(key).digest()[31] & low and ends(key, level):
                raise BadEncoding(f"{what}: the node continues after {key.hex()}, which ends it")
        if not rightmost and len(self.keys) < entries_max(level) and not ends(last, level):
            raise BadEncoding(f"{what}: the node ends at {last.hex()}, which does not end it")


# -- decoding; optimised, as every read and update of a tree uses it


def _key_form(data: bytes, at: int, what: str) -> tuple[int, bytes]:
    """Return the size of the keys of a node, and the CBOR head of each."""
    for size, key_head in _KEY_HEADS.items():
        if data.startswith(key_head, at):
            return size, key_head
    raise BadEncoding(f"{what}: keys have 16 or 32 bytes")


def _read_leaf(data: bytes, at: int, count: int, what: str) -> tuple[tuple[bytes, ...], tuple[bytes | Cid, ...]]:
    key_size, key_head = _key_form(data, at, what)
    end, padded = len(data), data + _ROOM
    keys, held = [], list[bytes | Cid]()
    for _ in range(count):
        start = at + len(key_head)
        if padded[at:start] != key_head:
            raise BadEncoding(f"{what}: no key at offset {at}")
        at = start + key_size
        keys.append(data[start:at])
        if padded.startswith(LINK_HEAD, at):
            at += LINK_SIZE
            held.append(Cid(data[at - CID_SIZE : at]))
        else:
            size, start = _value_head(padded, at) if at < end else (-1, 0)
            if size < 0:
                raise BadEncoding(f"{what}: no value of up to {VALUE_INLINE_MAX} bytes at offset {at}")
            at = start + size
            held.append(data[start:at])
        if at > end:
            break
    if at != end:
        raise BadEncoding(f"{what}: {end} bytes, not as many as its entries take")
    return tuple(keys), tuple(held)


def _value_head(padded: bytes, at: int) -> tuple[int, int]:
    """Return the size and the start of the value at an offset; size -1 if there is none."""
    first = padded[at] - (RAW_BYTES << 5)
    if 0 <= first < 24:
        return first, at + 1
    if first == 24 and padded[at + 1] >= 24:
        return padded[at + 1], at + 2
    size = int.from_bytes(padded[at + 1 : at + 3], "big")
    return (size, at + 3) if first == 25 and 256 <= size <= VALUE_INLINE_MAX else (-1, 0)


def _inner_form(key_size: int) -> re.Pattern[bytes]:
    """Return the pattern of an inner entry: a key, a link, and a count of at least 1 in its shortest form."""
    parts = (
        re.escape(_KEY_HEADS[key_size]) + b"(.{%d})" % key_size,
        re.escape(LINK_HEAD) + b"(" + re.escape(bytes((1, DAG_CBOR, 0x12, 0x20))) + b".{32})",
        rb"([\x01-\x17]|\x18[\x18-\xff]|\x19[\x01-\xff].|\x1a(?!\x00\x00).{4}|\x1b(?!\x00{4}).{8})",
    )
    return re.compile(b"".join(parts), re.DOTALL)


_INNER_FORMS = {size: _inner_form(size) for size in KEY_SIZES}


def _read_inner(
    data: bytes, at: int, count: int, what: str
) -> tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[int, ...]]:
    key_size, key_head = _key_form(data, at, what)
    found = _INNER_FORMS[key_size].findall(data, at)
    keys, links, counts = zip(*found, strict=True) if found else ((), (), ())
    taken = len(found) * (len(key_head) + key_size + LINK_SIZE) + sum(map(len, counts))
    if len(found) != count or taken != len(data) - at:  # `findall` has skipped bytes
        raise BadEncoding(f"{what}: not {count} times a key, a link and a count")
    below = tuple(number[0] if len(number) == 1 else int.from_bytes(number[1:], "big") for number in counts)
    if max(below) > COUNT_MAX:
        raise BadEncoding(f"{what}: a count of {max(below)}")
    return keys, links, below
