"""Acts that take, and are kept as columns. They are looked up, and few of them are ever made as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np

from antiphon.core.sightings import Sightings
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.act_columns import NARROWING, ActColumns, Numbers
from antiphon.halo.acts.barren_acts import Seqs
from antiphon.halo.credentials.claims import Cuts, Narrowing, Roles, with_implied


class NarrowingKey(NamedTuple):
    """The content of the narrowings in a run, without their cuts."""

    feed: bytes
    group: bytes  # b"": grants of any kind
    left: Roles  # implied ones included
    expired: bool
    echo: bool
    by_writer: bool  # signed by the device that wrote it
    by_subject: bool
    by_group: bool

    @classmethod
    def of(cls, act: Act, *, by_writer: bool) -> NarrowingKey:
        """Return the key of the run that a narrowing belongs to."""
        claim = act.claim
        assert isinstance(claim, Narrowing)
        return cls(
            act.stamp.feed,
            claim.group,
            with_implied(claim.roles),
            claim.expired,
            claim.echo,
            by_writer,
            claim.subject in act.signers,
            bool(claim.group) and claim.group in act.signers,
        )

    @property
    def own_word(self) -> bool:
        """True if the subject, or the group that is named, gives its own grants back."""
        return self.by_subject or self.by_group


@dataclass(frozen=True, slots=True)
class KeptActs:
    """Narrowings, ends of devices and erasures of a control feed that are kept as columns."""

    feed: bytes
    device: bytes  # whose feed it is
    acts: ActColumns
    seen: Sightings  # of the feed

    def about(self, subject: bytes, start: int, stop: int) -> dict[NarrowingKey, list[int]]:
        """Return the narrowings of a subject in the rows [start, stop): the rows of each run."""
        found: dict[NarrowingKey, list[int]] = defaultdict(list)
        keys: dict[int, NarrowingKey] = {}
        rows = self.acts.about(subject, NARROWING)
        rows = self.lasting(rows[(rows >= start) & (rows < stop)])
        words = self.acts.numbers[rows, 4]
        if len(rows) and bool((words == words[0]).all()):
            return {self._key(subject, int(rows[0])): rows.tolist()}
        for place, at in zip(rows.tolist(), words.tolist(), strict=True):
            if at not in keys:
                keys[at] = self._key(subject, place)
            found[keys[at]].append(place)
        return found

    def lasting(self, rows: Seqs) -> Seqs:
        """Return the rows without acts that had expired when they were written."""
        numbers = self.acts.numbers[rows]
        found: Seqs = rows[(numbers[:, 3] == 0) | (numbers[:, 3] > numbers[:, 2])]
        return found

    def by_word(self, rows: Seqs) -> Iterator[tuple[Act, Seqs]]:
        """Yield the rows, ascending, of acts that say the same, with the first of these acts."""
        words = self.acts.numbers[rows, 4]
        order = np.argsort(words, kind="stable")
        for same in np.split(rows[order], np.flatnonzero(np.diff(words[order])) + 1):
            if len(same):
                yield self.act(int(same[0])), same

    def says(self, says: int, start: int, stop: int) -> int:
        """Return how many rows belong to acts before `stop`; 0 if none in [start, stop) says this."""
        low, high = self.acts.places(start, stop)
        return high if bool((self.acts.says[low:high] == says).any()) else 0

    def _key(self, subject: bytes, place: int) -> NarrowingKey:
        word = self.acts.word(place)
        signers, group = word.signed_by(subject), word.group
        left, own = with_implied(word.roles), subject in signers
        by_group = bool(group) and group in signers
        return NarrowingKey(self.feed, group, left, word.expired, word.echo, self.device in signers, own, by_group)

    def before(self, stop: int) -> KeptActs:
        """Return the same without the acts from a seq on."""
        return replace(self, acts=self.acts.before(stop))

    def last(self, stop: int) -> int:
        """Return the seq of the last of them before a seq; 0 if there is none."""
        _, high = self.acts.places(0, stop)
        return int(self.acts.seqs[high - 1]) if high else 0

    def between(self, start: int, stop: int) -> Iterator[Act]:
        """Yield the acts in [start, stop)."""
        return self.acts.between(self.feed, self.seen, start, stop)

    def act(self, place: int) -> Act:
        """Make the act in a row."""
        return self.acts.act(self.feed, self.seen, place)


class LazyActs(Sequence[Act]):
    """The narrowings of a run, of which some are rows of columns: they are made when they are asked for."""

    __slots__ = ("_kept", "_made", "_others", "_rows")

    def __init__(self, kept: KeptActs, rows: list[int], others: list[Act], made: dict[int, Act]) -> None:
        self._kept = kept
        self._rows = rows  # of columns; -1, -2 and so on are the first of the others, the second and so on
        self._others = others
        self._made = made  # by row

    @classmethod
    def of(cls, kept: KeptActs, rows: Sequence[int], others: Sequence[Act]) -> tuple[LazyActs, list[int]]:
        """Return narrowings in the order of their seqs, and these: those in rows of columns, and others."""
        known = [*zip(kept.acts.seqs[rows].tolist(), rows, strict=True)]
        if others:
            known = sorted(known + [(act.stamp.seq, -1 - at) for at, act in enumerate(others)])
        return cls(kept, [row for _, row in known], list(others), {}), [seq for seq, _ in known]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Act: ...
    @overload
    def __getitem__(self, index: slice) -> list[Act]: ...
    def __getitem__(self, index: int | slice) -> Act | list[Act]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self._rows)))]
        row = self._rows[index]
        if row < 0:
            return self._others[-1 - row]
        if row not in self._made:
            self._made[row] = self._kept.act(row)
        return self._made[row]

    def insert(self, place: int, act: Act) -> None:
        """Add a narrowing at a place."""
        self._others.append(act)
        self._rows.insert(place, -len(self._others))

    def copy(self) -> LazyActs:
        """Return a list of its own."""
        return LazyActs(self._kept, list(self._rows), list(self._others), self._made)

    def parts(self) -> tuple[list[int], list[Act]]:
        """Return the rows of columns, and the others."""
        return [row for row in self._rows if row >= 0], self._others

    def cuts(self, feed: bytes) -> Numbers:
        """Return the length at which each of them cuts a feed; 0 if it does not name it."""
        others = np.array([cuts_of(act).get(feed, 0) for act in self._others], dtype=np.int64)
        rows = np.array(self._rows, dtype=np.int64)
        kept, found = rows >= 0, np.zeros(len(rows), dtype=np.int64)
        found[kept] = self._kept.acts.cuts(rows[kept], feed)
        found[~kept] = others[-1 - rows[~kept]]
        return found


def cuts_of(narrowing: Act) -> Cuts:
    assert isinstance(narrowing.claim, Narrowing)
    return narrowing.claim.cuts
