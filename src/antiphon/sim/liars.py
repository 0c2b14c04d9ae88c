"""What byzantine peers do: they hold the keys of a member, and keep no rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from antiphon.sim.peer import SimPeer
from antiphon.sim.trace import Kind

if TYPE_CHECKING:
    from antiphon.sim.run import Stage


class Liars:
    """The lies of a run. Each says in the trace what it was; what it forges names itself, so that it can be found."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._count = 0
        self.lies: dict[str, Callable[[SimPeer, random.Random], None]] = {
            "junk": self._junk,
        }

    def lie(self, peer: SimPeer, seed: int) -> None:
        """One lie, which the seed chooses."""
        chance = random.Random(seed)  # noqa: S311
        name = chance.choice(sorted(self.lies))
        self._stage.world.tell(Kind.LIE, peer.name, text=name)
        self.lies[name](peer, chance)

    def token(self, peer: SimPeer) -> str:
        """What a forged write carries; it must show up nowhere."""
        self._count += 1
        token = f"<forged by {peer.name} {self._count}>"
        self._stage.forbidden.add(token)
        return token

    def _junk(self, peer: SimPeer, chance: random.Random) -> None:
        """Bytes that are no message."""
        for name in sorted(peer.neighbours):
            data = chance.randbytes(chance.choice((1, 40, 4_000)))
            other = peer.neighbours[name]
            peer.network.send(peer.name, name, lambda other=other, data=data: other.receive(peer.name, data))  # type: ignore[misc]
