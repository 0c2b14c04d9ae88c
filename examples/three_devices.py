"""Three devices in three processes create a party over a network, edit apart, meet again, and agree.

Each device is a process with its own store, which listens on this machine; every block goes over an encrypted channel
between two of them. While connections are cut, both sides write; when they are back, all have the same bytes. A member
is revoked, and from then on nobody answers it. Then the history is cut at an epoch: devices compute the same snapshot,
each for itself, and drop the messages before it, and a new device begins with the snapshot and the tail alone.

    make demo
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import antiphon
from antiphon import AntiphonError, Party, Role
from antiphon.snapshot.blob_store import BlobStore

NAMES = ("alice", "bob", "carol")
NEWCOMER = "dora"
PARTY = "Summer trip"
LIVE = "live.json"  # in the folder of the demo: the final state of each device
PATIENCE = 30.0  # seconds
Route = Callable[[str], str]


# -- the device process: answers one JSON line for each JSON line


class Device:
    """A device with its store on disk."""

    def __init__(self, name: str, home: Path) -> None:
        self.store = antiphon.open(home, name=name, unprotected=True, epochs=False)
        self.address = str(self.store.listen())

    def whoami(self) -> dict[str, str]:
        return {"identity": self.store.me.hex(), "device": self.store.device.hex(), "address": self.address}

    # -- the party

    @property
    def party(self) -> Party:
        return self.store.party(PARTY)

    def found(self) -> dict[str, str]:
        return {"party": str(self.store.create_party(PARTY).key)}

    def invite(self, identity: str, role: str) -> dict[str, str]:
        return {"invitation": str(self.party.invite(identity, Role[role]))}

    def join(self, invitation: str) -> dict[str, object]:
        self.store.join(invitation)
        return {}

    def revoke(self, identity: str) -> dict[str, object]:
        self.party.revoke(identity)
        return {}

    # -- the network

    def connect(self, address: str) -> dict[str, object]:
        self.store.connect(address)
        return {}

    def disconnect(self, address: str) -> dict[str, object]:
        self.store.disconnect(address)
        return {}

    def lengths(self) -> dict[str, int]:
        """Return the length of each feed of which this device holds blocks."""
        feeds = self.store.manager.feeds.feeds(bytes(self.party.key))
        return {record.feed.hex(): record.length for record in feeds if record.start < record.length}

    def reach(self, lengths: dict[str, int]) -> dict[str, int]:
        """Wait until all blocks up to these lengths have come, and apply them. Return how many came meanwhile."""
        before = sum(self.lengths().values())
        until(lambda: all(self.lengths().get(feed, 0) >= length for feed, length in lengths.items()))
        self.party.refresh()
        return {"came": sum(self.lengths().values()) - before}

    def ready(self) -> dict[str, object]:
        """Wait until this device has the party, and has joined it."""
        until(self._has_joined)
        return {}

    def _has_joined(self) -> bool:
        try:
            return self.party.member.control is not None
        except AntiphonError:  # the first blocks have not come
            return False

    # -- items

    def create(self, model: str) -> dict[str, str]:
        return {"item": self.party.create(model).id.hex()}

    def edit(self, item: str, command: str, arguments: list[Any]) -> dict[str, object]:
        self.party.item(bytes.fromhex(item)).edit(command, *arguments)
        return {}

    def post(self, item: str, count: int) -> dict[str, object]:
        """Write several posts in one batch."""
        with self.party.batch():
            for number in range(count):
                self.party.item(bytes.fromhex(item)).edit("post", f"note {number}")
        return {}

    def show(self, item: str) -> dict[str, Any]:
        """Return the value of an item, and its bytes."""
        found = self.party.processor.item(bytes.fromhex(item))
        return {"value": found.value, "bytes": found.snapshot().hex()}

    def state(self) -> dict[str, object]:
        """Return the members of the party, and the hashes of its state and of all its items."""
        state, items = self.party.members, self.items()
        return {
            "digest": state.digest.hex(),
            "members": {member.subject.hex(): sorted(role.name for role in member.roles) for member in state.members},
            "feeds": len(state.feeds),
            "items": hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest(),
            "void": len(self.party.refused()),
        }

    def items(self) -> dict[str, str]:
        """Return the hash of every item."""
        processor = self.party.processor
        return {item.hex(): hashlib.sha256(processor.snapshot(item)).hexdigest() for item in processor.items()}

    # -- epochs

    def attesters(self, devices: list[str]) -> dict[str, object]:
        self.party.epochs.set_policy(attesters=devices, generator=self.store.device)
        return {}

    def declare(self) -> dict[str, int]:
        return {"number": self.party.epochs.declare().number}

    def stand(self, number: int) -> dict[str, object]:
        """Wait until an epoch is final, and this device stands on its snapshot."""
        until(lambda: self.party.epochs.step() or self.party.epochs.number >= number)
        return self.epoch()

    def epoch(self) -> dict[str, object]:
        epochs = self.party.epochs
        found = [str(epoch.snapshot) for epoch in epochs if epoch.final and epoch.number == epochs.number]
        return {"number": epochs.number, "snapshot": "".join(found)}

    def prune(self) -> dict[str, int]:
        return {"dropped": self.party.epochs.prune()}

    def blobs(self) -> dict[str, int]:
        blobs = self.store.manager.blobs
        assert isinstance(blobs, BlobStore)
        return {"blobs": blobs.count}

    def held(self) -> dict[str, object]:
        """Return the hash of every item, and the epoch, for `bulk.py` to compare with."""
        return {"party": self.party.key.hex(), "items": self.items(), **self.epoch()}


def until(done: Callable[[], object]) -> None:
    """Look again and again until something is done, for half a minute at most."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing came for {PATIENCE:.0f} seconds")
        pause.wait(0.005)


