"""Law: hierarchy, links, embedding and access lists are equal on all peers in any order of delivery, as is their index.

Every step is drawn by Hypothesis, so that a history that breaks the law is shown with the few steps that matter.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.party.histories import some_ranges

from antiphon.core.errors import InvalidInput
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model.access import NOT_NAMED
from antiphon.model.hierarchy import derive
from antiphon.model.item_state import EMBEDDED
from antiphon.model.value import Reference
from antiphon.party.live.item import Item
from antiphon.query.index.index import ItemIndex
from antiphon.query.query import Way
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow

EXAMPLES = budget(10, 150)
STEPS_MIN, STEPS_MAX = 40, 90


class Step(NamedTuple):
    """What a peer does, with two items that it knows or with another peer. Numbers are taken modulo what there is."""

    what: str
    who: int
    one: int
    other: int


class Act(NamedTuple):
    """What a change may need: two items, and some keys of peers."""

    item: Item
    other: Item
    keys: list[bytes]


def embedded(item: Item) -> list[bytes]:
    return [one.item for one in item.metadata.get(EMBEDDED, [])]


class World:
    """Three peers of one party. Alice, its owner, keeps an index from the start, Bob from some step on or not at all,
    and Carol from the end."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.told: Counter[str] = Counter()
        for name in ("alice", "bob", "carol"):
            peers.add(name)
        self.alice, self.bob, self.carol = peers.all
        self.alice.party.attach(ItemIndex)

    def run(self, step: Step) -> None:
        peer = self.peers.all[step.who]
        items = peer.party.items()
        if step.what == "wait":  # what Hypothesis puts in the place of steps that do not matter
            return
        if step.what in EVENTS:
            EVENTS[step.what](self, peer, step)
        elif step.what == "create" or not items:
            parent = [None, bytes(SYSTEM_ITEM), *items][step.other % (2 + len(items))]
            peer.party.create("antiphon/object", parent=parent)
        elif step.what == "link":
            ends = items[step.one % len(items)], items[step.other % len(items)]
            peer.party.create("antiphon/object", link=ends)
        else:
            self.change(peer, step, items)

    def change(self, peer: Peer, step: Step, items: list[bytes]) -> None:
        """Change an item; whom its list does not name is refused at once."""
        item, other = (peer.party.item(items[number % len(items)]) for number in (step.one, step.other))
        keys = [bytes(one.key) for nth, one in enumerate(self.peers.all) if step.other >> nth & 1]
        allowed = peer is self.alice or item.writers is None or bytes(peer.key) in item.writers
        before = peer.snapshots(), peer.party.parents()
        try:
            CHANGES[step.what](Act(item, other, keys))
        except InvalidInput as error:
            assert (peer.snapshots(), peer.party.parents()) == before
            not_named = NOT_NAMED in str(error)
            self.told["refused at once"] += not_named
            assert not (allowed and not_named)
        else:
            self.told[step.what] += 1
            assert allowed

    def give(self, peer: Peer, step: Step) -> None:
        """Some of what another lacks, in some order."""
        other = self.peers.all[(step.who + 1 + step.one % 2) % 3]
        some_ranges(peer, other, random.Random(step.other))

    def restart(self, peer: Peer, step: Step) -> None:
        peer.restart(crash=bool(step.one % 2))
        self.keep_index(peer)

    def rebuild(self, peer: Peer, _: Step) -> None:
        peer.rebuild()
        self.keep_index(peer)

    def keep_index(self, peer: Peer) -> None:
        """Bob does not: his grows old, until he attaches it again."""
        if peer is self.alice:
            peer.party.attach(ItemIndex)

    def attach(self, _: Peer, __: Step) -> None:
        self.bob.party.attach(ItemIndex)


EVENTS: dict[str, Callable[[World, Peer, Step], None]] = {
    "give": World.give,
    "restart": World.restart,
    "rebuild": World.rebuild,
    "attach": World.attach,
}
CHANGES: dict[str, Callable[[Act], object]] = {
    "edit": lambda act: act.item.edit("set", "n", len(act.keys)),
    "refer": lambda act: act.item.edit("set", "to", Reference(act.other.id)),
    "move": lambda act: act.item.move(act.other.id),
    "to top": lambda act: act.item.move(None),
    "delete": lambda act: act.item.restore() if act.item.deleted else act.item.delete(),
    "embed": lambda act: act.item.embed(act.other.id),
    "release": lambda act: act.item.release(min(embedded(act.item), default=act.other.id)),
    "describe": lambda act: act.item.set_metadata("display_name", act.other.id.hex()),
    "may write": lambda act: act.item.restrict_writers(*act.keys),
    "open": lambda act: act.item.allow_all_writers(),
}
WEIGHTS = {"give": 6, "move": 6, "embed": 3, "may write": 3, "edit": 3, "release": 2}
KINDS = [kind for name in ("wait", "create", "link", *EVENTS, *CHANGES) for kind in [name] * WEIGHTS.get(name, 1)]

