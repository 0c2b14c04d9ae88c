"""Count what homes hold, from the records of their stores: parties, ranges to read, numbers of blocks.

The accounts of a run start from these counts. They are taken before planning and independently of the planner, so that
a block that the planner loses shows up in the accounts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.core.errors import InvalidInput, UnknownParty
from antiphon.core.local_path import local_path
from antiphon.core.timeframe import Timeframe
from antiphon.feed.feed_record import FeedRecord
from antiphon.pipeline.source.home import open_feeds
from antiphon.pipeline.source.ranges import Limits, Range


@dataclass(frozen=True, slots=True)
class PartyInventory:
    """One party in the records of its home."""

    home: str
    party: bytes
    ranges: tuple[Range, ...]
    held: int  # number of blocks, also those outside of the ranges

    @property
    def anchor(self) -> Timeframe:
        """The last block of each range."""
        return Timeframe({one.feed: one.stop - 1 for one in self.ranges})


@dataclass(frozen=True, slots=True)
class Inventory:
    """The parties of some homes at one moment."""

    homes: tuple[str, ...]
    parties: tuple[PartyInventory, ...]
    here: frozenset[bytes]  # all parties with at least one block, selected or not

    def check(self, asked: Collection[bytes]) -> None:
        """Raise `UnknownParty` if the homes hold nothing of one of the parties."""
        unknown = sorted({bytes(party).hex() for party in asked if bytes(party) not in self.here})
        if unknown:
            raise UnknownParty(f"there is nothing of party {', '.join(unknown)} in {', '.join(self.homes)}")


def absolute_paths(homes: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Absolute paths of homes. Spark's workers may run in another working directory than the driver."""
    each = [homes] if isinstance(homes, str | Path) else homes
    return tuple(str(local_path(home).absolute()) for home in each)


def take_inventory(asked: tuple[Sequence[str], Limits]) -> Inventory:
    """Take the inventory of some homes, up to an anchor if the limits have one. Refuse a party in two homes."""
    homes, limits = asked
    found: dict[bytes, PartyInventory] = {}
    here: set[bytes] = set()
    for home in homes:
        records: dict[bytes, list[FeedRecord]] = defaultdict(list)
        with open_feeds(home) as store:
            for record in store.feeds():  # in one transaction
                records[record.party].append(record)
        for party, some in records.items():
            held = sum(_held(record, limits.until) for record in some)
            here |= {party} if any(record.length for record in some) else set()
            if not held or (limits.parties and party not in limits.parties):
                continue
            if party in found:
                raise InvalidInput(f"party {party.hex()[:8]} is in {found[party].home} and in {home}; name one of them")
            ranges = tuple(one for record in some if (one := limits.of(home, record)) is not None)
            found[party] = PartyInventory(home, party, ranges, held)
    return Inventory(tuple(homes), tuple(found.values()), frozenset(here))


def _held(record: FeedRecord, until: Timeframe | None) -> int:
    """Number of held blocks of a feed, up to an anchor. Blocks beyond the end of the feed always count."""
    stop = record.length if until is None else until.get(record.feed, record.start - 1) + 1
    return max(0, (record.length if record.end <= stop else min(record.length, stop)) - record.start)
