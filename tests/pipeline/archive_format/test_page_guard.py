"""Parquet files that would decode to far more bytes than they have are refused before decoding."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.pipeline.archive_format.manifest import (
    BLOBS,
    PARQUET,
    RECORDS,
    SPANS,
    ArchiveFile,
    FileWriter,
    read_row_groups,
)
from antiphon.pipeline.archive_format.page_guard import check_pages

NAME = f"blobs-1-{'0' * 32}.parquet"


def written(folder: Path, table: pa.Table, **options: Any) -> ArchiveFile:
    pq.write_table(table, folder / NAME, **PARQUET | options)
    return ArchiveFile(NAME, table.num_rows, (folder / NAME).stat().st_size, "")


def blobs(count: int, size: int) -> pa.Table:
    return pa.table({"cid": [b"x" * 36] * count, "data": [b"y" * size] * count}, schema=BLOBS)


@pytest.mark.parametrize("columns", [["data"], ["cid"], True])
def test_a_dictionary_is_refused(tmp_path: Path, columns: object) -> None:
    file = written(tmp_path, blobs(100, 100_000), use_dictionary=columns, dictionary_pagesize_limit=1 << 30)
    assert file.bytes < 30_000
    with pytest.raises(InvalidInput, match=NAME):
        list(read_row_groups(tmp_path, file, BLOBS))


def test_a_list_of_nothing_that_is_long_is_refused(tmp_path: Path) -> None:
    row: dict[str, Any] = dict.fromkeys(("party", "feed", "start_hash", "hash", "signature"), b"") | {
        "fork": None,
        "end": None,
    }
    row.update(dict.fromkeys(("start", "start_lamport", "length", "lamport", "why"), 0))
    table = pa.Table.from_pylist([row | {"erased": [], "branches": []}], schema=RECORDS)
    nulls = pa.ListArray.from_arrays([0, 9_000_000], pa.nulls(9_000_000, pa.int64()))
    file = written(tmp_path, table.set_column(12, RECORDS.field(12), nulls))
    assert file.bytes < 10_000
    with pytest.raises(TooLarge, match="values"):
        list(read_row_groups(tmp_path, file, RECORDS))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_another_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    file = written(tmp_path, blobs(10, 1_000), column_encoding={"data": encoding})
    with pytest.raises(BadEncoding, match="encoded otherwise"):
        list(read_row_groups(tmp_path, file, BLOBS))


class Liar:
    """What the end of a file says of its only row group, where that is small and plain."""

    def __init__(self, path: Path) -> None:
        self._group = pq.read_metadata(path).row_group(0)
        self.num_columns = self._group.num_columns

    def column(self, number: int) -> SimpleNamespace:
        real = self._group.column(number)
        begin = real.dictionary_page_offset if real.has_dictionary_page else real.data_page_offset
        return SimpleNamespace(
            path_in_schema=real.path_in_schema,
            has_dictionary_page=False,
            data_page_offset=begin,
            total_compressed_size=real.total_compressed_size,
        )


def test_pages_count_and_not_what_is_said_of_them(tmp_path: Path) -> None:
    written(tmp_path, blobs(100, 100_000))
    with pytest.raises(TooLarge):
        check_pages(tmp_path / NAME, Liar(tmp_path / NAME), 8 << 20, 1_000)
    check_pages(tmp_path / NAME, Liar(tmp_path / NAME), 16 << 20, 1_000)
    with pytest.raises(TooLarge):
        check_pages(tmp_path / NAME, Liar(tmp_path / NAME), 16 << 20, 99)
    written(tmp_path, blobs(100, 1_000), use_dictionary=True)
    with pytest.raises(ValueError, match="encoded otherwise"):
        check_pages(tmp_path / NAME, Liar(tmp_path / NAME), 64 << 20, 1_000)


def test_headers_of_pages_that_are_no_headers_are_refused(tmp_path: Path) -> None:
    written(tmp_path, blobs(5, 100))
    data = (tmp_path / NAME).read_bytes()
    liar = Liar(tmp_path / NAME)
    chance = random.Random(7)
    refused = 0
    for _ in range(500):
        changed = bytearray(data)
        at = liar.column(chance.randrange(2)).data_page_offset + chance.randrange(30)
        changed[at] = chance.randrange(256)
        (tmp_path / NAME).write_bytes(bytes(changed))
        try:
            check_pages(tmp_path / NAME, liar, 10_000, 1_000)
        except (ValueError, TooLarge):
            refused += 1
    assert refused > 100


def test_whatever_we_write_is_read(tmp_path: Path) -> None:
    chance = random.Random(7)
    writing = FileWriter(tmp_path, "spans", 1, SPANS)
    rows = []
    for number in range(50):
        names = ("party", "feed", "previous", "signature", "headers", "advance", "states", "bodies")
        row: dict[str, Any] = {name: chance.randbytes(chance.choice((0, 32, 300_000))) for name in names}
        rows.append(row | {"first": number, "count": 1})
        writing.add(rows[-1], sum(len(row[name]) for name in names))
    file = writing.close()
    assert [row for some in read_row_groups(tmp_path, file, SPANS) for row in some] == [
        {name: row[name] for name in SPANS.names} for row in rows
    ]
