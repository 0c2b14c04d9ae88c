"""Check the pages of a Parquet file before they are decoded: their decompressed size, their encoding.

The footer of the file states sizes too, but a hostile writer can state anything there, and a dictionary or a run of
levels expands a few bytes to gigabytes. The decoder goes by the header of each page, so this module reads these
headers. They are structs of Thrift's compact protocol.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from antiphon.core.errors import TooLarge

_DATA_PAGE = 0
_PLAIN = 0
_DEPTH_MAX = 8
_VARINT_SIZE_MAX = 10

_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)


class Page(NamedTuple):
    """The sizes in the header of a data page."""

    size: int  # decompressed
    values: int  # nulls included


def check_pages(path: Path, group: pq.RowGroupMetaData, size_max: int, values_max: int) -> None:
    """Raise `TooLarge` if a row group decodes to more than `size_max` bytes, or one of its columns to more than
    `values_max` values. Raise `ValueError` if its pages are malformed, or encoded otherwise than an export encodes.
    """
    size = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for number in range(group.num_columns):
            chunk = group.column(number)
            values = 0
            if chunk.has_dictionary_page:
                raise ValueError(f"column {chunk.path_in_schema} has a dictionary")
            for page in _pages(data, chunk.data_page_offset, chunk.total_compressed_size):
                size += page.size
                values += page.values
                if size > size_max or values > values_max:
                    raise TooLarge(f"{path}: a row group is larger than {size_max} bytes or {values_max} values")


def _pages(data: mmap.mmap, start: int, size: int) -> Iterator[Page]:
    stop = start + size
    if not 0 <= start <= stop <= len(data):
        raise ValueError("a column lies outside of the file")
    while start < stop:
        header = _Header(data, start, stop)
        fields = header.struct(_DEPTH_MAX)
        about = fields.get(5)
        if fields.get(1) != _DATA_PAGE or not isinstance(about, dict) or about.get(2) != _PLAIN:
            raise ValueError("a page is encoded otherwise than those of an archive")
        yield Page(_count(fields.get(2)), _count(about.get(1)))
        start = header.at + _count(fields.get(3))
    if start != stop:
        raise ValueError("a page is longer than its column")


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("the header of a page lacks a size")
    return value


class _Header:
    """Reads one struct from the bytes of a file; `at` is the position behind what was read."""

    def __init__(self, data: mmap.mmap, start: int, stop: int) -> None:
        self._data = data
        self._stop = stop
        self.at = start

    def struct(self, depth: int) -> dict[int, Any]:
        """The fields of a struct by number: values of integers and structs, None for all other types."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in fields:
                raise ValueError("the header of a page has a field twice")
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT and depth:
            return self.struct(depth - 1)
        if kind == _BINARY:
            self._skip(self._varint())
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _I8:
            self._skip(1)
        elif kind not in (_TRUE, _FALSE):  # no header of a page has lists or maps
            raise ValueError("the header of a page cannot be read")
        return None

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > self._stop:
            raise ValueError("the header of a page is cut off")

    def _varint(self) -> int:
        value = 0
        for at in range(_VARINT_SIZE_MAX):
            byte = self._byte()
            value |= (byte & 127) << 7 * at
            if byte < 128:
                return value
        raise ValueError("the header of a page has a number that does not end")

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
