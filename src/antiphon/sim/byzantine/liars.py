"""What byzantine peers do: they hold the keys of a member, and keep no rule."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.sim.byzantine import blocks, credentials, epochs, forks, messages
from antiphon.sim.byzantine.attacker import Tongue
from antiphon.sim.peer import SimPeer
from antiphon.sim.trace import Kind

if TYPE_CHECKING:
    from antiphon.sim.run import Stage

#: Each lie by its name; what it is, its docstring says.
LIES: dict[str, Callable[[Tongue], None]] = {
    lie.__name__.replace("_", " "): lie
    for lie in (
        messages.junk,
        messages.too_large,
        messages.unasked,
        messages.late_answers,
        messages.hollow_feeds,
        messages.other_party,
        messages.false_acknowledgement,
        messages.replay,
        messages.broken_ranges,
        messages.cut_short,
        messages.bodies_withheld,
        messages.bad_blobs,
        messages.greedy,
        blocks.rubbish,
        blocks.large,
        blocks.stolen_ids,
        blocks.false_time,
        blocks.false_headers,
        blocks.false_entries,
        blocks.stranger,
        blocks.in_others_names,
        forks.forked_control,
        credentials.self_promotion,
        credentials.puppet,
        credentials.coup,
        credentials.others_feeds,
        credentials.false_device,
        credentials.own_policy,
        credentials.erases_others,
        credentials.false_evidence,
        credentials.copies,
        credentials.rubbish_claims,
        credentials.back_dated,
        epochs.false_epochs,
        epochs.false_votes,
        epochs.two_votes,
        epochs.stolen_words,
        forks.forked_data,
        forks.forked_long_ago,
        forks.forked_thrice,
    )
}


def choose(chance: random.Random, lies: Iterable[str]) -> str:
    """Which lie an act's seed chooses."""
    return chance.choice(sorted(lies))


class Liars:
    """The lies of a run. Each says in the trace what it was; what it forges names itself, so that it can be found."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._count = 0
        self.lies = dict(LIES)

    def lie(self, peer: SimPeer, seed: int) -> None:
        """One lie, which the seed chooses."""
        chance = random.Random(seed)  # noqa: S311
        name = choose(chance, self.lies)
        others = [other for other in self._stage.peers.values() if other is not peer]
        tongue = Tongue(peer, others, chance, lambda: self.token(peer))
        try:
            self.lies[name](tongue)
        except AntiphonError as error:
            if peer.disk.full:
                raise
            name = f"{name}, in vain: {error}"[:120]  # it is not admitted any more, its feed has ended, say
        self._stage.world.tell(Kind.LIE, peer.name, text=name)
        peer.moved_ms = self._stage.world.now_ms

    def token(self, peer: SimPeer) -> str:
        """What a forged write carries; it must show up nowhere."""
        self._count += 1
        token = f"<forged by {peer.name} {self._count}>"
        self._stage.forbidden.add(token)
        return token
