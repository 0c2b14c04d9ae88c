"""The party of bench/epoch.py: devices that share one feed store, each with its own keys, states and blobs.

One device declares epochs, another attests them, all of them write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from antiphon.core.cid import RAW, Cid
from antiphon.core.keys import KeyPair
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.snapshot.blob_store import BlobStore
from antiphon.snapshot.blobs import Blobs

GENERATOR, ATTESTER = "generator", "attester"
NAMES = (GENERATOR, ATTESTER, "third", "fourth")


class Party(NamedTuple):
    """The keys with which a process finds the party in a feed store."""

    party: bytes
    genesis_feed: bytes

    def save(self, folder: Path) -> None:
        Path(folder, "party.json").write_text(json.dumps([self.party.hex(), self.genesis_feed.hex()]))

    @classmethod
    def load(cls, folder: Path) -> Party:
        party, feed = json.loads(Path(folder, "party.json").read_text())
        return cls(bytes.fromhex(party), bytes.fromhex(feed))


def found(folder: Path, store: FeedStore) -> list[FeedWriter]:
    """Found a party with its devices; return the writers of their data feeds."""
    devices = [_device(name) for name in NAMES]
    keys = [KeyStore.create(folder / f"{name}.keys", protection=Protection.UNPROTECTED) for name in NAMES]
    for (_, device), held in zip(devices, keys, strict=True):
        held.add(device.pair, KeyKind.DEVICE, "device", owner=device.identity)
    first = Membership.found(store, keys[0], *devices[0])
    members = [first]
    for (identity, device), held in zip(devices[1:], keys[1:], strict=True):
        first.admit(identity.key, [Role.EDITOR])
        member = Membership.open(store, held, device, first.party, first.genesis_feed)
        member.join(member.vouch(identity))
        members.append(member)
    first.refresh()
    first.set_policy(Policy(generator=devices[0][1].key, attesters=(devices[1][1].key,)))
    Party(bytes(first.party), bytes(first.genesis_feed)).save(folder)
    return [member.open_data_feed() for member in members]


class Running(NamedTuple):
    """A device with the party open."""

    party: PartyProcessor
    epochs: Epochs
    blobs: CountedBlobs


@contextmanager
def running(folder: Path, store: FeedStore, name: str) -> Iterator[Running]:
    """Open the party as one of its devices, durably."""
    known = Party.load(folder)
    keys = KeyStore.open(folder / f"{name}.keys")
    member = Membership.open(store, keys, _device(name)[1], known.party, known.genesis_feed)
    with BlobStore.open(folder / f"{name}.blobs") as held:
        blobs = CountedBlobs(held)
        authority = PartyAuthority.of(store, member)
        path = folder / f"{name}.items"
        with PartyProcessor(known.party, store, authority, path=path, models=MODELS, blobs=blobs) as party:
            yield Running(party, Epochs(party, member), blobs)


MODELS = ModelFactory.standard()


class CountedBlobs:
    """A blob store that counts the bytes read from it."""

    def __init__(self, held: Blobs) -> None:
        self._held = held
        self.putting = held.putting
        self.read = 0

    def get(self, cid: Cid) -> bytes:
        data = self._held.get(cid)
        self.read += len(data)
        return data

    def put(self, data: bytes, codec: int = RAW) -> Cid:
        return self._held.put(data, codec)

    def put_all(self, pairs: Iterable[tuple[Cid, bytes]]) -> None:
        self._held.put_all(pairs)

    def has(self, cid: Cid) -> bool:
        return self._held.has(cid)

    def missing(self, cids: Iterable[Cid]) -> list[Cid]:
        return self._held.missing(cids)


def _device(name: str) -> tuple[Identity, Device]:
    identity = Identity(_pair(name))
    return identity, Device(_pair(f"{name}'s device"), identity.key)


def _pair(name: str) -> KeyPair:
    return KeyPair.from_seed(sha256(name.encode()).digest())
