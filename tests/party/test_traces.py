"""Histories that people really typed, one block an edit, through whole peers: feeds, delivery, model, item store."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.budget import budget

from antiphon.testing.peers import Peer, Peers

PAPER_EDITS = budget(10_000, 259_778)  # of so many
FRIENDS_PART = budget(5, 1)  # the first fifth of the recording, or all of it


def trace(data: Path, name: str) -> dict[str, Any]:
    path = data / "editing-traces" / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {path.parent}")
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


@pytest.mark.slow
def test_the_paper_typed_on_one_device_comes_out_on_another(data: Path, tmp_path: Path) -> None:
    recorded = trace(data, "automerge-paper")
    with Peers(tmp_path, authority=False) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        paper = alice.party.create("antiphon/text")
        patches = [patch for txn in recorded["txns"] for patch in txn["patches"]][:PAPER_EDITS]
        typed = ""
        for index, deleted, inserted in patches:
            paper.edit("replace", index, deleted, inserted)
            typed = typed[:index] + inserted + typed[index + deleted :]

        assert sum(alice.lengths().values()) == 1 + PAPER_EDITS
        assert typed == recorded["endContent"] or len(patches) < sum(len(txn["patches"]) for txn in recorded["txns"])
        assert paper.value == typed
        peers.sync()
        assert bob.party.item(paper.id).value == typed
        assert bob.snapshots() == alice.snapshots()
        bob.restart()
        assert bob.party.item(paper.id).value == typed


def versions_of(recorded: dict[str, Any]) -> list[list[int]]:
    """For each transaction, how many blocks of each writer it has seen, its own included."""
    versions: list[list[int]] = []
    lengths = [1, 0]  # the text itself is alice's first block
    for txn in recorded["txns"]:
        version = [1, 0]
        for parent in txn["parents"]:
            version = [max(pair) for pair in zip(version, versions[parent], strict=True)]
        me = txn["agent"]
        lengths[me] += len(txn["patches"])
        version[me] = lengths[me]
        versions.append(version)
    return versions


class Writer:
    """One of the two friends: a peer, and ranges of her blocks as they left her device when the other asked."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.feed = bytes(peer.party.authority.writer().feed)
        self.length = 0
        self._sent = 0
        self.ranges: list[tuple[int, list[bytes]]] = []  # up to this block, as bytes
        self.taken = 0  # of the other's blocks

    def send(self) -> None:
        self.ranges.append((self.length, [span.encode() for span in self.peer.store.spans(self.feed, self._sent)]))
        self._sent = self.length

    def hear(self, other: Writer, count: int) -> None:
        """Take exactly so many of the other's blocks."""
        while self.taken < count:
            self.taken, ranges = other.ranges.pop(0)
            for data in ranges:
                self.peer.store.ingest_bytes(data)
            assert self.taken <= count
            self.peer.party.process()


@pytest.mark.slow
def test_two_friends_writing_together_as_recorded(data: Path, tmp_path: Path) -> None:
    recorded = trace(data, "friendsforever")
    recorded["txns"] = recorded["txns"][: len(recorded["txns"]) // FRIENDS_PART]
    versions = versions_of(recorded)
    wanted = [{max(version[who] for version in versions)} for who in range(2)]  # where the other heard of it
    for txn, version in zip(recorded["txns"], versions, strict=True):
        wanted[1 - txn["agent"]].add(version[1 - txn["agent"]])
    with Peers(tmp_path, authority=False) as peers:
        writers = [Writer(peers.add("alice")), Writer(peers.add("bob"))]
        # Positions in the recording are those of its own merges, which put the first writer's text first at a tie.
        assert writers[0].feed < writers[1].feed
        text = writers[0].peer.party.create("antiphon/text")
        writers[0].length = 1
        writers[0].send()
        for txn, version in zip(recorded["txns"], versions, strict=True):
            me = txn["agent"]
            writer, other = writers[me], writers[1 - me]
            writer.hear(other, version[1 - me])
            for index, deleted, inserted in txn["patches"]:
                writer.peer.party.item(text.id).edit("replace", index, deleted, inserted)
                writer.length += 1
            if writer.length in wanted[me]:
                writer.send()
        for writer, other in (writers, reversed(writers)):
            writer.hear(other, other.length)

        carol = peers.add("carol")  # who was not there, and gets all of it at once
        peers.sync()
        for peer in (writers[0].peer, writers[1].peer, carol):
            assert FRIENDS_PART > 1 or peer.party.item(text.id).value == recorded["endContent"]
            assert peer.party.item(text.id).value == carol.party.item(text.id).value
            assert peer.snapshots() == carol.snapshots()
