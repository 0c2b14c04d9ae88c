"""What the live pipeline is built on, as ports: authority decides what counts, a store keeps what was derived.

The pipeline needs nothing else of HALO or of SQLite, so a store runs alone without credentials (`OpenAuthority`), and
a database part can be replaced by anything that passes `antiphon.testing.run_item_store_tests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.causal_delivery import Standing
from antiphon.feed.header import Entry, Kind
from antiphon.feed.writer import FeedWriter
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.access import Author
from antiphon.model.item_state import ItemState

Seen = Mapping[bytes, int]


class Mark(NamedTuple):
    """Which snapshot an item store stands on, and whether all its items have rows, or only those that were opened."""

    number: int
    snapshot: bytes
    whole: bool


class EpochJudge(Protocol):
    """What the control feeds say at one timeframe of theirs, and nothing beyond it."""

    def verdict(self, feed: bytes, seq: int, seen: Seen) -> str: ...

    def lasting(self) -> bool:
        """Whether no right was ever taken away: then who may write may still do so having seen more."""

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author: ...

    def erased(self, feed: bytes) -> frozenset[int]:
        """The messages of a feed that are void, wherever they stand."""


class Authority(EpochJudge, Protocol):
    """Says which feeds belong to the party and which of their messages count."""

    def refresh(self) -> bool:
        """Take what is new; whether any verdict, feed or entry may be another now."""

    def data_feeds(self) -> Iterable[bytes]:
        """The feeds whose messages are delivered, whether or not they count."""

    def is_control(self, feed: bytes) -> bool: ...

    def standing(self, entry: Entry) -> Standing:
        """How an entry about a control feed stands."""

    def fork_end(self, feed: bytes) -> int:
        """Where a forked data feed ends for everybody; `NO_END` if it is not forked."""

    def rights(self) -> object:
        """As long as this is the same, so is every verdict, but for what is erased."""

    def entries(self) -> Sequence[Entry]:
        """The control blocks that one's own next message has seen."""

    def verdict(self, feed: bytes, seq: int, seen: Seen, kind: Kind = Kind.MUTATION) -> str:
        """Why a message is void, judged in its own timeframe; empty if it counts. Void from some seq on, or not."""

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        """Whose a message is, in its own timeframe: what access lists of items go by."""

    def final_epoch(self) -> FinalEpoch | None:
        """The last final epoch, if whoever cannot recompute it may stand on it."""

    def epoch_judge(self, control: Timeframe) -> EpochJudge:
        """The word on messages in an epoch that names this control timeframe."""

    def wrote(self, before: int, after: int) -> None:
        """This device wrote to its data feed, and the store's transaction went from one number to another."""

    def writer(self) -> FeedWriter:
        """This device's data feed; raises `NotAuthorised` if it may not write."""


class Void(NamedTuple):
    """Messages [start, stop) of a feed that do not count."""

    start: int
    stop: int
    reason: str


@dataclass(slots=True)
class LaneState:
    """What is kept of a data feed: how far it is processed, and as what."""

    feed: bytes
    number: int  # stands for the feed in postings
    position: int = 0  # messages processed
    lamport: int = 0  # of the last of them
    hash: bytes = bytes(32)
    fault: str = ""
    segments: list[tuple[int, dict[bytes, int]]] = field(default_factory=list)  # from this seq on: control timeframe
    voids: list[Void] = field(default_factory=list)
    base: int = 0  # so many are in the snapshot that the party stands on, and are not judged again
    base_lamport: int = 0  # of the last of those

    @property
    def mark(self) -> tuple[object, ...]:
        """What tells whether it has changed."""
        return self.position, self.hash, self.fault, self.base, len(self.segments), tuple(self.voids)


class Posting(NamedTuple):
    """Messages [start, stop) of lane `number` are an item's."""

    number: int
    start: int
    stop: int


class Refused(NamedTuple):
    """A message that does not count, and why. Listed for people; it is derived like everything else here."""

    feed: bytes
    seq: int
    item: bytes
    reason: str


