"""Stores of a device: the item states of each party, and the list of its parties. Both are SQLite files.

item_store       `ItemStore`: item states, postings, lanes and refusals of one party; derived, can be rebuilt
item_check       checks the file of an item store without changing it
consistency      checks that an item store and the feed store belong together
page_check       compare all pages of an item store with their checksums
page_sums        `PageSums`: a checksum of each page of an item store, in a file beside it
wal_checkpoints  `Checkpoints`: SQLite checkpoints in a background thread
wal_frames       read SQLite's write-ahead log, and verify its frames
meta_store       `MetaStore`: followed parties, their feeds, preferences; not derived
meta_file        `MetaFile`: its SQLite file, with checksums

In: `Save`s of the engine, or calls of the API. Out: rows. Imports `party.engine.ports` and the packages below `party`.
"""
