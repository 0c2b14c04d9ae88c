"""Child parties: a party inside a party, with the same members and a history of its own.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     club = store.create_party("Chess club")
...     game = club.create_child("Ada against Bob")
...     game.parent is club, [child.name for child in club.child_parties()]
(True, ['Ada against Bob'])

A party knows its children only from items that refer to them. Any member who may write can create such an item, so the
reference proves nothing: `open_child` checks the genesis of the child.
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

CHILD_TYPE = "antiphon/child-party"  # the type of items that refer to a child
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class ChildParty:
    """A reference from a party to a child: the key of the child, its name, and the item that contains the reference."""

    key: PublicKey
    name: str
    item: Object


def add_child_reference(parent: Party, child: Party, name: str) -> Object:
    """Create the item in the parent that lets its members find a child."""
    return parent.object({_ROOT: Reference(bytes(SYSTEM_ITEM), bytes(child.key))}, type=CHILD_TYPE, name=name)


def child_references(parent: Party) -> Iterator[ChildParty]:
    """Yield the children that items of a party refer to, each once."""
    known: set[bytes] = set()
    for item in parent.query(type=CHILD_TYPE):
        root = item.item.value.get(_ROOT) if isinstance(item, Object) else None  # the reference itself, not resolved
        if isinstance(item, Object) and isinstance(root, Reference) and root.party and root.party not in known:
            known.add(root.party)
            yield ChildParty(PublicKey(root.party), item.name, item)


def open_child(parent: Party, key: bytes) -> Party:
    """Subscribe to a child, and open it. `MissingBlocks` if its genesis has not arrived yet.

    `NotAuthorised` if its genesis does not name the parent, or its founder may not write there.
    """
    store = parent.store
    store.manager.subscribe(key)
    child = store.party(key)
    machine = child.member.machine
    if machine.parent is None or machine.parent.party != parent.key or not genesis_in_force(child):
        raise NotAuthorised(
            f"party {child.key.short} is no child of party {parent.key.short}: its genesis names another, or none, or "
            "is by an identity that may not write there"
        )
    return child


def genesis_in_force(party: Party) -> bool:
    """True if the genesis of a party is valid. For a child, the founder must be allowed to write in the parent."""
    with party.processor.locked():
        party.member.refresh()
        authority = party.member.machine.authority
        authority.settle()
        return authority.genesis is not None and not judge(authority, authority.genesis)


def apply_parent_revocations(party: Party) -> None:
    """In a child party, end the feeds that the parent's revocations end. Done once for each new state of the parent."""
    member = party.member
    if member.machine.parent is None or member.control is None or party.processor.open_batch() is not None:
        return
    with party.processor.locked():
        member.refresh()
        if party.parent_acts_applied != member.machine.act_count:
            member.echo(party.store.identity if party.store.may_vouch else None)
            party.parent_acts_applied = member.machine.act_count


def refresh_children(parent: Party) -> None:
    """Refresh the open children of a party, after it revoked a membership, so that they end feeds too.

    While the party's lock is held, do nothing: the children do it with their next refresh.
    """
    if parent.processor.is_held():
        return
    for party in parent.store.open_parties():
        above = party.member.parent
        if above is not None and above.party == parent.key:
            party.refresh()
