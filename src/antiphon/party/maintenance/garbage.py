"""Garbage collection: delete blobs that no party of this device refers to.

Kept are, for each party: the snapshot of its current base, those of as many earlier epochs as policy keeps, those of
proposed and of later final epochs, and the current contents of all its files, deleted files too. The former content of
a file is not kept: copy it to keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlocks
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.epochs.plan import policy_at
from antiphon.party.live.manager import PartyManager
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.maintenance.referenced_blobs import contents
from antiphon.party.store.consistency import has_begun
from antiphon.snapshot.blob_collection import BlobCollection
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.walk import reachable


@runtime_checkable
class GarbageBlobs(Blobs, Protocol):
    """A blob store that can delete blobs."""

    def collecting(self) -> AbstractContextManager[BlobCollection]:
        """Begin a collection. It ends when a writer opens a `putting` scope."""

    def pages(self) -> Iterator[list[Cid]]:
        """Yield the CIDs of all blobs, some at a time."""

    def delete(self, cids: Iterable[Cid]) -> tuple[int, int]:
        """Delete blobs, and return their number and their bytes."""


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """Counts of deleted and kept blobs. `stopped` says why the collection ended early, if it did: try again later."""

    count: int
    size: int
    kept: int
    stopped: str = ""


def collect_garbage(
    manager: PartyManager, *, earlier: int | None = 0, tick: Callable[[str], None] = lambda _: None
) -> GarbageReport:
    """Delete all blobs that no party refers to. Keep `earlier` more snapshots of each party; with None, all of them.

    It blocks no writer: while a file or an epoch is being written, it does not start, or ends early.
    """
    blobs = manager.blobs
    if not isinstance(blobs, GarbageBlobs):
        raise InvalidInput(f"a {type(blobs).__name__} cannot delete blobs")
    return _sweep(manager, blobs, earlier, tick)


def _sweep(
    manager: PartyManager, blobs: GarbageBlobs, earlier: int | None, tick: Callable[[str], None]
) -> GarbageReport:
    keep: set[Cid] = set()
    count = size = 0
    with blobs.collecting() as collection:
        for known in manager.list() if not collection.stopped else ():
            try:
                with manager.looking(known.party) as (party, member):
                    if lost := _lost(party):
                        return GarbageReport(0, 0, 0, lost)
                    _mark(party, member.machine, keep, earlier, tick)
            except MissingBlocks:  # the party's genesis has not arrived yet
                continue
        for page in blobs.pages():
            tick("blobs")
            gone = collection.sweep(page, keep.__contains__, blobs.delete)
            count, size = count + gone[0], size + gone[1]
            if collection.stopped:
                break
        return GarbageReport(count, size, len(keep), collection.stopped)


def _lost(party: PartyProcessor) -> str:
    """Return why a party's references are not known, or "". If its snapshot is lost, so is the list of its files."""
    with party.locked() as engine:
        lanes = engine.delivery.lanes.values()
        held = {record.feed for record in party.store.feeds(party.key)}
        if engine.base is None and not all(has_begun(lane.state, party.store) for lane in lanes if lane.feed in held):
            return f"party {party.key.short} waits for the snapshot of its epoch; fetch that first"
    return ""


def _mark(
    party: PartyProcessor, machine: PartyMachine, keep: set[Cid], earlier: int | None, tick: Callable[[str], None]
) -> None:
    """Add all blobs here that a party refers to."""
    certain, others = _snapshots(party, machine, earlier)
    for root in certain:
        for _ in reachable(root, party.blobs, seen=keep):
            tick("kept")
    for root in (*others, *contents(party)):
        try:
            for _ in reachable(root, party.blobs, seen=keep):
                tick("kept")
        except BadEncoding:  # a peer named a blob that is neither a snapshot nor content
            keep.add(root)


def _snapshots(party: PartyProcessor, machine: PartyMachine, earlier: int | None) -> tuple[list[Cid], list[Cid]]:
    """Return the snapshot roots of the epochs that are kept, and of those that are proposed."""
    with party.locked() as engine:
        engine.authority.look()
        chain, base = machine.epochs(), engine.base
        first = 0
        if base is not None and earlier is not None:
            first = base.number - max(policy_at(machine, base.root.control).keep_epochs, earlier)
        found = [Cid(epoch.snapshot) for epoch in chain.final if epoch.number >= first]
        found += [] if base is None else [base.cid]
        return found, [Cid(proposal.genesis.snapshot) for proposal in chain.open.proposals]


__all__ = ["GarbageReport", "collect_garbage"]
