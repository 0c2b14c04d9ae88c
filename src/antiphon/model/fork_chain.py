"""Follow the forks of an item: a forked item continues under another id, which may be forked in turn."""

from __future__ import annotations

from collections.abc import Callable

STEPS_MAX = 64  # the longest chain of forks that is followed


def lead(item: bytes, after: Callable[[bytes], bytes]) -> bytes:
    """Return the item that an id leads to, step by step. In a cycle of forks, an id leads to itself."""
    at, seen = item, {item}
    for _ in range(STEPS_MAX):
        following = after(at)
        if not following:
            break
        if following in seen:
            return item
        seen.add(following)
        at = following
    return at
