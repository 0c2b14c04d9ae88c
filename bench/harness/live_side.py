"""Our side of bench/live.py; it takes one JSON object a line.

work         folder, edits, kind, count, batch           → local, ingest and received (seconds), value
trace_feed   folder, edits                               → item; the feed of a trace, one block for each edit
trace        folder, fresh, item, expected               → ingest and process (seconds)
build        folder, items, history, window, blocks      → seconds; a party of objects, appended `blocks` at a time
cold         folder                                      → messages, seconds, memory; its item store is made anew
warm         folder, reads                               → models, feeds, open, first (seconds), memory
writers      folder, count, rounds                       → seconds of the parts of a party of many writers
home         folder, count, rounds                       → CPU seconds of opening a home with a party of many writers
credentials  folder, items, history, window              → messages, seconds; as `cold`, judged by a control feed
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from antiphon.core.keys import KeyPair
from antiphon.feed import span as spans
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome
from antiphon.feed.writer import FeedWriter
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import OpenAuthority
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.item_store import delete_file
from harness import live_work
from harness.live_feeds import Scribe, scattered, sliding, write_objects, write_text

PARTY = KeyPair.from_seed(b"p" * 32).key
PAIR = KeyPair.from_seed(b"f" * 32)
COMMIT_SIZE = 1 << 20  # a receiver commits when about this much has come
PICKS = 1000

now = time.perf_counter


@contextmanager
def _party(folder: Path, *, pair: KeyPair | None = None) -> Iterator[tuple[FeedStore, PartyProcessor]]:
    """Open a durable store, the default."""
    with FeedStore.open(folder / "feeds") as store:
        authority = OpenAuthority(store, PARTY, pair)
        with PartyProcessor(PARTY, store, authority, path=folder / "items.db") as party:
            yield store, party


# -- edits, one by one or in batches


def work(folder: str, edits: str, kind: str, count: int, batch: int) -> dict[str, Any]:
    """Write edits, each batch on the disk when it returns; then let another peer receive the feed."""
    some = live_work.load(edits)[kind][:count]
    acts: dict[str, Callable[..., None]] = {"object": _set, "array": _splice, "text": _replace}
    act = acts[kind]
    with _party(Path(folder, "one"), pair=PAIR) as (store, party):
        items = [party.create(f"antiphon/{kind}") for _ in range(live_work.OBJECT_ITEMS if kind == "object" else 1)]
        start = now()
        if batch == 1:
            for edit in some:
                act(items, *edit)
        else:
            for at in range(0, count, batch):
                with party.batch():
                    for edit in some[at : at + batch]:
                        act(items, *edit)
        local = now() - start
        value = [item.value for item in items]
        wire = [span.encode() for span in store.spans(PAIR.key)]
    with _party(Path(folder, "other")) as (store, party):
        ingest = _ingest(store, wire)
        start = now()
        taken = party.process()
        received = now() - start
        assert taken == count + len(items)
        assert [party.item(item.id).value for item in items] == value
    answer = value if kind == "object" else value[0]
    return {"local": local, "ingest": ingest, "received": received, "value": answer}


def _set(items: list[Item], number: int, key: str, value: Any) -> None:
    items[number].edit("set", key, value)


def _splice(items: list[Item], index: int, deleted: int, inserted: list[Any]) -> None:
    if deleted:
        items[0].edit("delete", index, deleted)
    else:
        items[0].edit("insert", index, inserted)


def _replace(items: list[Item], position: int, deleted: int, inserted: str) -> None:
    items[0].edit("replace", position, deleted, inserted)


def _ingest(store: FeedStore, wire: list[bytes]) -> float:
    """Verify and store a feed from the bytes as they are sent."""
    start = now()
    some: list[spans.Span] = []
    size = 0
    for data in wire:
        some.append(spans.decode(data))
        size += len(data)
        if size >= COMMIT_SIZE:
            _take(store, some)
            some, size = [], 0
    _take(store, some)
    return now() - start


def _take(store: FeedStore, some: list[spans.Span]) -> None:
    assert all(result.outcome is Outcome.STORED for result in store.ingest_all(some))


# -- a real trace


def trace_feed(folder: str, edits: str) -> dict[str, Any]:
    with FeedStore.open(folder, durable=False) as store:
        scribe = Scribe(store, FeedWriter.open(store, PAIR, PARTY))
        return {"item": write_text(scribe, live_work.load(edits)).hex()}


def trace(folder: str, fresh: str, item: str, expected: str) -> dict[str, Any]:
    with FeedStore.open(folder, readonly=True) as source:
        wire = [span.encode() for span in source.spans(PAIR.key)]
    with _party(Path(fresh)) as (store, party):
        ingest = _ingest(store, wire)
        start = now()
        party.process()
        seconds = now() - start
        assert party.item(bytes.fromhex(item)).value == Path(expected).read_text()
        assert not party.refused()
    return {"ingest": ingest, "process": seconds}


# -- opening


def build(folder: str, items: int, history: int, window: int | None, blocks: int) -> dict[str, Any]:
    """Write the feeds of a party. Without a window, messages go to items at random."""
    chance = random.Random(1)
    order = sliding(items, history, window, chance) if window else scattered(items, history, chance)
    picked = set(chance.sample(range(items), min(items, PICKS)))
    start = now()
    with FeedStore.open(Path(folder, "feeds"), durable=False) as store:
        scribe = Scribe(store, FeedWriter.open(store, PAIR, PARTY), blocks)
        expected = list(write_objects(scribe, order, history, picked, chance).items())
    chance.shuffle(expected)  # so that the first of them are from all over the party
    Path(folder, "expected.json").write_text(json.dumps(expected))
    return {"seconds": now() - start}


def cold(folder: str) -> dict[str, Any]:
    path = Path(folder, "items.db")
    delete_file(path)
    expected = json.loads(Path(folder, "expected.json").read_text())
    with FeedStore.open(Path(folder, "feeds")) as store:
        messages = store.record(PAIR.key).length
        authority = OpenAuthority(store, PARTY)
        models = ModelFactory.standard()
        before = memory()
        start = now()
        party = PartyProcessor(PARTY, store, authority, path=path, models=models)
        seconds = now() - start
        after = memory()
        assert party.timeframe[PAIR.key] == messages - 1
        assert all(party.item(bytes.fromhex(item)).value == value for item, value in expected)
        party.close()
    return {"messages": messages, "seconds": seconds, "memory": {"before": before, "after": after}}


def warm(folder: str, reads: int) -> dict[str, Any]:
    """Run in a fresh process, so that its memory is that of this party.

    Models are loaded once in a process, whatever the party holds, so they are timed apart and not in the growth.
    """
    expected = json.loads(Path(folder, "expected.json").read_text())
    some = [(bytes.fromhex(item), value) for item, value in expected[: reads + 1]]
    del expected
    start = now()
    models = ModelFactory.standard()
    loaded = now() - start
    before = memory()
    start = now()
    with FeedStore.open(Path(folder, "feeds")) as store:
        authority = OpenAuthority(store, PARTY)
        feeds = now() - start
        start = now()
        party = PartyProcessor(PARTY, store, authority, path=Path(folder, "items.db"), models=models)
        opened = now() - start
        start = now()
        value = party.item(some[0][0]).value
        first = now() - start
        assert value == some[0][1]
        assert not party.why_rebuilt, party.why_rebuilt
        assert all(party.item(item).value == value for item, value in some[1:])
        after = memory()
        party.close()
    sizes = {"before": before, "after": after}
    return {"models": loaded, "feeds": feeds, "open": opened, "first": first, "memory": sizes}


def credentials(folder: str, items: int, history: int, window: int) -> dict[str, Any]:
    """A party with an owner and an editor, who writes."""
    from antiphon.testing.peers import Peers  # a tenth of a second that a warm open is not to pay for

    chance = random.Random(1)
    with Peers(folder) as peers:
        peers.add("owner")
        editor = peers.add("editor")
        editor.party.create("antiphon/object")
        scribe = Scribe(editor.store, editor.party.authority.writer())
        write_objects(scribe, sliding(items, history, window, chance), history, set(), chance)
        editor.party.delete()
        start = now()
        editor.restart_after_delete()
        seconds = now() - start
        assert editor.party.timeframe[scribe.feed] == scribe.count
        assert not editor.party.refused()
    shutil.rmtree(folder)
    return {"messages": scribe.count, "seconds": seconds}


def many_writers(folder: str, count: int, rounds: int) -> dict[str, Any]:
    """Measure a party of many writers."""
    from harness.live_writers import writers  # as above: not paid for by a warm open

    return writers(folder, count, rounds)


def many_writers_home(folder: str, count: int, rounds: int) -> dict[str, Any]:
    """Measure the opening of a home with a party of many writers."""
    from harness.live_writers import home

    return home(folder, count, rounds)


def memory() -> dict[str, int]:
    """Bytes of this process's memory, by the kernel's names."""
    sizes = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmHWM", "VmRSS", "RssAnon", "RssFile"):
            sizes[name] = int(value.split()[0]) << 10
    return sizes


def main() -> None:
    commands: dict[str, Callable[..., dict[str, Any]]] = {
        "work": work,
        "trace_feed": trace_feed,
        "trace": trace,
        "build": build,
        "cold": cold,
        "warm": warm,
        "credentials": credentials,
        "writers": many_writers,
        "home": many_writers_home,
    }
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(commands[command.pop("do")](**command)), flush=True)


if __name__ == "__main__":
    main()
