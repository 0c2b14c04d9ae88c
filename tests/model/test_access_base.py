"""Items with access lists that stand on an epoch: changes of the list bind what lies outside the cut, in any order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget
from tests.model.access_histories import MODELS, NAMES, PARTY, History, author_of, live, shown, whole
from tests.model.item_messages import (
    ITEM,
    MODELS as ITEM_MODELS,
    PARTY as PARTY_OF_ITEMS,
    A,
    B,
    C,
    changed,
    genesis,
    said,
)

from antiphon.core.stamp import Stamp
from antiphon.model import item_codec
from antiphon.model.access import EVERYONE, KEYS_MAX, NOT_NAMED, Access, Author
from antiphon.model.epoch_fold import fold_epoch
from antiphon.model.fold import fold
from antiphon.model.message import Change, Note


def epoch(history: History, base: bytes | None, notes: list[Note]) -> bytes | None:
    ordered = sorted(notes, key=lambda note: note.stamp)
    return fold_epoch(PARTY, history.item, base, ordered, MODELS, MODELS.keys, author_of)[0]


@pytest.mark.slow
@settings(max_examples=budget(120, 5_000))
@given(seed=st.integers(0, 1 << 32), model=st.sampled_from((*NAMES[:5], "system")), steps=st.integers(1, 40))
def test_any_causal_order_on_a_base_gives_the_fold_of_the_total_order(seed: int, model: str, steps: int) -> None:
    history = History(seed, steps, model)
    order = history.causal_order()
    if not order:
        return
    first, second = sorted(history.chance.randrange(len(order) + 1) for _ in range(2))
    base = epoch(history, epoch(history, None, order[:first]), order[first:second])
    if not (inside := set(order[:second])) and model != "system":
        assert base is None
    wanted, refused = whole(history, order[second:], base)
    for _ in range(2):
        tail = [note for note in history.causal_order() if note not in inside]
        item, verdicts = live(history, tail, base)
        if not tail and item is None:
            continue  # nobody has written to the system item
        assert shown(item) == shown(wanted)
        assert verdicts == refused


def test_a_revocation_after_an_epoch_takes_nothing_from_before_it() -> None:
    """Given a word of Bob's in an epoch, when Alice closes the item with a cut before it, then it stays."""
    inside = [genesis(), said(2, B, 0, b"stays")]
    base, _ = fold_epoch(PARTY_OF_ITEMS, ITEM, None, inside, ITEM_MODELS, ITEM_MODELS.keys)
    assert base is not None
    closing = changed(3, A, 1, Change(access=Access((), (EVERYONE,), ((A, 9),))))
    folded = fold(PARTY_OF_ITEMS, ITEM, item_codec.restore(base, ITEM_MODELS), [said(2, C, 0, b"goes")], ITEM_MODELS)
    assert folded.item is not None

    assert fold(PARTY_OF_ITEMS, ITEM, folded.item, [closing], ITEM_MODELS).late
    again = item_codec.restore(base, ITEM_MODELS)
    folded = fold(PARTY_OF_ITEMS, ITEM, again, [said(2, C, 0, b"goes"), closing], ITEM_MODELS, whole=True)

    assert folded.item is not None
    assert folded.item.value == [b"stays"]
    assert folded.verdicts == {Stamp(2, C, 0): NOT_NAMED}
    assert folded.item.metadata["access"] == [A]


def test_the_creator_is_known_after_an_epoch_by_identity_alone() -> None:
    """Whoever joins after pruning cannot tell in which groups the creator was at the genesis; nobody needs to."""

    def authors(feed: bytes, seq: int) -> Author:
        return Author(feed, (b"g" * 32,) if seq == 0 else (), owner=seq == 0)

    notes = [genesis(), changed(3, A, 1, Change(access=Access((B,), (), ())))]
    folded = fold(PARTY_OF_ITEMS, ITEM, None, notes, ITEM_MODELS, authors)
    assert folded.item is not None
    assert folded.item.access is not None
    assert folded.item.access.creator == Author(A)


