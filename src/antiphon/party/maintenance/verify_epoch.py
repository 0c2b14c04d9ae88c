"""Verify an epoch: recompute it from the feeds and the previous snapshot, and report differences. Nothing is written.

Any epoch whose messages are still held can be verified at any time, also the current one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, BadEncoding, DamagedBlob, InvalidInput, MissingBlob
from antiphon.core.keys import PublicKey
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.finality.epoch_values import FinalEpoch
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.lanes_at_cut import check_held, lanes_at
from antiphon.party.engine.ports import EpochJudge
from antiphon.party.epochs.plan import plan_of
from antiphon.party.epochs.snapshot_fold import Cancelled, EpochFold, EpochPlan, EpochSnapshot
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.maintenance.verify_report import BYTES, EXTRA, MISSING, Difference, Verification
from antiphon.snapshot import content, tree
from antiphon.snapshot.blob_overlay import BlobOverlay, is_intact
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.root import TREES, FeedCut, SnapshotRoot, decode_death

DIFFERENCES_MAX = 1_000
BLOBS_LISTED_MAX = 1_000
REASONS_MAX = 100
Tick = Callable[[str], None]  # called repeatedly with the name of the work; may raise to stop it


def no_tick(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Verifies epochs from stores that are only read. The party need not be open."""

    machine: PartyMachine
    store: FeedReader
    blobs: Blobs
    models: ModelFactory
    locked: Callable[[], AbstractContextManager[object]] = nullcontext  # held while the machine is read

    @property
    def party(self) -> PublicKey:
        """The key of the party."""
        return PublicKey(self.machine.party)

    def verify(self, number: int | None = None, *, full: bool = False, tick: Tick = no_tick) -> Verification:
        """Verify a final epoch, by default the last: hash each blob, and recompute the snapshot from the messages.

        The fold starts at the last earlier snapshot that is whole here; with `full`, at the first messages.
        """
        with self.locked():
            chain = self.machine.epochs().final
        number = len(chain) if number is None else number
        if not 0 < number <= len(chain):
            raise InvalidInput(f"party {self.party.short} has no final epoch {number}; {len(chain)} are final")
        declared = Cid(chain[number - 1].snapshot)
        held = _BlobCheck.of(declared, self.blobs, tick)
        with BlobOverlay(self.blobs) as overlay:
            work = _Recomputation(self, chain[:number], overlay, tick)
            work.run(full)
            if work.made is not None and work.made.cid != declared:
                work.compare(declared)
        return Verification(
            self.party,
            number,
            declared,
            None if work.made is None else work.made.cid,
            work.since,
            tuple(work.differences),
            work.more,
            tuple(work.unchecked),
            held.count,
            tuple(held.missing),
            tuple(held.damaged),
            tuple(held.faults),
        )


def verify_epoch(
    party: PartyProcessor,
    machine: PartyMachine,
    number: int | None = None,
    *,
    full: bool = False,
    tick: Tick = no_tick,
) -> Verification:
    """Verify an epoch of an open party: see `Verifier`. Writers are not blocked."""
    verifier = Verifier(machine, party.store, party.blobs, party.models, party.locked)
    return verifier.verify(number, full=full, tick=tick)


@dataclass(slots=True)
class _BlobCheck:
    """The result of reading each blob of a snapshot and comparing it with its CID."""

    count: int = 0
    missing: list[Cid] = field(default_factory=list)
    damaged: list[Cid] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, root: Cid, blobs: Blobs, tick: Tick) -> _BlobCheck:
        found = cls()
        try:
            for cid in tree.reachable(root, blobs):
                tick("blobs")
                if is_intact(cid, blobs):
                    found.count += 1
                else:
                    found._lacks(cid, blobs)
        except BadEncoding as error:
            found.faults.append(str(error))
        return found

    def _lacks(self, cid: Cid, blobs: Blobs) -> None:
        kind = self.missing
        try:
            blobs.get(cid)
        except DamagedBlob:
            kind = self.damaged
        except MissingBlob:
            pass
        if len(kind) < BLOBS_LISTED_MAX:
            kind.append(cid)


