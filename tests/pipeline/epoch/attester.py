"""A live peer in a process of its own: it takes what another home has of a party, and takes part in its epochs.

Run with two folders, its own home and the other's. For each line that it is given it says where it stands, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from antiphon.api.store import Store
from antiphon.feed.store.feed_store import FeedStore
from antiphon.testing.copy_feeds import copy_feeds


def main(own: Path, other: Path) -> None:
    with Store.open(own, unprotected=True) as store:
        (party,) = store
        for _ in sys.stdin:
            with FeedStore.open(other / "feeds", readonly=True) as feeds:
                copy_feeds(feeds, store.manager.feeds, bytes(party.key))
            party.refresh()
            party.epochs.step()
            base = store.manager.epochs(party.key).base
            told = {"number": party.epochs.number, "base": "" if base is None else str(base.cid)}
            sys.stdout.write(json.dumps(told | {"waits_for": party.epochs.waits_for}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
