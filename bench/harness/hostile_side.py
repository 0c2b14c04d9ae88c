"""Our side of bench/hostile.py; it takes one JSON object a line. All commands share a folder.

build    items, messages            → a party of five members: the homes of an honest owner and of a hostile editor
attack   surface, size              → bytes that the hostile member wrote, and the first item that it made
receive                             → what it costs the owner to receive those blocks
measure  surface, item              → and then, to open its store, and to act

Each command and measurement runs in a process forked for it, so that none inherits the memory of another. Homes are
restored into the files that they had: the copy of a feed store in a new file would be a restored backup, which opens
new feeds.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import antiphon
from antiphon import List, Object, Role, Text, Thread, prop
from antiphon.api.items.handle import Handle
from antiphon.api.party import Party
from antiphon.core.errors import AntiphonError, BrokenChain, Equivocation, MissingBlocks
from antiphon.core.keys import KeyPair
from antiphon.feed import span as spans_codec
from antiphon.feed.store.feed_store import FeedStore
from harness.hostile_attacks import ATTACKS
from harness.hostile_member import TEAM, Mallory

LABEL = "Household"
TEXTS = ("texts", "deletions", "scattered", "marks", "waiting", "absent feeds")
ATTACKED = ("objects", "arrays", *TEXTS, "messengers", "access lists")  # surfaces that are a single item
REPEATS = 9  # of each act; the median counts
ROUNDS_MAX = 3  # of receiving an attack
ROUNDS_CPU_S = 12.0  # no further round after so much CPU time
PORTION = 1 << 16  # bytes that are received before they are judged and folded
now = time.perf_counter


def build(folder: str, items: int, messages: int) -> dict[str, Any]:
    place = Path(folder)
    names = ("owner", "bob", "carol", "dave", "mallory")
    homes = [antiphon.open(place / name, name=name, unprotected=True, epochs=False) for name in names]
    owner = homes[0]
    party = owner.create_party(LABEL)
    owner.manager.member(party.key).admit(TEAM.key, [Role.EDITOR], is_group=True)
    for home in homes[1:]:
        home.join(party.invite(home.me, Role.EDITOR))
        antiphon.sync(owner, home)
        antiphon.sync(owner, home)
    with party.batch():
        made = [party.object({"title": f"item {number}", "count": 0}) for number in range(items)]
    ids = [item.id for item in made]
    for home in homes[1:]:
        antiphon.sync(owner, home)
    turns = max(1, messages // items - 2)  # creating an object takes two messages
    for nth, home in enumerate(homes[:4]):
        theirs = home.party(LABEL)
        for turn in range(turns):
            with theirs.batch():
                for item in ids[nth::4]:
                    theirs.item(item, Object)["count"] = turn + 1
        if home is not owner:
            antiphon.sync(owner, home)
    for home in homes[1:]:
        antiphon.sync(owner, home)
    for home in homes:
        home.close()
    (place / "ids.json").write_text(json.dumps([bytes(item).hex() for item in ids]))
    return {"items": len(ids)}


def attack(folder: str, surface: str, size: int) -> dict[str, Any]:
    """Write the blocks of one attack into a file, in the hostile member's home."""
    home = _restored(Path(folder), "mallory")
    with antiphon.open(home, epochs=False) as store:
        mallory = Mallory(store, store.party(LABEL))
        if surface:
            ATTACKS[surface](mallory, size)
        spans = [span.encode() for span in mallory.spans()]
    with Path(folder, "spans").open("wb") as out:
        for span in spans:
            out.write(len(span).to_bytes(4, "big") + span)
    item = mallory.created[0].hex() if mallory.created else ""
    return {"bytes": sum(map(len, spans)), "spans": len(spans), "item": item}


