"""What a hostile member writes for `bench/hostile.py`: for each surface, the dearest blocks that we know of.

Here are those that attack items. `ATTACKS` has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import count
from random import Random

from antiphon.core.v1 import array_pb2, messenger_pb2, text_pb2
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.model.access import Access
from antiphon.model.array.position import AFTER, KEY_SIZE_MAX, TAG_SIZE, encode_int
from antiphon.model.message import Change, wrap, write_change
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.model.value import to_proto
from harness.hostile_branches import BRANCH_ATTACKS
from harness.hostile_control import CONTROL_ATTACKS
from harness.hostile_member import Mallory, key_pairs, mutation

LONG_WORD = 40
RUN_SIZE = 16_384  # elements at once at a long position key


def objects(mallory: Mallory, size: int) -> None:
    """Writes of one key that replace nothing: each stays as a concurrent value."""
    item = mallory.create("antiphon/object")
    feed = mallory.data.feed
    mallory.spend(
        mallory.data, size, (mutation(item, write_mutation([Op(("key",), number)], feed)) for number in range(size))
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
        mallory.spend(mallory.data, size, [mutation(item, proto.SerializeToString())])
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
            yield mutation(item, proto.SerializeToString())

    for draft in spines():
        mallory.spend(mallory.data, size, [draft])
        if mallory.spent >= size:
            return


def deletions(mallory: Mallory, size: int) -> None:
    """Long insertions into a text, of which every second element is deleted: nothing in memory merges what is left."""
    item = mallory.create("antiphon/text")
    count = 60_000
    while mallory.spent < size:
        lamport = mallory.feeds.record(mallory.data.feed).lamport + 1
        typed, cut = text_pb2.TextMutation(), text_pb2.TextMutation()
        typed.inserts.add(text="x" * 2 * count, place=text_pb2.TEXT_PLACE_ROOT)
        for at in range(count):
            cut.deletes.add(lamport=lamport, offset=2 * at)
        for proto in (typed, cut):
            mallory.spend(mallory.data, size, [mutation(item, proto.SerializeToString())])


def _text_mutations(mallory: Mallory, size: int, fill: Callable[[text_pb2.TextMutation, int], None]) -> None:
    """Spend bytes on mutations of one text, each filled in with its lamport."""
    item = mallory.create("antiphon/text")
    while mallory.spent < size:
        proto = text_pb2.TextMutation()
        fill(proto, mallory.feeds.record(mallory.data.feed).lamport + 1)
        mallory.spend(mallory.data, size, [mutation(item, proto.SerializeToString())])


def scattered(mallory: Mallory, size: int) -> None:
    """Insertions at random places of a text, thousands in a mutation: each opens another part of it."""
    chance, lamports = Random(1), list[int]()
    count = 4096

    def fill(proto: text_pb2.TextMutation, lamport: int) -> None:
        for _ in range(count):
            insert = proto.inserts.add(text="x")
            if lamports:
                insert.lamport, insert.offset = chance.choice(lamports), chance.randrange(count)
                insert.place = chance.choice((text_pb2.TEXT_PLACE_LEFT, text_pb2.TEXT_PLACE_RIGHT))
            else:
                insert.place = text_pb2.TEXT_PLACE_ROOT
        lamports.append(lamport)

    _text_mutations(mallory, size, fill)


def marks(mallory: Mallory, size: int) -> None:
    """Marks of a text with a name each, no two of which begin and end at the same characters."""
    first: list[int] = []

    def fill(proto: text_pb2.TextMutation, lamport: int) -> None:
        if not first:
            proto.inserts.add(text="x" * 4_000, place=text_pb2.TEXT_PLACE_ROOT)
            first.append(lamport)
            return
        for at in range(256):  # a mutation marks under at most so many names
            mark = proto.marks.add(name=f"{(lamport - first[0]) << 8 | at:x}")
            mark.start.lamport, mark.start.offset = first[0], at
            mark.end.lamport, mark.end.offset = first[0], at + lamport - first[0]

    _text_mutations(mallory, size, fill)


def waiting(mallory: Mallory, size: int) -> None:
    """Insertions into a text that wait for elements which nobody has."""

    def fill(proto: text_pb2.TextMutation, lamport: int) -> None:
        for at in range(4096):
            proto.inserts.add(text="x", lamport=lamport - 1, offset=at)

    _text_mutations(mallory, size, fill)


def absent_feeds(mallory: Mallory, size: int) -> None:
    """Deletions in a text of elements of feeds that do not exist."""
    numbers = count(1)

    def fill(proto: text_pb2.TextMutation, lamport: int) -> None:
        for at in range(1000):
            proto.feeds.append(next(numbers).to_bytes(32, "big"))
            proto.deletes.add(feed=at + 1, lamport=1)

    _text_mutations(mallory, size, fill)


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
            yield mutation(item, proto.SerializeToString())

    mallory.spend(mallory.data, size, posts())


def access_lists(mallory: Mallory, size: int) -> None:
    """Changes of the access list of an item, and writes between them."""
    item = mallory.create("antiphon/object")
    feed = mallory.data.feed

    def changes() -> Iterator[Draft]:
        for number, pair in enumerate(key_pairs("named")):
            yield Draft(Kind.CHANGE, item, write_change(Change(access=Access(grant=(bytes(pair.key),)))))
            yield mutation(item, write_mutation([Op(("key",), number)], feed))

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
        drafts = [Draft(Kind.METADATA, item, typed), mutation(item, write_mutation(body, feed))]
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
        mallory.spend(mallory.data, size, [mutation(item, write_mutation(body, feed))])
        number += 1


ATTACKS: dict[str, Callable[[Mallory, int], None]] = {
    **CONTROL_ATTACKS,
    **BRANCH_ATTACKS,
    "objects": objects,
    "arrays": arrays,
    "texts": texts,
    "deletions": deletions,
    "scattered": scattered,
    "marks": marks,
    "waiting": waiting,
    "absent feeds": absent_feeds,
    "messengers": messengers,
    "access lists": access_lists,
    "parents": parents,
    "schemas": schemas,
    "queries": queries,
}
