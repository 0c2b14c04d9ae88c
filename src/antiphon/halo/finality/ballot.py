"""The votes of the attesters about one epoch number, read from their control feeds.

The first vote in a feed counts: one attestation for each term, one endorsement for each term, and nothing in a term
below one that was endorsed. A feed only grows, so a vote that counts always counts, in any order of arrival.

Of a forked feed, each branch is read by itself, from the feed's first block on: what its device has said on either
counts, if it does not contradict what is before it there. So no vote ceases to count because a fork is found.

Geneses and attestations also count as their signer's where another device repeats them: an honest device signs nothing
that is not in its own feed, and a peer that holds another branch of that feed cannot read it there. So a vote is a
credential, not a block: a copy adds nothing, in whichever feed it is, and a second attestation is another credential.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from antiphon.core.reasons import Reason, because
from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement, EpochGenesis
from antiphon.halo.finality.epoch_values import Endorsed, EpochConfig

Lengths = Mapping[bytes, int]  # forked feed → how many blocks its history has; what is beyond is on branches
NO_FORKS: Lengths = MappingProxyType({})
Tree = Mapping[Act | None, Sequence[Act]]  # of one feed: the acts that follow an act; a chain, if it is not forked
Claimed = Mapping[bytes, tuple[int, bytes]]  # device → the greatest (term, CID) that it has attested; (0, b"") if none


class Choice(NamedTuple):
    """The subject of an attestation."""

    term: int
    snapshot: bytes
    digest: bytes  # of the genesis


@dataclass(slots=True)
class Own:
    """The votes of one device about the number, in all its feeds."""

    attested: dict[int, set[Choice]] = field(default_factory=dict)  # by term
    confirmed: set[Choice] = field(default_factory=set)
    endorsed: dict[int, set[bytes]] = field(default_factory=dict)  # by term: candidates
    declared: set[int] = field(default_factory=set)  # terms

    def accepted(self, *, confirmed: bool) -> tuple[int, bytes]:
        """Return the greatest term in which the device has attested a snapshot, and that snapshot."""
        choices = self.confirmed if confirmed else set().union(*self.attested.values())
        return max(((choice.term, choice.snapshot) for choice in choices), default=(0, b""))

    @property
    def promised(self) -> int:
        """Return the term below which the device attests nothing."""
        return max(self.endorsed, default=0)


class Demand(NamedTuple):
    """The snapshot that the proposer of a term must declare; any if empty; none if there is a `reason`."""

    snapshot: bytes
    reason: str = ""


class Ballot:
    """The votes for one number."""

    def __init__(self, config: EpochConfig, feeds: Mapping[bytes, Tree], devices: Mapping[bytes, bytes]) -> None:
        self.config = config
        self.attested: dict[Choice, set[bytes]] = defaultdict(set)
        self.confirmed: dict[Choice, set[bytes]] = defaultdict(set)
        self.endorsements: list[Endorsed] = []
        self.first: set[Choice] = set()  # without a policy: what the founder has attested in the party's first feed
        self.late: list[tuple[Choice, bytes, Act]] = []  # below a term that its device endorsed: for joiners, no vote
        self.void: dict[Act, str] = {}
        self.repeated: set[Act] = set()  # geneses that are not their writer's first in that term
        self._own: dict[bytes, Own] = defaultdict(Own)
        self._words: dict[tuple[bytes, Choice], set[bytes]] = defaultdict(set)  # digests: a copy is no second vote
        for feed, tree in feeds.items():
            self._read(devices[feed], tree)
        for (device, choice), words in self._words.items():
            if len(words) > 1:
                self.confirmed[choice].add(device)
                self._own[device].confirmed.add(choice)

    def own(self, device: bytes) -> Own:
        return self._own.get(device) or Own()

    def votes(self, choice: Choice) -> set[bytes]:
        """Return the devices whose votes can make a choice final."""
        return (self.confirmed if self.config.policy.liars else self.attested).get(choice, set())

    def _read(self, device: bytes, tree: Tree) -> None:
        path = _Path()
        todo: list[tuple[Act, _Step | None]] = [(act, None) for act in reversed(tree.get(None, ()))]
        while todo:
            act, step = todo.pop()
            if step is not None:
                path.undo(step)
                continue
            before = _Step(act, len(path.said), len(path.confirmed), len(path.declared), path.promised)
            self._take(device, act, path)
            todo.append((act, before))
            todo += [(after, None) for after in reversed(tree.get(act, ()))]

    def _take(self, device: bytes, act: Act, path: _Path) -> None:
        """Read one act, with what its device has said before it on its branch."""
        counts, claim = device in self.config.attesters, act.claim
        if device not in act.signers:
            self._hear(act)
            return
        if isinstance(claim, EpochGenesis) and device in self.config.declarers:
            if claim.term in path.declared:
                self.repeated.add(act)
                return
            path.declared.add(claim.term)
            self._own[device].declared.add(claim.term)
        if not counts:
            return
        if isinstance(claim, EpochEndorsement):
            self.void[act] = self._endorse(device, act, claim, path)
            if not self.void[act]:
                path.promised = claim.term
        elif isinstance(claim, EpochGenesis | EpochAttestation):
            self.void[act] = self._attest(device, act, claim, path)

    def _hear(self, act: Act) -> None:
        """Count a credential that another device repeats as its signer's."""
        claim = act.claim
        if not isinstance(claim, EpochGenesis | EpochAttestation):
            return
        if self.config.feed:  # whether that feed names attesters before this, only the feed itself can tell
            return
        choice = _choice(act, claim)
        for device in act.signers.intersection(self.config.attesters):
            self._count(device, choice, act)
            if isinstance(claim, EpochGenesis):
                self._own[device].declared.add(claim.term)

    def _count(self, device: bytes, choice: Choice, act: Act) -> None:
        self.attested[choice].add(device)
        self._own[device].attested.setdefault(choice.term, set()).add(choice)
        self._words[device, choice].add(act.digest)

    def _attest(self, device: bytes, act: Act, claim: EpochGenesis | EpochAttestation, path: _Path) -> str:
        choice = _choice(act, claim)
        if claim.term < path.promised:
            self.late.append((choice, device, act))
            return _contradicts(
                f"its device has endorsed term {path.promised}, and so attests nothing in an earlier one"
            )
        first, word = path.said.setdefault(claim.term, (choice, act.digest))
        if first != choice:
            return _contradicts(f"its device has attested something else for epoch {claim.number} in term {claim.term}")
        self._count(device, choice, act)
        if word != act.digest:
            path.confirmed[claim.term] = choice
        if act.stamp.feed == self.config.feed:
            self.first.add(choice)
        return ""

    def _endorse(self, device: bytes, act: Act, claim: EpochEndorsement, path: _Path) -> str:
        if claim.term <= path.promised:
            return _contradicts(f"its device has endorsed somebody for term {path.promised}")
        if max(path.said, default=0) >= claim.term:
            return _contradicts("its device has attested something in that term or a later one")
        spoken = path.confirmed.values() if self._twice else [choice for choice, _ in path.said.values()]
        if spoken:
            last = max(spoken)
            hidden = claim.accepted_term < last.term
            if hidden or (claim.accepted_term == last.term and claim.accepted != last.snapshot):
                return _contradicts("it does not name what its device has attested")
        self._own[device].endorsed.setdefault(claim.term, set()).add(claim.candidate)
        self.endorsements.append(Endorsed(act.stamp, device, claim, act))
        return ""

    @property
    def _twice(self) -> bool:
        return self.config.policy.liars

    # -- takeovers

    def endorsers(self, term: int, candidate: bytes, place: Place | None = None) -> Claimed:
        """Return the endorsers of a candidate that a place has seen, and what each has attested before."""
        return {
            found.device: (found.claim.accepted_term, found.claim.accepted)
            for found in self.endorsements
            if (found.claim.term, found.claim.candidate) == (term, candidate)
            and (place is None or place.sees(found.act.position))
            and self._certified(found.claim)
        }

    def _certified(self, claim: EpochEndorsement) -> bool:
        """True if a claim to have attested counts: if attesters may lie, a quorum must have attested the same."""
        if not self._twice or not claim.accepted:
            return True
        wanted = (claim.accepted_term, claim.accepted)
        return any(
            len(devices) >= self.config.quorum
            for choice, devices in self.attested.items()
            if (choice.term, choice.snapshot) == wanted
        )

    def demand(self, endorsers: Claimed) -> Demand:
        """Return what the candidate of these endorsers must declare: what a quorum can still have attested.

        Only the snapshot of the greatest term that they name can be final: every genesis of a later term declares again
        what is final. docs/design/epochs.md has the proof. If it could be either of two, more must endorse to tell.
        """
        quorum = self.config.quorum
        if len(endorsers) < quorum:
            return Demand(b"", f"{len(endorsers)} of {quorum} endorsements that are needed are here")
        greatest = max((term for term, cid in endorsers.values() if cid), default=-1)
        values = {cid for term, cid in endorsers.values() if cid and term == greatest}
        if not self._twice:
            values = {cid for cid in values if self._supporters(cid, endorsers) >= quorum}
        if len(values) > 1:
            return Demand(b"", f"two snapshots may be final in term {greatest}: more attesters must endorse")
        return Demand(values.pop() if values else b"")

    def _supporters(self, snapshot: bytes, endorsers: Claimed) -> int:
        """Count the attesters that can have made a snapshot final: those that attested it last, or did not endorse.

        It is not final before the greatest term in which an endorser attested another: that one would be it. So who
        attested last before that term, or nothing at all, has no part in it.
        """
        another = max((term for term, cid in endorsers.values() if cid and cid != snapshot), default=-1)
        without = sum(cid != snapshot or term < another for term, cid in endorsers.values())
        return len(self.config.attesters) - without


