"""Any causal order of any messages, honest or hostile, gives one text; and a naive tree of single elements agrees."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st
from tests.model.text.sequences import in_order, open_all, runs_by_clock

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.text.clock_ranges import pairs
from antiphon.model.text.codec import Anchor, decode, read_mark_value
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.runs import OFFSET_BITS
from antiphon.testing.model_laws import run_model_tests

TEXT = TextModel()
Id = tuple[bytes, int]
ROOT: Id = (b"", 0)


class Message(NamedTuple):
    mutation: bytes
    stamp: Stamp
    void: bool
    needs: tuple[int, ...]  # how many messages of each feed come first


class Naive:
    """Fugue as the paper has it: one node an element, read recursively. Sets only, so order cannot matter."""

    def __init__(self) -> None:
        self.nodes: dict[Id, tuple[Id, bool, str]] = {}
        self.stand_ins: dict[Id, tuple[Id, bool, str]] = {}
        self.deleted: set[Id] = set()
        self.ranges: list[tuple[bytes, int, int]] = []
        self.marks: list[tuple[tuple[int, bytes, int, int], str, bytes | None, Anchor, Anchor]] = []

    def apply(self, message: Message) -> None:
        ops = decode(message.mutation, message.stamp)
        feed = message.stamp.feed
        for delete in [] if message.void else ops.deletes:
            if delete.feed != feed:
                self.ranges.append(delete)
            else:  # of its own feed it has seen all that there is; ids not used by then may still be, and are others
                own = [node for node in self.nodes if node[0] == feed and delete.first <= node[1] <= delete.last]
                self.deleted.update(own)
        for insert in ops.inserts:
            parent: Id = (insert.feed, insert.parent)
            left = insert.left
            for at, char in enumerate(insert.text):
                self.nodes[feed, insert.start + at] = (parent, left, char)
                parent, left = (feed, insert.start + at), False
                if message.void:
                    self.deleted.add(parent)
        if not message.void:
            for nth, mark in enumerate(ops.marks):
                self.marks.append(((*message.stamp, nth), mark.name, mark.value, mark.start, mark.end))

    def order(self) -> list[Id]:
        """The elements, and stand-ins for missing parents: each after the last element of its feed that has a place."""
        placed = walk(self.nodes)
        parents = {parent for parent, _, _ in self.nodes.values()}
        missing = parents - self.nodes.keys() - {ROOT}
        self.stand_ins = {
            (feed, clock): (
                max([node for node in placed if node[0] == feed and node[1] < clock], default=ROOT),
                False,
                "",
            )
            for feed, clock in missing
        }
        return walk(self.nodes | self.stand_ins)

    def shown(self, node: Id) -> bool:
        feed, clock = node
        if node in self.stand_ins:
            return False
        covered = any(feed == other and low <= clock <= high for other, low, high in self.ranges)
        return not covered and node not in self.deleted

    def text(self) -> str:
        return "".join(self.nodes[node][2] for node in self.order() if self.shown(node))

    def marked(self) -> list[dict[str, object]]:
        order = self.order()
        places = {node: at for at, node in enumerate(order)}

        def place(anchor: Anchor) -> int | None:
            if not anchor.feed:
                return len(order) if anchor.after else 0
            at = places.get((anchor.feed, anchor.clock))
            return None if at is None else at + anchor.after

        found = []
        for at, node in enumerate(order):
            if not self.shown(node):
                continue
            values: dict[str, object] = {}
            for _, name, value, start, end in sorted(self.marks, key=lambda mark: mark[0]):
                low, high = place(start), place(end)
                if low is not None and high is not None and low <= at < high:
                    values.pop(name, None)
                    if value is not None:
                        values[name] = read_mark_value(value)
            found.append(values)
        return found


def walk(nodes: dict[Id, tuple[Id, bool, str]]) -> list[Id]:
    """The elements of a tree that can be reached from its root, in the order of the document."""
    lefts: dict[Id, list[Id]] = {}
    rights: dict[Id, list[Id]] = {}
    for node, (parent, left, _) in sorted(nodes.items()):
        (lefts if left else rights).setdefault(parent, []).append(node)

    def below(node: Id) -> list[Id]:
        found = [one for child in lefts.get(node, []) for one in below(child)]
        found.append(node)
        return found + [one for child in rights.get(node, []) for one in below(child)]

    return [node for node in below(ROOT) if node != ROOT]


def feed_of(name: int) -> bytes:
    return bytes([97 + name]) * 32


class World:
    """Writers with a replica each, who write, receive, go void and lie, as chance has it."""

    def __init__(self, chance: random.Random, writers: int) -> None:
        self.chance = chance
        self.logs: list[list[Message]] = [[] for _ in range(writers)]
        self.accepted: dict[Stamp, bool] = {}
        self.replicas = [TEXT.initial() for _ in range(writers)]
        self.seen = [[0] * writers for _ in range(writers)]
        self.lamports = [0] * writers

    def step(self) -> None:
        who = self.chance.randrange(len(self.logs))
        if self.chance.random() < 0.5:
            self.receive(who, self.chance.randrange(len(self.logs)))
        else:
            self.write(who)
        if self.chance.random() < 0.1:
            self.replicas[who] = TEXT.restore(TEXT.snapshot(self.replicas[who]))

    def write(self, who: int) -> None:
        self.lamports[who] += 1
        void, needs = self.chance.random() < 0.15, tuple(self.seen[who])
        for _ in range(self.chance.choice([1, 1, 1, 3])):  # a batch shares its lamport
            lamport, feed = self.lamports[who], feed_of(who)
            stamp = Stamp(lamport, feed, len(self.logs[who]))
            if self.chance.random() < 0.3:
                mutation = self.lie(lamport, TEXT.next_offset(self.replicas[who], feed, lamport))
            else:
                proto = text_pb2.TextMutation.FromString(TEXT.rehearse(self.replicas[who], self.chance, feed))
                if proto.inserts:
                    proto.offset = TEXT.next_offset(self.replicas[who], feed, lamport)
                mutation = proto.SerializeToString()
            message = Message(mutation, stamp, void, needs)
            self.logs[who].append(message)
            self.deliver(self.replicas[who], message)
            self.seen[who][who] += 1

    def lie(self, lamport: int, offset: int) -> bytes:
        """Something well-formed that no honest writer would send: it names what is concurrent, unknown or its own."""
        chance = self.chance
        feeds = [feed_of(name) for name in range(len(self.logs) + 1)]
        proto = text_pb2.TextMutation(feeds=feeds, offset=chance.choice([offset, offset, offset + 2, 0]))

        def name(target: text_pb2.TextInsert | text_pb2.TextDelete | text_pb2.TextAnchor) -> None:
            target.feed = chance.randint(0, len(feeds))
            target.lamport = chance.randint(max(0, lamport - 6), lamport - chance.choice([0, 1, 1, 1]))
            target.offset = chance.choice([0, 0, 0, 1, 2, 5])

        for _ in range(chance.randint(1, 3)):
            kind = chance.random()
            if kind < 0.5:
                insert = proto.inserts.add(text=chance.choice(["x", "yz", "pqrst"]), place=chance.choice([0, 0, 1, 2]))
                name(insert)
            elif kind < 0.8:
                delete = proto.deletes.add(span=chance.choice([0, 1, 3, 1 << OFFSET_BITS, 3 << OFFSET_BITS]))
                name(delete)
            else:
                mark = proto.marks.add(name=chance.choice("bi"))
                mark.value.integer = chance.randint(0, 3)
                for anchor in (mark.start, mark.end):
                    name(anchor)
                    anchor.after = chance.random() < 0.5
                    anchor.edge = chance.random() < 0.2
        return proto.SerializeToString()

    def deliver(self, state: TextState, message: Message) -> None:
        """Apply, or find it refused; everywhere alike, and then with no trace."""
        before = TEXT.snapshot(state)
        try:
            TEXT.apply(state, message.mutation, message.stamp, void=message.void)
            accepted = True
        except InvalidMutation:
            accepted = False
            assert TEXT.snapshot(state) == before
        assert self.accepted.setdefault(message.stamp, accepted) is accepted

    def receive(self, who: int, whom: int) -> None:
        """One more message of somebody's, and what it needs."""
        seen = self.seen[who]
        if seen[whom] == len(self.logs[whom]):
            return
        message = self.logs[whom][seen[whom]]
        for other, count in enumerate(message.needs):
            while seen[other] < count:
                self.receive(who, other)
        self.deliver(self.replicas[who], message)
        seen[whom] += 1
        self.lamports[who] = max(self.lamports[who], message.stamp.lamport)

    def settle(self) -> None:
        for who, log in enumerate(self.logs):
            while self.seen[who] != [len(other) for other in self.logs]:
                self.receive(who, self.chance.randrange(len(self.logs)))
            assert log is self.logs[who]


