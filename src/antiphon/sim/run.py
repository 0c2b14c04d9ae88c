"""`run`: play a scenario, wait for quiet, and check the laws."""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from antiphon.core.errors import AntiphonError, InvalidInput, NotAuthorised, UnknownKey
from antiphon.core.keys import verified_once
from antiphon.halo.acts.act import read_once
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.mesh.replication.limits import TIMEOUT_MAX_MS
from antiphon.model.factory import ModelFactory
from antiphon.sim import laws
from antiphon.sim.account import Account, Ends
from antiphon.sim.byzantine import attacks
from antiphon.sim.network import CALM, Network
from antiphon.sim.peer import SimPeer
from antiphon.sim.scenario import MESSAGES_MANY, SKEW_MS, Act, ActKind, Rules, Scenario
from antiphon.sim.trace import Kind, Trace
from antiphon.sim.workload import MOSTLY_OBJECTS, Workload
from antiphon.sim.world import Endless, Limits, World, rare_gc

SETTLE_MS = 2 * TIMEOUT_MAX_MS  # all is quiet if nothing moves for so long
QUIET_MS_MAX = 3_600_000  # a run that is not quiet by then counts as endless

#: Called now and then with the share of acts that is done, and a text about the current phase.
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class BrokenLaw:
    """A law that does not hold, with the violation."""

    law: str
    text: str

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"


