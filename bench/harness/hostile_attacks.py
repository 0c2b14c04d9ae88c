"""What a hostile member writes for `bench/hostile.py`: for each surface, the dearest blocks that we know of.

A `Mallory` is an editor of the party with the keys of its own device. It writes signed blocks without any check of an
honest program, so each attack goes through the ingest, the judging and the folds of the peers that receive it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

from antiphon.api.party import Party
from antiphon.api.store import Store
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.v1 import array_pb2, messenger_pb2, text_pb2
from antiphon.feed.encoder import Draft
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE, Kind
from antiphon.feed.limits import SALT_SIZE
from antiphon.feed.span import Span
from antiphon.feed.writer import FeedWriter
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    DeviceAdmission,
    FeedAdmission,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Policy,
    Role,
)
from antiphon.model.access import Access
from antiphon.model.array.position import AFTER, KEY_SIZE_MAX, TAG_SIZE, encode_int
from antiphon.model.message import Change, Genesis, wrap, write_change, write_genesis
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.model.value import to_proto

BATCH = 256  # blocks under one head
OVERHEAD = HEADER_SIZE + HASH_SIZE + SALT_SIZE  # bytes of a block beside its message
LONG_WORD = 40
RUN_SIZE = 16_384  # elements at once at a long position key


class Mallory:
    """A member's device that writes whatever it likes, up to a number of bytes."""

    def __init__(self, store: Store, party: Party) -> None:
        self.member = store.manager.member(party.key)
        self.feeds = store.manager.feeds
        self.party = bytes(party.key)
        self.identity = store.identity
        self._before = {record.feed: record.length for record in self.feeds.feeds(self.party)}
        self.data = self.member.open_data_feed()
        assert self.member.control is not None
        self.control: FeedWriter = self.member.control
        # The first block has seen the control feeds; from then on each lamport is one above the one before.
        self.data.extend([_mutation(bytes(16), b"")])
        self.spent = 0
        self.created: list[bytes] = []

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

    def spans(self) -> list[Span]:
        """Return all blocks that were written since the beginning, as a peer receives them."""
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

    def signed(self, claim: Claim, number: int, *signers: KeyPair) -> Draft:
        """Return a draft of a credential, signed by the device and other keys."""
        pairs = [self.member.device.pair, *signers]
        word = credential.sign(self.party, claim, pairs, nonce=number.to_bytes(12, "big"))
        return Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(word))


def _keys(label: str) -> Iterator[KeyPair]:
    number = 0
    while True:
        yield KeyPair.from_seed(sha256(f"{label} {number}".encode()).digest())
        number += 1


def control_acts(mallory: Mallory, size: int) -> None:
    """Grants into a group of its own, grants and policies without any right, all in one control feed."""
    group = next(_keys("group"))

    def acts() -> Iterator[Draft]:
        for number, pair in enumerate(_keys("member")):
            yield mallory.signed(GroupAdmission(bytes(group.key), bytes(pair.key)), 3 * number, group)
            yield mallory.signed(MemberAdmission(bytes(pair.key), frozenset({Role.OWNER})), 3 * number + 1)
            yield mallory.signed(Policy(editors_admit=True, keep_epochs=number), 3 * number + 2)

    mallory.spend(mallory.control, size, acts())


def feeds(mallory: Mallory, size: int) -> None:
    """Admissions of data feeds without end, all by one device."""
    device = mallory.member.device
    word = credential.sign(
        mallory.party, DeviceAdmission(device.identity, device.key), [mallory.identity.pair, device.pair]
    )

    def admissions() -> Iterator[Draft]:
        for number, pair in enumerate(_keys("feed")):
            claim = FeedAdmission(bytes(pair.key), FeedKind.DATA, device.identity, device.key, word)
            yield mallory.signed(claim, number, pair)

    mallory.spend(mallory.control, size, admissions())


def objects(mallory: Mallory, size: int) -> None:
    """Writes of one key that replace nothing: each stays as a concurrent value."""
    item = mallory.create("antiphon/object")
    feed = mallory.data.feed
    mallory.spend(
        mallory.data, size, (_mutation(item, write_mutation([Op(("key",), number)], feed)) for number in range(size))
    )


def arrays(mallory: Mallory, size: int) -> None:
    """Runs of empty values at position keys of the greatest size."""
    item = mallory.create("antiphon/array")
    path = b""
    while mallory.spent < size:
        deep = len(path) > KEY_SIZE_MAX - 128
        record = mallory.feeds.record(mallory.data.feed)
        proto = array_pb2.ArrayMutation()
        insert = proto.ops.add().insert
        insert.place.path = path
        insert.values.extend([to_proto(None)] * (RUN_SIZE if deep else 1))
        mallory.spend(mallory.data, size, [_mutation(item, proto.SerializeToString())])
        if not deep:  # the next one is behind the first element of this run
            run = encode_int(record.lamport + 1) + mallory.data.feed[:TAG_SIZE] + encode_int(record.length)
            path += run + encode_int(0) + AFTER


