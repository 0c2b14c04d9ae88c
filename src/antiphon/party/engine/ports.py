"""Ports of the live engine, and the values that cross them. `Authority` decides what counts; `Items` stores states.

The engine needs nothing else of HALO or of SQLite. So a party can run without credentials (`OpenAuthority`), and the
item store can be replaced by any class that passes `antiphon.testing.run_item_store_tests`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from antiphon.core.reasons import Reason, code_of
from antiphon.core.sightings import Marks, Seen, Sightings
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.feed.block import Block
from antiphon.feed.causal_delivery import Standing
from antiphon.feed.header import Entry, Kind
from antiphon.feed.writer import FeedWriter
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.access import Author
from antiphon.model.item_state import ItemState


class BaseMark(NamedTuple):
    """Snapshot that an item store is based on. `whole`: all its items have rows, not only those that were opened."""

    number: int
    snapshot: bytes
    whole: bool


class EpochJudge(Protocol):
    """Verdicts on data messages by the control state at one timeframe."""

    def verdict(self, feed: bytes, seq: int, seen: Seen) -> str:
        """Return why a message is void; empty if it counts."""

    def lasting(self) -> bool:
        """True if no right was ever taken away: a writer who may write keeps that right in every later timeframe."""

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        """Return the author of a message."""

    def acts_about(self, feed: bytes, *, untaken: bool = False) -> Marks | None:
        """Return the control blocks that tell the messages of a feed apart; None if any of them may.

        Two messages with the same seq, whose writer had seen the same of these blocks, have one author, and both count
        or both are void; for the same reason, if they have also seen the same blocks of the `untaken` answer.
        """

    def erased(self, feed: bytes) -> frozenset[int]:
        """Return the seqs of erased messages of a feed, which are void."""


class Known(Protocol):
    """Decides which feeds of a party are taken from others: those that acts name in a chain from the genesis."""

    def look(self) -> None:
        """Read new control blocks, which may name further feeds."""

    @property
    def known_count(self) -> int:
        """Return how many identities and data feeds are named. It grows whenever another feed becomes known."""

    def knows(self, feed: bytes) -> bool:
        """True if a feed is known: a data feed, or a control feed with blocks here."""

    def find_identity(self, first: Block) -> bytes:
        """Return the identity whose control feed begins with this block; "" if it begins none."""

    def names(self, identity: bytes) -> bool:
        """True if control feeds of an identity are known."""

    def wanted(self) -> Iterable[Entry]:
        """Return control blocks of this party that are missing for its waiting control blocks to count."""


class Authority(EpochJudge, Known, Protocol):
    """Decides which feeds belong to the party and which of their messages count."""

    def refresh(self) -> bool:
        """Read new control blocks. True if any verdict, feed or entry may have changed."""

    def data_feeds(self) -> Collection[bytes]:
        """Return the feeds whose messages are delivered, whether or not they count."""

    def is_control(self, feed: bytes) -> bool:
        """True for a feed of the party that has a branch of control."""

    def is_control_block(self, entry: Entry) -> bool:
        """True if an entry names a block of control that is delivered or shown."""

    def standing(self, entry: Entry) -> Standing:
        """Check an advance entry about a control feed."""

    def counted(self, after: int) -> Sequence[bytes]:
        """Return the hashes of the control blocks that entries may name, without the first `after` of them."""

    def obstacle(self, entry: Entry) -> Entry | None:
        """Return the block that is missing for an entry about a control feed to count."""

    def fork_end(self, feed: bytes) -> int:
        """Return where a forked data feed ends on every peer; `NO_END` if it is not forked."""

    def forked(self) -> Collection[bytes]:
        """Return the feeds whose writers are known to have signed two histories."""

    def rights(self) -> object:
        """Return a value that changes whenever a verdict may change, except by erasure."""

    def entries(self) -> Sequence[Entry]:
        """Return the control blocks that the next message of this device has seen."""

    def verdict(self, feed: bytes, seq: int, seen: Seen, kind: Kind = Kind.MUTATION) -> str:
        """Return why a message is void in its own timeframe; empty if it counts.

        Of messages with the same `seen`, all from some seq on are void, or none.
        """

    def author(self, feed: bytes, seq: int, seen: Seen) -> Author:
        """Return the author of a message, by its own timeframe. Access lists of items are checked against it."""

    def final_epochs(self) -> Sequence[FinalEpoch]:
        """Return the final epochs: 1, 2, 3 …"""

    def trusts(self, epoch: FinalEpoch) -> bool:
        """True if a peer that cannot recompute this final epoch may trust it."""

    def epoch_judge(self, control: Timeframe, control_hash: bytes = b"") -> EpochJudge:
        """Return the judge of messages in an epoch that names this control timeframe.

        Beyond a fork of a control feed there are several blocks at a position: the hash in the genesis tells which.
        """

    def wrote(self, before: int, after: int) -> None:
        """Take note that this device wrote to its data feed, and of the feed store's transaction numbers around it."""

    def writer(self) -> FeedWriter:
        """Return the writer of this device's data feed. Raises `NotAuthorised` if it may not write."""

    def device_at_rest(self) -> bytes:
        """Return this device and its feeds, if its party can rest until a feed changes (`party.engine.rest`); else "".

        It can if `refresh` has told of all control blocks, and everything here depends on feeds of this party alone.
        """

    def is_device(self, device: bytes) -> bool:
        """True if this is the same device, and it still has the keys of these feeds. No control block is read."""