@dataclass(slots=True)
class Outcome:
    """The result of a run: its trace, the broken laws, and figures."""

    scenario: Scenario
    trace: Trace
    broken: list[BrokenLaw] = field(default_factory=list)
    messages: int = 0  # acknowledged writes
    delivered: int = 0  # at all peers together
    epochs: int = 0
    sent: int = 0  # protocol messages
    lost: int = 0
    repeated: int = 0
    held_back: int = 0
    virtual_ms: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if all laws hold."""
        return not self.broken


def run(
    scenario: Scenario,
    *,
    models: ModelFactory | None = None,
    keep_all: bool = False,
    progress: Progress | None = None,
    folder: str | Path | None = None,
    trace: Trace | None = None,
    limits: Limits | None = None,
) -> Outcome:
    """Play a scenario. With `keep_all`, the trace has every protocol message.

    A caller that passes a `trace` keeps the events up to an exception, if the run ends with one. A run that uses up
    its limits breaks the law *quiet*.
    """
    began = time.perf_counter()
    temporary = tempfile.TemporaryDirectory(prefix="antiphon-sim-", dir=folder)
    with rare_gc(), verified_once(), read_once(), temporary as place:
        stage = Stage(scenario, Path(place), models or _standard(), keep_all=keep_all, trace=trace, limits=limits)
        try:
            outcome = stage.play(progress or (lambda _share, _text: None))
        finally:
            stage.close()
    outcome.seconds = time.perf_counter() - began
    return outcome


@cache
def _standard() -> ModelFactory:
    """The installed models, cached: finding them takes as long as many messages."""
    return ModelFactory.standard()


class Stage:
    """A run in progress: the world, the network and the peers."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        models: ModelFactory,
        *,
        keep_all: bool = False,
        trace: Trace | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.scenario = scenario
        self.world = World(scenario.seed, trace, limits or scenario.limits._replace(seconds=math.inf))
        self.network = Network(self.world, CALM, keep_all=keep_all)
        many = sum(act.count for act in scenario.acts if act.what is ActKind.WRITE) > MESSAGES_MANY
        self.workload = Workload(MOSTLY_OBJECTS, odd=0.002, batches=0.7, sure=True, stay=8) if many else Workload()
        self.models = models
        self.peers: dict[str, SimPeer] = {}
        self.forbidden: set[str] = set()  # tokens of forged writes, which must show in no item
        self.denied: list[str] = []  # refused writes of members with the right to write
        self.rules = scenario.rules  # currently in force
        self.account = Account()
        self.ends: Ends  # set when all is quiet
        self.attacks = attacks.Attacks(self)
        self._folder = folder

    # -- playing

    def play(self, progress: Progress) -> Outcome:
        """Play all acts, wait for quiet, and check the laws."""
        world = self.world
        try:
            endless = "" if self._play_acts(progress) else f"something still moves after {QUIET_MS_MAX // 1000} s"
        except Endless as error:
            endless = str(error)
        outcome = Outcome(self.scenario, world.trace, virtual_ms=world.now_ms)
        progress(1.0, "checking the laws")
        for law, check in laws.LAWS.items() if not endless else ():
            found = [BrokenLaw(law, text) for text in check(self)]
            world.record(Kind.CHECK, text=f"{law}: {found[0].text}" if found else "", other=law)
            outcome.broken += found
        if endless:
            broken = BrokenLaw("quiet", endless)
            world.record(Kind.CHECK, text=str(broken), other=broken.law)
            outcome.broken.append(broken)
        outcome.messages = len(self.workload.written)
        outcome.delivered = sum(event.count for event in world.trace.of(Kind.TAKE))
        outcome.epochs = max((peer.epochs.number for peer in self.honest()), default=0)
        outcome.sent, outcome.lost = self.network.sent, self.network.lost
        outcome.repeated, outcome.held_back = self.network.repeated, self.network.held_back
        return outcome

    def _play_acts(self, progress: Progress) -> bool:
        """Play all acts, and run until all is quiet. Return False if it never is."""
        scenario, world = self.scenario, self.world
        self._set_up()
        self.network.weather = scenario.weather
        if scenario.weather != CALM:
            world.record(Kind.WEATHER, text=str(scenario.weather))
        begin, count = world.now_ms, len(scenario.acts)
        for place, act in enumerate(scenario.acts):
            world.run(begin + act.at_ms)
            self._act(act)
            if place % 32 == 0:
                progress(place / count, f"{world.now_ms / 1000:.0f} s of virtual time")
        progress(1.0, "waiting for quiet")
        return self._calm_down()

    def _set_up(self) -> None:
        """Found the party. All but the late peers join, in calm weather, and the founder sets the policy."""
        cast = self.scenario.cast
        founder = self._add(cast.founder, None)
        self.world.record(Kind.FOUND, founder.name)
        for name in cast.names[1:]:
            self._add(name, founder)
            if name not in cast.late:
                self._admit(self.peers[name])
        self._link()
        founder.poke()
        self._run_until(lambda: self._are_even() and all(map(self._joined, set(cast.names) - cast.late)))
        self._agree(cast.attesters, self.scenario.rules)
        founder.poke()
        self._run_until(self._are_even)

    def _agree(self, attesters: Iterable[str], rules: Rules) -> None:
        """Set the party's policy, as the founder."""
        self.rules = replace(rules, trust=self.scenario.rules.trust)
        self.founder.member.set_policy(
            Policy(
                attesters=tuple(sorted(bytes(self.peers[name].device.key) for name in attesters)),
                liars=not self.rules.trust,
                silent_ms=rules.silent_ms,
                skew_ms=SKEW_MS,
                epoch_messages=rules.epoch_messages,
                keep_epochs=rules.keep_epochs,
                deleted_epochs=rules.deleted_epochs,
            )
        )

    def _add(self, name: str, founder: SimPeer | None) -> SimPeer:
        cast = self.scenario.cast
        folder = self._folder / name
        folder.mkdir()
        skew_ms = dict(cast.skews_ms).get(name, 0)
        if skew_ms:
            self.world.record(
                Kind.CLOCK, name, text=f"{abs(skew_ms) / 1_000:.0f} s {'ahead' if skew_ms > 0 else 'behind'}"
            )
        self.peers[name] = SimPeer(
            name,
            self.scenario.seed,
            folder,
            self.world,
            self.network,
            models=self.models,
            founder=founder,
            honest=name not in cast.liars,
            prunes=name in cast.pruners,
            skew_ms=skew_ms,
            pace_ms=self.scenario.pace_ms,
            open_items=self.scenario.open_items,
        )
        return self.peers[name]

    def _link(self) -> None:
        """Link peers as a ring, so that all are connected, and add random links.

        Those that join at first must be connected without the late ones, who are no members yet.
        """
        names, chance = list(self.peers), random.Random(f"links {self.scenario.seed}")  # noqa: S311
        for place, name in enumerate(names):
            peer = self.peers[name]
            wanted = [names[(place + 1) % len(names)]]
            wanted += chance.sample(names, min(len(names), self.scenario.degree))
            for other in wanted:
                if other != name and len(peer.neighbours) <= self.scenario.degree:
                    peer.link(self.peers[other])
            if len(names) > 1 and wanted[0] not in peer.neighbours:
                peer.link(self.peers[wanted[0]])
        late = self.scenario.cast.late
        reached, fresh = {names[0]}, [self.founder]
        for name in names:
            while fresh:
                found = {one: peer for one, peer in fresh.pop().neighbours.items() if one not in reached | late}
                reached |= found.keys()
                fresh += found.values()
            if name not in reached | late:
                self.founder.link(self.peers[name])
                reached.add(name)
                fresh.append(self.peers[name])

    def _run_until(self, done: Callable[[], bool]) -> None:
        end = self.world.now_ms + QUIET_MS_MAX
        while not done():
            at = self.world.next_ms
            if at is None or at > end:
                raise RuntimeError(f"seed {self.scenario.seed}: the peers do not come together in fair weather")
            self.world.run(at + 50)

    def _are_even(self) -> bool:
        first, *others = map(self._lengths, self._members())
        return all(other == first for other in others)

    def _joined(self, name: str) -> bool:
        return self.peers[name].member.control is not None

    def _lengths(self, peer: SimPeer) -> dict[bytes, int]:
        return {record.feed: record.length for record in peer.store.feeds(peer.key)}

    def _calm_down(self) -> bool:
        """End all faults, and run until nothing moves and no message is under way. Return False if it never ends."""
        self.network.weather = CALM
        if self.network.heal():
            self.world.record(Kind.HEAL)
        for peer in self.peers.values():
            if self.network.wake(peer.name):
                self.world.record(Kind.WAKE, peer.name)
            if peer.disk.full:
                self.world.record(Kind.ROOM, peer.name)
            peer.disk.full, peer.disk.crash_in = False, None
            self._pace(peer, 1)
            peer.restart()
            peer.poke()
        begin = linked = self.world.now_ms
        while self.world.now_ms < begin + QUIET_MS_MAX:
            self.world.run(self.world.now_ms + 1_000)
            now = self.world.now_ms
            moved = max(peer.moved_ms for peer in self.honest())  # a liar may move for ever, if nobody takes it
            voting = any(peer.driver.vote_ms is not None for peer in self.honest())
            if now - linked >= SETTLE_MS and self._bring_together():
                linked = now
            elif now - max(moved, linked) >= SETTLE_MS and not self.network.under_way and not voting:
                self.world.record(Kind.QUIET)
                self.ends = Ends(self.account, self.founder, self.workload.opened)
                return True
        return False

    def _bring_together(self) -> bool:
        """Link honest members between whom all others refuse, or are refused. Return False if there are none.

        Those between them were revoked, or have ended their own devices, or are liars that have claimed blocks which
        they lack, and so do not get: nothing can pass, as in a partition.
        """
        first, *others = self.honest()
        reached, linked = self._reached(first), False
        for peer in others:
            if peer.name not in reached:
                first.link(peer)
                self.world.record(Kind.HEAL, first.name, other=peer.name)
                first.poke()
                peer.poke()
                reached, linked = self._reached(first), True
        return linked

    def _reached(self, first: SimPeer) -> set[str]:
        """Return the peers to which blocks can come from one peer. Honest members must not refuse each other."""
        honest, reached, fresh = self.honest(), {first.name}, [first]
        while fresh:
            peer = fresh.pop()
            for name, other in peer.neighbours.items():
                if name not in reached and ((peer in honest and other in honest) or _speak(peer, other)):
                    reached.add(name)
                    fresh.append(other)
        return reached

    def go_on(self) -> bool:
        """Restart all honest peers, let a newcomer join and an epoch come, and run until nothing moves."""
        for peer in self.honest():
            peer.crash()
            peer.restart()
        newcomer = self._add("newcomer", self.founder)
        for other in self.honest()[:2]:
            newcomer.link(other)
        self._admit(newcomer)
        self.founder.epochs.step()  # what it wrote after an epoch may wait until it stands on that epoch again
        with self.founder.party.batch():
            for _ in range(self.rules.epoch_messages):
                self.founder.party.create("antiphon/object")
        return self._calm_down()

    # -- acts

    def _act(self, act: Act) -> None:
        world, network = self.world, self.network
        if act.what is ActKind.PART:
            network.part(act.groups)
            world.record(Kind.PART, text=" | ".join(" ".join(group) for group in act.groups))
        elif act.what is ActKind.HEAL:
            network.heal()
            world.record(Kind.HEAL)
        elif act.what is ActKind.SLEEP:
            network.sleep(act.peer)
            world.record(Kind.SLEEP, act.peer)
        elif act.what is ActKind.WAKE:
            network.wake(act.peer)
            world.record(Kind.WAKE, act.peer)
        elif act.what is ActKind.ADMIT:
            self._as_founder(lambda: self._admit(self.peers[act.peer]))
        elif act.what is ActKind.REVOKE:
            self._as_founder(lambda: self._revoke(self.peers[act.peer]))
        elif act.what is ActKind.POLICY and act.rules is not None:
            self._as_founder(lambda: self._change_policy(act.groups[0], act.rules or self.rules))
        else:
            self._act_of(self.peers[act.peer], act)

    def _act_of(self, peer: SimPeer, act: Act) -> None:
        """Perform an act of one peer, or a fault that it meets."""
        if act.what is ActKind.RESTART:
            peer.restart()
        elif act.what in (ActKind.FULL, ActKind.ROOM):
            peer.disk.full = act.what is ActKind.FULL
            self.world.record(Kind.FULL if peer.disk.full else Kind.ROOM, peer.name)
            peer.poke()
        elif act.what in (ActKind.SLOW, ActKind.QUICK):
            self._pace(peer, act.count if act.what is ActKind.SLOW else 1)
        elif not peer.up:
            return
        elif act.what is ActKind.WRITE:
            peer.guarded(lambda: self._write(peer, act))
        elif act.what is ActKind.CRASH and act.count:
            peer.disk.crash_in = act.count
        elif act.what is ActKind.CRASH:
            peer.crash()
            self.world.after(1 + act.seed % 3_000, peer.restart)
        elif act.what is ActKind.ERASE:
            peer.guarded(lambda: self._erase(peer, act.seed))
        elif act.what is ActKind.LIE:
            peer.guarded(lambda: self.attacks.perform(peer, act.seed))
            peer.poke()

    def _pace(self, peer: SimPeer, slow: int) -> None:
        """Set the factor on a peer's pace; 1 is its usual pace."""
        if slow != peer.slow:
            peer.slow = slow
            self.world.record(Kind.QUICK if slow == 1 else Kind.SLOW, peer.name, count=0 if slow == 1 else slow)

    def _erase(self, peer: SimPeer, seed: int) -> None:
        """Erase one of the peer's own messages; the founder erases anybody's."""
        base, founds = peer.epochs.base, peer is self.founder
        own = [
            written
            for written in self.workload.written
            if (founds or written.peer == peer.name)
            and (base is None or written.stamp.seq >= base.length(bytes(written.stamp.feed)))
        ]
        if not own:
            return
        written = random.Random(seed).choice(own)  # noqa: S311
        erased, before = self.workload.erased, written.place in self.workload.erased
        erased.add(written.place)  # before the call: the peer may crash right after it has written the erasure
        try:
            peer.member.erase(written.place, identity=peer.identity)
        except (InvalidInput, NotAuthorised):  # the message is final, or its writer has lost the right
            if not before:
                erased.discard(written.place)
        else:
            self.world.record(Kind.ERASE, peer.name, other=written.peer, text=f"{written.stamp}")
            peer.moved_ms = self.world.now_ms
            peer.poke()

    def _write(self, peer: SimPeer, act: Act) -> None:
        workload = self.workload
        before, refused = len(workload.written), len(workload.refused)
        try:
            workload.write(peer, act.count, act.seed)
        finally:
            count = len(workload.written) - before
            if len(workload.refused) > refused:
                self._look_into(peer, workload.refused[-1])
            if count:
                peer.moved_ms = self.world.now_ms
                self.world.record(Kind.WRITE, peer.name, count=count)
            peer.poke()

    def _as_founder(self, act: Callable[[], None]) -> None:
        """Run a call of the founder; later if the founder is down or its disk full."""
        founder = self.founder
        if not founder.up or founder.disk.full or not founder.guarded(act):
            self.world.after(1_000, lambda: self._as_founder(act))
        else:
            founder.moved_ms = self.world.now_ms
            founder.poke()

    def _change_policy(self, attesters: Iterable[str], rules: Rules) -> None:
        self._agree(attesters, rules)
        self.world.record(Kind.POLICY, self.founder.name, text=f"attesters {' '.join(attesters)}, {rules}")

    def _admit(self, peer: SimPeer) -> None:
        self.world.record(Kind.ADMIT, self.founder.name, other=peer.name)
        stamp = self.founder.member.admit(peer.identity.key, [Role.EDITOR])
        self.account.admitted(peer.name, stamp)

    def _revoke(self, peer: SimPeer) -> None:
        founder = self.founder
        founder.member.refresh()
        if founder.member.machine.roles_of(peer.identity.key):  # else it is not a member
            self.world.record(Kind.REVOKE, founder.name, other=peer.name)
            self.account.revoking(founder, peer.name)
            founder.member.revoke(peer.identity.key)
        self.account.is_revoked(peer.name)

    def _look_into(self, peer: SimPeer, refusal: AntiphonError) -> None:
        """Note a refused write if the peer has the right to write and has received its admission."""
        since = -1 if peer is self.founder else self.account.members.get(peer.name)
        heard = peer.member.machine.timeframe().get(peer.genesis_feed, -1)  # excludes blocks that wait for others
        knows = since is not None and heard >= since
        if isinstance(refusal, NotAuthorised | UnknownKey) and peer.honest and knows and peer.settled:
            self.denied.append(f"{peer.name} at {self.world.now_ms} ms: {refusal}")

    # -- for laws

    @property
    def founder(self) -> SimPeer:
        """The peer that founded the party."""
        return self.peers[self.scenario.cast.founder]

    def honest(self) -> list[SimPeer]:
        """The members that are not byzantine. Others get nothing more, from their revocation on."""
        return [peer for peer in self._members() if peer.honest]

    def _members(self) -> list[SimPeer]:
        """The peers that the founder has admitted and not revoked, itself included."""
        return [peer for peer in self.peers.values() if peer is self.founder or peer.name in self.account.members]

    def close(self) -> None:
        for peer in self.peers.values():
            try:
                peer.close()
            except AntiphonError:
                continue


def _speak(peer: SimPeer, other: SimPeer) -> bool:
    """True if blocks can come from one neighbour to the other: neither refuses the other, or misleads it."""
    speak = peer.speaks_to(other.name) and other.speaks_to(peer.name)
    return speak and not (peer.is_misled_by(other) or other.is_misled_by(peer))
