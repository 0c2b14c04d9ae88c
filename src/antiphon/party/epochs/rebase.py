"""A party comes to stand on an epoch: by changing what the epoch made other, or by beginning at its snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, InvalidInput, MissingBlob
from antiphon.model import item_codec
from antiphon.model.fold import keeps_tail
from antiphon.party.engine.cache import Entry
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.gc_pause import uncollected
from antiphon.party.engine.ports import Authority, ItemRow, Items, LaneState, Mark, Save
from antiphon.party.engine.row_cache import row_of
from antiphon.party.epochs.snapshot_fold import EpochSnapshot, judged_differently
from antiphon.snapshot.blobs import Blobs

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor


ROWS_BESIDE = 250  # at once: a writer waits for no more
#: Blobs that are not here, have changed on the disk, or are no snapshot.
UNUSABLE = (MissingBlob, DamagedBlob, InvalidInput)


class ChangesSince(NamedTuple):
    """What came since a snapshot was computed."""

    positions: dict[bytes, int]  # as far as was looked
    items: set[bytes]  # with geneses and changes of access, which decide judged_differently about what is in a base


def changes_since(party: PartyProcessor, made: EpochSnapshot) -> ChangesSince:
    """Look for most of it before the lock is held: then writers wait only for what comes meanwhile."""
    party.save()
    with party.locked() as engine:
        positions = {feed: lane.state.position for feed, lane in engine.delivery.lanes.items()}
    return ChangesSince(positions, _decisive(engine, made.positions, positions))


def _decisive(engine: Engine, since: Mapping[bytes, int], positions: Mapping[bytes, int]) -> set[bytes]:
    found: set[bytes] = set()
    for feed, position in positions.items():
        if since.get(feed, 0) < position:
            found |= engine.items_in(feed, since.get(feed, 0), position, decisive=True)
    return found


def rebase(engine: Engine, base: EpochBase, made: EpochSnapshot, known: ChangesSince) -> None:
    """Stand on the snapshot that was computed here. Everything in its cut was delivered, so few items change."""
    engine.save()
    stale = set(made.stale) | known.items
    for feed, cut in base.feeds.items():
        lane = engine.delivery.lanes.get(feed)
        if lane is not None:  # what became void, or counts again, since the snapshot was computed
            for start, stop in judged_differently(lane.state.voids, made.voids.get(feed, ()), cut.length):
                stale |= engine.items_in(feed, max(start, lane.state.base), stop)
        engine.delivery.rebase(feed, cut)
    positions = {feed: lane.state.position for feed, lane in engine.delivery.lanes.items()}
    stale |= _decisive(engine, known.positions, positions)
    engine.base = base
    with engine.saving() as put:
        gone = [item for item in made.gone if not _outside(engine, item)]
        for item in gone:
            engine.cache.drop(item)
        put(Save(gone=gone, base=Mark(base.number, base.cid, engine.whole)))
        engine.refold_into(put, stale.union(made.gone).difference(gone))
    engine.delivery.rebased()
    engine.changed(stale.union(made.gone))


def _outside(engine: Engine, item: bytes) -> bool:
    """Whether there are messages to an item beyond the cut: then they are listed as refused, and it keeps its row."""
    entry = engine.cache.get(item)
    return bool(engine.outside(item, entry.postings if entry else []))


def start_at(items: Items, base: EpochBase) -> None:
    """Begin an empty item store at a snapshot: lanes go on after its cut, and items are read when asked for."""
    with items.saving() as put:
        put(Save(lanes=lanes_after(base), base=Mark(base.number, base.cid, False)))


def lanes_after(base: EpochBase) -> list[LaneState]:
    """The lanes of a party that stands on a snapshot, before anything outside its cut is delivered."""
    return [
        LaneState(
            feed,
            number,
            position=cut.length,
            lamport=cut.lamport,
            hash=cut.hash,
            segments=[(cut.length, dict(cut.control))] if cut.control else [],
            base=cut.length,
            base_lamport=cut.lamport,
        )
        for number, (feed, cut) in enumerate(sorted(base.feeds.items()), start=1)
    ]


class ChosenBase(NamedTuple):
    """What an item store stands on, and why it was put aside for that, if it was."""

    base: EpochBase | None
    why_rebuilt: str = ""


def choose_base(items: Items, authority: Authority, blobs: Blobs, party: bytes) -> ChosenBase:
    """The snapshot that an item store stands on. An empty one begins at the last final epoch, if that is here.

    One whose snapshot cannot be read is emptied: nothing could be fetched through a party that does not open.
    """
    why = ""
    try:
        mark = items.base()
        if mark is not None or items.lanes():
            return ChosenBase(EpochBase.of(mark, blobs, party))
    except UNUSABLE as error:
        why = f"the snapshot that its items stand on cannot be read: {error}"
        items.clear()
    authority.refresh()
    epoch = authority.final_epoch()
    if epoch is not None:
        with suppress(*UNUSABLE):  # the feeds have it, or it is to be fetched; `Epochs` says so
            base = EpochBase.load(Cid(epoch.snapshot), blobs, party=party, number=epoch.number)
            if not base.contradicts(epoch):
                start_at(items, base)
                return ChosenBase(base, why)
    return ChosenBase(None, why)


def hydrate(engine: Engine) -> None:
    """Give every item of the base a row, as whoever lists or queries all of them needs it."""
    base = _to_hydrate(engine)
    if base is None:
        return
    waiting: set[bytes] = set()
    items = base.all()
    while some := list(islice(items, ROWS_AT_ONCE)):  # a blob may be missing: then that much is done, and no harm
        _give_rows(engine, some, waiting)
    _hydrated(engine, base, waiting)


def hydrate_in_steps(party: PartyProcessor, tick: Callable[[], None] = lambda: None) -> None:
    """The same, some items at a time: writers go on meanwhile. Not to be called with the party's lock.

    `tick` is called again and again, and may raise to stop it; what is done then need not be done again.
    """
    with party.locked() as engine:
        base = _to_hydrate(engine)
    if base is None:
        return
    waiting: set[bytes] = set()
    items = base.all()  # read without the lock, so that whoever waits for it gets it
    while some := list(islice(items, ROWS_BESIDE)):
        tick()
        with party.locked() as now:
            if now is not engine or _to_hydrate(now) is not base:
                return  # it stands on something else by now, or somebody has done it
            _give_rows(engine, some, waiting)
    with party.locked() as now:
        if now is engine and _to_hydrate(now) is base:
            _hydrated(engine, base, waiting)


def _to_hydrate(engine: Engine) -> EpochBase | None:
    """The base, if it has items without rows. Where one view is followed, what is taken up has its row."""
    return None if engine.whole or engine.scope.follows is not None else engine.base


def _give_rows(engine: Engine, some: list[tuple[bytes, bytes]], waiting: set[bytes]) -> None:
    with uncollected():
        rows = list(_rows(engine, some, waiting))
        with engine.saving() as put:
            put(Save(rows=rows))


def _hydrated(engine: Engine, base: EpochBase, waiting: set[bytes]) -> None:
    waiting |= set(engine.items.orphans())  # messages to them may have come before it was known what the base has
    with engine.saving() as put:
        put(Save(base=Mark(base.number, base.cid, True)))
    engine.whole = True
    engine.refold_all(waiting)


def _rows(engine: Engine, some: list[tuple[bytes, bytes]], waiting: set[bytes]) -> Iterator[ItemRow]:
    known = engine.items.load([item for item, _ in some])
    for item, data in some:
        entry = engine.cache.get(item)
        if known.get(item) == b"" or (entry is not None and entry.item is None):
            waiting.add(item)
        elif item not in known and item not in engine.cache.dirty:
            yield _plain_row(engine, item, data) or _row(engine, item, data)


def _row(engine: Engine, item: bytes, data: bytes) -> ItemRow:
    return row_of(Entry(item, item_codec.restore(data, engine.models)), engine.items.index)


def _plain_row(engine: Engine, item: bytes, data: bytes) -> ItemRow | None:
    """The row without the state, for most items: nobody indexes them, and their bytes are those that a row has."""
    if engine.items.index is not None:
        return None
    name, version, codec, raw, deleted, parent, guarded = item_codec.about(data)
    model = engine.models.find(name, version)
    if model is None or model.codec != codec or raw or keeps_tail(model):
        return None
    return ItemRow(item, item_codec.record_of(data), name, version, parent, deleted, False, guarded)
