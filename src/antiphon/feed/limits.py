"""Bounds of everything in a feed. A receiver refuses anything above them, so all peers must share them."""

from __future__ import annotations

BODY_SIZE_MAX = 1 << 20  # larger content goes into blobs
SALT_SIZE = 16
REST_SIZE = 16  # of a mark of a party at rest
ADVANCE_MAX = 4096  # entries in one header
SPAN_BLOCKS_MAX = 4096  # blocks under one signed head
SPAN_HEADERS_SIZE_MAX = 384 << 10  # so that fork evidence (two branches) fits into one credential
SPAN_SIZE_MAX = 8 << 20
LAMPORT_MAX = (1 << 40) - 1  # the largest that fits into an item id
EVIDENCE_SIZE_MAX = 2 * SPAN_HEADERS_SIZE_MAX + 4096
BRANCH_GENESIS_SIZE_MAX = 1 << 10  # of a genesis' body that is kept with a branch; larger ones are left out
QUARANTINE_ENTRIES_MAX = 4096  # beyond that, the oldest of the source with the most entries are dropped and counted
QUARANTINE_SOURCE_MAX = 512  # of one source; more displace its own oldest
QUARANTINE_FEED_MAX = 64  # of one source about one feed
