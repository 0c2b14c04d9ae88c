"""Child parties, the light-weight ones: a party inside a party, with the same members and a history of its own.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     club = store.create_party("Chess club")
...     game = club.create_child("Ada against Bob")
...     game.parent is club, [child.name for child in club.child_parties()]
(True, ['Ada against Bob'])

A party knows of its children only by items that refer to them, which anybody who writes there can make. So what such an
item names is believed no further than it proves itself, by its own genesis (`open_child`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.api.items.object import Object
from antiphon.core.errors import NotAuthorised
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import PublicKey
from antiphon.halo.rights.verdict import judge
from antiphon.model.value import Reference

if TYPE_CHECKING:
    from antiphon.api.party import Party

CHILD_TYPE = "antiphon/child-party"  # of the items that refer to children
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class ChildParty:
    """What a party says of a child: its key, what it is called there, and the item that says so."""

    key: PublicKey
    name: str
    item: Object


def refer(parent: Party, child: Party, name: str) -> Object:
    """Let members of the parent find a child."""
    return parent.object({_ROOT: Reference(bytes(SYSTEM_ITEM), bytes(child.key))}, type=CHILD_TYPE, name=name)


def referred(parent: Party) -> Iterator[ChildParty]:
    """The children that a party refers to, each once."""
    known: set[bytes] = set()
    for item in parent.query(type=CHILD_TYPE):
        root = item.item.value.get(_ROOT) if isinstance(item, Object) else None  # as it is, not followed
        if isinstance(item, Object) and isinstance(root, Reference) and root.party and root.party not in known:
            known.add(root.party)
            yield ChildParty(PublicKey(root.party), item.name, item)


def open_child(parent: Party, key: bytes) -> Party:
    """Follow a child, and open it, if it is one; `MissingBlocks` as long as its genesis is not here."""
    store = parent.store
    store.manager.subscribe(key)
    child = store.party(key)
    machine = child.member.machine
    if machine.parent is None or machine.parent.party != parent.key or not founded(child):
        raise NotAuthorised(
            f"party {child.key.short} is no child of party {parent.key.short}: its genesis names another, or none, or "
            "is by somebody who may not write there"
        )
    return child


def founded(party: Party) -> bool:
    """Whether a party's genesis is in force. A child's is not if its founder may not write in the parent."""
    with party.processor.locked():
        party.member.refresh()
        authority = party.member.machine.authority
        authority.settle()
        return authority.genesis is not None and not judge(authority, authority.genesis)


def echo(party: Party) -> None:
    """In a child, say where feeds end by what its parent took away; once for whatever is new of the parent."""
    member = party.member
    if member.machine.parent is None or member.control is None or party.processor.open_batch() is not None:
        return
    with party.processor.locked():
        member.refresh()
        if party.echoed != member.machine.act_count:
            member.echo(party.store.identity if party.store.may_vouch else None)
            party.echoed = member.machine.act_count


def heard(parent: Party) -> None:
    """The parent took something away: its children that are open here say where. Under its lock, they do so later."""
    if parent.processor.is_held():
        return
    for party in parent.store.open_parties():
        above = party.member.machine.parent
        if above is not None and above.party == parent.key:
            party.refresh()
