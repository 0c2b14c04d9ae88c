"""`EpochDriver`: decides when a device declares, attests and votes. `halo.finality` decides what it may say.

It declares when policy's thresholds are reached and it is this device's turn. It rebases onto final epochs and attests
proposals. If a proposer stays silent, it votes for another one. Safety depends on no clock: a wrong one only delays.
docs/design/epochs.md has the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError, PartyPaused, StoreClosed
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import SILENT_MS, ranked
from antiphon.party.epochs.snapshot_fold import Cancelled
from antiphon.party.epochs.thresholds import Due, Thresholds

if TYPE_CHECKING:
    from antiphon.halo.member.membership import Membership
    from antiphon.party.epochs.epochs import Epochs
    from antiphon.party.live.processor import PartyProcessor

_DOUBLED_MAX = 6  # how often the silence doubles

Activity = frozenset[tuple[str, bytes]]  # in a term: who did what. A device that repeats itself adds nothing


@dataclass(frozen=True, slots=True)
class LastActivity:
    """The last activity seen in a term, and when this device saw it."""

    activity: Activity
    at_ms: int


class EpochDriver:
    """Call `tick` after new blocks arrive, and at the time that it returns. It has no thread and reads no clock."""

    def __init__(self, party: PartyProcessor, member: Membership, epochs: Epochs) -> None:
        self._party = party
        self._member = member
        self._epochs = epochs
        self._device = bytes(member.device.key)
        self._thresholds = Thresholds(party)
        self._number = 0
        self._reason = ""  # why the open number is due; kept until it is final
        self._terms: dict[int, LastActivity] = {}
        self.status = ""  # what the device waits for; "" if there is nothing to do
        self.vote_ms: int | None = None  # when it votes for another proposer if all stays silent until then

    def tick(self, now_ms: int) -> int | None:
        """Do all work that is due. Returns when to call it again even without new blocks; None: never.

        `status` says what is missing, if anything is. It raises only if the party is paused or its store is closed.
        """
        try:
            return self._tick(now_ms)
        except (PartyPaused, StoreClosed):
            raise
        except AntiphonError as error:
            self.status = str(error)
            return now_ms + SILENT_MS

    def _tick(self, now_ms: int) -> int | None:
        self.vote_ms = None
        trouble, untold = "", _trouble(self._tell)  # an error there must not prevent voting
        while True:
            trouble = trouble or _trouble(self._epochs.step)
            chain = self._epochs.chain()
            silent_ms = self._epochs.policy().silent_ms or SILENT_MS
            self.status = self._why_not(chain)
            if self.status:
                return now_ms + silent_ms
            wake_ms = self._notice(chain, now_ms)
            if not self._terms:
                break
            if not trouble and self._is_turn(chain):
                trouble = _trouble(self._epochs.declare)  # on an error others declare, and this device still votes
                continue
            self.vote_ms, vote = self._election(chain, silent_ms)
            wake_ms = self.vote_ms
            self.status = self._waits_for(chain)
            if vote is None or wake_ms is None or now_ms < wake_ms:
                break
            with self._party.locked():
                self._member.endorse(*vote)
        if not (trouble or untold):
            return wake_ms
        self.status = trouble or untold
        return min(now_ms + silent_ms, wake_ms or now_ms + silent_ms)

    def _tell(self) -> None:
        """Publish evidence of writers that signed two histories: no other peer may hold it."""
        with self._party.locked():
            self._member.publish_forks()

    def _why_not(self, chain: EpochChain) -> str:
        """Return why this device cannot vote on the open number, or cannot yet; "" if it can."""
        if self._member.control is None:
            return "this device has no control feed in the party; it joins once an owner has admitted its identity"
        other = self._epochs.disagreement
        if other is not None:
            return (
                f"this device computed another snapshot of epoch {other.number} than the party; adopt that one, or "
                "find out why"
            )
        if self._epochs.number != len(chain.final):
            return self._epochs.waits_for or f"epoch {len(chain.final)} is final, and this device is not at it yet"
        return chain.open.lacks

    def is_idle(self, now_ms: int) -> bool:
        """True if nothing is to be done until blocks come. Nothing is written to find out."""
        chain = self._epochs.chain()
        if self._why_not(chain) or chain.open.proposals or chain.open.endorsements:
            return False
        due = self._look(chain, now_ms)
        return not due.reason and due.wake_ms is None

    # -- observing

    def _notice(self, chain: EpochChain, now_ms: int) -> int | None:
        """Note when each term of the open number was last active. Returns when an epoch will be due by time."""
        number = chain.open.number
        if number != self._number:
            self._number, self._reason, self._terms = number, "", {}
        due = Due(self._reason) if self._reason else self._look(chain, now_ms)
        self._reason = due.reason
        activities = _activities(chain)
        if due.reason or any(activities.values()):
            for term, activity in activities.items():
                if term not in self._terms or self._terms[term].activity != activity:
                    self._terms[term] = LastActivity(activity, now_ms)
        return due.wake_ms

    def _look(self, chain: EpochChain, now_ms: int) -> Due:
        if chain.last is not None:
            since_ms = chain.last.created_ms
        else:
            since_ms = self._party.store.block(self._member.genesis_feed, 0).created_ms
        return self._thresholds.look(self._epochs.policy(), since_ms, now_ms)

    def _waits_for(self, chain: EpochChain) -> str:
        opened, term = chain.open, max(self._terms)
        begin = f"epoch {opened.number}, term {term}: "
        if self._epochs.waits_for:
            return begin + self._epochs.waits_for
        for proposal in opened.proposals:
            if proposal.genesis.term == term and not proposal.reason:
                return begin + f"{len(proposal.attested)} of {opened.config.quorum} attestations are here"
        if term:
            count = max(len(chain.ballot.endorsers(term, device)) for device in self._candidates(chain, term))
            return begin + f"{count} of {opened.config.quorum} endorsements of its candidate are here, and no genesis"
        return begin + f"device {opened.config.generator.hex()[:8]} is to declare it ({self._reason or 'on request'})"

    # -- voting

    def _is_turn(self, chain: EpochChain) -> bool:
        """True if this device is to declare: as the candidate that a quorum endorsed last, or as the generator."""
        quorum = chain.open.config.quorum
        for term in sorted(self._terms, reverse=True):
            if not term:
                break
            if not voting.proposal(chain, self._device, term).reason:
                return True
            if any(len(chain.ballot.endorsers(term, other)) >= quorum for other in self._candidates(chain, term)):
                return False
        return bool(self._reason) and not voting.proposal(chain, self._device, 0).reason

    def _election(self, chain: EpochChain, silent_ms: int) -> tuple[int | None, tuple[int, bytes] | None]:
        """Return when this device will vote if all stays silent until then, and its vote: (term, candidate).

        It votes once in each term: for the first in the order of those that others have endorsed, and of itself. The
        i-th in that order is endorsed after i silent periods, by itself and by others.
        """
        term = last = max(self._terms)
        declared = any(one.genesis.term == last and not one.reason for one in chain.open.proposals)
        if not last or declared or voting.may_endorse(chain, self._device, last, self._device):
            term += 1
            if last and len(_spoken(chain, last)) < chain.open.config.quorum:
                return None, None  # no quorum has voted yet; later voters can still settle the last term
        if voting.may_endorse(chain, self._device, term, self._device):
            return None, None
        order = self._order(chain, term)
        best = min({self._device, *_endorsed(chain, term)}.intersection(order), key=order.index)
        heard_ms = max(heard.at_ms for earlier, heard in self._terms.items() if earlier < term)
        return heard_ms + (order.index(best) + 1) * _silence(term - 1, silent_ms), (term, best)

    def _candidates(self, chain: EpochChain, term: int) -> set[bytes]:
        """The devices that may declare in a term: those that were endorsed for it, or the generator."""
        return set(_endorsed(chain, term)) or {chain.open.config.generator}

    def _order(self, chain: EpochChain, term: int) -> list[bytes]:
        """The order in which devices become candidates of a term: by rank, then those that had a turn, the latest last.

        Who was endorsed by a quorum for an earlier term had a turn: so it takes an honest device to move another back.
        """
        config = chain.open.config
        turns = dict.fromkeys({*config.attesters, config.generator}, -1)
        turns[config.generator] = 0
        for earlier in sorted(earlier for earlier in self._terms if 0 < earlier < term):
            elected = {device for device, by in _endorsed(chain, earlier).items() if len(by) >= config.quorum}
            turns |= dict.fromkeys(elected, earlier)
        ranks = {device: place for place, device in enumerate(ranked(config.number, chain.party, turns))}
        ordered = sorted(turns, key=lambda device: (turns[device], ranks[device]))
        others = [device for device in ordered if device not in config.attesters]  # who do not vote for themselves
        return [device for device in ordered if device in config.attesters] + others


def _silence(term: int, silent_ms: int) -> int:
    """The silence after which a term is left. It doubles with each term after the first takeover, up to a limit: if
    terms fail for a reason that none of them can mend, the votes do not flood the control feeds.
    """
    return silent_ms << min(max(term - 1, 0), _DOUBLED_MAX)


def _activities(chain: EpochChain) -> dict[int, Activity]:
    """Count the activity in each term of the open number.

    A term counts only if a quorum has voted in it or in the one before, so that no device can use up term numbers.
    """
    terms = {found.claim.term for found in chain.open.endorsements}
    terms |= {found.genesis.term for found in chain.open.proposals if not found.reason}
    quorum = chain.open.config.quorum
    settled = {term for term in terms if len(_spoken(chain, term)) >= quorum}
    return {
        term: _activity(chain, term) for term in {0} | terms if term < 2 or not settled.isdisjoint((term - 1, term))
    }


def _activity(chain: EpochChain, term: int) -> Activity:
    found = [("endorsed", one.device) for one in chain.open.endorsements if one.claim.term == term]
    for proposal in chain.open.proposals:
        if proposal.genesis.term == term and not proposal.reason:
            found.append(("declared", proposal.device))
            found += [("attested", device) for device in proposal.attested]
            found += [("confirmed", device) for device in proposal.confirmed]
    return frozenset(found)


def _endorsed(chain: EpochChain, term: int) -> dict[bytes, set[bytes]]:
    """The candidates that were endorsed for a term, and by which devices."""
    config, found = chain.open.config, dict[bytes, set[bytes]]()
    for one in chain.open.endorsements:
        if one.claim.term == term and one.claim.candidate in (*config.attesters, config.generator):
            found.setdefault(one.claim.candidate, set()).add(one.device)
    return found


def _spoken(chain: EpochChain, term: int) -> set[bytes]:
    """The attesters that have endorsed a candidate for a term, or attested a proposal in it."""
    spoken = {found.device for found in chain.open.endorsements if found.claim.term == term}
    return spoken.union(*(found.attested for found in chain.open.proposals if found.genesis.term == term))


def _trouble(act: Callable[[], object]) -> str:
    """Run `act`, and return its error as text, or "". A pause, a closed store or a cancellation is raised."""
    try:
        act()
    except (PartyPaused, StoreClosed, Cancelled):
        raise
    except AntiphonError as error:
        return str(error)
    return ""
