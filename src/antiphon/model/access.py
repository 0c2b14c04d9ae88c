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
how many changes are looked at is counted by feed: else whoever is named could use up what an owner needs.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp

EVERYONE = bytes(32)
ACTS_MAX = 1000  # changes of one item's list by one feed that are looked at
NAMES_MAX = 1000  # grants or revocations in one change
CUTS_MAX = 20_000  # about what a body holds
KEY_SIZE = 32
NOT_NAMED = "the access list of this item does not name its writer"
NOT_THEIRS = "the access list of an item is changed by owners and by those it names"
TOO_MANY = f"its feed has changed the access list of this item {ACTS_MAX} times before"
_OWNERS = Stamp(-1, b"", 0)  # since before everything

Cuts = tuple[tuple[bytes, int], ...]


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


@dataclass(slots=True)
class Grant:
    """A name in the list, from one place in the total order until another."""

    since: Stamp
    until: Stamp | None = None
    cuts: list[dict[bytes, int]] = field(default_factory=list)
    farewell: dict[bytes, int] | None = None  # the cuts of who left by this grant: for messages alone
    _ends: dict[bytes, int] = field(default_factory=dict, compare=False)  # the least cut of each feed, once asked for

    def holds(self, stamp: Stamp) -> bool:
        """Whether it gives its name the right to a change of the list."""
        if not self.cuts:
            return self.since < stamp and (self.until is None or stamp <= self.until)
        end = self._ends.get(stamp.feed)
        if end is None:
            end = self._ends[stamp.feed] = min(cut.get(stamp.feed, 0) for cut in self.cuts)
        return self.since < stamp and (self.until is None or stamp <= self.until) and stamp.seq < end

    def holds_message(self, stamp: Stamp) -> bool:
        return self.holds(stamp) and (self.farewell is None or stamp.seq < self.farewell.get(stamp.feed, 0))

    def end(self, act: Act) -> None:
        self.until = act.stamp if self.until is None else min(self.until, act.stamp)
        self.cuts.append(dict(act.access.cuts))
        self._ends.clear()

    def leave(self, act: Act) -> None:
        self.until = act.stamp
        self.farewell = dict(act.access.cuts)


Grants = dict[bytes, list[Grant]]  # of each name, one after another


def _at(held: Sequence[Grant], stamp: Stamp) -> Grant | None:
    """The grant that may hold at a place: the last one that begins before it."""
    if held and held[-1].since < stamp:
        return held[-1]
    at = bisect.bisect_left(held, stamp, key=lambda grant: grant.since)
    return held[at - 1] if at else None