class Void(NamedTuple):
    """Messages [start, stop) of a feed that do not count."""

    start: int
    stop: int
    reason: str

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)


class AuthorRun(NamedTuple):
    """Messages [start, stop) of a feed that have one author, by a digest of what the author may be named by."""

    start: int
    stop: int
    digest: bytes


@dataclass(slots=True)
class LaneState:
    """Saved state of a lane: how far a data feed is delivered, and by which rights."""

    feed: bytes
    number: int  # names the feed in postings
    position: int = 0  # messages delivered
    lamport: int = 0  # of the last of them
    hash: bytes = bytes(32)
    fault: str = ""
    segments: Sightings = field(default_factory=Sightings)  # the control timeframe from each seq on
    voids: list[Void] = field(default_factory=list)
    base: int = 0  # messages inside the base, which are not judged again
    base_lamport: int = 0  # of the last message inside the base
    authors: list[AuthorRun] = field(default_factory=list)  # by which items with access lists were folded, up to a seq

    @property
    def mark(self) -> tuple[object, ...]:
        """Value that differs whenever the saved state does."""
        judged = tuple(self.voids), tuple(self.authors)
        return self.position, self.hash, self.fault, self.base, len(self.segments), judged


class Posting(NamedTuple):
    """Messages [start, stop) of lane `number`, all to one item."""

    number: int
    start: int
    stop: int


class Refused(NamedTuple):
    """A message that does not count, and why."""

    feed: bytes
    seq: int
    item: bytes
    reason: str

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)


class ItemRow(NamedTuple):
    """Row of the item store. The model is empty for an item that is not shown: a hidden one, or, if `record` is None,
    messages without a genesis.
    """

    id: bytes
    record: bytes | None
    model: str = ""
    version: int = 0
    parent: bytes = b""
    deleted: bool = False
    opaque: bool = False
    guarded: bool = False  # it has an access list
    facts: bytes = b""  # its facts for queries, if there is an index

    @property
    def size(self) -> int:
        """The bytes of record and facts."""
        return len(self.record or b"") + len(self.facts)


@dataclass(slots=True)
class Save:
    """Changes of one transaction: item states, and the positions of the feeds that they include."""

    rows: list[ItemRow] = field(default_factory=list)
    postings: list[tuple[bytes, bytes]] = field(default_factory=list)  # new ones by item, encoded
    verdicts: list[tuple[Stamp, bytes, str]] = field(default_factory=list)  # stamp, item, reason or "" to clear
    lanes: list[LaneState] = field(default_factory=list)
    gone: list[bytes] = field(default_factory=list)  # items that an epoch has discarded
    base: BaseMark | None = None  # the new base of the states, if it changes
    rest: bytes = b""  # what the next opening may rest on, until something else is saved


