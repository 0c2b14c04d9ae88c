"""SHA-256 of many values in one call: the bodies of a span, and its chain.

The hash function is always OpenSSL's. A call through `hashlib` takes about 0.45 µs a block, most of it overhead. Some
thirty lines of C (`_hashing.c`, built on installation if there is a compiler) call OpenSSL for a whole span, three
times as fast. Without the C library, Python computes the same bytes; a test compares the two.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import InvalidInput
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE

Ints = npt.NDArray[np.int64]
Digests = Callable[[bytes, Ints], bytes]
Chain = Callable[[bytes, bytes, bytes, bytes, Ints], bytes]


def digests_in_python(data: bytes, offsets: Ints) -> bytes:
    """Return the joined SHA-256 of the values in `data` that `offsets` bound."""
    bounds = offsets.tolist()
    return b"".join([sha256(data[start:stop]).digest() for start, stop in itertools.pairwise(bounds)])


def link(prefix: bytes, previous: bytes, headers: Iterable[bytes]) -> list[bytes]:
    """Return the hashes of consecutive headers (entries included), each over prefix, previous hash and header."""
    begun = sha256(prefix).copy
    hashes: list[bytes] = []
    for header in headers:
        state = begun()
        state.update(previous)
        state.update(header)
        previous = state.digest()
        hashes.append(previous)
    return hashes


def chain_in_python(prefix: bytes, previous: bytes, headers: bytes, entries: bytes, offsets: Ints) -> bytes:
    """Return the joined hashes of headers; `offsets` bound the entries of each."""
    starts, bounds = range(0, len(headers), HEADER_SIZE), itertools.pairwise(offsets.tolist())
    pieces = zip(starts, bounds, strict=True)
    whole = (headers[at : at + HEADER_SIZE] + entries[low:high] for at, (low, high) in pieces)
    return b"".join(link(prefix, previous, whole))


def _load(path: Path) -> tuple[Digests, Chain] | None:
    """Load `digests` and `chain` in C; None if not built, or if this Python does not export OpenSSL's functions."""
    try:
        import _hashlib

        ours, theirs = ctypes.CDLL(str(path)), ctypes.CDLL(_hashlib.__file__)
        functions = [
            ctypes.cast(getattr(theirs, f"SHA256_{name}"), ctypes.c_void_p) for name in ("Init", "Update", "Final")
        ]
        run_digests, run_chain = ours.antiphon_digests, ours.antiphon_chain
    except (ImportError, OSError, AttributeError):
        return None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    run_digests.argtypes = [pointer, pointer, pointer, ctypes.c_char_p, pointer, size, ctypes.c_char_p]
    run_chain.argtypes = [pointer, pointer, pointer, ctypes.c_char_p, size, *[ctypes.c_char_p] * 2, size]
    run_chain.argtypes += [ctypes.c_char_p, pointer, size, ctypes.c_char_p]
    run_digests.restype = run_chain.restype = None

    def digests(data: bytes, offsets: Ints) -> bytes:
        count = len(offsets) - 1
        out = ctypes.create_string_buffer(count * HASH_SIZE)
        _check(offsets[-1] <= len(data))
        run_digests(*functions, data, offsets.tobytes(), count, out)
        return out.raw

    def chain(prefix: bytes, previous: bytes, headers: bytes, entries: bytes, offsets: Ints) -> bytes:
        count = len(headers) // HEADER_SIZE
        out = ctypes.create_string_buffer(count * HASH_SIZE)
        _check(len(offsets) == count + 1 and offsets[-1] <= len(entries) and len(previous) == HASH_SIZE)
        run_chain(
            *functions, prefix, len(prefix), previous, headers, HEADER_SIZE, entries, offsets.tobytes(), count, out
        )
        return out.raw

    return digests, chain


def _check(right: bool) -> None:
    """Refuse offsets that lie outside the data: C would read there without a check."""
    if not right:
        raise InvalidInput("the columns of a span do not fit each other")


def _chosen() -> tuple[Digests, Chain, bool]:
    found = _load(Path(__file__).with_name("_hashing.clib"))
    if found is not None:
        offsets = np.array([0, 3, 3], dtype=np.int64)
        sample = (b"p" * 128, b"q" * HASH_SIZE, b"h" * HEADER_SIZE * 2, b"abc", offsets)
        # The file may be another library of this name: compare its results once.
        if found[0](b"abc", offsets) == digests_in_python(b"abc", offsets) and found[1](*sample) == chain_in_python(
            *sample
        ):
            return (*found, True)
    return digests_in_python, chain_in_python, False


digests, chain, ACCELERATED = _chosen()
