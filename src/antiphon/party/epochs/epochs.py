"""`Epochs`: one device's part in the epochs of a party: declare, recompute and attest, rebase, prune.

The party's lock is not held while a snapshot is computed. So writers are not blocked, and the work can be cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from antiphon.core.cid import Cid
from antiphon.core.errors import (
    BadEncoding,
    CorruptBlock,
    DamagedBlob,
    DamagedItems,
    InvalidInput,
    MissingBlob,
    MissingBlocks,
    NotAuthorised,
    UnknownFeed,
    UnknownModel,
)
from antiphon.core.timeframe import Timeframe
from antiphon.feed.head_proof import HeadProof
from antiphon.feed.header import Entry
from antiphon.feed.store.ingest import Base
from antiphon.halo.credentials.claims import EpochGenesis, ModelKey, Policy
from antiphon.halo.finality import voting
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch, Proposal
from antiphon.halo.member import votes
from antiphon.halo.member.genesis_checks import forced, is_vouched, scrutinise
from antiphon.halo.member.membership import Membership
from antiphon.model.model import Discard
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.gc_pause import gc_paused
from antiphon.party.engine.yielding import YieldPoint
from antiphon.party.epochs.capture import Captured, capture
from antiphon.party.epochs.checks import is_other_branch, lacks_body, why_behind, why_refuse, why_wait
from antiphon.party.epochs.external_snapshot import ExternalSnapshotFold, SnapshotMaker
from antiphon.party.epochs.listing import genesis_to_refuse, has_refused
from antiphon.party.epochs.other_branches import OtherBranches, differing
from antiphon.party.epochs.plan import common_control, declared_again, plan_of, policy_at
from antiphon.party.epochs.pruning import erase_bodies, prune
from antiphon.party.epochs.rebase import changes_since, hydrate, hydrate_in_steps, rebase
from antiphon.party.epochs.snapshot_fold import Cancelled, EpochFold, EpochPlan, EpochSnapshot
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import missing_blob
from antiphon.snapshot.root import FeedCut, ModelPin

if TYPE_CHECKING:
    from antiphon.party.engine.engine import Engine
    from antiphon.party.live.processor import PartyProcessor

Declared = EpochGenesis | FinalEpoch
WRONG = "its snapshot is not what the messages make"
PATIENT_TERMS = 4  # so long nobody declares a cut that is open to a branch: its blocks may still come as history
_REASON_MAX = 500  # characters
# Data that this machine lacks: no proof of a lie.
_LACKING = (MissingBlob, DamagedBlob, MissingBlocks, CorruptBlock, UnknownFeed)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """This device computed another snapshot than the final one. It keeps its own until its operator decides."""

    number: int
    theirs: Cid
    ours: Cid


class Epochs:
    """Declares and attests a party's epochs, and moves the party onto them. Thread-safe.

    `step` does all work that is due. Call it after new blocks arrive, or let an `EpochWorker` call it.
    """

    def __init__(self, party: PartyProcessor, member: Membership) -> None:
        self._party = party
        self._member = member
        self._blobs = party.blobs
        self._device = bytes(member.device.key)
        self._work = threading.RLock()  # one computation at a time; taken before the party's lock
        self._made: tuple[EpochPlan, EpochSnapshot] | None = None
        self._cancelled = threading.Event()
        self._whole: Cid | None = None  # the last snapshot that is known to be whole here: finding that out is slow
        self._over = False  # cancelled permanently: no computation may start any more
        self.disagreement: Disagreement | None = None
        self.waits_for = ""  # why this device cannot rebase onto, or attest, the next epoch yet
        self._branches = OtherBranches()

    # -- reading

    def chain(self) -> EpochChain:
        """Return the final epochs, and the proposals for the next number."""
        with self._party.locked():
            self._member.refresh()
            return self._member.machine.epochs()

    def obstacle(self) -> str:
        """Return what keeps this device from knowing the last epoch: control blocks that are missing, or a branch."""
        lacks = self.chain().open.lacks
        waiting = self._member.machine.waiting()
        if lacks or not waiting:
            return lacks
        first, entry = waiting[0], waiting[0].entry
        what = "another branch of control feed" if first.forked else "control feed"
        return (
            f"block {first.stamp.seq} of control feed {first.stamp.feed.hex()[:8]} waits for block {entry.seq} of "
            f"{what} {entry.feed.hex()[:8]}; sync with a member that has it"
        )

    @property
    def base(self) -> EpochBase | None:
        """The epoch that this device's item states are based on; None before the first."""
        with self._party.locked() as engine:
            return engine.base

    @property
    def number(self) -> int:
        """The number of `base`; 0 if there is none."""
        base = self.base
        return 0 if base is None else base.number

    def snapshot(self, number: int) -> EpochBase:
        """Return the snapshot of a final epoch by its number. Blobs that are not held raise when they are read."""
        final = self.chain().final
        if not 0 < number <= len(final):
            raise InvalidInput(f"party {self._party.key.short} has no final epoch {number}")
        return self._load(final[number - 1])

    def _load(self, epoch: FinalEpoch) -> EpochBase:
        return EpochBase.load(Cid(epoch.snapshot), self._blobs, party=self._party.key, number=epoch.number)

    def policy(self, control: Timeframe | None = None) -> Policy:
        """Return the party's policy, now or at a timeframe of its control feeds."""
        with self._party.locked():
            machine = self._member.machine
            return machine.present.policy() if control is None else policy_at(machine, control)

    # -- declaring

    def declare(self, *, raw: bool = False, maker: SnapshotMaker | None = None) -> EpochGenesis:
        """Cut the history: compute the snapshot of all delivered messages, keep its blobs, and write the genesis.

        An item whose model has no code here is an error, unless such items are to be kept `raw`. A `maker` computes
        the snapshot elsewhere; it is compared with the rows here before it is declared.
        """
        with self._working(), self._blobs.putting():  # no genesis refers to the blobs yet: garbage collection waits
            self.step()
            tries = 3
            while True:
                known = self._member.machine.act_count
                chain = self.chain()
                term, again = self._turn(chain)
                genesis = declared_again(chain, term, again) if again else self._afresh(chain, term, raw, maker)
                try:
                    with self._party.locked():
                        self._member.declare(genesis)
                    break
                except NotAuthorised:
                    tries -= 1
                    if not tries or self._member.machine.act_count == known:
                        raise  # otherwise a new credential, such as a policy, arrived meanwhile: include it
            self.step()
            return genesis

    def _turn(self, chain: EpochChain) -> tuple[int, bytes]:
        """Return the term in which this device may declare, and the snapshot that it must declare again, or b""."""
        endorsed = {found.claim.term for found in chain.open.endorsements if found.claim.candidate == self._device}
        reasons = []
        for term in sorted({0} | endorsed, reverse=True):
            demand = voting.proposal(chain, self._device, term)
            if not demand.reason:
                return term, demand.snapshot
            reasons.append(demand.reason)
        raise NotAuthorised(
            f"party {self._party.key.short}: this device may not declare epoch {chain.open.number}: {reasons[-1]}"
        )

    def _afresh(self, chain: EpochChain, term: int, raw: bool, maker: SnapshotMaker | None = None) -> EpochGenesis:
        number, last = chain.open.number, chain.last
        self._party.save()
        # Items of models that no epoch has listed can only be found by their rows, so every item needs one.
        hydrate_in_steps(self._party, lambda: self._check(number))
        with ExitStack() as stack:
            with self._party.locked() as engine:
                if engine.scope.ready_items is not None:
                    raise InvalidInput(
                        f"party {self._party.key.short}: one view alone is held here, so no epoch is made"
                    )
                at = 0 if engine.base is None else engine.base.number
                if at != number - 1:
                    raise InvalidInput(
                        f"party {self._party.key.short} is at epoch {at} here, and {number - 1} is final: "
                        f"{self.waits_for or 'let it catch up first'}"
                    )
                created = max(self._party.clock.now_ms(), last.created_ms if last is not None else 0)
                hydrate(engine)  # the base may have changed since
                captured = stack.enter_context(capture(self._party))
                cut = {lane.feed: lane.position for lane in captured.lanes if lane.position}
                cut = {**(last.cut if last is not None else {}), **cut}
                control = common_control(self._member.machine)
            if missing := lacks_body(engine, cut):
                raise MissingBlocks(f"party {self._party.key.short}: {missing}; fetch it, then declare the epoch")
            plan = self._planned(number, cut, control, created, captured.pins(raw=raw))
            if term < PATIENT_TERMS and (opened := why_refuse(engine, plan, patient=True)):
                raise MissingBlocks(f"party {self._party.key.short}: {opened}, which is here as a branch only")
            made = self._compute(plan, captured, maker)
        previous = last.snapshot if last is not None else b""
        models = tuple(ModelKey(*key) for key in plan.models)
        made_of = plan.cut, plan.control, made.cid, plan.created_ms, models, plan.control_hash
        return EpochGenesis(term, number, previous, *made_of)

    def _planned(
        self, number: int, cut: dict[bytes, int], control: Timeframe, created_ms: int, models: tuple[ModelPin, ...]
    ) -> EpochPlan:
        policy = self.policy(control)
        discard = Discard(created_ms, policy.message_age_ms, policy.message_count)
        with self._party.locked():
            heads = self._member.machine.control_hash(control)
        return EpochPlan(number, cut, control, created_ms, models, discard, policy.deleted_epochs, heads)

    def _plan_of(self, declared: Declared) -> EpochPlan:
        with self._party.locked():
            return plan_of(self._member.machine, declared)

    # -- computing

    def cancel(self, *, for_good: bool = False) -> None:
        """Cancel a computation that runs in another thread. With `for_good`, refuse later ones too."""
        self._over = self._over or for_good
        self._cancelled.set()

    def _compute(
        self, plan: EpochPlan, captured: Captured | None = None, maker: SnapshotMaker | None = None
    ) -> EpochSnapshot:
        """Return the snapshot of a plan. The last result is kept, so the same plan is not computed twice."""
        if self._made is not None and self._made[0] == plan:
            return self._made[1]
        self._cancelled.clear()
        self._check(plan.number)
        with self._party.locked() as engine:
            judge = engine.authority.epoch_judge(plan.control, plan.control_hash)
        held = capture(self._party) if captured is None else nullcontext(captured)
        try:
            with self._blobs.putting(), held as (engine, lanes, items):
                fold = EpochFold if maker is None else partial(ExternalSnapshotFold, maker(plan))
                made = fold(
                    self._party.key,
                    plan,
                    engine.base,
                    lanes,
                    items,
                    self._party.store,
                    self._party.models,
                    judge,
                    self._blobs,
                    YieldPoint(lambda: self._over or self._cancelled.is_set(), self._party.store, self._cancelled.wait),
                ).run()
        except DamagedItems as error:
            with self._party.locked():  # raised under the lock, this error makes the party rebuild its items
                raise error from None
        self._check(plan.number)
        self._made = plan, made
        return made

    def _check(self, number: int) -> None:
        if self._over:
            raise Cancelled(f"party {self._party.key.short}: the work on epoch {number} was cancelled")

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Serialise epoch work. Refused inside a batch, which holds the party's lock and has unwritten states."""
        if self._party.open_batch() is not None:
            raise InvalidInput(f"party {self._party.key.short}: leave the batch first, then work on epochs")
        with self._work, gc_paused():
            yield

    # -- advancing

    def step(self) -> bool:
        """Rebase onto final epochs, and attest or refuse proposals. True if anything was done."""
        with self._working():
            moved = False
            while self._advance() or self._vote():
                moved = True
            return moved

    def _advance(self) -> bool:
        """Rebase onto the next final epoch. If it cannot be recomputed, start at the last one's snapshot, if held."""
        self._party.rouse()
        chain, base = self.chain(), self.base
        at = 0 if base is None else base.number
        if base is not None and chain.differs(at, base.cid):
            self.waits_for = f"epoch {at} is final with another snapshot than the one here: attesters have lied"
            return self._begin_at(chain.final[-1], chain.votes[-1])
        if self._leave_branches():
            return True
        if len(chain.final) <= at:
            self.waits_for = ""
            return False
        following = chain.final[at]
        if self.disagreement is not None:
            if not self._on_other_branch(following, chain.final[-1]):
                return False
            self.disagreement = None
            self.waits_for = f"epoch {following.number} holds another branch of a feed than the one here"
            return self._begin_at(chain.final[-1], chain.votes[-1])
        made = None
        try:
            self.waits_for = self._why_wait(following)
            made = None if self.waits_for else self._compute(self._plan_of(following))
        except (Cancelled, DamagedItems):
            raise
        except (InvalidInput, *_LACKING) as error:  # also about blobs of the current base
            self.waits_for = str(error)
        if made is None:
            return self._begin_at(chain.final[-1], chain.votes[-1])
        if made.cid != following.snapshot:
            self.disagreement = Disagreement(following.number, Cid(following.snapshot), made.cid)
            self._refuse_final(following, WRONG, made.cid)
            return False
        base, known = EpochBase(made.cid, made.root, self._blobs, made.states), changes_since(self._party, made)
        with self._party.locked() as engine:
            self._made = None
            if not why_behind(engine, following):  # a fork may have been found meanwhile: then the loop looks again
                votes.witness(self._member, following)
                rebase(engine, base, made, known)
        return True

    def _why_wait(self, declared: Declared) -> str:
        with self._party.locked() as engine:
            behind = why_behind(engine, declared)
        return behind or lacks_body(engine, declared.cut)

    def _refuse_final(self, epoch: FinalEpoch, reason: str, computed: bytes = b"") -> None:
        """Publish that this device computes another snapshot for a final epoch."""
        with self._party.locked():
            act = genesis_to_refuse(self._member.machine, self._device, epoch)
            if act is not None and self._member.is_heard:  # else nobody would hear that it has refused
                self._member.refuse(act, reason, computed)

    def _on_other_branch(self, epoch: FinalEpoch, last: FinalEpoch) -> bool:
        """True if an epoch differs from ours because a writer signed two histories: then the last one's root decides.

        The last epoch extends the branch of all earlier ones, whose blobs other peers may have deleted.
        """
        try:
            cuts = self._load(last).feeds
            with self._party.locked() as engine:
                if is_other_branch(engine, epoch.cut, cuts, self._member.machine.common):
                    return True
                records = [record for record in engine.store.feeds(engine.party) if epoch.cut.get(record.feed)]
                return bool(self._branches.sort(engine.store, differing(engine.store, records, cuts)))
        except (InvalidInput, *_LACKING):
            return False

    def _leave_branches(self) -> bool:
        """Leave branches that the base does not hold, if their writers provably signed another. True if one was left.

        Otherwise nothing of such a feed is delivered here, and others deliver what follows the base's branch.
        """
        if self.disagreement is not None:
            return False
        try:
            with self._party.locked() as engine:
                if engine.base is None or not any(lane.other_branch for lane in engine.delivery.lanes.values()):
                    self._branches.sort(engine.store, ())
                    return False
                left = self._branches.leave(engine, self._party.store, engine.base.feeds)
        except _LACKING:
            return False
        if left:
            self._party.process()
        return left

    @property
    def unproven(self) -> tuple[Entry, ...]:
        """Blocks of final epochs that are here on another branch, and that nobody has proven yet (`HeadProof`)."""
        return self._branches.unproven

    def take_proof(self, feed: bytes, seq: int, hash_: bytes, proof: HeadProof) -> bool:
        """Take a verified proof that a feed's writer signed such a block. False if it is not needed."""
        with self._party.locked():
            return self._branches.take_proof(feed, seq, hash_, proof)

    def _begin_at(self, epoch: FinalEpoch, attesters: tuple[bytes, ...]) -> bool:
        """Start at a snapshot that cannot be recomputed here, if it has the attestations that policy wants."""
        wanted = self.policy(epoch.control).attestations_min
        if not self._party.authority.trusts(epoch):
            self.waits_for = (
                f"epoch {epoch.number} has {len(attesters)} attestations, and policy wants {wanted} before a device "
                "that cannot recompute it may use it; ask other peers for control feeds"
            )
            return False
        try:
            base = self._load(epoch)
            if lie := base.contradicts(epoch):
                self._refuse_final(epoch, lie)
                raise BadEncoding(lie)
            with self._party.locked() as engine:
                indexed = engine.items.index is not None and engine.scope.ready_items is None
            for cid in base.missing() if indexed else ():  # queries need every item
                raise missing_blob(cid)
        except (InvalidInput, *_LACKING) as error:
            what = "is" if isinstance(error, MissingBlob) else "can be used"
            self.waits_for = f"{self.waits_for}; nor {what} the snapshot of epoch {epoch.number}: {error}"
            return False
        self._party.begin_again()
        self._made, self.waits_for = None, ""
        return True

    def adopt(self) -> bool:
        """Give up this device's own snapshot: drop all states, and start at the party's final epoch.

        False if that snapshot is not here yet: `waits_for` names what is missing, and `wanted` the blobs to fetch.
        """
        with self._work:
            if self.disagreement is None:
                raise InvalidInput(f"party {self._party.key.short} does not differ from its epochs here")
            self.waits_for = f"epoch {self.disagreement.number} is to be adopted"
            chain = self.chain()
            if not self._begin_at(chain.final[-1], chain.votes[-1]):
                return False
            self.disagreement = None
            return True

    def wanted(self, *, whole: bool = False) -> list[Cid]:
        """Return the blobs to fetch to start at the last final epoch; with `whole`, all blobs of its snapshot."""
        final = self.chain().final
        if not final:
            return []
        root = Cid(final[-1].snapshot)
        if whole and root == self._whole:
            return []
        if not self._blobs.has(root):
            return [root] if self._behind(final) else []
        with suppress(InvalidInput):  # the blob is no snapshot: fetching cannot help
            found = list(tree.missing(root, self._blobs)) if whole else self._lacking(final[-1])
            self._whole = root if whole and not found else self._whole
            return found
        return []

    def _lacking(self, epoch: FinalEpoch) -> list[Cid]:
        """Blobs missing to start at an epoch whose root is here."""
        feeds = self._load(epoch).root.feeds
        return [] if feeds is None else list(tree.missing(feeds, self._blobs))

    def _behind(self, final: tuple[FinalEpoch, ...]) -> bool:
        """True if a final epoch cannot be recomputed here, or has another snapshot than the one computed here."""
        with self._party.locked() as engine:
            at = 0 if engine.base is None else engine.base.number
            if 0 < at <= len(final) and engine.base is not None and final[at - 1].snapshot != engine.base.cid:
                return True
            return len(final) > at and bool(self.disagreement or self.waits_for or why_wait(engine, final[at]))

    def _vote(self) -> bool:
        """Attest or refuse proposals for the next number, if this device is an attester and has not voted on them."""
        chain = self.chain()
        if self.disagreement is not None or self.number != len(chain.final):
            return False
        return any(self._vote_on(chain, proposal) for proposal in chain.open.proposals)

    def _vote_on(self, chain: EpochChain, proposal: Proposal) -> bool:
        genesis = proposal.genesis
        if voting.may_attest(chain, self._device, proposal.act) or has_refused(chain, self._device, genesis):
            return False
        try:
            with self._party.locked() as engine:
                refusal, computed = scrutinise(self._member.machine, proposal.act, self._party.clock.now_ms()), b""
            if not refusal:
                self.waits_for = self._why_wait(genesis)
                if not self.waits_for:
                    refusal, computed = self._look_into(engine, proposal)
                elif not is_vouched(self._member.machine, proposal.act):
                    return False
            with self._party.locked():
                if refusal:
                    self._member.refuse(proposal.act, refusal, computed)
                else:
                    self._member.attest(proposal.act)
        except (NotAuthorised, UnknownModel, *_LACKING) as error:  # also about blocks that arrived meanwhile
            self.waits_for = str(error)
            return False
        return True

    def _look_into(self, engine: Engine, proposal: Proposal) -> tuple[str, bytes]:
        """Return the reason to refuse a genesis, or "", and the CID that the messages make. Called without the lock."""
        genesis = proposal.genesis
        again = forced(self._member.machine, proposal.act, genesis)  # blocks that came since may have opened its cut
        if not again and (refusal := why_refuse(engine, genesis)):
            return refusal, b""
        try:
            computed = bytes(self._compute(self._plan_of(genesis)).cid)
        except (Cancelled, DamagedItems):
            raise
        except InvalidInput as error:
            return f"no snapshot can be made of it: {error}"[:_REASON_MAX], b""
        return "" if computed == genesis.snapshot else WRONG, computed

    # -- storage

    def prune(self) -> int:
        """Drop messages below the cut of a final epoch whose snapshot is whole on this disk, and return how many.

        Messages of policy's `keep_epochs` epochs stay; of those, bodies that were erased before the epoch are removed.
        """
        with self._work:
            base = self.base
            if base is None:
                return 0
            number = base.number - self.policy(base.root.control).keep_epochs
            count = 0 if number < 1 else prune(self._party, base, self.chain().final[number - 1].cut)
            erase_bodies(self._party)  # of the messages that stay
            return count

    def begins(self) -> dict[bytes, Base]:
        """Return, for each feed, the last block below the cut: received blocks may link up there (see `ingest`)."""
        base, cuts = self.base, dict[bytes, FeedCut]()
        with suppress(*_LACKING):  # until those blobs are fetched, blocks must link up with blocks that are here
            cuts.update({} if base is None else base.feeds)
        return {feed: Base(cut.length - 1, cut.hash, cut.lamport) for feed, cut in cuts.items() if cut.length}
