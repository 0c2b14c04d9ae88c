"""`MarkColumns`: the marks of a text, in columns: a hostile mark of 19 bytes takes 70 here, and 700 as an object.

New rows come after all others. When somebody reads them, or when as many came as there were, they are settled: of rows
with the same name and the same two anchors the latest remains, and all are in the order of a snapshot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from antiphon.model.text.codec import Anchor, Mark
from antiphon.model.text.runs import OFFSET_BITS, OFFSET_MAX
from antiphon.model.word_table import Numbers, WordTable

Key = tuple[int, bytes, int, int]  # lamport, feed, seq, and the index of the mark in its message: the order of marks
_NEW_MIN = 1024  # new rows that need not be settled
_PORTION = 1024  # rows that are objects at once
_FORMS = "BHIQ"  # of columns: each begins with bytes, and becomes wider when a number is too large
_NAME, _VALUE, _SIZE, _ANCHORS = 0, 5, 6, 7  # columns; the anchors are the last six
_FEEDS = 2, 7, 10  # the columns that name feeds
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of a hash


class KeptMark(NamedTuple):
    """A stored mark. Marks are sorted by their stamps."""

    key: Key
    mark: Mark


class Row(NamedTuple):
    """The columns. A name or a feed is its number; feed 0 is no feed, and no value has size 0."""

    name: Any
    lamport: Any
    writer: Any
    seq: Any
    nth: Any
    value: Any  # where it begins among all values
    size: Any  # of the value
    start_feed: Any
    start_lamport: Any
    start_offset: Any  # twice, plus 1 if the anchor is after the element
    end_feed: Any
    end_lamport: Any
    end_offset: Any


class MarkColumns:
    """Marks, of which no two have the same name and the same two anchors."""

    __slots__ = ("_columns", "_feeds", "_names", "_settled", "_values")

    def __init__(self) -> None:
        self._columns = [array(_FORMS[0]) for _ in Row._fields]
        self._settled = 0  # rows from the first one on
        self._names = WordTable()
        self._feeds = WordTable([b""])
        self._values = bytearray()

    def __len__(self) -> int:
        self._settle()
        return self._settled

    def __bool__(self) -> bool:
        return len(self._columns[-1]) > 0

    def __iter__(self) -> Iterator[KeptMark]:
        """Yield all marks by name and stamp. Meanwhile, none may be added."""
        return self.some(0, len(self))

    def some(self, start: int, stop: int) -> Iterator[KeptMark]:
        """Yield the marks from one place to before another among those that are settled."""
        feeds, values = self._feeds, self._values
        for first in range(start, stop, _PORTION):
            names: dict[int, str] = {}
            rows = zip(*(column[first : min(first + _PORTION, stop)] for column in self._columns), strict=True)
            for name, lamport, writer, seq, nth, at, size, *ends in rows:
                value = bytes(values[at : at + size]) if size else None
                if name not in names:
                    names[name] = self._names[name].decode()
                mark = Mark(names[name], value, _anchor(feeds, *ends[:3]), _anchor(feeds, *ends[3:]))
                yield KeptMark((lamport, feeds[writer], seq, nth), mark)

    def add(self, kept: KeptMark) -> None:
        """Add a mark, unless a later one has the same name and anchors."""
        (lamport, feed, seq, nth), (name, value, start, end) = kept
        feeds = self._feeds
        row = Row(
            name=self._names.number(name.encode()),
            lamport=lamport,
            writer=feeds.number(feed),
            seq=seq,
            nth=nth,
            value=len(self._values),
            size=0 if value is None else len(value),
            start_feed=feeds.number(start.feed),
            start_lamport=start.clock >> OFFSET_BITS,
            start_offset=(start.clock & OFFSET_MAX) << 1 | start.after,
            end_feed=feeds.number(end.feed),
            end_lamport=end.clock >> OFFSET_BITS,
            end_offset=(end.clock & OFFSET_MAX) << 1 | end.after,
        )
        if value is not None:
            self._values += value
        try:
            for column, number in zip(self._columns, row, strict=True):
                column.append(number)
        except OverflowError:
            self._widen(row)
        if len(self._columns[-1]) > 2 * self._settled + _NEW_MIN:
            self._settle()

    def _widen(self, row: Row) -> None:
        """Add the rest of a row, of which a number was too large for its column."""
        count = len(self._columns[-1]) + 1  # with this row, of which the last number is not added yet
        for nth, number in enumerate(row):
            column = self._columns[nth]
            if len(column) < count:
                self._columns[nth] = column = array(max(_form(number), column.typecode, key=_FORMS.index), column)
                column.append(number)

    def settled(self) -> tuple[Row, WordTable, WordTable, Numbers]:
        """Return the columns by name and stamp, and names, feeds and the bytes of values. None may be added to them."""
        self._settle()
        return self._views(), self._names, self._feeds, np.frombuffer(self._values, np.uint8)

    def feeds(self) -> set[bytes]:
        """Return the feeds that the marks name."""
        self._settle()
        columns, used = self._views(), np.zeros(len(self._feeds), bool)
        for column in (columns.writer, columns.start_feed, columns.end_feed):
            used[column] = True
        used[0] = False
        return {feed for feed, found in zip(self._feeds, used.tolist(), strict=True) if found}

    def _views(self) -> Row:
        return Row(*(np.frombuffer(column, column.typecode) for column in self._columns))

    def _settle(self) -> None:
        """Drop rows that later ones replace, and sort the others."""
        if len(self._columns[-1]) == self._settled:
            return
        self._settle_words(self._names, (_NAME,))
        self._settle_words(self._feeds, _FEEDS, always=[0])
        columns = self._views()
        stamps = (columns.nth, columns.seq, columns.writer, columns.lamport)
        replaced = _replaced(columns, stamps)
        order = np.lexsort((*stamps, columns.name, replaced))
        count = len(order) - int(np.count_nonzero(replaced))
        del stamps, replaced
        for view in columns:  # in place: there may be very many
            view[:] = view[order]
        del columns, view
        for column in self._columns:
            del column[count:]
        self._settled = count
        if len(self._values) > 2 * sum(self._columns[_SIZE]):
            self._drop_values()

    def _settle_words(self, table: WordTable, places: tuple[int, ...], always: Sequence[int] = ()) -> None:
        """Drop words that no mark names any more, and give the others numbers in their order."""
        numbers = table.settle([np.frombuffer(column, column.typecode) for column in self._columns_at(places)], always)
        for place, column in zip(places, self._columns_at(places), strict=True):
            found = numbers[np.frombuffer(column, column.typecode)]
            form = max(_form(int(found.max())), column.typecode, key=_FORMS.index)
            self._columns[place] = array(form, found.astype(form).tobytes())

    def _columns_at(self, places: tuple[int, ...]) -> list[array[int]]:
        return [self._columns[place] for place in places]

    def _drop_values(self) -> None:
        """Drop the values of marks that are gone."""
        starts, sizes = self._columns[_VALUE], self._columns[_SIZE]
        self._values = bytearray().join([self._values[at : at + size] for at, size in zip(starts, sizes, strict=True)])
        self._columns[_VALUE] = array("Q", accumulate(sizes, initial=0))
        del self._columns[_VALUE][-1]


def _form(number: int) -> str:
    """Return the form of the narrowest column for a number."""
    return next(form for form in _FORMS if number < 1 << 8 * array(form).itemsize)


def _anchor(feeds: WordTable, feed: int, lamport: int, offset: int) -> Anchor:
    return Anchor(feeds[feed], lamport << OFFSET_BITS | offset >> 1, offset % 2 == 1)


def _replaced(columns: Row, stamps: tuple[Numbers, ...]) -> Numbers:
    """Return which rows have the name and the anchors of a later one. Of nearly all, a hash tells that they do not."""
    places = (columns.name, *columns[_ANCHORS:])
    mixed = np.zeros(len(columns.name), np.uint64)
    for column in places:
        mixed = (mixed ^ column) * _FACTOR
        mixed ^= mixed >> np.uint64(32)
    order = np.argsort(mixed, kind="stable")
    alike = mixed[order[1:]] == mixed[order[:-1]]
    found = np.zeros(len(mixed), bool)
    chosen = order[np.append(alike, False) | np.append(False, alike)]
    if len(chosen):
        chosen = chosen[np.lexsort([column[chosen] for column in (*stamps, *places)])]
        equal = np.all([column[chosen[1:]] == column[chosen[:-1]] for column in places], axis=0)
        found[chosen[:-1][equal]] = True
    return found
