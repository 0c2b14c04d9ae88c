"""Copy blobs from one store to another in one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, MissingBlob
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.limits import BATCH_COUNT_MAX


def take_blobs(source: Blobs, target: Blobs, wanted: Iterable[Cid]) -> int:
    """Copy the wanted blobs that the source has undamaged. Return how many were copied."""
    cids = list(wanted)
    parts = (cids[start : start + BATCH_COUNT_MAX] for start in range(0, len(cids), BATCH_COUNT_MAX))
    return sum(_put(source, target, some) for some in parts)


def _put(source: Blobs, target: Blobs, cids: Iterable[Cid]) -> int:
    pairs = list(_held(source, cids))
    target.put_all(pairs)
    return len(pairs)


def _held(source: Blobs, cids: Iterable[Cid]) -> Iterator[tuple[Cid, bytes]]:
    for cid in cids:
        try:
            yield cid, source.get(cid)
        except (MissingBlob, DamagedBlob):
            continue
