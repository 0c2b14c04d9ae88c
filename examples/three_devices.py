"""Three devices, three processes, three stores: they found a party, admit, revoke, and agree.

Each device is a process of its own with its own folder. They talk over pipes; all that passes between them is bytes:
ranges of feeds under signed heads, in an order that differs from device to device. At the end each prints the hash of
the party's state as it sees it.

    make demo
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from antiphon.core.errors import AntiphonError
from antiphon.core.keys import PublicKey
from antiphon.core.ports import SystemRandomness
from antiphon.feed.header import Kind
from antiphon.feed.store import FeedStore
from antiphon.halo.claims import FeedKind, Role
from antiphon.halo.identity import new_device, new_identity
from antiphon.halo.keyfile import Protection
from antiphon.halo.keystore import KeyStore
from antiphon.halo.membership import Membership
from antiphon.party.meta import MetaStore

NAMES = ("alice", "bob", "carol")


# -- the device process: answers one JSON line for each JSON line


class DeviceProcess:
    """A device with its stores on disk."""

    def __init__(self, name: str, home: Path) -> None:
        self.keys = KeyStore.create(home / "keys", protection=Protection.UNPROTECTED)
        self.identity, self.phrase = new_identity(self.keys, name, SystemRandomness())
        self.device = new_device(self.keys, f"{name}'s laptop", self.identity.key)
        self.store = FeedStore.open(home / "feeds")
        self.meta = MetaStore.open(home / "meta.db")
        self.party: Membership | None = None

    def member(self) -> Membership:
        if self.party is None:
            raise SystemExit("no party yet")
        return self.party

    def whoami(self) -> dict[str, str]:
        return {"identity": self.identity.key.hex()}

    def found(self) -> dict[str, str]:
        self.party = Membership.found(self.store, self.keys, self.identity, self.device)
        return self.subscribed()

    def subscribed(self) -> dict[str, str]:
        party = self.member()
        self.meta.subscribe(party.party, genesis_feed=party.genesis_feed, label="demo")
        return {"party": party.party.hex(), "genesis": party.genesis_feed.hex()}

    def visit(self, party: str, genesis: str) -> dict[str, str]:
        """Know of a party from an invitation: its key, and the key of its first feed."""
        self.party = Membership.open(
            self.store, self.keys, self.device, PublicKey.from_hex(party), PublicKey.from_hex(genesis)
        )
        return self.subscribed()

    def join(self) -> dict[str, str]:
        party = self.member()
        party.join(party.vouch(self.identity))
        return {"feed": party.open_data_feed().feed.hex()}

    def admit(self, identity: str, role: str) -> dict[str, str]:
        return {"stamp": str(self.member().admit(bytes.fromhex(identity), [Role[role]]))}

    def revoke(self, identity: str) -> dict[str, str]:
        return {"stamp": str(self.member().revoke(bytes.fromhex(identity)))}

    def write(self, count: int) -> dict[str, int]:
        writer = self.member().open_data_feed()
        for number in range(count):
            writer.append(Kind.MUTATION, bytes(16), f"note {number}".encode())
        return {"written": count}

    def lengths(self) -> dict[str, int]:
        return {record.feed.hex(): record.length for record in self.store.feeds(self.member().party)}

    def give(self, have: dict[str, int]) -> dict[str, list[str]]:
        """The ranges that the other lacks, as bytes."""
        ranges = []
        for record in self.store.feeds(self.member().party):
            start = have.get(record.feed.hex(), 0)
            if start < record.length:
                ranges += [span.encode().hex() for span in self.store.spans(record.feed, start)]
        return {"ranges": ranges}

    def take(self, ranges: list[str], seed: int) -> dict[str, int]:
        """Ranges in an order of this device's own; what does not link up yet is tried again."""
        waiting, taken = [bytes.fromhex(data) for data in ranges], 0
        random.Random(seed).shuffle(waiting)
        while waiting:
            left = []
            for data in waiting:
                try:
                    taken += self.store.ingest_bytes(data).added
                except AntiphonError:
                    left.append(data)
            if len(left) == len(waiting):
                break
            waiting = left
        return {"blocks": taken, "refused": len(waiting)}

    def state(self) -> dict[str, object]:
        state = self.member().state
        data = [feed.feed for feed in state.feeds if feed.kind is FeedKind.DATA]
        return {
            "digest": state.digest.hex(),
            "members": {member.subject.hex(): sorted(role.name for role in member.roles) for member in state.members},
            "feeds": len(state.feeds),
            "notes": sum(self.in_force(feed) for feed in data),
            "void notes": sum(self.store.bounds(feed).length - self.in_force(feed) for feed in data),
        }

    def in_force(self, feed: bytes) -> int:
        """How many blocks of a data feed count."""
        return sum(1 for _ in self.member().in_force(feed))


