"""Runs: grants, or narrowings, of one feed that say the same.

What a feed has seen only grows, and so do the stamps of its blocks. So the grants of a run that a place has seen are
its first ones, and the narrowings of a run that have seen a grant are its last ones: one bisection answers for all.
However often a member says the same, questions about it cost little.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.act_columns import NARROWING, Numbers
from antiphon.halo.acts.grant import expired, given, subject_of
from antiphon.halo.credentials.claims import GroupAdmission, MemberAdmission, Narrowing, Position, Roles
from antiphon.halo.rights.kept_acts import KeptActs, LazyActs, NarrowingKey, cuts_of

_Key = TypeVar("_Key")


def group_of(grant: Act) -> bytes:
    """Return the group that a grant leads into; b"" if it gives roles itself."""
    return grant.claim.group if isinstance(grant.claim, GroupAdmission) else b""


class GrantKey(NamedTuple):
    """The content of the grants in a run."""

    feed: bytes
    group: bytes
    given: Roles
    expires_ms: int
    is_group: bool
    own_word: bool  # signed by the key of the group

    @classmethod
    def of(cls, grant: Act) -> GrantKey:
        """Return the key of the run that a grant belongs to."""
        claim, group = grant.claim, group_of(grant)
        is_group = isinstance(claim, MemberAdmission | GroupAdmission) and claim.is_group
        return cls(grant.stamp.feed, group, given(grant), grant.expires_ms, is_group, group in grant.signers)


class Run(Generic[_Key]):
    """Acts of one feed with the same content, in the order of the feed, which is that of their stamps."""

    __slots__ = ("acts", "feed", "key", "seqs")

    def __init__(self, key: _Key, feed: bytes) -> None:
        self.key = key
        self.feed = feed
        self.acts: list[Act] | LazyActs = []
        self.seqs: list[int] = []

    def add(self, act: Act) -> None:
        """Add an act, mostly the next one."""
        place = len(self.seqs)
        if place and self.seqs[-1] > act.stamp.seq:  # it was set aside
            place = self.before(act.stamp.seq)
        self.acts.insert(place, act)
        self.seqs.insert(place, act.stamp.seq)

    def cut(self, seq: int) -> None:
        """Remove the acts from a block of their feed on."""
        count = self.before(seq)
        if count < len(self.seqs):
            self.acts, self.seqs = self.acts[:count], self.seqs[:count]

    def keep(self, kept: KeptActs, places: Sequence[int]) -> None:
        """Add narrowings that are kept as columns, by their rows."""
        rows, others = self.acts.parts() if isinstance(self.acts, LazyActs) else ([], self.acts)
        self.acts, self.seqs = LazyActs.of(kept, rows + list(places), others)

    def cuts(self, feed: bytes) -> Numbers:
        """Return the length at which each narrowing of the run cuts a feed; 0 if it does not name it."""
        if isinstance(self.acts, LazyActs):
            return self.acts.cuts(feed)
        return np.array([cuts_of(act).get(feed, 0) for act in self.acts], dtype=np.int64)

    def copy(self) -> Run[_Key]:
        """Return a run of its own."""
        made = Run(self.key, self.feed)
        made.acts, made.seqs = self.acts.copy(), list(self.seqs)
        return made

    def seen(self, place: Place) -> int:
        """Return how many of the acts a place has seen."""
        return bisect_left(self.seqs, place.reach(self.feed))

    def before(self, seq: int) -> int:
        """Return how many of the acts are before a block of their feed."""
        return bisect_left(self.seqs, seq)

    def older(self, limit: Stamp | None) -> int:
        """Return how many of the acts are older than a stamp."""
        if limit is None or not self.acts or self.acts[-1].stamp < limit:  # as for a grant that is just being judged
            return len(self.acts)
        return bisect_left(self.acts, limit, key=_stamp)

    def upto(self, stamp: Stamp | None) -> int:
        """Return how many of the acts are not younger than a stamp, if any."""
        return 0 if stamp is None else bisect_right(self.acts, stamp, key=_stamp)

    def seeing(self, position: Position) -> int:
        """Return the index of the first act that has seen a position."""
        if position.feed == self.feed:
            return bisect_right(self.seqs, position.seq)
        return bisect_left(self.acts, True, key=lambda act: act.place.sees(position))


GrantRun = Run[GrantKey]
NarrowingRun = Run[NarrowingKey]


class GrantIndex:
    """Grants by subject: all of them, and the valid ones in runs."""

    def __init__(self) -> None:
        self.all: dict[bytes, list[Act]] = {}  # by subject, oldest first
        self.expiring = False
        self.copies: dict[bytes, list[Act]] = defaultdict(list)  # admissions with a group's word, by digest
        self._said: dict[bytes, dict[tuple[bytes, bytes], Run[None]]] = {}
        self._valid: dict[bytes, dict[GrantKey, GrantRun]] = {}
        self._own: set[bytes] = set()  # subjects whose runs are shared with no copy

    def copy(self) -> GrantIndex:
        """Return an index of its own. Both copy the runs of a subject when they add to them."""
        made = GrantIndex()
        made.all, made.expiring, made._said, made._valid = (
            dict(self.all),
            self.expiring,
            dict(self._said),
            dict(self._valid),
        )
        made.copies = defaultdict(list, {digest: list(grants) for digest, grants in self.copies.items()})
        self._own = set()
        return made

    def _own_runs(self, subject: bytes) -> None:
        if subject not in self._own:
            self._own.add(subject)
            self.all[subject] = list(self.all.get(subject, ()))
            self._said[subject] = {key: run.copy() for key, run in self._said.get(subject, {}).items()}
            if subject in self._valid:
                self._valid[subject] = {key: run.copy() for key, run in self._valid[subject].items()}

    def add(self, grant: Act) -> None:
        """Take a grant, valid or void."""
        subject, group, feed = subject_of(grant), group_of(grant), grant.stamp.feed
        self._own_runs(subject)
        insort(self.all[subject], grant, key=_stamp)
        self.expiring = self.expiring or bool(grant.expires_ms)
        if group in grant.signers:
            insort(self.copies[grant.digest], grant, key=_stamp)
        self._said[subject].setdefault((group, feed), Run(None, feed)).add(grant)

    def seen_last(self, subject: bytes, group: bytes, place: Place) -> Iterator[Act]:
        """Yield the last grant to a subject (into one group, or of any kind) that a place has seen in each feed."""
        for (into, _), run in self._said.get(subject, {}).items():
            count = run.seen(place) if group in (b"", into) else 0
            if count:
                yield run.acts[count - 1]

    def clear(self) -> None:
        """Forget which grants are valid."""
        self._valid.clear()

    def settle(self, grant: Act) -> None:
        """Take a valid grant. They come oldest first."""
        key = GrantKey.of(grant)
        self._own_runs(subject_of(grant))
        self._valid.setdefault(subject_of(grant), {}).setdefault(key, Run(key, key.feed)).add(grant)

    def unsettle(self, grant: Act) -> None:
        """Forget that a grant is valid, and those that follow it in its run."""
        subject, key = subject_of(grant), GrantKey.of(grant)
        if key in self._valid.get(subject, ()):
            self._own_runs(subject)
            run = self._valid[subject][key]
            run.cut(grant.stamp.seq)
            if not run.seqs:
                del self._valid[subject][key]

    def runs(self, subject: bytes) -> Iterable[GrantRun]:
        """Return the valid grants to a subject."""
        found = self._valid.get(subject)
        return () if found is None else found.values()


class NarrowingIndex:
    """Narrowings by subject, in runs."""

    def __init__(self) -> None:
        self._runs: dict[bytes, dict[NarrowingKey, NarrowingRun]] = {}
        self._own: set[bytes] = set()  # subjects whose runs are shared with no copy
        self._kept: list[tuple[KeptActs, int, int]] = []  # columns, of which the rows in [low, high) count
        self._counts: dict[bytes, int] = {}  # by feed: the first rows that count
        self._taken: dict[bytes, int] = {}  # by subject: how many of these ranges are in runs

    def copy(self) -> NarrowingIndex:
        """Return an index of its own. Both copy the runs of a subject when they add to them."""
        made = NarrowingIndex()
        made._runs, self._own = dict(self._runs), set()
        made._kept, made._counts, made._taken = list(self._kept), dict(self._counts), dict(self._taken)
        return made

    def __bool__(self) -> bool:
        return bool(self._runs or self._kept)

    def keep(self, kept: KeptActs, start: int, stop: int) -> bool:
        """Take narrowings of a feed in [start, stop) that are kept as columns. False if there are none."""
        count, before = kept.says(NARROWING, start, stop), self._counts.get(kept.feed, 0)
        if count > before:
            self._kept.append((kept, before, count))
            self._counts[kept.feed] = count
        return count > 0

    def add(self, act: Act, *, by_writer: bool) -> None:
        """Take a narrowing. One that had expired when it was written binds nothing."""
        key = NarrowingKey.of(act, by_writer=by_writer)
        if isinstance(act.claim, Narrowing) and not expired(act):
            self._own_runs(act.claim.subject).setdefault(key, Run(key, key.feed)).add(act)

    def _own_runs(self, subject: bytes) -> dict[NarrowingKey, NarrowingRun]:
        if subject not in self._own:
            self._own.add(subject)
            self._runs[subject] = {key: run.copy() for key, run in self._runs.get(subject, {}).items()}
        return self._runs[subject]

    def runs(self, subject: bytes) -> Iterable[NarrowingRun]:
        """Return the narrowings of a subject."""
        taken = self._taken.get(subject, 0)
        if taken < len(self._kept):
            self._taken[subject] = len(self._kept)
            for kept, low, high in self._kept[taken:]:
                for key, places in kept.about(subject, low, high).items():
                    self._own_runs(subject).setdefault(key, Run(key, kept.feed)).keep(kept, places)
        found = self._runs.get(subject)
        return () if found is None else found.values()

    def of(self, grant: Act) -> Iterator[NarrowingRun]:
        """Yield the narrowings that mean a grant, if they have seen it."""
        group = group_of(grant)
        for run in self.runs(subject_of(grant)):
            if run.key.group in (b"", group):
                yield run


def _stamp(act: Act) -> Stamp:
    return act.stamp