class AccessLog:
    """The changes of an item's list by ascending stamp, and what follows from all of them."""

    __slots__ = ("_counts", "_grants", "_last", "_verdicts", "acts", "creator", "genesis")

    def __init__(self, genesis: Stamp, creator: Author, acts: Iterable[Act] = ()) -> None:
        self.genesis = genesis
        self.creator = creator
        self.acts: list[Act] = []
        self._counts: dict[bytes, int] = {}
        self._last: dict[bytes, int] = {}  # the last change of each feed
        for act in sorted(acts):
            if (not self.acts or act.stamp > self.acts[-1].stamp) and self._counted(act.stamp):
                self.acts.append(act)
        self._grants: Grants | None = None
        self._verdicts: dict[Stamp, str] = {}

    def _counted(self, stamp: Stamp) -> bool:
        """Whether a change is among those of its feed that are looked at. Feeds come in order."""
        count = self._counts.get(stamp.feed, 0)
        if count >= ACTS_MAX:
            return False
        self._counts[stamp.feed] = count + 1
        self._last[stamp.feed] = max(stamp.seq, self._last.get(stamp.feed, 0))
        return True

    def add(self, act: Act) -> bool:
        """Take a change; the same one twice is once. Whether anybody's right is another now."""
        at = bisect.bisect_left(self.acts, act.stamp, key=lambda known: known.stamp)
        if at < len(self.acts) and self.acts[at].stamp == act.stamp:
            return False
        before = self._settled()
        past = self._reaches_back(act)
        if not self._counted(act.stamp):
            return False
        self.acts.insert(at, act)
        rank = self._rank(act)
        if rank is None:
            self._verdicts[act.stamp] = NOT_THEIRS  # nothing follows from it: hostile ones must not be dear
            return False
        if at == len(self.acts) - 1 and not past:
            return self._append(act, rank)
        self._grants = None
        return self._settled() != before

    def __contains__(self, stamp: Stamp) -> bool:
        at = bisect.bisect_left(self.acts, stamp, key=lambda known: known.stamp)
        return at < len(self.acts) and self.acts[at].stamp == stamp

    def refusal(self, stamp: Stamp, author: Author) -> str:
        """Why a message does not count by the list; empty if it does. A change of the list is judged as what it is."""
        grants = self._settled()
        if stamp.seq <= self._last.get(stamp.feed, -1) and stamp in self:
            return self._verdicts.get(stamp, "")
        if author.owner:
            return ""
        for name in (*author.names, EVERYONE):
            grant = _at(grants.get(name, ()), stamp)
            if grant is not None and grant.holds_message(stamp):
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
        """Whether a change that comes now may decide anew about messages that were folded before."""
        lengths = dict(act.access.cuts)
        past = act.access.revoke and any(stamp.seq >= lengths.get(feed, 0) for feed, stamp in frame.items())
        return bool(past) or any(stamp > act.stamp for stamp in frame.values())

    # -- what follows from the changes

    def _settled(self) -> Grants:
        if self._grants is None:
            self._grants, self._verdicts = {EVERYONE: [Grant(self.genesis)]}, {}
            self._settle()
        return self._grants

    def _settle(self) -> None:
        """One pass: at each place all older grants are settled, to their ends, for nothing younger bears on them."""
        revoking: dict[bytes, list[Act]] = {}
        for act in self.acts:
            for name in act.access.revoke:
                revoking.setdefault(name, []).append(act)
        if self.creator.identity != EVERYONE:
            self._open(self.creator.identity, self.genesis, revoking.get(self.creator.identity, ()))
        for act in self.acts:
            if self._rank(act) is None:
                self._verdicts[act.stamp] = NOT_THEIRS
                continue
            for name in act.access.grant:
                self._open(name, act.stamp, revoking.get(name, ()))
            self._close(act)

    def _append(self, act: Act, rank: Stamp) -> bool:
        """Let a change count that is later than all others, and undoes none of them; whether it says anything new."""
        grants = self._settled()
        changed = False
        for name in act.access.revoke:
            for grant in grants.get(name, ()) if name != EVERYONE else ():
                changed = self._narrow(grant, name, act, rank) or changed
        for name in act.access.grant:
            changed = self._open(name, act.stamp, [act] if name in act.access.revoke else ()) or changed
        return self._close(act) or changed

    def _open(self, name: bytes, since: Stamp, revoking: Sequence[Act]) -> bool:
        """Name somebody who is not named; what ends that is known already."""
        assert self._grants is not None
        held = self._grants.setdefault(name, [])
        if held and (held[-1].until is None or held[-1].until > since):
            return False
        grant = Grant(since)
        later = revoking[bisect.bisect_left(revoking, since, key=lambda act: act.stamp) :] if name != EVERYONE else ()
        ranked = [(act, self._rank(act)) for act in later]
        for act, rank in ranked:
            if rank is not None and rank < since:
                grant.end(act)
        held.append(grant)
        for act, rank in ranked:
            if (rank is None or rank >= since) and act.author.identity == name and grant.holds(act.stamp):
                grant.leave(act)
        return True

    def _narrow(self, grant: Grant, name: bytes, act: Act, rank: Stamp) -> bool:
        if rank < grant.since:
            grant.end(act)
            return True
        if act.author.identity == name and grant.holds(act.stamp):
            grant.leave(act)
            return True
        return False

    def _close(self, act: Act) -> bool:
        """Everybody's right is ended by anybody who may change the list: no change of it rests on that right."""
        assert self._grants is not None
        if EVERYONE not in act.access.revoke:
            return False
        for grant in self._grants[EVERYONE]:
            grant.end(act)
        return True

    def _rank(self, act: Act) -> Stamp | None:
        """Since when its author may change the list, by the grants so far; owners always could; None for nobody."""
        assert self._grants is not None
        if act.author.owner:
            return _OWNERS
        rank: Stamp | None = None
        for name in act.author.names:
            grant = _at(self._grants.get(name, ()), act.stamp) if name != EVERYONE else None
            if grant is not None and grant.holds(act.stamp) and (rank is None or grant.since < rank):
                rank = grant.since
        return rank

    def _reaches_back(self, act: Act) -> bool:
        """Whether it cuts changes that were made before."""
        cuts = dict(act.access.cuts)
        return any(name != EVERYONE for name in act.access.revoke) and any(
            seq >= cuts.get(feed, 0) for feed, seq in self._last.items()
        )

    def __iter__(self) -> Iterator[Act]:
        return iter(self.acts)
