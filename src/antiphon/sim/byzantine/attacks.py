"""The list of attacks, and `Attacks`, which performs one for an act. Attackers have the keys of a member."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.sim.byzantine import blocks, credentials, epochs, forks, messages
from antiphon.sim.byzantine.attacker import Attacker
from antiphon.sim.peer import SimPeer
from antiphon.sim.trace import Kind

if TYPE_CHECKING:
    from antiphon.sim.run import Stage

#: All attacks by name, as traces show it. The docstring of each function describes the attack.
ATTACKS: dict[str, Callable[[Attacker], None]] = {
    attack.__name__.replace("_", " "): attack
    for attack in (
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


def choose(chance: random.Random, names: Iterable[str]) -> str:
    """Choose an attack by the seed of an act."""
    return chance.choice(sorted(names))


class Attacks:
    """Performs the attacks of a run and records them in the trace. Forged writes carry tokens that laws search for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._count = 0
        self.attacks = dict(ATTACKS)

    def perform(self, peer: SimPeer, seed: int) -> None:
        """Perform the attack that the seed chooses."""
        chance = random.Random(seed)  # noqa: S311
        name = choose(chance, self.attacks)
        others = [other for other in self._stage.peers.values() if other is not peer]
        foe = Attacker(peer, others, chance, lambda: self.token(peer))
        try:
            self.attacks[name](foe)
        except AntiphonError as error:
            if peer.disk.full:
                raise
            name = f"{name}, in vain: {error}"[:120]  # for example, it is no longer admitted, or its feed has ended
        self._stage.world.record(Kind.LIE, peer.name, text=name)
        peer.moved_ms = self._stage.world.now_ms

    def token(self, peer: SimPeer) -> str:
        """A new text for a forged write. It must show in no item."""
        self._count += 1
        token = f"<forged by {peer.name} {self._count}>"
        self._stage.forbidden.add(token)
        return token
