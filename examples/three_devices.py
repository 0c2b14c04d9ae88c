"""Three devices in three processes create a party, edit apart, sync, admit, revoke, and agree.

Each device is a process with its own folder. They communicate over pipes, and exchange only bytes: ranges of feeds
under signed heads, in an order that differs from device to device. Two devices edit a text and an object while they are
apart. After a sync they have the same bytes; each prints the hash of the party's state and of all its items. Then the
history is cut at an epoch: every device computes the same snapshot and drops the messages before it, and a new device
begins with the snapshot and the tail alone.

    make demo
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError
from antiphon.core.keys import PublicKey
from antiphon.core.ports import SystemRandomness
from antiphon.feed.span import claimed_feed
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.credentials.claims import Role
from antiphon.halo.keys.identity import new_device, new_identity
from antiphon.halo.keys.key_file import Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.store.meta_store import MetaStore
from antiphon.snapshot.blob_store import BlobStore

NAMES = ("alice", "bob", "carol")
NEWCOMER = "dora"
MODELS = ("object", "text", "messenger")
LIVE = "live.json"  # in the folder of the demo: the final state of each device


# -- the device process: answers one JSON line for each JSON line


class DeviceProcess:
    """A device with its stores on disk."""

    def __init__(self, name: str, home: Path) -> None:
        self.keys = KeyStore.create(home / "keys", protection=Protection.UNPROTECTED)
        self.identity, self.recovery_phrase = new_identity(self.keys, name, SystemRandomness())
        self.device = new_device(self.keys, f"{name}'s laptop", self.identity.key)
        self.store = FeedStore.open(home / "feeds")
        self.meta = MetaStore.open(home / "meta.db")
        self.blobs = BlobStore.open(home / "blobs")
        self.home = home
        self.party: Membership | None = None
        self.processor: PartyProcessor | None = None
        self.known_epochs: Epochs | None = None

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
        """Hold a party from an invitation: its key, and the key of its first feed."""
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

    def live(self) -> PartyProcessor:
        """Return the running party."""
        if self.processor is None:
            member = self.member()
            authority = PartyAuthority.of(self.store, member)
            self.processor = PartyProcessor(
                member.party, self.store, authority, path=self.home / "items.db", blobs=self.blobs
            )
        return self.processor

    def epochs(self) -> Epochs:
        if self.known_epochs is None:
            self.known_epochs = Epochs(self.live(), self.member())
        return self.known_epochs

    def declare(self) -> dict[str, int]:
        """Declare an epoch."""
        return {"number": self.epochs().declare().number}

    def step(self) -> dict[str, object]:
        """Recompute, attest, move onto the final epoch. Return its number and its snapshot."""
        self.epochs().step()
        base = self.epochs().base
        return {"number": self.epochs().number, "snapshot": "" if base is None else str(base.cid)}

    def prune(self) -> dict[str, int]:
        return {"dropped": self.epochs().prune()}

    def wanted(self) -> dict[str, list[str]]:
        """Return the CIDs of missing blobs of the last final epoch."""
        return {"cids": [str(cid) for cid in self.epochs().wanted(whole=True)]}

    def get_blobs(self, cids: list[str]) -> dict[str, dict[str, str]]:
        return {"blobs": {cid: self.blobs.get(Cid.parse(cid)).hex() for cid in cids}}

    def put_blobs(self, blobs: dict[str, str]) -> dict[str, int]:
        """Store blobs. Each is checked against its CID."""
        self.blobs.put_all((Cid.parse(cid), bytes.fromhex(data)) for cid, data in blobs.items())
        return {"blobs": len(blobs)}

    def create(self, model: str) -> dict[str, str]:
        return {"item": self.live().create(model).id.hex()}

    def edit(self, item: str, command: str, arguments: list[Any]) -> dict[str, str]:
        return {"stamp": str(self.live().item(bytes.fromhex(item)).edit(command, *arguments))}

    def post(self, item: str, count: int) -> dict[str, int]:
        """Write several posts in one batch."""
        party = self.live()
        with party.batch():
            for number in range(count):
                party.item(bytes.fromhex(item)).edit("post", f"note {number}")
        return {"written": count}

    def show(self, item: str) -> dict[str, Any]:
        """Return the value of an item, and the hash of its bytes."""
        found = self.live().item(bytes.fromhex(item))
        return {"value": found.value, "bytes": hashlib.sha256(found.snapshot()).hexdigest()}

    def held(self) -> dict[str, object]:
        """Return the hash of every item, and the epoch, for `bulk.py` to compare with."""
        party = self.live()
        items = {item.hex(): hashlib.sha256(party.snapshot(item)).hexdigest() for item in party.items()}
        return {"party": party.key.hex(), "items": items, **self.step()}

    def lengths(self) -> dict[str, int]:
        return {record.feed.hex(): record.length for record in self.store.feeds(self.member().party)}

    def give(self, have: dict[str, int]) -> dict[str, list[str]]:
        """Return the ranges that another device lacks, as bytes."""
        ranges = []
        for record in self.store.feeds(self.member().party):
            start = max(record.start, have.get(record.feed.hex(), 0))
            if start < record.length:
                ranges += [span.encode().hex() for span in self.store.spans(record.feed, start)]
        return {"ranges": ranges}

    def take(self, ranges: list[str], seed: int) -> dict[str, int]:
        """Store ranges in a random order; a range that does not link yet is tried again."""
        waiting, taken = [bytes.fromhex(data) for data in ranges], 0
        begins = self.epochs().begins()  # where feeds may begin if an epoch holds the earlier messages
        random.Random(seed).shuffle(waiting)
        while waiting:
            left = []
            for data in waiting:
                try:
                    taken += self.store.ingest_bytes(data, begins.get(claimed_feed(data) or b"")).added
                except AntiphonError:
                    left.append(data)
            if len(left) == len(waiting):
                break
            waiting = left
        if taken:
            self.live().process()
        return {"blocks": taken, "refused": len(waiting)}

    def state(self) -> dict[str, object]:
        state, party = self.member().state, self.live()
        items = hashlib.sha256(b"".join(party.snapshot(item) for item in party.items())).hexdigest()
        return {
            "digest": state.digest.hex(),
            "members": {member.subject.hex(): sorted(role.name for role in member.roles) for member in state.members},
            "feeds": len(state.feeds),
            "items": items,
            "void": len(party.refused()),
        }


def serve(name: str, home: Path) -> None:
    device = DeviceProcess(name, home)
    for line in sys.stdin:
        call = json.loads(line)
        answer = getattr(device, call.pop("do"))(**call)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    if device.processor is not None:
        device.processor.close()
    device.store.close()
    device.blobs.close()
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


def sync(devices: list[Remote], chance: random.Random) -> int:
    """Copy blocks between random pairs of devices, until no device lacks any."""
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


def edit_apart(alice: Remote, bob: Remote, trip: str, plan: str) -> None:
    """Both edit the same object and the same text, without a sync in between."""
    alice("edit", item=plan, command="insert", arguments=[16, ", by train"])
    alice("edit", item=trip, command="set", arguments=["title", "A trip to the sea"])
    alice("edit", item=trip, command="add", arguments=["bring", "towels"])
    bob("edit", item=plan, command="insert", arguments=[0, "In June: "])
    bob("edit", item=plan, command="mark", arguments=[0, 7, "bold", True])
    bob("edit", item=trip, command="add", arguments=["bring", "books"])
    bob("edit", item=trip, command="set", arguments=[["hotel", "stars"], 3])


def show(console: Console, devices: list[Remote], trip: str, plan: str) -> bool:
    """Print the object and the text of each device. True if the bytes are equal."""
    table = Table("device", "the object", "the text", "hash of both")
    hashes = set()
    for device in devices:
        item, text = device("show", item=trip), device("show", item=plan)
        both = hashlib.sha256(f"{item['bytes']}{text['bytes']}".encode()).hexdigest()[:16]
        hashes.add(both)
        table.add_row(device.name, json.dumps(item["value"]), str(text["value"]), both)
    console.print(table)
    return len(hashes) == 1


def fetch(giver: Remote, taker: Remote) -> int:
    """Copy the blobs of the last final epoch's snapshot, level by level, until none is missing."""
    count = 0
    while cids := taker("wanted")["cids"]:
        blobs = giver("get_blobs", cids=cids)["blobs"]
        taker("put_blobs", blobs=blobs)
        taker("step")
        assert isinstance(blobs, dict)
        count += len(blobs)
    return count


