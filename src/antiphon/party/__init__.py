"""A party on this device: the live engine, its stores, epochs, views and maintenance.

A party is a group of members with a shared, eventually consistent set of items. This package turns the blocks of its
feeds into item states, writes this device's messages, and takes part in epochs. Start reading at `live/processor.py`.

engine       blocks → delivered, judged and folded messages: the core, which runs under the party's lock
store        SQLite stores: items and their index (`ItemStore`), known parties and settings (`MetaStore`)
epochs       declare, recompute and attest epochs; move the party onto a snapshot; prune
live         `PartyProcessor` and what it gives: items, batches, listeners, history, undo, streams; `PartyManager`
views        hold one view of a party, and only headers of the rest
maintenance  verify epochs, collect garbage
bundle       export and import a party as a CAR file

In: feeds (`antiphon.feed`), credentials and finality (`antiphon.halo`), models (`antiphon.model`), blobs
(`antiphon.snapshot`). Out: items for `antiphon.api`, `antiphon.query` and `antiphon.mesh`. Each room may import the
rooms above it in this list, except that `views` and `maintenance` do not import each other.
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

__getattr__, __dir__ = lazy_exports(__name__)
