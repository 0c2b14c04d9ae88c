"""A store in a process of its own, which listens until its standard input ends: `python peer_process.py HOME`.

It writes its address, and then answers each line, the key of a party in hex, with the number of items there.
"""

from __future__ import annotations

import sys

import antiphon


def main(home: str) -> None:
    with antiphon.open(home) as store:
        print(store.listen(), flush=True)
        for line in sys.stdin:
            print(len(store.party(bytes.fromhex(line)).query()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