def cut(
    console: Console, home: Path, devices: list[Remote], chance: random.Random, invitation: dict[str, object]
) -> bool:
    """Declare an epoch, drop the messages before it, and let a new device begin with the snapshot and the tail."""
    alice = devices[0]
    dora = Remote(NEWCOMER, home)
    alice("admit", identity=dora("whoami")["identity"], role="READER")
    number = alice("declare")["number"]
    sync(devices, chance)
    snapshots = {device("step")["snapshot"] for device in devices}
    dropped = [device("prune")["dropped"] for device in devices]
    console.print(f"\nalice declares [bold]epoch {number}[/]; each device computes the snapshot itself:")
    console.print(f"  {snapshots.pop()}")
    console.print(f"each drops the messages before it: {', '.join(map(str, dropped))} blocks")
    late = alice("create", model="antiphon/text")["item"]
    alice("edit", item=late, command="insert", arguments=[0, "After the epoch."])
    sync(devices, chance)

    dora("visit", **invitation)
    moved = sync([alice, dora], chance)
    blobs = fetch(alice, dora)
    moved += sync([alice, dora], chance)
    found, wanted = dora("step"), alice("step")
    same = not snapshots and found == wanted and dora("state")["items"] == alice("state")["items"]
    console.print(f"dora joins with {blobs} blobs, and {moved} blocks: those of the control feeds, and the tail")
    console.print(f"  {found['snapshot']}")
    dora.close()
    return same


