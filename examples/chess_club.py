"""A game of chess between players who are not always connected. One player has two devices, and moves on both at once.

Each device has its own folder, and they exchange nothing but blocks of feeds. While they are apart, Ann plays one move
on her laptop and another on her phone. After a sync, every device has the same position, byte for byte: one move
counts, and the other is refused as late and listed. All write into the notes, a text that is a child of the game.

    .venv/bin/python examples/chess_club.py          play the game
    .venv/bin/python examples/chess_club.py --json   end with a line of JSON
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import chess
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.chess_model import ChessModel

from antiphon import InvalidMutation
from antiphon.halo import Device
from antiphon.model import ModelFactory
from antiphon.party import Item, PartyProcessor
from antiphon.testing.peers import Peer, Peers

TEXT = "antiphon/text"


# -- the club: devices, a game, its notes


def embed(party: PartyProcessor, parent: Item, model: str) -> Item:
    """Create a child of an item, and embed it there."""
    with party.batch():
        child = party.create(model, parent=parent.id)
        parent.embed(child.id)
        return child


def embedded(party: PartyProcessor, parent: Item, model: str) -> Item:
    """Return the embedded item of a model."""
    found = [party.item(reference.item) for reference in parent.metadata["embedded_items"]]
    (child,) = [item for item in found if item.model[0] == model]
    return child


def add_device(peers: Peers, owner: Peer, name: str) -> Peer:
    """Add another device of a member."""
    peer = peers.add(name, role=None)
    peer.identity, peer.device = owner.identity, Device(peer.device.pair, owner.key)
    peer.restart()
    peers.pass_on(owner, peer)
    peer.join()
    peers.sync()
    return peer


def feed_of(peer: Peer) -> bytes:
    return peer.party.authority.writer().feed


class Club:
    """Three devices and one game: two devices of Ann, who plays white, and one of Ben."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers
        self.laptop = peers.add("ann's laptop")
        self.phone = add_device(peers, self.laptop, "ann's phone")
        self.tablet = peers.add("ben's tablet")
        with self.laptop.party.batch():
            game = self.laptop.party.create(ChessModel.name)
            embed(self.laptop.party, game, TEXT)
        self._game = game.id
        self.meet()

    def meet(self) -> int:
        """Sync all devices. Return the number of blocks that were copied."""
        return self.peers.sync()

    def game(self, peer: Peer) -> Item:
        return peer.party.item(self._game)

    def notes(self, peer: Peer) -> Item:
        return embedded(peer.party, self.game(peer), TEXT)

    def note(self, peer: Peer, words: str) -> None:
        """Write at the end of the notes, as this device has them."""
        notes = self.notes(peer)
        notes.edit("insert", len(notes.value), words)

    def fingerprint(self, peer: Peer) -> str:
        """Return the hash of the bytes of all items on a device."""
        snapshots = peer.snapshots()
        return sha256(b"".join(snapshots[item] for item in sorted(snapshots))).hexdigest()


# -- the game


def open_game(club: Club) -> None:
    """Both players sit down and play two moves each, with a sync after each move."""
    club.game(club.laptop).edit("sit", "white", feed_of(club.phone))
    club.game(club.tablet).edit("sit", "black")
    club.meet()
    for peer, move in ((club.laptop, "e2e4"), (club.tablet, "e7e5"), (club.phone, "g1f3"), (club.tablet, "b8c6")):
        club.game(peer).edit("move", move)
        club.meet()


def move_apart(club: Club) -> None:
    """Ann moves on both devices without a sync in between."""
    for peer, move, words in (
        (club.laptop, "f1b5", "Spanish, as last week. "),
        (club.phone, "f1c4", "Let's try the Italian. "),
    ):
        club.game(peer).edit("move", move)
        club.note(peer, words)
    club.note(club.tablet, "Ann is thinking... ")


def play_on(club: Club) -> str:
    """Ben tries an illegal move, plays on, and they agree on a draw. Return why the illegal move was refused."""
    illegal = ""
    try:
        club.game(club.tablet).edit("move", "a7a4")
    except InvalidMutation as error:  # refused before it was written
        illegal = str(error).partition(": ")[2]
    for peer, command, *arguments in (
        (club.tablet, "move", "a7a6"),
        (club.phone, "move", "e1g1"),
        (club.laptop, "offer_draw"),
        (club.tablet, "accept_draw"),
    ):
        club.game(peer).edit(command, *arguments)
        club.meet()
    return illegal


def show_boards(console: Console, club: Club) -> None:
    boards = []
    for peer in club.peers.all:
        value = club.game(peer).value
        drawn = chess.Board(value["fen"]).unicode(empty_square="·")
        under = f"after {value['moves'][-1]}, {value['turn']} to move"
        boards.append(Panel(f"{drawn}\n\n{under}", title=peer.name, width=28))
    console.print(Columns(boards))


def show_refused(console: Console, club: Club) -> None:
    table = Table("refused, as listed on", "written on", "why")
    names = {feed_of(peer): peer.name for peer in club.peers.all}
    for peer in club.peers.all:
        for refused in peer.party.refused():
            table.add_row(peer.name, names[refused.feed], refused.reason)
    console.print(table)


def report(club: Club) -> dict[str, Any]:
    """Return the final state of each device."""
    devices = {
        peer.name: {
            "snapshot": club.fingerprint(peer),
            "refused": [refused.reason for refused in peer.party.refused()],
            "notes": club.notes(peer).value,
            **{key: club.game(peer).value[key] for key in ("fen", "moves", "result", "why")},
        }
        for peer in club.peers.all
    }
    return {"agreed": len({json.dumps(device) for device in devices.values()}) == 1, "devices": devices}


def play(club: Club, console: Console) -> dict[str, Any]:
    console.print("[bold]A chess club[/]: Ann's laptop and phone, and Ben's tablet, each with its own folder.")
    open_game(club)
    console.print("Ann sits down as white, with both her devices, and Ben as black; they play two moves each.")
    move_apart(club)
    console.print("\n[bold]Apart[/], Ann moves on the laptop, forgets about it, and moves on the phone:")
    show_boards(console, club)
    moved = club.meet()
    console.print(f"\n[bold]After a sync[/] of {moved} blocks, one move counts, and all have the same position:")
    show_boards(console, club)
    show_refused(console, club)
    console.print(f"The notes, to which all three devices wrote: [italic]{club.notes(club.tablet).value}[/]")
    illegal = play_on(club)
    console.print(f"\nBen tries an illegal move: nothing is written ({illegal}). They play on, and agree on a draw:")
    console.print(" ".join(club.game(club.tablet).value["moves"]), club.game(club.tablet).value["result"])
    club.phone.restart()
    console.print("\nThe phone restarts, and every device prints the hash of all its items:")
    found = report(club)
    for name, device in found["devices"].items():
        console.print(f"  {name:14} {device['snapshot'][:16]}")
    console.print("[bold green]All three agree.[/]" if found["agreed"] else "[bold red]They do not agree.[/]")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="end with a line of JSON")
    options = parser.parse_args()
    models = ModelFactory.standard()
    models.register(ChessModel)
    with tempfile.TemporaryDirectory() as folder, Peers(folder, models=models) as peers:
        found = play(Club(peers), Console(highlight=False))
    if options.json:
        print(json.dumps(found))
    if not found["agreed"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