numbers = st.integers(0, 9)  # few, so that peers meet at the same items
steps = st.builds(Step, st.sampled_from(KINDS), st.integers(0, 2), numbers, numbers)


# -- what must be equal


def shown(peer: Peer) -> dict[str, Any]:
    party = peer.party
    items = [party.item(item) for item in (*party.items(), bytes(SYSTEM_ITEM))]
    refused = party.refused()
    assert len({(one.feed, one.seq) for one in refused}) == len(refused)
    return {
        "items": party.items(),
        "parents": party.parents(),
        "metadata": [item.metadata for item in items],
        "writers": [item.writers for item in items],
        "links": [item.link for item in items],
        "deleted": [item.deleted for item in items],
        "values": [item.value for item in items],
        "refused": {(one.feed, one.seq): (one.item, one.reason) for one in refused},
        "snapshots": [item.snapshot() for item in items],
    }


def edges(peer: Peer) -> dict[Way, dict[bytes, set[bytes]]]:
    """Where each way leads from each item that is here, looked up one by one."""
    party = peer.party
    here = set(party.items())
    found: dict[Way, dict[bytes, set[bytes]]] = {way: {item: set() for item in here} for way in Way}

    def put(onward: Way, backward: Way, source: bytes, targets: Iterable[bytes]) -> None:
        for target in here.intersection(targets):
            found[onward][source].add(target)
            found[backward][target].add(source)

    for child, parent in party.parents().items():
        put(Way.PARENT, Way.CHILDREN, child, [parent])
    for item in map(party.item, here):
        source, target = item.link or (b"", b"")
        put(Way.SOURCE, Way.LINKS, item.id, [source])
        put(Way.TARGET, Way.BACKLINKS, item.id, [target])
        put(Way.EMBEDS, Way.EMBEDDERS, item.id, embedded(item))
        put(Way.REFERENCES, Way.REFERRERS, item.id, [item.value["to"].item] if "to" in item.value else [])
    return found


def check_index(peer: Peer) -> None:
    index = peer.party.attach(ItemIndex)
    assert isinstance(index, ItemIndex)
    with peer.party.locked():
        parents = peer.party.parents()  # which saves
        facts = list(index.everything())
        assert [each.id for each in facts] == peer.party.items()
        assert {each.id: each.parent for each in facts if each.parent} == parents
        for way, wanted in edges(peer).items():
            assert {item: set(index.edges(way, item)) for item in wanted} == wanted, way
        under_root = sorted(child for child, parent in parents.items() if parent == SYSTEM_ITEM)
        assert index.children(bytes(SYSTEM_ITEM)) == under_root


def check(folder: str, history: Iterable[Step], chance: random.Random) -> World:
    with Peers(folder) as peers:
        world = World(peers)
        for step in history:
            world.run(step)
        peers.sync()
        wanted = shown(world.alice)
        late = peers.add("late", role=None)
        while late.lengths() != world.alice.lengths():  # in small pieces, in some order
            some_ranges(chance.choice(peers.all[:3]), late, chance)
        for peer in peers.all:
            assert shown(peer) == wanted
            check_index(peer)
        world.bob.restart(crash=True)
        world.carol.rebuild()
        for peer in (world.bob, world.carol):
            assert shown(peer) == wanted
            check_index(peer)
        world.told["refused"] = len(wanted["refused"])
        world.told["circles"] = circles(world.alice)
        return world


def circles(peer: Peer) -> int:
    """How many claims to a parent do not count."""
    index = peer.party.attach(ItemIndex)
    assert isinstance(index, ItemIndex)
    claims = sorted((at, facts.id, parent) for facts in index.everything() for at, parent in facts.claims)
    return sum(derive(claims[: nth + 1]).get(child, b"") != parent for nth, (_, child, parent) in enumerate(claims))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(history=st.lists(steps, min_size=STEPS_MIN, max_size=STEPS_MAX), seed=st.integers(0, 1 << 32))
def test_hierarchy_links_and_lists_are_equal_on_all_peers(history: list[Step], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(folder, history, random.Random(seed))


@pytest.mark.slow
def test_such_histories_have_something_of_everything(tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    for seed in range(3):
        chance = random.Random(seed)
        history = [
            Step(chance.choice(KINDS), chance.randrange(3), chance.randrange(10), chance.randrange(10))
            for _ in range(200)
        ]
        told += check(f"{tmp_path}/{seed}", history, chance).told
    wanted = (*CHANGES, "refused at once", "refused", "circles")
    assert min(told[name] for name in wanted) > 3, told
