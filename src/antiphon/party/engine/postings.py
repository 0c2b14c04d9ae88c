"""Codec of postings: lane number, start and stop of each, as varints.

A rebuild writes millions of postings, so they are encoded for many items at once, column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from antiphon.core.errors import BadEncoding
from antiphon.party.engine.ports import Posting

_BITS = 63
_GROUPS = -(-_BITS // 7)
_LIMITS = np.array([1 << 7 * size for size in range(1, _GROUPS)], dtype=np.uint64)  # of integers of 1, 2 … bytes
_SHIFTS = np.arange(0, 7 * _GROUPS, 7, dtype=np.uint64)
_PLACES = np.arange(_GROUPS)


def encode_postings(items: Sequence[Sequence[Posting]]) -> list[bytes]:
    """Encode the postings of each item."""
    values = np.array(list(chain.from_iterable(chain.from_iterable(items))), dtype=np.uint64)
    last = np.searchsorted(_LIMITS, values, side="right")[:, None]  # the place of each integer's last byte
    most = 1 + int(last.max(initial=0))
    places = _PLACES[:most]
    groups = (values[:, None] >> _SHIFTS[:most]).astype(np.uint8) & np.uint8(127)
    groups |= np.where(last > places, np.uint8(128), np.uint8(0))
    data = groups[last >= places].tobytes()
    ends = np.concatenate(([0], np.cumsum(last[:, 0] + 1)))
    counts = np.cumsum([0, *(3 * len(postings) for postings in items)])
    return [data[start:stop] for start, stop in pairwise(ends[counts].tolist())]


def decode_postings(data: bytes) -> list[Posting]:
    """Decode the postings of one item. Raises `BadEncoding`."""
    values: list[int] = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if shift > 7 and not byte:
                raise BadEncoding("postings: an integer is not as short as can be")
            values.append(value)
            value = shift = 0
        elif shift > _BITS:
            raise BadEncoding("postings: an integer is too long")
    if shift or len(values) % 3 or max(values, default=0) >= 1 << _BITS:
        raise BadEncoding("postings: they end in the middle, or hold an integer that is too large")
    return [Posting(*values[at : at + 3]) for at in range(0, len(values), 3)]
