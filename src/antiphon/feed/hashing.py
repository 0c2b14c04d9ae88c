"""Many SHA-256 at once: the bodies of a span, and its chain.

The hash is always OpenSSL's. Called through `hashlib` it costs about 0.45 µs a block, most of it not hashing, so some
thirty lines of C (`_hashing.c`, built on installing where there is a compiler) call it for a whole span, three times as
fast. Without them everything works the same, from the same bytes to the same bytes; a test compares the two.
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
    bounds = offsets.tolist()
    return b"".join([sha256(data[start:stop]).digest() for start, stop in itertools.pairwise(bounds)])


def link(prefix: bytes, previous: bytes, headers: Iterable[bytes]) -> list[bytes]:
    """The hashes of consecutive headers (entries included), each over the prefix and the hash before it."""
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
    starts, bounds = range(0, len(headers), HEADER_SIZE), itertools.pairwise(offsets.tolist())
    pieces = zip(starts, bounds, strict=True)
    whole = (headers[at : at + HEADER_SIZE] + entries[low:high] for at, (low, high) in pieces)
    return b"".join(link(prefix, previous, whole))


def _load(path: Path) -> tuple[Digests, Chain] | None:
    """The same in C; None where it is not built, or this Python does not share OpenSSL's functions."""
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
    """C reads where it is told to: this is the last place where that can be refused."""
    if not right:
        raise InvalidInput("the columns of a span do not fit each other")


def _chosen() -> tuple[Digests, Chain, bool]:
    found = _load(Path(__file__).with_name("_hashing.clib"))
    if found is not None:
        offsets = np.array([0, 3, 3], dtype=np.int64)
        sample = (b"p" * 128, b"q" * HASH_SIZE, b"h" * HEADER_SIZE * 2, b"abc", offsets)
        # A library of another make must not be trusted on its name alone.
        if found[0](b"abc", offsets) == digests_in_python(b"abc", offsets) and found[1](*sample) == chain_in_python(
            *sample
        ):
            return (*found, True)
    return digests_in_python, chain_in_python, False


digests, chain, ACCELERATED = _chosen()