def check_structure(state: TextState) -> None:
    """What the runs and leaves promise each other."""
    open_all(state)
    in_document = list(state.runs())
    assert in_document == in_order(state)
    leaf = state.head
    shown = 0
    while leaf is not None:
        assert all(run.leaf is leaf for run in leaf.runs)
        assert leaf.shown == sum(run.shown for run in leaf.runs)
        shown += leaf.shown
        assert leaf.after is None or leaf.after.before is leaf
        leaf = leaf.after  # type: ignore[assignment]
    assert shown == state.length
    for writer in state.writers.values():
        runs = runs_by_clock(writer)
        starts = [run.start for run in runs]
        assert all(writer.runs.at(run.start) is run for run in runs)
        ends = [run.end for run in runs]
        assert all(end < start for end, start in zip(ends, starts[1:], strict=False))
        assert not ends or (writer.last == ends[-1] < writer.floor)
        assert all(run.text is None or len(run.text) == run.length for run in runs)
        assert all(low >= writer.floor for low, _ in pairs(writer.doomed))
    assert sum(len(writer.runs) for writer in state.writers.values()) == len(in_document) - 1


@given(st.integers(0, 1 << 64), st.integers(1, 4), st.integers(5, 60))
@settings(max_examples=120)
def test_every_delivery_order_gives_one_state_and_that_of_a_naive_tree(seed: int, writers: int, steps: int) -> None:
    world = World(random.Random(seed), writers)
    for _ in range(steps):
        world.step()
    world.settle()

    first = world.replicas[0]
    for state in world.replicas:
        check_structure(state)
        assert TEXT.value(state) == TEXT.value(first)
        assert TEXT.value(TEXT.restore(TEXT.snapshot(state))) == TEXT.value(state)
        assert TEXT.snapshot(state) == TEXT.snapshot(first)
        assert TEXT.spans(state) == TEXT.spans(first)
    check_structure(TEXT.restore(TEXT.snapshot(first)))

    naive = Naive()
    for log in world.logs:
        for message in log:
            if world.accepted[message.stamp]:
                naive.apply(message)
    assert naive.text() == TEXT.value(first)
    marked = [marks for part, marks in TEXT.spans(first) for _ in (part if isinstance(part, str) else "x")]
    assert marked == naive.marked()


