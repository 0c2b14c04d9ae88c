"""`Talk`: a link between two devices in one process. Its time passes only while both wait."""

from __future__ import annotations

import logging

from antiphon.core.keys import KeyPair
from antiphon.core.ports import SystemRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.link.link import Link
from antiphon.mesh.link.party_sessions import PartySessions

_LOG = logging.getLogger("antiphon")
_QUIET_MS = 3_000  # of the link's own time: longer than any delay after which an end has something to add
_SHOWN_MS = 1_500  # more for each party: messages to an end that does not speak about it leave one by one
_BUDGET = 1 << 20  # bytes that a link gives at once


class Talk:
    """Two hosts of parties, whose devices prove their keys to each other as on a network."""

    def __init__(self, one: PartySessions, one_device: KeyPair, other: PartySessions, other_device: KeyPair) -> None:
        self.blocks = 0  # that moved
        self._hosts = one, other
        self._now_ms = 0
        self._over = False
        chance = SystemRandomness()
        dial = Channel.dial(one_device, other_device.key, now_ms=0, randomness=chance)
        answer = Channel.answer(other_device, SeenHandshakes(), now_ms=0, randomness=chance)
        self._links = (
            Link(dial, one, randomness=chance, now_ms=0),
            Link(answer, other, randomness=chance, now_ms=0),
        )
        for host, link in zip(self._hosts, self._links, strict=True):
            host.connect(link)

    def until_quiet(self, parties: int = 1) -> int:
        """Talk until neither has anything to add. Return the number of blocks, forks and blobs that moved."""
        moved, last_ms = 0, self._now_ms
        while not self._over:
            wake = [host.tick(self._now_ms) for host in self._hosts]
            spoken = self._pass(0) + self._pass(1)
            if came := self._came():
                moved, last_ms = moved + came, self._now_ms
            due_ms = self._now_ms + 1 if spoken else min([at for at in wake if at is not None], default=None)
            if due_ms is None or due_ms > last_ms + _QUIET_MS + _SHOWN_MS * parties:
                break
            self._now_ms = max(due_ms, self._now_ms + 1)
        return moved

    def _pass(self, speaker: int) -> int:
        """Move what one end has to say to the other. Return the number of bytes."""
        host, link = self._hosts[speaker], self._links[speaker]
        other, far = self._hosts[1 - speaker], self._links[1 - speaker]
        size = 0
        while data := host.outgoing(link, _BUDGET, self._now_ms):
            size += len(data)
            other.receive(far, data, self._now_ms)
        return size

    def _came(self) -> int:
        came = 0
        for host, link in zip(self._hosts, self._links, strict=True):
            for taken in host.work(self._now_ms):
                self.blocks += taken.blocks
                came += taken.blocks + taken.blobs
            for error in host.faults.values():  # the quarantine lists what was refused
                _LOG.warning("the sync with device %s ends here: %s", link.channel.device.short, error)
                self._over = True
        return came
