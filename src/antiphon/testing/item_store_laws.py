"""The laws of an item store, for any adapter: `run_item_store_tests(open_store)` checks an adapter.

>>> from antiphon.party.store.item_store import ItemStore
>>> len(run_item_store_tests(lambda: ItemStore(None, bytes(32)), durable=False))
6
"""

from __future__ import annotations

from collections.abc import Callable

from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.party.engine.ports import ItemRow, Items, LaneState, Posting, Refused, Save, Void
from antiphon.party.engine.postings import encode_postings

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))
FEED = b"f" * 32
STAMP = Stamp(5, FEED, 4)


def _runs(postings: list[Posting]) -> bytes:
    return encode_postings([postings])[0]


def _lane(position: int) -> LaneState:
    return LaneState(FEED, 1, position, 9, b"h" * 32, "", Sightings([(0, {b"c" * 32: 3})]), [Void(1, 2, "why")])


def _save(position: int) -> Save:
    return Save(
        rows=[ItemRow(A, b"state of a", "test/a", 1), ItemRow(B, b"b", "test/b", 2, A, True, True), ItemRow(C, None)],
        postings=[(A, _runs([Posting(1, 0, 3)])), (C, _runs([Posting(1, 7, 8)]))],
        verdicts=[(STAMP, A, "refused"), (STAMP._replace(seq=6), C, "no genesis")],
        lanes=[_lane(position)],
    )


def _put(store: Items, save: Save) -> None:
    with store.saving() as put:
        put(save)


def what_is_saved_is_there(store: Items) -> None:
    """Saved states, positions, postings and refusals can be read."""
    _put(store, _save(8))
    assert store.load([A, B, C, b"x" * 16]) == {A: b"state of a", B: b"b", C: b""}
    assert store.lanes() == [_lane(8)]
    assert store.postings(A) == [Posting(1, 0, 3)]
    assert store.refused(10) == [Refused(FEED, 4, A, "refused"), Refused(FEED, 6, C, "no genesis")]
    assert store.refused_count() == 2
    assert store.refused_for("refused", 10) == [Refused(FEED, 4, A, "refused")]


def items_are_listed_by_id(store: Items) -> None:
    """Items are listed and counted in the order of ids; ids without a genesis are not."""
    _put(store, _save(8))
    assert list(store.ids()) == [A, B]
    assert list(store.ids("test/b")) == [B]
    assert store.opaque() == [(B, "test/b", 2)]
    assert store.count() == 2


def a_later_save_adds(store: Items) -> None:
    """A later save replaces states, adds postings, and takes back refusals."""
    _put(store, _save(8))
    _put(
        store,
        Save(rows=[ItemRow(A, b"new", "test/a", 1)], postings=[(A, _runs([Posting(1, 9, 10)]))], lanes=[_lane(10)]),
    )
    _put(store, Save(verdicts=[(STAMP, A, "")]))
    assert store.load([A]) == {A: b"new"}
    assert store.postings(A) == [Posting(1, 0, 3), Posting(1, 9, 10)]
    assert store.refused_count() == 1
    assert store.lanes()[0].position == 10


def all_or_nothing(store: Items) -> None:
    """A transaction that fails leaves nothing behind."""
    _put(store, _save(8))
    try:
        with store.saving() as put:
            put(Save(rows=[ItemRow(A, b"new", "test/a", 1)], lanes=[_lane(20)]))
            raise KeyError
    except KeyError:
        pass
    assert store.load([A]) == {A: b"state of a"}
    assert store.lanes()[0].position == 8


def forgetting_is_part_of_a_transaction(store: Items) -> None:
    """Readers no longer find a forgotten item; later they find only data that was saved after that."""
    _put(store, _save(8))
    store.forget(A)
    assert store.load([A]) == {}
    assert store.postings(A) == []
    _put(store, Save(rows=[ItemRow(A, b"anew", "test/a", 1)], postings=[(A, _runs([Posting(1, 1, 2)]))]))
    assert store.load([A]) == {A: b"anew"}
    assert store.postings(A) == [Posting(1, 1, 2)]
    assert store.refused_for("refused", 10) == []


def clearing_leaves_nothing(store: Items) -> None:
    """A cleared store is as new."""
    _put(store, _save(8))
    store.clear()
    assert (store.lanes(), store.count(), store.refused_count(), store.load([A])) == ([], 0, 0, {})


LAWS: tuple[Callable[[Items], None], ...] = (
    what_is_saved_is_there,
    items_are_listed_by_id,
    a_later_save_adds,
    all_or_nothing,
    forgetting_is_part_of_a_transaction,
    clearing_leaves_nothing,
)


def run_item_store_tests(open_store: Callable[[], Items], *, durable: bool = True) -> tuple[str, ...]:
    """Check every law on a cleared store; with `durable`, also that a reopened store still has everything."""
    for law in LAWS:
        store = open_store()
        store.clear()
        try:
            law(store)
        except AssertionError as error:
            raise AssertionError(f"{law.__doc__} {error}") from error
        finally:
            store.close()
    if durable:
        store = open_store()
        store.clear()
        _put(store, _save(8))
        store.close()
        again = open_store()
        assert again.load([A]) == {A: b"state of a"}, "A store that is opened again has what was saved."
        assert again.lanes() == [_lane(8)], "A store that is opened again has the positions that were saved."
        again.close()
    return tuple((law.__doc__ or "").strip() for law in LAWS)