def uncounted(act: Act, device: bytes | None, config: EpochConfig) -> str:
    """Return why a vote does not count, whatever else is said about its number; "" if it may, for whoever signed it."""
    if device is None:
        return because(Reason.NO_ADMISSION, "its feed does not begin with its own admission")
    if act.expires_ms:
        return because(Reason.ACT_EXPIRED, "it has an expiry, which a vote or a genesis must not have")
    if isinstance(act.claim, EpochGenesis):
        other = f"nobody who signed it is an attester of epoch {config.number}, or its generator"
        return because(Reason.EPOCH_PROPOSER, other) if act.signers.isdisjoint(config.declarers) else ""
    if device not in act.signers:
        copy = isinstance(act.claim, EpochAttestation)
        return "" if copy else because(Reason.ACT_UNSIGNED, "it is not signed by the device that wrote it")
    if device in config.attesters or not isinstance(act.claim, EpochAttestation | EpochEndorsement):
        return ""
    return because(Reason.EPOCH_ATTESTER, f"its device is no attester of epoch {config.number}")


def _contradicts(text: str) -> str:
    return because(Reason.EPOCH_VOTE, text)


def _choice(act: Act, claim: EpochGenesis | EpochAttestation) -> Choice:
    return Choice(claim.term, claim.snapshot, act.digest if isinstance(claim, EpochGenesis) else claim.genesis)


