"""Where items hang: a tree derived from the claims of all of them, the same whatever the order of arrival (rule 16).

Claims are taken by ascending stamp, and each moves its item; one that would close a circle is skipped. Breaking circles
as they arrive would give two results for the same claims.

>>> a, b, c = b"a" * 16, b"b" * 16, b"c" * 16
>>> at = lambda lamport: Stamp(lamport, bytes(32), 0)
>>> derive([(at(5), a, b), (at(6), b, a), (at(7), b, c), (at(3), c, a)]) == {c: a, a: b}
True
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.stamp import Stamp

Claim = tuple[Stamp, bytes, bytes]  # when, which item, under which (empty: under none)


def derive(claims: Iterable[Claim]) -> dict[bytes, bytes]:
    """The parent of each item that has one. A parent that is not here is a parent all the same: orphans are kept."""
    parents: dict[bytes, bytes] = {}
    for _, child, parent in sorted(claims):
        if not parent:
            parents.pop(child, None)
        elif not _reaches(parents, parent, child):
            parents[child] = parent
    return parents


def _reaches(parents: dict[bytes, bytes], item: bytes, wanted: bytes) -> bool:
    """Whether `wanted` is this item or above it."""
    at: bytes | None = item
    while at is not None:
        if at == wanted:
            return True
        at = parents.get(at)
    return False
