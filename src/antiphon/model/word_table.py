"""`WordTable`: numbers for the names or feeds of many marks, which are kept in one row of bytes.

Who names something new in each mark pays for its bytes: a dictionary takes 150 bytes for a name of four. So a word gets
a new number whenever it is not among the last ones that were asked for. `settle` gives equal words one number again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
_LAST_MAX = 256  # words whose numbers are looked up
_WIDTH_MAX = 64  # bytes of words that are sorted as a matrix
_PORTION = 4096  # words that are objects at once


class WordTable:
    """Words by number. After `settle`, numbers ascend with words; until then, one word may have several."""

    __slots__ = ("_bytes", "_ends", "_last")

    def __init__(self, words: Sequence[bytes] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("I")
        self._last: dict[bytes, int] = {}
        for word in words:
            self.number(word)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> bytes:
        """Return a word."""
        begin = self._ends[number - 1] if number else 0
        return bytes(self._bytes[begin : self._ends[number]])

    def __iter__(self) -> Iterator[bytes]:
        begin = 0
        for end in self._ends:
            yield bytes(self._bytes[begin:end])
            begin = end

    def number(self, word: bytes) -> int:
        """Return a number of a word."""
        found = self._last.get(word)
        if found is None:
            if len(self._last) == _LAST_MAX:
                self._last.clear()
            found = self._last[word] = len(self._ends)
            self._bytes += word
            self._ends.append(len(self._bytes))
        return found

    def settle(self, columns: Sequence[Numbers], always: Sequence[int] = ()) -> Numbers:
        """Drop words that no column names, unless they are `always` kept, and number the others anew, one number each.

        Return the new numbers by the old ones. They ascend with the words.
        """
        used = np.zeros(len(self), bool)
        used[list(always)] = True
        for column in columns:
            used[column] = True
        old = np.flatnonzero(used)
        order, is_new = self._sorted(old)
        numbers = np.zeros(len(self), np.int64)
        numbers[old[order]] = np.cumsum(is_new) - 1
        kept = WordTable()
        for first in range(0, len(order), _PORTION):
            some = slice(first, first + _PORTION)
            for number in old[order[some][is_new[some]]].tolist():
                kept._bytes += self[number]
                kept._ends.append(len(kept._bytes))
        self._bytes, self._ends, self._last = kept._bytes, kept._ends, {}
        return numbers

    def _sorted(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return the order of the words with some numbers, and which of them differ from the word before."""
        ends = np.frombuffer(self._ends, self._ends.typecode).astype(np.int64)
        sizes = np.diff(ends, prepend=0)[numbers]
        words: Any
        width = int(sizes.max(initial=1))
        if width > _WIDTH_MAX:
            words = np.array([self[number] for number in numbers.tolist()], object)
            order = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)
        else:
            words = self._matrix(ends[numbers] - sizes, sizes, width).view(f"S{width}").ravel()
            order = np.lexsort((sizes, words))  # these words have no zeros at their ends: sizes tell them apart
        words, sizes = words[order], sizes[order]
        return order, np.append(True, (words[1:] != words[:-1]) | (sizes[1:] != sizes[:-1]))[: len(order)]

    def _matrix(self, begins: Numbers, sizes: Numbers, width: int) -> Numbers:
        """Return words as rows of bytes, filled up with zeros."""
        found = np.zeros((len(sizes), width), np.uint8)
        source, columns = np.frombuffer(self._bytes, np.uint8), np.arange(width)
        for first in range(0, len(sizes) if len(source) else 0, _PORTION):
            some = slice(first, first + _PORTION)
            where = np.minimum(begins[some, None] + columns, len(source) - 1)
            found[some] = np.where(columns < sizes[some, None], source[where], 0)
        return found
