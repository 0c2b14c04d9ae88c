"""Hashing in C and in Python: from the same bytes to the same bytes, and nothing is read outside them."""

from __future__ import annotations

import itertools
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.feed import hashing
from antiphon.feed.header import HEADER_SIZE

PIECES = st.lists(st.binary(max_size=200), min_size=1, max_size=20)


def offsets(pieces: list[bytes]) -> hashing.Ints:
    return np.array([0, *itertools.accumulate(map(len, pieces))], dtype=np.int64)


@given(PIECES)
def test_digests_are_those_of_hashlib(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    wanted = b"".join(sha256(piece).digest() for piece in pieces)
    assert hashing.digests(data, offsets(pieces)) == wanted
    assert hashing.digests_in_python(data, offsets(pieces)) == wanted


@given(PIECES, st.binary(min_size=32, max_size=32), st.binary(max_size=200))
def test_chains_are_the_same(pieces: list[bytes], previous: bytes, prefix: bytes) -> None:
    headers = b"".join(sha256(piece).digest() * 3 for piece in pieces)[: HEADER_SIZE * len(pieces)]
    headers += bytes(HEADER_SIZE * len(pieces) - len(headers))
    arguments = (prefix, previous, headers, b"".join(pieces), offsets(pieces))
    assert hashing.chain(*arguments) == hashing.chain_in_python(*arguments)


def test_it_is_built_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    assert hashing.ACCELERATED


def test_columns_that_do_not_fit_are_refused_before_they_are_read() -> None:
    if not hashing.ACCELERATED:
        pytest.skip("hashing is done in Python here, which cannot read outside")
    far = np.array([0, 1000], dtype=np.int64)
    with pytest.raises(InvalidInput):
        hashing.digests(b"short", far)
    with pytest.raises(InvalidInput):
        hashing.chain(b"", bytes(32), bytes(HEADER_SIZE), b"", far)
    with pytest.raises(InvalidInput):
        hashing.chain(b"", bytes(31), bytes(HEADER_SIZE), b"", np.zeros(2, dtype=np.int64))


def test_without_the_library_python_serves(tmp_path: Path) -> None:
    assert hashing._load(tmp_path / "nothing.so") is None