def serve(name: str, home: Path) -> None:
    device = DeviceProcess(name, home)
    for line in sys.stdin:
        call = json.loads(line)
        answer = getattr(device, call.pop("do"))(**call)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    device.store.close()
    device.meta.close()


# -- the director: starts the devices and carries bytes between them


class Remote:
    """A handle on a device process."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        command = [sys.executable, __file__, "--device", name, "--home", str(home / name)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, do: str, **arguments: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name}'s process ended")
        found: dict[str, object] = json.loads(answer)
        return found

    def close(self) -> None:
        self._process.communicate()


def exchange(devices: list[Remote], chance: random.Random) -> int:
    """Let every device have what the others have, in random pairs and orders, until nobody learns anything."""
    total = 0
    while True:
        learned = 0
        pairs = [(one, other) for one in devices for other in devices if one is not other]
        chance.shuffle(pairs)
        for giver, taker in pairs:
            ranges = giver("give", have=taker("lengths"))["ranges"]
            blocks = taker("take", ranges=ranges, seed=chance.randrange(1 << 30))["blocks"]
            assert isinstance(blocks, int)
            learned += blocks
        total += learned
        if not learned:
            return total


def direct(home: Path, seed: int, console: Console) -> bool:
    chance = random.Random(seed)
    marker = home / "made-by-the-demo"
    if home.exists() and any(home.iterdir()) and not marker.exists():
        raise SystemExit(f"{home} is not empty, and not the demo's; name another folder with --home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()
    devices = [Remote(name, home) for name in NAMES]
    alice, bob, carol = devices
    who = {device.name: str(device("whoami")["identity"]) for device in devices}

    console.print("[bold]Three devices[/], each a process with a store of its own.")
    invitation = alice("found")
    console.print(f"alice founds party {str(invitation['party'])[:8]}; its genesis key signed once and is gone")
    for device, role in ((bob, "OWNER"), (carol, "EDITOR")):
        alice("admit", identity=who[device.name], role=role)
        device("visit", **invitation)
        exchange([alice, device], chance)
        device("join")
        console.print(f"{device.name} is admitted as {role.lower()}, joins, and opens its feeds")
    exchange(devices, chance)
    for device in (bob, carol):
        device("write", count=50)
    moved = exchange([bob, carol], chance)
    console.print(f"bob and carol write 50 notes each; {moved} blocks passed between the two")

    bob("revoke", identity=who["carol"])
    carol("write", count=25)
    console.print("bob revokes carol, while carol, who has not heard, writes 25 notes more")
    moved = exchange(devices, chance)
    console.print(f"all exchange what they have, in orders of their own: {moved} blocks")

    states = [device("state") for device in devices]
    table = Table("device", "members", "feeds", "notes", "void notes", "hash of the party's state")
    names = {key: name for name, key in who.items()}
    for device, state in zip(devices, states, strict=True):
        members = state["members"]
        assert isinstance(members, dict)
        shown = ", ".join(sorted(f"{names[key]} ({'/'.join(roles).lower()})" for key, roles in members.items()))
        figures = [str(state[key]) for key in ("feeds", "notes", "void notes")]
        table.add_row(device.name, shown, *figures, str(state["digest"])[:16])
    console.print(table)
    agreed = len({str(state["digest"]) for state in states}) == 1
    console.print("[bold green]All three agree.[/]" if agreed else "[bold red]They do not agree.[/]")
    for device in devices:
        device.close()
    return agreed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="a folder for the three stores, made anew")
    parser.add_argument("--seed", type=int, default=7, help="decides the orders of exchange")
    parser.add_argument("--device", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device:
        options.home.mkdir(parents=True, exist_ok=True)
        serve(options.device, options.home)
        return
    if not direct(options.home, options.seed, Console()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
