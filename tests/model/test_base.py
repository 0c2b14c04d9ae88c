"""Items that stand on the snapshot of an epoch: all of the base first, then what lies outside the cut, in its order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.model.item_messages import MODELS, PARTY, A, B, C, Log, changed, genesis, item_in, run, said
from tests.party.histories import Jottings, Moves

from antiphon.core.errors import BadEncoding
from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import item_pb2
from antiphon.feed.header import Kind
from antiphon.model import item_codec, late_messages
from antiphon.model.array.model import ArrayModel
from antiphon.model.epoch_fold import fold_epoch
from antiphon.model.fold import BASE_HAS_GENESIS, ItemState, fold
from antiphon.model.message import Change, Genesis, Inception, Note, write_genesis
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Discard, Feeding, InvalidMutation, Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.testing.epoch_laws import BASE_LAWS

KINDS = ("test/log", "test/arrivals", "test/kept", "test/any")


class Scribbles(Jottings):
    """The same messages in the order in which they were applied, so that a wrong order shows in the value too."""

    name = "test/scribbles"
    feeding = Feeding.ORDERED

    def value(self, state: dict[int, bytes]) -> list[bytes]:
        return list(state.values())


class Piles(Moves):
    """It says that any order is right, but not that its bytes are the same."""

    name = "test/piles"
    feeding = Feeding.COMMUTATIVE
    canonical = False


def epoch(base: bytes | None, *notes: Note, discard: Discard | None = None) -> bytes:
    ordered = sorted(notes, key=lambda note: note.stamp)
    data, _ = fold_epoch(PARTY, item_in(ordered, base), base, ordered, MODELS, MODELS.keys, discard=discard)
    assert data is not None
    return data


def on(base: bytes, *notes: Note) -> ItemState:
    """Messages that come one by one, with a restart after each."""
    item = item_codec.restore(base, MODELS)
    for note in notes:
        folded = run([note], item)
        assert not folded.late
        assert folded.item is not None
        item = item_codec.decode(item_codec.encode(folded.item), MODELS)
    return item


# -- the laws, for models that keep their messages


def check_law(law: Any, model: Model[Any], chance: random.Random) -> None:
    """A law asserts by itself."""
    law(model, chance)


@pytest.mark.parametrize("every", [2, 256])
@pytest.mark.parametrize(
    "model", [Moves, Jottings, Scribbles, Piles, ArrayModel, MessengerModel, ObjectModel, TextModel]
)
@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 32), law=st.sampled_from(BASE_LAWS))
def test_an_item_goes_on_from_an_epoch_as_everybodys_does(
    model: type[Model[Any]], every: int, seed: int, law: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late_messages, "CHECKPOINT_EVERY", every)
        check_law(law, model(), random.Random(seed))


# -- order


@pytest.mark.parametrize("model", KINDS[:3])
def test_a_late_message_with_a_low_lamport_comes_after_all_of_the_base(model: str) -> None:
    base = epoch(None, genesis(model), said(8, A, 1, b"first"), said(9, A, 2, b"second"))
    item = on(base, said(4, B, 1, b"fourth"), said(3, C, 0, b"third"))
    assert item.value == [b"first", b"second", b"third", b"fourth"]


def test_messages_are_kept_in_the_order_of_application_over_several_epochs() -> None:
    first = epoch(None, genesis("test/kept"), said(8, A, 1, b"1"))
    second = epoch(first, said(5, B, 0, b"2"), said(9, A, 2, b"3"))
    third = epoch(second, said(2, C, 0, b"4"), said(6, B, 1, b"5"))
    item = item_codec.restore(third, MODELS)
    assert [kept.mutation for kept in item.tail] == [b"1", b"2", b"3", b"4", b"5"]
    assert item_codec.snapshot(item) == third


def test_only_messages_of_the_tail_are_judged_again() -> None:
    """The base refused a `!`; a replay says nothing of that, for it is not among the messages outside the cut."""
    base = epoch(None, genesis("test/kept"), said(8, A, 1, b"!"), said(9, A, 2, b"!"))
    item = item_codec.restore(base, MODELS)
    assert run([said(7, B, 1, b"late")], item).verdicts == {}
    folded = run([said(3, C, 0, b"!")], item)
    assert folded.item is not None
    assert folded.item.value == [b"!", b"late"]
    assert folded.verdicts == {Stamp(3, C, 0): "one ! is enough [model.refused]", Stamp(7, B, 1): ""}


def test_a_message_before_the_first_checkpoint_that_is_kept_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_messages, "CHECKPOINT_EVERY", 2)
    base = epoch(None, genesis(), said(50, A, 1, b"base"))
    item = on(base, *(said(60 + at, A, 2 + at, b"%d" % at) for at in range(8)))
    assert item.trimmed
    assert run([said(2, B, 0, b"early")], item).late


def test_the_record_of_a_based_item_rolls_back_to_its_base() -> None:
    item = on(epoch(None, genesis(), said(5, A, 1, b"base")), said(9, A, 2, b"b"))
    again = item_codec.decode(item_codec.encode(item), MODELS)
    assert again.checkpoints == item.checkpoints
    assert again.checkpoints[0].stamp == late_messages.BASE
    assert run([said(2, B, 0, b"a")], again).item is again
    assert again.value == [b"base", b"a", b"b"]


@pytest.mark.parametrize("model", ["antiphon/object", *KINDS])
def test_a_record_says_that_its_item_is_based(model: str) -> None:
    item = item_codec.restore(epoch(None, genesis(model)), MODELS)
    assert item.based
    for _ in range(2):
        assert item_codec.decode(item_codec.encode(item), MODELS).based
        run([changed(9, A, 1, Change(deleted=True))], item)
    plain = run([genesis(model)]).item
    assert plain is not None
    assert not item_codec.decode(item_codec.encode(plain), MODELS).based


# -- the genesis


def test_a_base_is_final_another_genesis_with_a_lesser_stamp_is_refused() -> None:
    """A view's key may sign for several feeds; without a base the least stamp holds."""
    pair = KeyPair.from_seed(b"v" * 32)
    view = ItemId.of_view(5, party=PARTY, key=pair.key)

    def begun(feed: bytes) -> Note:
        proof = pair.sign(Inception.statement(PARTY, feed))
        message = write_genesis(Genesis(b"", "test/log", 1, view=Inception(pair.key, proof)))
        return Note(Kind.GENESIS, 5, feed, 0, 1, message)

    folded = fold(PARTY, view, None, [begun(B)], MODELS)
    assert folded.item is not None
    base = item_codec.snapshot(folded.item)
    assert fold(PARTY, view, folded.item, [begun(A)], MODELS).late

    folded = fold(PARTY, view, item_codec.restore(base, MODELS), [begun(A)], MODELS)

    assert not folded.late
    assert folded.verdicts == {Stamp(5, A, 0): BASE_HAS_GENESIS}
    assert folded.item is not None
    assert item_codec.snapshot(folded.item) == base


