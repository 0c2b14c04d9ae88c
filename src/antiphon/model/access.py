"""Who may write to one item: its access list, as a function of the changes to it, whatever the order of their arrival.

An item begins open: everybody who may write in the party may write to it, and its creator is named in its list. A
change grants and revokes, and counts if its author is an owner of the party or named in the list at that place of the
total order. A revocation also names a cut for each feed (rule 8): what its feed wrote past the cut does not count, even
where it sorts before the revocation, so nobody writes into the past to get round it. Owners may revoke anybody; others
only themselves, everybody, and those who were named later than they. So what a change does to the right of another
change leads from those named earlier to those named later, and never back: there are no coups and no circles.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from antiphon.core.errors import InvalidMutation
from antiphon.core.stamp import Stamp

EVERYONE = bytes(32)
ACTS_MAX = 1000  # changes of one item's list that are looked at
NAMES_MAX = 1000  # grants, revocations or cuts in one change
KEY_SIZE = 32
NOT_NAMED = "the access list of this item does not name its writer"
NOT_THEIRS = "the access list of an item is changed by owners and by those it names"
TOO_MANY = f"the access list of this item was changed more than {ACTS_MAX} times"

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
        for names in (self.grant, self.revoke, tuple(feed for feed, _ in self.cuts)):
            if len(names) > NAMES_MAX or any(len(name) != KEY_SIZE for name in names):
                raise InvalidMutation(f"a change of an access list has at most {NAMES_MAX} keys of {KEY_SIZE} bytes")
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

    def holds(self, stamp: Stamp, cuts: Iterable[dict[bytes, int]]) -> bool:
        inside = self.since < stamp and (self.until is None or stamp < self.until)
        return inside and all(stamp.seq < cut.get(stamp.feed, 0) for cut in cuts)


Grants = dict[bytes, list[Grant]]
Known = dict[tuple[bytes, Stamp], list[dict[bytes, int]]]  # the cuts of each grant, by name and beginning


class AccessLog:
    """The changes of an item's list by ascending stamp, and what follows from all of them."""

    __slots__ = ("_cuts", "_grants", "_verdicts", "acts", "creator", "genesis")

    def __init__(self, genesis: Stamp, creator: Author, acts: Iterable[Act] = ()) -> None:
        self.genesis = genesis
        self.creator = creator
        self.acts: list[Act] = sorted(acts)
        self._grants: Grants | None = None
        self._verdicts: dict[Stamp, str] = {}
        self._cuts: Known = {}

    def add(self, act: Act) -> bool:
        """Take a change; the same one twice is once. Whether anybody's right is another now."""
        at = bisect.bisect_left(self.acts, act.stamp, key=lambda known: known.stamp)
        if at < len(self.acts) and self.acts[at].stamp == act.stamp:
            return False
        before = self._settled()
        self.acts.insert(at, act)
        if at == len(self.acts) - 1 and self._rank(act, before, self._cuts) is None:
            self._verdicts[act.stamp] = NOT_THEIRS  # nothing follows from it: hostile ones must not be dear
            return False
        self._grants = None
        return self._settled() != before

    def refusal(self, stamp: Stamp, author: Author) -> str:
        """Why a message does not count by the list; empty if it does. A change of the list is judged as what it is."""
        grants = self._settled()
        at = bisect.bisect_left(self.acts, stamp, key=lambda known: known.stamp)
        if at < len(self.acts) and self.acts[at].stamp == stamp:
            return self._verdicts.get(stamp, "")
        if author.owner:
            return ""
        for name in (*author.names, EVERYONE):
            if any(grant.holds(stamp, grant.cuts) for grant in grants.get(name, ())):
                return ""
        return NOT_NAMED

    def standing(self) -> set[bytes]:
        """Who is named now."""
        return {name for name, grants in self._settled().items() if grants[-1].until is None}

    def names(self) -> tuple[bytes, ...] | None:
        """Who is named now, ascending; None while everybody is."""
        standing = self.standing()
        return None if EVERYONE in standing else tuple(sorted(standing))

    def unsettles(self, act: Act, frame: dict[bytes, Stamp]) -> bool:
        """Whether a change that comes now may decide anew about messages that were folded before."""
        lengths = dict(act.access.cuts)
        past = act.access.revoke and any(stamp.seq >= lengths.get(feed, 0) for feed, stamp in frame.items())
        return bool(past) or any(stamp > act.stamp for stamp in frame.values())

    def _settled(self) -> Grants:
        if self._grants is None:
            known: Known = {}
            grants, verdicts = self._round(known)
            for _ in range(len(self.acts) + 2):  # each round settles those named next; see the module's first words
                found = {(name, grant.since): grant.cuts for name in grants for grant in grants[name] if grant.cuts}
                if found == known:
                    break
                known = found
                grants, verdicts = self._round(known)
            self._grants, self._verdicts, self._cuts = grants, verdicts, known
        return self._grants

    def _round(self, known: Known) -> tuple[Grants, dict[Stamp, str]]:
        """Go through the changes in the total order, with the cuts that the round before has found."""
        grants: Grants = {EVERYONE: [Grant(self.genesis)]}
        if self.creator.identity != EVERYONE:
            grants[self.creator.identity] = [Grant(self.genesis)]
        verdicts: dict[Stamp, str] = {}
        taken = 0
        for act in self.acts:
            rank = self._rank(act, grants, known)
            if rank is None or taken >= ACTS_MAX:
                verdicts[act.stamp] = NOT_THEIRS if rank is None else TOO_MANY
                continue
            taken += 1
            for name in act.access.grant:
                held = grants.setdefault(name, [])
                if not held or held[-1].until is not None:
                    held.append(Grant(act.stamp))
            cuts = dict(act.access.cuts)
            for name in act.access.revoke:
                last = grants[name][-1] if name in grants else None
                if last is None or not (name == EVERYONE or name in act.author.names or rank < last.since):
                    continue
                last.until = last.until or act.stamp
                last.cuts.append(cuts)
        return grants, verdicts

    def _rank(self, act: Act, grants: Grants, known: Known) -> Stamp | None:
        """Since when its author may change the list; owners since before everything; None for nobody."""
        if act.author.owner:
            return Stamp(-1, b"", 0)
        found = [
            grant.since
            for name in act.author.names
            for grant in grants.get(name, ())
            if grant.holds(act.stamp, known.get((name, grant.since), ()))
        ]
        return min(found, default=None)

    def __iter__(self) -> Iterator[Act]:
        return iter(self.acts)
