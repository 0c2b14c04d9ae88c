"""Circles of claims to parents, as live queries know them: looked for only where claims are others than before.

>>> at = lambda lamport: Stamp(lamport, bytes(32), 0)
>>> claims = {b"a": [(at(1), b"b")], b"b": [(at(2), b"c")]}
>>> circles = Circles()
>>> circles.look([b"a", b"b"], lambda item: claims.get(item, ()))
set()
>>> claims[b"c"] = [(at(3), b"a")]
>>> sorted(circles.look([b"c"], lambda item: claims.get(item, ())))
[b'c']
>>> circles.parent(b"c", b"a"), circles.parent(b"a", b"b")
(b'', b'b')

Whoever looks at an item looks at all above it, so of all that was looked at it is known which circles it is in. A walk
may end there: what closes a circle later is a claim of one of its members, and that is walked from anew, along what is
remembered. So a write that claims nothing costs the same at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import ClaimsOf, components, derive

SEEN_MAX = 1 << 17  # items whose claims are remembered
Claims = Sequence[tuple[Stamp, bytes]]


class Circles:
    """What is told of must be looked at (`look`); then `parent` is right for all that was looked at, and all above."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[tuple[Stamp, bytes], ...]] = {}
        self._circles: dict[bytes, dict[bytes, bytes]] = {}  # of an item: the parents of all in a circle with it
        self._quiet: set[bytes] = set()  # in circles that were found when nothing was told
        self.steps = 0  # how many items were walked over

    def __len__(self) -> int:
        """How many items are in circles."""
        return len(self._circles)

    def trim(self, seen_max: int = SEEN_MAX) -> None:
        """Remember no more claims than this: of all that are too many, none. What is in a circle stays known."""
        if len(self._seen) > seen_max:
            self._seen.clear()

    def parent(self, item: bytes, last: bytes) -> bytes:
        """Where an item hangs; `last` is its last claim, which holds where there is no circle."""
        circle = self._circles.get(item)
        return last if circle is None else circle[item]

    def look(self, items: Iterable[bytes], claims_of: ClaimsOf, *, told: bool = True) -> set[bytes]:
        """Take the claims of items as they are now, and return what may hang elsewhere for it, these or others.

        With `told`, something of these items has changed; else they are only asked for.
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
                moved.update(self._circles[item])
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
        """Forget the circles of items; the parents that their members had."""
        before: dict[bytes, bytes] = {}
        for item in items:
            before.update(self._circles.get(item, ()))
        for item in before:
            self._circles.pop(item, None)
        return before

    def _find(
        self, changed: set[bytes], new: set[bytes], before: dict[bytes, bytes], claims_of: ClaimsOf, *, told: bool
    ) -> set[bytes]:
        """Look for circles again above some items, and where nobody has looked above others; what has moved."""
        fresh = set(new)  # what was never looked at before
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
                # A circle that this one has taken in was not dissolved: its members hung where it says.
                moved |= {item for item in members if item not in fresh and self._before(item, before) != now[item]}
                self._circles.update(dict.fromkeys(members, now))
                (moved if told else self._quiet).update(fresh.intersection(members))
        return moved | {item for item, parent in before.items() if self.parent(item, self._last(item)) != parent}

    def _parents(self, members: Sequence[bytes]) -> dict[bytes, bytes] | None:
        """Where those in a circle hang, by all their claims; None if it is no circle."""
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
