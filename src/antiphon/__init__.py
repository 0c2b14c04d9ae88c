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

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.api.child_party import ChildParty
    from antiphon.api.invitation import Invitation
    from antiphon.api.items.file import File
    from antiphon.api.items.handle import Handle
    from antiphon.api.items.list import List
    from antiphon.api.items.object import Object
    from antiphon.api.items.text import Text
    from antiphon.api.items.thread import Thread
    from antiphon.api.locator import Locator
    from antiphon.api.options import OrderBy
    from antiphon.api.party import Party
    from antiphon.api.query.results import Results
    from antiphon.api.registry import LocalRegistry, Record, Registry
    from antiphon.api.store import Store
    from antiphon.api.sync.sync import exchange
    from antiphon.api.typed.schemas import typed
    from antiphon.core.cid import Cid
    from antiphon.core.errors import (
        AntiphonError,
        Equivocation,
        InvalidInput,
        InvalidMutation,
        KeyStoreError,
        NotAuthorised,
        PartyPaused,
        RefusedBlocks,
        StoreError,
        UnknownItem,
        UnknownModel,
        UnknownParty,
    )
    from antiphon.core.ids import ItemId
    from antiphon.core.keys import KeyPair, PublicKey
    from antiphon.core.ports import SystemRandomness
    from antiphon.core.stamp import Stamp
    from antiphon.core.timeframe import Order, Timeframe
    from antiphon.feed.block import Block
    from antiphon.feed.encoder import Draft
    from antiphon.feed.fork import Fork
    from antiphon.feed.header import Kind
    from antiphon.feed.span import Span
    from antiphon.feed.store.feed_store import FeedStore
    from antiphon.feed.writer import FeedWriter
    from antiphon.halo.control.machine import PartyMachine
    from antiphon.halo.control.state import PartyState
    from antiphon.halo.credentials.claims import EpochAttestation, EpochGenesis, FeedKind, Policy, Role
    from antiphon.halo.keys.identity import Device, Identity, new_device, new_identity, recover_identity
    from antiphon.halo.keys.key_file import Protection
    from antiphon.halo.keys.key_store import KeyStore
    from antiphon.halo.member.membership import Membership, sync_machine
    from antiphon.model.array.model import ArrayModel
    from antiphon.model.factory import ModelFactory
    from antiphon.model.file import FileModel
    from antiphon.model.messenger.model import MessengerModel
    from antiphon.model.model import Discard, Feeding, Model
    from antiphon.model.object.model import ObjectModel
    from antiphon.model.text.model import TextModel
    from antiphon.model.value import Reference
    from antiphon.party.engine.authority import OpenAuthority, PartyAuthority
    from antiphon.party.live.anchored_stream import ReadStream, WriteStream
    from antiphon.party.live.item import Item
    from antiphon.party.live.manager import PartyManager
    from antiphon.party.live.processor import PartyProcessor
    from antiphon.party.live.undo import UndoStack
    from antiphon.party.store.item_store import ItemStore
    from antiphon.party.store.meta_store import MetaStore
    from antiphon.query.filters import Fact, Filter, Match, prop
    from antiphon.query.live.subscription import Subscription
    from antiphon.query.query import Deleted, Query
    from antiphon.schema.definition import Schema
    from antiphon.schema.errors import SchemaViolation
    from antiphon.schema.migrations import Migrations

__version__ = "0.1.0"

