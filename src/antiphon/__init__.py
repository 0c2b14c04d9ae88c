"""Antiphon: an ECHO database for Python. Peer-to-peer, eventually consistent objects on signed feeds.

The public names stand here. They are loaded when first used, so that `import antiphon` stays quick. The layers, each of
which imports only those before it:

core     keys, ids, CIDs, timeframes, stamps, errors, messages
feed     signed, hash-linked logs, and the store that keeps them
halo     key store, identities, devices, credentials, the party state machine
party    what this machine knows of its parties
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
        KeyStoreError,
        NotAuthorised,
        RefusedBlocks,
        StoreError,
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
    from antiphon.party.meta import MetaStore

__version__ = "0.1.0"

_WHERE = {
    "AntiphonError": "core.errors",
    "Block": "feed.block",
    "Cid": "core.cid",
    "Device": "halo.identity",
    "Draft": "feed.append",
    "EpochAttestation": "halo.claims",
    "EpochGenesis": "halo.claims",
    "Equivocation": "core.errors",
    "FeedKind": "halo.claims",
    "FeedStore": "feed.store",
    "FeedWriter": "feed.writer",
    "Fork": "feed.fork",
    "Identity": "halo.identity",
    "InvalidInput": "core.errors",
    "ItemId": "core.ids",
    "KeyPair": "core.keys",
    "KeyStore": "halo.keystore",
    "KeyStoreError": "core.errors",
    "Kind": "feed.header",
    "Membership": "halo.membership",
    "MetaStore": "party.meta",
    "NotAuthorised": "core.errors",
    "Order": "core.timeframe",
    "PartyMachine": "halo.machine",
    "PartyState": "halo.state",
    "Policy": "halo.claims",
    "Protection": "halo.keyfile",
    "PublicKey": "core.keys",
    "RefusedBlocks": "core.errors",
    "Role": "halo.claims",
    "Span": "feed.span",
    "Stamp": "core.stamp",
    "StoreError": "core.errors",
    "SystemRandomness": "core.ports",
    "Timeframe": "core.timeframe",
    "new_device": "halo.identity",
    "new_identity": "halo.identity",
    "recover_identity": "halo.identity",
    "sync_machine": "halo.membership",
}

__all__ = [
    "AntiphonError",
    "Block",
    "Cid",
    "Device",
    "Draft",
    "EpochAttestation",
    "EpochGenesis",
    "Equivocation",
    "FeedKind",
    "FeedStore",
    "FeedWriter",
    "Fork",
    "Identity",
    "InvalidInput",
    "ItemId",
    "KeyPair",
    "KeyStore",
    "KeyStoreError",
    "Kind",
    "Membership",
    "MetaStore",
    "NotAuthorised",
    "Order",
    "PartyMachine",
    "PartyState",
    "Policy",
    "Protection",
    "PublicKey",
    "RefusedBlocks",
    "Role",
    "Span",
    "Stamp",
    "StoreError",
    "SystemRandomness",
    "Timeframe",
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
