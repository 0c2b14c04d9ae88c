"""What an epoch makes of one item: reified where its model is listed, raw where it is not, gone where it never was."""

from __future__ import annotations

from typing import Any

import pytest
from tests.model.item_messages import (
    ITEM,
    OTHER,
    PARTY,
    A,
    B,
    C,
    Kept,
    KeptInAnyOrder,
    Log,
    changed,
    genesis,
    item_in,
    said,
)

from antiphon.core.errors import BadEncoding, InvalidInput, UnknownModel
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import item_pb2
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.access import EVERYONE, NOT_NAMED, Access
from antiphon.model.epoch_fold import fold_epoch, fold_on
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import META, NO_ITEM, fold
from antiphon.model.item_codec import Summary
from antiphon.model.message import Change, Note, wrap
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Discard
from antiphon.model.object.model import ObjectModel
from antiphon.model.raw import RAW_MODELS

MODELS = ModelFactory(ObjectModel, Log, Kept, KeptInAnyOrder, MessengerModel)
NOBODY = ModelFactory()
WORDS = [genesis(), said(2, A, 1, b"a"), said(3, B, 0, b"b")]


def epoch(
    base: bytes | None, notes: list[Note], *, raw: bool = False, models: ModelFactory = MODELS, **options: Any
) -> bytes:
    data, _ = fold_epoch(PARTY, item_in(notes, base), base, notes, models, () if raw else MODELS.keys, **options)
    assert data is not None
    return data


def proto(data: bytes) -> item_pb2.ItemSnapshot:
    return item_pb2.ItemSnapshot.FromString(data)


# -- reified


def test_an_epoch_has_the_bytes_of_the_live_item() -> None:
    live = fold(PARTY, ITEM, None, WORDS, MODELS).item
    assert live is not None
    assert epoch(None, WORDS) == item_codec.snapshot(live)
    assert epoch(epoch(None, WORDS[:1]), WORDS[1:]) == item_codec.snapshot(live)


def test_the_state_that_came_with_the_bytes_is_not_restored_from_them(monkeypatch: pytest.MonkeyPatch) -> None:
    name = META.set(META.initial(), "name", "x", feed=A)
    first = [genesis(META.name), said(2, A, 1, name)]
    later = [said(3, A, 2, META.set(META.initial(), "name", "y", feed=A))]
    data, _, state = fold_on(None, PARTY, item_in(first), None, first, MODELS, MODELS.keys)
    assert data is not None
    wanted = epoch(data, later)
    monkeypatch.setattr(item_codec, "restore", None)
    assert fold_on(state, PARTY, item_in(first), data, later, MODELS, MODELS.keys).data == wanted


def test_a_state_that_keeps_its_messages_is_restored_each_time() -> None:
    assert fold_on(None, PARTY, ITEM, None, WORDS, MODELS, MODELS.keys).state is None


def test_a_state_of_code_that_the_epoch_does_not_list_is_not_gone_on_with() -> None:
    first = [genesis(META.name), said(2, A, 1, META.set(META.initial(), "name", "x", feed=A))]
    later = [said(3, A, 2, META.set(META.initial(), "name", "y", feed=A))]
    data, _, state = fold_on(None, PARTY, item_in(first), None, first, MODELS, MODELS.keys)
    assert state is not None
    assert fold_on(state, PARTY, item_in(first), data, later, MODELS, ()).data == epoch(data, later, raw=True)


def test_messages_that_do_not_count_are_told_with_the_reason() -> None:
    data, verdicts = fold_epoch(PARTY, ITEM, None, WORDS[1:], MODELS, MODELS.keys)
    assert data is None
    assert verdicts == {Stamp(2, A, 1): NO_ITEM, Stamp(3, B, 0): NO_ITEM}


def test_an_item_that_nobody_wrote_to_is_none() -> None:
    assert fold_epoch(PARTY, SYSTEM_ITEM, None, [], MODELS, MODELS.keys) == (None, {})


def test_the_system_item_is_there_from_the_first_message_on() -> None:
    name = wrap(Kind.METADATA, META.set(META.initial(), "display_name", "Club", feed=A))
    first, verdicts = fold_epoch(PARTY, SYSTEM_ITEM, None, [Note(Kind.METADATA, 1, A, 0, 5, name)], MODELS, MODELS.keys)
    assert first is not None
    assert not verdicts
    assert item_codec.restore(first, MODELS).display_name == "Club"


def test_who_lacks_the_code_of_a_listed_model_computes_nothing() -> None:
    base = epoch(None, WORDS[:1])
    for notes in ([], WORDS[1:]):
        with pytest.raises(UnknownModel, match="the epoch reifies test/log 1, and no code for it is here"):
            epoch(base, notes, models=NOBODY)


def test_a_base_of_another_item_is_refused() -> None:
    with pytest.raises(InvalidInput, match="its base is that of item"):
        fold_epoch(PARTY, OTHER, epoch(None, WORDS), [said(9, A, 2, b"c")], MODELS, MODELS.keys)


