"""Homes for the law of all engines: small worlds, each with dice of its own, and what a live peer makes of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.party.crowded import open_many_feeds
from tests.party.epochs.epoch_acts import change, fetch_all, held, member, pen
from tests.party.forked import confront, fork_with_items
from tests.party.helpers import narrow
from tests.party.histories import MODELS, Jottings, Moves, act, some_ranges

from antiphon.api.store import Store
from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, MissingBlob, UnknownModel
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.timeframe import Timeframe
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Flag, Kind
from antiphon.feed.store.env import Env
from antiphon.feed.store.reader import FeedReader
from antiphon.generate.home import generate
from antiphon.generate.options import Options
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.message import wrap
from antiphon.model.raw import RAW_MODELS
from antiphon.party.engine.ports import Refused
from antiphon.party.live.processor import PartyProcessor
from antiphon.sim.run import Stage
from antiphon.sim.scenario import make
from antiphon.sim.workload import MODELS as SIMULATED
from antiphon.sim.world import rare_gc
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.peers import Peers

REFUSED_MAX = 1 << 20
_STEPS = 60


@contextmanager
def unsynced() -> Iterator[None]:
    """Without waiting for the disk: nobody pulls the plug here, and all that other processes read is in its cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(Env, "flush", lambda _: None)
        yield


class Riddles(Jottings):
    """A model that some writers have, and no reader."""

    name = "test/riddles"


def models() -> ModelFactory:
    """What readers have, on all engines."""
    factory = ModelFactory.standard()
    factory.register(Moves)
    factory.register(Jottings)
    return factory


def more_models() -> ModelFactory:
    factory = models()
    factory.register(Riddles)
    return factory


@dataclass(frozen=True, slots=True)
class Live:
    """A party as a live peer has it, who keeps it in this home."""

    name: str
    home: str
    party: bytes
    number: int
    base: bytes
    states: dict[bytes, bytes | None]  # None: there is no code for its model
    system: bytes
    refused: dict[tuple[bytes, int], str]
    frame: dict[bytes, int]
    blocked: dict[bytes, tuple[int, str]]
    held: int
    cuts: int  # how many feeds end where a batch begins, because histories part inside it
    beyond_forks: int  # how many items have a genesis beyond a fork
    built_on: int  # how many items have a void genesis, and are there because others built on them
    waits_for: str = ""  # why it does not stand on the last epoch
    lacks: str = ""  # which blob of the snapshot that it stands on is not here: then it cannot list its items


def look(name: str, home: Path, party: PartyProcessor, store: FeedReader, waits_for: str = "") -> Live:
    """All that can be compared."""
    with party.locked() as engine:
        base = engine.base
    refused = party.refused(REFUSED_MAX)
    status = party.status()
    states, lacks = dict[bytes, bytes | None](), ""
    try:
        states = {item: _state(party, item) for item in party.items()}
    except MissingBlob as error:
        lacks = str(Cid(error.cid))
    return Live(
        name,
        str(home),
        bytes(party.key),
        0 if base is None else base.number,
        b"" if base is None else bytes(base.cid),
        states,
        b"" if lacks else party.snapshot(SYSTEM_ITEM),
        {(row.feed, row.seq): row.reason for row in refused if base is None or row.seq >= base.length(row.feed)},
        dict(status.timeframe),
        {blocked.feed: (blocked.seq, blocked.reason) for blocked in status.blocked},
        sum(record.length - record.start for record in store.feeds(party.key)),
        _cuts(store, bytes(party.key)),
        sum(_is_beyond(data, status.timeframe) for data in states.values()),
        sum(row.item in states and _is_genesis(store, row) for row in refused),
        waits_for,
        lacks,
    )


def _cuts(store: FeedReader, party: bytes) -> int:
    ends = [record for record in store.feeds(party) if record.start <= record.end < record.length]
    spans = [next(iter(store.spans(record.feed, record.end))) for record in ends]
    return sum(bool(span.columns["flags"][0] & Flag.MORE) for span in spans)


def _is_beyond(data: bytes | None, frame: Timeframe) -> bool:
    """True if the genesis of an item is not delivered."""
    if data is None:
        return False
    _, feed, seq = item_codec.restore(data, RAW_MODELS).genesis
    return not frame.includes(feed, seq)


def _is_genesis(store: FeedReader, row: Refused) -> bool:
    held = store.bounds(row.feed).start <= row.seq
    return held and store.block(row.feed, row.seq).kind is Kind.GENESIS


def _state(party: PartyProcessor, item: bytes) -> bytes | None:
    try:
        return party.snapshot(item)
    except UnknownModel:
        return None


# -- simulations: losses, crashes, liars, forks, revocations, erasures, epochs, and pruned feeds


