"""A process that appends and acknowledges: `acker.py FOLDER SEED ROUNDS [THREADS [nosync]]`.

Each append that returned is acknowledged by a line "number first count atomic", and, where `unsynced.c` is
preloaded, by a mark in its log. The messages say which append they belong to: "seed.number index/count …".
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.spans import key_pair

ALICE, PARTY = key_pair("alice"), key_pair("party").key


def main(folder: str, seed: str, rounds: str, threads: str = "1", mode: str = "durable") -> None:
    mark = getattr(ctypes.CDLL(None), "unsynced_mark", None)
    store = FeedStore.open(folder, durable=mode == "durable", map_size=1 << 18)
    store.create(ALICE.key, PARTY)

    def append(number: int) -> None:
        chance = random.Random(f"{seed}.{number}")
        count, size, atomic = chance.choice([1, 2, 7, 60]), chance.choice([0, 50, 3000]), chance.random() < 0.5
        batch = [
            Draft(Kind.MUTATION, bytes(16), f"{seed}.{number} {at}/{count} ".encode().ljust(size, b"."))
            for at in range(count)
        ]
        first = store.append(ALICE, PARTY, batch, atomic=atomic)[0].seq
        if mark is not None:
            mark(ctypes.c_uint64(number))
        os.write(1, f"{number} {first} {count} {int(atomic)}\n".encode())

    with ThreadPoolExecutor(int(threads)) as pool:
        for _ in map(append, range(int(rounds))) if threads == "1" else pool.map(append, range(int(rounds))):
            pass
    if mode == "durable":
        store.close()
    os._exit(0)  # without a sync at the end, where none was asked for


if __name__ == "__main__":
    main(*sys.argv[1:])
