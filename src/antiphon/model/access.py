"""The access list of one item: the right to write to it, as a function of the changes, in any order of arrival.

An item begins open: everybody who may write in the party may write to it, and its list names its creator. A change
grants and revokes. It counts if its author is an owner of the party, or is named in the list at that position of the
total order. A revocation also gives a cut for each feed (rule 8): messages of a feed past its cut do not count, even
if they sort before the revocation. So nobody evades a revocation by writing into the past. Owners may revoke anybody.
Others may revoke everybody's right, their own, and that of those who were named later than they.

So a grant depends on older grants only. There are no coups and no cycles, and one pass in the total order settles all
grants. Three rules are needed for that:

- A revocation ends all grants of a name up to its position, not only the last one.
- A member who leaves does so by the grant that ends, or by an older one. In the first case the cuts bind the member's
  messages, but not the member's changes of the list: otherwise a change could undo itself.
- The number of changes, and of names in them, is limited for each feed. Otherwise a named member could use up the room
  that an owner needs, and anybody else could make the log, which is part of the item, too large to store.

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
from antiphon.core.reasons import Reason, because
from antiphon.core.stamp import Stamp

EVERYONE = bytes(32)
ACTS_MAX = 1000  # changes of one list by one feed; further ones are ignored
NAMES_MAX = 1000  # grants or revocations in one change
CUTS_MAX = 20_000  # about what a body holds
KEYS_MAX = 20_000  # names and cuts in the changes of one feed: from then on its changes are ignored
KEY_SIZE = 32
NOT_NAMED = because(Reason.NOT_NAMED, "the access list of this item does not name its writer")
NOT_THEIRS = because(Reason.NOT_THEIRS, "the access list of an item is changed by owners and by those it names")
TOO_MANY = because(
    Reason.ACCESS_BUDGET,
    f"its feed has changed the access list of this item {ACTS_MAX} times, or by {KEYS_MAX} names and cuts",
)
_OWNERS = Stamp(-1, b"", 0)  # the rank of owners: before every stamp
_NO_END = 1 << 64
_stamp = operator.attrgetter("stamp")

Cuts = tuple[tuple[bytes, int], ...]
T = TypeVar("T")


class Author(NamedTuple):
    """The author of a message, by the control state in its timeframe. Without credentials, the feed itself."""

    identity: bytes
    groups: tuple[bytes, ...] = ()
    owner: bool = False

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names by which a list can name this author: the identity, and its groups."""
        return self.identity, *self.groups


class Access(NamedTuple):
    """A change of an access list. Grants and revocations ascend. No message counts of a revoked feed without a cut."""

    grant: tuple[bytes, ...] = ()
    revoke: tuple[bytes, ...] = ()
    cuts: Cuts = ()

    def check(self) -> Access:
        """Raise `InvalidMutation` unless the change is in its canonical form."""
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
    """A change with its stamp and author."""

    stamp: Stamp
    author: Author
    access: Access

    @property
    def keys(self) -> int:
        """The number of names and cuts."""
        return sum(map(len, self.access))


@dataclass(slots=True)
class Grant:
    """A name in the list, from one position in the total order to another."""

    since: Stamp
    until: Stamp | None = None
    farewell: dict[bytes, int] | None = None  # the cuts of a member that left by this grant: they bind messages only

    def spans(self, stamp: Stamp) -> bool:
        """True if a position lies in the grant. The change that ends the grant does, for it may depend on it."""
        return self.since < stamp and (self.until is None or stamp <= self.until)

    def keeps(self, stamp: Stamp) -> bool:
        """True if a message lies inside the cuts of a member that left."""
        return self.farewell is None or stamp.seq < self.farewell.get(stamp.feed, 0)


class Ending(NamedTuple):
    """A revocation of a name that counts. It ends the grants up to its position that are younger than `rank`."""

    stamp: Stamp
    rank: Stamp
    cuts: dict[bytes, int]

    def ends(self, grant: Grant) -> bool:
        """True if the revocation ends this grant."""
        return self.rank < grant.since <= self.stamp


def _at(held: Sequence[Grant], stamp: Stamp) -> Grant | None:
    """Return the grant that may hold at a position: the last one that begins before it."""
    if held and held[-1].since < stamp:
        return held[-1]
    at = bisect.bisect_left(held, stamp, key=lambda grant: grant.since)
    return held[at - 1] if at else None


def _from(things: Sequence[T], start: int) -> Iterator[T]:
    """Iterate from an index on, without a copy."""
    return (things[at] for at in range(start, len(things)))


