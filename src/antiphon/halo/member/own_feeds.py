"""`OwnFeeds`: the feeds of one device in a party, and the state machine that tells whether they count."""

from __future__ import annotations

from antiphon.core.errors import UnknownKey
from antiphon.core.keys import KEY_SIZE, PublicKey
from antiphon.feed.header import NO_END
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import FeedKind
from antiphon.halo.keys.identity import Device
from antiphon.halo.keys.key_file import KeyKind
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.late_opening import LateOpening


class OwnFeeds:
    """A device with its feeds in a party. They are read, as all control feeds, when something asks for them."""

    def __init__(self, store: FeedStore, keys: KeyStore, device: Device, party: bytes, genesis_feed: bytes) -> None:
        self.party = PublicKey(party)
        self.genesis_feed = PublicKey(genesis_feed)
        self.device = device
        self._store = store
        self._keys = keys
        self._machine = PartyMachine(self.party, self.genesis_feed)
        self._control: FeedWriter | None = None
        self._data: FeedWriter | None = None
        self._to_open = LateOpening()

    @property
    def is_open(self) -> bool:
        """True if the control feeds are read."""
        return self._to_open.done

    @property
    def machine(self) -> PartyMachine:
        """The state machine of the party."""
        self._to_open()
        return self._machine

    @property
    def control(self) -> FeedWriter | None:
        """The control feed of this device; None if it has none."""
        self._to_open()
        return self._control

    @control.setter
    def control(self, writer: FeedWriter | None) -> None:
        self._control = writer

    @property
    def data(self) -> FeedWriter | None:
        """The data feed of this device; None if it has none."""
        self._to_open()
        return self._data

    @data.setter
    def data(self, writer: FeedWriter | None) -> None:
        self._data = writer

    @property
    def parent(self) -> PartyMachine | None:
        """The state machine of the parent of a child party. A party whose control feeds wait to be read has none."""
        return self._machine.parent

    def find(self, kind: FeedKind) -> FeedWriter | None:
        """Return the open feed of this device of one kind, if there is one.

        A feed that was admitted and has no record here was opened after this store was copied: it may have blocks.
        """
        authority = self.machine.authority
        authority.settle()
        for feed, owner in sorted(authority.owners().items()):
            if (owner.device, owner.kind) != (self.device.key, kind):
                continue
            held = self._store.find(feed)
            if held is None or held.party != self.party:
                continue
            if held.writable and not held.retired and authority.end(feed) > held.length:
                try:
                    return FeedWriter.open(self._store, self._keys.pair(PublicKey(feed)), self.party)
                except UnknownKey:
                    continue
        return None

    # -- at rest

    def device_at_rest(self) -> bytes:
        """Return the device with its feeds, if the party can rest until a feed of the party changes; else ""."""
        machine, own = self.machine, [writer.feed for writer in (self.control, self.data) if writer is not None]
        if machine.parent is not None or self.control is None or any(True for _ in machine.wanted()):
            return b""
        if any(machine.authority.end(feed) != NO_END for feed in own) or not machine.roles_of(self.device.identity):
            return b""
        return b"".join((self.device.key, *own))

    def is_device(self, device: bytes) -> bool:
        """True if these are this device and feeds whose keys are here. No control block is read."""
        key, *feeds = (device[at : at + KEY_SIZE] for at in range(0, len(device), KEY_SIZE))
        held = {bytes(record.key) for record in self._keys.keys(KeyKind.FEED)}
        return key == self.device.key and held.issuperset(feeds)
