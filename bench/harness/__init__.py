"""Shared by the benchmarks, and the sides that they measure. A side is a process that does one kind of work on command.

report            arguments, rounds, goals, the tables and the line of JSON
side              a process that answers commands, one JSON object a line
processes         CPU time and memory of Spark's driver, JVM and workers
feed_side         bench/feed.py: appends, reads and ingest
live_side         bench/live.py: a peer that writes, receives and opens parties
live_crdt         … pycrdt and a bare dict, with the same edits
live_feeds        … feeds of parties to open
live_work         … the edits
query_data        bench/query.py: the party, and the same rows in SQLite
query_asked       … the queries, and the SQL written by hand
query_standing    … subscriptions, and how long a write takes to reach them
epoch_side        bench/epoch.py: starting from an epoch, or from a replay
epoch_devices     … the devices of the party
epoch_feeds       … its messages
epoch_run         … the epochs
epoch_pauses      … a writer beside an epoch
sim_side          bench/sim.py: runs of the simulator, timed by part
pipeline_side     bench/pipeline.py: runs of the pipeline, bare Spark and a live peer
pipeline_parts    … Spark's Python workers, timed by part
"""
