"""`UnopenedParty`: the known feeds of a party that is not open here, by its control feeds in the store."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.feed.block import Block
from antiphon.feed.header import Entry
from antiphon.feed.store.feed_store import FeedStore
from antiphon.halo.acts.act import read_act
from antiphon.halo.control.control_feeds import fold_control_feeds
from antiphon.halo.control.known_feeds import find_identity
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import PartyGenesis
from antiphon.party.live.manager import find_genesis


class UnopenedParty:
    """Knows the genesis by the party's own signature, and all others by the acts in control feeds that are here."""

    def __init__(self, store: FeedStore, party: bytes, genesis_feed: bytes | None = None) -> None:
        self._store = store
        self._party = bytes(party)
        self._machine = None if genesis_feed is None else PartyMachine(self._party, genesis_feed)
        self._data: set[bytes] = set()
        self._transaction = -1
        self.look()

    def look(self) -> None:
        """Read new control blocks, which may name further feeds."""
        now = self._store.transaction
        if now == self._transaction:
            return
        self._transaction = now
        if self._machine is None:
            genesis = find_genesis(self._store, self._party)
            self._machine = None if genesis is None else PartyMachine(self._party, genesis)
        if self._machine is not None:
            fold_control_feeds(self._machine, self._store, self._data)

    @property
    def known_count(self) -> int:
        """Return how many identities and data feeds are named."""
        return 0 if self._machine is None else self._machine.known_count

    def knows(self, feed: bytes) -> bool:
        """True if a feed is known: a data feed, or a control feed with blocks here."""
        return self._machine is not None and self._machine.knows(feed)

    def wanted(self) -> Iterable[Entry]:
        """Return control blocks that are missing for waiting control blocks to count."""
        self.look()
        return () if self._machine is None else self._machine.wanted()

    def find_identity(self, first: Block) -> bytes:
        """Return the identity whose control feed begins with this block; the party itself for its genesis."""
        if self._machine is None:
            act = read_act(self._party, first, {})
            if isinstance(act.claim, PartyGenesis) and act.admission is not None and self._party in act.signers:
                return self._party
        return find_identity(self._party, first)

    def names(self, identity: bytes) -> bool:
        """True if control feeds of an identity are known, or if it is the party itself."""
        return identity == self._party or (self._machine is not None and self._machine.names(identity))