@given(st.integers(0, 1 << 64))
@settings(max_examples=30)
def test_a_snapshot_in_the_middle_changes_nothing(seed: int) -> None:
    world = World(random.Random(seed), 3)
    for _ in range(30):
        world.step()
    world.settle()
    straight, stopped = TEXT.initial(), TEXT.initial()
    messages = sorted((message for log in world.logs for message in log), key=lambda message: message.stamp)
    for message in messages:
        world.deliver(straight, message)
        stopped = TEXT.restore(TEXT.snapshot(stopped))
        world.deliver(stopped, message)

    assert TEXT.snapshot(straight) == TEXT.snapshot(stopped) == TEXT.snapshot(world.replicas[0])


@pytest.mark.slow
def test_it_keeps_the_laws_of_models() -> None:
    assert run_model_tests(TextModel, examples=20)


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("backwards", [False, True])
def test_runs_typed_at_one_place_do_not_interleave(order: str, backwards: bool) -> None:
    """Given a text, when two people type into the same gap, forwards or backwards, then each word stays whole."""
    start = TEXT.initial()
    root = b"r" * 32
    TEXT.apply(start, TEXT.insert(start, 0, "[]", feed=root), Stamp(1, root, 0))
    typed: dict[str, list[tuple[bytes, Stamp]]] = {}
    for name, word in (("a", "alice"), ("b", "bob")):
        state = TEXT.restore(TEXT.snapshot(start))
        feed = name.encode() * 32
        typed[name] = []
        for at in range(len(word)):
            char, index = (word[-1 - at], 1) if backwards else (word[at], 1 + at)
            sent = TEXT.insert(state, index, char, feed=feed), Stamp(2 + at, feed, at)
            TEXT.apply(state, *sent)
            typed[name].append(sent)
    for name in order:
        for sent in typed[name]:
            TEXT.apply(start, *sent)

    # Typed backwards, both hang on the left of "]"; the order of siblings is that of their ids.
    assert TEXT.value(start) in ("[alicebob]", "[bobalice]")
    assert TEXT.value(start) == "[alicebob]"