def test_a_model_without_a_snapshot_discards_nothing() -> None:
    """Its state is its messages; what was taken from the one would come back from the other."""

    class Tidy(Kept):
        name = "test/tidy"

        def discard(self, state: list[bytes], policy: Discard) -> None:
            state.clear()

    models = ModelFactory(Tidy)
    notes = [genesis("test/tidy"), said(2, A, 1, b"a")]
    data, _ = fold_epoch(PARTY, item_in(notes), None, notes, models, models.keys, discard=Discard(9))
    assert data is not None
    assert item_codec.restore(data, models).value == [b"a"]


# -- raw


@pytest.mark.parametrize("code", [MODELS, NOBODY], ids=["code", "no code"])
def test_items_of_a_model_that_is_not_listed_are_raw_for_everybody(code: ModelFactory) -> None:
    data = epoch(None, WORDS, raw=True, models=code)
    assert data == epoch(None, WORDS, raw=True)
    assert item_codec.summary(data) == Summary("test/log", 1, 1, raw=True, is_deleted=False)
    assert [kept.mutation for kept in proto(data).messages] == [b"a", b"b"]
    assert item_codec.snapshot(item_codec.restore(data, RAW_MODELS)) == data


@pytest.mark.parametrize("model", ["test/log", "test/kept", "test/any"])
def test_what_waited_raw_is_reified_by_a_later_epoch(model: str) -> None:
    parts = [[genesis(model), said(6, A, 1, b"a")], [said(5, B, 0, b"b"), said(7, A, 2, b"!")], [said(2, C, 0, b"c")]]
    wanted = epoch(epoch(epoch(None, parts[0]), parts[1]), parts[2])
    for first in (True, False):
        for second in (True, False):
            base = epoch(epoch(None, parts[0], raw=first), parts[1], raw=second)
            assert epoch(base, parts[2]) == wanted
            assert epoch(epoch(base, parts[2], raw=True), []) == wanted


def test_the_state_stays_under_the_messages_since() -> None:
    reified = epoch(None, WORDS[:2])
    raw = epoch(reified, WORDS[2:], raw=True)
    assert proto(raw).state == proto(reified).state == b"a"
    assert [kept.mutation for kept in proto(raw).messages] == [b"b"]
    assert proto(raw).raw == item_pb2.ITEM_RAW_SINCE


def test_an_item_to_which_no_mutation_came_stays_as_it_was_reified() -> None:
    reified = epoch(None, WORDS)
    assert epoch(reified, [], raw=True) == reified
    deleted = epoch(reified, [changed(9, A, 2, Change(deleted=True))], raw=True)
    assert item_codec.summary(deleted) == Summary("test/log", 1, 1, raw=False, is_deleted=True)
    assert epoch(reified, [changed(9, A, 2, Change(deleted=True))]) == deleted


def test_a_genesis_alone_is_raw_until_the_model_is_listed() -> None:
    """Without the code nobody knows the bytes of its first state."""
    raw = epoch(None, WORDS[:1], raw=True)
    assert proto(raw).raw == item_pb2.ITEM_RAW_ALL
    assert epoch(raw, []) == epoch(None, WORDS[:1])


def test_what_is_the_systems_of_a_raw_item_is_folded() -> None:
    """Metadata, parents, deletion and access lists need no code; a message that the list refuses is kept as void."""
    name = wrap(Kind.METADATA, META.set(META.initial(), "display_name", "N", feed=A))
    notes = [
        *WORDS,
        Note(Kind.METADATA, 4, A, 2, 0, name),
        changed(5, A, 3, Change(parent=OTHER)),
        changed(6, A, 4, Change(access=Access((), (EVERYONE,), ((A, 9), (B, 1))))),
        said(7, B, 1, b"refused"),
        changed(8, B, 2, Change(deleted=True)),
    ]
    data, verdicts = fold_epoch(PARTY, ITEM, None, notes, NOBODY, ())
    assert data is not None
    item = item_codec.restore(data, NOBODY)
    assert (item.display_name, item.parent, item.is_deleted) == ("N", OTHER, False)
    assert verdicts == {Stamp(7, B, 1): NOT_NAMED, Stamp(8, B, 2): NOT_NAMED}
    assert [(kept.mutation, kept.void) for kept in proto(data).messages] == [
        (b"a", ""),
        (b"b", ""),
        (b"refused", "void"),
    ]
    assert epoch(data, []) == epoch(None, notes)


def test_messages_whose_bodies_say_nothing_are_not_kept() -> None:
    notes = [*WORDS, Note(Kind.MUTATION, 4, A, 2, 0, b"\xff"), Note(Kind.MUTATION, 5, A, 3, 0, None)]
    data, verdicts = fold_epoch(PARTY, ITEM, None, notes, NOBODY, ())
    assert data is not None
    assert len(proto(data).messages) == 2
    assert [*verdicts] == [Stamp(4, A, 2), Stamp(5, A, 3)]


