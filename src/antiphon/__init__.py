"""Antiphon: an ECHO database for Python. Peer-to-peer, eventually consistent objects on signed feeds.

The public names stand here. They are loaded when first used, so that `import antiphon` stays quick. The layers, each of
which imports only those before it:

core     keys, ids, CIDs, timeframes, stamps, errors, messages
feed     signed, hash-linked logs, and the store that keeps them
halo     key store, identities, devices, credentials, the party state machine
model    what items mean: the interface, the base collection, the fold that every engine shares
party    parties live: delivery, items, batches, streams, history, undo, and the stores behind them
testing  kits with which you prove stores and models of your own
cli      the command line
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    )
    from antiphon.core.ids import ItemId
    from antiphon.core.keys import KeyPair, PublicKey
    from antiphon.core.ports import SystemRandomness
    from antiphon.core.stamp import Stamp
    from antiphon.core.timeframe import Order, Timeframe
    from antiphon.feed.append import Draft
    from antiphon.feed.block import Block
    from antiphon.feed.fork import Fork
    from antiphon.feed.header import Kind
    from antiphon.feed.span import Span
    from antiphon.feed.store import FeedStore
    from antiphon.feed.writer import FeedWriter
    from antiphon.halo.claims import EpochAttestation, EpochGenesis, FeedKind, Policy, Role
    from antiphon.halo.identity import Device, Identity, new_device, new_identity, recover_identity
    from antiphon.halo.keyfile import Protection
    from antiphon.halo.keystore import KeyStore
    from antiphon.halo.machine import PartyMachine
    from antiphon.halo.membership import Membership, sync_machine
    from antiphon.halo.state import PartyState
    from antiphon.model.array import ArrayModel
    from antiphon.model.factory import ModelFactory
    from antiphon.model.interface import Discard, Feeding, Model
    from antiphon.model.messenger import MessengerModel
    from antiphon.model.object import ObjectModel
    from antiphon.model.text import TextModel
    from antiphon.model.value import Reference
    from antiphon.party.authority import OpenAuthority, PartyAuthority
    from antiphon.party.items import Item
    from antiphon.party.itemstore import ItemStore
    from antiphon.party.manager import PartyManager
    from antiphon.party.meta import MetaStore
    from antiphon.party.processor import PartyProcessor
    from antiphon.party.stream import ReadStream, WriteStream
    from antiphon.party.undo import UndoStack

__version__ = "0.1.0"

_WHERE = {
    "AntiphonError": "core.errors",
    "ArrayModel": "model.array",
    "Block": "feed.block",
    "Cid": "core.cid",
    "Device": "halo.identity",
    "Discard": "model.interface",
    "Draft": "feed.append",
    "EpochAttestation": "halo.claims",
    "EpochGenesis": "halo.claims",
    "Equivocation": "core.errors",
    "FeedKind": "halo.claims",
    "FeedStore": "feed.store",
    "FeedWriter": "feed.writer",
    "Feeding": "model.interface",
    "Fork": "feed.fork",
    "Identity": "halo.identity",
    "InvalidInput": "core.errors",
    "InvalidMutation": "core.errors",
    "Item": "party.items",
    "ItemId": "core.ids",
    "ItemStore": "party.itemstore",
    "KeyPair": "core.keys",
    "KeyStore": "halo.keystore",
    "KeyStoreError": "core.errors",
    "Kind": "feed.header",
    "Membership": "halo.membership",
    "MessengerModel": "model.messenger",
    "MetaStore": "party.meta",
    "Model": "model.interface",
    "ModelFactory": "model.factory",
    "NotAuthorised": "core.errors",
    "ObjectModel": "model.object",
    "OpenAuthority": "party.authority",
    "Order": "core.timeframe",
    "PartyAuthority": "party.authority",
    "PartyMachine": "halo.machine",
    "PartyManager": "party.manager",
    "PartyPaused": "core.errors",
    "PartyProcessor": "party.processor",
    "PartyState": "halo.state",
    "Policy": "halo.claims",
    "Protection": "halo.keyfile",
    "PublicKey": "core.keys",
    "ReadStream": "party.stream",
    "Reference": "model.value",
    "RefusedBlocks": "core.errors",
    "Role": "halo.claims",
    "Span": "feed.span",
    "Stamp": "core.stamp",
    "StoreError": "core.errors",
    "SystemRandomness": "core.ports",
    "TextModel": "model.text",
    "Timeframe": "core.timeframe",
    "UndoStack": "party.undo",
    "UnknownItem": "core.errors",
    "UnknownModel": "core.errors",
    "WriteStream": "party.stream",
    "new_device": "halo.identity",
    "new_identity": "halo.identity",
    "recover_identity": "halo.identity",
    "sync_machine": "halo.membership",
}

__all__ = [
    "AntiphonError",
    "ArrayModel",
    "Block",
    "Cid",
    "Device",
    "Discard",
    "Draft",
    "EpochAttestation",
    "EpochGenesis",
    "Equivocation",
    "FeedKind",
    "FeedStore",
    "FeedWriter",
    "Feeding",
    "Fork",
    "Identity",
    "InvalidInput",
    "InvalidMutation",
    "Item",
    "ItemId",
    "ItemStore",
    "KeyPair",
    "KeyStore",
    "KeyStoreError",
    "Kind",
    "Membership",
    "MessengerModel",
    "MetaStore",
    "Model",
    "ModelFactory",
    "NotAuthorised",
    "ObjectModel",
    "OpenAuthority",
    "Order",
    "PartyAuthority",
    "PartyMachine",
    "PartyManager",
    "PartyPaused",
    "PartyProcessor",
    "PartyState",
    "Policy",
    "Protection",
    "PublicKey",
    "ReadStream",
    "Reference",
    "RefusedBlocks",
    "Role",
    "Span",
    "Stamp",
    "StoreError",
    "SystemRandomness",
    "TextModel",
    "Timeframe",
    "UndoStack",
    "UnknownItem",
    "UnknownModel",
    "WriteStream",
    "__version__",
    "new_device",
    "new_identity",
    "recover_identity",
    "sync_machine",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"antiphon has no {name!r}")
    value = getattr(import_module(f"antiphon.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
