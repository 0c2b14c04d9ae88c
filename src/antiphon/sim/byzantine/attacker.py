"""`Attacker`: abilities of a byzantine peer that no honest program has. It uses a member's keys and open sessions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft
from antiphon.feed.header import NO_HASH, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim
from antiphon.mesh.link.frames import Data, encode as encode_frame
from antiphon.mesh.link.limits import PIECE_SIZE_MAX
from antiphon.mesh.replication.codec import encode
from antiphon.mesh.replication.limits import RANGES_MAX
from antiphon.mesh.replication.message import Announcement, Body, Holding, Message, Ranges
from antiphon.model.message import Genesis, wrap, write_genesis
from antiphon.sim.peer import SimPeer
from antiphon.testing.spans import SpanWriter

_ANSWERED = 1  # the id of a request that was answered long ago: an answer to it is late, but not unrequested
_PAUSE_MS = 20


class Attacker:
    """A byzantine peer during one attack."""

    def __init__(
        self,
        peer: SimPeer,
        others: Sequence[SimPeer],
        chance: random.Random,
        token: Callable[[], str],
        bait: Callable[[bytes], None] = lambda _item: None,
    ) -> None:
        self.peer = peer
        self.others = others
        self.chance = chance
        self.token = token  # makes the text of a forged write, which must show in no item
        self.bait = bait  # takes an item that honest peers shall write to

    # -- messages of the protocol

    def names(self) -> list[str]:
        """The neighbours, in an order that the seed of the attack decides."""
        names = sorted(self.peer.neighbours)
        self.chance.shuffle(names)
        return names

    def some(self) -> list[str]:
        """About half of the neighbours, at least one: they get other data than the rest."""
        names = self.names()
        return names[: max(1, len(names) // 2)]

    def send(self, name: str, data: bytes) -> None:
        """Send bytes to a neighbour as a message about the party, whatever they are, if there is a link."""
        peer = self.peer
        link, connection = peer.links.link(name), peer.links.connection(name)
        spoken = None if link is None else link._matching.get(peer.key)
        if link is None or connection is None or spoken is None:
            return
        pieces = [data[at : at + PIECE_SIZE_MAX] for at in range(0, len(data), PIECE_SIZE_MAX)]
        frames = [Data(spoken.mine, at == 0, at == len(pieces) - 1, piece) for at, piece in enumerate(pieces)]
        connection.write(peer.name, b"".join(link.channel.seal(encode_frame(frame)) for frame in frames))

    def post(self, name: str, body: Body | None, *, heard: int | None = None, party: bytes = b"") -> None:
        """Send a message in the session with a neighbour, if there is one."""
        session = self.peer.sessions.get(name)
        if session is None or not session.connected:
            return
        greeting = session._handshake
        told = session._heard if heard is None else heard
        message = Message(party or self.peer.key, greeting.mine, greeting.theirs, told, body)
        self.send(name, encode(message))

    def push(self, names: Iterable[str], *spans: Span, control: bool = False) -> None:
        """Make neighbours ingest spans that they did not request: announce the feeds, then send late answers."""
        peer, (_, slowest) = self.peer, self.peer.network.weather.delay_ms
        for name in names:
            for place, span in enumerate(spans):
                held = Holding(span.feed, 0, span.end, span.hash_at(span.end - 1), control)
                answer = Ranges(_ANSWERED, (span.encode(),))
                self.post(name, Announcement(0, 0, (held,)))
                delay_ms = (2 + place) * slowest + _PAUSE_MS  # until the announcement arrived and a request was sent
                peer._ask(delay_ms, lambda name=name, answer=answer: self.post(name, answer))  # type: ignore[misc]

    def push_bytes(self, name: str, *spans: bytes) -> None:
        """Send encoded spans as a late answer."""
        self.post(name, Ranges(_ANSWERED, spans[:RANGES_MAX]))

    # -- feeds

    def data_feed(self) -> bytes:
        """The key of this device's data feed."""
        return bytes(self.peer.member.open_data_feed().feed)

    def writer_at(self, feed: bytes, at: int | None = None) -> SpanWriter:
        """A writer that signs other blocks of a feed of this device from a position on, without storing them."""
        store, pair = self.peer.store, self.peer.keys.pair(feed)
        writer = SpanWriter(pair, self.peer.key, seed=self.chance.randrange(1 << 32))
        record = store.record(feed)
        if at is not None and at < record.length:
            block = store.block(feed, at - 1) if at else None
            record = replace(
                record,
                length=at,
                hash=block.hash if block is not None else NO_HASH,
                lamport=block.lamport if block is not None else 0,
            )
        writer.record = record
        return writer

    def key(self) -> KeyPair:
        """A new key pair that no peer knows."""
        return KeyPair.from_seed(self.chance.randbytes(32))

    def stranger(self, pair: KeyPair | None = None) -> SpanWriter:
        """A writer of a feed that is not admitted."""
        return SpanWriter(pair or self.key(), self.peer.key, seed=self.chance.randrange(1 << 32))

    def spans(self, *, foreign: bool = False) -> list[Span]:
        """The spans in the store of this peer; with `foreign`, only those of other devices' feeds."""
        store, own = self.peer.store, set()
        for writer in (self.peer.member.control, self.peer.member.data):
            if writer is not None:
                own.add(bytes(writer.feed))
        records = sorted(store.feeds(self.peer.key), key=lambda record: record.feed)
        return [
            span
            for record in records
            if record.length > record.start and not (foreign and record.feed in own)
            for span in store.spans(record.feed, record.start)
        ]

    # -- item messages

    def items(self) -> list[bytes]:
        return sorted(self.peer.party.items())

    def write(self, *drafts: Draft, atomic: bool = False) -> Sequence[Stamp]:
        """Append messages to this device's data feed without any check."""
        return self.peer.member.open_data_feed().extend(drafts, atomic=atomic)

    def setting(self, item: bytes, value: str) -> Draft:
        """A message that sets a property of an object."""
        model = self.peer.models.get("antiphon/object")
        return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, model.set(model.initial(), "forged", value)))  # type: ignore[attr-defined]

    def body(self, item: bytes, value: str) -> bytes:
        """The body of a block that sets a property of an object."""
        return self.chance.randbytes(SALT_SIZE) + self.setting(item, value).message

    def genesis(self, item: bytes, model: str = "antiphon/object") -> Draft:
        return Draft(Kind.GENESIS, item, write_genesis(Genesis(self.chance.randbytes(16), model, 1)))

    def an_object(self) -> bytes | None:
        """An object that a forged mutation can address; None if there is none."""
        found = [item for item in self.items() if self.peer.party.item(item).model[0] == "antiphon/object"]
        return self.chance.choice(found) if found else None

    # -- credentials

    def signed(self, claim: Claim, *pairs: KeyPair, expires_ms: int = 0) -> bytes:
        """Sign a credential, with this device's key unless others are given."""
        signers = pairs or (self.peer.device.pair,)
        nonce = self.chance.randbytes(16)
        return credential.sign(self.peer.key, claim, signers, expires_ms=expires_ms, nonce=nonce)

    def append(self, claim: Claim, *pairs: KeyPair, expires_ms: int = 0) -> Stamp:
        """Append a credential to this device's control feed, permitted or not."""
        self.peer.member.refresh()
        return self.peer.member._append(self.signed(claim, *pairs, expires_ms=expires_ms))


def as_draft(signed: bytes) -> Draft:
    """A credential as a message of a control feed."""
    return Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))
