"""Move a party onto an epoch: rebase running states, or start an empty item store at the epoch's snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, InvalidInput, MissingBlob
from antiphon.core.sightings import Sightings
from antiphon.model import item_codec
from antiphon.model.fold import keeps_tail
from antiphon.party.engine.authors import Part, differing, touched
from antiphon.party.engine.cache import Entry
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.gc_pause import gc_paused
from antiphon.party.engine.ports import Authority, BaseMark, ItemRow, Items, LaneState, Save
from antiphon.party.engine.row_cache import row_of
from antiphon.party.epochs.snapshot_fold import EpochSnapshot, judged_differently
from antiphon.snapshot.blobs import Blobs

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor


ROWS_PER_STEP = 250  # rows made under the lock at once: the longest wait of a writer
#: Errors of a snapshot whose blobs are missing, damaged, or no snapshot.
UNUSABLE = (MissingBlob, DamagedBlob, InvalidInput)


class ChangesSince(NamedTuple):
    """Messages that were delivered after a snapshot was computed, as far as they matter to a rebase."""

    positions: dict[bytes, int]  # how far each feed was read
    items: set[bytes]  # items with new geneses or access changes, which are judged differently on the new base


def changes_since(party: PartyProcessor, made: EpochSnapshot) -> ChangesSince:
    """Find most of the changes without the lock, so that writers wait only for messages that arrive meanwhile."""
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
    """Move the engine onto a snapshot that was computed here. Its cut was all delivered, so few items change."""
    engine.save()
    stale = set(made.stale) | known.items
    parts: list[Part] = []  # messages whose authors this device knows otherwise since the snapshot was computed
    for feed, cut in base.feeds.items():
        lane = engine.delivery.lanes.get(feed)
        if lane is not None:  # messages that became void, or valid again, since the snapshot was computed
            for start, stop in judged_differently(lane.state.voids, made.voids.get(feed, ()), cut.length):
                stale |= engine.items_in(feed, max(start, lane.state.base), stop)
            differ = differing(lane.state.authors, made.authors.get(feed, ()))
            parts += [(lane.state.number, start, stop) for start, stop in differ]
        engine.delivery.rebase(feed, cut)
    positions = {feed: lane.state.position for feed, lane in engine.delivery.lanes.items()}
    stale |= _decisive(engine, known.positions, positions)
    if parts:
        stale |= touched(parts, ((item, engine.saved.postings(item)) for item in engine.saved.guarded()))
    engine.base = base
    with engine.saving() as put:
        gone = [item for item in made.gone if not _outside(engine, item)]
        for item in gone:
            engine.cache.drop(item)
        put(Save(gone=gone, base=BaseMark(base.number, base.cid, engine.whole)))
        engine.refold_into(put, stale.union(made.gone).difference(gone))
    engine.delivery.rebased()
    engine.changed(stale.union(made.gone))


def _outside(engine: Engine, item: bytes) -> bool:
    """True if an item has messages beyond the cut: then it keeps its row, and they are listed as refused."""
    entry = engine.cache.get(item)
    return bool(engine.outside(item, entry.postings if entry else []))


def start_at(items: Items, base: EpochBase) -> None:
    """Start an empty item store at a snapshot: lanes continue after its cut, and items are read when opened."""
    with items.saving() as put:
        put(Save(lanes=lanes_after(base), base=BaseMark(base.number, base.cid, False)))


def lanes_after(base: EpochBase) -> list[LaneState]:
    """Return the lanes of a party at a snapshot, before any message outside its cut is delivered."""
    return [
        LaneState(
            feed,
            number,
            position=cut.length,
            lamport=cut.lamport,
            hash=cut.hash,
            segments=Sightings([(cut.length, cut.control)]),
            base=cut.length,
            base_lamport=cut.lamport,
        )
        for number, (feed, cut) in enumerate(sorted(base.feeds.items()), start=1)
    ]


class ChosenBase(NamedTuple):
    """The base of an item store, and why the store was emptied, if it was."""

    base: EpochBase | None
    why_rebuilt: str = ""


def choose_base(items: Items, authority: Authority, blobs: Blobs, party: bytes, *, begun: bool) -> ChosenBase:
    """Return the base of an item store. An empty store starts at the last final epoch whose snapshot is here.

    It has `begun` if it has lanes.

    That may be an earlier one than the last: feeds may be pruned up to it, and blobs of the last not fetched yet.
    A store whose base cannot be read is emptied: the party must open, because blobs are fetched through an open party.
    """
    why = ""
    try:
        mark = items.base()
        if mark is not None or begun:
            return ChosenBase(EpochBase.of(mark, blobs, party))
    except UNUSABLE as error:
        why = f"the snapshot that its items are based on cannot be read: {error}"
        items.clear()
    authority.refresh()
    base = last_base(authority, blobs, party)
    if base is not None:  # else fold the feeds; `Epochs.waits_for` says if blobs must be fetched
        start_at(items, base)
    return ChosenBase(base, why)


def last_base(authority: Authority, blobs: Blobs, party: bytes) -> EpochBase | None:
    """Return the last final epoch that is trusted and whose snapshot is here; None if there is none."""
    for epoch in reversed(authority.final_epochs()):
        with suppress(*UNUSABLE):
            base = EpochBase.load(Cid(epoch.snapshot), blobs, party=party, number=epoch.number)
            if not base.contradicts(epoch) and authority.trusts(epoch):
                return base
    return None


def hydrate(engine: Engine) -> None:
    """Give every item of the base a row in the item store, as listing and queries need."""
    base = _to_hydrate(engine)
    if base is None:
        return
    waiting: set[bytes] = set()
    items = base.all()
    while some := list(islice(items, ROWS_AT_ONCE)):  # if a blob is missing, the rows so far are kept
        _give_rows(engine, some, waiting)
    _hydrated(engine, base, waiting)


def hydrate_in_steps(party: PartyProcessor, tick: Callable[[], None] = lambda: None) -> None:
    """Hydrate some items at a time, so that writers get the lock in between. Not to be called with the party's lock.

    `tick` is called before each step, and may raise to stop; a later call continues from the rows made so far.
    """
    with party.locked() as engine:
        base = _to_hydrate(engine)
    if base is None:
        return
    waiting: set[bytes] = set()
    items = base.all()  # blobs are read without the lock
    while some := list(islice(items, ROWS_PER_STEP)):
        tick()
        with party.locked() as now:
            if now is not engine or _to_hydrate(now) is not base:
                return  # the base has changed, or another thread has finished it
            _give_rows(engine, some, waiting)
    with party.locked() as now:
        if now is engine and _to_hydrate(now) is base:
            _hydrated(engine, base, waiting)


def _to_hydrate(engine: Engine) -> EpochBase | None:
    """The base, if it has items without rows. If one view is held, each ready item has its row already."""
    return None if engine.whole or engine.scope.ready_items is not None else engine.base


def _give_rows(engine: Engine, some: list[tuple[bytes, bytes]], waiting: set[bytes]) -> None:
    with gc_paused():
        rows = list(_rows(engine, some, waiting))
        with engine.saving() as put:
            put(Save(rows=rows))


def _hydrated(engine: Engine, base: EpochBase, waiting: set[bytes]) -> None:
    waiting |= set(engine.items.orphans())  # their messages may have come before their base was read
    with engine.saving() as put:
        put(Save(base=BaseMark(base.number, base.cid, True)))
    engine.whole = True
    engine.refold_all(waiting)


def _rows(engine: Engine, some: list[tuple[bytes, bytes]], waiting: set[bytes]) -> Iterator[ItemRow]:
    known = engine.items.load([item for item, _ in some])
    for item, data in some:
        entry = engine.cache.get(item)
        if known.get(item) == b"" or (entry is not None and entry.state is None):
            waiting.add(item)
        elif item not in known and item not in engine.cache.dirty:
            row = _plain_row(engine, item, data)
            yield row or row_of(Entry(item, item_codec.restore(data, engine.models)), engine.items.index)


def _plain_row(engine: Engine, item: bytes, data: bytes) -> ItemRow | None:
    """Make a row without decoding the state: possible without an index, if the bytes are already those of a row."""
    if engine.items.index is not None:
        return None
    about = item_codec.summary(data)
    model = engine.models.find(about.name, about.version)
    if model is None or model.codec != about.codec or about.raw or about.hidden or keeps_tail(model):
        return None
    record = item_codec.record_of(data)
    return ItemRow(
        item, record, about.name, about.version, about.parent, about.is_deleted, opaque=False, guarded=about.guarded
    )