class _Recomputation:
    """One recomputation, and its findings."""

    def __init__(self, given: Verifier, chain: Sequence[FinalEpoch], overlay: BlobOverlay, tick: Tick) -> None:
        self._given = given
        self._chain = chain
        self._overlay = overlay
        self._tick = tick
        self.made: EpochSnapshot | None = None
        self.since = 0
        self.differences: list[Difference] = []
        self.more = 0
        self.unchecked: list[str] = []

    # -- computing

    def run(self, full: bool) -> None:
        try:
            base = None if full else self._base()
            self.since = 0 if base is None else base.number
            made: EpochSnapshot | None = None
            for epoch in self._chain[self.since :]:
                made = self._fold(epoch, base)
                if made is None:
                    return
                if epoch is not self._chain[-1] and made.cid != epoch.snapshot:
                    self.unchecked.append(
                        f"the earlier epoch {epoch.number} gives {made.cid} here; verify that one first"
                    )
                    return
                base = EpochBase(made.cid, made.root, self._overlay)
            self.made = made
        except Cancelled:
            raise
        except AntiphonError as error:  # a missing blob, block or model, or bytes of an unknown format
            self.unchecked.append(str(error))

    def _base(self) -> EpochBase | None:
        """The last earlier snapshot that is whole here."""
        for epoch in reversed(self._chain[:-1]):
            if next(tree.missing(Cid(epoch.snapshot), self._given.blobs), None) is None:
                return EpochBase.load(Cid(epoch.snapshot), self._overlay, party=self._given.party, number=epoch.number)
        return None

    def _fold(self, epoch: FinalEpoch, base: EpochBase | None) -> EpochSnapshot | None:
        store, authority = self._given.store, PartyAuthority(self._given.store, self._given.machine)
        with self._given.locked():
            plan = plan_of(self._given.machine, epoch)
            judge = authority.epoch_judge(plan.control, plan.control_hash)
        lacking = [*self._code(plan), *_blocks(store, plan, base)]
        lacking = lacking or list(_bodies(store, plan, base, judge))
        if lacking:
            self.unchecked += lacking[:REASONS_MAX]
            return None
        return EpochFold(
            self._given.party,
            plan,
            base,
            lanes_at(store, authority.is_control_block, base, plan.cut),
            None,
            store,
            self._given.models,
            judge,
            self._overlay,
            self._never_cancelled,
        ).run()

    def _never_cancelled(self) -> bool:
        self._tick("messages")
        return False

    def _code(self, plan: EpochPlan) -> Iterator[str]:
        for name, version, codec in plan.models:
            model = self._given.models.find(name, version)
            if model is None or model.codec != codec:
                yield f"no code for model {name} {version} with snapshots of format {codec} is here"

    # -- comparing

    def compare(self, declared: Cid) -> None:
        assert self.made is not None
        try:
            theirs = SnapshotRoot.decode(self._given.blobs.get(declared))
            self._compare_roots(theirs, self.made.root)
            for name in TREES:
                self._compare_trees(name, getattr(theirs, name), getattr(self.made.root, name))
        except (MissingBlob, DamagedBlob, BadEncoding) as error:
            self.unchecked.append(f"the differences beyond those listed cannot be found: {error}")

    def _compare_roots(self, theirs: SnapshotRoot, ours: SnapshotRoot) -> None:
        for known in fields(SnapshotRoot):
            mine, other = getattr(ours, known.name), getattr(theirs, known.name)
            if known.name not in TREES and mine != other:
                self._add(Difference("root", known.name, BYTES, f"{other!r:.200} is declared, {mine!r:.200} computed"))

    def _compare_trees(self, name: str, theirs: Cid | None, ours: Cid | None) -> None:
        for key, other, mine in tree.leaf_diff(theirs, ours, self._overlay):
            self._tick("differences")
            how = MISSING if other is None else EXTRA if mine is None else BYTES
            self._add(Difference(name, key.hex(), how, self._detail(name, other, mine)))

    def _detail(self, name: str, theirs: bytes | Cid | None, ours: bytes | Cid | None) -> str:
        if theirs is None or ours is None:
            return ""
        if name == "items" or isinstance(theirs, Cid) or isinstance(ours, Cid):
            return f"{self._size(theirs)} bytes are declared, {self._size(ours)} computed"
        if name == "deaths":
            return f"since epoch {decode_death(theirs)} is declared, since {decode_death(ours)} computed"
        other, mine = FeedCut.decode(theirs), FeedCut.decode(ours)
        names = [known.name for known in fields(FeedCut) if getattr(other, known.name) != getattr(mine, known.name)]
        return ", ".join(names)

    def _size(self, held: bytes | Cid) -> int:
        return content.size_of(held, self._overlay) if isinstance(held, Cid) else len(held)

    def _add(self, found: Difference) -> None:
        if len(self.differences) < DIFFERENCES_MAX:
            self.differences.append(found)
        else:
            self.more += 1


def _blocks(store: FeedReader, plan: EpochPlan, base: EpochBase | None) -> Iterator[str]:
    """Name the missing messages between the two cuts, feed by feed."""
    for feed, length in sorted(plan.cut.items()):
        try:
            if length:
                check_held(store, feed, 0 if base is None else base.length(feed), length)
        except AntiphonError as error:  # pruned, not here yet, or an unknown feed
            yield f"epoch {plan.number}: {error}"


def _bodies(store: FeedReader, plan: EpochPlan, base: EpochBase | None, judge: EpochJudge) -> Iterator[str]:
    """Name messages without a body here that were not erased when the epoch was made."""
    for feed, length in sorted(plan.cut.items()):
        start = 0 if base is None else base.length(feed)
        if start >= length:
            continue
        erased = judge.erased(feed)
        gone: list[int] = []
        for span, low, high in store.runs(feed, start, length):
            if span.states:
                here = span.present[low:high].tolist()
                gone += [span.first + low + at for at, there in enumerate(here) if not there]
        lost = [seq for seq in gone if seq not in erased]
        if lost:
            yield (
                f"epoch {plan.number}: feed {feed.hex()[:8]}: the bodies of {len(lost)} blocks, {lost[0]} among them, "
                "are not here"
            )


__all__ = ["Difference", "Verification", "Verifier", "verify_epoch"]
