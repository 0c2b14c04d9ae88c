"""The fold: an item's messages in any causal order, one state; each message that does not count, with its reason."""

from __future__ import annotations

import itertools
import random

import pytest
from tests.model.item_messages import (
    ALICE,
    ITEM,
    MODELS,
    NONCE,
    OTHER,
    PARTY,
    THIRD,
    A,
    B,
    C,
    changed,
    genesis,
    item_of,
    run,
    said,
    state_of,
)

from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model import item_codec, late_messages
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import NO_BODY, NO_ITEM, fold
from antiphon.model.message import Change, Genesis, Inception, Note, wrap, write_change, write_genesis
from antiphon.model.object.model import ObjectModel

# -- genesis (rule 5)


def test_an_item_begins_with_its_genesis() -> None:
    item = state_of([genesis(parent=OTHER, link=(OTHER, THIRD))])
    assert (item.name, item.version, item.genesis, item.created_ms) == ("test/log", 1, Stamp(1, A, 0), 77)
    assert (item.parent, item.link, item.is_deleted, item.value) == (OTHER, (OTHER, THIRD), False, [])


@pytest.mark.parametrize(
    "note", [genesis(lamport=2), genesis(feed=B)], ids=["the lamport is not in the id", "the hash is not in the id"]
)
def test_an_id_cannot_be_taken(note: Note) -> None:
    folded = run([note], item_id=ITEM)
    assert folded.item is None
    assert "this id is not that of the genesis" in folded.verdicts[note.stamp]


def test_an_id_has_one_model_one_parent_and_one_pair_of_ends() -> None:
    """Also if its writer signs two histories, with one nonce and one lamport."""
    notes = [genesis(), genesis("test/kept"), genesis(parent=OTHER), genesis(link=(OTHER, THIRD))]
    assert len({item_of(note) for note in notes}) == 4
    for note in notes[1:]:
        folded = run([note], item_id=ITEM)
        assert folded.item is None
        assert "this id is not that of the genesis" in folded.verdicts[note.stamp]


def test_a_lamport_that_no_id_can_hold_is_refused_and_crashes_nothing() -> None:
    folded = run([genesis(lamport=1 << 40)], item_id=ITEM)
    assert folded.item is None
    assert "does not fit" in folded.verdicts[Stamp(1 << 40, A, 0)]


def test_of_two_geneses_of_one_id_the_least_stamp_holds() -> None:
    """They can only be of one batch: the id holds the feed and the lamport."""
    folded = run([genesis(parent=OTHER), genesis(parent=OTHER, seq=1), said(2, B, 0, b"a")])
    assert folded.item is not None
    assert folded.item.genesis == Stamp(1, A, 0)
    assert list(folded.verdicts) == [Stamp(1, A, 1)]
    assert "the one with the least stamp holds" in folded.verdicts[Stamp(1, A, 1)]


def test_a_genesis_without_its_body_begins_nothing() -> None:
    folded = run([genesis()._replace(message=None)])
    assert (folded.item, folded.verdicts) == (None, {Stamp(1, A, 0): NO_BODY})


@pytest.mark.parametrize("message", [b"", b"\xff\xff", wrap(Kind.MUTATION, b"x"), write_change(Change(deleted=True))])
def test_a_genesis_that_is_none_is_refused(message: bytes) -> None:
    folded = run([genesis()._replace(message=message)])
    assert folded.item is None
    assert "body" in folded.verdicts[Stamp(1, A, 0)]


def test_a_message_older_than_the_genesis_never_counts() -> None:
    """An accomplice writes to an id before it is there. Arrived after the genesis, it must not count either."""
    early = Note(Kind.MUTATION, 1, bytes(32), 0, 0, wrap(Kind.MUTATION, b"early"))
    assert early.stamp < genesis().stamp
    after, before = run([genesis(), early]), run([early, genesis()])
    assert after.verdicts == before.verdicts == {early.stamp: NO_ITEM}
    assert after.item is not None
    assert before.item is not None
    assert not before.late
    assert item_codec.snapshot(after.item) == item_codec.snapshot(before.item)


