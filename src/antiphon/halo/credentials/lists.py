"""Lists of cuts that do not fit into one credential: they go on in the next blocks of its batch.

The first credential holds a hash of the rest, so that its own digest stands for all of it.

>>> claim = FeedEnd(b"i" * 32, b"d" * 32, {bytes([number]) * 32: number for number in range(5)})
>>> first, parts = split(claim, size=2)
>>> len(first.cuts), [len(part.cuts) for part in parts]
(2, [2, 1])
>>> join(first, parts, rest_of(parts)) == claim
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, pairwise

from antiphon.core.codec import u32, u64
from antiphon.core.errors import BadEncoding, TooLarge
from antiphon.core.timeframe import Timeframe
from antiphon.halo.credentials import fields
from antiphon.halo.credentials.claims import Claim, Continuation, Cuts, EpochGenesis, FeedEnd, Narrowing, Policy

_TAG = b"antiphon.rest.v1"
CONTINUATIONS_MAX = 20  # blocks: with them, an act still fits into one span
Listed = Narrowing | FeedEnd | Policy | EpochGenesis


def split(claim: Claim, size: int = 0) -> tuple[Claim, list[Continuation]]:
    """Return a claim with at most `size` entries in each list (0: as many as a list may have), and the rest."""
    size = size or fields.LIST_MAX
    if not isinstance(claim, Listed) or all(len(cuts) <= size for cuts in _lists(claim)):
        return claim, []
    cuts, control = (sorted(found.items()) for found in _lists(claim))
    parts = [Continuation(dict(some)) for some in _chunks(cuts[size:], size)]
    parts += [Continuation({}, dict(some)) for some in _chunks(control[size:], size)]
    if len(parts) > CONTINUATIONS_MAX:
        raise TooLarge(
            f"{len(cuts) + len(control)} feeds do not fit into one act; after an epoch, fewer have to be named"
        )
    return _with_lists(claim, dict(cuts[:size]), dict(control[:size])), parts


def block_count(cuts: Cuts) -> int:
    """Return how many blocks an act with these cuts takes."""
    return max(1, -(-len(cuts) // fields.LIST_MAX))


def rest_of(parts: Iterable[Continuation]) -> bytes:
    """Hash what the lists of a claim go on with."""
    cuts, control = _joined(part.cuts for part in parts), _joined(part.control for part in parts)
    return sha256(_TAG + _encode(cuts) + _encode(control)).digest()


def join(claim: Claim, parts: Sequence[Continuation], rest: bytes) -> Claim:
    """Return a claim with its whole lists."""
    if not isinstance(claim, Listed):
        raise BadEncoding("credential: a claim without lists does not go on")
    if len(parts) > CONTINUATIONS_MAX or rest_of(parts) != rest:
        raise BadEncoding("credential: its lists go on, but what follows is not what it announces")
    cuts, control = _lists(claim)
    return _with_lists(
        claim, _joined([cuts, *(part.cuts for part in parts)]), _joined([control, *(part.control for part in parts)])
    )


def _lists(claim: Listed) -> tuple[Cuts, Cuts]:
    if isinstance(claim, EpochGenesis):
        return claim.cut, {feed: seq + 1 for feed, seq in claim.control.items()}
    return claim.cuts, {}


def _with_lists(claim: Listed, cuts: Cuts, control: Cuts) -> Claim:
    if isinstance(claim, EpochGenesis):
        return replace(claim, cut=cuts, control=Timeframe({feed: length - 1 for feed, length in control.items()}))
    if control:
        raise BadEncoding("credential: only an epoch names control feeds apart")
    return replace(claim, cuts=cuts)


def _chunks(items: Sequence[tuple[bytes, int]], size: int) -> Iterable[Sequence[tuple[bytes, int]]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _joined(lists: Iterable[Cuts]) -> Cuts:
    items = list(chain.from_iterable(found.items() for found in lists))
    if any(one[0] >= two[0] for one, two in pairwise(items)):
        raise BadEncoding("credential: cuts do not ascend by feed")
    return dict(items)


def _encode(cuts: Cuts) -> bytes:
    return u32(len(cuts)) + b"".join(feed + u64(length) for feed, length in cuts.items())
