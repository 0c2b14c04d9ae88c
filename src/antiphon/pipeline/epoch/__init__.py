"""Compute the snapshot of an epoch on Spark, with the same root CID as a live peer computes.

    epoch_job        `EpochJob`: computes the snapshot for a peer that declares the epoch, and stores its blobs there
    epoch_snapshot   stage `snapshot`: plan an epoch, fold its messages, build its trees

In: a home, a party, and an epoch (final, or about to be declared). Out: the blobs of its snapshot. This room may import
`fold` and what that may import.
"""
