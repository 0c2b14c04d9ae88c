"""Attack 5: blocks that have seen much, each with one more entry. A copy of a timeframe for each filled memories.

2.9 MB of an outsider's control blocks took 1.15 GB at every opening, growing with the square; and the lanes of the live
engine copied likewise.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from antiphon.feed import span as spans
from antiphon.feed.chain import verify_span
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import LaneState
from antiphon.party.store.item_store import decode_lane, encode_lane
from antiphon.testing.parties import Rehearsal, pair_of

MEMBERS = 100  # whose control feeds every block of the attacker has seen


def kept(make: Callable[[], object]) -> int:
    """How many bytes of memory a value takes."""
    gc.collect()
    tracemalloc.start()
    try:
        value = make()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] if value is not None else 0
    finally:
        tracemalloc.stop()


def attack(rounds: int) -> tuple[Rehearsal, list[bytes]]:
    """Two feeds of one member that have seen all the others, and tell each other of every block."""
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    members = [rehearsal.actor(f"member {number}") for number in range(MEMBERS)]
    mallory = [rehearsal.actor("mallory", device) for device in ("laptop", "phone")]
    for actor in (*members, mallory[0]):
        alice.admit(actor, Role.READER)
    for actor in (*members, *mallory):
        actor.hear(alice)
        actor.join()
    for actor in mallory:
        for member in (*members, *mallory):
            actor.machine.add(member.written)
    for number in range(rounds):
        one, other = mallory[number % 2], mallory[1 - number % 2]
        one.write(Policy())
        other.machine.add(one.written[-1:])
    return rehearsal, [span.encode() for actor in rehearsal.actors for span in actor.raw]


def folded(rehearsal: Rehearsal, received: list[bytes]) -> PartyMachine:
    machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
    for data in received:
        span = verify_span(spans.decode(data))
        machine.add(span.blocks(0, span.count))
    assert not machine.waiting()
    return machine


def test_memory_of_control_feeds_is_in_proportion_to_what_was_received() -> None:
    measured = []
    for rounds in (150, 300):
        rehearsal, received = attack(rounds)
        measured.append((sum(map(len, received)), kept(partial(folded, rehearsal, received))))
    (size, _), (more, _) = measured
    assert all(memory < 10 * received for received, memory in measured)
    assert measured[1][1] - measured[0][1] < 10 * (more - size)


def seen_by(blocks: int) -> LaneState:
    """The lane of a data feed each of whose blocks has seen one more of many control feeds."""
    feeds = [bytes(pair_of(f"control {number}").key) for number in range(MEMBERS)]
    lane = Lane(LaneState(bytes(pair_of("data").key), 1))
    lane.see(0, dict.fromkeys(feeds, 0))
    for seq in range(1, blocks):
        lane.see(seq, {feeds[seq % MEMBERS]: seq})
    return lane.state


def test_lanes_of_the_live_engine_keep_what_each_block_saw_and_no_more() -> None:
    """Also what is saved of a lane, and read again at every opening, grows with its entries, not with their square."""
    entry = 8 + 8  # of a column for each feed that was seen: the message that saw more of it, and the seq that it saw
    assert kept(partial(seen_by, 4000)) - kept(partial(seen_by, 2000)) < 2000 * 10 * entry
    lane = seen_by(4000)
    data = encode_lane(lane)
    assert len(data) - len(encode_lane(seen_by(2000))) == 2000 * entry
    assert decode_lane(1, lane.feed, data) == lane
