"""`Authority`: who may do what, at any place in any feed, as a function of the set of acts alone.

The rule in short (docs/design/parties.md has it in full, with the proof that it ends):

- A *grant* (party genesis, member admission, group admission) counts where it is seen, if its issuer had the right in
  its own place.
- A *narrowing* names a subject, and means all grants to it that it has seen. It names a cut for each feed. It binds a
  grant only if its issuer's own right rests on older grants, by stamp, or if the grant's subject signed it itself. It
  then counts for every block that has seen it, and for every block past the cut, whether seen or not.
- So every question about a grant leads only to questions about older grants: there are no cycles, no back-dated
  coups, no mutual revocations, and the order of arrival does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain

from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import BarrenActs
from antiphon.halo.acts.grant import ANY, Owner, expired, giving
from antiphon.halo.credentials.claims import (
    OWNERS,
    Cuts,
    EpochAct,
    Equivocated,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    PartyGenesis,
    Policy,
    Position,
    Role,
    Roles,
)
from antiphon.halo.rights.answer_cache import Answers
from antiphon.halo.rights.authorship import author_at, erased_in
from antiphon.halo.rights.barren import BarrenIndex
from antiphon.halo.rights.feed_ends import ending
from antiphon.halo.rights.feed_owners import FeedOwners
from antiphon.halo.rights.floors import Floors
from antiphon.halo.rights.grant_checks import judge_grant
from antiphon.halo.rights.inheritance import cuts_at, device_end, echoed_cuts, hear_echoes
from antiphon.halo.rights.judging_order import STAMP, JudgingOrder
from antiphon.halo.rights.kept_acts import KeptActs
from antiphon.halo.rights.narrowings import Binding, Ends, left_at, left_of
from antiphon.halo.rights.policies import PolicyIndex, Tighter, first_tightened, policy_at
from antiphon.halo.rights.runs import GrantIndex, GrantRun, NarrowingIndex, NarrowingRun, group_of
from antiphon.halo.rights.takings import DeviceEnds, Erasures

_NOBODY: Roles = frozenset()


class Authority:
    """Answers questions about rights over a set of acts. `add` takes more acts."""

    def __init__(self, party: bytes, genesis_feed: bytes, parent: Authority | None = None, version: int = 0) -> None:
        self._party = party
        self.genesis_feed = genesis_feed
        self.genesis: Act | None = None
        self.parent = parent  # of a child: its grants and narrowings count here, too
        self.feeds = FeedOwners()
        self.budgets = self.feeds.budgets
        self.granted = GrantIndex()
        self.narrowings = NarrowingIndex()
        self.policies = PolicyIndex()
        self.forks: dict[bytes, dict[Position | None, int]] = defaultdict(dict)  # feed → report → common blocks
        self.forks_moved = False  # since somebody looked at them, and has set this to False
        self.fork_ends: dict[bytes, int] = {}  # where forked feeds end; not before what a final epoch holds
        self.floors = Floors()
        self._barren = BarrenIndex()
        self.generous = False  # every policy lets editors admit, and copies count: never less than the true rights
        self.ends = DeviceEnds()
        self.erasures = Erasures()
        self._by_position: dict[Position, Act] = {}
        self._known = Answers()
        self._settled = True
        self._untaken: Authority | None = None  # the same acts, without those that take something away
        self.mentioned: dict[bytes, None] = {}  # identities with a control feed, and groups with members
        self._heeded = 0  # those of them whose spent admissions `_untaken` has
        self._judged: Stamp | None = None  # while grants are being settled: that of the one that is judged
        self._order = JudgingOrder()
        self._doubt: Stamp | None = None  # answers about grants from here on are to be forgotten
        self.version = version  # grows whenever an answer about a feed or an identity may have changed
        self._tops: dict[bytes, int] = {}  # by control feed: the seq of the last act that is about rights

    def copy(self) -> Authority:
        """Return rights of their own by the same acts: adding to one of them changes no answer of the other."""
        made = copy(self)
        made.feeds = self.feeds.copy()
        made.budgets = made.feeds.budgets
        made.granted, made.narrowings = self.granted.copy(), self.narrowings.copy()
        made.policies, made._barren, made._known = self.policies.copy(), self._barren.copy(), self._known.copy()
        made.forks = defaultdict(dict, {feed: dict(told) for feed, told in self.forks.items()})
        made.erasures, made.ends = self.erasures.copy(), self.ends.copy()
        made.fork_ends, made._by_position, made._tops = dict(self.fork_ends), dict(self._by_position), dict(self._tops)
        made._order, made._untaken = self._order.copy(), None
        made.mentioned = dict(self.mentioned)
        return made

    def add(self, acts: Iterable[Act]) -> None:
        """Take more acts, and forget the answers that they may change. Acts about epochs change no rights."""
        fresh = []
        for act in acts:
            self._by_position[act.position] = act
            if not isinstance(act.claim, EpochAct):
                fresh.append(act)
                self._tops[act.stamp.feed] = max(act.stamp.seq, self._tops.get(act.stamp.feed, 0))
        if not fresh:
            return
        self._settled = False
        self.version += 1
        self._known.forget_feeds()
        for act in fresh:
            claim = act.claim
            if act.admission is not None:
                self.mentioned[act.admission.identity] = None
                if self.feeds.open(act, act.admission):
                    self.forget()
            if isinstance(claim, PartyGenesis):
                if act.position == (self.genesis_feed, 0) and self._party in act.signers:
                    self.genesis = act
                    if not claim.parent:  # a child's founder has the roles that the parent gives, and no others
                        self._grant(act)
            elif isinstance(claim, MemberAdmission | GroupAdmission):
                self.budgets.give(act)
                self.mentioned |= {group_of(act): None} if group_of(act) else {}
                self._grant(act)
            elif isinstance(claim, FeedAdmission) and claim.kind is FeedKind.DATA:
                self.feeds.admit(act, claim)
            elif isinstance(claim, Narrowing):
                self.narrowings.add(act, by_writer=self.signed_by_writer(act))
                self._known.forget_runs()
                for grant in self.grants_to(claim.subject)[:1]:  # all that rests on the subject is younger
                    self.forget(grant.stamp)
            elif isinstance(claim, Policy):
                self._set_policy(act, claim)
            elif isinstance(claim, FeedEnd):
                self.ends.add(act, claim)
                self.forget()
            elif isinstance(claim, Equivocated):
                self.fork(claim.feed, claim.length, act.position)
            elif isinstance(claim, Erasure):
                self.erasures.add(act, claim)
        if self._untaken is not None:
            self._untaken.add(self._giving(fresh))

    def add_again(self, acts: Iterable[Act]) -> None:
        """Take acts that were set aside, if they are not here yet. Others have seen them, so all may change by it."""
        fresh = [act for act in acts if act.position not in self._by_position]
        if fresh:
            self._untaken = None
            self.add(fresh)
            self.forget()

    def add_range(self, acts: Iterable[Act], barren: BarrenActs, kept: KeptActs | None, start: int, stop: int) -> None:
        """Take acts of a control feed in [start, stop), some of them as columns. Those before it were taken."""
        self._barren.add(barren, stop)
        last = max(barren.last(stop), 0 if kept is None else kept.last(stop))
        self._tops[barren.feed] = max(last, self._tops.get(barren.feed, 0))
        self.budgets.set_aside(barren, start, stop)
        self.add(acts)
        if kept is not None:
            taking = [index.keep(kept, start, stop) for index in (self.narrowings, self.ends, self.erasures)]
            if any(taking):
                self.forget()
        self.feeds.set_aside(barren, start, stop)
        self.add_again(self._barren.counting(self.budgets) if self.floors else ())

    def _grant(self, act: Act) -> None:
        self.granted.add(act)
        self._order.add(act)
        if self.narrowings:  # one that a narrowing had not seen may keep a feed open
            self.forget(act.stamp)

    def _set_policy(self, act: Act, claim: Policy) -> None:
        settled, judged = self._order.settled, self._order.judged
        first = self.policies.add(act)
        self._order.add(act)
        if claim.tightens:
            self._known.tighter.clear()
            self.forget(first_tightened(act, judged, first, self.floors) if settled else first)

    def fork(self, feed: bytes, length: int, position: Position | None = None) -> None:
        """Note that a feed's writer signed two histories: the feed ends for everyone at the last common block."""
        told = self.forks[feed]
        for known, common in told.items():  # a later report in the same control feed has no effect
            if position and known and known.feed == position.feed and known.seq <= position.seq and common <= length:
                return
        told[position] = min(length, told.get(position, NO_END))
        self.forks_moved = True
        self._end_fork(feed)
        self.forget()

    def _end_fork(self, feed: bytes) -> None:
        told = self.forks[feed].items()
        end = min(max(length, self.floors.of(position, feed)) for position, length in told)
        if end != self.fork_ends.get(feed):
            self.fork_ends[feed] = end
            self._untaken = None

    def common(self, feed: bytes) -> int:
        """Return how many blocks of a forked feed are common to all its branches, whatever epochs hold."""
        return min(self.forks[feed].values(), default=NO_END) if feed in self.forks else NO_END

    def stand_on(self, floors: Floors) -> None:
        """Take these epochs as final: no act takes anything from the blocks that they hold."""
        if floors != self.floors:
            before, ends, self.floors = self.floors, dict(self.fork_ends), floors
            self._known.erased.clear()
            for feed in self.forks:
                self._end_fork(feed)
            matters = self.budgets.stand_on(floors) or not self.lasting
            if matters and not (ends == self.fork_ends and self._holds(before)):
                self.forget()
            self.feeds.renew()
            self.add_again(self._barren.counting(self.budgets))

    def _holds(self, before: Floors) -> bool:
        """True if the floors hold all acts about rights that those of before did not: then answers stay as they are.

        A floor limits what acts outside its epoch take, and begins the budgets of such acts. Grants expire by floors.
        """
        return self.parent is None and not self.granted.expiring and self.floors.hold(before, self._tops)

    @property
    def lasting(self) -> bool:
        """True if no right was taken away or will expire. Then floors change no answer."""
        if self.parent is not None or self.narrowings or self.forks or self.ends or self.policies.tightens:
            return False
        return not self.granted.expiring

    def forget(self, since: Stamp | None = None) -> None:
        """Forget the answers about grants from a stamp on, or all: something that they depend on has changed."""
        if since is None or self.parent is not None:
            self._known.forget()
            self._order.restart()
            self._doubt = None
        else:
            self._doubt = since if self._doubt is None else min(since, self._doubt)
        self._settled = False
        if self.parent is not None:
            self._untaken = None
        self.version += 1

    def owner(self, feed: bytes) -> Owner | None:
        """Return the owner of a feed. Of several admissions of a data feed, the oldest in force counts."""
        control = self.feeds.controls.get(feed)
        if control is not None:
            return control
        known, keeps = self._known.owners, self._keeps(None)
        if keeps and feed in known:
            return known[feed]
        admissions = self.feeds.admitted.get(feed, ())
        counting = (owner for owner in admissions if self.budgets.counts(feed, owner))
        found = next((owner for owner in counting if self.alive(owner.opened.place)), None)
        if keeps:
            known[feed] = found
        return found

    def _keeps(self, limit: Stamp | None) -> bool:
        """True if an answer about a feed may be cached until another act comes: not while grants are being judged."""
        return limit is None and self._settled and self.parent is None

    def owners(self) -> dict[bytes, Owner]:
        """Return every feed that has an owner."""
        self.settle()
        found = {feed: self.owner(feed) for feed in (*self.feeds.controls, *self.feeds.admitted)}
        return {feed: owner for feed, owner in found.items() if owner and self.budgets.counts(feed, owner)}

    def settle(self) -> None:
        """Judge the grants from the oldest on. Each depends on older ones only, so no recursion goes deep."""
        if self._settled:
            return
        if self.parent is not None:
            self._order.restart()
        if self._doubt is not None and self._order.reaches(self._doubt):
            self._known.forget_since(self._doubt, self._by_position)
        acts = self._order.take(self._doubt, self.granted, self.policies)
        self._doubt = None
        if self.parent is not None:
            self.parent.settle()
            acts = sorted(chain(acts, *self.parent.granted.all.values()), key=STAMP)
        for act in acts:
            self._judged, self._known.newest = act.stamp, None
            if self.inherited(act):
                hear_echoes(self, act)
            elif self.is_valid(act):
                (self.policies if isinstance(act.claim, Policy) else self.granted).settle(act)
        self._judged = self._known.newest = None
        self._settled = True

    def presume(self, verdicts: Mapping[Position, bool]) -> None:
        """Take verdicts on grants and policies that these very acts, and these floors, had once before."""
        self._known.valid.update(verdicts)

    def is_valid(self, act: Act) -> bool:
        """True if a grant, or a policy, is in force."""
        return self.valid_policy(act) if isinstance(act.claim, Policy) else self.valid_grant(act)

    def forget_act(self, position: Position) -> None:
        """Forget whether an act is valid: it is not written yet."""
        self._known.valid.pop(position, None)

    # -- the parent

    def inherited(self, act: Act) -> bool:
        """True if an act is the parent's."""
        return self.parent is not None and self.parent.act(act.position) is act

    def home(self, act: Act) -> Authority:
        """Return the authority over the party that an act belongs to: this one, or the parent's."""
        return self.parent if self.parent is not None and self.inherited(act) else self

    def narrowings_of(self, grant: Act) -> Iterable[NarrowingRun]:
        """Return the narrowings that mean a grant, here or in the parent."""
        own = self.narrowings.of(grant)
        return own if self.parent is None else chain(self.parent.narrowings.of(grant), own)

    def narrowing_runs(self, subject: bytes) -> Iterable[NarrowingRun]:
        """Return the narrowings of a subject, here or in the parent."""
        own = self.narrowings.runs(subject)
        return own if self.parent is None else chain(self.parent.narrowings.runs(subject), own)

    def grants_to(self, subject: bytes) -> Sequence[Act]:
        """Return all grants to a subject, here and in the parent, valid or not."""
        own = self.granted.all.get(subject, ())
        return own if self.parent is None else (*self.parent.grants_to(subject), *own)

    def was_granted(self, subject: bytes) -> bool:
        """True if there is a grant to a subject, here or in the parent, valid or not."""
        return bool(self.grants_to(subject)) or self._barren.means(subject)

    def seen_last(self, subject: bytes, group: bytes, place: Place) -> Iterator[Act]:
        """Yield the last grant to a subject that a place has seen in each feed, here and in the parent."""
        yield from self._barren.or_last(self.granted.seen_last(subject, group, place), subject, group, place)
        if self.parent is not None:
            yield from self.parent.seen_last(subject, group, place)

    def runs(self, subject: bytes) -> Iterable[GrantRun]:
        """Return the valid grants to a subject, here and in the parent, as far as they are settled."""
        own = self.granted.runs(subject)
        return own if self.parent is None else chain(own, self.parent.runs(subject))

    def device_ends(self, device: bytes) -> Sequence[Act]:
        own = self.ends.of(device)
        return own if self.parent is None else (*self.parent.device_ends(device), *own)

    def echoes(self, narrowing: Act, grant: Act) -> Cuts | None:
        """Return the cuts of this party's feeds by echoes of a narrowing of the parent; None if there is no echo."""
        key = (narrowing.position, grant.position)
        if key not in self._known.echoes:
            self._known.echoes[key] = echoed_cuts(self, narrowing, grant)
        return self._known.echoes[key]

    # -- questions

    def permits(self, place: Place, wanted: Roles, limit: Stamp | None = None) -> bool:
        """True if the writer of the feed at this place has one of the roles, by grants older than `limit`."""
        return not wanted.isdisjoint(self.writer_roles(place, limit))

    def writer_roles(self, place: Place, limit: Stamp | None = None) -> Roles:
        """Return the roles of the writer of the feed at this place, by grants older than `limit`; none if it ended."""
        if self.parent is not None and self.parent.owner(place.feed) is not None:
            return self.parent.writer_roles(place, limit)
        owner = self.owner(place.feed)
        if owner is None or not self.alive(place, limit):
            return _NOBODY
        return self.roles(owner.identity, place, limit)

    def untaken(self, feed: bytes = b"", *, generous: bool = False) -> Authority:
        """Return the rights as if no act ever took anything away; if `generous`, whatever policies and copies say.

        No budget counts there. Admissions beyond one are looked up: of a data feed, and of whoever is mentioned.
        """
        if generous or self._untaken is None:
            found = Authority(self._party, self.genesis_feed, None if self.parent is None else self.parent.untaken())
            found.budgets.limited, found.generous = False, generous
            found.add(self._giving(self._by_position.values()))
            found.add_again(self._giving(self._barren.spent(self.mentioned)))
            self._untaken = self._untaken if generous else found
        else:
            found = self._untaken
            fresh = list(self.mentioned)[self._heeded :] if self._heeded < len(self.mentioned) else ()
            found.add_again(self._giving(self._barren.spent(fresh)))
        self._heeded = self._heeded if generous else len(self.mentioned)
        found.add(act for act in self._giving(self._barren.admissions(feed)) if found.act(act.position) is None)
        found.settle()
        return found

    def _giving(self, acts: Iterable[Act]) -> Iterator[Act]:
        """Yield acts without what they take away, as far as they are the same on all peers: not beyond a fork."""
        return (gives for act in acts if (gives := giving(act)) is not None and not self.past_fork(act))

    def alive(self, place: Place, limit: Stamp | None = None) -> bool:
        """True if the feed has not ended before this place, and was opened by a member."""
        owner = self.owner(place.feed)
        if owner is None or place.seq >= self.static_end(place.feed):
            return False
        if owner.opened.stamp.feed != place.feed and not place.sees(owner.opened.position):
            return False
        return self._may_open(owner, place.feed, limit) and place.seq < self._ending(place.feed, owner, limit)

    def _may_open(self, owner: Owner, feed: bytes, limit: Stamp | None) -> bool:
        """True if a feed was opened by a member, in a feed that had not ended."""
        known, opened = self._known.opened.get(owner.opened.position), owner.opened.place
        if known is None or not self._keeps(limit):
            known = opened.feed == feed or self.alive(opened, limit)
            known = known and self.budgets.counts(feed, owner) and self._was_member(owner, limit)
            if self._keeps(limit):
                self._known.opened[owner.opened.position] = known
        return known

    def _was_member(self, owner: Owner, limit: Stamp | None) -> bool:
        """True if the owner of a feed had a role where it was opened, by grants older than `limit`."""
        key = owner.opened.position, self.newest(owner.identity, limit)
        known = self._known.members.get(key)
        if known is None:
            known = self._known.members[key] = bool(self.roles(owner.identity, owner.opened.place, limit))
        return known

    def static_end(self, feed: bytes) -> int:
        """Return where a feed ends by its writer's own doing: a fork, or a `FeedEnd` of its identity or device."""
        end = self.fork_ends.get(feed, NO_END)
        if (self.ends or self.parent is not None) and (owner := self.owner(feed)) is not None:
            end = min(end, device_end(self, feed, owner, self._known.device_ends))
        # A party keeps its genesis.
        return max(end, 1) if feed == self.genesis_feed else end

    def past_fork(self, act: Act) -> bool:
        return act.stamp.seq >= self.fork_ends.get(act.stamp.feed, NO_END)

    def end(self, feed: bytes) -> int:
        """Return how many blocks of a feed count by the known acts; `NO_END` if the feed is open."""
        owner = self.owner(feed)
        if owner is None or not self.budgets.counts(feed, owner):
            return 0
        if not self.roles(owner.identity, owner.opened.place, None):
            return 0
        return min(self.static_end(feed), self._ending(feed, owner, None))

    def has_ended(self, feed: bytes, owner: Owner) -> bool:
        """True if an act ends a feed, whether or not it was ever in force."""
        return min(self.static_end(feed), self._ending(feed, owner, None)) != NO_END

    def _ending(self, feed: bytes, owner: Owner, limit: Stamp | None) -> int:
        """Return the least ending cut; `limit` matters only through the grants that are older."""
        key = feed, owner.opened.position
        if self._keeps(limit) and key in self._known.endings:
            return self._known.endings[key]
        rank = self.newest(owner.identity, limit)
        known = self._known.ranked.get((*key, rank))
        if known is None:
            known = self._known.ranked[*key, rank] = ending(self, feed, owner, limit)
        if self._keeps(limit):
            self._known.endings[key] = known
        return known

    def newest(self, identity: bytes, limit: Stamp | None) -> Stamp | None:
        """Return the stamp of the newest valid grant, older than `limit`, that the rights of an identity may rest on.

        As long as it is the same, those grants are the same, and so is every answer about the identity.
        """
        known = self._known.newest  # of the last question: it is asked twice for each grant that is judged
        if known is not None and known[:2] == (identity, limit):
            return known[2]
        found: Stamp | None = None
        for subject in self.above(identity, None, limit):
            for run in self.runs(subject):
                count = run.older(limit)
                if count and (found is None or run.acts[count - 1].stamp > found):
                    found = run.acts[count - 1].stamp
        self._known.newest = (identity, limit, found) if self.parent is None else None
        return found

    def rank(self, feed: bytes, limit: Stamp | None) -> Stamp | None:
        """Return `newest` of the identity that writes a control feed."""
        owner = self.feeds.controls.get(feed)
        return None if owner is None else self.newest(owner.identity, limit)

    def above(self, subject: bytes, place: Place | None, limit: Stamp | None) -> set[bytes]:
        """Return the subject and the groups that it is part of, transitively, by valid grants older than `limit`.

        With a place, only grants seen there count. A set, so cycles and many ways to one group cost nothing.
        """
        found, fresh = {subject}, [subject]
        while fresh:
            for run in self.runs(fresh.pop()):
                group = run.key.group
                if group and group not in found and run.older(limit) and (place is None or run.seen(place)):
                    found.add(group)
                    fresh.append(group)
        return found

    def once(self, identity: bytes, limit: Stamp | None = None) -> Roles:
        """Return every role that valid grants older than `limit` gave an identity, whatever was taken since."""
        above = self.above(identity, None, limit)
        runs = (run for subject in above for run in self.runs(subject) if not run.key.group and run.older(limit))
        return _NOBODY.union(*(run.key.given for run in runs))

    def roles(self, subject: bytes, place: Place, limit: Stamp | None = None) -> Roles:
        """Return the roles of an identity or group at a place, implied ones included, by grants older than `limit`."""
        roles: set[Role] = set()
        through: dict[bytes, Roles] = {subject: ANY}  # roles that pass through each group: they only grow, so this ends
        fresh = [subject]
        while fresh and len(roles) < len(Role):
            above = fresh.pop()
            for run in self.runs(above):
                left = left_of(self, run, place, limit) & through[above]
                group = run.key.group
                if not group:
                    roles |= left
                elif not left <= through.get(group, _NOBODY):
                    through[group] = left | through.get(group, _NOBODY)
                    fresh.append(group)
        return frozenset(roles)

    def author(self, place: Place) -> tuple[bytes, tuple[bytes, ...], bool]:
        """Return the author of a message: the identity, its groups at that place, and if it is an owner."""
        return author_at(self, place)

    def left(self, grant: Act, place: Place) -> Roles:
        """Return the roles of a grant that are left at a place."""
        if not self.valid_grant(grant) or self.floors.expired(grant, place):
            return _NOBODY
        return left_at(self, grant, place).roles

    def valid_grant(self, grant: Act) -> bool:
        """True if the issuer of a grant had the right to give it."""
        known = self._known.valid.get(grant.position)
        if known is None:
            known = self._known.valid[grant.position] = judge_grant(self, grant)
        return known

    def binding(self, run: NarrowingRun, grant: Act) -> Binding:
        """Return which narrowings of a run bind a grant, if they have seen it."""
        home = self.home(run.acts[0])
        if home is not self:
            return home.binding(run, grant)
        rank = None if run.key.own_word else self.rank(run.feed, grant.stamp)
        key = run, rank, grant.expires_ms if run.key.expired else 0
        if key not in self._known.binding:
            self._known.binding[key] = Binding(self, run, grant)
        return self._known.binding[key]

    def ends_of(self, run: NarrowingRun, feed: bytes) -> Ends:
        """Return where the narrowings of a run, which are this party's, cut a feed."""
        key = run, feed
        if key not in self._known.ends:
            self._known.ends[key] = Ends(cuts_at(self, run, feed))
        return self._known.ends[key]

    def policy(self, place: Place, limit: Stamp | None = None) -> Policy:
        """Return the policy at a place: the last one seen there, or a tightening policy with a cut before it."""
        return policy_at(self, place, limit)

    def tighter(self, policy: Act) -> Iterable[Act]:
        """Return the policies that replace another one at every place past their cuts, oldest first."""
        known = self._known.tighter.get(policy.position)
        if known is None:
            known = Tighter(self, policy)
            if self._settled or (self._judged is not None and policy.stamp <= self._judged):
                self._known.keep_tighter(policy.position, known)  # else grants that it depends on are not settled yet
        return known

    def valid_policy(self, act: Act) -> bool:
        known = self._known.valid.get(act.position)
        if known is None:
            allowed = self.signed_by_writer(act) and self.permits(act.place, OWNERS, act.stamp)
            known = self._known.valid[act.position] = allowed and not expired(act)
        return known

    def signed_by_writer(self, act: Act) -> bool:
        """True if the device whose feed carries the act has signed its credential."""
        owner = self.feeds.controls.get(act.stamp.feed)
        return owner is not None and owner.device in act.signers

    def erased(self, feed: bytes) -> frozenset[int]:
        """Return the messages of a data feed that an erasure makes void."""
        self.settle()
        known = self._known.erased
        if feed not in known or self.parent is not None:
            known[feed] = erased_in(self, feed)
        return known[feed]

    def act(self, position: Position) -> Act | None:
        own = self._by_position.get(position)
        return self.parent.act(position) if own is None and self.parent is not None else own
