"""The members of a generated party: its founder, who owns the home, and others whose feeds came by replication."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.generate.memory_feed import MemoryFeed
from antiphon.generate.seeded import ManualClock, pair_of
from antiphon.generate.sink import Sink
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import DeviceAdmission, FeedAdmission, FeedKind, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership

DEVICES_EACH = 3  # of three devices, two belong to one person
OWNER = 3  # the index of the person, besides the founder, who is an owner
POOL = 4  # how many people exist for each one in a party: so people are in several parties


@dataclass(slots=True, eq=False)
class Writer:
    """A device that writes to a party, and its feed."""

    identity: bytes
    log: MemoryFeed


@dataclass(frozen=True, slots=True)
class Home:
    """The home's own keys, store and clock, which all parties share."""

    store: FeedStore
    keys: KeyStore
    identity: Identity
    device: Device
    clock: ManualClock


def admit_writers(
    home: Home, founder: Membership, sink: Sink, chance: random.Random, names: tuple[int, int], count: int
) -> list[Writer]:
    """Return the founder's writer and those of other members, admitted and with open feeds.

    `names` are the seed and the index of the party.
    """
    data = founder.open_data_feed()
    own = MemoryFeed(home.keys.pair(data.feed), bytes(founder.party), sink, home.clock, chance, own=True)
    own.owner = True
    writers = [_writer(home.identity.key, own)]
    if count == 1:
        return writers
    seed, party = names
    people = [nth - nth // DEVICES_EACH for nth in range(count - 1)]  # the person of each device
    pool = chance.sample(range(POOL * (people[-1] + 1)), people[-1] + 1)
    for nth, person in enumerate(people):
        identity = pair_of(seed, "person", pool[person])
        device = pair_of(seed, "device", pool[person], nth > 0 and people[nth - 1] == person)
        role = Role.OWNER if person == OWNER else Role.EDITOR
        founder.admit(identity.key, [role])
        feeds = [pair_of(seed, party, nth, kind) for kind in ("control", "data")]
        _join(home, founder, chance, Identity(identity), Device(device, identity.key), feeds)
        log = MemoryFeed(feeds[1], bytes(founder.party), sink, home.clock, chance, own=False)
        log.owner = role is Role.OWNER
        writers.append(_writer(identity.key, log))
    return writers


def _writer(identity: bytes, log: MemoryFeed) -> Writer:
    log.identity = bytes(identity)
    return Writer(log.identity, log)


def _join(
    home: Home,
    founder: Membership,
    chance: random.Random,
    identity: Identity,
    device: Device,
    feeds: Sequence[KeyPair],
) -> None:
    """Open the control feed of another device and, in it, its data feed, as on that device's own machine."""
    party = bytes(founder.party)
    word = credential.sign(party, DeviceAdmission(identity.key, device.key), [identity.pair, device.pair])
    gathered = Sink(home.store, lambda _: None)
    pen = MemoryFeed(feeds[0], party, gathered, home.clock, chance, own=False)
    pen.see(founder.machine.entries())
    for kind, feed in zip((FeedKind.CONTROL, FeedKind.DATA), feeds, strict=True):
        claim = FeedAdmission(feed.key, kind, identity.key, device.key, word)
        pen.add(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(credential.sign(party, claim, [device.pair, feed])))
    pen.end()
    gathered.flush()
    founder.refresh()


def members_of(writers: Sequence[Writer]) -> int:
    """Return the number of identities among some writers."""
    return len({writer.identity for writer in writers})
