"""Checks of an LMDB file by hand, before it is mapped: a page beyond the end of a mapped file kills the process.

LMDB trusts its file. A file that was cut short, or whose tree of pages has changed, ends a process that reads it with a
signal and without a word. The *meta pages* 0 and 1 name the last page and the roots of the trees; branch pages name
pages, leaf pages have nodes (a key with a value, or with the first of its *overflow pages*). Only what is reachable is
looked at: free pages have old content. Everything that is read is bounded and compared with the size of the file.

The layout is that of LMDB 0.9, 64 bits, little-endian:

    page   number(u64) _(u16) flags(u16) lower(u16) upper(u16), then offsets of nodes (u16 each); lower ends them
    meta   a page, then magic(u32) version(u32) _(u64) map size(u64), tree of free pages, main tree, last page(u64),
           transaction(u64)
    tree   page size, in the first one(u32) flags(u16) depth(u16) three counts(u64) entries(u64) root(u64)
    node   size or page(u32, with the flags for a page) flags(u16) key size(u16), key, value
"""

from __future__ import annotations

import os
import struct
from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np

_META = struct.Struct("<II8xQI4x32xQ8x32xQQQ")  # from byte 16 on: magic, version, map size, page size, roots, last, txn
_HEADER = struct.Struct("<Q2xHHH")
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_HEADER_SIZE, _NODE_SIZE, _TREE_SIZE = 16, 8, 48
_BRANCH, _LEAF, _OVERFLOW, _META_PAGE, _KINDS = 1, 2, 4, 8, 0x6F
_BIG, _TREE = 1, 2  # flags of a node: its value is in overflow pages; its value is a tree
_NO_PAGE = (1 << 64) - 1
_PAGE_SIZES = frozenset(1 << power for power in range(9, 17))
_DEPTH_MAX = 32
_TRIES = 5

#: Pages that are looked at when a file is opened; the whole file is checked by `antiphon verify`. Measured: 50 µs each.
OPEN_PAGES_MAX = 128


@dataclass(frozen=True, slots=True)
class MapMeta:
    """The valid meta page of a file with the greatest transaction."""

    page_size: int
    roots: tuple[int, int]  # of the free pages and of the main tree
    last_page: int
    transaction: int


def map_fault(file: Path, pages_max: int | None = OPEN_PAGES_MAX, transaction: int | None = None) -> str:
    """Return why a file must not be mapped; "" if it may be, or does not exist, or is empty and thus new.

    The trees are followed to `pages_max` pages, with None to their ends. Another process may write meanwhile, and then
    it is looked at again. With `transaction`, the state after that one is checked, which a reader keeps from changing.
    """
    fault = ""
    for _ in range(_TRIES):
        try:
            handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        try:
            before = _metas(handle)
            fault = _fault(handle, before, pages_max, transaction)
            if not fault or _metas(handle) == before:
                return fault
        finally:
            os.close(handle)
    return "" if pages_max is not None else fault


def _metas(handle: int) -> list[MapMeta]:
    """Read the valid meta pages, the latest transaction last."""
    first = _meta(os.pread(handle, 512, 0))
    sizes = [first.page_size] if first is not None else sorted(_PAGE_SIZES)
    second = next((found for size in sizes if (found := _meta(os.pread(handle, 512, size))) is not None), None)
    metas = [meta for meta in (first, second) if meta is not None]
    return sorted(metas, key=attrgetter("transaction"))


def _meta(data: bytes) -> MapMeta | None:
    if len(data) < _HEADER_SIZE + _META.size or _HEADER.unpack_from(data)[1] != _META_PAGE:
        return None
    magic, version, _, page_size, free, main, last, transaction = _META.unpack_from(data, _HEADER_SIZE)
    if magic != _MAGIC or version != _VERSION or page_size not in _PAGE_SIZES:
        return None
    return MapMeta(page_size, (free, main), last, transaction)


def _fault(handle: int, metas: list[MapMeta], pages_max: int | None, transaction: int | None) -> str:
    size = os.fstat(handle).st_size
    if not size:
        return ""
    if not metas:
        return "it does not begin as a file of LMDB does"
    meta = next((one for one in metas if one.transaction == transaction), metas[-1])
    if len(metas) == 1 and meta.transaction > 1:
        return "one of its two first pages has changed"
    # Pages at the end that a transaction took and gave back are perhaps not written: then the trees decide.
    short = size < (meta.last_page + 1) * meta.page_size
    return MapWalk(handle, meta, size).fault(None if short else pages_max)