def serve(name: str, home: Path) -> None:
    device = Device(name, home)
    for line in sys.stdin:
        call = json.loads(line)
        answer = getattr(device, call.pop("do"))(**call)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    device.store.close()


# -- the director: tells the devices what to do; what they know of each other comes over the network


class Remote:
    """A handle on a device process."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        command = [sys.executable, __file__, "--device", name, "--home", str(home / name)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @cached_property
    def _about(self) -> dict[str, str]:
        return self("whoami")

    @property
    def identity(self) -> str:
        return self._about["identity"]

    @property
    def key(self) -> str:
        return self._about["device"]

    @property
    def address(self) -> str:
        return self._about["address"]

    def __call__(self, do: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name}'s process ended")
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        self._process.communicate()


class Story:
    """The devices, and what is told of them."""

    def __init__(self, home: Path, console: Console, route: Route) -> None:
        self.home = home
        self.console = console
        self.route = route  # the address under which an address is reached: a test puts a proxy between
        self.devices = [Remote(name, home) for name in NAMES]  # they start side by side
        self.alice, self.bob, self.carol = self.devices
        self.names = {device.identity: device.name for device in self.devices}

    def tell(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def link(self, dialler: Remote, answerer: Remote) -> None:
        dialler("connect", address=self.route(answerer.address))

    def cut(self, dialler: Remote, answerer: Remote) -> None:
        dialler("disconnect", address=self.route(answerer.address))

    @contextmanager
    def apart(self, device: Remote) -> Iterator[None]:
        """Cut all connections of one device, and connect it again afterwards."""
        others = [other for other in self.devices if other is not device]
        for other in others:
            self.cut(*self._ends(device, other))
        yield
        for other in others:
            self.link(*self._ends(device, other))

    def _ends(self, one: Remote, other: Remote) -> tuple[Remote, Remote]:
        """Return who dials, and who answers: later ones dial earlier ones."""
        first, second = sorted((one, other), key=self.devices.index)
        return second, first

    def meet(self, *devices: Remote) -> str:
        """Wait until these devices hold the same blocks. Return how many came, and how long it took."""
        begun, came = time.monotonic(), 0
        while True:
            held = [device("lengths") for device in devices]
            if all(one == held[0] for one in held):
                return f"{came} blocks in {1000 * (time.monotonic() - begun):.0f} ms"
            most = {feed: max(one.get(feed, 0) for one in held) for feed in set().union(*held)}
            came += sum(device("reach", lengths=most)["came"] for device in devices)

    # -- the parts

    def begin(self) -> None:
        self.tell("[bold]Three devices[/], each a process with its own store, which listens on this machine:")
        for device in self.devices:
            scheme, _, place = device.address.partition("//")
            self.tell(f"  {device.name:6}{scheme}//{place[:8]}…{place[place.index('@') :]}")
        party = str(self.alice("found")["party"])
        self.tell(f"alice creates party {party[:8]}…; its genesis key signs once and is discarded")
        for device, role in ((self.bob, "OWNER"), (self.carol, "EDITOR")):
            begun = time.monotonic()
            invitation = self.alice("invite", identity=device.identity, role=role)["invitation"]
            device("join", invitation=invitation)
            self.link(device, self.alice)
            device("ready")
            took = f"{1000 * (time.monotonic() - begun):.0f} ms"
            self.tell(f"{device.name} is admitted as {role.lower()}, dials alice, and joins: {took}")
        self.link(self.carol, self.bob)
        self.meet(*self.devices)

    def edit(self) -> bool:
        """Both sides of a partition write; then they have the same bytes. True if so."""
        alice, bob, carol = self.devices
        models = ("object", "text", "messenger")
        self.trip, self.plan, self.notes = (str(alice("create", model=f"antiphon/{model}")["item"]) for model in models)
        alice("edit", item=self.trip, command="set", arguments=["title", "A trip"])
        alice("edit", item=self.plan, command="insert", arguments=[0, "We go to the sea."])
        self.tell(f"alice creates an object, a text and a thread, and all get them: {self.meet(*self.devices)}")
        with self.apart(alice):
            self.tell(
                "\n[bold]Alice's connections are cut[/]; she edits, bob edits, and bob and carol post 50 notes each:"
            )
            alice("edit", item=self.plan, command="insert", arguments=[16, ", by train"])
            alice("edit", item=self.trip, command="set", arguments=["title", "A trip to the sea"])
            alice("edit", item=self.trip, command="add", arguments=["bring", "towels"])
            bob("edit", item=self.plan, command="insert", arguments=[0, "In June: "])
            bob("edit", item=self.plan, command="mark", arguments=[0, 7, "bold", True])
            bob("edit", item=self.trip, command="add", arguments=["bring", "books"])
            bob("edit", item=self.trip, command="set", arguments=[["hotel", "stars"], 3])
            for device in (bob, carol):
                device("post", item=self.notes, count=50)
            self.meet(bob, carol)
            self.show(self.devices)
        moved = self.meet(*self.devices)
        self.tell(f"[bold]the connections are back[/], {moved}: the same on all, byte for byte")
        return self.show(self.devices)

    def show(self, devices: Iterable[Remote]) -> bool:
        """Print the object and the text of each device. True if the bytes are equal."""
        table = Table("device", "the object", "the text", "hash of both")
        hashes = set()
        for device in devices:
            item, text = device("show", item=self.trip), device("show", item=self.plan)
            both = hashlib.sha256(f"{item['bytes']}{text['bytes']}".encode()).hexdigest()[:16]
            hashes.add(both)
            table.add_row(device.name, json.dumps(item["value"]), str(text["value"]), both)
        self.console.print(table)
        return len(hashes) == 1

    def agree(self, devices: Iterable[Remote]) -> bool:
        """Print the state of each device. True if they are equal."""
        table = Table("device", "members", "feeds", "void", "hash of the party's state", "hash of all items")
        found = set()
        for device in devices:
            state = device("state")
            members = [f"{self.names[key]} ({'/'.join(roles).lower()})" for key, roles in state["members"].items()]
            figures = [str(state["feeds"]), str(state["void"]), state["digest"][:16], state["items"][:16]]
            table.add_row(device.name, ", ".join(sorted(members)), *figures)
            found.add((state["digest"], state["items"]))
        self.console.print(table)
        return len(found) == 1

    def revoke(self) -> bool:
        """Revoke a member, who writes on meanwhile. True if the others agree on what counts."""
        alice, bob, carol = self.devices
        with self.apart(bob):
            bob("revoke", identity=carol.identity)
            carol("post", item=self.notes, count=25)
            self.tell(
                "\nbob, whose connections are cut, revokes carol, while carol posts 25 more notes, which alice takes"
            )
            self.meet(alice, carol)
        self.tell(f"bob is back: {self.meet(alice, bob)}. The 25 notes are void, and nobody answers carol any more")
        agreed = self.agree((alice, bob))
        carol.close()
        self.devices.remove(carol)
        return agreed

    def cut_history(self) -> bool:
        """Declare an epoch, drop the messages before it, and let a new device begin with the snapshot and the tail."""
        alice, bob = self.devices
        dora = Remote(NEWCOMER, self.home)
        alice("attesters", devices=[alice.key, bob.key])
        self.meet(alice, bob)
        number = alice("declare")["number"]
        snapshots = {device("stand", number=number)["snapshot"] for device in self.devices}
        dropped = ", ".join(str(device("prune")["dropped"]) for device in self.devices)
        self.tell(f"\nalice declares [bold]epoch {number}[/]; she and bob compute the snapshot, each for themselves:")
        self.tell(f"  {', '.join(snapshots)}")
        self.tell(f"each drops the messages before it: {dropped} blocks")
        late = str(alice("create", model="antiphon/text")["item"])
        alice("edit", item=late, command="insert", arguments=[0, "After the epoch."])
        self.devices.append(dora)
        self.names[dora.identity] = dora.name
        begun = time.monotonic()
        dora("join", invitation=alice("invite", identity=dora.identity, role="READER")["invitation"])
        self.meet(alice, bob)
        self.link(dora, bob)
        dora("ready")
        found = dora("stand", number=number)
        self.meet(*self.devices)
        took = f"{1000 * (time.monotonic() - begun):.0f} ms"
        blobs = dora("blobs")["blobs"]
        self.tell(f"dora starts, joins by bob, with {blobs} blobs and the messages after the epoch alone: {took}")
        self.tell(f"  {found['snapshot']}")
        return self.agree(self.devices) and snapshots == {found["snapshot"]}

    def hold(self) -> bool:
        """Declare another epoch without dropping messages, write more, and store the final states for `bulk.py`."""
        alice, bob = self.devices[:2]
        number = alice("declare")["number"]
        for device in self.devices:
            device("stand", number=number)
        alice("post", item=self.notes, count=20)
        bob("edit", item=self.trip, command="set", arguments=["title", "A trip to the mountains"])
        self.meet(*self.devices)
        held = {device.name: device("held") for device in self.devices}
        (self.home / LIVE).write_text(json.dumps(held))
        self.tell(f"alice declares epoch {number}; all devices keep its messages, for the last part of the demo")
        return len({json.dumps(one, sort_keys=True) for one in held.values()}) == 1

    def close(self) -> None:
        for device in self.devices:
            device.close()


def direct(home: Path, console: Console, route: Route = str) -> bool:
    marker = home / "made-by-the-demo"
    if home.exists() and any(home.iterdir()) and not marker.exists():
        raise SystemExit(f"{home} is not empty, and was not made by the demo; name another folder with --home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()
    story = Story(home, console, route)
    story.begin()
    agreed = story.edit() and story.agree(story.devices)
    console.print("[bold green]All three agree.[/]" if agreed else "[bold red]They do not agree.[/]")
    same = all([story.revoke(), story.cut_history(), story.hold()])
    console.print("[bold green]The same snapshot, the same items.[/]" if same else "[bold red]The snapshots differ.[/]")
    story.close()
    return agreed and same


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="a folder for the stores, made again")
    parser.add_argument("--device", choices=(*NAMES, NEWCOMER), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.device:
        serve(options.device, options.home)
    elif not direct(options.home, Console()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