def test_a_genesis_that_comes_after_what_should_follow_it_asks_for_a_fold_afresh() -> None:
    """The accomplice has a higher lamport: in the total order its message follows, so it counts in every order."""
    later = said(5, B, 0, b"later")
    assert run([later, genesis()]).late
    assert state_of(sorted([later, genesis()], key=lambda note: note.stamp)).value == [b"later"]


# -- changes


def test_parent_claims_are_kept_by_stamp_whatever_the_order() -> None:
    claims = [changed(n, feed, n, Change(parent=to)) for n, feed, to in ((3, A, OTHER), (3, B, THIRD), (5, A, b""))]
    wanted = item_codec.snapshot(state_of([genesis(parent=THIRD), *claims]))
    for order in itertools.permutations(claims):
        item = state_of([genesis(parent=THIRD), *order])
        assert [stamp for stamp, _ in item.parents] == [Stamp(1, A, 0), Stamp(3, A, 3), Stamp(3, B, 3), Stamp(5, A, 5)]
        assert item.parent == b""
        assert item_codec.snapshot(item) == wanted


def test_the_greatest_stamp_decides_whether_it_is_deleted() -> None:
    words = [changed(n, feed, n, Change(deleted=gone)) for n, feed, gone in ((2, A, True), (4, A, True), (4, B, False))]
    for order in itertools.permutations(words):
        item = state_of([genesis(), *order])
        assert (item.is_deleted, item.deleted) == (False, Stamp(4, B, 4))


def test_of_two_forks_the_least_stamp_holds() -> None:
    forks = [changed(2, B, 0, Change(forked_to=THIRD)), changed(2, A, 2, Change(forked_to=OTHER))]
    for order in itertools.permutations(forks):
        assert state_of([genesis(), *order]).forked_to == OTHER


@pytest.mark.parametrize("change", [Change(parent=ITEM), Change(forked_to=ITEM)])
def test_an_item_is_neither_its_own_parent_nor_its_own_fork(change: Change) -> None:
    folded = run([genesis(), changed(2, B, 0, change)])
    assert "itself" in folded.verdicts[Stamp(2, B, 0)] or "own parent" in folded.verdicts[Stamp(2, B, 0)]
    assert folded.item is not None
    assert (folded.item.parents, folded.item.forks) == ([], [])


def test_a_void_change_changes_nothing_and_is_listed() -> None:
    folded = run([genesis(), changed(2, B, 0, Change(deleted=True), void="revoked")])
    assert folded.item is not None
    assert not folded.item.is_deleted
    assert folded.verdicts == {Stamp(2, B, 0): "revoked"}


# -- metadata


def test_metadata_is_an_object_beside_the_state() -> None:
    model = ObjectModel()
    named = wrap(Kind.METADATA, model.set(model.initial(), "name", "Plan", feed=B))
    item = state_of([genesis(), Note(Kind.METADATA, 2, B, 0, 0, named), said(3, B, 1, b"a")])
    assert (item.metadata, item.value) == ({"name": "Plan"}, [b"a"])


def test_metadata_that_is_none_is_refused_and_leaves_no_trace() -> None:
    plain = state_of([genesis()])
    folded = run([genesis(), Note(Kind.METADATA, 2, B, 0, 0, wrap(Kind.METADATA, b"\xff\xff"))])
    assert folded.item is not None
    assert folded.item.metadata == {}
    assert item_codec.snapshot(folded.item) == item_codec.snapshot(plain)
    assert list(folded.verdicts) == [Stamp(2, B, 0)]


# -- what does not fit