class MapWalk:
    """Follows the trees of a file, from the roots down, each page once."""

    def __init__(self, handle: int, meta: MapMeta, size: int) -> None:
        self._handle = handle
        self._meta = meta
        self._size = size
        self._pages = min(meta.last_page + 1, size // meta.page_size)
        self._short = size < (meta.last_page + 1) * meta.page_size
        self._seen: set[int] = set()
        self._free: list[int] = []
        self._next: deque[tuple[int, int, bool]] = deque()  # page, depth, True if of the free pages

    def fault(self, pages_max: int | None) -> str:
        """Return what is wrong with the trees; "" if nothing is, in as many pages as may be looked at."""
        free, main = self._meta.roots
        self._next.extend((root, 0, root == free) for root in (main, free) if root != _NO_PAGE)
        looked = 0
        while self._next and (pages_max is None or looked < pages_max):
            looked += 1
            fault = self._page(*self._next.popleft())
            if fault:
                return fault
        if pages_max is None and not self._seen.isdisjoint(self._free):
            return "pages that are in use are listed as free"
        return ""

    def _take(self, page: int, count: int = 1) -> str:
        """Count pages as in use. Return why they cannot be; else ""."""
        if page < 2 or page + count > self._pages:
            if self._short:
                wanted = (self._meta.last_page + 1) * self._meta.page_size
                return f"it is cut short: it has {self._size} bytes of {wanted}"
            return f"it refers to page {page}, which it does not have"
        for one in range(page, page + count):
            if one in self._seen:
                return f"page {one} is used twice"
            self._seen.add(one)
        return ""

    def _page(self, number: int, depth: int, free: bool) -> str:
        fault = self._take(number)
        if fault or depth > _DEPTH_MAX:
            return fault or "its tree is too deep"
        size = self._meta.page_size
        data = os.pread(self._handle, size, number * size)
        own, flags, lower, upper = _HEADER.unpack_from(data)
        kind = flags & _KINDS
        if own != number or kind not in (_BRANCH, _LEAF) or not _HEADER_SIZE <= lower <= upper <= size:
            return f"page {number} is no page of its tree"
        at = np.frombuffer(data, "<u2", (lower - _HEADER_SIZE) // 2, _HEADER_SIZE).astype(np.int64)
        if not len(at):
            return "" if kind == _LEAF and not depth else f"page {number} is empty"
        if at.min() < upper or at.max() > size - _NODE_SIZE or (at & 1).any():
            return f"page {number} has a node outside of it"
        words = np.frombuffer(data, "<u2")
        low, high, marks, keys = (words[at // 2 + index].astype(np.int64) for index in range(4))
        values = low | high << 16
        if kind == _BRANCH:
            if (at + _NODE_SIZE + keys).max() > size:
                return f"page {number} has a key outside of it"
            self._next.extend((page, depth + 1, free) for page in (values | marks << 32).tolist())
            return ""
        stored = np.where(marks & _BIG, 8, values)
        if (at + _NODE_SIZE + keys + stored).max() > size or (marks > _BIG | _TREE).any():
            return f"page {number} has a value outside of it"
        special = np.flatnonzero(marks) if not free else np.arange(len(at))
        for index in special.tolist():
            start = int(at[index]) + _NODE_SIZE + int(keys[index])
            fault = self._value(data, start, int(values[index]), int(marks[index]), free)
            if fault:
                return fault
        return ""

    def _value(self, data: bytes, start: int, size: int, marks: int, free: bool) -> str:
        """Look at a value that is a tree, or in overflow pages, or a list of free pages."""
        if marks & _TREE:
            if free or size != _TREE_SIZE:
                return "a table has no entry of its own any more"
            root = int.from_bytes(data[start + 40 : start + 48], "little")
            if root != _NO_PAGE:
                self._next.append((root, 0, False))
            return ""
        where, content = start, data
        if marks & _BIG:
            page, page_size = int.from_bytes(data[start : start + 8], "little"), self._meta.page_size
            if page < 2 or page >= self._pages:
                return self._take(page)
            content = os.pread(self._handle, _HEADER_SIZE + (size if free else 0), page * page_size)
            own, flags, low, high = _HEADER.unpack_from(content)
            count = low | high << 16
            if own != page or flags & _KINDS != _OVERFLOW or size > count * page_size - _HEADER_SIZE:
                return f"page {page} does not hold the value that it should"
            fault, where = self._take(page, min(count, self._pages)), _HEADER_SIZE
            if fault:
                return fault
        if free:
            pages = np.frombuffer(content[where : where + size // 8 * 8], "<u8")
            if not len(pages) or int(pages[0]) > len(pages) - 1:
                return "its list of free pages has changed"
            self._free += pages[1 : 1 + int(pages[0])].tolist()
        return ""
