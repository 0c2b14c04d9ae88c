"""Faults that peers must refuse: invalid messages, late blocks of a revoked member, and forked feeds.

No other writer sees these blocks, so no valid message depends on them.
"""

from __future__ import annotations

from antiphon.core.ids import ITEM_ID_SIZE, SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.generate.item_edits import OBJECT
from antiphon.generate.members import Writer
from antiphon.generate.memory_feed import MemoryFeed
from antiphon.generate.report import FUTURE, NO_ITEM, NO_MESSAGE, NOT_NAMED, REVOKED, RUBBISH
from antiphon.generate.sink import Sink
from antiphon.generate.world import Side, World
from antiphon.halo.member.membership import Membership
from antiphon.model.message import wrap
from antiphon.model.wire import plain_bytes


def write_invalid(side: Side, log: MemoryFeed, index: int, roll: int) -> None:
    """Write one message that peers refuse. No other message becomes invalid by it."""
    world = side.world
    why = (RUBBISH, NO_ITEM, FUTURE, NO_MESSAGE, NOT_NAMED)[roll % 5]
    kind, item = Kind.MUTATION, world.ids[index]
    if why == NO_ITEM:
        item = log.next_lamport.to_bytes(5, "big") + world.chance.randbytes(ITEM_ID_SIZE - 5)
        message = wrap(kind, plain_bytes("title", "lost", None))
    elif why == FUTURE and index not in world.tracked:  # the message has the form of an object's mutation
        later = Stamp(log.next_lamport + 1_000, log.feed, log.next_seq + 1_000)
        message = wrap(kind, plain_bytes("title", "told before", later))
    elif why == NO_MESSAGE and log.next_seq:  # as its first block, it would not be a data feed
        kind, item, message = Kind.CREDENTIAL, SYSTEM_ITEM, b"no credential"
    elif why == NOT_NAMED and (barred := _barred(side, log)):
        item = world.ids[barred[roll // 5 % len(barred)]]
        message = wrap(kind, plain_bytes("title", "not mine to say", None))
    else:
        why, message = RUBBISH, wrap(kind, b"\xff" * (1 + roll % 7))
    world.made.refused[log.feed, log.next_seq] = why
    world.made.kinds["credential"] += kind is Kind.CREDENTIAL
    log.add(kind, item, message)


def _barred(side: Side, log: MemoryFeed) -> list[int]:
    """The items that a writer knows and that their access lists forbid it to write to."""
    return [known for known in side.world.guarded if known < side.base and not side.may(log, known)]


def _alone(world: World, writer: Writer, count: int) -> Side:
    """Write a new item and registers of other items, by a writer whose blocks no other writer receives."""
    side = Side(world, 1, 2)
    log = writer.log
    log.see(side.view.values())
    return _scribble(side, log, count)


def _scribble(side: Side, log: MemoryFeed, count: int) -> Side:
    world = side.world
    begun = world.genesis(log, log.next_lamport, OBJECT.name, OBJECT.version, [])
    log.add(Kind.GENESIS, begun.id, begun.message)
    for _ in range(count - 1):
        side.write(log, world.plains[int(world.chance.random() * len(world.plains))], world.chance.getrandbits(62))
    world.made.kinds["genesis"] += 1
    return side


def revoke(world: World, founder: Membership, writer: Writer, sink: Sink, count: int) -> None:
    """Revoke a member. `count` blocks that it wrote before it learned of the revocation arrive late."""
    sink.flush()
    founder.revoke(writer.identity)
    first = writer.log.length
    _alone(world, writer, count)
    entry = writer.log.end()
    assert entry is not None
    world.made.refused.update(((writer.log.feed, seq), REVOKED) for seq in range(first, entry.seq + 1))
    world.hear(founder.machine.entries())
    sink.flush()


def fork(world: World, founder: Membership, writer: Writer, sink: Sink, count: int) -> None:
    """Let a writer sign two histories: `count` blocks of one are stored, and some of the other prove the fork."""
    sink.flush()
    start, other = writer.log.length, writer.log.branch()
    _alone(world, writer, count)
    writer.log.end()
    sink.flush()
    kinds = world.made.kinds.copy()
    other.see(world.latest.values())
    _scribble(Side(world, 1, 2), other, 2)
    other.end()
    world.made.kinds = kinds  # blocks of the other history are not stored
    sink.flush()
    assert sink.store.record(writer.log.feed).valid_length == start
    world.made.forks[writer.log.feed] = (start, writer.log.length)
    founder.publish_forks()
    world.hear(founder.machine.entries())
