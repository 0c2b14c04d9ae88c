"""Feeds: append-only, hash-linked, signed logs with one writer each, and the store that keeps them.

Start reading at `block` and `span` for the format, at `store.feed_store` for the store. The names below are public:
`from antiphon.feed import FeedStore`. Each is loaded when it is first used.

header           `Kind`, `Flag`, `Entry`: the fixed columns of a block's header, and its advance entries
block            `Block`: one block, for readers that want them one by one
hashing          SHA-256 of many values at once, in C where the library is built
span             `Span`: contiguous blocks in columns; the form on disk, on the wire and in memory
chain            `Head`, the hash chain, and the verification of a span
rules            the rules that headers must satisfy; the first fault ends a feed
fork             `Fork`: evidence that a writer signed two histories
head_proof       `HeadProof`: evidence that a writer signed a history with a block that was pruned
encoder          `Draft`, `Append`: from messages to signed spans
arrow            blocks as Arrow record batches
branches         `Branches`: blocks that are no part of a feed's history, and which of them are shown
causal_delivery  the rule and the queue by which control feeds and data feeds are delivered
feed_record      `FeedRecord`: the state of one feed in the store: bounds, head, end
store/           `FeedStore` on LMDB
writer           `FeedWriter`: appends to one's own feed
limits           bounds that all peers share

In: drafts of messages, and spans of other peers. Out: verified blocks, spans, heads and evidence. May import `core`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.feed.block import Block as Block, BodyState as BodyState
    from antiphon.feed.chain import Head as Head
    from antiphon.feed.encoder import Draft as Draft, Written as Written
    from antiphon.feed.feed_record import Bounds as Bounds, End as End, FeedRecord as FeedRecord
    from antiphon.feed.fork import Fork as Fork
    from antiphon.feed.header import Entry as Entry, Flag as Flag, Kind as Kind
    from antiphon.feed.span import Span as Span
    from antiphon.feed.store.feed_store import Batch as Batch, FeedStore as FeedStore
    from antiphon.feed.store.ingest import Base as Base, Ingested as Ingested, Outcome as Outcome
    from antiphon.feed.store.quarantine import Quarantine as Quarantine, Refusal as Refusal
    from antiphon.feed.store.watch import Watch as Watch
    from antiphon.feed.writer import FeedWriter as FeedWriter
else:
    __getattr__, __dir__ = lazy_exports(__name__)
