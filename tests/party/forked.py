"""A writer of data who signs two histories, and peers who find that out."""

from __future__ import annotations

from tests.party.epochs.epoch_acts import change, member, note, pen

from antiphon.testing.peers import Peers


def confront(peers: Peers) -> None:
    """Everybody compares all that they hold with all that the others do, and tells of forks."""
    for taker in peers.all:
        for giver in peers.all:
            taker.take(giver.ranges({}))
        member(taker).publish_forks()
    peers.sync()


class Forked:
    """Mallory signs two histories of her data feed: Alice, who attests, holds one, and Carol the other."""

    def __init__(self, peers: Peers, *, longer: int = 0) -> None:
        self.peers = peers
        self.alice, self.mallory, self.carol = (peers.add(name) for name in ("alice", "mallory", "carol"))
        self.item = note(self.mallory, "common")
        peers.sync()
        self.feed = bytes(member(self.mallory).open_data_feed().feed)
        paper = pen(self.mallory)
        self.item.edit("set", "title", "for Alice")
        peers.pass_on(self.mallory, self.alice)
        drafts = [change(self.mallory, self.item.id, "title", "for Carol") for _ in range(1 + longer)]
        self.carol.take(paper.extend(drafts))
        peers.all.remove(self.mallory)

    def titles(self) -> list[str]:
        return [peer.party.item(self.item.id).value["title"] for peer in (self.alice, self.carol)]

    def known(self) -> bool:
        return all(member(peer).machine.authority.fork_ends.get(self.feed) for peer in (self.alice, self.carol))
