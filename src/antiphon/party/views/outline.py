"""`Outline`: the relations between items in both directions, and the items that belong to a view by them.

>>> view, card, note = b"v" * 16, b"c" * 16, b"n" * 16
>>> outline = Outline()
>>> _ = outline.put(card, Relations(parents=frozenset({view})))
>>> _ = outline.put(note, Relations(parents=frozenset({b"x" * 16})))
>>> sorted(outline.reach([view]).items) == [card, view]
True
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass

from antiphon.core.cid import Cid
from antiphon.core.errors import DamagedBlob, MissingBlob, TooLarge
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.model.relations import Relations, relations_in_snapshot
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.snapshot import tree, tree_values

REACH_MAX = 1_000_000
_NOTHING = Relations()


@dataclass(frozen=True, slots=True)
class Reach:
    """The items of a view: its members, the links between them, and the items above them (`support`)."""

    members: frozenset[bytes] = frozenset()
    links: frozenset[bytes] = frozenset()
    support: frozenset[bytes] = frozenset()

    @property
    def items(self) -> frozenset[bytes]:
        """Members, links and support together."""
        return self.members | self.links | self.support

    def joined(self, other: Reach) -> Reach:
        """Join the lists of two peers: one may have left something out."""
        both = Reach(self.members | other.members, self.links | other.links, self.support | other.support)
        if len(both.items) > REACH_MAX:
            raise TooLarge(f"a list of more than {REACH_MAX} items for one view; ask another peer")
        return both

    def among(self, items: Container[bytes]) -> Reach:
        """Keep only items that are in `items`."""
        parts = (frozenset(item for item in part if item in items) for part in (self.members, self.links, self.support))
        return Reach(*parts)


class Outline:
    """The relations of items. It only grows: a relation is kept until its item is dropped, even if it ends before."""

    def __init__(self) -> None:
        self._ties: dict[bytes, Relations] = {}
        self._claimers: dict[bytes, set[bytes]] = defaultdict(set)  # parent → items that ever claimed it
        self._forked: dict[bytes, set[bytes]] = defaultdict(set)  # fork → items that were forked into it
        self._links: dict[bytes, set[bytes]] = defaultdict(set)  # source → links from it

    def __contains__(self, item: object) -> bool:
        return item in self._ties

    def put(self, item: bytes, ties: Relations) -> bool:
        """Add relations of an item to the known ones. True if any is new."""
        known = self._ties.get(item)
        both = ties if known is None else known.joined(ties)
        if both == known:
            return False
        self._ties[item] = both
        for parent in both.parents:
            self._claimers[parent].add(item)
        for fork in both.forks:
            self._forked[fork].add(item)
        if both.link is not None:
            self._links[both.link[0]].add(item)
        return True

    def drop(self, item: bytes) -> None:
        """Forget the relations of an item."""
        known = self._ties.pop(item, _NOTHING)
        for parent in known.parents:
            self._claimers[parent].discard(item)
        for fork in known.forks:
            self._forked[fork].discard(item)
        if known.link is not None:
            self._links[known.link[0]].discard(item)

    def reach(self, roots: Iterable[bytes]) -> Reach:
        """Return the items that belong to `roots`, including items that a relation names and the outline lacks."""
        members = _closed(roots, self._down)
        linked = {link for one in members for link in self._links.get(one, ())} - members
        links = {link for link in linked if self._target(link) in members}
        inside = members | links
        schemas = {schema for one in inside if (schema := self._ties.get(one, _NOTHING).schema)}
        support = _closed([*inside, *schemas], self._up) - inside
        return Reach(frozenset(members), frozenset(links), frozenset(support))

    def _down(self, item: bytes) -> Iterator[bytes]:
        ties = self._ties.get(item, _NOTHING)
        yield from ties.embeds
        yield from ties.forks
        yield from self._claimers.get(item, ())
        yield from self._forked.get(item, ())

    def _up(self, item: bytes) -> Iterator[bytes]:
        ties = self._ties.get(item, _NOTHING)
        yield from ties.parents
        yield from ties.forks

    def _target(self, link: bytes) -> bytes:
        ends = self._ties[link].link
        return b"" if ends is None else ends[1]


class BaseOutline:
    """The outline of a whole peer's snapshot. For the next snapshot, only the difference is read."""

    def __init__(self) -> None:
        self._tree: Cid | None = None
        self._outline = Outline()

    def of(self, base: EpochBase) -> Outline:
        """Return the outline of a snapshot. The first call reads all items, later ones those that changed."""
        try:
            self._update(base)
        except (MissingBlob, DamagedBlob):  # perhaps of the previous snapshot: read all of this one
            self._update(base)
        return self._outline

    def _update(self, base: EpochBase) -> None:
        before, self._tree = self._tree, None  # an interrupted update is made from nothing the next time
        if before is None:
            self._outline = Outline()
        for item, _, held in tree.leaf_diff(before, base.root.items, base.blobs):
            self._outline.drop(item)
            if held is not None:
                self._outline.put(item, relations_in_snapshot(tree_values.load(held, base.blobs)))
        self._tree = base.root.items


def _closed(start: Iterable[bytes], step: Callable[[bytes], Iterable[bytes]]) -> set[bytes]:
    found = set(start) - {SYSTEM_ITEM}
    fresh = list(found)
    while fresh:
        new = {item for item in step(fresh.pop()) if item not in found and item != SYSTEM_ITEM}
        found |= new
        fresh += new
        if len(found) > REACH_MAX:
            raise TooLarge(f"more than {REACH_MAX} items belong to one view; hold the whole party")
    return found
