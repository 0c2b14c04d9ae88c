"""Attacks with forks: sign two histories of one feed, and show them to different peers.

Writes on a branch carry no token: either branch may count, because an epoch may include it.
"""

from __future__ import annotations

from antiphon.core.keys import KeyPair
from antiphon.halo.credentials.claims import MemberAdmission, Role
from antiphon.sim.byzantine.attacker import Attacker, as_draft


def forked_data(foe: Attacker) -> None:
    """Fork the data feed at its current end."""
    _fork_data(foe, back=0)


def forked_long_ago(foe: Attacker) -> None:
    """Fork the data feed some blocks before its end."""
    _fork_data(foe, back=foe.chance.randint(1, 10))


def forked_thrice(foe: Attacker) -> None:
    """Show each neighbour a different history of the data feed."""
    item = foe.an_object()
    if item is None:
        return
    feed = foe.data_feed()
    for name in foe.names():
        spans = foe.writer_at(feed).extend([foe.setting(item, f"for {name}")] * foe.chance.randint(1, 3))
        foe.push([name], *spans)
    foe.write(foe.setting(item, "for whoever is left"))


def _fork_data(foe: Attacker, back: int) -> None:
    item = foe.an_object()
    if item is None:
        return
    feed = foe.data_feed()
    record = foe.peer.store.record(feed)
    writer = foe.writer_at(feed, max(record.start, record.length - back))
    drafts = [foe.setting(item, f"branch of {foe.peer.name}")] * foe.chance.randint(1, 4)
    spans = writer.extend(drafts, atomic=foe.chance.random() < 0.3)
    foe.push(foe.some(), *spans)
    foe.write(foe.setting(item, "the other branch"))


def forked_control(foe: Attacker) -> None:
    """Fork the control feed at its current end. Each branch admits a member, which the attacker may not do."""
    control = foe.peer.member.control
    if control is None:
        return
    writer = foe.writer_at(bytes(control.feed))
    puppets = [KeyPair.from_seed(foe.chance.randbytes(32)).key for _ in range(2)]
    claims = [MemberAdmission(bytes(key), frozenset({Role.EDITOR})) for key in puppets]
    foe.push(foe.some(), *writer.extend([as_draft(foe.signed(claims[0]))]), control=True)
    foe.append(claims[1])