class _Step(NamedTuple):
    """The sizes of a path before an act."""

    act: Act
    said: int
    confirmed: int
    declared: int
    promised: int


class _Path:
    """The votes of a device on one branch of its feed, up to an act."""

    def __init__(self) -> None:
        self.said: dict[int, tuple[Choice, bytes]] = {}  # by term: what it attested, and that digest
        self.confirmed: dict[int, Choice] = {}  # by term: what it has attested twice, by two credentials
        self.declared: set[int] = set()
        self.promised = 0

    def undo(self, step: _Step) -> None:
        """Take back what an act has added, to read another branch."""
        claim = step.act.claim
        assert isinstance(claim, EpochGenesis | EpochAttestation | EpochEndorsement)
        if len(self.said) > step.said:
            del self.said[claim.term]
        if len(self.confirmed) > step.confirmed:
            del self.confirmed[claim.term]
        if len(self.declared) > step.declared:
            self.declared.remove(claim.term)
        self.promised = step.promised


def by_feed(acts: Iterable[Act], forked: Lengths = NO_FORKS) -> dict[bytes, Tree]:
    """Group acts by their feed, in its order. Acts beyond the history of a forked feed follow those on their branch."""
    found: dict[bytes, dict[Act | None, list[Act]]] = {}
    histories: dict[bytes, list[Act]] = defaultdict(list)
    branches: list[Act] = []
    for act in sorted(acts, key=lambda act: (act.position, act.hash)):
        feed, seq = act.position
        tree = found.setdefault(feed, {None: []})
        tree[act] = []
        if seq < forked.get(feed, NO_END):
            history = histories[feed]
            tree[history[-1] if history else None].append(act)
            history.append(act)
        else:
            branches.append(act)
    nearest: dict[Act, Act | None] = {}  # from any act on the way back along a branch: the first in the tree
    for act in branches:
        feed = act.stamp.feed
        _grow(found[feed], act, nearest, histories[feed], forked[feed])
    return dict(found.items())


def _grow(
    tree: dict[Act | None, list[Act]], act: Act, nearest: dict[Act, Act | None], history: Sequence[Act], length: int
) -> None:
    """Let an act on a branch follow the one before it there, or in the history, among those in the tree."""
    way, at = [], act.after
    while at is not None and at.stamp.seq >= length and at not in tree and at not in nearest:
        way.append(at)
        at = at.after
    if at is not None and at.stamp.seq < length:
        place = bisect_right(history, at.stamp.seq, key=lambda before: before.stamp.seq)
        found = history[place - 1] if place else None
    else:
        found = nearest.get(at, at) if at is not None else None
    nearest.update(dict.fromkeys(way, found))
    tree[found].append(act)
