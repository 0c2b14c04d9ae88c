"""Garbage: blobs that no party of this device refers to any more, as a snapshot or as the content of a file.

What is kept: the snapshot that a party stands on, those of as many epochs before it as policy keeps, what is proposed
or final and not stood on yet, and the contents of all its files, deleted ones too. Never the content that a file had
before: whoever wants that copies it.
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
from antiphon.snapshot.walk import reached


@runtime_checkable
class GarbageBlobs(Blobs, Protocol):
    """A store of blobs that lets some go."""

    def collecting(self) -> AbstractContextManager[BlobCollection]: ...

    def pages(self) -> Iterator[list[Cid]]: ...

    def delete(self, cids: Iterable[Cid]) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What was let go. `stopped` says why it ended early, if it did: try again later."""

    count: int
    size: int
    kept: int
    stopped: str = ""


def collect_garbage(
    manager: PartyManager, *, earlier: int | None = 0, tick: Callable[[str], None] = lambda _: None
) -> GarbageReport:
    """Let go of all blobs that no party refers to; of each party's snapshots keep `earlier` ones too, or with None all.

    Nothing waits for it: where a file or an epoch is being written, it ends, or does not begin.
    """
    blobs = manager.blobs
    if not isinstance(blobs, GarbageBlobs):
        raise InvalidInput(f"a {type(blobs).__name__} lets no blob go")
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
            except MissingBlocks:  # nothing of it has come yet
                continue
        for page in blobs.pages():
            tick("blobs")
            gone = collection.let_go(page, keep.__contains__, blobs.delete)
            count, size = count + gone[0], size + gone[1]
            if collection.stopped:
                break
        return GarbageReport(count, size, len(keep), collection.stopped)


def _lost(party: PartyProcessor) -> str:
    """Why it cannot be told what a party refers to: where its snapshot is lost, so is which files it has."""
    with party.locked() as engine:
        lanes = engine.delivery.lanes.values()
        held = {record.feed for record in party.store.feeds(party.key)}
        if engine.base is None and not all(has_begun(lane.state, party.store) for lane in lanes if lane.feed in held):
            return f"party {party.key.short} waits for the snapshot that it stood on; fetch that first"
    return ""


def _mark(
    party: PartyProcessor, machine: PartyMachine, keep: set[Cid], earlier: int | None, tick: Callable[[str], None]
) -> None:
    """Name all that a party refers to, as far as it is here."""
    certain, others = _snapshots(party, machine, earlier)
    for root in certain:
        for _ in reached(root, party.blobs, seen=keep):
            tick("kept")
    for root in (*others, *contents(party)):
        try:
            for _ in reached(root, party.blobs, seen=keep):
                tick("kept")
        except BadEncoding:  # somebody named what is no snapshot, and no content
            keep.add(root)


def _snapshots(party: PartyProcessor, machine: PartyMachine, earlier: int | None) -> tuple[list[Cid], list[Cid]]:
    """The roots of the epochs that are kept, and of those that are proposed."""
    with party.locked() as engine:
        engine.authority.refresh()
        chain, base = machine.epochs(), engine.base
        first = 0
        if base is not None and earlier is not None:
            first = base.number - max(policy_at(machine, base.root.control).keep_epochs, earlier)
        found = [Cid(epoch.snapshot) for epoch in chain.final if epoch.number >= first]
        found += [] if base is None else [base.cid]
        return found, [Cid(proposal.genesis.snapshot) for proposal in chain.open.proposals]


__all__ = ["GarbageReport", "collect_garbage"]
