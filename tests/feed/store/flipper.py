"""A process that changes bytes of a store's file and reads: `flipper.py FOLDER FIRST FLIPS SEED`.

The stored span that holds block FIRST is found in the raw file. Then bytes of it are changed one at a time (all of
them, or FLIPS chosen by SEED from every part), everything is read in every way, and the byte is put back. What was
served wrongly, or not reported rightly, is printed; then the number of bytes that were tried. It is a process of its
own because changed bytes may also crash the database, which must not take the tests along.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from antiphon.core.errors import CorruptBlock
from antiphon.feed.header import HASH_SIZE, HEADER_SIZE
from antiphon.feed.span import FIXED_SIZE, Span
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import byte_owners, key_pair

FEED = key_pair("alice").key


def main(folder: str, first: str, flips: str, seed: str) -> None:
    with FeedStore.open(folder) as store:
        with store._env.read() as tables:
            span = tables.span_at(tables.record(FEED), int(first))
            start, held = tables._stored_at(FEED, int(first))
            stored = bytes(held)
        assert start == span.first
        path = Path(folder) / "data.mdb"
        places = _places(path.read_bytes(), stored)
        owners = byte_owners(span)
        assert places
        assert len(owners) == len(stored)
        chance = random.Random(int(seed))
        chosen = list(range(len(stored))) if flips == "all" else _sample(span, len(stored), int(flips), chance)
        ways = _ways(store, span, chance)
        handle = os.open(path, os.O_RDWR)
        for at in chosen:
            mask = chance.choice([1 << chance.randrange(8), 0xFF])
            for place in places:
                os.pwrite(handle, bytes([stored[at] ^ mask]), place + at)
            for complaint in _complaints(ways, span, owners[at]):
                print(f"byte {at} of {len(stored)} (block {owners[at]}): {complaint}")
            for place in places:
                os.pwrite(handle, bytes([stored[at]]), place + at)
        for name, (read, right, _) in ways.items():
            assert read() == right, name
        store.verify(FEED)
        print(len(chosen))


def _places(data: bytes, stored: bytes) -> list[int]:
    """Where the span's bytes are; older copies may lie in free pages, and are changed along."""
    places: list[int] = []
    while (at := data.find(stored, places[-1] + 1 if places else 0)) >= 0:
        places.append(at)
    return places


def _sample(span: Span, size: int, flips: int, chance: random.Random) -> list[int]:
    """Bytes of every part: fixed part, headers, entries, hashes, states, bodies, checksum."""
    parts = [FIXED_SIZE, span.count * HEADER_SIZE, len(span.advance), span.count * HASH_SIZE, len(span.states)]
    bounds = [sum(parts[:at]) for at in range(len(parts) + 1)] + [size - 4, size]
    chosen = {size - 1, size - 4, 0}
    for low, high in itertools.pairwise(bounds):
        chosen |= {chance.randrange(low, high) for _ in range(flips // 6) if high > low}
    return sorted(chosen)


Way = tuple[Callable[[], Any], Any, int | None]


def _ways(store: FeedStore, span: Span, chance: random.Random) -> dict[str, Way]:
    """Every way to read, with what it returns as long as nothing changed; for a single block, its seq."""
    ways: dict[str, Callable[[], Any]] = {
        "iterator": lambda: list(store.read(FEED, span.first, span.end)),
        "arrow": lambda: [batch.to_pydict() for batch in store.arrow(FEED, span.first, span.end)],
        "one column": lambda: [b.to_pydict() for b in store.arrow(FEED, span.first, span.end, ["seq"])],
        "for a peer": lambda: next(store.spans(FEED, span.first)),
    }
    found: dict[str, Way] = {name: (read, read(), None) for name, read in ways.items()}
    for seq in range(span.first, span.end) if span.count < 20 else chance.sample(range(span.first, span.end), 5):
        found[f"block {seq}"] = partial(store.block, FEED, seq), store.block(FEED, seq), seq
    return found


def _complaints(ways: dict[str, Way], span: Span, owner: int | None) -> list[str]:
    complaints = []
    for name, (read, right, seq) in ways.items():
        try:
            served = read()
        except CorruptBlock as error:
            if error.feed != FEED or not span.first <= error.seq < span.end:
                complaints.append(f"{name} names feed {error.feed.hex()[:8]}, block {error.seq}")
            elif owner is not None and seq is None and error.seq != owner:
                complaints.append(f"{name} names block {error.seq}")
            continue
        if served != right:
            complaints.append(f"{name} served changed bytes")
        elif seq is None or seq == owner:
            complaints.append(f"{name} did not find it")
    return complaints


if __name__ == "__main__":
    main(*sys.argv[1:])
