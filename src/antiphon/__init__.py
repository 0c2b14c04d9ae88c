"""Antiphon: an ECHO database for Python. Peer-to-peer, eventually consistent objects on signed feeds.

>>> import antiphon
>>> with antiphon.open("laptop", name="Ada", unprotected=True) as store:
...     household = store.create_party("Household")
...     groceries = household.list(["milk", "bread"], name="Groceries")
...     groceries.append("salt")
...     groceries.value
['milk', 'bread', 'salt']

This package has the names that an application needs: `open`, `Store` and `Party`, the kinds of items, queries, schemas,
and every error. They are loaded when first used, so that `import antiphon` is quick. Parts for builders of other peers
are public in the packages below. Each package imports only those above it in this list.

core      keys, ids, CIDs, timeframes, stamps, errors
feed      signed, hash-linked logs, and the store that keeps them
halo      key store, identities, devices, credentials, the party state machine
model     state machines of items: the interface, the base collection, the fold that every engine shares
snapshot  blobs, snapshot trees, CAR files
party     the live engine: delivery, items, batches, epochs, history, and the stores behind them
query     queries, their index, live subscriptions
schema    typed items
pipeline  the data pipeline on Spark
mesh      replication between peers
api       the database as an application sees it
aio       the same for programs with an event loop
generate  homes of any size, made from a seed
testing   test kits for stores, models and transports of your own
sim       whole parties under faults, from one seed
cli       the command line
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.api.backup.backup import backup as backup
    from antiphon.api.backup.restore import restore as restore
    from antiphon.api.items.file import File as File
    from antiphon.api.items.handle import Handle as Handle
    from antiphon.api.items.list import List as List
    from antiphon.api.items.object import Object as Object
    from antiphon.api.items.text import Text as Text
    from antiphon.api.items.thread import Thread as Thread
    from antiphon.api.party import Party as Party
    from antiphon.api.query.deltas import Delta as Delta
    from antiphon.api.query.results import Results as Results
    from antiphon.api.store import Store as Store, open as open  # noqa: A004 - read as `antiphon.open`
    from antiphon.api.sync.sync import sync as sync
    from antiphon.core.errors import (
        AntiphonError as AntiphonError,
        BadEncoding as BadEncoding,
        BadSignature as BadSignature,
        BrokenChain as BrokenChain,
        ChannelFault as ChannelFault,
        CorruptBlock as CorruptBlock,
        DamagedBlob as DamagedBlob,
        DamagedItems as DamagedItems,
        DamagedStore as DamagedStore,
        DamagedTables as DamagedTables,
        DiskFull as DiskFull,
        Equivocation as Equivocation,
        FeedRetired as FeedRetired,
        InvalidInput as InvalidInput,
        InvalidMutation as InvalidMutation,
        ItemForked as ItemForked,
        KeyStoreError as KeyStoreError,
        LinkSilent as LinkSilent,
        MissingBlob as MissingBlob,
        MissingBlocks as MissingBlocks,
        MovedOn as MovedOn,
        NotAuthorised as NotAuthorised,
        PartyPaused as PartyPaused,
        RefusedBlocks as RefusedBlocks,
        StoreClosed as StoreClosed,
        StoreError as StoreError,
        StoreLocked as StoreLocked,
        TooLarge as TooLarge,
        UnknownFeed as UnknownFeed,
        UnknownItem as UnknownItem,
        UnknownKey as UnknownKey,
        UnknownModel as UnknownModel,
        UnknownParty as UnknownParty,
        WrongPassphrase as WrongPassphrase,
    )
    from antiphon.halo.credentials.claims import Policy as Policy, Role as Role
    from antiphon.model.value import Reference as Reference
    from antiphon.query.filters import Fact as Fact, Filter as Filter, Match as Match, prop as prop
    from antiphon.query.live.subscription import Subscription as Subscription
    from antiphon.query.query import Deleted as Deleted, OrderBy as OrderBy, Query as Query
    from antiphon.schema.definition import Schema as Schema, typed as typed
    from antiphon.schema.errors import SchemaViolation as SchemaViolation
else:
    __getattr__, __dir__ = lazy_exports(__name__)

__version__ = "0.1.0"
