"""`Mallory`: the hostile member of `bench/hostile.py`, an editor of the party with the keys of its own device.

It writes signed blocks without any check of an honest program, so each attack goes through the ingest, the judging and
the folds of the peers that receive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from antiphon.api.party import Party
from antiphon.api.store import Store
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, FeedKind
from antiphon.model.message import Genesis, wrap, write_genesis

BATCH = 256  # blocks under one head
OVERHEAD = HEADER_SIZE + HASH_SIZE + SALT_SIZE  # bytes of a block beside its message


def key_pairs(label: str) -> Iterator[KeyPair]:
    """Yield other keys without end, the same for the same label."""
    number = 0
    while True:
        yield KeyPair.from_seed(sha256(f"{label} {number}".encode()).digest())
        number += 1


TEAM = next(key_pairs("team"))  # a group that the owner has admitted as one, and whose key the hostile member has


class Mallory:
    """A member's device that writes whatever it likes, up to a number of bytes."""

    def __init__(self, store: Store, party: Party) -> None:
        self.member = store.manager.member(party.key)
        self.feeds = store.manager.feeds
        self.party = bytes(party.key)
        self.identity = store.identity
        self.keys = store.keys
        self.honest = self._feeds_of_founder()
        self._before = {record.feed: record.length for record in self.feeds.feeds(self.party)}
        self.data = self.member.open_data_feed()
        assert self.member.control is not None
        self.control: FeedWriter = self.member.control
        # The first block has seen the control feeds; from then on each lamport is one above the one before.
        self.data.extend([mutation(bytes(16), b"")])
        self.spent = 0
        self.created: list[bytes] = []
        self._shown: list[Span] = []

    def spend(self, writer: FeedWriter, size: int, drafts: Iterable[Draft]) -> None:
        """Append drafts until `size` bytes are spent in all, or the drafts end."""
        waiting: list[Draft] = []
        for draft in drafts:
            waiting.append(draft)
            self.spent += OVERHEAD + len(draft.message)
            if len(waiting) == BATCH or self.spent >= size:
                writer.extend(waiting, atomic=False)
                waiting = []
            if self.spent >= size:
                break
        if waiting:
            writer.extend(waiting, atomic=False)

    def _feeds_of_founder(self) -> dict[FeedKind, bytes]:
        """Return a control feed and a data feed of the member who founded the party."""
        state = self.member.state
        founder = state.feed(self.member.machine.genesis_feed)
        assert founder is not None
        return {feed.kind: feed.feed for feed in state.feeds if feed.device == founder.device}

    def show(self, span: Span) -> None:
        """Hand out a span that is not in the store of this member: of another history, say."""
        self._shown.append(span)
        self.spent += len(span.encode())

    def spans(self) -> list[Span]:
        """Return all blocks that were written since the beginning, as a peer receives them, and what is shown.

        They come in the order in which they were written. In the order of the feeds' keys, which are random, all data
        blocks may come before a control block that they wait for, and a run of the benchmark measures another thing
        than the next one: blocks that are folded at once, instead of one portion after the other.
        """
        return [*sorted(self._written(), key=_first_stamp), *self._shown]

    def _written(self) -> list[Span]:
        return [
            span
            for record in self.feeds.feeds(self.party)
            for span in self.feeds.spans(record.feed, self._before.get(record.feed, 0))
            if record.length > self._before.get(record.feed, 0)
        ]

    def create(self, model: str, parent: bytes = b"", number: int = 0) -> bytes:
        """Create an item, and return its id."""
        nonce = sha256(f"{model} {number}".encode()).digest()[:16]
        lamport = self.feeds.record(self.data.feed).lamport + 1
        message = write_genesis(Genesis(nonce, model, 1, parent))
        item = bytes(ItemId.derive(lamport, party=self.party, feed=self.data.feed, genesis=message))
        self.data.extend([Draft(Kind.GENESIS, item, message)])
        self.created.append(item)
        self.spent += OVERHEAD + len(message)
        return item

    def vouch(self) -> bytes:
        """Return the identity's credential for the device."""
        return self.member.vouch(self.identity)

    def signed(self, claim: Claim, number: int, *signers: KeyPair) -> Draft:
        """Return a draft of a credential, signed by the device and other keys."""
        pairs = [self.member.device.pair, *signers]
        word = credential.sign(self.party, claim, pairs, nonce=number.to_bytes(12, "big"))
        return Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word))


def _first_stamp(span: Span) -> tuple[int, bytes, int]:
    return int(span.columns["lamport"][0]), span.feed, span.first


def mutation(item: bytes, data: bytes) -> Draft:
    """Return a draft of a mutation."""
    return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, data))
