"""`generate`: write a whole home, as its founder's device has it after all writers have replicated with each other.

>>> from antiphon.generate.options import Options
>>> made = generate("home", Options(parties=2, items=20, messages=300, epochs=0))
>>> made.messages, [party.items for party in made.parties]
(300, [13, 7])
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from antiphon.core.errors import InvalidInput
from antiphon.core.ports import SeededRandomness
from antiphon.feed.store.feed_store import FeedStore
from antiphon.generate.epochs import EpochMaker
from antiphon.generate.item_edits import CONTENTS
from antiphon.generate.members import Home
from antiphon.generate.options import Options, zipf
from antiphon.generate.party import PartyWriter, Plan
from antiphon.generate.report import HomeReport
from antiphon.generate.seeded import BEGIN_MS, ManualClock
from antiphon.generate.sink import Sink
from antiphon.halo.keys.identity import new_device, new_identity
from antiphon.halo.keys.key_store import KeyStore, Protection
from antiphon.halo.member.membership import Membership
from antiphon.party.store.meta_store import MetaStore
from antiphon.snapshot.blob_store import BlobStore

PARTY_EXPONENT = 0.8
EPOCH_PARTIES = 4  # one of so many parties has epochs, of the smaller half: each message there is folded twice

Tick = Callable[[int], None]  # called with the number of messages written since the last call


def generate(home: str | Path, options: Options, tick: Tick = lambda _: None) -> HomeReport:
    """Write a home into a folder that is empty or does not exist."""
    options.check()
    folder, begin = Path(home), time.perf_counter()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not empty, and is not written over; name another folder")
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        made = _write(folder, options, tick)
    except BaseException:  # also an interrupt or a full disk: no half-written home is left
        _clear(folder)
        for place in new:
            place.rmdir()
        raise
    made.seconds = time.perf_counter() - begin
    return made


def _clear(folder: Path) -> None:
    for found in list(folder.iterdir()):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()


def _write(folder: Path, options: Options, tick: Tick) -> HomeReport:
    clock, dice, made = ManualClock(), SeededRandomness(f"home {options.seed}"), HomeReport()
    with ExitStack() as opened:
        keys = KeyStore.create(folder / "keys", protection=Protection.UNPROTECTED, randomness=dice)
        identity, _ = new_identity(keys, "founder", dice)
        device = new_device(keys, "founder's device", identity.key)
        store = opened.enter_context(FeedStore.open(folder / "feeds", durable=False, clock=clock, randomness=dice))
        meta = opened.enter_context(MetaStore.open(folder / "meta.db", clock=clock))
        blobs = opened.enter_context(BlobStore.open(folder / "blobs"))
        scratch = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        for content in CONTENTS:
            blobs.put(content)
        home, sink = Home(store, keys, identity, device, clock), Sink(store, tick)
        for plan in plans(options):
            clock.ms = BEGIN_MS
            founder = Membership.found(store, keys, identity, device, clock=clock, randomness=dice)
            meta.subscribe(founder.party, label=f"party {plan.index}", genesis_feed=founder.genesis_feed)
            keeper = partial(EpochMaker, home, founder, scratch, blobs, (options.seed, plan.index))
            made.parties.append(PartyWriter(home, founder, sink, options, plan, keeper).write())
        sink.flush()
        store.flush()
    return made


def plans(options: Options) -> list[Plan]:
    """Divide items and messages among the parties. The first party is the largest, and has the hot item."""
    hot = min(int(options.messages * options.hot), options.messages - options.items)
    items = [1 + share for share in zipf(options.items - options.parties, options.parties, PARTY_EXPONENT)]
    rest = zipf(options.messages - options.items - hot, options.parties, PARTY_EXPONENT)
    found = []
    for index, (begun, changes) in enumerate(zip(items, rest, strict=True)):
        extra = 0 if index else hot
        chosen = (options.parties - 1 - index) % EPOCH_PARTIES == 0 and 2 * index >= options.parties - 1
        found.append(Plan(index, begun, begun + changes + extra, extra, options.epochs if chosen else 0))
    return found