class Index(Protocol):
    """Query index beside the items, changed in the same transactions."""

    def describe(self, item: ItemState) -> bytes:
        """Encode the facts of an item. Pure: it may run in another process."""

    def create(self) -> None:
        """Create the empty index."""

    def clear(self) -> None:
        """Drop the index, in whatever state it is."""

    def put(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Put facts of items, None for a removed item."""

    def settle(self) -> list[bytes]:
        """Write the parents that follow from the items put since. Return other items whose parent has changed."""


class Items(Protocol):
    """Store of item states with the positions of the feeds that they include. It can be rebuilt from the feeds.

    Reads verify checksums, and raise `DamagedItems` for changed bytes; then the store is rebuilt.
    """

    why_rebuilt: str  # why an existing store was replaced by an empty one; else empty
    ready_items: Set[bytes] | None  # the items to fold if the device holds one view; None: all

    def checked(self) -> None:
        """Check all that is stored, once after the store was opened. Raise `DamagedItems` if it has changed."""

    def damage_found(self) -> str:
        """Return what has been found damaged in the background; "" for nothing."""

    def lanes(self) -> list[LaneState]:
        """Load the states of all lanes."""

    def base(self) -> BaseMark | None:
        """Return the snapshot that the states are based on, or None."""

    def rest(self) -> bytes:
        """Return `Save.rest` of the last transaction; "" if it had none."""

    def load(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Load the records of items that are held; an empty record means messages without a genesis."""

    def rows(self, ids: Sequence[bytes]) -> list[ItemRow]:
        """Load the rows of items that are held, without their facts."""

    def postings(self, item: bytes) -> list[Posting]:
        """Load the saved postings of an item."""

    def saving(self) -> AbstractContextManager[Callable[[Save], None]]:
        """Open a transaction. All that is put inside is saved when it ends, or nothing."""

    def forget(self, item: bytes) -> None:
        """Remove an item's row, postings and refusals in the next transaction that saves it again."""

    def ids(self, model: str | None = None) -> Iterator[bytes]:
        """Iterate over the ids of shown items, or of those of one model, ascending."""

    def opaque(self) -> list[tuple[bytes, str, int]]:
        """List items whose model was not registered when they were saved: id, model, version."""

    def guarded(self) -> list[bytes]:
        """List items with an access list."""

    def empty(self) -> bool:
        """True if no item was ever saved, shown or not."""

    def count(self) -> int:
        """Count the shown items."""

    def orphans(self) -> list[bytes]:
        """List items with messages that are not shown: hidden, or without a genesis."""

    def models(self) -> list[tuple[str, int]]:
        """List the models of the items, with versions."""

    def deleted(self) -> list[bytes]:
        """List deleted items, ascending."""

    def view(self) -> AbstractContextManager[Items]:
        """Open a read-only view of what is saved now, for another thread."""

    def refused(self, limit: int) -> list[Refused]:
        """List refused messages, at most `limit`."""

    def refused_count(self) -> int:
        """Count the refused messages."""

    def refused_for(self, reason: str, limit: int) -> list[Refused]:
        """List messages that were refused for exactly this reason, at most `limit`."""

    index: Index | None

    def moved(self) -> list[bytes]:
        """Take the items whose parent has changed since the last call, by claims of other items."""

    def attach(self, make: Callable[[Any], Index], *, only_known: bool = False) -> bool:
        """Maintain an index from now on. True if it is current; else it is empty, and the caller fills it.

        With `only_known`, an index is attached only if a current one exists.
        """

    def clear(self) -> None:
        """Remove everything, to rebuild it."""

    def close(self) -> None:
        """Close the store."""
