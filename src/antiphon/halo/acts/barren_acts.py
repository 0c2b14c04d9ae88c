"""`BarrenActs`: acts of one control feed that give nobody anything, kept as columns instead of values.

An act is *barren* if it is void whatever else arrives: its writer had no right to it by all that it had seen, even if
nothing had ever been taken away; or it cannot be read; or its feed had spent its budget. A block's hash names all that
its writer had seen, so the first two are facts about the block alone. The third holds until an epoch begins a new
count, or where no budget counts: those acts are recalled then. A vote about an epoch is barren as long as no attester
of its number has signed it, and a refusal as long as nobody has declared that epoch. docs/design/parties.md has the
rule.
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

from antiphon.core.codec import u64
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
from antiphon.halo.credentials.credential import SIGNATURES_MAX

KEY_SIZE = 32
_NUMBER_SIZE = 8
_BEGINNING = (KEY_SIZE - _NUMBER_SIZE) // SIGNATURES_MAX  # bytes of each key that has signed a vote
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
    COPIED_VOTE = 8  # a vote that others have signed: the number, and the beginnings of their keys
    REFUSAL = 9  # a refusal of an epoch that nobody has declared: its name (`name_of`)


SPENT = (BarrenKind.SPENT, BarrenKind.EDITOR_SPENT)
MEMBERS = (BarrenKind.MEMBER, *SPENT)
GRANTS = (*MEMBERS, BarrenKind.GROUP)
ADMISSIONS = (BarrenKind.ADMISSION, BarrenKind.REPEATED)
VOTES = (BarrenKind.VOTE, BarrenKind.COPIED_VOTE, BarrenKind.REFUSAL)


@dataclass(frozen=True, slots=True)
class Row:
    """One barren act."""

    seq: int
    says: BarrenKind
    key: bytes = bytes(KEY_SIZE)
    group: bytes = b""


class BarrenActs:
    """The barren acts of a control feed, by seq. `recall` reads one of them again from its block."""

    def __init__(self, feed: bytes, seqs: Seqs, says: npt.NDArray[np.uint8], keys: bytes, groups: bytes) -> None:
        self.feed = feed
        self.seqs = seqs
        self.says = says
        self.keys = keys  # 32 bytes for each act
        self.groups = groups  # 32 bytes for each admission to a group
        self.kinds = frozenset(map(BarrenKind, np.unique(says).tolist()))
        self.recall: Callable[[int], Act] = _nowhere
        self._refused: tuple[Seqs, Seqs] | None = None  # ends of names of refused epochs, ascending, and their places
        self._votes: dict[BarrenKind, tuple[Seqs, Seqs, Seqs]] = {}
        self._by_key: dict[tuple[bytes, BarrenKind], list[int]] | None = None  # places in the columns

    @classmethod
    def of(cls, feed: bytes, rows: Iterable[Row]) -> BarrenActs:
        """Make the columns of rows, by seq."""
        rows = list(rows)
        seqs = np.array([row.seq for row in rows], dtype=np.int64)
        says = np.array([row.says for row in rows], dtype=np.uint8)
        groups = b"".join(row.group for row in rows if row.says is BarrenKind.GROUP)
        return cls(feed, seqs, says, b"".join(row.key for row in rows), groups)

    def before(self, stop: int) -> BarrenActs:
        """Return the same without the acts from a seq on."""
        count = int(np.searchsorted(self.seqs, stop))
        groups = int(np.count_nonzero(self.says[:count] == BarrenKind.GROUP))
        keys = self.keys[: count * KEY_SIZE]
        return BarrenActs(self.feed, self.seqs[:count], self.says[:count], keys, self.groups[: groups * KEY_SIZE])

    def __len__(self) -> int:
        return len(self.seqs)

    def last(self, stop: int) -> int:
        """Return the seq of the last of them before `stop`; -1 if there is none."""
        place = int(np.searchsorted(self.seqs, stop))
        return int(self.seqs[place - 1]) if place else -1

    def __contains__(self, seq: int) -> bool:
        place = int(np.searchsorted(self.seqs, seq))
        return place < len(self.seqs) and int(self.seqs[place]) == seq

    def rows(self) -> Iterator[Row]:
        """Yield the acts one by one."""
        at = 0
        for place, (seq, number) in enumerate(zip(self.seqs.tolist(), self.says.tolist(), strict=True)):
            says, group = BarrenKind(number), b""
            if says is BarrenKind.GROUP:
                group, at = self.groups[at : at + KEY_SIZE], at + KEY_SIZE
            yield Row(seq, says, self.key(place), group)

    def key(self, place: int) -> bytes:
        """Return the subject, or the data feed, of the act at a place in the columns."""
        return self.keys[place * KEY_SIZE : (place + 1) * KEY_SIZE]

    def those(self, says: Sequence[BarrenKind], start: int, stop: int) -> list[int]:
        """Return the places of the acts in [start, stop) that say one of these."""
        low, high = (int(place) for place in np.searchsorted(self.seqs, (start, stop)))
        wanted = np.zeros(len(BarrenKind), dtype=np.bool_)
        wanted[list(says)] = True
        found: list[int] = (np.flatnonzero(wanted[self.says[low:high]]) + low).tolist()
        return found

    def seqs_of(self, says: Sequence[BarrenKind], start: int, stop: int) -> list[int]:
        """Return the seqs of the acts in [start, stop) that say one of these."""
        found: list[int] = self.seqs[self.those(says, start, stop)].tolist()
        return found

    def about(self, key: bytes, says: BarrenKind, stop: int) -> list[int]:
        """Return the seqs, below `stop`, of the acts about a key that say this."""
        if key not in self.keys:  # most keys; this reads bytes at the speed of memory
            return []
        places = self._index().get((key, says), [])
        seqs: list[int] = self.seqs[places].tolist()
        return seqs[: bisect_left(seqs, stop)]

    def group_at(self, seq: int) -> bytes:
        """Return the group of the admission to a group at a seq."""
        place = int(np.searchsorted(self.seqs, seq))
        at = int(np.count_nonzero(self.says[:place] == BarrenKind.GROUP)) * KEY_SIZE
        return self.groups[at : at + KEY_SIZE]

    def votes(self, says: BarrenKind) -> tuple[Seqs, Seqs, Seqs]:
        """Return the votes that say this: their seqs, the numbers of their epochs, and beginnings of keys for each."""
        if says not in self._votes:
            places = np.flatnonzero(self.says == says)
            keys = np.frombuffer(self.keys, dtype=np.uint8).reshape(-1, KEY_SIZE)[places]
            numbers = np.ascontiguousarray(keys[:, :_NUMBER_SIZE]).view("<i8").reshape(-1)
            signers = keys[:, _NUMBER_SIZE:].reshape(-1, SIGNATURES_MAX, _BEGINNING)
            self._votes[says] = self.seqs[places], numbers, beginnings(signers)
        return self._votes[says]

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


def beginnings(keys: npt.NDArray[np.uint8]) -> Seqs:
    """Return the first bytes of keys, in the last axis, as numbers."""
    found: Seqs = keys[..., :_BEGINNING].astype(np.int64) @ (1 << 8 * np.arange(_BEGINNING, dtype=np.int64))
    return found


def _ends(keys: bytes) -> Seqs:
    """Return the last bytes of keys, as numbers."""
    return np.frombuffer(keys, dtype="<i8").reshape(-1, KEY_SIZE // _NUMBER_SIZE)[:, -1].astype(np.int64)


def name_of(claim: EpochGenesis | EpochRefusal) -> bytes:
    """Return a name of the epoch that is declared or refused, in its term: as long as a key."""
    said = sha256(u64(claim.term) + claim.snapshot).digest()
    return u64(claim.number) + said[: KEY_SIZE - _NUMBER_SIZE]


def row_of(act: Act, *, repeated: bool = False, kind: BarrenKind | None = None) -> Row:
    """Return the row of a barren act; with the kind of one that is barren until an epoch is final."""
    claim = act.claim
    if isinstance(claim, EpochAttestation | EpochEndorsement):
        signers = sorted(act.signers) if kind is BarrenKind.COPIED_VOTE else ()
        key = claim.number.to_bytes(_NUMBER_SIZE, "little") + b"".join(signer[:_BEGINNING] for signer in signers)
        return Row(act.stamp.seq, kind or BarrenKind.NOTHING, key.ljust(KEY_SIZE, b"\0"))
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
