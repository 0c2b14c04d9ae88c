"""Antiphon: an ECHO database for Python. Peer-to-peer, eventually consistent objects on signed feeds.

The public names stand here. They are loaded when first used, so that `import antiphon` stays quick. The layers, each of
which imports only those before it:

core     keys, ids, CIDs, timeframes, stamps, errors, messages
feed     signed, hash-linked logs, and the store that keeps them
halo     key store, identities, devices, credentials, the party state machine
model    what items mean: the interface, the base collection, the fold that every engine shares
party    parties live: delivery, items, batches, streams, history, undo, and the stores behind them
query    queries and live subscriptions
schema   typed items
api      the database as an application sees it
testing  kits with which you prove stores and models of your own
cli      the command line
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.api.child_party import ChildParty as ChildParty
    from antiphon.api.invitation import Invitation as Invitation
    from antiphon.api.items.file import File as File
    from antiphon.api.items.handle import Handle as Handle
    from antiphon.api.items.list import List as List
    from antiphon.api.items.object import Object as Object
    from antiphon.api.items.text import Text as Text
    from antiphon.api.items.thread import Thread as Thread
    from antiphon.api.locator import Locator as Locator
    from antiphon.api.party import Party as Party
    from antiphon.api.query.results import Results as Results
    from antiphon.api.registry import LocalRegistry as LocalRegistry, Record as Record, Registry as Registry
    from antiphon.api.store import Store as Store, open as open  # noqa: A004 - read as `antiphon.open`
    from antiphon.api.sync.sync import sync as sync
    from antiphon.core.cid import Cid as Cid
    from antiphon.core.errors import (
        AntiphonError as AntiphonError,
        Equivocation as Equivocation,
        InvalidInput as InvalidInput,
        InvalidMutation as InvalidMutation,
        KeyStoreError as KeyStoreError,
        NotAuthorised as NotAuthorised,
        PartyPaused as PartyPaused,
        RefusedBlocks as RefusedBlocks,
        StoreError as StoreError,
        UnknownItem as UnknownItem,
        UnknownModel as UnknownModel,
        UnknownParty as UnknownParty,
    )
    from antiphon.core.ids import ItemId as ItemId
    from antiphon.core.keys import KeyPair as KeyPair, PublicKey as PublicKey
    from antiphon.core.ports import SystemRandomness as SystemRandomness
    from antiphon.core.stamp import Stamp as Stamp
    from antiphon.core.timeframe import Causality as Causality, Timeframe as Timeframe
    from antiphon.feed.block import Block as Block
    from antiphon.feed.encoder import Draft as Draft
    from antiphon.feed.fork import Fork as Fork
    from antiphon.feed.header import Kind as Kind
    from antiphon.feed.span import Span as Span
    from antiphon.feed.store.feed_store import FeedStore as FeedStore
    from antiphon.feed.writer import FeedWriter as FeedWriter
    from antiphon.halo.control.control_feeds import fold_control_feeds as fold_control_feeds
    from antiphon.halo.control.machine import PartyMachine as PartyMachine
    from antiphon.halo.control.state import PartyState as PartyState
    from antiphon.halo.credentials.claims import (
        EpochAttestation as EpochAttestation,
        EpochGenesis as EpochGenesis,
        FeedKind as FeedKind,
        Policy as Policy,
        Role as Role,
    )
    from antiphon.halo.keys.identity import (
        Device as Device,
        Identity as Identity,
        new_device as new_device,
        new_identity as new_identity,
        recover_identity as recover_identity,
    )
    from antiphon.halo.keys.key_file import Protection as Protection
    from antiphon.halo.keys.key_store import KeyStore as KeyStore
    from antiphon.halo.member.membership import Membership as Membership
    from antiphon.model.array.model import ArrayModel as ArrayModel
    from antiphon.model.factory import ModelFactory as ModelFactory
    from antiphon.model.file import FileModel as FileModel
    from antiphon.model.messenger.model import MessengerModel as MessengerModel
    from antiphon.model.model import Discard as Discard, Feeding as Feeding, Model as Model
    from antiphon.model.object.model import ObjectModel as ObjectModel
    from antiphon.model.text.model import TextModel as TextModel
    from antiphon.model.value import Reference as Reference
    from antiphon.party.engine.authority import OpenAuthority as OpenAuthority, PartyAuthority as PartyAuthority
    from antiphon.party.live.anchored_stream import ReadStream as ReadStream, WriteStream as WriteStream
    from antiphon.party.live.item import Item as Item
    from antiphon.party.live.manager import PartyManager as PartyManager
    from antiphon.party.live.processor import PartyProcessor as PartyProcessor
    from antiphon.party.live.undo import UndoStack as UndoStack
    from antiphon.party.store.item_store import ItemStore as ItemStore
    from antiphon.party.store.meta_store import MetaStore as MetaStore
    from antiphon.query.filters import Fact as Fact, Filter as Filter, Match as Match, prop as prop
    from antiphon.query.live.subscription import Subscription as Subscription
    from antiphon.query.query import Deleted as Deleted, OrderBy as OrderBy, Query as Query
    from antiphon.schema.definition import Schema as Schema, typed as typed
    from antiphon.schema.errors import SchemaViolation as SchemaViolation
    from antiphon.schema.migrations import Migrations as Migrations

__version__ = "0.1.0"
__getattr__, __dir__ = lazy_exports(__name__)