def test_what_a_feed_may_change_is_counted_across_epochs() -> None:
    """Given changes by Bob, who is shut out, that use up his room, no more are kept: live, afresh, or on a base."""
    cuts = tuple((number.to_bytes(32, "big"), 1) for number in range(KEYS_MAX // 2))
    closing = changed(2, A, 1, Change(access=Access((), (EVERYONE,), ((A, 9),))))
    notes = [genesis(), closing, *(changed(3 + n, B, n, Change(access=Access((B,), (), cuts))) for n in range(3))]
    stamps = [note.stamp for note in notes[2:]]
    kept: set[tuple[Stamp, ...]] = set()
    for inside in (0, 3, 4, 5):
        base, found = None, dict[Stamp, str]()
        if inside:
            base, found = fold_epoch(PARTY_OF_ITEMS, ITEM, None, notes[:inside], ITEM_MODELS, ITEM_MODELS.keys)
        for at_once in (False, True):
            item = None if base is None else item_codec.restore(base, ITEM_MODELS)
            folded = fold(PARTY_OF_ITEMS, ITEM, item, notes[inside:], ITEM_MODELS, whole=at_once)
            assert folded.item is not None
            assert folded.item.access is not None
            kept.add(tuple(act.stamp for act in folded.item.access))
            assert (found | folded.verdicts).keys() == set(stamps)
    assert kept == {(closing.stamp, *stamps[:2])}


def test_a_change_that_lets_one_in_the_base_count_judges_again_what_that_one_cuts() -> None:
    """Found by a soak: Bob's revocation is in the epoch, and Alice's grant, by which it counts, comes after it."""
    cuts = ((A, 9), (B, 9))
    inside = [genesis(), changed(10, B, 0, Change(access=Access((), (EVERYONE,), cuts)))]
    base, _ = fold_epoch(PARTY_OF_ITEMS, ITEM, None, inside, ITEM_MODELS, ITEM_MODELS.keys)
    assert base is not None
    word, grant = said(3, C, 0, b"word"), changed(5, A, 1, Change(access=Access((B,))))
    item = item_codec.restore(base, ITEM_MODELS)
    assert not fold(PARTY_OF_ITEMS, ITEM, item, [word], ITEM_MODELS).verdicts

    assert fold(PARTY_OF_ITEMS, ITEM, item, [grant], ITEM_MODELS).late

    again = item_codec.restore(base, ITEM_MODELS)
    folded = fold(PARTY_OF_ITEMS, ITEM, again, [word, grant], ITEM_MODELS, whole=True)
    assert folded.verdicts == {Stamp(3, C, 0): NOT_NAMED}


def test_a_change_that_ends_one_in_the_base_judges_again_what_that_one_cut() -> None:
    """Bob closed the item in the epoch; Alice takes that back by a cut, and what was refused for it counts."""
    granted = changed(2, A, 1, Change(access=Access((B,))))
    closed = changed(10, B, 0, Change(access=Access((), (EVERYONE,), ((A, 9), (B, 9)))))
    base, _ = fold_epoch(PARTY_OF_ITEMS, ITEM, None, [genesis(), granted, closed], ITEM_MODELS, ITEM_MODELS.keys)
    assert base is not None
    word = said(15, C, 0, b"word")
    ending = changed(20, A, 2, Change(access=Access((), (B,), ((A, 9), (C, 9)))))
    item = item_codec.restore(base, ITEM_MODELS)
    assert fold(PARTY_OF_ITEMS, ITEM, item, [word], ITEM_MODELS).verdicts == {Stamp(15, C, 0): NOT_NAMED}

    assert fold(PARTY_OF_ITEMS, ITEM, item, [ending], ITEM_MODELS).late

    again = item_codec.restore(base, ITEM_MODELS)
    folded = fold(PARTY_OF_ITEMS, ITEM, again, [word, ending], ITEM_MODELS, whole=True)
    assert not folded.verdicts
