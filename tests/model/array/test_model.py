"""The array model by example: what commands do, alone and beside others, and how they are undone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import array_pb2 as pb
from antiphon.model.array.codec import Draft
from antiphon.model.array.model import ArrayModel, ArrayState, ElementId
from antiphon.model.array.position import KEY_SIZE_MAX
from antiphon.model.heard import Heard
from antiphon.model.model import InvalidMutation
from antiphon.model.value import Reference

ARRAY = ArrayModel()
ALICE, BOB, CAROL = b"a" * 32, b"b" * 32, b"c" * 32


class Peer:
    """A writer with a copy of an array; `share` is how two of them get even."""

    def __init__(self, feed: bytes) -> None:
        self.feed = feed
        self.state = ARRAY.initial()
        self.log: list[tuple[bytes, Stamp]] = []
        self.captured: dict[Stamp, Any] = {}

    def do(self, command: str, *arguments: Any, **named: Any) -> Stamp:
        return self.write(getattr(ARRAY, command)(self.state, *arguments, feed=self.feed, **named))

    def write(self, mutation: bytes) -> Stamp:
        lamport = max((stamp.lamport for _, stamp in self.log), default=0) + 1
        seq = sum(stamp.feed == self.feed for _, stamp in self.log)
        self.take(mutation, Stamp(lamport, self.feed, seq))
        return self.log[-1][1]

    def take(self, mutation: bytes, stamp: Stamp) -> None:
        if all(stamp != known for _, known in self.log):
            self.captured[stamp] = ARRAY.capture(self.state, mutation, stamp)
            ARRAY.apply(self.state, mutation, stamp)
            self.log.append((mutation, stamp))

    def undo(self, stamp: Stamp) -> list[Stamp]:
        [mutation] = [mutation for mutation, known in self.log if known == stamp]
        made = ARRAY.revert(self.state, self.captured[stamp], mutation, stamp, self.feed)
        return [self.write(one) for one in made]

    @property
    def value(self) -> list[Any]:
        return ARRAY.value(self.state)


def share(*peers: Peer) -> list[Any]:
    """Everybody takes everything; returns what all of them see."""
    messages = sorted({entry for peer in peers for entry in peer.log}, key=lambda entry: entry[1])
    for peer in peers:
        for mutation, stamp in messages:
            peer.take(mutation, stamp)
    assert len({ARRAY.snapshot(peer.state) for peer in peers}) == 1
    return peers[0].value


def pair(*values: Any) -> tuple[Peer, Peer]:
    alice, bob = Peer(ALICE), Peer(BOB)
    if values:
        alice.do("insert", 0, values)
        share(alice, bob)
    return alice, bob


# -- alone


def test_commands_do_what_a_list_does() -> None:
    chance = random.Random(5)
    peer, plain = Peer(ALICE), list[Any]()
    for number in range(400):
        index = chance.randint(0, len(plain))
        act = chance.choice(["insert", "insert", "append", "delete", "set", "move"])
        if act == "insert":
            peer.do("insert", index, [number, -number])
            plain[index:index] = [number, -number]
        elif act == "append" or index == len(plain):
            peer.do("append", number)
            plain.append(number)
        elif act == "delete":
            count = chance.randint(1, min(3, len(plain) - index))
            peer.do("delete", index, count)
            del plain[index : index + count]
        elif act == "set":
            peer.do("set", index, str(number))
            plain[index] = str(number)
        else:
            target = chance.randrange(len(plain))
            peer.do("move", index, target)
            plain.insert(target, plain.pop(index))
        assert peer.value == plain
    state = peer.state
    assert ARRAY.length(state) == len(plain)
    assert [ARRAY.get(state, index) for index in range(len(plain))] == plain
    assert [ARRAY.position(state, name) for name in ARRAY.ids(state)] == list(range(len(plain)))
    assert ARRAY.keys(state) == sorted(ARRAY.keys(state))
    assert all(len(key) <= KEY_SIZE_MAX for key in ARRAY.keys(state))


def test_values_of_every_kind_come_back_and_are_out_of_reach() -> None:
    peer = Peer(ALICE)
    values = [None, True, 1, 1.0, "text", b"raw", Reference(b"i" * 16), [1, {"a": [2]}]]
    peer.do("append", *values)
    assert peer.value == values
    assert [type(value) for value in peer.value] == [type(value) for value in values]
    peer.value[-1].append("not in the state")
    assert peer.value == values


@pytest.mark.parametrize("index", [-1, 3, True, "0", None])
def test_an_index_that_is_not_there_is_refused(index: Any) -> None:
    alice, _ = pair("a", "b")
    commands: dict[str, list[Any]] = {"insert": [["x"]], "delete": [], "set": ["x"], "move": [0]}
    for command, rest in commands.items():
        with pytest.raises(InvalidInput, match="there is no"):
            alice.do(command, index, *rest)
    with pytest.raises(InvalidInput, match="there is no place"):
        alice.do("move", 0, index)
    with pytest.raises(InvalidInput, match="there are no"):
        alice.do("delete", 0, 3)
    with pytest.raises(InvalidInput, match="no values"):
        alice.do("append")


@pytest.mark.parametrize("values", ["abc", b"ab", bytearray(b"ab"), {"a": 1}, 5, None])
def test_what_is_no_list_of_values_is_not_taken_apart(values: Any) -> None:
    alice, _ = pair()
    with pytest.raises(InvalidInput, match=r"values is a list of values.*use \[text\]"):
        alice.do("insert", 0, values)
    alice.do("insert", 0, (letter for letter in "ab"))
    alice.do("append", "abc")
    assert alice.value == ["a", "b", "abc"]


# -- beside others


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("around", [(), ("<", ">")])
def test_runs_of_two_writers_do_not_interleave(bulk: bool, backwards: bool, around: tuple[str, ...]) -> None:
    alice, bob = pair(*around)
    at = len(around) // 2
    for peer, letters in ((alice, "abcdef"), (bob, "uvwxyz")):
        if bulk:
            peer.do("insert", at, list(letters[:4]))
            peer.do("insert", at if backwards else at + 4, list(letters[4:]))
        else:
            for number, letter in enumerate(letters):
                peer.do("insert", at if backwards else at + number, [letter])
    ours, theirs = "".join(alice.value).strip("<>"), "".join(bob.value).strip("<>")
    merged = "".join(share(alice, bob)).strip("<>")
    assert merged in (ours + theirs, theirs + ours)


def test_who_goes_on_typing_after_a_merge_stays_in_the_own_run() -> None:
    alice, bob = pair()
    alice.do("append", "a")
    bob.do("append", "x")
    share(alice, bob)
    for peer, own in ((alice, "a"), (bob, "x")):
        for letter in "12":
            peer.do("insert", peer.value.index(own) + 1, [own + letter])
            own += letter
    merged = share(alice, bob)
    assert sorted(["".join(merged[:3]), "".join(merged[3:])]) == ["aa1a12", "xx1x12"]


def test_of_two_moves_one_wins_and_nothing_is_there_twice() -> None:
    alice, bob = pair(*"abcd")
    alice.do("move", 0, 3)
    bob.do("move", 0, 1)
    assert share(alice, bob) == ["b", "a", "c", "d"], "bob's stamp is the greater one"


def test_concurrent_values_stay_readable_until_somebody_decides() -> None:
    alice, bob = pair("old")
    alice.do("set", 0, "from alice")
    theirs = bob.do("set", 0, "from bob")
    assert share(alice, bob) == ["from bob"]
    assert [value for _, value in ARRAY.conflicts(alice.state, 0)] == ["from bob", "from alice"]
    assert ARRAY.conflicts(alice.state, 0)[0][0] == theirs
    alice.do("set", 0, "both")
    share(alice, bob)
    assert [value for _, value in ARRAY.conflicts(bob.state, 0)] == ["both"]


def test_a_delete_wins_over_set_and_move() -> None:
    alice, bob = pair(*"abc")
    alice.do("delete", 1)
    bob.do("set", 1, "B")
    bob.do("move", 1, 0)
    assert share(alice, bob) == ["a", "c"]


def test_a_void_message_is_not_seen_and_validated_all_the_same() -> None:
    state = ARRAY.initial()
    ARRAY.apply(state, ARRAY.append(state, "a", feed=ALICE), Stamp(1, ALICE, 0), void=True)
    assert ARRAY.value(state) == []
    assert state.heard == {ALICE: 0}
    with pytest.raises(InvalidMutation):
        ARRAY.apply(state, b"\xff", Stamp(2, ALICE, 1), void=True)
    assert state.heard == {ALICE: 0}


# -- long keys


def narrow(peer: Peer, count: int) -> list[int]:
    """Always in the middle of the last two: the pattern that lengthens paths most."""
    plain: list[int] = []
    for number in range(count):
        index = len(plain) // 2
        peer.do("insert", index, [number])
        plain.insert(index, number)
    return plain


def test_where_no_key_fits_the_neighbours_get_new_ones() -> None:
    alice, bob = Peer(ALICE), Peer(BOB)
    plain = narrow(alice, 600)
    assert alice.value == plain
    assert share(alice, bob) == plain
    sizes = [len(key) for key in ARRAY.keys(alice.state)]
    assert max(sizes) <= KEY_SIZE_MAX
    rekeyed = [stamp for mutation, stamp in alice.log if len(pb.ArrayMutation.FromString(mutation).ops) > 1]
    assert rekeyed, "otherwise this test is about nothing"
    assert len(rekeyed) < 20

    alice.undo(rekeyed[-1])
    assert len(alice.value) == 599
    assert [value for value in plain if value in alice.value] == alice.value, "only what was inserted is taken back"


def test_a_move_works_where_no_key_fits() -> None:
    alice = Peer(ALICE)
    plain = ["first", *narrow(alice, 170)]
    alice.do("insert", 0, ["first"])
    for _ in range(40):
        middle = len(plain) // 2
        alice.do("move", 0, middle)
        plain.insert(middle, plain.pop(0))
        assert alice.value == plain


def test_a_set_concurrent_to_new_keys_is_kept() -> None:
    alice, bob = Peer(ALICE), Peer(BOB)
    plain: list[Any] = list(narrow(alice, 150))
    share(alice, bob)
    bob.do("set", 75, "set")
    for _ in range(60):
        alice.do("insert", len(alice.value) // 2, ["new"])
    assert [value for value in share(alice, bob) if value != "new"] == [*plain[:75], "set", *plain[76:]]


# -- undo


def test_undo_and_redo_of_every_command() -> None:
    for command, after in (
        (("insert", 1, ["x", "y"]), ["a", "x", "y", "b", "c"]),
        (("delete", 0, 2), ["c"]),
        (("set", 1, "B"), ["a", "B", "c"]),
        (("move", 0, 2), ["b", "c", "a"]),
    ):
        alice, bob = pair("a", "b", "c")
        done = alice.do(*command)
        assert alice.value == after
        [undone] = alice.undo(done)
        assert alice.value == ["a", "b", "c"]
        [redone] = alice.undo(undone)
        assert alice.value == after
        alice.undo(redone)
        assert share(alice, bob) == ["a", "b", "c"]


def test_undo_leaves_alone_what_others_did_since() -> None:
    alice, bob = pair(*"abcd")
    inserted = alice.do("insert", 1, ["x", "y"])
    set_, moved = alice.do("set", 0, "A"), alice.do("move", 5, 0)
    share(alice, bob)
    bob.do("set", bob.value.index("A"), "from bob")
    bob.do("move", 0, 3)
    bob.do("delete", bob.value.index("x"))
    now = share(alice, bob)

    assert alice.undo(set_) == []
    assert alice.undo(moved) == []
    alice.undo(inserted)
    assert alice.value == [value for value in now if value != "y"]
    assert alice.undo(inserted) == []


def test_undo_of_a_delete_puts_elements_back_among_what_is_there_now() -> None:
    alice, bob = pair(*"abcdef")
    deleted = alice.do("delete", 1, 4)
    share(alice, bob)
    bob.do("insert", 1, ["-"])
    share(alice, bob)
    alice.undo(deleted)
    value = share(alice, bob)
    assert [one for one in value if one != "-"] == list("abcdef")


# -- hostile mutations


def check_refused(mutation: bytes, match: str, state: ArrayState | None = None) -> None:
    state = state or ARRAY.initial()
    before = ARRAY.snapshot(state)
    with pytest.raises(InvalidMutation, match=match):
        ARRAY.apply(state, mutation, Stamp(9, CAROL, 9))
    assert ARRAY.snapshot(state) == before


def test_hostile_mutations_are_refused_whole() -> None:
    alice, _ = pair(*"ab")
    good = pb.ArrayMutation.FromString(ARRAY.append(alice.state, "x", feed=CAROL)).ops[0]
    check_refused(b"\xff\xff", "no mutation")
    check_refused(b"", "1 to 4096 ops")
    check_refused(pb.ArrayMutation(ops=[good, pb.ArrayOp()]).SerializeToString(), "does not know", alice.state)
    check_refused(pb.ArrayMutation(ops=[good, good]).SerializeToString(), "two elements at one place", alice.state)
    check_refused(pb.ArrayMutation(ops=[pb.ArrayOp(insert=pb.ArrayInsert())]).SerializeToString(), "or none")
    check_refused(pb.ArrayMutation(feeds=[b"short"], ops=[good]).SerializeToString(), "no feed key")
    name = ElementId(Stamp(1, ALICE, 0), 0)
    draft = Draft(CAROL)
    draft.set(name, 1, [])
    draft.set(name, 2, [])
    check_refused(draft.encode()[0], "twice", alice.state)
    draft = Draft(CAROL)
    draft.delete([name, name])
    check_refused(draft.encode()[0], "twice", alice.state)
    draft = Draft(CAROL)
    draft.delete([ElementId(Stamp(9, ALICE, 0), 0)])
    check_refused(draft.encode()[0], "cannot have seen", alice.state)
    draft = Draft(CAROL)
    draft.delete([])
    check_refused(draft.encode()[0], "no element", alice.state)


def test_ops_of_a_mutation_do_not_share_a_place() -> None:
    op = pb.ArrayMutation.FromString(ARRAY.append(ARRAY.initial(), *range(20), feed=CAROL)).ops[0]
    ops = [pb.ArrayOp(insert=op.insert) for _ in range(3)]
    for number, one in enumerate(ops):
        one.insert.place.offset = -20 * number
    ARRAY.apply(ARRAY.initial(), pb.ArrayMutation(ops=ops).SerializeToString(), Stamp(9, CAROL, 9))
    ops[1].insert.place.offset = -1
    check_refused(pb.ArrayMutation(ops=ops).SerializeToString(), "two elements at one place")


class Counting(Heard):
    """Counts how often it is asked."""

    asked = 0

    def has(self, stamp: Stamp) -> bool:
        self.asked += 1
        return super().has(stamp)


def test_names_of_many_unheard_messages_cost_each_once() -> None:
    """Carol's set names 20,000 messages that have not come; the next one of Bob must not pay for it."""
    alice, _ = pair("a")
    state, count = alice.state, 20_000
    state.heard = Counting(state.heard)
    draft = Draft(CAROL)
    unheard = [Stamp(5, feed, number) for number in range(count // 2) for feed in (BOB, b"d" * 32)]
    draft.set(ElementId(Stamp(1, ALICE, 0), 0), "c", unheard)
    ARRAY.apply(state, draft.encode()[0], Stamp(1000, CAROL, 0))
    ARRAY.apply(state, ARRAY.append(state, "b", feed=BOB), Stamp(1001, BOB, count))
    [piece] = [piece for piece in state.order if piece.waits]
    assert piece.waits is not None
    assert piece.waits.keys() == {b"d" * 32}
    assert state.heard.asked < 3 * count
    assert ARRAY.snapshot(ARRAY.restore(ARRAY.snapshot(state))) == ARRAY.snapshot(state)
    ARRAY.apply(state, ARRAY.append(state, "d", feed=b"d" * 32), Stamp(1002, b"d" * 32, count))
    assert not state.due
    assert not any(piece.waits for piece in state.order)


def test_of_thousands_of_values_of_one_feed_the_last_is_kept_and_a_small_mutation_replaces_it() -> None:
    alice, _ = pair("a")
    draft = Draft(BOB)
    draft.set(ElementId(Stamp(1, ALICE, 0), 0), "b", [])
    [mutation] = draft.encode()
    for number in range(5000):
        ARRAY.apply(alice.state, mutation, Stamp(number + 2, BOB, number))
    assert [stamp for stamp, _ in ARRAY.conflicts(alice.state, 0)] == [Stamp(5001, BOB, 4999), Stamp(1, ALICE, 0)]
    assert len(ARRAY.set(alice.state, 0, "c", feed=ALICE)) < 100
