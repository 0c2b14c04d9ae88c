"""`KnownFeeds`: the control feeds that acts name in a chain from the genesis. Strangers cost nothing (rule 22).

A grant in a known control feed names its subject, in force or not. The first block of a control feed names its identity
and device, by their signatures; the feed is known if its identity is named. So who is known grows only, and depends on
the set of blocks alone. Blocks of other feeds are not folded: nobody can be made to wait for them, or to hold them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from antiphon.feed.block import Block
from antiphon.halo.acts.act import Act, read_act
from antiphon.halo.acts.grant import admits, subject_of
from antiphon.halo.credentials.claims import PartyGenesis


class KnownFeeds:
    """The identities that are named, and the control feeds of others that wait to be."""

    def __init__(self, genesis_feed: bytes) -> None:
        self._genesis_feed = genesis_feed
        self.parent: KnownFeeds | None = None  # of a child: whom it names is known here, too
        self.named: set[bytes] = set()
        self.heard: list[bytes] = []  # the same, in the order in which they were heard of
        self._strangers: dict[bytes, dict[bytes, None]] = defaultdict(dict)  # by identity: control feeds

    def welcomes(self, opening: Act) -> bool:
        """True if a control feed that begins with this act is known."""
        return opening.stamp.feed == self._genesis_feed or self.names(identity_of(opening))

    def names(self, identity: bytes) -> bool:
        """True if a grant in a known control feed, here or in the parent, has this subject."""
        return identity in self.named or (self.parent is not None and self.parent.names(identity))

    def wait(self, opening: Act) -> bool:
        """Let a control feed that begins with this act wait for its identity to be named. Return False."""
        self._strangers[identity_of(opening)][opening.stamp.feed] = None
        return False

    def hear(self, acts: Iterable[Act]) -> list[bytes]:
        """Take note of whom acts of known feeds name. Return the control feeds that are known by it."""
        return self.name(subject_of(act) for act in acts if self._grants(act))

    def name(self, identities: Iterable[bytes]) -> list[bytes]:
        """Take note of identities that grants of known feeds name. Return the control feeds that are known by it."""
        fresh = set(identities) - self.named
        self.named |= fresh
        self.heard += sorted(fresh)
        return self.met(fresh)

    def met(self, identities: Iterable[bytes]) -> list[bytes]:
        """Return the control feeds that waited for these identities to be named."""
        if not self._strangers:
            return []
        return [feed for identity in identities for feed in self._strangers.pop(identity, ())]

    def _grants(self, act: Act) -> bool:
        if isinstance(act.claim, PartyGenesis):
            return act.position == (self._genesis_feed, 0)
        return admits(act)


def identity_of(opening: Act) -> bytes:
    """Return the identity whose control feed begins with this act; "" if it begins none."""
    return b"" if opening.admission is None else opening.admission.identity


def find_identity(party: bytes, first: Block) -> bytes:
    """Return the identity whose control feed begins with this block; "" if it begins none. Checks all signatures."""
    return identity_of(read_act(party, first, {}))
