"""The tree of items, derived from the claims of all items, independent of the order of arrival (rule 16).

A claim is a message that gives an item a parent. Claims are taken by ascending stamp, and each moves its item. A claim
that would close a cycle is skipped. Breaking cycles as they arrive would give two results for the same claims.

>>> a, b, c = b"a" * 16, b"b" * 16, b"c" * 16
>>> at = lambda lamport: Stamp(lamport, bytes(32), 0)
>>> derive([(at(5), a, b), (at(6), b, a), (at(7), b, c), (at(3), c, a)]) == {c: a, a: b}
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from antiphon.core.stamp import Stamp
from antiphon.model.forest import Forest

_WALK_MAX = 64  # steps for each claim, on average; in deeper trees a link-cut tree is faster
Claim = tuple[Stamp, bytes, bytes]  # stamp, item, parent (empty: none)
ClaimsOf = Callable[[bytes], Sequence[tuple[Stamp, bytes]]]  # the claims of an item, by ascending stamp


def derive(claims: Iterable[Claim]) -> dict[bytes, bytes]:
    """Return the parent of each item that has one. A parent that has not arrived counts: orphans are kept."""
    ordered = sorted(claims)
    parents: dict[bytes, bytes] = {}
    room = _WALK_MAX * (_WALK_MAX + len(ordered))
    for number, (_, child, parent) in enumerate(ordered):
        if not parent:
            parents.pop(child, None)
            continue
        at: bytes | None = parent  # walks up: the claim closes a cycle if it meets the child
        while at is not None and at != child:
            at = parents.get(at)
            room -= 1
        if at is None:
            parents[child] = parent
        if room < 0:
            return _go_on(parents, ordered[number + 1 :])
    return parents


def _go_on(parents: dict[bytes, bytes], claims: Sequence[Claim]) -> dict[bytes, bytes]:
    """Continue `derive` with a link-cut tree. By walking, a ring of 8,000 items took 32 million steps."""
    forest = Forest(parents)
    for _, child, parent in claims:
        forest.move(child, parent)
    return forest.parents


def settle(items: Iterable[bytes], claims_of: ClaimsOf) -> dict[bytes, bytes]:
    """Return the parents that `derive` gives to these items and to all items in a cycle with them; empty for none.

    It reads only the claims of these items and of the items above them. Two facts about the graph of all claims, with
    edges from child to parent, allow that:

    - The parent of an item that is in no cycle is its last claim. For `derive` skips a claim of c to p only if p is c
      or reaches c by parents. Each of these parents is a claim, so the claim is in a cycle, and c with it.
    - The members of a strongly connected component need the claims of its members only. For the items by which p
      reaches c are in a cycle with c. So they are members, and their own claims decide if they reach c.
    """
    wanted = set(items)
    found: dict[bytes, bytes] = {}
    for members in components(wanted, claims_of):
        if not wanted.isdisjoint(members):
            found.update(_settled(members, claims_of))
    return found


def _settled(members: Sequence[bytes], claims_of: ClaimsOf) -> dict[bytes, bytes]:
    """Return the parents of the members of one component; empty for none."""
    claims = [(stamp, child, parent) for child in members for stamp, parent in claims_of(child)]
    if len(members) == 1 and all(parent != child for _, child, parent in claims):
        return {members[0]: claims[-1][2] if claims else b""}
    parents = derive(claims)
    return {member: parents.get(member, b"") for member in members}


def lineage(item: bytes, claims_of: ClaimsOf) -> list[bytes]:
    """Return the ancestors of an item, the nearest first. Faster than `settle` for each: it reads each item once."""
    parents: dict[bytes, bytes] = {}
    for members in components([item], claims_of):
        parents.update(_settled(members, claims_of))
    found: list[bytes] = []
    while above := parents.get(found[-1] if found else item):
        found.append(above)
    return found


def components(items: Iterable[bytes], claims_of: ClaimsOf) -> Iterator[list[bytes]]:
    """Yield the strongly connected components of these items and of all above them (Tarjan, without recursion).

    Items below are not needed: a cycle through an item also lies above it.
    """
    number: dict[bytes, int] = {}
    low: dict[bytes, int] = {}  # the least number of an open item that this item reaches
    opened: list[bytes] = []
    is_open: set[bytes] = set()
    for root in items:
        path: list[tuple[bytes, Iterator[bytes]]] = []
        following: bytes | None = root if root not in number else None
        while following is not None or path:
            if following is not None:
                number[following] = low[following] = len(number)
                opened.append(following)
                is_open.add(following)
                path.append((following, iter({parent for _, parent in claims_of(following) if parent})))
            item, parents = path[-1]
            following = _next(item, parents, number, low, is_open)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[item])
                if low[item] == number[item]:
                    yield _closed(item, opened, is_open)


def _next(
    item: bytes, parents: Iterator[bytes], number: dict[bytes, int], low: dict[bytes, int], is_open: set[bytes]
) -> bytes | None:
    """Return the next parent that was not visited. Parents that were visited and are open update `low`."""
    for parent in parents:
        if parent not in number:
            return parent
        if parent in is_open:
            low[item] = min(low[item], number[parent])
    return None


def _closed(item: bytes, opened: list[bytes], is_open: set[bytes]) -> list[bytes]:
    """Pop the component that an item has opened off the stack."""
    members: list[bytes] = []
    while not members or members[-1] != item:
        members.append(opened.pop())
        is_open.remove(members[-1])
    return members
