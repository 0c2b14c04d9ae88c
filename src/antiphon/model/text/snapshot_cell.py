"""`Cell`: the part of a snapshot that some adjacent elements of one writer make, so that it is made once.

Columns are written from left to right, and the last entry of each is open, since the next element may continue it. A
cell knows what was open before it. If that is the same again, then so are its bytes, and what it leaves open.
"""

from __future__ import annotations

from typing import NamedTuple

Step = tuple[int, int, int, bool]  # lamport, first offset, count, and True if each element has a lamport of its own


class Open(NamedTuple):
    """The open ends of columns: a chunk within one lamport, a step, a chain; and where the elements end."""

    begin: int  # clocks of the chunk
    end: int
    step: Step | None
    lamport: int  # after the steps that are encoded
    chain: tuple[int, ...]
    elements: int  # that came before
    last: int  # clock


class Turns(NamedTuple):
    """Alternating counts of elements that are shown and deleted."""

    shown: bool  # the first ones
    first: int
    middle: bytes  # the encoded counts between the first one and the last one
    last: int
    number: int  # of counts; of one, the first is the last


class Cell(NamedTuple):
    """The bytes that the elements of a block add to the columns of their writer."""

    before: Open
    after: Open
    listed: object | None  # the list of writers, if it names other ones by their number
    clocks: bytes
    chains: bytes
    text: bytes
    items: bytes
    embeds: tuple[int, ...]  # positions of items in the text of the cell
    turns: Turns | None
    shown: int  # elements that are shown

    @property
    def elements(self) -> int:
        """The number of elements."""
        return self.after.elements - self.before.elements