class ItemRow(NamedTuple):
    """An item as it is kept. `record` is None, and the model empty, where there are messages but no valid genesis."""

    id: bytes
    record: bytes | None
    model: str = ""
    version: int = 0
    parent: bytes = b""
    deleted: bool = False
    opaque: bool = False
    guarded: bool = False  # it has an access list
    facts: bytes = b""  # what queries see of it, where they are asked here


@dataclass(slots=True)
class Save:
    """Changes that belong together: states, and the positions that they stand at."""

    rows: list[ItemRow] = field(default_factory=list)
    postings: list[tuple[bytes, bytes]] = field(default_factory=list)  # by item, encoded: more of them
    verdicts: list[tuple[Stamp, bytes, str]] = field(default_factory=list)  # stamp, item, reason or "" to clear
    lanes: list[LaneState] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)  # items that an epoch let go
    base: Mark | None = None  # the snapshot that the states stand on from now on


class Index(Protocol):
    """What queries run on. It is kept beside the items, and changes in their transactions."""

    def describe(self, item: ItemState) -> bytes:
        """What queries see of an item. Pure: it may run in another process."""

    def create(self) -> None:
        """Begin, with nothing in it."""

    def clear(self) -> None:
        """Take everything away, whatever state it is in."""

    def put(self, rows: Iterable[tuple[bytes, bytes | None]]) -> list[bytes]:
        """Items as they were described; None for one that is no longer there. Which others hang elsewhere by it."""


class Items(Protocol):
    """Keeps item states with the timeframe that they stand at. Derived: it can always be rebuilt from the feeds.

    Bytes that have changed are found by whoever reads them, and raise `DamagedItems`; then it is built again.
    """

    why_rebuilt: str  # why it begins empty although there was one before; else empty
    ready_items: Set[bytes] | None  # the items to fold if the device holds one view; None: all

    def lanes(self) -> list[LaneState]: ...

    def base(self) -> Mark | None:
        """The snapshot that the states stand on; None: on nothing."""

    def load(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The records of those items that are there; empty where there are messages but no valid genesis."""

    def rows(self, ids: Sequence[bytes]) -> list[ItemRow]:
        """The rows of those items that are there, without what queries see of them."""

    def postings(self, item: bytes) -> list[Posting]:
        """Where the messages of an item are, saved so far."""

    def saving(self) -> AbstractContextManager[Callable[[Save], None]]:
        """A transaction: what is put inside is saved when it ends, all of it or nothing."""

    def forget(self, item: bytes) -> None:
        """The item's state, postings and refusals, before they are saved anew; part of the next transaction."""

    def ids(self, model: str | None = None) -> Iterator[bytes]: ...

    def opaque(self) -> list[tuple[bytes, str, int]]:
        """Items whose model had no code here when they were saved: id, model, version."""

    def guarded(self) -> list[bytes]:
        """Items with an access list."""

    def count(self) -> int: ...

    def orphans(self) -> list[bytes]:
        """Items with messages but no valid genesis."""

    def models(self) -> list[tuple[str, int]]:
        """The models that items here have."""

    def deleted(self) -> list[bytes]:
        """Items that are deleted, ascending."""

    def view(self) -> AbstractContextManager[Items]:
        """What is saved now, to be read in another thread while more is saved."""

    def refused(self, limit: int) -> list[Refused]: ...

    def refused_count(self) -> int: ...

    def refused_for(self, reason: str, limit: int) -> list[Refused]:
        """Some of the messages that were refused for this very reason."""

    index: Index | None

    def moved(self) -> list[bytes]:
        """Items that hang elsewhere since this was last asked, because of claims of others."""

    def attach(self, make: Callable[[Any], Index], *, only_known: bool = False) -> bool:
        """Keep an index from now on; whether it is current. If not, it is empty, and is to be filled.

        With `only_known`, an index is taken up only if there is one here that is current.
        """

    def clear(self) -> None:
        """Forget everything, so that it is built again."""

    def close(self) -> None: ...
