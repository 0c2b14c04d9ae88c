"""`Crowd`: many devices of a party that only have feeds. They write the messages that their engines would have written.

>>> import tempfile
>>> from antiphon.testing.peers import Peers
>>> with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
...     alice = peers.add("alice")
...     with Crowd(alice, f"{folder}/crowd", 3) as crowd:
...         _ = alice.take(crowd.new_spans())
...         crowd.write(4, active=2)
...         _ = alice.take(crowd.new_spans())
...     sum(seq + 1 for seq in alice.party.timeframe.values()), alice.party.refused()
(7, [])
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from antiphon.core.ids import NONCE_SIZE, SYSTEM_ITEM, ItemId
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import DeviceAdmission, FeedAdmission, FeedKind, Role
from antiphon.halo.member.membership import Membership
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.model.object.model import ObjectModel
from antiphon.testing.peers import pair_of

ITEMS = 10  # that the devices set properties of
KEYS = 7
_OBJECT = ObjectModel()


class Founder(Protocol):
    """The device that admits the editors: a `Peer`, or the `Party` of a home."""

    @property
    def member(self) -> Membership | None:
        """The device in the party."""


class Crowd:
    """Devices of `count` editors. Each has created one object, and had heard of nobody but the founder by then.

    `write` lets a few of them write in turn; each has seen all messages before its own.
    """

    def __init__(self, founder: Founder, folder: str | Path, count: int) -> None:
        assert founder.member is not None
        self.party = bytes(founder.member.party)
        self.store = FeedStore.open(folder, durable=False)
        self.items: list[bytes] = []
        self._latest: dict[bytes, Entry] = {}
        self._sent: dict[bytes, int] = {}
        self._grown: dict[bytes, None] = {}
        self._turn = 0
        people = [pair_of(f"person {nth}") for nth in range(count)]
        for person in people:
            founder.member.admit(person.key, [Role.EDITOR])
        admitted = founder.member.machine.entries()
        self.writers = [self._join(nth, person, admitted) for nth, person in enumerate(people)]

    def _join(self, nth: int, person: KeyPair, admitted: Sequence[Entry]) -> FeedWriter:
        """Open the feeds of a device of a person, and let it create an object."""
        device, control, data = (pair_of(f"{name} {nth}") for name in ("device", "control", "data"))
        word = credential.sign(self.party, DeviceAdmission(person.key, device.key), [person, device])
        pen, writer = (FeedWriter.open(self.store, pair, self.party) for pair in (control, data))
        drafts = []
        for kind, pair in ((FeedKind.CONTROL, control), (FeedKind.DATA, data)):
            claim = FeedAdmission(pair.key, kind, person.key, device.key, word)
            signed = credential.sign(self.party, claim, [device, pair])
            drafts.append(Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed)))
        opened = self._append(pen, admitted, drafts)
        nonce = sha256(data.key).digest()[:NONCE_SIZE]
        genesis = write_genesis(Genesis(nonce, _OBJECT.name, _OBJECT.version))
        item = ItemId.derive(opened.lamport + 1, party=self.party, feed=data.key, genesis=genesis)
        self.items.append(bytes(item))
        self.see(self._append(writer, [*admitted, opened], [Draft(Kind.GENESIS, item, genesis)]))
        return writer

    def _append(self, writer: FeedWriter, seen: Sequence[Entry], drafts: Sequence[Draft]) -> Entry:
        writer.see(*seen)
        written = writer.extend(drafts)
        self._grown[bytes(writer.feed)] = None
        return Entry(bytes(writer.feed), written[-1].seq, written[-1].lamport, written.hash)

    def see(self, entry: Entry) -> None:
        """Let the devices see a block before they write again."""
        self._latest.pop(entry.feed, None)
        self._latest[entry.feed] = entry  # the newest is the last

    def write(self, count: int, *, active: int) -> None:
        """Let the first `active` devices write `count` messages in turn, each to one of the objects."""
        for _ in range(count):
            writer = self.writers[self._turn % active]
            mutation = _OBJECT.set(_OBJECT.initial(), f"key {self._turn % KEYS}", self._turn, feed=writer.feed)
            item = self.items[self._turn % min(ITEMS, len(self.items))]
            draft = Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, mutation))
            self.see(self._append(writer, self._news(writer), [draft]))
            self._turn += 1

    def _news(self, writer: FeedWriter) -> list[Entry]:
        """Return the blocks that a device has not seen when it last wrote."""
        news: list[Entry] = []
        for entry in reversed(self._latest.values()):
            if entry.feed == writer.feed and self.store.record(writer.feed).length > 1:
                break  # it had seen all before
            news.append(entry)
        return news

    def new_spans(self) -> list[Span]:
        """Return the blocks that were written since the last call."""
        grown, self._grown = self._grown, {}
        found = [span for feed in grown for span in self.store.spans(feed, self._sent.get(feed, 0))]
        self._sent.update((span.feed, span.end) for span in found)
        return found

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()
