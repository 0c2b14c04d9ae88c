"""Bugs planted into the shipped code, one at a time, which the simulation must find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.feed.branches import Branches
from antiphon.feed.chain import span_hashes
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.feed.store import feed_store as feedstore
from antiphon.feed.store.env import Env
from antiphon.halo.acts.act import Place
from antiphon.halo.control import party_answers
from antiphon.halo.finality import epoch_chain as haloepochs
from antiphon.halo.finality.ballot import Ballot, Tree
from antiphon.halo.finality.epoch_values import EpochConfig
from antiphon.halo.limits import DEVICE_FEEDS_MAX
from antiphon.halo.rights.authority import Authority
from antiphon.halo.rights.budgets import Budgets
from antiphon.halo.rights.verdict import judge_data
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.noise import CipherState, HandshakeState
from antiphon.mesh.channel.payloads import Proof
from antiphon.mesh.link.link import Link
from antiphon.mesh.link.party_tags import PartyTags
from antiphon.mesh.replication.admits import Access, PartyAdmits
from antiphon.mesh.replication.session_gate import SessionGate
from antiphon.model import fold as modelfold, wire
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.messenger.state import MessengerState
from antiphon.model.object import fast_mutation, snapshot_codec
from antiphon.model.object.register import find
from antiphon.model.object.state import ObjectState, Op
from antiphon.party.engine import authority as partyauthority
from antiphon.party.engine.engine import Engine
from antiphon.party.engine.ports import Save
from antiphon.party.epochs import snapshot_fold
from antiphon.sim import peer as simpeer
from antiphon.sim.byzantine import attacks
from antiphon.sim.scenario import Fault, Scenario, make
from antiphon.snapshot.root import SnapshotRoot

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug, and the kind of runs in which it shows soon."""

    name: str
    sow: Callable[[Patch], None]
    faults: tuple[Fault, ...]
    laws: frozenset[str]  # one of them must catch it: that something falls over is not enough
    peers: int = 3
    messages: int = 40
    epochs: int = 2
    lies: tuple[str, ...] = ()
    likely_seed: int = 0  # the first to catch it when the bug was planted; the search begins there

    def scenario(self, seed: int) -> Scenario:
        return make(seed, peers=self.peers, messages=self.messages, epochs=self.epochs, faults=self.faults)

    def prepare(self, patch: Patch) -> None:
        """Where somebody lies, it tells only what this bug believes."""
        if self.lies:
            patch.setattr(attacks, "ATTACKS", {name: attacks.ATTACKS[name] for name in self.lies})


def stamps_left_out(patch: Patch) -> None:
    """An object's snapshot has the values, and not who wrote them when."""
    fields = wire.stamp_fields
    patch.setattr(snapshot_codec, "_plain_register", lambda *_: b"")  # the short way does not come by there
    patch.setattr(snapshot_codec, "stamp_fields", lambda where, stamp: fields(where, Stamp(1, stamp.feed, 0)))


def clock_before_apply(patch: Patch) -> None:
    """The positions are saved, and then the states that stand there."""
    save = Engine.save

    def early(self: Engine) -> None:
        if not self.batch_open:
            self.catch_up()
            with self.saving() as put:
                put(Save(lanes=[lane.state for lane in self.delivery.lanes.values()]))
        save(self)

    patch.setattr(Engine, "save", early)


def chain_unchecked(patch: Patch) -> None:
    """Ranges are taken without a look at signature, hashes and bodies."""

    def believe(span: Span) -> Span:
        return replace(span, hashes=span_hashes(span))

    patch.setattr(feedstore, "verify_span", believe)


def anybodys_epoch(patch: Patch) -> None:
    """Every device declares and attests, and one word is enough."""
    read, known = Ballot.__init__, set[bytes]()

    def count_all(
        self: Ballot, config: EpochConfig, feeds: Mapping[bytes, Tree], devices: Mapping[bytes, bytes]
    ) -> None:
        known.update(devices.values())
        everybody = tuple(sorted({*config.attesters, *devices.values()}))
        read(self, replace(config, attesters=everybody), feeds, devices)

    patch.setattr(Ballot, "__init__", count_all)
    patch.setattr(EpochConfig, "quorum", property(lambda self: 1))
    patch.setattr(EpochConfig, "declarers", property(lambda self: frozenset(known)))
    patch.setattr(haloepochs, "_proposer_problem", lambda act, claim, ballot: "")


