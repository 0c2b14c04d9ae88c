"""A process beside the test's own: `child.py ROLE FOLDER [NUMBER]`, then a command for each line of its input.

roles: reader (opens read-only), writer (NUMBER is its map size), locker (tells what opening for writing says)
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from antiphon.core.errors import AntiphonError
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.watch import Watch
from antiphon.testing.spans import drafts, key_pair

ALICE, PARTY = key_pair("alice"), key_pair("party").key


def reader(folder: str, _: int) -> Callable[[str], str]:
    store = FeedStore.open(folder, readonly=True)
    watches: list[Watch] = []

    def answer(line: str) -> str:
        if line == "watch":
            watches.append(store.watch())
            return "watching"
        if line == "wait":
            return str(watches[-1].wait(60).get(ALICE.key, 0))
        if line == "append":
            return str(store.append(ALICE, PARTY, drafts(1))[0])
        read = [block.seq for block in store.read(ALICE.key)]
        assert read == list(range(store.bounds(ALICE.key).start, store.verify(ALICE.key).length))
        return str(len(read))

    return answer


def writer(folder: str, map_size: int) -> Callable[[str], str]:
    store = FeedStore.open(folder, map_size=map_size or 64 << 20)
    store.create(ALICE.key, PARTY)

    def answer(line: str) -> str:
        count, size = map(int, line.split())
        store.append(ALICE, PARTY, drafts(count, size))
        return str(store.bounds(ALICE.key).length)

    return answer


def locker(folder: str, _: int) -> Callable[[str], str]:
    def answer(line: str) -> str:
        with FeedStore.open(folder, readonly=line == "read"):
            return "opened"

    return answer


def main(role: str, folder: str, number: str = "0") -> None:
    answer = {"reader": reader, "writer": writer, "locker": locker}[role](folder, int(number))
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            print(answer(line.strip()), flush=True)
        except AntiphonError as error:
            print(f"{type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
