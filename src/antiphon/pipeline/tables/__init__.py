"""Delta tables of a folder: what they contain, how executors write them, and how an incremental run changes them.

The table `items` is divided into 16 *shards* (Delta partitions) by item id, and so is the fold: one task folds the new
messages of a shard onto its rows, and rewrites the Parquet files that had them. Nothing is joined.

Tables and files
    schemas             the columns of each table
    delta_folder        `DeltaFolder`: Delta logs, commits, `current.json`, locking, recovery, compaction
    run_tables          `RunTables`: the tables as one run left them, for readers
    delta_log           commits of a table: ours, and those of other programs
    dead_files          files that no recent version of a table needs
    table_owner         whether a folder with the name of a table is ours, and what a run that died has left in it
    parquet_files       `PartitionWriter`: writes and rewrites the Parquet files of one partition
    file_changes        the files that the tasks of a run added and removed

Rows
    item_rows           stage `shown`: display columns of an item (type, name, state as JSON, facts), one item at a time
    columnar_display    display columns of flat objects, for many items at once
    columnar_rows       rows of `items` for flat objects, for many items at once
    links               stage `links`: rows of the table `links`
    changes             stage `changes`: items that changed between two runs
    facts_column        the column `facts`, by which queries filter
    sort_key            sort keys in `facts`: bytes that compare as values do in queries
    state_json          the column `state`

Incremental runs
    incremental_write   `IncrementalWrite`: from the steps of parties to the tasks of the job
    shard_fold          `ShardFold`: one task, one shard: look up rows, fold, write
    shard_rows          the stored rows of a shard that a fold touches, and their update in place
    columnar_resume     folds new messages onto stored flat objects, in columns
    shard_tally         counts and digests of the items of a shard
    item_keys           a set of items, to be found among rows of a table
    block_rows          tasks that write `blocks` and the waiting blocks of `quarantine`

In: `plan.replan.PartyStep` (what is new in each party), and folded rows from `fold`. Out: committed versions of tables.
May import `fold`, `columnar`, `order`, `plan`, `session`, `source`. Start reading at `incremental_write`.
"""
