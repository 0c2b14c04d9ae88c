"""Forks: one feed with two histories, each shown to others. Neither is forbidden to count: an epoch may hold it."""

from __future__ import annotations

from antiphon.core.keys import KeyPair
from antiphon.halo.credentials.claims import MemberAdmission, Role
from antiphon.sim.byzantine.attacker import Tongue, as_draft


def forked_data(liar: Tongue) -> None:
    """Two histories of the data feed, from now on."""
    _fork_data(liar, back=0)


def forked_long_ago(liar: Tongue) -> None:
    """Another history of the data feed, from some way back."""
    _fork_data(liar, back=liar.chance.randint(1, 10))


def forked_thrice(liar: Tongue) -> None:
    """Each neighbour is shown another history of the data feed."""
    item = liar.an_object()
    if item is None:
        return
    feed = liar.data_feed()
    for name in liar.names():
        spans = liar.pen(feed).extend([liar.setting(item, f"for {name}")] * liar.chance.randint(1, 3))
        liar.push([name], *spans)
    liar.write(liar.setting(item, "for whoever is left"))


def _fork_data(liar: Tongue, back: int) -> None:
    item = liar.an_object()
    if item is None:
        return
    feed = liar.data_feed()
    record = liar.peer.store.record(feed)
    writer = liar.pen(feed, max(record.start, record.length - back))
    drafts = [liar.setting(item, f"branch of {liar.peer.name}")] * liar.chance.randint(1, 4)
    spans = writer.extend(drafts, atomic=liar.chance.random() < 0.3)
    liar.push(liar.some(), *spans)
    liar.write(liar.setting(item, "the other branch"))


def forked_control(liar: Tongue) -> None:
    """Two histories of the control feed, from now on: each admits somebody, which neither may."""
    control = liar.peer.member.control
    if control is None:
        return
    writer = liar.pen(bytes(control.feed))
    puppets = [KeyPair.from_seed(liar.chance.randbytes(32)).key for _ in range(2)]
    claims = [MemberAdmission(bytes(key), frozenset({Role.EDITOR})) for key in puppets]
    liar.push(liar.some(), *writer.extend([as_draft(liar.signed(claims[0]))]), control=True)
    liar.say(claims[1])
