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
