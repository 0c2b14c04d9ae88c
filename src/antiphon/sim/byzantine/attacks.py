"""The list of attacks, and `Attacks`, which performs one for an act. Attackers have the keys of a member."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.sim.byzantine import blocks, connections, credentials, epochs, forks, messages, worst_member
from antiphon.sim.byzantine.attacker import Attacker
from antiphon.sim.peer import SimPeer
from antiphon.sim.trace import Kind

if TYPE_CHECKING:
    from antiphon.sim.run import Stage

Attack = Callable[[Attacker], None]

#: Attacks of which the seed of an act chooses one. The docstring of each function describes the attack.
_USUAL: tuple[Attack, ...] = (
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
#: Attacks that are drawn one by one, each with a random generator of its own: a new one changes no other run.
_FURTHER: tuple[Attack, ...] = (
    worst_member.runaway_control,
    worst_member.runaway_data,
    worst_member.branch_for_one,
    worst_member.wrong_places,
    worst_member.two_models,
    worst_member.too_many_feeds,
    worst_member.many_control_feeds,
    worst_member.strangers,
    worst_member.much_seen,
    worst_member.scorched_earth,
    connections.garbage_connections,
    connections.replayed_connections,
    connections.impostors,
)
_LIKELY = 0.08  # that an act has one of the further attacks, for each of them


def _named(attacks: Iterable[Attack]) -> dict[str, Attack]:
    return {attack.__name__.replace("_", " "): attack for attack in attacks}


#: All attacks by name, as traces show it.
ATTACKS: dict[str, Attack] = _named(_USUAL + _FURTHER)
FURTHER = frozenset(_named(_FURTHER))


def choose(seed: int, names: Iterable[str]) -> list[tuple[str, random.Random]]:
    """Choose the attacks of an act by its seed, each with the generator that decides its details."""
    chance = random.Random(seed)  # noqa: S311
    usual, further = sorted(set(names) - FURTHER), sorted(FURTHER.intersection(names))
    chosen = [(chance.choice(usual or further), chance)]
    for name in further if usual else ():
        dice = random.Random(f"{name} {seed}")  # noqa: S311
        if dice.random() < _LIKELY:
            chosen.append((name, dice))
    return chosen


class Attacks:
    """Performs the attacks of a run and records them in the trace. Forged writes carry tokens that laws search for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._count = 0
        self.attacks = dict(ATTACKS)

    def perform(self, peer: SimPeer, seed: int) -> None:
        """Perform the attacks that the seed chooses."""
        for name, chance in choose(seed, self.attacks):
            self._perform(peer, name, chance)
        peer.moved_ms = self._stage.world.now_ms

    def _perform(self, peer: SimPeer, name: str, chance: random.Random) -> None:
        others = [other for other in self._stage.peers.values() if other is not peer]
        foe = Attacker(peer, others, chance, lambda: self.token(peer), self._stage.workload.items.append)
        try:
            self.attacks[name](foe)
        except AntiphonError as error:
            if peer.disk.full:
                raise
            name = f"{name}, in vain: {error}"[:120]  # for example, it is no longer admitted, or its feed has ended
        self._stage.world.record(Kind.LIE, peer.name, text=name)

    def token(self, peer: SimPeer) -> str:
        """A new text for a forged write. It must show in no item."""
        self._count += 1
        token = f"<forged by {peer.name} {self._count}>"
        self._stage.forbidden.add(token)
        return token