@pytest.mark.parametrize(
    ("kind", "message", "reason"),
    [
        (Kind.MUTATION, write_change(Change(deleted=True)), "not what its header says"),
        (Kind.CHANGE, wrap(Kind.MUTATION, b"a"), "not what its header says"),
        (Kind.METADATA, wrap(Kind.MUTATION, b"a"), "not what its header says"),
        (Kind.MUTATION, b"\xff", "no message"),
        (Kind.CHANGE, b"\x1a\x00", "kind that this version does not know"),
        (Kind.MUTATION, None, NO_BODY),
        (Kind.CHANGE, None, NO_BODY),
        (Kind.CREDENTIAL, b"", "does not belong to an item"),
        (Kind.GENESIS, write_genesis(Genesis(NONCE, "test/log", 1)), "has its genesis already"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_rest_goes_on(kind: Kind, message: bytes | None, reason: str) -> None:
    folded = run([genesis(), Note(kind, 2, B, 0, 0, message), said(3, B, 1, b"still")])
    assert folded.item is not None
    assert folded.item.value == [b"still"]
    assert list(folded.verdicts) == [Stamp(2, B, 0)]
    assert reason in folded.verdicts[Stamp(2, B, 0)]


@pytest.mark.parametrize("over", [0, 1])
def test_a_length_that_goes_on_in_the_next_byte_is_no_length(over: int) -> None:
    # A message of 130 bytes whose one byte of length is 128: that byte says that another follows.
    text = b"x" * (119 + over)
    mutation = b"\x12%c\x0a\x01k\x1a%c\x2a%c%b" % (len(text) + 7, len(text) + 2, len(text), text)
    message = b"\x22%c%b" % (len(mutation), mutation)
    assert len(message) == 130 + over
    wrong = Note(Kind.MUTATION, 2, A, 1, 0, message)
    right = said(2, A, 1, mutation)

    assert run([genesis("antiphon/object"), wrong]).verdicts == {wrong.stamp: "its body is no message [item.encoding]"}
    assert run([genesis("antiphon/object"), right]).verdicts == {}


def test_an_error_in_a_models_code_is_a_verdict_and_no_crash() -> None:
    folded = run([genesis(), said(2, B, 0, b"crash"), said(3, B, 1, b"on")])
    assert folded.item is not None
    assert folded.item.value == [b"on"]
    assert "test/log 1 failed: ZeroDivisionError" in folded.verdicts[Stamp(2, B, 0)]


def test_an_unknown_model_is_kept_opaque_with_everything_that_is_the_systems() -> None:
    item = state_of([genesis("example/unheard"), said(2, B, 0, b"?"), changed(3, B, 1, Change(deleted=True))])
    assert (item.model, item.value, item.is_deleted, item.name) == (None, None, True, "example/unheard")
    assert item.frame[B] == Stamp(3, B, 1)


# -- ORDERED


def orders(count: int, seed: int) -> list[Note]:
    """Two feeds that know of each other's past only; a causal order that is not the total one."""
    notes = [said(2 + at, A, 1 + at, b"a%d" % at) for at in range(count)]
    notes += [said(2 + at, B, at, b"b%d" % at) for at in range(count)]
    chance = random.Random(seed)
    lanes = {feed: [note for note in notes if note.feed == feed] for feed in (A, B)}
    mixed = []
    while any(lanes.values()):
        mixed.append(lanes[chance.choice([feed for feed in lanes if lanes[feed]])].pop(0))
    return mixed


@pytest.mark.parametrize("name", ["test/log", "test/arrivals", "test/kept"])
@pytest.mark.parametrize("seed", range(4))
def test_a_late_message_rolls_back_and_replays(name: str, seed: int) -> None:
    notes = orders(30, seed)
    wanted = state_of([genesis(name), *sorted(notes, key=lambda note: note.stamp)])
    item = state_of([genesis(name)])
    for note in notes:
        assert not run([note], item).late
    assert item.value == wanted.value
    assert item_codec.snapshot(item) == item_codec.snapshot(wanted)


def test_a_model_that_is_not_canonical_is_fed_in_the_total_order() -> None:
    early, late = said(2, B, 0, b"early"), said(3, A, 1, b"late")
    assert state_of([genesis("test/arrivals"), late, early]).value == [b"early", b"late"]


def test_verdicts_change_with_what_comes_before() -> None:
    """`!` after `!` is refused; once a word stands between them, it counts after all."""
    folded = run([genesis(), said(2, A, 1, b"!"), said(5, A, 2, b"!")])
    assert folded.verdicts == {Stamp(5, A, 2): "one ! is enough [model.refused]"}
    folded = run([said(3, B, 0, b"well")], folded.item)
    assert folded.item is not None
    assert folded.item.value == [b"!", b"well", b"!"]
    assert folded.verdicts[Stamp(5, A, 2)] == ""
    folded = run([said(4, B, 1, b"!")], folded.item)
    assert folded.verdicts[Stamp(5, A, 2)] == "one ! is enough [model.refused]"


def test_a_void_message_stays_void_when_it_is_replayed() -> None:
    folded = run([genesis(), said(5, A, 1, b"void", void="revoked")])
    folded = run([said(3, B, 0, b"well")], folded.item)
    assert folded.item is not None
    assert folded.item.value == [b"well"]
    assert folded.verdicts[Stamp(5, A, 1)] == "revoked"


def test_checkpoints_bound_what_is_kept_and_a_message_before_them_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_messages, "CHECKPOINT_EVERY", 4)
    item = state_of([genesis()])
    for at in range(40):
        run([said(10 + at, A, 1 + at, b"%d" % at)], item)
    assert len(item.checkpoints) == 2
    assert len(item.tail) <= 8
    assert item.trimmed
    within = item.checkpoints[-1].stamp._replace(feed=B, seq=0)
    assert not run([Note(Kind.MUTATION, within.lamport, B, 0, 0, wrap(Kind.MUTATION, b"in"))], item).late
    assert item.value.count(b"in") == 1
    assert run([said(9, C, 0, b"too early")], item).late


@pytest.mark.parametrize("seed", range(3))
def test_checkpoints_do_not_show(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    notes = orders(40, seed)
    wanted = item_codec.snapshot(state_of([genesis(), *sorted(notes, key=lambda note: note.stamp)]))
    monkeypatch.setattr(late_messages, "CHECKPOINT_EVERY", 3)
    item, seen = state_of([genesis()]), [genesis()]
    for note in notes:
        seen.append(note)
        folded = run([note], item)
        item = state_of(sorted(seen, key=lambda old: old.stamp)) if folded.late else item
        item = item_codec.decode(item_codec.encode(item), MODELS)
    assert item_codec.snapshot(item) == wanted


# -- without a snapshot


def test_a_model_without_a_snapshot_is_the_list_of_its_messages() -> None:
    notes = [said(2, B, 0, b"b"), said(2, A, 1, b"a"), said(3, B, 1, b""), said(4, B, 2, b"void", void="no right")]
    wanted = item_codec.snapshot(state_of([genesis("test/any"), *notes]))
    for order in itertools.permutations(notes):
        folded = run([genesis("test/any"), *order])
        assert folded.item is not None
        assert folded.item.value == [b"a", b"b"]
        assert set(folded.verdicts) == {Stamp(3, B, 1), Stamp(4, B, 2)}
        assert item_codec.snapshot(folded.item) == wanted
    again = item_codec.restore(wanted, MODELS)
    assert (again.value, item_codec.snapshot(again)) == ([b"a", b"b"], wanted)


def test_a_genesis_under_itself_is_refused() -> None:
    """Of a view: any other id follows from the message, which cannot hold it."""
    pair = KeyPair.from_seed(bytes(32))
    item = ItemId.of_view(1, party=PARTY, key=pair.key)
    view = Inception(pair.key, pair.sign(Inception.statement(PARTY, ALICE)))
    message = write_genesis(Genesis(b"", "antiphon/object", 1, item, view=view))
    folded = fold(PARTY, item, None, [Note(Kind.GENESIS, 1, ALICE, 0, 1, message)], ModelFactory.standard())
    assert folded.item is None
    assert "own parent" in next(iter(folded.verdicts.values()))


def test_a_void_message_to_an_opaque_item_is_listed() -> None:
    genesis = Note(Kind.GENESIS, 1, ALICE, 0, 1, write_genesis(Genesis(bytes(16), "test/unheard", 1)))
    void = Note(Kind.MUTATION, 2, ALICE, 1, 1, wrap(Kind.MUTATION, b"x"), "no right")
    folded = fold(PARTY, item_of(genesis), None, [genesis, void], ModelFactory.standard())
    assert folded.verdicts == {void.stamp: "no right"}


@pytest.mark.parametrize("body", [b"", b"\x22", b"\x22\x05", b"\x22\x00"])
def test_a_body_too_short_for_anything_is_judged(body: bytes) -> None:
    genesis = Note(Kind.GENESIS, 1, ALICE, 0, 1, write_genesis(Genesis(bytes(16), "antiphon/object", 1)))
    note = Note(Kind.MUTATION, 2, ALICE, 1, 1, body)
    folded = fold(PARTY, item_of(genesis), None, [genesis, note], ModelFactory.standard())
    assert folded.verdicts[note.stamp]
