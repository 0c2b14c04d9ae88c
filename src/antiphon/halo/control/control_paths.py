"""`ControlPaths`: which blocks the control timeframe of an epoch names, if a control feed is forked.

A timeframe names positions. Up to the last common block of a feed they are unambiguous; beyond it a position has a
block on each branch. The genesis of an epoch fixes them by a hash over all its control blocks, and its writer's own
advance entries tell the branch; if it declares a snapshot again, those of the genesis that it repeats do. So a peer
that is shown both branches finds the blocks that the attesters had, whichever branch it heard of first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from antiphon.core.codec import u64
from antiphon.core.errors import MissingBlocks
from antiphon.core.timeframe import Timeframe
from antiphon.halo.acts.act import Act
from antiphon.halo.credentials.claims import EpochGenesis
from antiphon.halo.finality.epoch_chain import EpochChain
from antiphon.halo.finality.epoch_values import FinalEpoch

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine

_TAG = b"antiphon.control.v1"
Strays = tuple[Act, ...]  # acts beyond the histories of their feeds that a control timeframe includes
_Geneses = dict[bytes, dict[bytes, Act]]  # by some name, then by the hash of the block


class ControlPaths:
    """The branches that epochs rest on, as one party machine finds them."""

    def __init__(self, machine: PartyMachine) -> None:
        self._machine = machine
        self._geneses: _Geneses = {}  # by digest: a genesis may be repeated
        self._hashed: _Geneses = {}  # by control hash: a snapshot may be declared again, elsewhere
        self._found: dict[tuple[bytes, ...], Strays] = {}  # by the geneses up to one

    def note(self, acts: Sequence[Act]) -> None:
        """Take note of geneses."""
        for act in acts:
            for found, name in self._names(act):
                found.setdefault(name, {})[act.hash] = act

    def drop(self, acts: Iterable[Act]) -> None:
        """Let go of geneses that are set aside: nobody has signed them who can declare an epoch of their number."""
        for act in acts:
            for found, name in self._names(act):
                known = found.get(name, {})
                known.pop(act.hash, None)
                if not known:
                    found.pop(name, None)

    def _names(self, act: Act) -> Iterator[tuple[_Geneses, bytes]]:
        if isinstance(act.claim, EpochGenesis):
            yield self._geneses, act.digest
            if act.claim.control_hash:
                yield self._hashed, act.claim.control_hash

    def forget(self) -> None:
        """A history is shorter than it was: positions that were unambiguous may not be so any more."""
        self._found.clear()

    # -- resolving

    def of_epoch(self, epoch: FinalEpoch, before: Sequence[FinalEpoch]) -> Strays | str:
        """Return the acts beyond histories that a final epoch holds."""
        return self.of_genesis(epoch, epoch.genesis, before, epoch.declarers)

    def of_genesis(
        self,
        genesis: EpochGenesis | FinalEpoch,
        digest: bytes,
        before: Sequence[FinalEpoch],
        declarers: Collection[bytes],
        act: Act | None = None,
    ) -> Strays | str:
        """Return the acts beyond histories in the control timeframe of a genesis, or why they are not known here.

        Other geneses help to find them only if one of the `declarers` of its number has signed them: others may be set
        aside.
        """
        key = (*(epoch.genesis for epoch in before), digest)
        if digest and key in self._found:
            return self._found[key]
        acts = _sorted(self._geneses.get(digest, {}).values()) if act is None else [act]
        acts += _sorted(self._hashed.get(genesis.control_hash, {}).values())
        acts = [one for one in acts if one is act or not one.signers.isdisjoint(declarers)]
        found = self._find(genesis, acts, before)
        if digest and not isinstance(found, str):
            self._found[key] = found
        return found

    def _find(
        self, genesis: EpochGenesis | FinalEpoch, acts: Sequence[Act], before: Sequence[FinalEpoch]
    ) -> Strays | str:
        control = genesis.control
        beyond = self._beyond(control)
        if not beyond:
            right = not genesis.control_hash or genesis.control_hash == self._hash(control, {})
            return () if right else "it rests on other blocks of control feeds than are here"
        held = {}
        if before:
            below = self.of_epoch(before[-1], before[:-1])
            held = {} if isinstance(below, str) else {act.stamp.feed: act for act in below}
        for act in (None, *acts):
            tips = {feed: self._tip(feed, seq, held, act) for feed, seq in beyond.items()}
            known = {feed: tip for feed, tip in tips.items() if tip is not None}
            if len(known) == len(tips) and genesis.control_hash in (b"", self._hash(control, known)):
                return tuple(self._path(known))
        for feed, seq in beyond.items():
            if not self._machine.strays_at(feed, seq):
                return f"block {seq} of control feed {feed.hex()[:8]} is not here"
        names = ", ".join(feed.hex()[:8] for feed in beyond)
        return f"another branch of control feed {names} is held here than the epoch knows"

    def _beyond(self, control: Timeframe) -> dict[bytes, int]:
        machine = self._machine
        return {feed: seq for feed, seq in control.items() if seq >= machine.delivered(feed)}

    def _tip(self, feed: bytes, seq: int, held: Mapping[bytes, Act], act: Act | None) -> Act | None:
        """Return the act at a position: on the branch of the epoch before, of the writer, or the only one there is."""
        before = held.get(feed)
        if before is not None and seq <= before.stamp.seq:
            return _back_to(before, seq)
        if act is None:
            only = self._machine.strays_at(feed, seq)
            return only[0] if len(only) == 1 else None
        if act.stamp.feed == feed:
            return _back_to(act, seq)
        wanted: int = act.place.seen.get(feed, -1)
        for block in self._machine.blocks_back(act):
            for entry in block.advance:
                if (entry.feed, entry.seq) == (feed, wanted):
                    found = self._machine.stray(entry.hash)
                    return None if found is None else _back_to(found, seq)
        return None

    def _path(self, tips: Mapping[bytes, Act]) -> Iterator[Act]:
        """Yield the acts from each history's end to the tip of its path."""
        for feed, tip in sorted(tips.items()):
            way: list[Act] = []
            at: Act | None = tip
            while at is not None and at.stamp.seq >= self._machine.delivered(feed):
                way.append(at)
                at = at.after
            yield from reversed(way)

    def held_by(self, chain: EpochChain) -> Strays:
        """Return the acts beyond histories that the final epochs hold."""
        found: Strays | str = ()
        for at, epoch in enumerate(chain.final):  # from the first on: each rests on the one before
            found = self.of_epoch(epoch, chain.final[:at])
        return () if isinstance(found, str) else found

    # -- hashes

    def canonical_hash(self, control: Timeframe, held: Sequence[Act]) -> bytes:
        """Hash the blocks that a control timeframe names: in histories, and in what final epochs hold beyond them."""
        tips = {}
        for feed, seq in self._beyond(control).items():
            tip = next((act for act in held if act.position == (feed, seq)), None)
            if tip is None:
                raise MissingBlocks(f"block {seq} of control feed {feed.hex()[:8]} is not here")
            tips[feed] = tip
        return self._hash(control, tips)

    def _hash(self, control: Timeframe, tips: Mapping[bytes, Act]) -> bytes:
        digest = sha256(_TAG)
        for feed, seq in control.items():
            tip = tips.get(feed)
            digest.update(feed + u64(seq) + (self._machine.history(feed)[seq].hash if tip is None else tip.hash))
        return digest.digest()


def _sorted(acts: Iterable[Act]) -> list[Act]:
    return sorted(acts, key=lambda act: (act.stamp, act.hash))


def _back_to(act: Act, seq: int) -> Act | None:
    """Return the act at a seq on the way back from an act of the same feed."""
    at: Act | None = act
    while at is not None and at.stamp.seq > seq:
        at = at.after
    return at if at is not None and at.stamp.seq == seq else None