def texts(mallory: Mallory, size: int) -> None:
    """Elements that hang to the left of one another, in mutations of thousands of insertions."""
    item = mallory.create("antiphon/text")
    count = 4096

    def spines() -> Iterator[Draft]:
        last: tuple[int, int] | None = None
        while True:
            record = mallory.feeds.record(mallory.data.feed)
            proto = text_pb2.TextMutation()
            for offset in range(count):
                insert = proto.inserts.add()
                insert.text = "x"
                if last is None:
                    insert.place = text_pb2.TEXT_PLACE_ROOT
                else:
                    insert.lamport, insert.offset = last
                    insert.place = text_pb2.TEXT_PLACE_LEFT
                last = record.lamport + 1, offset
            yield _mutation(item, proto.SerializeToString())

    for draft in spines():
        mallory.spend(mallory.data, size, [draft])
        if mallory.spent >= size:
            return


def messengers(mallory: Mallory, size: int) -> None:
    """A chain of replies, each edited by a version that replaces nothing."""
    item = mallory.create("antiphon/messenger")
    lamport, seq = mallory.feeds.record(mallory.data.feed).lamport, mallory.feeds.record(mallory.data.feed).length

    def posts() -> Iterator[Draft]:
        for number in range(size):
            proto = messenger_pb2.MessengerMutation()
            if number % 2:
                proto.edit.target.lamport, proto.edit.target.seq = lamport + number, seq + number - 1
                proto.edit.body.CopyFrom(to_proto(number))
            else:
                proto.post.body.CopyFrom(to_proto(number))
                if number:
                    proto.post.reply_to.lamport, proto.post.reply_to.seq = lamport + number - 1, seq + number - 2
            yield _mutation(item, proto.SerializeToString())

    mallory.spend(mallory.data, size, posts())


def access_lists(mallory: Mallory, size: int) -> None:
    """Changes of the access list of an item, and writes between them."""
    item = mallory.create("antiphon/object")
    feed = mallory.data.feed

    def changes() -> Iterator[Draft]:
        for number, pair in enumerate(_keys("named")):
            yield Draft(Kind.CHANGE, item, write_change(Change(access=Access(grant=(bytes(pair.key),)))))
            yield _mutation(item, write_mutation([Op(("key",), number)], feed))

    mallory.spend(mallory.data, size, changes())


def parents(mallory: Mallory, size: int) -> None:
    """A chain of items, and claims of parents that close and open cycles in it."""
    chain = [mallory.create("antiphon/object", number=number) for number in range(200)]

    def claims() -> Iterator[Draft]:
        for number in range(size):
            child = chain[number % len(chain)]
            parent = chain[(number * 7 + number // len(chain) + 1) % len(chain)]
            if child != parent:
                yield Draft(Kind.CHANGE, child, write_change(Change(parent=parent)))

    mallory.spend(mallory.data, size, claims())


def schemas(mallory: Mallory, size: int) -> None:
    """Items that look like schemas, with long documents, and name a type that others use."""
    feed = mallory.data.feed
    number = 0
    while mallory.spent < size:
        item = mallory.create("antiphon/object", number=number)
        text = '{"type": "object", "properties": {' + ", ".join(f'"p{at}": {{}}' for at in range(400)) + "}}"
        body = [Op(("name",), "note"), Op(("version",), 1), Op(("schema",), f"{text} {number}")]
        typed = wrap(Kind.METADATA, write_mutation([Op(("type",), "antiphon/schema")], feed))
        drafts = [Draft(Kind.METADATA, item, typed), _mutation(item, write_mutation(body, feed))]
        mallory.spend(mallory.data, size, drafts)
        number += 1


def queries(mallory: Mallory, size: int) -> None:
    """Objects with hundreds of keys and long distinct words, for the index of queries."""
    feed = mallory.data.feed
    number = 0
    while mallory.spent < size:
        item = mallory.create("antiphon/object", number=number)
        words = [sha256(f"{number} {at}".encode()).hexdigest()[:LONG_WORD] for at in range(200)]
        body: Sequence[Op] = [Op((f"key {at}",), " ".join(words[at : at + 3])) for at in range(len(words))]
        mallory.spend(mallory.data, size, [_mutation(item, write_mutation(body, feed))])
        number += 1


def _mutation(item: bytes, data: bytes) -> Draft:
    return Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, data))


ATTACKS: dict[str, Callable[[Mallory, int], None]] = {
    "control acts": control_acts,
    "feeds": feeds,
    "objects": objects,
    "arrays": arrays,
    "texts": texts,
    "messengers": messengers,
    "access lists": access_lists,
    "parents": parents,
    "schemas": schemas,
    "queries": queries,
}