_WHERE = {
    "AntiphonError": "core.errors",
    "ArrayModel": "model.array",
    "Block": "feed.block",
    "ChildParty": "api.children",
    "Cid": "core.cid",
    "Deleted": "query.query",
    "Device": "halo.identity",
    "Discard": "model.interface",
    "Draft": "feed.append",
    "EpochAttestation": "halo.claims",
    "EpochGenesis": "halo.claims",
    "Equivocation": "core.errors",
    "Fact": "query.filters",
    "FeedKind": "halo.claims",
    "FeedStore": "feed.store",
    "FeedWriter": "feed.writer",
    "Feeding": "model.interface",
    "File": "api.files",
    "FileModel": "model.file",
    "Filter": "query.filters",
    "Fork": "feed.fork",
    "Handle": "api.handle",
    "Identity": "halo.identity",
    "InvalidInput": "core.errors",
    "InvalidMutation": "core.errors",
    "Invitation": "api.invitation",
    "Item": "party.items",
    "ItemId": "core.ids",
    "ItemStore": "party.itemstore",
    "KeyPair": "core.keys",
    "KeyStore": "halo.keystore",
    "KeyStoreError": "core.errors",
    "Kind": "feed.header",
    "List": "api.lists",
    "LocalRegistry": "api.registry",
    "Locator": "api.locator",
    "Match": "query.filters",
    "Membership": "halo.membership",
    "MessengerModel": "model.messenger",
    "MetaStore": "party.meta",
    "Migrations": "schema.migrations",
    "Model": "model.interface",
    "ModelFactory": "model.factory",
    "NotAuthorised": "core.errors",
    "Object": "api.objects",
    "ObjectModel": "model.object",
    "OpenAuthority": "party.authority",
    "Order": "core.timeframe",
    "OrderBy": "api.options",
    "Party": "api.party",
    "PartyAuthority": "party.authority",
    "PartyMachine": "halo.machine",
    "PartyManager": "party.manager",
    "PartyPaused": "core.errors",
    "PartyProcessor": "party.processor",
    "PartyState": "halo.state",
    "Policy": "halo.claims",
    "Protection": "halo.keyfile",
    "PublicKey": "core.keys",
    "Query": "query.query",
    "ReadStream": "party.stream",
    "Record": "api.registry",
    "Reference": "model.value",
    "RefusedBlocks": "core.errors",
    "Registry": "api.registry",
    "Results": "api.results",
    "Role": "halo.claims",
    "Schema": "schema.definition",
    "SchemaViolation": "schema.errors",
    "Span": "feed.span",
    "Stamp": "core.stamp",
    "Store": "api.store",
    "StoreError": "core.errors",
    "Subscription": "query.subscription",
    "SystemRandomness": "core.ports",
    "Text": "api.texts",
    "TextModel": "model.text",
    "Thread": "api.threads",
    "Timeframe": "core.timeframe",
    "UndoStack": "party.undo",
    "UnknownItem": "core.errors",
    "UnknownModel": "core.errors",
    "UnknownParty": "core.errors",
    "WriteStream": "party.stream",
    "exchange": "api.exchange",
    "new_device": "halo.identity",
    "new_identity": "halo.identity",
    "prop": "query.filters",
    "recover_identity": "halo.identity",
    "sync_machine": "halo.membership",
    "typed": "api.typed",
}

__all__ = [
    "AntiphonError",
    "ArrayModel",
    "Block",
    "ChildParty",
    "Cid",
    "Deleted",
    "Device",
    "Discard",
    "Draft",
    "EpochAttestation",
    "EpochGenesis",
    "Equivocation",
    "Fact",
    "FeedKind",
    "FeedStore",
    "FeedWriter",
    "Feeding",
    "File",
    "FileModel",
    "Filter",
    "Fork",
    "Handle",
    "Identity",
    "InvalidInput",
    "InvalidMutation",
    "Invitation",
    "Item",
    "ItemId",
    "ItemStore",
    "KeyPair",
    "KeyStore",
    "KeyStoreError",
    "Kind",
    "List",
    "LocalRegistry",
    "Locator",
    "Match",
    "Membership",
    "MessengerModel",
    "MetaStore",
    "Migrations",
    "Model",
    "ModelFactory",
    "NotAuthorised",
    "Object",
    "ObjectModel",
    "OpenAuthority",
    "Order",
    "OrderBy",
    "Party",
    "PartyAuthority",
    "PartyMachine",
    "PartyManager",
    "PartyPaused",
    "PartyProcessor",
    "PartyState",
    "Policy",
    "Protection",
    "PublicKey",
    "Query",
    "ReadStream",
    "Record",
    "Reference",
    "RefusedBlocks",
    "Registry",
    "Results",
    "Role",
    "Schema",
    "SchemaViolation",
    "Span",
    "Stamp",
    "Store",
    "StoreError",
    "Subscription",
    "SystemRandomness",
    "Text",
    "TextModel",
    "Thread",
    "Timeframe",
    "UndoStack",
    "UnknownItem",
    "UnknownModel",
    "UnknownParty",
    "WriteStream",
    "__version__",
    "exchange",
    "new_device",
    "new_identity",
    "open",
    "prop",
    "recover_identity",
    "sync_machine",
    "typed",
]


def open(path: str | Path, **options: Any) -> Store:  # noqa: A001 - `antiphon.open` reads as it is meant
    """The store in a folder, made if there is none: see `Store.open` for the options."""
    from antiphon.api.store import Store

    return Store.open(path, **options)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"antiphon has no {name!r}")
    value = getattr(import_module(f"antiphon.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
