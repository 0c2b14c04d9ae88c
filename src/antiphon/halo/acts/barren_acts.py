"""`BarrenActs`: acts of one control feed that give nobody anything, kept as columns instead of values.

An act is *barren* if it is void whatever else arrives: its writer had no right to it by all that it had seen, even if
nothing had ever been taken away; or it cannot be read; or its feed had spent its budget. A block's hash names all that
its writer had seen, so the first two are facts about the block alone. The third holds until an epoch begins a new
count, or where no budget counts: those acts are recalled then. A vote about an epoch is barren as long as no attester
of its number has signed it; a genesis, as long as nobody who can declare that number has signed it; a refusal, as long
as nobody has declared that epoch. docs/design/parties.md has the rule.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochEndorsement,
    EpochGenesis,
    EpochRefusal,
    FeedAdmission,
    GroupAdmission,
    MemberAdmission,
)

KEY_SIZE = 32
_NUMBER_SIZE = 8
Seqs = npt.NDArray[np.int64]
NO_SEQS: Seqs = np.zeros(0, dtype=np.int64)


class BarrenKind(enum.IntEnum):
    """Kinds of barren acts, by the key that each names and the budget that it counts in."""

    NOTHING = 0
    MEMBER = 1  # an admission of a member: its subject
    GROUP = 2  # an admission to a group: its subject, and the group
    ADMISSION = 3  # an admission of a data feed by its own device, beyond the budget: the data feed
    REPEATED = 4  # the same, of another device
    SPENT = 5  # an admission of a member beyond what its feed may give: its subject
    EDITOR_SPENT = 6  # the same, beyond what the feed of an editor may give
    VOTE = 7  # a vote that its writer has signed: the number of the epoch
    COPIED_VOTE = 8  # a vote that others have signed, or on a branch: the number, and how many have signed; their keys
    REFUSAL = 9  # a refusal of an epoch that nobody has declared: its name (`name_of`)
    GENESIS = 10  # a genesis of an epoch: the number, and how many have signed it; their keys


SPENT = (BarrenKind.SPENT, BarrenKind.EDITOR_SPENT)
MEMBERS = (BarrenKind.MEMBER, *SPENT)
GRANTS = (*MEMBERS, BarrenKind.GROUP)
ADMISSIONS = (BarrenKind.ADMISSION, BarrenKind.REPEATED)
SIGNED = (BarrenKind.COPIED_VOTE, BarrenKind.GENESIS)  # with the keys of all that have signed them
VOTES = (BarrenKind.VOTE, BarrenKind.REFUSAL, *SIGNED)


@dataclass(frozen=True, slots=True)
class Row:
    """One barren act."""

    seq: int
    says: BarrenKind
    key: bytes = bytes(KEY_SIZE)
    more: bytes = b""  # further keys: a group, or who has signed a vote or genesis


class BarrenActs:
    """The barren acts of a control feed, by seq. `recall` reads one of them again from its block."""

    def __init__(self, feed: bytes, seqs: Seqs, says: npt.NDArray[np.uint8], keys: bytes, more: bytes) -> None:
        self.feed = feed
        self.seqs = seqs
        self.says = says
        self.keys = keys  # 32 bytes for each act
        self.more = more  # 32 bytes for each admission to a group, and for each key that has signed a vote or genesis
        # Most control feeds have no barren acts, and a party may have thousands: such columns are not computed with.
        self.kinds = frozenset(map(BarrenKind, np.unique(says).tolist())) if len(seqs) else frozenset()
        self.recall: Callable[[int], Act] = _nowhere
        self._refused: tuple[Seqs, Seqs] | None = None  # ends of names of refused epochs, ascending, and their places
        self._more: Seqs | None = None  # where the further keys of each act begin, and where all end
        self._votes: dict[BarrenKind, tuple[Seqs, Seqs]] = {}
        self._by_key: dict[tuple[bytes, BarrenKind], list[int]] | None = None  # places in the columns

    @classmethod
    def of(cls, feed: bytes, rows: Iterable[Row]) -> BarrenActs:
        """Make the columns of rows, by seq."""
        rows = list(rows)
        seqs = np.array([row.seq for row in rows], dtype=np.int64)
        says = np.array([row.says for row in rows], dtype=np.uint8)
        return cls(feed, seqs, says, b"".join(row.key for row in rows), b"".join(row.more for row in rows))

    def encode(self) -> bytes:
        """Encode the columns (docs/design/formats.md)."""
        seqs = u32(len(self.seqs)) + self.seqs.astype("<i8").tobytes()
        return seqs + self.says.tobytes() + self.keys + u32(len(self.more)) + self.more

    @classmethod
    def decode(cls, reader: Reader, feed: bytes, length: int) -> BarrenActs:
        """Decode columns about the first blocks of a feed. Raises `BadEncoding`."""
        count = reader.u32()
        seqs = np.frombuffer(reader.take(count * 8), dtype="<i8").astype(np.int64)
        says = np.frombuffer(reader.take(count), dtype=np.uint8)
        keys = reader.take(count * KEY_SIZE)
        more = reader.take(reader.u32())
        if count and (int(seqs[0]) < 0 or int(seqs[-1]) >= length or bool((np.diff(seqs) <= 0).any())):
            raise BadEncoding("barren acts: blocks that do not ascend, or that are not there")
        if count and int(says.max()) > max(BarrenKind):
            raise BadEncoding("barren acts: an act says what this version does not know")
        if len(more) != (KEY_SIZE * int(further_keys(says, keys).sum()) if count else 0):
            raise BadEncoding("barren acts: there are more or fewer further keys than acts that have them")
        return cls(feed, seqs, says, keys, more)

    def before(self, stop: int) -> BarrenActs:
        """Return the same without the acts from a seq on."""
        count = int(np.searchsorted(self.seqs, stop))
        keys, more = self.keys[: count * KEY_SIZE], self.more[: int(self._begins[count]) * KEY_SIZE]
        return BarrenActs(self.feed, self.seqs[:count], self.says[:count], keys, more)

    def __len__(self) -> int:
        return len(self.seqs)

    def last(self, stop: int) -> int:
        """Return the seq of the last of them before `stop`; -1 if there is none."""
        place = int(np.searchsorted(self.seqs, stop)) if self.kinds else 0
        return int(self.seqs[place - 1]) if place else -1

    def __contains__(self, seq: int) -> bool:
        place = int(np.searchsorted(self.seqs, seq))
        return place < len(self.seqs) and int(self.seqs[place]) == seq

    def rows(self) -> Iterator[Row]:
        """Yield the acts one by one."""
        for place, (seq, number) in enumerate(zip(self.seqs.tolist(), self.says.tolist(), strict=True)):
            yield Row(seq, BarrenKind(number), self.key(place), self.further(place))

    def key(self, place: int) -> bytes:
        """Return the subject, or the data feed, of the act at a place in the columns."""
        return self.keys[place * KEY_SIZE : (place + 1) * KEY_SIZE]

    def further(self, place: int) -> bytes:
        """Return the group, or those that have signed the vote, of the act at a place in the columns."""
        begin, end = self._begins[place : place + 2].tolist()
        return self.more[begin * KEY_SIZE : end * KEY_SIZE]

    @property
    def _begins(self) -> Seqs:
        if self._more is None:
            self._more = np.concatenate((NO_SEQS, [0], np.cumsum(further_keys(self.says, self.keys))))
        return self._more

    def those(self, says: Sequence[BarrenKind], start: int, stop: int) -> list[int]:
        """Return the places of the acts in [start, stop) that say one of these."""
        if self.kinds.isdisjoint(says):
            return []
        low, high = (int(place) for place in np.searchsorted(self.seqs, (start, stop)))
        wanted = np.zeros(len(BarrenKind), dtype=np.bool_)
        wanted[list(says)] = True
        found: list[int] = (np.flatnonzero(wanted[self.says[low:high]]) + low).tolist()
        return found

    def seqs_of(self, says: Sequence[BarrenKind], start: int, stop: int) -> list[int]:
        """Return the seqs of the acts in [start, stop) that say one of these."""
        places = self.those(says, start, stop)
        return self.seqs[places].tolist() if places else []

    def about(self, key: bytes, says: BarrenKind, stop: int) -> list[int]:
        """Return the seqs, below `stop`, of the acts about a key that say this."""
        if key not in self.keys:  # most keys; this reads bytes at the speed of memory
            return []
        places = self._index().get((key, says), [])
        seqs: list[int] = self.seqs[places].tolist()
        return seqs[: bisect_left(seqs, stop)]

    def group_at(self, seq: int) -> bytes:
        """Return the group of the admission to a group at a seq."""
        return self.further(int(np.searchsorted(self.seqs, seq)))

    def votes(self, says: BarrenKind) -> tuple[Seqs, Seqs]:
        """Return the places of the votes that say this, and the numbers of their epochs."""
        if says not in self._votes:
            places = np.flatnonzero(self.says == says)
            self._votes[says] = places, _words(self.keys)[places, 0].astype(np.int64)
        return self._votes[says]

    def signed(self, places: Seqs, keys: Collection[bytes]) -> list[int]:
        """Return the places of the votes, of these, that one of these keys has signed."""
        begins, counts = self._begins[places], np.diff(self._begins)[places]
        owners = np.repeat(places, counts)
        at = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(len(owners))
        like = np.isin(_words(self.more)[at, -1], _ends(b"".join(keys)))
        found = zip(owners[like].tolist(), (at[like] * KEY_SIZE).tolist(), strict=True)
        return sorted({place for place, one in found if self.more[one : one + KEY_SIZE] in keys})

    def refusals(self, names: Collection[bytes]) -> dict[bytes, int]:
        """Return the seq of the first refusal of each of these epochs, by name, that is refused at all."""
        if not names or BarrenKind.REFUSAL not in self.kinds:
            return {}
        if self._refused is None:
            places = np.flatnonzero(self.says == BarrenKind.REFUSAL)
            ends = _ends(self.keys)[places]
            order = np.argsort(ends, kind="stable")
            self._refused = ends[order], places[order]
        ends, places = self._refused
        begins = np.searchsorted(ends, _ends(b"".join(names))).tolist()
        stops = np.searchsorted(ends, _ends(b"".join(names)), side="right").tolist()
        found: dict[bytes, int] = {}
        for name, begin, stop in zip(names, begins, stops, strict=True):
            first = next((place for place in places[begin:stop].tolist() if self.key(place) == name), None)
            if first is not None:
                found[name] = int(self.seqs[first])
        return found

    def _index(self) -> dict[tuple[bytes, BarrenKind], list[int]]:
        if self._by_key is None:
            found: dict[tuple[bytes, BarrenKind], list[int]] = defaultdict(list)
            for place, number in enumerate(self.says.tolist()):
                if number:
                    found[self.key(place), BarrenKind(number)].append(place)
            self._by_key = dict(found)
        return self._by_key


def further_keys(says: npt.NDArray[np.uint8], keys: bytes) -> Seqs:
    """Return how many further keys each act has: a group, or as many as have signed a vote or genesis."""
    counts: Seqs = np.frombuffer(keys, dtype=np.uint8).reshape(-1, KEY_SIZE)[:, _NUMBER_SIZE].astype(np.int64)
    counts[~np.isin(says, SIGNED)] = 0
    counts[says == BarrenKind.GROUP] = 1
    return counts


def _ends(keys: bytes) -> Seqs:
    """Return the last bytes of keys, as numbers."""
    return _words(keys)[:, -1].astype(np.int64)


def _words(keys: bytes) -> Seqs:
    """Return keys as rows of numbers."""
    return np.frombuffer(keys, dtype="<i8").reshape(-1, KEY_SIZE // _NUMBER_SIZE)


def name_of(claim: EpochGenesis | EpochRefusal) -> bytes:
    """Return a name of the epoch that is declared or refused, in its term: as long as a key."""
    said = sha256(u64(claim.term) + claim.snapshot).digest()
    return u64(claim.number) + said[: KEY_SIZE - _NUMBER_SIZE]


def row_of(act: Act, *, repeated: bool = False, kind: BarrenKind | None = None) -> Row:
    """Return the row of a barren act; with the kind of one that is barren until an epoch is final."""
    claim = act.claim
    if isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement):
        signers = sorted(act.signers) if kind in SIGNED else []
        key = u64(claim.number) + bytes([len(signers)])
        return Row(act.stamp.seq, kind or BarrenKind.NOTHING, key.ljust(KEY_SIZE, b"\0"), b"".join(signers))
    if isinstance(claim, EpochRefusal):
        named = kind is BarrenKind.REFUSAL
        return Row(act.stamp.seq, kind or BarrenKind.NOTHING, name_of(claim) if named else bytes(KEY_SIZE))
    if isinstance(claim, MemberAdmission):
        return Row(act.stamp.seq, kind or BarrenKind.MEMBER, claim.subject)
    if isinstance(claim, GroupAdmission):
        return Row(act.stamp.seq, BarrenKind.GROUP, claim.subject, claim.group)
    if isinstance(claim, FeedAdmission):
        return Row(act.stamp.seq, BarrenKind.REPEATED if repeated else BarrenKind.ADMISSION, claim.feed)
    return Row(act.stamp.seq, BarrenKind.NOTHING)


def _nowhere(seq: int) -> Act:
    raise LookupError(f"barren act {seq}: nobody has said where its blocks are")
