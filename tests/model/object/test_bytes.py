"""The bytes of an object: what is refused, what a snapshot keeps, and what hostile bytes can do (nothing)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import object_pb2, value_pb2
from antiphon.model.object.fast_mutation import take_plain
from antiphon.model.object.model import ObjectModel, ObjectState
from antiphon.model.object.mutation_codec import read_mutation, write_mutation
from antiphon.model.object.register import Counter, Mark, element_segment
from antiphon.model.object.state import DELETE, Increment, Op
from antiphon.model.wire import plain_bytes, varint

MODEL = ObjectModel()
ADA, BOB, EVE = b"a" * 32, b"b" * 32, b"e" * 32
HERE = Stamp(50, BOB, 7)
Name, Value, Row = value_pb2.Name, value_pb2.Value, object_pb2.ObjectOp


def filled(chance: random.Random, count: int = 12) -> ObjectState:
    """A state with a bit of everything, kept names as well."""
    state = MODEL.initial()
    for number in range(count):
        MODEL.apply(state, MODEL.rehearse(state, chance, ADA), Stamp(number + 1, ADA, number))
    seen, away = Stamp(2, ADA, 1), [Stamp(3, EVE, 9), Stamp(4, EVE, 9), Stamp(5, BOB, 70)]
    ops = [
        Op(("n",), Counter(-5), (seen, *away)),
        Op(("n", "m"), Increment(3), away[:1]),
        Op(("s", element_segment("x")), Mark.MEMBER, away),
        Op(("real",), 0.5),
    ]
    MODEL.apply(state, write_mutation(ops, BOB), HERE)
    return state


def op(**fields: object) -> bytes:
    fields.setdefault("path", ["a"])
    return object_pb2.ObjectMutation(ops=[Row(**fields)]).SerializeToString()  # type: ignore[arg-type]


TEXT = Value(text="x")


@pytest.mark.parametrize(
    "mutation",
    {
        "empty": b"",
        "no protobuf": b"\xff\xff",
        "no operation": object_pb2.ObjectMutation(feeds=[ADA]).SerializeToString(),
        "no kind": op(),
        "no path": op(path=[], write=TEXT),
        "a long path": op(path=["k"] * 33, write=TEXT),
        "a long path to an element": op(path=["k"] * 32, element=TEXT, mark=4),
        "a long key": op(path=["k" * 1025], write=TEXT),
        "a long key in two-byte letters": op(path=["é" * 513], write=TEXT),
        "a key that is no UTF-8": op(path=["aaaa"], write=TEXT).replace(b"aaaa", b"a\xff\xfea"),
        "a text that is no UTF-8": op(write=Value(text="aaaa")).replace(b"aaaa", b"a\xff\xfea"),
        "a long element": op(element=Value(text="x" * 1024), mark=4),
        "an empty value": op(write=Value()),
        "an empty element": op(element=Value(), mark=4),
        "a value at an element": op(element=TEXT, write=TEXT),
        "a map at an element": op(element=TEXT, mark=2),
        "a counter at an element": op(element=TEXT, counter=1),
        "an increment of an element": op(element=TEXT, increment=1, replaces=[Name(lamport=1)]),
        "a member that is no element": op(mark=4),
        "mark 0": op(mark=0),
        "an unknown mark": op(mark=9),
        "an increment of nothing": op(increment=1),
        "an increment of two": op(increment=1, replaces=[Name(lamport=1), Name(lamport=2)]),
        "a feed outside the table": op(write=TEXT, replaces=[Name(feed=1, lamport=1)]),
        "a name of the future": op(write=TEXT, replaces=[Name(lamport=51)]),
        "its own name": op(write=TEXT, replaces=[Name(lamport=50, seq=7)]),
        "a seq that cannot be": op(write=TEXT, replaces=[Name(lamport=1, seq=1 << 63)]),
        "two for one path": object_pb2.ObjectMutation(
            ops=[Row(path=["a"], write=TEXT), Row(path=["b"], counter=1), Row(path=["a"], counter=1)]
        ).SerializeToString(),
        "too many": object_pb2.ObjectMutation(
            ops=[Row(path=[str(number)], write=TEXT) for number in range(4097)]
        ).SerializeToString(),
        "a feed that is no key": object_pb2.ObjectMutation(
            feeds=[b"short"], ops=[Row(path=["a"], write=TEXT)]
        ).SerializeToString(),
    }.items(),
    ids=lambda case: case[0],
)
@pytest.mark.parametrize("void", [False, True])
def test_a_mutation_that_breaks_a_rule_changes_nothing(mutation: tuple[str, bytes], void: bool) -> None:
    state = filled(random.Random(1))
    before = MODEL.snapshot(state)
    with pytest.raises(InvalidMutation):
        MODEL.apply(state, mutation[1], HERE._replace(seq=HERE.seq), void=void)
    assert MODEL.snapshot(state) == before


def test_the_largest_mutation_is_taken() -> None:
    state = MODEL.initial()
    MODEL.apply(state, MODEL.set(state, "m", {str(number): 1 for number in range(4095)}), HERE)
    assert len(MODEL.get(state, "m")) == 4095
    deep = ["k" * 1024] * 32
    MODEL.apply(state, MODEL.set(state, deep, 1), Stamp(51, BOB, 8))
    assert MODEL.get(MODEL.restore(MODEL.snapshot(state)), deep) == 1


# -- the hand-written wire format is the library's


@given(
    key=st.text(max_size=40),
    content=st.text(max_size=40) | st.integers(-(1 << 63), (1 << 63) - 1) | st.booleans() | st.none(),
    named=st.sampled_from([None, 0, 1, 2]),
    noise=st.binary(max_size=2),
    at=st.integers(0, 200),
)
def test_the_short_way_of_a_plain_write_does_what_the_long_one_does(
    key: str, content: Any, named: int | None, noise: bytes, at: int
) -> None:
    earlier = [Stamp(1 + 7 * number, BOB, 300 * number) for number in range(3)]
    base = ObjectState()
    for stamp in earlier:
        base.take([Op((key,), f"{stamp}")], stamp)
        base.hear(stamp)
    data = write_mutation([Op((key,), content, () if named is None else (earlier[named],))], BOB)
    here = Stamp(1 << 20, BOB, 1 << 20)
    for changed in (data, data[:at] + noise + data[at + len(noise) :]):
        short, long = MODEL.restore(MODEL.snapshot(base)), MODEL.restore(MODEL.snapshot(base))
        before = MODEL.snapshot(short)
        if take_plain(short, changed, here):
            long.take(read_mutation(changed, here), here)
            long.hear(here)
            assert MODEL.snapshot(short) == MODEL.snapshot(long)
        else:
            assert MODEL.snapshot(short) == before


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ADA, BOB]),
            st.sampled_from(["a", "b", "", "k" * 100, "\ud800"]),
            st.sampled_from(["x", 7, -(1 << 62), True, None, {"n": 1}, "v" * 200, "\ud800", ["l"]]),
        ),
        max_size=12,
    )
)
def test_performing_a_command_is_making_and_applying_it(writes: list[tuple[bytes, str, Any]]) -> None:
    performed, applied = ObjectState(), ObjectState()
    for seq, (feed, key, value) in enumerate(writes):
        stamp = Stamp(seq + 1, feed, seq)
        before = MODEL.snapshot(performed)
        made = MODEL.perform(performed, "set", (key, value), stamp)
        if made is None:
            assert MODEL.snapshot(performed) == before
            continue
        assert made == MODEL.set(applied, key, value, feed=feed)
        MODEL.apply(applied, made, stamp)
        assert MODEL.snapshot(performed) == MODEL.snapshot(applied)


def test_only_plain_writes_are_performed() -> None:
    state = ObjectState()
    assert MODEL.perform(state, "set", ("title", "x"), Stamp(1, BOB, 0))
    assert MODEL.perform(state, "set", ("title", 7), Stamp(2, BOB, 1))
    assert MODEL.perform(state, "set", ("title", "y"), Stamp(3, ADA, 0)) is None  # it replaces another's
    assert MODEL.perform(state, "set", (("owner", "name"), "y"), Stamp(3, BOB, 2)) is None
    assert MODEL.perform(state, "increment", ("count",), Stamp(3, BOB, 2)) is None
    assert MODEL.value(state) == {"title": 7}


def test_a_plain_write_takes_the_short_way() -> None:
    state = ObjectState()
    assert take_plain(state, write_mutation([Op(("title",), "x")], BOB), Stamp(1, BOB, 0))
    second = write_mutation([Op(("title",), 70_000, [Stamp(1, BOB, 0)])], BOB)
    assert take_plain(state, second, Stamp(1 << 20, BOB, 1 << 20))
    third = write_mutation([Op(("title",), -1, [Stamp(1 << 20, BOB, 1 << 20)])], BOB)
    assert take_plain(state, third, Stamp(1 << 30, BOB, 1 << 30))
    assert MODEL.value(state) == {"title": -1}
    assert varint(300) == b"\xac\x02"


@given(
    st.lists(
        st.sampled_from([(1, ADA, 0), (2, ADA, 3), (8, BOB, 1), (9, EVE, 0), (30, EVE, 400), (2, ADA, 2)]), max_size=4
    ),
    st.sampled_from(["title", "other"]),
    st.sampled_from(["x", 7]),
    st.integers(0, 160),
    st.binary(max_size=3),
)
def test_the_short_way_takes_names_of_all_feeds_as_the_long_one_does(
    names: list[tuple[int, bytes, int]], key: str, content: str | int, at: int, noise: bytes
) -> None:
    base = ObjectState()
    for stamp in (Stamp(1, ADA, 0), Stamp(2, ADA, 3), Stamp(8, BOB, 1), Stamp(9, EVE, 0)):
        base.take([Op(("title",), f"{stamp.lamport}")], stamp)
        base.hear(stamp)
    data = write_mutation([Op((key,), content, [Stamp(*name) for name in names])], BOB)
    for changed in (data, data[:at] + noise + data[at + len(noise) :]):
        for here in (Stamp(40, BOB, 9), Stamp(9, BOB, 2)):
            short, long = MODEL.restore(MODEL.snapshot(base)), MODEL.restore(MODEL.snapshot(base))
            before = MODEL.snapshot(short)
            if take_plain(short, changed, here):
                long.take(read_mutation(changed, here), here)
                long.hear(here)
                assert MODEL.snapshot(short) == MODEL.snapshot(long)
            else:
                assert MODEL.snapshot(short) == before


def test_a_write_in_place_of_others_takes_the_short_way() -> None:
    state = ObjectState()
    for stamp in (Stamp(1, ADA, 0), Stamp(1, EVE, 0), Stamp(1, BOB, 0)):
        assert take_plain(state, write_mutation([Op(("title",), "x")], stamp.feed), stamp)
    gone = write_mutation([Op(("title",), "y", [Stamp(1, ADA, 0), Stamp(1, EVE, 0)])], BOB)
    assert take_plain(state, gone, Stamp(2, BOB, 1))
    assert take_plain(state, gone, Stamp(3, BOB, 2))  # both are gone by now
    assert [entry for _, entry in state.root.children["title"].entries.items()] == [(Stamp(3, BOB, 2), "y")]
    future = write_mutation([Op(("title",), "y", [Stamp(1, ADA, 7)])], BOB)
    assert not take_plain(state, future, Stamp(4, BOB, 3))  # it is kept until it comes


@given(st.randoms(use_true_random=False), st.integers(0, 30))
@settings(max_examples=40)
def test_a_snapshot_is_what_the_library_would_write(chance: random.Random, count: int) -> None:
    data = MODEL.snapshot(filled(chance, count))
    proto = object_pb2.ObjectSnapshot.FromString(data)
    proto.DiscardUnknownFields()
    assert proto.SerializeToString(deterministic=True) == data


# -- snapshots


@given(st.randoms(use_true_random=False), st.integers(0, 30))
@settings(max_examples=60)
def test_a_snapshot_brings_everything_back(chance: random.Random, count: int) -> None:
    state = filled(chance, count)
    data = MODEL.snapshot(state)
    again = MODEL.restore(data)
    assert MODEL.snapshot(again) == data
    assert repr(MODEL.value(again)) == repr(MODEL.value(state))
    assert again.kept
    for number in range(5):
        mutation, stamp = MODEL.rehearse(state, chance, EVE), Stamp(60 + number, EVE, 8 + number)
        for one in (state, again):
            MODEL.apply(one, mutation, stamp)
    assert MODEL.snapshot(again) == MODEL.snapshot(state)


SOME = MODEL.snapshot(filled(random.Random(3)))


def check_restore(data: bytes) -> None:
    """Bytes are refused, or they are the snapshot of what they give."""
    try:
        state = MODEL.restore(data)
    except InvalidInput:
        return
    assert MODEL.snapshot(state) == data
    MODEL.value(state)


@given(st.binary(max_size=200))
@example(b"")
def test_random_bytes_are_no_snapshot_or_a_canonical_one(data: bytes) -> None:
    check_restore(data)


@given(st.integers(0, len(SOME)), st.integers(0, 4), st.binary(max_size=4))
@settings(max_examples=400)
def test_a_changed_snapshot_is_refused_or_canonical(at: int, drop: int, put: bytes) -> None:
    check_restore(SOME[:at] + put + SOME[at + drop :])


def changed(change: str) -> bytes:
    proto = object_pb2.ObjectSnapshot.FromString(SOME)
    exec(change, {"p": proto, "Value": Value, "Name": Name, "Entry": object_pb2.ObjectEntry})
    return proto.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "change",
    [
        "p.feeds.append(b'z' * 32)",
        "p.feeds[0] = b'short'",
        "p.feeds.reverse()",
        "p.heard.reverse()",
        "p.heard.append(p.heard[0])",
        "p.heard[0].lamport = 1",
        "p.heard[0].seq = 1 << 63",
        "del p.heard[:]",
        "p.registers.reverse()",
        "p.registers.append(p.registers[-1])",
        "p.registers[0].path.clear()",
        "p.registers[0].path.extend(['k'] * 32)",
        "p.registers[0].path[0] = 'k' * 1025",
        "del p.registers[0].entries[:]",
        "p.registers[0].entries[0].feed = 0",
        "p.registers[0].entries[0].feed = 9",
        "p.registers[0].entries[0].seq = 1 << 40",
        "p.registers[0].entries[0].lamport = 1 << 63",
        "p.registers[0].entries[0].mark = 1",
        "p.registers[0].entries[0].mark = 4",
        "p.registers[0].entries[0].counter = b''",
        "p.registers[0].entries[0].counter = b'\\0\\0'",
        "p.registers[0].entries[0].counter = b'\\x7f' * 17",
        "p.registers[0].entries[0].value.null = False",
        "p.registers[0].entries[0].ClearField('value'); p.registers[0].entries[0].ClearField('mark')",
        "p.kept.reverse()",
        "p.kept.append(p.kept[0])",
        "p.kept.add(path=['zz'])",
        "p.kept[0].gone.append(p.kept[0].gone[0])",
        "p.kept[0].gone[0].seq = 0; p.kept[0].gone[0].feed = 1",
        "p.kept[0].gone[0].feed = 0",
    ],
)
def test_what_is_no_canonical_snapshot_is_refused(change: str) -> None:
    data = changed(change)
    assert data != SOME
    with pytest.raises(InvalidInput):
        MODEL.restore(data)


def test_a_snapshot_with_a_lamport_of_0_comes_back() -> None:
    """No message has it, yet a snapshot may; it was written in a form that was then refused."""
    proto = object_pb2.ObjectSnapshot(feeds=[b"a" * 32], heard=[Name(feed=1, seq=3)])
    entry = object_pb2.ObjectEntry(feed=1, seq=3, value=Value(text="x"))
    proto.registers.add(path=["k"], entries=[entry])
    data = proto.SerializeToString(deterministic=True)

    assert MODEL.snapshot(MODEL.restore(data)) == data


def test_unknown_fields_are_refused_in_a_snapshot() -> None:
    with pytest.raises(InvalidInput):
        MODEL.restore(SOME + b"\x78\x01")


# -- hostile mutations


MUTATION = write_mutation(
    [
        Op(("a", "b"), [1, {"k": None}], [Stamp(1, ADA, 0), Stamp(2, BOB, 1)]),
        Op(("a", element_segment(3)), Mark.MEMBER, [Stamp(3, EVE, 0)]),
        Op(("n",), Increment(-3), [Stamp(1, ADA, 0)]),
        Op(("c",), Counter(9)),
        Op(("d",), DELETE, [Stamp(4, EVE, 5)]),
    ],
    BOB,
)


def check_apply(mutation: bytes) -> None:
    """Refused without a trace, or taken: and then the state can be kept and read."""
    state = filled(random.Random(5))
    before = MODEL.snapshot(state)
    try:
        MODEL.apply(state, mutation, Stamp(60, BOB, 8))
    except InvalidMutation:
        assert MODEL.snapshot(state) == before
        return
    data = MODEL.snapshot(state)
    assert MODEL.snapshot(MODEL.restore(data)) == data
    MODEL.value(state)


@given(st.binary(max_size=120))
def test_random_mutations(data: bytes) -> None:
    check_apply(data)


@given(st.integers(0, len(MUTATION)), st.integers(0, 4), st.binary(max_size=4))
@settings(max_examples=300)
def test_changed_mutations(at: int, drop: int, put: bytes) -> None:
    check_apply(MUTATION[:at] + put + MUTATION[at + drop :])


@pytest.mark.slow
def test_names_of_any_number_of_feeds_can_be_kept() -> None:
    state = MODEL.initial()
    for part in range(3):
        names = [Stamp(1, number.to_bytes(32, "big"), 5) for number in range(part * 30_000, part * 30_000 + 30_000)]
        MODEL.apply(state, write_mutation([Op(("a",), 1, names)], BOB), Stamp(2 + part, BOB, part))
    data = MODEL.snapshot(state)
    assert MODEL.snapshot(MODEL.restore(data)) == data


@given(
    key=st.text(min_size=1, max_size=50),
    text=st.text(max_size=60) | st.integers(-(1 << 63), (1 << 63) - 1),
    name=st.none() | st.builds(Stamp, st.integers(1, (1 << 40) - 1), st.just(b"f" * 32), st.integers(0, 1 << 40)),
)
def test_a_plain_write_by_hand_is_the_library_s(key: str, text: str | int, name: Stamp | None) -> None:
    made = plain_bytes(key, text, name)
    wanted = write_mutation((Op((key,), text, () if name is None else (name,)),), b"f" * 32)

    assert made in (b"", wanted)
    small = abs(text) < 1 << 55 if isinstance(text, int) else len(key.encode()) + len(text.encode()) < 88
    assert made or not small or len(key.encode()) > 70