def ties_by_arrival(patch: Patch) -> None:
    """Of values that were written at the same time, the one that comes last stays."""
    take = ObjectState.take

    def last_wins(self: ObjectState, ops: Iterable[Op], stamp: Stamp) -> None:
        ops = list(ops)
        take(self, ops, stamp)
        for op in ops:
            node = find(self.root, op.path)
            if node is not None and stamp.feed in node.entries:
                for other in [feed for feed in node.entries if feed != stamp.feed]:
                    del node.entries[other]

    patch.setattr(ObjectState, "take", last_wins)
    patch.setattr(fast_mutation, "_take", lambda *args: False)  # the short way does not come by there


def revoked_kept(patch: Patch) -> None:
    """What a revoked writer wrote past its cut counts, if it had not heard of the revocation."""

    def forgive(authority: Authority, place: Place, kind: Kind) -> str:
        reason = judge_data(authority, place, kind)
        return "" if reason == "it stands past the cut of its feed [rights.past-cut]" else reason

    patch.setattr(party_answers, "judge_data", forgive)
    patch.setattr(partyauthority, "judge_data", forgive)


def unsynced_append(patch: Patch) -> None:
    """The feed store says that a block is written before the disk has it."""
    begin = Env.__init__

    def careless(self: Env, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self.durable = False

    patch.setattr(Env, "__init__", careless)


def wall_time(patch: Patch) -> None:
    """A snapshot has the time at which it was computed."""

    def stamped(**fields: Any) -> SnapshotRoot:
        return SnapshotRoot(**{**fields, "created_ms": time.time_ns()})

    patch.setattr(snapshot_fold, "SnapshotRoot", stamped)


def posts_dropped(patch: Patch) -> None:
    """Some posts go nowhere, everywhere alike: nobody sees that somebody else has more."""
    apply = MessengerModel.apply

    def forgetful(
        self: MessengerModel, state: MessengerState, mutation: bytes, stamp: Stamp, *, void: bool = False
    ) -> None:
        apply(self, state, mutation, stamp, void=void or stamp.lamport % 5 == 0)

    patch.setattr(MessengerModel, "apply", forgetful)


def claim_believed(patch: Patch) -> None:
    """A block that nobody has shown counts as seen, with the lamport that its reader claims."""
    patch.setattr(Branches, "shown", lambda _, entry: entry.lamport)


def long_branch_refused(patch: Patch) -> None:
    """A branch is not looked at if it is longer than two blocks."""
    add = Branches.add_span

    def refuse(self: Branches, span: Span, *, whole: bool = False) -> None:
        if span.count <= 2:
            add(self, span, whole=whole)

    patch.setattr(Branches, "add_span", refuse)


def genesis_dropped(patch: Patch) -> None:
    """An item whose genesis is void is gone, although others have built on it."""
    patch.setattr(modelfold, "is_built_on", lambda *_: False)


def budgets_by_arrival(patch: Patch) -> None:
    """Of too many feeds of a device, those count that came first here."""
    patch.setattr(Budgets, "_first_feeds", lambda self, *key: frozenset(list(self._feeds[key])[:DEVICE_FEEDS_MAX]))


def refused_binds(patch: Patch) -> None:
    """Whatever was attested in the greatest term must be declared again, although a quorum cannot have attested it."""
    patch.setattr(Ballot, "_supporters", lambda ballot, *_: len(ballot.config.attesters))


def feeds_kept(patch: Patch) -> None:
    """Who is admitted again goes on with feeds that have ended."""
    patch.setattr(simpeer, "drop_ended_feeds", lambda party, member: True)


def anybody_served(patch: Patch) -> None:
    """Sessions give the party to every device."""
    patch.setattr(PartyAdmits, "access", lambda self, device, shown: Access.WHOLE)


def tag_unbound(patch: Patch) -> None:
    """A party has the same tags on every channel."""
    tag = PartyTags.tag
    patch.setattr(PartyTags, "tag", lambda self, party: tag(PartyTags(b"", self._role), party))


def key_believed(patch: Patch) -> None:
    """A dialler is the device that it claims to be: its key is not compared with the static one, nor the signature."""

    def believe(channel: Channel, handshake: HandshakeState, message: bytes) -> None:
        proof = Proof.decode(handshake.read(message))
        channel._device = PublicKey(proof.device)
        channel._finish(handshake, channel._offer.agree(proof.offer))

    patch.setattr(Channel, "_take_proof", believe)


def session_kept(patch: Patch) -> None:
    """Who was admitted when a link or a session began keeps both."""
    look = SessionGate.look

    def look_once(self: SessionGate, now_ms: int) -> bool:
        return not self.is_open and look(self, now_ms)

    def only_speak(self: Link) -> None:
        if self.is_open:
            self._speak(self._host.admitted(self.device))

    patch.setattr(SessionGate, "look", look_once)
    patch.setattr(Link, "judge", only_speak)


def nonce_reused(patch: Patch) -> None:
    """All records of a channel are encrypted with one nonce."""

    def always(name: str) -> Callable[..., bytes]:
        act = getattr(CipherState, name)

        def with_one(self: CipherState, data: bytes, associated: bytes | None = None) -> bytes:
            self.count = 0
            done: bytes = act(self, data, associated)
            return done

        return with_one

    for name in ("encrypt", "decrypt"):
        patch.setattr(CipherState, name, always(name))


_SAME = frozenset({"one history", "one quarantine"})
_EPOCHS = frozenset({"epochs agree", "epochs come", "quiet"})
_CHANNELS = frozenset({"channels hold"})

PLANTS = (
    Plant(
        "stamps left out of snapshots",
        stamps_left_out,
        (Fault.CRASHES, Fault.JOINS, Fault.PARTS),
        _SAME | _EPOCHS | {"rebuilt alike"},
    ),
    Plant(
        "clock advanced before apply",
        clock_before_apply,
        (Fault.CRASHES,),
        _SAME | {"rebuilt alike"},
        messages=100,
        likely_seed=33,
    ),
    Plant(
        "chain check skipped",
        chain_unchecked,
        (Fault.LIARS,),
        _SAME | {"nothing unauthorised", "nothing lost"},
        lies=("in others names", "broken ranges"),
        likely_seed=9,
    ),
    Plant(
        "an unauthorised epoch accepted",
        anybodys_epoch,
        (Fault.LIARS,),
        _SAME | _EPOCHS,
        lies=("false epochs",),
        likely_seed=2,
    ),
    Plant(
        "ties broken by arrival",
        ties_by_arrival,
        (Fault.PARTS, Fault.SLEEP, Fault.DELAY),
        frozenset({"one history"}),
        messages=120,
        epochs=0,
        likely_seed=2,
    ),
    Plant(
        "a revoked writer's late blocks kept",
        revoked_kept,
        (Fault.REVOKES, Fault.PARTS),
        frozenset({"nothing unauthorised", "one quarantine"}),
    ),
    Plant(
        "an unsynced append acknowledged", unsynced_append, (Fault.CRASHES,), frozenset({"nothing lost"}), likely_seed=9
    ),
    Plant("wall time in a snapshot", wall_time, (), _EPOCHS),
    Plant("posts dropped by everybody", posts_dropped, (), frozenset({"nothing dropped"}), likely_seed=3),
    Plant(
        "a claimed lamport believed",
        claim_believed,
        (Fault.LIARS,),
        frozenset({"nothing unauthorised", "life goes on"}),
        lies=("runaway data",),
    ),
    Plant(
        "a branch refused for its size",
        long_branch_refused,
        (Fault.LIARS,),
        _SAME | {"honest feeds go on", "quiet"},
        peers=4,
        messages=60,
        lies=("branch for one",),
    ),
    Plant(
        "a genesis dropped that others built on",
        genesis_dropped,
        (Fault.LIARS,),
        frozenset({"nothing dropped"}),
        messages=60,
        lies=("scorched earth",),
    ),
    Plant(
        "budgets counted by arrival",
        budgets_by_arrival,
        (Fault.LIARS,),
        _SAME | {"one party"},
        lies=("many control feeds",),
    ),
    Plant(
        "what all refuse binds",
        refused_binds,
        (Fault.SKEW, Fault.SLEEP, Fault.PARTS),
        _EPOCHS,
        peers=4,
        likely_seed=48,
    ),
    Plant("a tag not bound to the channel", tag_unbound, (Fault.CRASHES,), _CHANNELS),
    Plant(
        "a key not checked against the static",
        key_believed,
        (Fault.LIARS,),
        _CHANNELS,
        lies=("impostors",),
    ),
    Plant("a revoked session kept", session_kept, (Fault.REVOKES,), frozenset({"nothing given away"})),
    Plant("a nonce reused", nonce_reused, (Fault.REPEAT,), _CHANNELS),
    Plant("anybody is given the party", anybody_served, (Fault.REVOKES,), frozenset({"nothing given away"})),
    Plant("ended feeds kept", feeds_kept, (Fault.REVOKES,), frozenset({"who may write can"})),
)
