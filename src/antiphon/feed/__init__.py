"""Feeds: append-only, hash-linked, signed logs with one writer each, and the store that keeps them.

header    what a block says about itself: fixed columns, then the timeframe entries that moved
block     one entry of a feed, for those who want them one by one
span      a contiguous run of blocks in columns: the form on disk, on the wire and in memory
chain     hashes, signed heads, and the verification of a span against them
rules     what a header must satisfy; the first fault ends a feed
fork      two signed histories of one feed: the evidence, and how anybody checks it
record    what the store remembers of a feed: bounds, head, end
store     `FeedStore` on LMDB; `env`, `tables`, `commit`, `append`, `single`, `ingest`, `reader`, `watch`, `arrow`,
          `quarantine` are its parts
writer    `FeedWriter`, which sets seq, lamport and advance
"""
