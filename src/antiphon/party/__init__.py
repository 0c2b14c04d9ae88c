"""A party on one device: the live engine, which turns verified feeds into item states, and all that is built on it.

Start reading at `live/processor.py` (`PartyProcessor`: one running party), then read `engine/engine.py`, which it
runs under its lock. docs/design/live-engine.md explains both. The rooms, each of which imports only those above it:

engine       feeds → causal delivery → judge → demuxer → fold → item states; no thread, no lock, no clock
store        `ItemStore` (states of one party) and `MetaStore` (the parties of a device), on SQLite
epochs       declare, recompute, attest and prune: snapshots at numbered cuts
live         `PartyProcessor`, `PartyManager`, handles of items, batches, streams, history, undo
views        partial parties: a device that holds one view
maintenance  verify epochs, collect garbage
bundle       a party in one CAR file: export and import

In: a feed store, a blob store, credentials (HALO). Out: item states, messages written to this device's data feed,
credentials about epochs. Imports `core`, `feed`, `halo`, `model` and `snapshot`. Applications use `antiphon.api`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.party.engine.authority import OpenAuthority as OpenAuthority, PartyAuthority as PartyAuthority
    from antiphon.party.live.anchored_stream import ReadStream as ReadStream, WriteStream as WriteStream
    from antiphon.party.live.item import Item as Item
    from antiphon.party.live.manager import PartyManager as PartyManager
    from antiphon.party.live.processor import PartyProcessor as PartyProcessor
    from antiphon.party.live.undo import UndoStack as UndoStack
    from antiphon.party.store.item_store import ItemStore as ItemStore
    from antiphon.party.store.meta_store import MetaStore as MetaStore
else:
    __getattr__, __dir__ = lazy_exports(__name__)
