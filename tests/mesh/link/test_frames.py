"""The frames of a link: one encoding each, bounded, and unknown kinds are no error."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.mesh.channel.limits import FRAME_SIZE_MAX
from antiphon.mesh.link.frames import Data, Digest, Frame, Ping, Pong, Show, Shown, Tags, UnknownFrame, decode, encode
from antiphon.mesh.link.limits import BOX_SIZE_MAX, PIECE_SIZE_MAX, TAGS_IN_FRAME_MAX

tags = st.binary(min_size=16, max_size=16)
frames = st.one_of(
    st.builds(Tags, st.lists(tags, min_size=16, max_size=16).map(tuple)),
    st.builds(Show, tags, st.binary(min_size=16, max_size=100)),
    st.builds(Shown),
    st.builds(Digest, tags, st.binary(min_size=32, max_size=32)),
    st.builds(Data, tags, st.booleans(), st.booleans(), st.binary(min_size=1, max_size=100)),
    st.builds(Ping, st.binary(min_size=8, max_size=8)),
    st.builds(Pong, st.binary(min_size=8, max_size=8)),
    st.builds(UnknownFrame, st.binary(max_size=20).map(lambda data: b"\x08" + data)),
)


@given(frames)
def test_a_frame_comes_back_from_its_bytes(frame: Frame) -> None:
    assert decode(encode(frame)) == frame


@given(st.binary(max_size=300))
def test_bytes_are_refused_or_have_one_meaning(data: bytes) -> None:
    try:
        frame = decode(data)
    except InvalidInput:
        return
    assert encode(frame) == data


def test_a_frame_without_a_kind_is_refused() -> None:
    with pytest.raises(BadEncoding):
        decode(b"")


@pytest.mark.parametrize(
    "frame",
    [
        Data(bytes(16), True, True, bytes(PIECE_SIZE_MAX + 1)),
        Tags((bytes(16),) * (TAGS_IN_FRAME_MAX + 16)),
        Show(bytes(16), bytes(BOX_SIZE_MAX + 1)),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_a_frame_above_its_limit_is_refused(frame: Frame) -> None:
    with pytest.raises(TooLarge):
        decode(encode(frame))


def test_the_largest_frames_fit_into_a_record() -> None:
    assert len(encode(Show(bytes(16), bytes(BOX_SIZE_MAX)))) <= FRAME_SIZE_MAX
    assert len(encode(Tags((bytes(16),) * TAGS_IN_FRAME_MAX))) <= FRAME_SIZE_MAX


def test_tags_come_in_groups() -> None:
    with pytest.raises(BadEncoding):
        decode(encode(Tags((bytes(16),) * 15)))