def _restored(folder: Path, name: str) -> Path:
    """Put the files of a home back to how they were after `build`, in place."""
    home, saved = folder / name, folder / f"{name} saved"
    if not saved.exists():
        shutil.copytree(home, saved)
    kept = {path.relative_to(saved) for path in saved.rglob("*")}
    for path in sorted(home.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(home) not in kept:
            path.unlink()
    for path in saved.rglob("*"):
        if path.is_file():
            shutil.copyfile(path, home / path.relative_to(saved))
    return home


def receive(folder: str) -> dict[str, Any]:
    """Measure the owner that receives the blocks of an attack, several times. Noise only adds: the least counts."""
    rounds: list[dict[str, Any]] = []
    while len(rounds) < ROUNDS_MAX and sum(each["cpu"] for each in rounds) < ROUNDS_CPU_S:
        rounds.append(forked(_receive, _restored(Path(folder), "owner"), Path(folder, "spans")))
    least = {name: min(each[name] for each in rounds) for name in ("seconds", "cpu")}
    return {"received": least | {"memory": median(each["memory"] for each in rounds)}}


def measure(folder: str, surface: str, item: str) -> dict[str, Any]:
    """Measure the owner that has received the blocks of an attack."""
    home = Path(folder, "owner")
    opened = forked(_open, home)
    return {"opened": opened, **forked(_act, home, Path(folder, "ids.json"), surface, bytes.fromhex(item))}


def forked(work: Callable[..., dict[str, Any]], *arguments: Any, **named: Any) -> dict[str, Any]:
    """Run a function in a forked process, and return its answer."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_answer, args=(there, partial(work, *arguments, **named)))
    process.start()
    there.close()
    try:
        answer: dict[str, Any] = here.recv()
    except EOFError:
        process.join()
        answer = {"error": f"{work.__name__} ended with {process.exitcode}"}
    process.join()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def _answer(there: Connection, work: partial[dict[str, Any]]) -> None:
    try:
        there.send(work())
    except AntiphonError as error:
        there.send({"error": f"{work.func.__name__}: {type(error).__name__}: {error}"})


def _receive(home: Path, spans: Path) -> dict[str, Any]:
    with antiphon.open(home, epochs=False) as store:
        party = store.party(LABEL)
        party.refresh()
        before = _peak()
        begin, cpu = now(), time.process_time()
        waiting = 0
        for data in _read(spans):
            _take(store.manager.feeds, data)
            waiting += len(data)
            if waiting >= PORTION:
                party.refresh()
                waiting = 0
        party.refresh()
    # Closing saves what is not saved yet; otherwise half an attack might cost nothing, and a whole one its save.
    return {"seconds": now() - begin, "cpu": time.process_time() - cpu, "memory": _peak() - before}


def _take(feeds: FeedStore, data: bytes) -> None:
    """Take a span as a session does: as history, as what shows a fork, or as the rest of another branch."""
    try:
        feeds.ingest_bytes(data)
    except Equivocation:  # it is kept
        pass
    except (BrokenChain, MissingBlocks):
        feeds.ingest_branch([spans_codec.decode(data)])


def _read(spans: Path) -> Iterator[bytes]:
    data, at = spans.read_bytes(), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _open(home: Path) -> dict[str, Any]:
    before = _peak()
    taken = []
    for _ in range(5):
        gc.collect()
        begin = now()
        with antiphon.open(home, epochs=False) as store:
            store.party(LABEL).processor.rouse()  # reads all feeds, also where nothing has come since it was closed
            taken.append(now() - begin)
    return {"seconds": min(taken), "memory": _peak() - before}


def _act(home: Path, ids: Path, surface: str, item: bytes) -> dict[str, Any]:
    """Time what members do later: write, query, invite, revoke, set policy, declare, edit the attacked item.

    The first epoch holds all that was received. The next ones follow an edit of the attacked item, or a write to
    another one.
    """
    known = [bytes.fromhex(text) for text in json.loads(ids.read_text())]
    taken = Taken()
    with antiphon.open(home, epochs=False) as store:
        party = store.party(LABEL)
        party.processor.rouse()
        for turn in range(REPEATS):
            key = KeyPair.from_seed(bytes([turn]) * 32).key
            with taken.by("write"):
                party.item(known[turn], Object)["count"] = -turn
            with taken.by("query"):
                _ = party.query(prop("title") == f"item {turn}").ids
            with taken.by("invite"):
                party.invite(key, Role.READER)
            with taken.by("revoke"):
                party.revoke(key)
        for turn in range(3):
            with taken.by("set policy"):
                party.epochs.set_policy(keep_epochs=turn + 1)
        feeds = store.manager.feeds
        held = sum(span.size for record in feeds.feeds(party.key) for span in feeds.spans(record.feed, 0))
        with taken.by("first declare"):
            party.epochs.declare()
        for edited, handle in _edited(party, surface, item):
            for turn in range(REPEATS):
                with taken.by(f"edit of {edited}"):
                    _edit(handle, turn)
            with taken.by("declare after edits"):
                party.epochs.declare()
        for turn in range(3):
            party.item(known[turn], Object)["count"] = turn
            with taken.by("declare"):
                party.epochs.declare()
    return {"acts": taken.medians(), "held": held}


class Taken:
    """The seconds that each act took, every time."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    @contextmanager
    def by(self, act: str) -> Iterator[None]:
        begin = now()
        yield
        self._seconds.setdefault(act, []).append(now() - begin)

    def medians(self) -> dict[str, float]:
        return {act: median(seconds) for act, seconds in self._seconds.items()}


def _edited(party: Party, surface: str, item: bytes) -> Iterator[tuple[str, Handle]]:
    """Yield the attacked item, or without an attack an item of each kind that the owner makes."""
    if surface in ATTACKED:
        yield surface, party.item(item)
    elif not surface:
        yield "objects", party.object({"key": 0})
        yield "arrays", party.list([1, 2, 3])
        for text in TEXTS:
            yield text, party.text("abc")
        yield "messengers", party.thread()
        guarded = party.object({"key": 0})
        guarded.restrict_writers(party.store.me)
        yield "access lists", guarded


def _edit(handle: Handle, turn: int) -> None:
    """Make a small change of an item, as an application does."""
    if isinstance(handle, Object):
        handle["key"] = turn
    elif isinstance(handle, List):
        handle.append(turn)
    elif isinstance(handle, Text):
        handle.insert(0, "a")
    else:
        assert isinstance(handle, Thread)
        handle.post(f"post {turn}")


def _peak() -> int:
    """Return the greatest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    known = (build, attack, receive, measure)
    commands: dict[str, Callable[..., dict[str, Any]]] = {command.__name__: command for command in known}
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(forked(commands[command.pop("do")], **command)), flush=True)


if __name__ == "__main__":
    main()
