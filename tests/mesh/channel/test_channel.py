"""A channel between two honest ends: what they agree on, and frames in both directions."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings, strategies as st
from tests.mesh.channel.ends import ALICE, BOB, answer, channel, connect, dial

from antiphon.core.errors import ChannelFault, InvalidInput
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel import channel as channels
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.limits import FRAME_SIZE_MAX
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes


def test_both_ends_know_each_other_and_name_the_channel_alike() -> None:
    one, other = channel()
    assert (one.device, other.device) == (BOB.key, ALICE.key)
    assert (one.dialled, other.dialled) == (True, False)
    assert one.id == other.id
    assert len(one.id) == 32
    assert one.version == other.version == 1


def test_the_dialler_is_open_before_the_answering_end() -> None:
    one, other = dial(), answer()
    other.receive(one.outgoing())
    assert (one.is_open, other.is_open) == (False, False)
    one.receive(other.outgoing())
    assert (one.is_open, other.is_open) == (True, False)
    last = one.outgoing()
    assert other.receive(last + one.seal(b"at once")) == [b"at once"]
    assert (other.is_open, one.outgoing(), other.outgoing()) == (True, b"", b"")


def test_features_are_those_of_both_ends() -> None:
    one, other = dial(features=0b0111), answer(features=0b1101)
    connect(one, other)
    assert one.features == other.features == 0b0101


def test_the_same_randomness_gives_the_same_bytes_and_other_randomness_another_channel() -> None:
    (one, _), (again, _), other = channel(), channel(), dial(seed="other")
    connect(other, answer())
    assert one.id == again.id
    assert one.seal(b"hello") == again.seal(b"hello")
    assert other.id != one.id


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 3000) | st.just(FRAME_SIZE_MAX)), max_size=12),
    st.integers(1, 5000),
)
def test_frames_arrive_whole_and_in_order_however_they_are_cut(sent: list[tuple[bool, int]], cut: int) -> None:
    ends = channel()
    frames = [(way, bytes([number]) * size) for number, (way, size) in enumerate(sent)]
    for way in (False, True):
        writer, reader = (ends[0], ends[1]) if way else (ends[1], ends[0])
        stream = b"".join(writer.seal(frame) for which, frame in frames if which == way)
        got = [frame for at in range(0, len(stream), cut) for frame in reader.receive(stream[at : at + cut])]
        assert got == [frame for which, frame in frames if which == way]


def test_the_handshake_may_arrive_byte_by_byte() -> None:
    one, other = dial(), answer()
    for writer, reader in ((one, other), (other, one), (one, other)):
        data = writer.outgoing()
        for at in range(len(data)):
            assert reader.receive(data[at : at + 1]) == []
    assert one.is_open
    assert other.is_open


def test_keys_are_replaced_in_time_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "REKEY_COUNT", 3)
    one, other = channel()
    records = [one.seal(b"same") for _ in range(10)]
    assert other.receive(b"".join(records)) == [b"same"] * 10
    assert len(set(records)) == 10


@pytest.mark.parametrize("size", [0, FRAME_SIZE_MAX + 1])
def test_a_frame_has_a_size_within_bounds(size: int) -> None:
    one, other = channel()
    with pytest.raises(InvalidInput, match="split it"):
        one.seal(bytes(size))
    assert other.receive(one.seal(b"x")) == [b"x"]  # nothing was changed


def test_nothing_is_sealed_before_the_handshake_is_sent() -> None:
    one, other = dial(), answer()
    for end in (one, other):
        with pytest.raises(InvalidInput, match="not done"):
            end.seal(b"x")
    other.receive(one.outgoing())
    one.receive(other.outgoing())
    with pytest.raises(InvalidInput, match="not done"):
        one.seal(b"x")  # the last message is not sent yet


def test_what_is_not_proven_is_not_told() -> None:
    one, other = dial(), answer()
    other.receive(one.outgoing())
    for end, names in ((one, ("id", "version", "features")), (other, ("device", "id", "version", "features"))):
        for name in names:
            with pytest.raises(InvalidInput, match="not proven"):
                getattr(end, name)


@pytest.mark.parametrize("features", [-1, 1 << 63])
def test_features_are_63_bits(features: int) -> None:
    with pytest.raises(InvalidInput, match="63 bits"):
        dial(features=features)


def test_a_device_does_not_dial_itself() -> None:
    with pytest.raises(InvalidInput, match="itself"):
        dial(ALICE, ALICE)


def test_a_channel_that_ended_stays_so() -> None:
    one, other = channel()
    record = one.seal(b"x")
    with pytest.raises(ChannelFault):
        other.receive(bytes(40))
    for _ in range(2):
        with pytest.raises(ChannelFault, match="has ended"):
            other.receive(record)
        with pytest.raises(ChannelFault, match="has ended"):
            other.seal(b"x")
    assert not other.is_open
    assert other.device == ALICE.key


def test_a_socket_that_says_nothing_takes_little_memory() -> None:
    seen, chance = SeenHandshakes(), SeededRandomness("silent")
    tracemalloc.start()
    try:
        waiting = [Channel.answer(BOB, seen, now_ms=0, randomness=chance) for _ in range(1000)]
        for end in waiting:
            end.receive(bytes(1))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(waiting) == 1000
    assert size / 1000 < 700
