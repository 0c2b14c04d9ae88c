"""A process that writes through the API and acknowledges: `journal_writer.py HOME SEED`.

First it prints what it finds in the home, as a line of JSON. Then it writes without end, in several ways, and prints a
line for each act that has returned. Its reader keeps these lines as a journal, and kills the process.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import antiphon
from antiphon import List, Party, Text


def tell(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def opened(store: antiphon.Store) -> Party:
    """The party of the home. It is made, with its three items, in the first run; a kill may come between any two."""
    party = store.party("Journal") if store.parties() else store.create_party("Journal")
    for name, make in (("object", party.object), ("list", party.list), ("text", party.text)):
        if not any(item.name == name for item in party.query()):
            make(name=name)
    return party


def main(home: str, seed: str) -> None:
    chance = random.Random(seed)
    with antiphon.open(home, unprotected=True, epochs=False) as store:
        party = opened(store)
        items = {item.name: item for item in party.query()}
        values, entries, text = items["object"], party.item(items["list"].id, List), party.item(items["text"].id, Text)
        tell({"object": values.value, "list": list(entries), "text": str(text)})
        number = 0
        while True:
            number += 1
            name, act = f"{seed}.{number}", chance.random()
            if act < 0.4:
                values.edit("set", name, number)
                tell(["object", name, number])
            elif act < 0.6:
                entries.append(name)
                tell(["list", name])
            elif act < 0.8:
                text.append(f"{name};")
                tell(["text", f"{name};"])
            elif act < 0.94:
                with party.batch():
                    values.edit("set", name, number)
                    entries.append(name)
                    text.append(f"{name};")
                tell(["batch", name, number])
            elif act < 0.97:
                party.epochs.declare()
                tell(["epoch"])
            else:
                party.epochs.prune()
                tell(["prune"])


if __name__ == "__main__":
    main(*sys.argv[1:])
