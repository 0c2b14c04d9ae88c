"""Read the blocks of homes and archives: which blocks exist, how they are divided into tasks, and their columns.

    home            open the feeds and blobs of a home or an archive, read-only; anchors and party keys as text
    inventory       parties, ranges and block counts of homes, from the records of their stores
    ranges          ranges of blocks: select, divide into tasks, read, verify
    block_columns   columns of a block as Spark and Arrow types; record batches of spans
    datasource      the Spark data source `antiphon`, for batch reads and for streams

In: folders of homes. Out: spans, record batches and DataFrames of blocks. This room imports `archive_format` and no
other room of the pipeline.
"""