def hold(console: Console, home: Path, devices: list[Remote], chance: random.Random, trip: str, notes: str) -> bool:
    """Declare another epoch without dropping messages, write some more, and store the final states for `bulk.py`."""
    number = devices[0]("declare")["number"]
    sync(devices, chance)
    for device in devices:
        device("step")
    devices[0]("post", item=notes, count=20)
    devices[1]("edit", item=trip, command="set", arguments=["title", "A trip to the mountains"])
    sync(devices, chance)
    held = {device.name: device("held") for device in devices}
    (home / LIVE).write_text(json.dumps(held))
    console.print(f"alice declares epoch {number}; all devices keep its messages, for the last part of the demo")
    return len({json.dumps(one, sort_keys=True) for one in held.values()}) == 1


def direct(home: Path, seed: int, console: Console) -> bool:
    chance = random.Random(seed)
    marker = home / "made-by-the-demo"
    if home.exists() and any(home.iterdir()) and not marker.exists():
        raise SystemExit(f"{home} is not empty, and was not made by the demo; name another folder with --home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()
    devices = [Remote(name, home) for name in NAMES]
    alice, bob, carol = devices
    who = {device.name: str(device("whoami")["identity"]) for device in devices}

    console.print("[bold]Three devices[/], each a process with its own store.")
    invitation = alice("found")
    console.print(f"alice creates party {str(invitation['party'])[:8]}; its genesis key signs once and is discarded")
    for device, role in ((bob, "OWNER"), (carol, "EDITOR")):
        alice("admit", identity=who[device.name], role=role)
        device("visit", **invitation)
        sync([alice, device], chance)
        device("join")
        console.print(f"{device.name} is admitted as {role.lower()}, joins, and opens its feeds")
    sync(devices, chance)

    trip, plan, notes = (str(alice("create", model=f"antiphon/{model}")["item"]) for model in MODELS)
    alice("edit", item=trip, command="set", arguments=["title", "A trip"])
    alice("edit", item=plan, command="insert", arguments=[0, "We go to the sea."])
    sync(devices, chance)
    console.print("\nalice creates an object, a text and a thread; all sync. [bold]Now alice and bob edit apart:[/]")
    edit_apart(alice, bob, trip, plan)
    show(console, [alice, bob], trip, plan)
    moved = sync([alice, bob], chance)
    console.print(f"[bold]after a sync[/] of {moved} blocks: the same on both, byte for byte")
    same = show(console, [alice, bob], trip, plan)

    for device in (bob, carol):
        device("post", item=notes, count=50)
    moved = sync([bob, carol], chance)
    console.print(f"\nbob and carol post 50 notes each, and exchange {moved} blocks")
    bob("revoke", identity=who["carol"])
    carol("post", item=notes, count=25)
    console.print("bob revokes carol, while carol, who does not know it yet, posts 25 more notes")
    moved = sync(devices, chance)
    console.print(f"all sync, each in its own order: {moved} blocks")

    states = [device("state") for device in devices]
    table = Table("device", "members", "feeds", "void", "hash of the party's state", "hash of all items")
    names = {key: name for name, key in who.items()}
    for device, state in zip(devices, states, strict=True):
        members = state["members"]
        assert isinstance(members, dict)
        shown = ", ".join(sorted(f"{names[key]} ({'/'.join(roles).lower()})" for key, roles in members.items()))
        figures = [str(state[key]) for key in ("feeds", "void")]
        table.add_row(device.name, shown, *figures, str(state["digest"])[:16], str(state["items"])[:16])
    console.print(table)
    agreed = same and len({(str(state["digest"]), str(state["items"])) for state in states}) == 1
    console.print("[bold green]All three agree.[/]" if agreed else "[bold red]They do not agree.[/]")
    same = cut(console, home, devices, chance, invitation)
    same = hold(console, home, devices, chance, trip, notes) and same
    console.print("[bold green]The same snapshot, the same items.[/]" if same else "[bold red]The snapshots differ.[/]")
    for device in devices:
        device.close()
    return agreed and same


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="a folder for the stores, made again")
    parser.add_argument("--seed", type=int, default=7, help="decides the order in which devices sync")
    parser.add_argument("--device", choices=(*NAMES, NEWCOMER), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device:
        options.home.mkdir(parents=True, exist_ok=True)
        serve(options.device, options.home)
        return
    if not direct(options.home, options.seed, Console()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
