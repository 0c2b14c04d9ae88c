"""ParentCycles are known as if all claims were looked at each time, and nothing is walked over that has not changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import derive
from antiphon.query.delta import Delta
from antiphon.query.filters import Fact, prop
from antiphon.query.index.index import ItemIndex
from antiphon.query.live.cycles import ParentCycles
from antiphon.query.live.live import LiveQueries
from antiphon.query.query import Query
from antiphon.testing.peers import Peers

IDS = [bytes([number]) * 16 for number in range(1, 7)]
Claims = dict[bytes, list[tuple[Stamp, bytes]]]


def at(lamport: int) -> Stamp:
    return Stamp(lamport, b"f" * 32, lamport)


class World:
    """All claims, and circles that are told of each change of them."""

    def __init__(self) -> None:
        self.claims: Claims = {}
        self.cycles = ParentCycles()
        self.looked: set[bytes] = set()
        self.asked = 0

    def claims_of(self, item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        self.asked += 1
        return self.claims.get(item, ())

    def tree(self) -> dict[bytes, bytes]:
        every = [(stamp, child, parent) for child, some in self.claims.items() for stamp, parent in some]
        return derive(every)

    def look(self, items: set[bytes], *, told: bool = True) -> set[bytes]:
        moved = self.cycles.look(sorted(items), self.claims_of, told=told)
        self.looked |= items
        tree = self.tree()
        for item in self.looked:
            some = self.claims.get(item, ())
            last = some[-1][1] if some else b""
            assert self.cycles.parent(item, last) == tree.get(item, b"")
        return moved

    def claim(self, *pairs: tuple[bytes, bytes], lamport: int = 0) -> set[bytes]:
        """Claims at once, and what they move."""
        before = self.tree()
        for number, (child, parent) in enumerate(pairs):
            self.claims.setdefault(child, []).append((at(lamport + number), parent))
            self.claims[child].sort()
        return self._told({child for child, _ in pairs}, before)

    def withdraw(self, child: bytes) -> set[bytes]:
        """Its last claim was void after all."""
        before = self.tree()
        if self.claims.get(child):
            self.claims[child].pop()
        return self._told({child}, before)

    def _told(self, items: set[bytes], before: dict[bytes, bytes]) -> set[bytes]:
        known = set(self.looked)
        moved = self.look(items)
        after = self.tree()
        assert {item for item in known if before.get(item) != after.get(item)} <= moved | items
        return moved


edges = st.tuples(st.sampled_from(IDS), st.sampled_from([*IDS, *IDS, b""]))
acts = st.one_of(
    st.tuples(st.just("claim"), st.lists(edges, min_size=1, max_size=3), st.integers(1, 40)),
    st.tuples(st.just("withdraw"), st.sampled_from(IDS), st.just(0)),
    st.tuples(st.just("look"), st.sets(st.sampled_from(IDS), max_size=3), st.booleans()),
    st.tuples(st.just("trim"), st.just(0), st.just(0)),
)


#: An earlier claim closes a circle around another, whose members hang elsewhere for it.
TAKEN_IN = [
    ("claim", [(IDS[0], IDS[1]), (IDS[2], IDS[0]), (IDS[0], IDS[2])], 2),
    ("claim", [(IDS[1], IDS[2])], 1),
]


@given(st.lists(acts, max_size=30))
@example(TAKEN_IN)
@settings(max_examples=300)
def test_parents_are_those_of_the_tree_and_what_moves_is_told(history: list[tuple[str, object, object]]) -> None:
    world = World()
    for number, (act, what, how) in enumerate(history):
        if act == "claim":
            assert isinstance(what, list)
            assert isinstance(how, int)
            world.claim(*what, lamport=100 * how + 3 * number)
        elif act == "withdraw":
            assert isinstance(what, bytes)
            world.withdraw(what)
        elif act == "look":
            assert isinstance(what, set)
            world.look(what, told=bool(how))
        else:
            world.cycles.trim(0)


def test_a_claim_that_is_seen_before_it_is_told_moves_the_others_when_it_is_told() -> None:
    """Another thread asks for items between a change and its telling."""
    a, b, c = IDS[:3]
    world = World()
    world.claim((a, b), lamport=5)
    world.claims.update({b: [(at(1), c)], c: [(at(2), a)]})
    assert world.cycles.look([c], world.claims_of, told=False) == set()  # of b it is not known yet
    assert a in world.look({b})
    assert world.look({b}) == set()


def test_a_circle_that_was_there_before_is_told_when_one_in_it_changes() -> None:
    a, b, c = IDS[:3]
    world = World()
    world.claims.update({a: [(at(5), b)], b: [(at(1), c)], c: [(at(2), a)]})
    assert world.look({c}, told=False) == set()
    assert world.look({b}) == {a, b, c}
    assert world.look({b}) == set()


# -- what it costs


def chain(count: int) -> tuple[World, list[bytes]]:
    ids = [number.to_bytes(16, "big") for number in range(1, count + 1)]
    world = World()
    world.claims = {child: [(at(number), parent)] for number, (parent, child) in enumerate(pairwise(ids))}
    return world, ids


def test_a_write_that_claims_nothing_walks_over_nothing_at_any_depth() -> None:
    world, ids = chain(2000)
    world.look({ids[-1]})
    assert world.cycles.steps == 2000
    world.asked = 0
    for _ in range(10):
        assert world.look({ids[-1]}) == set()
        assert world.look({ids[1000]}) == set()
    assert (world.cycles.steps, world.asked) == (2000, 20)


def test_what_is_made_deep_below_walks_only_to_what_was_looked_at() -> None:
    world, ids = chain(2000)
    world.look({ids[-1]})
    steps, child = world.cycles.steps, b"c" * 16
    world.claim((child, ids[-1]), lamport=5000)
    assert world.cycles.steps - steps <= 2


def test_a_claim_is_walked_from_along_what_is_remembered() -> None:
    world, ids = chain(2000)
    world.look({ids[-1], ids[0]})
    world.asked = 0
    assert world.claim((ids[0], ids[-1]), lamport=5000) == {ids[0]}
    assert len(world.cycles) == 2000
    assert world.asked == 1
    steps = world.cycles.steps
    assert world.look({ids[7]}) == set()  # in a ring, too, nothing is walked over again
    assert world.cycles.steps == steps
    assert world.claim((ids[500], b""), lamport=6000) == {ids[500]}
    world.withdraw(ids[500])
    assert world.withdraw(ids[500]) == {ids[0], ids[500]}
    assert len(world.cycles) == 0


# -- on a whole peer


def test_a_property_of_a_deep_item_is_written_without_a_walk(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        party = peers.add("alice").party
        ids: list[bytes] = []
        for _ in range(40):
            ids.append(party.create("antiphon/object", parent=ids[-1] if ids else None).id)
        live = LiveQueries(party)
        found = live.subscribe(Query(prop("n") == 1))
        steps = live._source.cycles.steps
        for value in (0, 1, 2, 1):
            party.item(ids[-1]).edit("set", "n", value)
        child = party.create("antiphon/object", parent=ids[-1])
        child.edit("set", "n", 1)
        assert found.result.ids == (bytes(ids[-1]), bytes(child.id))
        assert live._source.cycles.steps - steps <= 2
        live.close()


def test_a_ring_is_told_of_when_claims_close_it_and_not_when_one_in_it_is_written(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        party = peers.add("alice").party
        items = [party.create("antiphon/object") for _ in range(20)]
        live = LiveQueries(party)
        hanging = live.subscribe(Query(Fact.PARENT.exists()))
        told: list[Delta] = []
        hanging.on(told.append)
        for above, below in pairwise(items):
            below.move(above.id)
        items[0].move(items[-1].id)
        assert len(hanging.result.ids) == 19
        told.clear()
        tries = live._matcher.tries
        items[5].edit("set", "n", 1)
        assert [sorted(delta.changed) for delta in told] == [[bytes(items[5].id)]]
        assert live._matcher.tries == tries + 1
        live.close()


def test_a_circle_that_is_made_while_nothing_stands_is_seen_later(tmp_path: Path) -> None:
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        one, two = alice.party.create("antiphon/object"), alice.party.create("antiphon/object")
        peers.sync()
        bob.party.item(two.id).move(one.id)
        for number in range(3):
            one.edit("set", "n", number)
        one.move(two.id)  # later than Bob's claim, which she has not heard of: this one will not hold
        index = alice.party.attach(ItemIndex)
        assert isinstance(index, ItemIndex)
        live = LiveQueries(alice.party, index)
        with live.subscribe(Query(Fact.PARENT.exists())) as hanging:
            one.edit("set", "n", 4)
            assert hanging.result.ids == (bytes(one.id),)
        assert len(live) == 0
        peers.pass_on(bob, alice)
        hanging = live.subscribe(Query(Fact.PARENT.exists()))
        one.edit("set", "n", 5)
        assert hanging.result.ids == (bytes(two.id),)
        live.close()
