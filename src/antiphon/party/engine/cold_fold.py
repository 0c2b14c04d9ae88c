"""Fold of very many items at once, as in a rebuild from feeds. It bypasses the cache: no item stays in memory.

All of it is one transaction of the item store. With a second core, a forked process folds half of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from antiphon.core.stamp import Stamp
from antiphon.model.fold import NO_BODY, fold
from antiphon.party.engine.demux import Gathered, Groups, prefix
from antiphon.party.engine.forked_worker import ForkedWorker
from antiphon.party.engine.ports import ItemRow, Posting, Save
from antiphon.party.engine.postings import encode_postings
from antiphon.party.engine.row_cache import row_of

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine

ROWS_AT_ONCE = 1_000
SECOND_ITEMS_MIN = 5_000  # below that, starting a process costs more than it saves
_SECOND_SHARE = 0.54  # more than half, because the first process also writes everything

Put = Callable[[Save], None]


def fold_many(engine: Engine, gathered: Gathered, items: set[bytes]) -> None:
    """Fold gathered messages, item by item, into the item store."""
    ids = sorted(items)  # the key order of the store: neighbours share pages
    with engine.saving() as put:
        if len(ids) >= SECOND_ITEMS_MIN and ForkedWorker.possible():
            _settle_on_two(engine, gathered, ids, put)
        else:
            _settle(engine, gathered.groups(), put)
        engine.put_all(put)


def _settle_on_two(engine: Engine, gathered: Gathered, ids: list[bytes], put: Put) -> None:
    pivot = prefix(ids[int(len(ids) * (1 - _SECOND_SHARE))])
    apart = [item for item in ids if prefix(item) >= pivot and engine.cache.get(item) is None]
    records = engine.load(apart)
    second = ForkedWorker(lambda: _fold_apart(engine, apart, gathered.groups(start=pivot), records))
    _settle(engine, gathered.groups(stop=pivot), put)
    done = _take(engine, second.results(), put)
    if any(item not in done for item in ids if prefix(item) >= pivot):
        left = gathered.groups(start=pivot)
        _settle(engine, {item: notes for item, notes in left.items() if item not in done}, put)


def _settle(engine: Engine, groups: Groups, put: Put) -> None:
    ids = sorted(groups)
    for start in range(0, len(ids), ROWS_AT_ONCE):
        some = ids[start : start + ROWS_AT_ONCE]
        open_ = {item: entry for item in some if (entry := engine.cache.get(item)) is not None}
        records = engine.load([item for item in some if item not in open_])
        passing = []
        for item in some:
            entry = open_.get(item) or engine.entry_of(item, records.get(item))
            engine.fold_in(entry, groups.pop(item), keep=False)
            passing.append(entry)
        put(engine.save_of(passing, engine.drain_verdicts()))


def _fold_apart(engine: Engine, ids: list[bytes], groups: Groups, records: dict[bytes, bytes]) -> Iterator[Any]:
    """Fold items in the forked process. Items that need more than these messages are left to the parent."""
    for start in range(0, len(ids), ROWS_AT_ONCE):
        rows: list[Any] = []
        posted: list[list[Posting]] = []
        for item in ids[start : start + ROWS_AT_ONCE]:
            entry = engine.entry_of(item, records.get(item))
            if engine.scope.leaves_out(item) or (entry.state is None and not engine.whole):
                continue
            if (entry.state is None or entry.state.view is not None) and engine.authority.forked():
                continue  # its genesis may be beyond a fork, of a view also another one than before
            folded = fold(engine.party, item, entry.state, groups[item], engine.models, engine.author)
            if folded.late or (entry.orphaned and folded.state is not None):
                continue
            entry.put(folded.state)
            engine.post(entry, groups.pop(item))
            posted.append(entry.postings)
            verdicts = [(tuple(stamp), reason) for stamp, reason in folded.verdicts.items()]
            rows.append((tuple(row_of(entry, engine.items.index)), verdicts))
        yield rows, encode_postings(posted)


def _take(engine: Engine, parts: list[Any] | None, put: Put) -> set[bytes]:
    """Save the items that the forked process has folded. Return their ids."""
    done: set[bytes] = set()
    for rows, encoded in parts or ():
        save = Save()
        for (row, verdicts), postings in zip(rows, encoded, strict=True):
            kept = ItemRow(*row)
            done.add(kept.id)
            save.rows.append(kept)
            save.postings.append((kept.id, postings))
            save.verdicts += [(Stamp(*stamp), kept.id, reason) for stamp, reason in verdicts]
        engine.bodiless = engine.bodiless or any(reason == NO_BODY for _, _, reason in save.verdicts)
        put(save)
    return done
