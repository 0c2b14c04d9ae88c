"""Rule 26: an item whose genesis is void is hidden, until another identity builds on it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from tests.model.item_messages import MODELS, OTHER, PARTY, THIRD, A, B, C, changed, genesis, item_in, run, said

from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.reasons import Reason, because
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.halo.rights.verdict import LOST_RIGHT, PAST_CUT
from antiphon.model import item_codec
from antiphon.model.access import Access, Author
from antiphon.model.epoch_fold import fold_epoch
from antiphon.model.fold import HIDDEN, NO_ITEM, Folded, ItemState, fold
from antiphon.model.message import Change, Genesis, Inception, Note, wrap, write_genesis
from antiphon.model.object.model import ObjectModel

ALL = frozenset((name, version) for name, version, _ in MODELS.codecs)
NEVER = because(Reason.ROLE, "its writer is not an owner or editor")
ERASED = because(Reason.ERASED, "it was erased")


def whole(notes: Sequence[Note], base: bytes | None = None) -> Folded:
    state = None if base is None else item_codec.restore(base, MODELS)
    return fold(PARTY, item_in(notes, base), state, sorted(notes, key=lambda note: note.stamp), MODELS, whole=True)


def one_by_one(notes: Sequence[Note], base: bytes | None = None) -> tuple[ItemState | None, dict[Stamp, str]]:
    """Fold messages as they arrive, with a restart after each, and again from the beginning where that is needed."""
    state = None if base is None else item_codec.restore(base, MODELS)
    orphaned = state is None
    verdicts: dict[Stamp, str] = {}
    for count, note in enumerate(notes, start=1):
        folded = run([note], state)
        if folded.late or (orphaned and folded.state is not None):
            folded, verdicts = whole(notes[:count], base), {}
        state, orphaned = folded.state, folded.state is None
        verdicts |= folded.verdicts
        if state is not None:
            state = item_codec.decode(item_codec.encode(state), MODELS)
    return state, {stamp: reason for stamp, reason in verdicts.items() if reason}


def test_an_item_with_a_void_genesis_is_hidden_and_its_messages_are_refused() -> None:
    folded = run([genesis(void=ERASED), said(2, A, 1, b"a")])
    assert folded.item is None
    assert folded.state is not None
    assert folded.verdicts == {Stamp(1, A, 0): ERASED, Stamp(2, A, 1): HIDDEN}


@pytest.mark.parametrize("reason", [ERASED, PAST_CUT, LOST_RIGHT, NEVER])
def test_a_message_of_another_identity_brings_it_back(reason: str) -> None:
    item = whole([genesis(void=reason, parent=OTHER), said(2, A, 1, b"a"), said(3, B, 0, b"b")])
    assert item.item is not None
    assert (item.item.value, item.item.parent) == ([b"a", b"b"], OTHER)
    assert item.verdicts == {Stamp(1, A, 0): reason}


@pytest.mark.parametrize(
    "note",
    [
        said(3, B, 0, b"b", void=PAST_CUT),
        Note(Kind.MUTATION, 1, bytes(32), 0, 0, wrap(Kind.MUTATION, b"early")),
        said(3, A, 2, b"a"),
    ],
    ids=["it is void itself", "it is older than the genesis", "it is by the creator"],
)
def test_nothing_else_does(note: Note) -> None:
    assert whole([genesis(void=ERASED), note]).item is None


def test_a_second_device_of_the_creator_does_not() -> None:
    notes = [genesis(void=ERASED), said(3, B, 0, b"b")]
    one = Author(b"an identity")
    assert fold(PARTY, item_in(notes), None, notes, MODELS, lambda feed, seq: one, whole=True).item is None


def test_a_message_that_the_model_or_the_access_list_refuses_does() -> None:
    model = whole([genesis(void=ERASED), said(3, B, 0, b"crash")])
    assert model.item is not None
    assert set(model.verdicts) == {Stamp(1, A, 0), Stamp(3, B, 0)}
    closed = changed(2, A, 1, Change(access=Access((), (bytes(32),), ())))
    guarded = whole([genesis(void=ERASED), closed, said(3, B, 0, b"b")])
    assert guarded.item is not None
    assert guarded.item.value == []


def test_of_two_geneses_of_one_id_the_least_stamp_holds_also_if_it_is_void() -> None:
    """Of a view, two geneses may name two models: its id follows from its key. Else the creator could give the item
    that others built on another model, by erasing the first.
    """
    pair = KeyPair.from_seed(bytes(32))
    view = Inception(pair.key, pair.sign(Inception.statement(PARTY, A)))
    messages = [write_genesis(Genesis(b"", name, 1, view=view)) for name in ("test/log", "test/kept")]
    first, second = (Note(Kind.GENESIS, 1, A, seq, 7, message) for seq, message in enumerate(messages))
    two = [first._replace(void=ERASED), second]
    item_id = ItemId.of_view(1, party=PARTY, key=pair.key)
    item = run([*two, said(2, B, 0, b"b")], item_id=item_id).item
    assert item is not None
    assert item.name == "test/log"
    assert run(two, item_id=item_id).item is None


@pytest.mark.parametrize("model", ["test/log", "test/kept", "test/any", "test/arrivals"])
@pytest.mark.parametrize("reason", [ERASED, NEVER])
@pytest.mark.parametrize("built", [False, True])
def test_every_order_of_arrival_gives_the_same_bytes_and_verdicts(model: str, reason: str, built: bool) -> None:
    notes = [
        genesis(model, void=reason),
        said(2, A, 1, b"a"),
        said(3, A, 2, b"!"),
        said(3, B, 0, b"b", void="" if built else PAST_CUT),
        changed(4, C, 0, Change(parent=THIRD), void=PAST_CUT),
        changed(5, A, 3, Change(deleted=True)),
    ]
    wanted = whole(notes)
    assert (wanted.item is not None) == built
    assert wanted.state is not None
    data = item_codec.snapshot(wanted.state)
    for order in itertools.permutations(notes):
        state, verdicts = one_by_one(order)
        assert state is not None
        assert item_codec.snapshot(state) == data
        assert verdicts == {stamp: said for stamp, said in wanted.verdicts.items() if said}
    assert item_codec.snapshot(item_codec.restore(data, MODELS)) == data


# -- epochs


def at_epoch(notes: Sequence[Note], base: bytes | None = None) -> bytes | None:
    return fold_epoch(PARTY, item_in(notes, base), base, sorted(notes, key=lambda note: note.stamp), MODELS, ALL)[0]


@pytest.mark.parametrize("reason", [ERASED, PAST_CUT, LOST_RIGHT])
def test_an_epoch_keeps_a_hidden_item_and_a_later_message_shows_all_of_it(reason: str) -> None:
    mine = [genesis(void=reason, parent=OTHER), said(2, A, 1, b"a")]
    base = at_epoch(mine)
    assert base is not None
    about = item_codec.summary(base)
    assert (about.hidden, about.is_dying, about.is_deleted, about.parent) == (True, True, False, OTHER)
    assert whole([said(4, A, 2, b"more")], base).item is None
    late = said(2, B, 0, b"b")
    built = whole([late], base)
    assert built.item is not None
    assert (built.item.value, built.verdicts) == ([b"a", b"b"], {})
    state, verdicts = one_by_one([said(4, A, 2, b"more"), late], base)
    assert state is not None
    assert (state.value, verdicts) == ([b"a", b"b", b"more"], {})
    shown = at_epoch([late], base)
    assert shown is not None
    assert not item_codec.summary(shown).is_dying
    assert at_epoch([], base) == base
    assert at_epoch([said(4, A, 2, b"more")], base) == at_epoch([*mine, said(4, A, 2, b"more")])


def test_an_epoch_does_not_keep_a_genesis_that_never_was_right() -> None:
    assert at_epoch([genesis(void=NEVER), said(2, A, 1, b"a")]) is None
    kept = at_epoch([genesis(void=NEVER), said(2, B, 0, b"b")])
    assert kept is not None
    assert not item_codec.summary(kept).hidden


def test_what_an_epoch_holds_is_final_also_of_an_item_with_a_void_genesis() -> None:
    base = at_epoch([genesis(void=ERASED), said(2, B, 0, b"b")])
    assert base is not None
    again = whole([genesis(seq=1), said(4, A, 2, b"a")], base)
    assert again.item is not None
    assert again.item.value == [b"b", b"a"]


def test_a_hidden_object_has_its_metadata_and_state_in_the_snapshot() -> None:
    model = ObjectModel()
    words = said(2, A, 1, model.set(model.initial(), "title", "Milk"))
    base = at_epoch([genesis("antiphon/object", void=ERASED), words])
    assert base is not None
    mine = said(5, B, 0, model.set(model.initial(), "colour", "red"))
    shown = whole([mine], base).item
    assert shown is not None
    assert shown.value == {"title": "Milk", "colour": "red"}
    assert whole([words], None).verdicts == {words.stamp: NO_ITEM}
