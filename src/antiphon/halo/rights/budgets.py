"""`Budgets`: how much one device, one identity and one control feed may give (rule 25; the numbers are `halo.limits`).

Everything is counted whether it is in force or not, where order is total: feeds by device and devices by identity, by
stamp; grants and admissions by their place in a control feed, from the last final cut on. What a final epoch holds
comes before what it does not, so a back-dated feed takes no place from it; what ended in one no longer counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise

from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import GRANTS, MEMBERS, BarrenActs, BarrenKind
from antiphon.halo.acts.grant import Owner
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind, MemberAdmission
from antiphon.halo.limits import DEVICE_FEEDS_MAX, EDITOR_ADMISSIONS_MAX, GIVEN_MAX, IDENTITY_DEVICES_MAX
from antiphon.halo.rights.floors import Floors

_Key = tuple[int, Stamp]  # the number of the first final epoch that holds an act, and its stamp


class Budgets:
    """Counts what the acts of a party give. `add` takes more acts, of each feed in its order."""

    def __init__(self) -> None:
        self.limited = True  # otherwise all that is given counts
        self._floors = Floors()
        self._given: dict[bytes, list[int]] = defaultdict(list)  # by control feed: grants
        self._admitting: dict[bytes, list[int]] = defaultdict(list)  # those of them that admit members
        self._opening: dict[bytes, list[int]] = defaultdict(list)  # by control feed: admissions of data feeds
        self._repeated: dict[bytes, list[int]] = defaultdict(list)  # by control feed: others' admissions of data feeds
        self._feeds: dict[tuple[bytes, FeedKind], dict[bytes, Act]] = defaultdict(dict)  # by device: oldest openings
        self._devices: dict[bytes, dict[bytes, None]] = defaultdict(dict)  # by identity
        self._first: dict[object, frozenset[bytes]] = {}  # the feeds of a device, or devices of an identity, that count
        self.crowded = False  # some device has as many feeds, or some identity as many devices, as count
        self.exhausted = False  # some feed has given more than counts

    def copy(self) -> Budgets:
        """Return counts of their own."""
        made = copy(self)
        made._given, made._admitting = _copied(self._given), _copied(self._admitting)
        made._opening, made._repeated = _copied(self._opening), _copied(self._repeated)
        made._feeds = defaultdict(dict, {key: dict(feeds) for key, feeds in self._feeds.items()})
        made._devices = defaultdict(dict, {key: dict(devices) for key, devices in self._devices.items()})
        made._first = dict(self._first)
        return made

    def give(self, act: Act) -> None:
        """Count an act that gives: a grant, or the admission of a data feed."""
        if isinstance(act.claim, FeedAdmission):  # apart, so that grants on a branch can be counted by themselves
            self._count(self._opening, act, GIVEN_MAX)
            return
        self._count(self._given, act, GIVEN_MAX)
        if isinstance(act.claim, MemberAdmission):
            self._count(self._admitting, act, EDITOR_ADMISSIONS_MAX)

    def repeat(self, act: Act) -> None:
        """Count the admission of a data feed that another device has signed. Its carrier gives nothing by it."""
        self._count(self._repeated, act, GIVEN_MAX)

    def _count(self, given: dict[bytes, list[int]], act: Act, most: int) -> None:
        seqs, seq = given[act.stamp.feed], act.stamp.seq
        if not seqs or seqs[-1] < seq:
            seqs.append(seq)
        elif seqs[place := bisect_left(seqs, seq)] != seq:  # one that an epoch held as a branch may be history now
            seqs.insert(place, seq)
        self.exhausted = self.exhausted or len(seqs) > most

    def set_aside(self, barren: BarrenActs, start: int, stop: int) -> None:
        """Count the barren acts of a feed in [start, stop)."""
        counted = (
            (self._given, GRANTS, GIVEN_MAX),
            (self._admitting, MEMBERS, EDITOR_ADMISSIONS_MAX),
            (self._opening, (BarrenKind.ADMISSION,), GIVEN_MAX),
            (self._repeated, (BarrenKind.REPEATED,), GIVEN_MAX),
        )
        for given, says, most in counted:
            fresh = barren.seqs_of(says, start, stop)
            if fresh:
                known = given[barren.feed]
                is_sorted = not known or known[-1] < fresh[0]
                known += fresh
                if not is_sorted:
                    known.sort()
                self.exhausted = self.exhausted or len(known) > most

    def open(self, feed: bytes, owner: Owner) -> bool:
        """Count a feed. True if its device, or its identity, has more than counts, so that others may count no more."""
        feeds, devices = self._feeds[owner.device, owner.kind], self._devices[owner.identity]
        known = feeds.get(feed)
        if known is None or owner.opened.stamp < known.stamp:
            feeds[feed] = owner.opened
        if owner.kind is FeedKind.CONTROL:
            devices[owner.device] = None
        self._first.clear()
        full = len(feeds) >= DEVICE_FEEDS_MAX or len(devices) >= IDENTITY_DEVICES_MAX
        self.crowded = self.crowded or full
        return len(feeds) > DEVICE_FEEDS_MAX or len(devices) > IDENTITY_DEVICES_MAX

    def stand_on(self, floors: Floors) -> bool:
        """Count from these epochs on. True if an answer may change by that."""
        self._floors = floors
        self._first.clear()
        return self.crowded or self.exhausted

    # -- questions

    def spent(self, act: Act, *, repeated: bool = False) -> bool:
        """True if the feed of an act that gives had given, or repeated, all that counts before it."""
        given = self._opening if isinstance(act.claim, FeedAdmission) else self._given
        return self.limited and self._before(self._repeated if repeated else given, act) >= GIVEN_MAX

    def grants_before(self, feed: bytes, seq: int) -> int:
        """Return how many grants a control feed has before a block."""
        return bisect_left(self._given.get(feed, ()), seq)

    def grants_spent(self, feed: bytes, seq: int, grants_before: Callable[[bytes, int], int]) -> bool:
        """True if a grant names nobody: since the last final cut before it, its feed has given all that counts."""
        since = grants_before(feed, self._floors.cut_before(feed, seq))
        return self.limited and grants_before(feed, seq) - since >= GIVEN_MAX

    def repeats_left(self, feed: bytes, seq: int) -> int:
        """Return how many admissions by other devices count, if a control feed repeats them from a block on."""
        seqs = self._repeated.get(feed, ())
        return GIVEN_MAX - len(seqs) + bisect_left(seqs, self._floors.cut_before(feed, seq) if self._floors else 0)

    def counting(self, feed: bytes, says: BarrenKind) -> Iterator[tuple[int, int]]:
        """Yield the ranges of blocks of a feed in which what its acts give counts: the first ones after each cut."""
        given = {BarrenKind.ADMISSION: self._opening, BarrenKind.REPEATED: self._repeated}.get(says, self._given)
        counted = [(given.get(feed, []), GIVEN_MAX)]
        if says is BarrenKind.EDITOR_SPENT:
            counted.append((self._admitting.get(feed, []), EDITOR_ADMISSIONS_MAX))
        cuts = {0, *(epoch.control.get(feed, -1) + 1 for epoch in self._floors.epochs)}
        for cut, end in pairwise((*sorted(cuts), NO_END)):
            lasts = [(seqs, bisect_left(seqs, cut) + most) for seqs, most in counted]
            yield cut, min(end, *(seqs[last] for seqs, last in lasts if last < len(seqs)), NO_END)

    def overspent_by_editor(self, act: Act) -> bool:
        """True if the feed of an admission had admitted as many members before it as an editor may."""
        return self.limited and self._before(self._admitting, act) >= EDITOR_ADMISSIONS_MAX

    def _before(self, given: Mapping[bytes, Sequence[int]], act: Act) -> int:
        """Return how many acts of a feed before this one count with it: those beyond the last final cut before it."""
        feed, seq = act.position
        seqs = given.get(feed, ())
        count = bisect_left(seqs, seq)
        return count - bisect_left(seqs, self._floors.cut_before(feed, seq)) if self._floors else count

    def room(self, device: bytes, kind: FeedKind) -> bool:
        """True if a device may open another feed of a kind."""
        feeds = self._feeds.get((device, kind), {})
        return len([feed for feed in feeds if feed not in self._floors.released]) < DEVICE_FEEDS_MAX

    def counts(self, feed: bytes, owner: Owner) -> bool:
        """True if a feed is one of the first of its device, and its device one of the first of its identity."""
        if not self.crowded or not self.limited:
            return True
        feeds = self._feeds.get((owner.device, owner.kind), {})
        devices = self._devices.get(owner.identity, {})
        if len(feeds) > DEVICE_FEEDS_MAX and feed not in self._first_feeds(owner.device, owner.kind):
            return False
        return len(devices) <= IDENTITY_DEVICES_MAX or owner.device in self._first_devices(owner.identity)

    def _first_feeds(self, device: bytes, kind: FeedKind) -> frozenset[bytes]:
        found = self._first.get((device, kind))
        if found is None:
            opened = {feed: self._key(act) for feed, act in self._feeds[device, kind].items()}
            found = self._first[device, kind] = _first(opened, self._floors.released, DEVICE_FEEDS_MAX)
        return found

    def _first_devices(self, identity: bytes) -> frozenset[bytes]:
        found = self._first.get(identity)
        if found is None:
            feeds = {device: self._feeds[device, FeedKind.CONTROL] for device in self._devices[identity]}
            opened = {device: min(map(self._key, acts.values())) for device, acts in feeds.items()}
            ended = {
                device: max(self._floors.released[feed] for feed in acts)
                for device, acts in feeds.items()
                if acts.keys() <= self._floors.released.keys()
            }
            found = self._first[identity] = _first(opened, ended, IDENTITY_DEVICES_MAX)
        return found

    def _key(self, act: Act) -> _Key:
        return self._floors.holding(act.position), act.stamp


def _copied(given: Mapping[bytes, list[int]]) -> dict[bytes, list[int]]:
    return defaultdict(list, {feed: list(seqs) for feed, seqs in given.items()})


def _first(opened: Mapping[bytes, _Key], ended: Mapping[bytes, int], most: int) -> frozenset[bytes]:
    """Return those that come after fewer than `most` others that had not ended in an epoch before theirs."""
    found: set[bytes] = set()
    before: list[bytes] = []
    epoch, count = -1, 0
    for name, key in sorted(opened.items(), key=lambda pair: pair[1]):
        if key[0] != epoch:
            epoch = key[0]
            count = sum(1 for other in before if ended.get(other, epoch) >= epoch)
        if count < most:
            found.add(name)
        before.append(name)
        count += ended.get(name, epoch) >= epoch
    return frozenset(found)
