"""`ParentCycles`: cycles of claims to parents in live queries, searched only where claims have changed.

>>> at = lambda lamport: Stamp(lamport, bytes(32), 0)
>>> claims = {b"a": [(at(1), b"b")], b"b": [(at(2), b"c")]}
>>> cycles = ParentCycles()
>>> cycles.look([b"a", b"b"], lambda item: claims.get(item, ()))
set()
>>> claims[b"c"] = [(at(3), b"a")]
>>> sorted(cycles.look([b"c"], lambda item: claims.get(item, ())))
[b'c']
>>> cycles.parent(b"c", b"a"), cycles.parent(b"a", b"b")
(b'', b'b')

A search from an item covers all items above it, so the cycles of every searched item are known, and a later walk may
stop there. A cycle is closed by a claim of one of its members, and the search starts again from that member, along the
remembered claims. So a write without a claim costs the same at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import ClaimsOf, components, derive

SEEN_MAX = 1 << 17  # items whose claims are remembered
Claims = Sequence[tuple[Stamp, bytes]]


class ParentCycles:
    """The known cycles. After `look` at the changed items, `parent` is right for them and for all items above them."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[tuple[Stamp, bytes], ...]] = {}
        self._cycles: dict[bytes, dict[bytes, bytes]] = {}  # by item: the parents of all items in its cycle
        self._quiet: set[bytes] = set()  # items in cycles that were found by a read, not by a change
        self.steps = 0  # the number of items walked over

    def __len__(self) -> int:
        """The number of items in cycles."""
        return len(self._cycles)

    def trim(self, seen_max: int = SEEN_MAX) -> None:
        """Forget all claims if there are more than this. Known cycles stay."""
        if len(self._seen) > seen_max:
            self._seen.clear()

    def parent(self, item: bytes, last: bytes) -> bytes:
        """The parent of an item; `last` is its last claim, which decides unless the item is in a cycle."""
        cycle = self._cycles.get(item)
        return last if cycle is None else cycle[item]

    def look(self, items: Iterable[bytes], claims_of: ClaimsOf, *, told: bool = True) -> set[bytes]:
        """Take the current claims of items; return the items, these or others, whose parent may have changed.

        `told`: these items were reported as changed. Otherwise they are only read.
        """
        moved: set[bytes] = set()
        new: set[bytes] = set()
        changed: set[bytes] = set()
        for item in items:
            now = tuple(claims_of(item))
            known = self._seen.get(item)
            if known is None:
                new.add(item)
            elif known != now:
                changed.add(item)
            elif told and item in self._quiet:
                moved.update(self._cycles[item])
            self._seen[item] = now
        if new or changed:
            before = self._dissolve(new | changed)
            changed |= before.keys()
            moved |= before.keys() & self._quiet
            self._quiet -= before.keys()
            moved |= self._find(changed, new - changed, before, claims_of, told=told)
        if told:
            self._quiet -= moved
        return moved

    def _dissolve(self, items: Iterable[bytes]) -> dict[bytes, bytes]:
        """Forget the cycles of items; return the parents that their members had."""
        before: dict[bytes, bytes] = {}
        for item in items:
            before.update(self._cycles.get(item, ()))
        for item in before:
            self._cycles.pop(item, None)
        return before

    def _find(
        self, changed: set[bytes], new: set[bytes], before: dict[bytes, bytes], claims_of: ClaimsOf, *, told: bool
    ) -> set[bytes]:
        """Search for cycles above `changed` again, and above `new` where no search has been; return the moved items."""
        fresh = set(new)  # items without remembered claims before
        walked: set[bytes] = set()
        moved: set[bytes] = set()

        def remembered(item: bytes) -> Claims:
            self.steps += 1
            found = self._seen.get(item)
            if found is None:
                fresh.add(item)
                found = self._seen[item] = tuple(claims_of(item))
            return found

        def unknown(item: bytes) -> Claims:
            return remembered(item) if item in new or item not in self._seen else ()

        for start, above in ((changed, remembered), (new, unknown)):
            new -= walked
            for members in components(start, above):
                ended = members[0] in walked or (start is new and members[0] not in fresh)  # the walk ended there
                now = None if ended else self._parents(members)
                walked.update(members)
                if now is None:
                    continue
                # A cycle that this one absorbed was not dissolved: it has the former parents of its members.
                moved |= {item for item in members if item not in fresh and self._before(item, before) != now[item]}
                self._cycles.update(dict.fromkeys(members, now))
                (moved if told else self._quiet).update(fresh.intersection(members))
        return moved | {item for item, parent in before.items() if self.parent(item, self._last(item)) != parent}

    def _parents(self, members: Sequence[bytes]) -> dict[bytes, bytes] | None:
        """The parents of the members of a cycle, by all their claims; None if they are no cycle."""
        only = members[0]
        if len(members) == 1 and all(parent != only for _, parent in self._seen.get(only, ())):
            return None
        claims = [(stamp, child, parent) for child in members for stamp, parent in self._seen[child]]
        parents = derive(claims)
        return {item: parents.get(item, b"") for item in members}

    def _before(self, item: bytes, before: dict[bytes, bytes]) -> bytes:
        return before[item] if item in before else self.parent(item, self._last(item))

    def _last(self, item: bytes) -> bytes:
        claims = self._seen.get(item, ())
        return claims[-1][1] if claims else b""
