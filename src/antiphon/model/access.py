"""Who may write to one item: its access list, as a function of the changes to it, whatever the order of their arrival.

An item begins open: everybody who may write in the party may write to it, and its creator is named in its list. A
change grants and revokes, and counts if its author is an owner of the party or named in the list at that place of the
total order. A revocation also names a cut for each feed (rule 8): what its feed wrote past the cut does not count, even
where it sorts before the revocation, so nobody writes into the past to get round it. Owners may revoke anybody; others
only everybody, themselves, and those who were named later than they.

So whether a grant stands depends on grants older than it, and on nothing else: there are no coups and no circles, and
one pass in the total order settles all. Three things are as they are for that. A revocation takes from all grants of a
name up to its place, not from the last one. Who leaves does so by the very grant that ends, or by an older one, and the
cuts named by the former bind one's messages, but not one's changes of the list: else a change could undo itself. And
how many changes are looked at, and how much is in them, is counted by feed: else whoever is named could use up what an
owner needs, and whoever is not could make the log, which is part of the item, too large to be kept.

>>> ada, bob, eve = (Author(name * 32) for name in (b"a", b"b", b"e"))
>>> at = lambda lamport, author: Stamp(lamport, author.identity, lamport)
>>> log = AccessLog(at(1, ada), ada)
>>> log.refusal(at(2, bob), bob)
''
>>> log.add(Act(at(3, ada), ada, Access(grant=(bob.identity,), revoke=(EVERYONE,), cuts=((bob.identity, 3),))))
True
>>> log.refusal(at(4, bob), bob), log.refusal(at(4, eve), eve)[:35]
('', 'the access list of this item does n')
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp

EVERYONE = bytes(32)
ACTS_MAX = 1000  # changes of one item's list by one feed that are looked at
NAMES_MAX = 1000  # grants or revocations in one change
CUTS_MAX = 20_000  # about what a body holds
KEYS_MAX = (
    20_000  # names and cuts in the changes of one feed: once it has as many, no more of its changes are looked at
)
KEY_SIZE = 32
NOT_NAMED = "the access list of this item does not name its writer"
NOT_THEIRS = "the access list of an item is changed by owners and by those it names"
TOO_MANY = f"its feed has changed the access list of this item {ACTS_MAX} times, or by {KEYS_MAX} names and cuts"
_OWNERS = Stamp(-1, b"", 0)  # since before everything
_NO_END = 1 << 64
_stamp = operator.attrgetter("stamp")

Cuts = tuple[tuple[bytes, int], ...]
T = TypeVar("T")


class Author(NamedTuple):
    """Whose a message is, by the control state in its own timeframe. Without credentials, a feed is its own author."""

    identity: bytes
    groups: tuple[bytes, ...] = ()
    owner: bool = False

    @property
    def names(self) -> tuple[bytes, ...]:
        return self.identity, *self.groups


class Access(NamedTuple):
    """A change of an access list. Grants and revocations ascend; a feed of theirs without a cut counts for nothing."""

    grant: tuple[bytes, ...] = ()
    revoke: tuple[bytes, ...] = ()
    cuts: Cuts = ()

    def check(self) -> Access:
        """Refuse, as `InvalidMutation`, what is not in its one form."""
        if not self.grant and not self.revoke:
            raise InvalidMutation("a change of an access list that changes nothing")
        feeds = tuple(feed for feed, _ in self.cuts)
        for names, most in ((self.grant, NAMES_MAX), (self.revoke, NAMES_MAX), (feeds, CUTS_MAX)):
            if len(names) > most or any(len(name) != KEY_SIZE for name in names):
                raise InvalidMutation(f"a change of an access list has at most {most} keys of {KEY_SIZE} bytes")
            if list(names) != sorted(set(names)):
                raise InvalidMutation("the keys of a change of an access list ascend, each once")
        return self


class Act(NamedTuple):
    """A change, with its place and author."""

    stamp: Stamp
    author: Author
    access: Access

    @property
    def keys(self) -> int:
        """How many names and cuts it has."""
        return sum(map(len, self.access))


@dataclass(slots=True)
class Grant:
    """A name in the list, from one place in the total order until another."""

    since: Stamp
    until: Stamp | None = None
    farewell: dict[bytes, int] | None = None  # the cuts of who left by this grant: for messages alone

    def spans(self, stamp: Stamp) -> bool:
        """Whether a place is in it. The change that ends it is, for it may rest on it."""
        return self.since < stamp and (self.until is None or stamp <= self.until)

    def keeps(self, stamp: Stamp) -> bool:
        return self.farewell is None or stamp.seq < self.farewell.get(stamp.feed, 0)


class Ending(NamedTuple):
    """A revocation that counts, of a name: it takes from the grants up to its place that are younger than `rank`."""

    stamp: Stamp
    rank: Stamp
    cuts: dict[bytes, int]

    def ends(self, grant: Grant) -> bool:
        return self.rank < grant.since <= self.stamp


def _at(held: Sequence[Grant], stamp: Stamp) -> Grant | None:
    """The grant that may hold at a place: the last one that begins before it."""
    if held and held[-1].since < stamp:
        return held[-1]
    at = bisect.bisect_left(held, stamp, key=lambda grant: grant.since)
    return held[at - 1] if at else None


def _from(things: Sequence[T], start: int) -> Iterator[T]:
    """What follows, without a copy of it."""
    return (things[at] for at in range(start, len(things)))


class AccessLog:
    """The changes of an item's list by ascending stamp, and what follows from all of them."""

    __slots__ = (
        "_counts",
        "_cuts",
        "_endings",
        "_ends",
        "_grants",
        "_keys",
        "_last",
        "_ranks",
        "acts",
        "creator",
        "genesis",
    )

    def __init__(self, genesis: Stamp, creator: Author, acts: Iterable[Act] = ()) -> None:
        self.genesis = genesis
        self.creator = creator
        self.acts: list[Act] = []
        self._counts: dict[bytes, int] = {}  # of changes, by feed
        self._keys: dict[bytes, int] = {}  # of what is in them, by feed
        self._last: dict[bytes, int] = {}  # the last change of each feed
        self._cuts: dict[Stamp, dict[bytes, int]] = {}  # of each change that counted
        for act in sorted(acts):
            if (not self.acts or act.stamp > self.acts[-1].stamp) and self._has_room(act):
                self._take(act)
                self.acts.append(act)
        self._grants: dict[bytes, list[Grant]] | None = None  # of each name, one after another; None: not settled
        self._endings: dict[bytes, list[Ending]] = {}  # of each name, by ascending stamp
        self._ranks: dict[Stamp, Stamp] = {}  # of each change that counts: since when its author may change the list
        self._ends: dict[bytes, dict[tuple[Stamp, bytes], int]] = {}  # by name, grant and feed, once asked for

    def _has_room(self, act: Act) -> bool:
        """Whether a change is among those of its feed that are looked at. Feeds come in order, so all peers agree, and
        the log itself tells. Of owners only the number counts: who is trusted with all must never lack room."""
        feed = act.stamp.feed
        return self._counts.get(feed, 0) < ACTS_MAX and (act.author.owner or self._keys.get(feed, 0) < KEYS_MAX)

    def _take(self, act: Act) -> None:
        feed = act.stamp.feed
        self._counts[feed] = self._counts.get(feed, 0) + 1
        self._keys[feed] = self._keys.get(feed, 0) + (0 if act.author.owner else act.keys)
        self._last[feed] = max(act.stamp.seq, self._last.get(feed, 0))

    def add(self, act: Act) -> bool:
        """Take a change; the same one twice is once. Whether anybody's right is another now."""
        at = bisect.bisect_left(self.acts, act.stamp, key=lambda known: known.stamp)
        if (at < len(self.acts) and self.acts[at].stamp == act.stamp) or not self._has_room(act):
            return False
        grants = self._settled()
        rank = self._rank(act)
        past = rank is not None and self._reaches_back(act)
        self._take(act)
        self.acts.insert(at, act)
        if rank is None:
            return False  # nothing follows from it, and all else is as it was: hostile ones must not be dear
        if at == len(self.acts) - 1 and not past:
            return self._append(act, rank)
        before, self._grants = (grants, self._endings), None
        return (self._settled(), self._endings) != before

    def __contains__(self, stamp: Stamp) -> bool:
        at = bisect.bisect_left(self.acts, stamp, key=lambda known: known.stamp)
        return at < len(self.acts) and self.acts[at].stamp == stamp

    def refusal(self, stamp: Stamp, author: Author) -> str:
        """Why a message does not count by the list; empty if it does. A change of the list is judged as what it is."""
        grants = self._settled()
        if stamp.seq <= self._last.get(stamp.feed, -1) and stamp in self:
            return "" if stamp in self._ranks else NOT_THEIRS
        if author.owner:
            return ""
        for name in (*author.names, EVERYONE):
            grant = _at(grants.get(name, ()), stamp)
            if grant is not None and self._holds(name, grant, stamp) and grant.keeps(stamp):
                return ""
        return NOT_NAMED

    def standing(self) -> set[bytes]:
        """Who is named now."""
        return {name for name, held in self._settled().items() if held[-1].until is None}

    def ever_named(self) -> set[bytes]:
        """Who is or was named: a cut that lets somebody write into the past is made good by another."""
        return set(self._settled())

    def names(self) -> tuple[bytes, ...] | None:
        """Who is named now, ascending; None while everybody is."""
        standing = self.standing()
        return None if EVERYONE in standing else tuple(sorted(standing))

    def unsettles(self, act: Act, frame: dict[bytes, Stamp]) -> bool:
        """Whether a change that comes now may decide anew about messages that were folded before.

        Also through another change, which it makes or ends the right to: one in the base of an epoch is in no frame.
        """
        if not frame:
            return False
        lengths = dict(act.access.cuts) if act.access.revoke else None
        stamps = [*frame.values(), *(known.stamp for known in self.acts if known.stamp != act.stamp)]
        return any(
            stamp > act.stamp or (lengths is not None and stamp.seq >= lengths.get(stamp.feed, 0)) for stamp in stamps
        )

    # -- what follows from the changes

    def _settled(self) -> dict[bytes, list[Grant]]:
        if self._grants is None:
            self._grants, self._endings, self._ranks, self._ends = {}, {}, {}, {}
            self._settle()
        return self._grants

    def _settle(self) -> None:
        """One pass: at each place all older grants are settled, to their ends, for nothing younger bears on them."""
        by_name: dict[bytes, list[Act]] = {}
        for act in self.acts:
            if act.author.owner:
                self._count(act, _OWNERS)
            for name in act.author.names:
                by_name.setdefault(name, []).append(act)
        self._open(self.creator.identity, self.genesis, by_name)
        for act in self.acts:
            for name in act.access.grant if act.stamp in self._ranks else ():
                self._open(name, act.stamp, by_name)
        self._open_to_all(self.genesis)
        for act in self.acts:
            if act.stamp in self._ranks:
                self._take_for_all(act)

    def _append(self, act: Act, rank: Stamp) -> bool:
        """Let a change count that is later than all others, and undoes none of them; whether it says anything new."""
        grants = self._settled()
        changed = False
        self._count(act, rank)
        for name in act.access.revoke:
            last = grants[name][-1] if name in grants and name != EVERYONE else None
            self._ends.pop(name, None)
            if last is not None and rank < last.since:
                last.until, changed = last.until or act.stamp, True
            elif last is not None and act.author.identity == name and self._holds(name, last, act.stamp):
                last.until, last.farewell, changed = act.stamp, self._cuts_of(act), True
        for name in act.access.grant:
            changed = self._open(name, act.stamp, {}) or changed
        return self._take_for_all(act) or changed

    def _count(self, act: Act, rank: Stamp) -> None:
        """A change counts: what it revokes, whenever that was named, ends."""
        self._ranks[act.stamp] = rank
        ending = Ending(act.stamp, rank, self._cuts_of(act)) if act.access.revoke else None
        for name in act.access.revoke:
            if name != EVERYONE and ending is not None:
                bisect.insort(self._endings.setdefault(name, []), ending, key=_stamp)

    def _open(self, name: bytes, since: Stamp, by_name: dict[bytes, list[Act]]) -> bool:
        """Name somebody who is not named; what ends that is known already. The changes that rest on it count."""
        assert self._grants is not None
        held = self._grants.get(name, [])
        if name == EVERYONE or (held and (held[-1].until is None or held[-1].until > since)):
            return False
        grant = Grant(since)
        self._grants.setdefault(name, held).append(grant)
        endings = self._endings.get(name, [])
        later = _from(endings, bisect.bisect_left(endings, since, key=_stamp))
        grant.until = next((ending.stamp for ending in later if ending.ends(grant)), None)
        acts = by_name.get(name, [])
        for act in _from(acts, bisect.bisect_right(acts, since, key=_stamp)):
            if not grant.spans(act.stamp):
                break
            if not self._holds(name, grant, act.stamp):
                continue
            if act.stamp not in self._ranks:
                self._count(act, since)
            if act.author.identity == name and name in act.access.revoke and self._ranks[act.stamp] >= since:
                grant.until, grant.farewell = act.stamp, self._cuts_of(act)
        return True

    def _open_to_all(self, since: Stamp) -> bool:
        assert self._grants is not None
        held = self._grants.setdefault(EVERYONE, [])
        if held and held[-1].until is None:
            return False
        held.append(Grant(since))
        return True

    def _take_for_all(self, act: Act) -> bool:
        """Everybody's right is given and ended by anybody who may change the list, for no change rests on it."""
        assert self._grants is not None
        changed = EVERYONE in act.access.grant and self._open_to_all(act.stamp)
        if EVERYONE in act.access.revoke:
            last = self._grants[EVERYONE][-1]
            last.until, changed = last.until or act.stamp, True
            self._endings.setdefault(EVERYONE, []).append(Ending(act.stamp, _OWNERS, self._cuts_of(act)))
            self._ends.pop(EVERYONE, None)
        return changed

    def _rank(self, act: Act) -> Stamp | None:
        """Since when its author may change the list; owners always could; None for nobody."""
        grants = self._settled()
        if act.author.owner:
            return _OWNERS
        found = [(name, _at(grants.get(name, ()), act.stamp)) for name in act.author.names if name != EVERYONE]
        ranks = [grant.since for name, grant in found if grant is not None and self._holds(name, grant, act.stamp)]
        return min(ranks, default=None)

    def _holds(self, name: bytes, grant: Grant, stamp: Stamp) -> bool:
        """Whether a grant reaches a place, and that is inside all cuts of those who could revoke it."""
        if not grant.spans(stamp):
            return False
        endings = self._endings.get(name)
        if not endings:
            return True
        ends = self._ends.setdefault(name, {})
        end = ends.get((grant.since, stamp.feed))
        if end is None:
            cuts = (ending.cuts.get(stamp.feed, 0) for ending in endings if ending.ends(grant))
            end = ends[grant.since, stamp.feed] = min(cuts, default=_NO_END)
        return stamp.seq < end

    def _cuts_of(self, act: Act) -> dict[bytes, int]:
        known = self._cuts.get(act.stamp)
        if known is None:
            known = self._cuts[act.stamp] = dict(act.access.cuts)
        return known

    def _reaches_back(self, act: Act) -> bool:
        """Whether it cuts changes that were made before."""
        cuts = self._cuts_of(act)
        return any(name != EVERYONE for name in act.access.revoke) and any(
            seq >= cuts.get(feed, 0) for feed, seq in self._last.items()
        )

    def __iter__(self) -> Iterator[Act]:
        return iter(self.acts)