def simulated(folder: Path, seed: int) -> Live:
    """A peer after a simulation; of each second one, in the middle of it."""
    chance = random.Random(f"law {seed}")
    scenario = make(seed, peers=3 + seed % 2, messages=24 + seed % 12, epochs=1 + seed % 2)
    with rare_gc(), ExitStack() as stack:
        stage = Stage(scenario, folder, models())
        stack.callback(stage.close)
        stage.workload.models = (*SIMULATED, *MODELS[-2:])
        stage._set_up()
        stage.network.weather = scenario.weather
        begin, last = stage.world.now_ms, len(scenario.acts)
        if seed % 2:
            last = chance.randrange(last // 2, last)
        for one in scenario.acts[:last]:
            stage.world.run(begin + one.at_ms)
            stage._act(one)
        if not seed % 2:
            assert stage._calm_down(), seed
        peers = [peer for peer in stage.peers.values() if peer.up and not peer.disk.full]
        peer = chance.choice(peers)
        peer.disk.crash_in = None
        peer.party.resume()
        peer.party.process()
        peer.epochs.step()
        return look(f"simulation {seed}, {peer.name}", peer.folder, peer.party, peer.store, peer.epochs.waits_for)


# -- towns: models of one's own, access lists, batches that are cut, code that is not here


def told(folder: Path, seed: int) -> Live:
    """One of three peers, after a history in which anything happens."""
    chance = random.Random(f"town {seed}")
    reader = chance.randrange(3)
    usual = chance.choice(STRANGE)  # what is strange elsewhere
    with Peers(folder) as peers:
        for nth, name in enumerate(("alice", "bob", "carol")):
            peers.add(f"{name} of {seed}", models=models() if nth == reader else more_models())
        for step in range(_STEPS):
            with suppress(AntiphonError, IndexError):
                _happen(peers, chance)
            if step in (_STEPS // 2, _STEPS * 3 // 4):
                with suppress(AntiphonError, IndexError):
                    usual(peers, chance)
        peer = peers.all[reader]
        with suppress(AntiphonError):
            some_ranges(chance.choice(peers.all), peer, chance)
        peer.party.process()
        peer.epochs.step()
        if chance.random() < 0.8:
            fetch_all(peers, peer)
        if chance.random() < 0.7:
            with suppress(AntiphonError):
                peer.epochs.prune()
        with BlobStore.open(folder / peer.name / "blobs") as blobs:
            blobs.put_all((cid, peer.blobs.get(cid)) for cid in held(peer))
        return look(f"town {seed}, {peer.name}", peer.folder, peer.party, peer.store, peer.epochs.waits_for)


def _happen(peers: Peers, chance: random.Random) -> None:
    peer, other = chance.sample(peers.all, 2)
    drawn = chance.random()
    if drawn < 0.25:
        some_ranges(other, peer, chance)
    elif drawn < 0.33:
        narrow(peers, chance)
    elif drawn < 0.38:
        chance.choice(STRANGE)(peers, chance)
    else:
        act(peer, chance)


def _epoch(peers: Peers, chance: random.Random) -> None:
    alice = peers.all[0]
    peers.sync()
    alice.epochs.declare(raw=True)
    if chance.random() < 0.5:
        peers.settle()


def _riddle(peers: Peers, chance: random.Random) -> None:
    chance.choice(peers.all).party.create("test/riddles")


def _rubbish(peers: Peers, chance: random.Random) -> None:
    peer = chance.choice(peers.all)
    item = chance.choice(peer.party.items())
    peer.forge(
        Draft(Kind.MUTATION, item, chance.choice((b"\xff\xff", wrap(Kind.MUTATION, b"\x99")))),
        Draft(chance.choice((Kind.METADATA, Kind.CHANGE, Kind.GENESIS, Kind.CREDENTIAL)), item, chance.randbytes(3)),
        Draft(Kind.MUTATION, chance.randbytes(16), wrap(Kind.MUTATION, b"x")),
        atomic=chance.random() < 0.3,
    )


def _fork(peers: Peers, chance: random.Random) -> None:
    """Carol signs two histories, which may part inside a batch; the others hold one each."""
    alice, bob, carol = peers.all
    item = chance.choice(carol.party.items())
    both = [change(carol, item, "title", f"both {number}") for number in range(chance.randrange(4))]
    one, two = pen(carol), pen(carol)
    alice.take(one.extend([*both, change(carol, item, "title", "for Alice")], atomic=bool(both)))
    bob.take(two.extend([*both, *(change(carol, item, "title", "for Bob") for _ in range(2))], atomic=bool(both)))
    if chance.random() < 0.7:
        confront(peers)


def _fork_items(peers: Peers, chance: random.Random) -> None:
    fork_with_items(peers, chance, MODELS)
    if chance.random() < 0.8:
        confront(peers)


def _revoke(peers: Peers, chance: random.Random) -> None:
    alice, *others = peers.all
    member(alice).revoke(chance.choice(others).key)


STRANGE: tuple[Callable[[Peers, random.Random], None], ...] = (
    _epoch,
    _riddle,
    _rubbish,
    _fork,
    _fork_items,
    _revoke,
    open_many_feeds,
)


# -- generated homes


def generated(folder: Path, options: Options) -> Iterator[Live]:
    """The parties of a home that the generator has made."""
    generate(folder, options)
    with Store.open(folder, unprotected=True) as store:
        for known in store.parties():
            party = store.party(bytes(known.party))
            party.refresh()
            name = f"generated {options.seed}, {known.label}"
            yield look(name, folder, party.processor, store.manager.feeds)
