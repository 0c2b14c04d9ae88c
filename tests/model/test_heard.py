"""What an item has heard of each feed, and names of messages: only of the past, and written once each."""

from __future__ import annotations

import pytest

from antiphon.core.errors import BadEncoding
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import messenger_pb2, value_pb2
from antiphon.model import heard as heard_module
from antiphon.model.heard import FeedTable, Heard, heard_fields, kept_stamp, read_feeds, read_heard, read_name
from antiphon.model.model import InvalidMutation

A, B, C = b"a" * 32, b"b" * 32, b"c" * 32


def test_what_was_heard_of_a_feed_is_everything_up_to_its_last_message() -> None:
    heard = Heard()
    heard.hear(Stamp(4, A, 3))
    assert [heard.has(Stamp(1, A, seq)) for seq in (0, 3, 4)] == [True, True, False]
    assert not heard.has(Stamp(1, B, 0))


def test_a_table_writes_each_feed_once_and_the_own_one_never() -> None:
    table = FeedTable(A)
    assert [table.index(feed) for feed in (B, A, C, B)] == [1, 0, 2, 1]
    assert table.feeds == [B, C]
    assert FeedTable.of([C, A, C, B]).feeds == [A, B, C]


def test_a_name_goes_round() -> None:
    table, at = FeedTable(A), Stamp(9, A, 5)
    for stamp in (Stamp(3, B, 7), Stamp(8, A, 4), Stamp(9, A, 4)):
        name = table.name(stamp)
        assert read_name(name, read_feeds(table.feeds, A), at) == stamp


@pytest.mark.parametrize(
    "name",
    [
        value_pb2.Name(feed=1, lamport=9, seq=0),  # another's, with the same lamport
        value_pb2.Name(feed=1, lamport=10, seq=0),
        value_pb2.Name(feed=0, lamport=9, seq=5),  # itself
        value_pb2.Name(feed=0, lamport=8, seq=6),
        value_pb2.Name(feed=0, lamport=10, seq=4),
        value_pb2.Name(feed=2, lamport=1, seq=0),  # no such feed
    ],
)
def test_nobody_names_the_future(name: value_pb2.Name) -> None:
    with pytest.raises(InvalidMutation, match=r"cannot have seen|of a table of 1"):
        read_name(name, read_feeds([B], A), Stamp(9, A, 5))


def test_a_table_of_feeds_holds_keys_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_feeds([B, C], A) == (A, B, C)
    with pytest.raises(InvalidMutation, match=r"no feed key, or too many"):
        read_feeds([b"short"])
    monkeypatch.setattr(heard_module, "FEEDS_MAX", 1)
    with pytest.raises(InvalidMutation, match=r"no feed key, or too many"):
        read_feeds([B, C], A)


def test_what_was_heard_goes_round_by_feed() -> None:
    heard = Heard({C: 3, A: 1})
    table = FeedTable.of(heard)
    proto = messenger_pb2.MessengerState.FromString(b"".join(heard_fields(heard, table)))
    names = list(proto.heard)
    assert list(proto.feeds) == table.feeds
    assert [(name.feed, name.seq) for name in names] == [(1, 1), (2, 3)]
    assert read_heard(names, read_feeds(table.feeds)) == heard


@pytest.mark.parametrize(
    "name",
    [
        value_pb2.Name(feed=0),
        value_pb2.Name(feed=2),
        value_pb2.Name(feed=1, lamport=1 << 63),
        value_pb2.Name(feed=1, seq=1 << 63),
    ],
)
def test_a_stamp_in_a_snapshot_names_a_feed_of_its_table(name: value_pb2.Name) -> None:
    with pytest.raises(BadEncoding, match=r"of a table of 1"):
        kept_stamp(name, read_feeds([A]))
