"""Stores of a device: the item states of each party, and the list of its parties. Both are SQLite files.

item_store       `ItemStore`: item states, postings, lanes and refusals of one party; derived, can be rebuilt
item_check       checks the file of an item store without changing it
consistency      checks that an item store and the feed store belong together
wal_checkpoints  `Checkpoints`: SQLite checkpoints in a background thread
meta_store       `MetaStore`: followed parties, their feeds, preferences; not derived
meta_file        `MetaFile`: its SQLite file, with checksums

In: `Save`s of the engine, or calls of the API. Out: rows. Imports `party.engine.ports` and the packages below `party`.
"""