class AccessLog:
    """The changes of an access list by ascending stamp, and the grants that result from them."""

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
        self._counts: dict[bytes, int] = {}  # changes by feed
        self._keys: dict[bytes, int] = {}  # names and cuts in them, by feed
        self._last: dict[bytes, int] = {}  # the seq of the last change of each feed
        self._cuts: dict[Stamp, dict[bytes, int]] = {}  # the cuts of each change that counted
        for act in sorted(acts):
            if (not self.acts or act.stamp > self.acts[-1].stamp) and self._has_room(act):
                self._take(act)
                self.acts.append(act)
        self._grants: dict[bytes, list[Grant]] | None = None  # the grants of each name, in order; None: not settled
        self._endings: dict[bytes, list[Ending]] = {}  # the revocations of each name, by ascending stamp
        self._ranks: dict[Stamp, Stamp] = {}  # of changes that count: since when the author may change the list
        self._ends: dict[bytes, dict[tuple[Stamp, bytes], int]] = {}  # a cache: the cut by name, grant and feed

    def _has_room(self, act: Act) -> bool:
        """True if the limits of its feed admit a change.

        Feeds arrive in order, so all peers agree, and the log itself shows the counts. For owners only the number of
        changes is limited: they must never lack room.
        """
        feed = act.stamp.feed
        return self._counts.get(feed, 0) < ACTS_MAX and (act.author.owner or self._keys.get(feed, 0) < KEYS_MAX)

    def _take(self, act: Act) -> None:
        feed = act.stamp.feed
        self._counts[feed] = self._counts.get(feed, 0) + 1
        self._keys[feed] = self._keys.get(feed, 0) + (0 if act.author.owner else act.keys)
        self._last[feed] = max(act.stamp.seq, self._last.get(feed, 0))

    def add(self, act: Act) -> bool:
        """Add a change; adding it twice has no effect. True if anybody's right changed."""
        at = bisect.bisect_left(self.acts, act.stamp, key=lambda known: known.stamp)
        if (at < len(self.acts) and self.acts[at].stamp == act.stamp) or not self._has_room(act):
            return False
        grants = self._settled()
        rank = self._rank(act)
        past = rank is not None and self._reaches_back(act)
        self._take(act)
        self.acts.insert(at, act)
        if rank is None:
            return False  # it has no effect, so nothing is settled again: hostile changes must be cheap
        if at == len(self.acts) - 1 and not past:
            return self._append(act, rank)
        before, self._grants = (grants, self._endings), None
        return (self._settled(), self._endings) != before

    def __contains__(self, stamp: Stamp) -> bool:
        at = bisect.bisect_left(self.acts, stamp, key=lambda known: known.stamp)
        return at < len(self.acts) and self.acts[at].stamp == stamp

    def refusal(self, stamp: Stamp, author: Author) -> str:
        """Return the reason why a message does not count, or "". Changes of the list are judged by their own rule."""
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
        """Return the names in the list."""
        return {name for name, held in self._settled().items() if held[-1].until is None}

    def ever_named(self) -> set[bytes]:
        """Return the names that are or were in the list: a later revocation may tighten the cut of a former one."""
        return set(self._settled())

    def names(self) -> tuple[bytes, ...] | None:
        """Return the names in the list, ascending; None while it names everybody."""
        standing = self.standing()
        return None if EVERYONE in standing else tuple(sorted(standing))

    def unsettles(self, act: Act, frame: dict[bytes, Stamp]) -> bool:
        """True if a change that arrives now may alter the verdict on messages that were folded before.

        That can also happen through another change, whose validity it affects. Changes in the base of an epoch are in
        no frame, so all changes are checked.
        """
        if not frame:
            return False
        lengths = dict(act.access.cuts) if act.access.revoke else None
        stamps = [*frame.values(), *(known.stamp for known in self.acts if known.stamp != act.stamp)]
        return any(
            stamp > act.stamp or (lengths is not None and stamp.seq >= lengths.get(stamp.feed, 0)) for stamp in stamps
        )

    # -- deriving the grants

    def _settled(self) -> dict[bytes, list[Grant]]:
        if self._grants is None:
            self._grants, self._endings, self._ranks, self._ends = {}, {}, {}, {}
            self._settle()
        return self._grants

    def _settle(self) -> None:
        """Derive all grants in one pass. At each position all older grants are final: nothing younger affects them."""
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
        """Apply a change that is later than all others and revokes none of them. True if it changes any right."""
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
        """Record that a change counts, with its revocations."""
        self._ranks[act.stamp] = rank
        ending = Ending(act.stamp, rank, self._cuts_of(act)) if act.access.revoke else None
        for name in act.access.revoke:
            if name != EVERYONE and ending is not None:
                bisect.insort(self._endings.setdefault(name, []), ending, key=_stamp)

    def _open(self, name: bytes, since: Stamp, by_name: dict[bytes, list[Act]]) -> bool:
        """Open a grant for a name without one. Revocations that end it are known. Changes that depend on it count."""
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
        """Open or end the right of everybody. Anybody who may change the list may do so, as no change depends on it."""
        assert self._grants is not None
        changed = EVERYONE in act.access.grant and self._open_to_all(act.stamp)
        if EVERYONE in act.access.revoke:
            last = self._grants[EVERYONE][-1]
            last.until, changed = last.until or act.stamp, True
            self._endings.setdefault(EVERYONE, []).append(Ending(act.stamp, _OWNERS, self._cuts_of(act)))
            self._ends.pop(EVERYONE, None)
        return changed

    def _rank(self, act: Act) -> Stamp | None:
        """Return the stamp since which the author may change the list; `_OWNERS` for owners; None without the right."""
        grants = self._settled()
        if act.author.owner:
            return _OWNERS
        found = [(name, _at(grants.get(name, ()), act.stamp)) for name in act.author.names if name != EVERYONE]
        ranks = [grant.since for name, grant in found if grant is not None and self._holds(name, grant, act.stamp)]
        return min(ranks, default=None)

    def _holds(self, name: bytes, grant: Grant, stamp: Stamp) -> bool:
        """True if a grant covers a position, and the position lies inside the cuts of all its revocations."""
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
        """True if its cuts exclude changes that were made before."""
        cuts = self._cuts_of(act)
        return any(name != EVERYONE for name in act.access.revoke) and any(
            seq >= cuts.get(feed, 0) for feed, seq in self._last.items()
        )

    def __iter__(self) -> Iterator[Act]:
        return iter(self.acts)
