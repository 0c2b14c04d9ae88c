"""The feed store: `FeedStore` keeps feeds in an LMDB file. One process writes, others read at the same time.

Start reading at `feed_store`.

feed_store     `FeedStore`: create, append, ingest, prune, erase, compact
reader         `FeedReader`: the reading half of `FeedStore`
group_commit   `Committer`: changes of concurrent callers share a transaction
single_append  the short way for an append of one message
ingest         store spans of other peers; detect forks and faults
damage         find what has changed on the disk, and drop it
quarantine     the list of refused blocks, with reasons
party_records  `PartyRecords`: the records of a party's feeds in memory, and which have changed
tables         `Tables`: typed reads and writes inside one transaction
rest_marks     marks of parties whose feeds have not changed
watch          `Watch`: which feeds have grown
env            `Env`: the LMDB environment with the tables of feeds
map_file       `MapFile`: an LMDB file that grows; also under the blob store
map_check      checks of an LMDB file before it is mapped
gate           many transactions, or one exclusive resize of the map
lock           file locks: one writing process
private_files  files and folders that only their owner may read
disk           `Disk`: hooks around commits, for simulated crashes

In: appends and spans. Out: blocks, spans, records, evidence. May import the formats in `antiphon.feed`, and `core`.
"""