def test_an_item_without_code_here_keeps_its_base_until_the_code_comes() -> None:
    """Its messages before the cut may be pruned: then nobody but the base has them."""
    reified = epoch(None, WORDS[:2])
    for base in (reified, epoch(reified, WORDS[2:], raw=True), epoch(None, WORDS, raw=True)):
        item = item_codec.restore(base, NOBODY)
        fold(PARTY, ITEM, item, [said(9, A, 2, b"later"), changed(10, A, 3, Change(deleted=True))], NOBODY)
        item = item_codec.decode(item_codec.encode(item_codec.decode(item_codec.encode(item), NOBODY)), NOBODY)
        assert item.is_deleted
        picked_up = item_codec.decode(item_codec.encode(item), MODELS)
        assert picked_up.value == item_codec.restore(base, MODELS).value


@pytest.mark.parametrize(
    "spoil",
    [
        {"raw": 7},
        {"raw": item_pb2.ITEM_RAW_ALL},  # with a state
        {"raw": item_pb2.ITEM_RAW_SINCE},  # without a message
        {"codec": 1},  # which is written as nothing
        {"messages": [{"at": {"feed": 1, "lamport": 9, "seq": 9}}]},  # with a state
    ],
    ids=str,
)
def test_bytes_that_contradict_themselves_are_refused(spoil: dict[str, Any]) -> None:
    spoilt = proto(epoch(None, WORDS))
    spoilt.MergeFrom(item_pb2.ItemSnapshot(**spoil))
    for models in (MODELS, NOBODY, RAW_MODELS):
        with pytest.raises(BadEncoding):
            item_codec.restore(spoilt.SerializeToString(deterministic=True), models)


def test_the_systems_part_is_checked_without_the_code_as_well() -> None:
    data = epoch(None, WORDS)
    with pytest.raises(BadEncoding, match="not the canonical bytes"):
        item_codec.restore(data + b"\x50\x00", NOBODY)


# -- codecs


class Later(Log):
    """The same model, written in another format; it reads the former as well."""

    codec = 2

    def snapshot(self, state: list[bytes]) -> bytes:
        return b"2" + super().snapshot(state)

    def restore(self, data: bytes) -> list[bytes]:
        return super().restore(data[1:] if data[:1] == b"2" else data)


def test_an_epoch_writes_states_anew_in_the_codec_that_it_lists() -> None:
    later = ModelFactory(Later)
    old = epoch(None, WORDS)
    new = epoch(old, [], models=later)
    assert (item_codec.summary(old).codec, item_codec.summary(new).codec) == (1, 2)
    assert new == epoch(None, WORDS, models=later)
    assert item_codec.restore(old, later).value == item_codec.restore(new, later).value == [b"a", b"b"]
    kept = item_codec.decode(item_codec.encode(item_codec.restore(new, later)), later)
    assert item_codec.snapshot(kept) == new


def test_code_that_is_too_old_for_a_codec_is_as_good_as_none() -> None:
    new = epoch(None, WORDS, models=ModelFactory(Later))
    assert item_codec.restore(new, MODELS).model is None
    with pytest.raises(UnknownModel):
        epoch(new, [])
    raw = epoch(new, [said(9, A, 2, b"c")], raw=True)
    assert item_codec.summary(raw) == Summary("test/log", 1, 2, raw=True, is_deleted=False)
    assert item_codec.restore(raw, ModelFactory(Later)).value == [b"a", b"b", b"c"]


def test_a_factory_lists_its_codecs() -> None:
    assert ModelFactory(Later, Kept).codecs == (("test/kept", 1, 1), ("test/log", 1, 2))

    class Wrong(Log):
        name = "test/wrong"
        codec = 0

    with pytest.raises(InvalidInput, match="a codec is an integer from 1 on"):
        ModelFactory(Wrong)


# -- the messenger's retention


def test_what_is_said_after_an_epoch_of_a_discarded_post_does_nothing() -> None:
    """Late edits and redactions of it do nothing, replies stand at the top; also in the epoch after."""
    model = MessengerModel()
    state = model.initial()
    posted = model.post(state, "old", sent_ms=10, feed=A)
    model.apply(state, posted, Stamp(2, A, 1))
    post = Stamp(2, A, 1)
    late = [
        said(3, B, 0, model.edit(state, post, "edited", feed=B)),
        said(4, B, 1, model.redact(state, post, feed=B)),
        said(4, C, 0, model.post(state, "reply", reply_to=post, sent_ms=999, feed=C)),
    ]
    discard = Discard(1000, age_ms_max=500)
    base = epoch(None, [genesis(model.name), said(2, A, 1, posted)], discard=discard)
    assert item_codec.restore(base, MODELS).value == []
    edit, redaction, reply = late
    for order in (late, [edit, reply, redaction], [reply, edit, redaction]):
        item = item_codec.restore(base, MODELS)
        fold(PARTY, ITEM, item, order, MODELS)
        assert [(entry["body"], entry["reply_to"]) for entry in item.value] == [("reply", post)]
        assert item_codec.snapshot(item) == epoch(base, late, discard=discard)
