"""`PartyIndex`: who may speak about each party of a store, by control feeds alone. Closed parties stay closed.

Kept for each party: the devices of its members, the digest of what is held, and which of its feeds are control feeds.
A commit is looked at by the records that it changed; control feeds are folded again only if one of them has grown.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError, CorruptBlock, StoreClosed
from antiphon.feed.header import Kind
from antiphon.feed.store.party_records import ChangedFeeds
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import FeedKind
from antiphon.halo.keys.key_file import KeyKind
from antiphon.halo.member.device_proof import DeviceStanding, stands
from antiphon.mesh.node.ports import PartyView
from antiphon.mesh.replication.digest import holdings_digest
from antiphon.party.store.meta_store import SubscriptionState

if TYPE_CHECKING:
    from antiphon.api.store import Store

_LOG = logging.getLogger("antiphon.mesh")


@dataclass(slots=True)
class _Known:
    """A party as the index keeps it. `parent` and `members` are by control feeds; None before the first look."""

    changed: ChangedFeeds
    data: set[bytes] = field(default_factory=set)  # feeds that are no control feeds
    members: frozenset[bytes] = frozenset()
    identities: dict[bytes, bytes] = field(default_factory=dict)  # of the members' devices
    parent: bytes | None = None
    seeks: bool = True
    has_news: bool = True  # control feeds have grown since they were folded
    folded: object = None  # the parent's version when the control feeds were folded
    version: int = 0  # rises with each change of control feeds
    digest: bytes | None = None
    commits: int = 0  # since the digest was first computed


class PartyIndex:
    """The parties of a store, and the parents of those, with who may speak about them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.RLock()
        self._known: dict[bytes, _Known] = {}
        self._views: dict[bytes, PartyView] = {}
        self._children: dict[bytes, set[bytes]] = {}

    # -- in any thread

    def version(self, party: bytes) -> int:
        """Return a number that rises whenever `members` may answer differently."""
        known = self._known.get(bytes(party))
        return 0 if known is None else known.version

    def members(self, party: bytes) -> frozenset[bytes]:
        """Return the devices of members, as of the last look."""
        known = self._known.get(bytes(party))
        return frozenset() if known is None else known.members

    def names(self) -> dict[bytes, tuple[bytes, str]]:
        """Return the identity of each member's device, and its label if its key is of this machine."""
        labels = {bytes(record.key): record.label for record in self._store.keys.keys(KeyKind.IDENTITY)}
        with self._lock:
            return {
                device: (identity, labels.get(identity, ""))
                for known in self._known.values()
                for device, identity in known.identities.items()
            }

    def devices_of(self, identity: bytes) -> set[bytes]:
        """Return the devices of an identity, as members of the parties here."""
        return {device for device, (owner, _) in self.names().items() if owner == identity}

    def children(self, party: bytes) -> tuple[bytes, ...]:
        """Return the children of a party that are followed here."""
        return tuple(self._children.get(bytes(party), ()))

    def child_of(self, parent: bytes) -> bytes | None:
        """Return a child of a party that is not followed itself."""
        return next(iter(self._children.get(bytes(parent), ())), None)

    def digest(self, party: bytes) -> bytes:
        """Return the digest of what is held of a party."""
        with self._lock:
            known = self._known.get(bytes(party))
            if known is not None and known.digest is not None:
                return known.digest
            commits = 0 if known is None else known.commits
        found = holdings_digest(self._store.manager.feeds, party)
        with self._lock:
            if known is not None and known.commits == commits:  # else it may be of what was held before
                known.digest = found
        return found

    def stale(self, party: bytes) -> None:
        """Forget the digest of a party: blocks were committed."""
        known = self._known.get(bytes(party))
        if known is not None:
            with self._lock:
                known.digest = None
                known.commits += 1

    # -- in a worker

    def look(self, parties: Collection[bytes] | None) -> list[PartyView]:
        """Look at these parties, with None at all. Return the views that have changed."""
        wanted = {*self._followed(), *self._views} if parties is None else set(map(bytes, parties))
        primed = self._store.manager.feeds.records_of_all() if parties is None else []
        for party in list(wanted):
            wanted.update(self._children.get(party, ()))
        followed = {party for party in wanted if self._follows(party)}
        changed: list[PartyView] = []
        above: set[bytes] = set()
        for party in wanted:
            if party in followed:
                above.add(self._look(party) or party)
        del primed  # from here on each party keeps its own
        for party in {*wanted, *above}:
            view = self._view(party, party in followed or (party not in wanted and self._follows(party)))
            if view != self._views.get(party, PartyView(party, frozenset())):
                self._views[party] = view
                changed.append(view)
        return changed

    def _follows(self, party: bytes) -> bool:
        known = self._store.manager.meta.find(party)
        return known is not None and known.state is SubscriptionState.ACTIVE

    def _followed(self) -> set[bytes]:
        return {
            bytes(known.party)
            for known in self._store.manager.meta.parties()
            if known.state is SubscriptionState.ACTIVE
        }

    def _look(self, party: bytes) -> bytes | None:
        """Look at one party. Return its parent, if it is a child."""
        feeds = self._store.manager.feeds
        with self._lock:
            known = self._known.get(party)
            if known is None:
                known = self._known[party] = _Known(feeds.changed_feeds(party))
        try:
            if self._has_news(known):
                self._fold(party, known)
            self.digest(party)
        except StoreClosed:
            raise
        except AntiphonError as error:
            _LOG.warning("mesh.party_unread: party %s: who its members are cannot be read: %s", party.hex()[:8], error)
        return known.parent

    def _has_news(self, known: _Known) -> bool:
        """True if control feeds have grown, here or in the parent."""
        feeds = self._store.manager.feeds
        for record in known.changed.take():
            if record.feed in known.data or not record.length:
                continue
            try:
                kind = feeds.first_kind(record.feed)
            except CorruptBlock:
                kind = None
            if kind in (None, Kind.CREDENTIAL):
                known.has_news = True  # until they are folded, which may fail
            else:
                known.data.add(record.feed)
        return known.has_news or known.folded != self._parent_mark(known.parent)

    def _parent_mark(self, parent: bytes | None) -> object:
        """Return a value that changes with the control feeds of a parent."""
        if parent is None:
            return None
        feeds = self._store.manager.feeds
        return tuple((record.feed, record.length, record.end) for record in feeds.feeds(parent))

    def _fold(self, party: bytes, known: _Known) -> None:
        machine = self._machine(party)
        above = None if machine is None or machine.parent is None else bytes(machine.parent.party)
        mark = self._parent_mark(above)
        identities = {} if machine is None else member_devices(machine)
        identity = self._store.manager.device.identity
        with self._lock:
            known.seeks = machine is None or not machine.roles_of(identity)
            known.members, known.identities = frozenset(identities), identities
            known.parent, known.folded, known.has_news = above, mark, False
            known.version += 1
            if above is not None:
                self._children.setdefault(above, set()).add(party)

    def _machine(self, party: bytes) -> PartyMachine | None:
        """Return the control state of a party. One that is not open is folded from its control feeds."""
        running = self._store.running(party)
        if running is not None:
            with running.processor.locked():
                running.member.refresh()
                return running.member.machine
        member = self._store.manager.unopened_member(party)
        return None if member is None else member.machine

    def _view(self, party: bytes, followed: bool) -> PartyView:
        known = self._known.get(party)
        guests = [self._known[child] for child in self._children.get(party, ()) if child in self._known]
        devices = frozenset(device for guest in guests for device in guest.members)
        if not followed:
            with self._lock:
                self._known.pop(party, None)
            for children in self._children.values():
                children.discard(party)
            return PartyView(party, devices, sum(guest.version for guest in guests))
        assert known is not None
        version = known.version + sum(guest.version for guest in guests)
        return PartyView(party, known.members | devices, version, known.seeks)


def member_devices(machine: PartyMachine) -> dict[bytes, bytes]:
    """Return the devices of members that have a control feed in a party or in its parent, with their identities."""
    identities: dict[bytes, set[bytes]] = {}
    for place in (machine, machine.parent):
        for _, owner in () if place is None else place.authority.feeds:
            if owner.kind is FeedKind.CONTROL:
                identities.setdefault(owner.device, set()).add(owner.identity)
    return {
        bytes(device): bytes(min(owners))
        for device, owners in identities.items()
        if stands(machine, device, owners, ()) is DeviceStanding.MEMBER
    }