def test_a_message_below_the_genesis_is_refused_as_ever() -> None:
    base = epoch(None, genesis())
    assert run([said(1, bytes(32), 0, b"x")], item_codec.restore(base, MODELS)).verdicts


# -- bytes


@pytest.mark.parametrize(
    "spoil",
    [
        [(8, 1, 1), (7, 1, 2)],  # one feed's lamports descend
        [(8, 1, 2), (8, 1, 2)],  # a message twice
        [(8, 1, 2), (9, 1, 1)],  # one feed's seqs descend
    ],
)
def test_messages_of_one_feed_ascend(spoil: list[tuple[int, int, int]]) -> None:
    proto = item_pb2.ItemSnapshot.FromString(epoch(None, genesis("test/kept")))
    for lamport, feed, seq in spoil:
        proto.messages.add(mutation=b"x").at.CopyFrom(
            type(proto.genesis)(lamport=lamport, feed=feed, seq=seq),
        )
    with pytest.raises(BadEncoding, match="do not ascend"):
        item_codec.restore(proto.SerializeToString(deterministic=True), MODELS)


def test_a_record_whose_base_is_longer_than_its_tail_is_refused() -> None:
    record = item_pb2.ItemRecord.FromString(
        item_codec.encode(on(epoch(None, genesis("test/kept")), said(2, B, 0, b"x")))
    )
    record.base_count = 2
    with pytest.raises(BadEncoding, match="more messages than there are"):
        item_codec.decode(record.SerializeToString(), MODELS)


# -- discards


class Shelf(Log):
    """Keeps so many of what was said."""

    name = "test/shelf"

    def discard(self, state: list[bytes], policy: Discard) -> None:
        if b"crash" in state:
            raise InvalidMutation("no")
        del state[: -policy.count_max or None]


def test_what_an_epoch_discards_does_not_come_back_with_a_late_message() -> None:
    MODELS.register(Shelf)
    base = epoch(
        None, genesis("test/shelf"), *(said(4 + at, A, 1 + at, b"%d" % at) for at in range(5)), discard=KEEP_TWO
    )
    assert on(base, said(6, B, 1, b"x"), said(5, C, 0, b"y")).value == [b"3", b"4", b"y", b"x"]


KEEP_TWO = Discard(0, count_max=2)


def test_an_epoch_in_which_nothing_happens_to_an_item_has_its_very_bytes() -> None:
    MODELS.register(Shelf)
    base = epoch(None, genesis("test/shelf"), said(4, A, 1, b"a"), said(5, A, 2, b"b"))
    assert epoch(base, discard=KEEP_TWO) == base
    assert epoch(base, discard=Discard(0, count_max=1)) != base
