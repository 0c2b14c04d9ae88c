"""`WaitingBudget`: one bound for all bytes that wait on the connections of a node, to be sent or to be worked on.

>>> budget = WaitingBudget(size_max=100 << 20)
>>> slow, other = budget.share("slow"), budget.share("other")
>>> slow.hold(1 << 20, now_ms=0) > 0  # bytes wait, and more are welcome
True
>>> slow.hold(60 << 20, now_ms=1)  # wait, until `resumable` names this share
0
>>> other.room >= SHARE_SIZE_MIN
True

A share is one direction of one connection: what has arrived must not wait until what is to be sent has left. Each share
has a little of its own. Beyond that it may hold as much as is still free: few slow connections may hold much, many
hold little, and there is always some left for the next one. One share at a time that has to wait gets the spare, so
that messages of which a part has arrived can be finished. A share that gives nothing back while others wait has to end.
"""

from __future__ import annotations

from antiphon.mesh.transport.limits import MEMBERS_MAX, SHARE_MS_MAX, SHARE_SIZE_MIN, SHARE_SIZE_SPARE, WAITING_SIZE_MAX


class WaitingBudget:
    """A number of bytes, divided among shares. A share says how much it holds now, so the sum cannot drift."""

    def __init__(
        self,
        size_max: int = WAITING_SIZE_MAX,
        *,
        shares_max: int = 2 * MEMBERS_MAX,
        spare: int = SHARE_SIZE_SPARE,
        least: int = SHARE_SIZE_MIN,
    ) -> None:
        self.least = least
        self.spare = spare
        self.free = size_max - shares_max * least - spare  # of what is common to all
        if self.free <= 0:
            raise ValueError(f"a budget of {size_max} bytes leaves nothing beyond what each share may hold")
        self._over: dict[Share, None] = {}  # shares that hold all of their own, or more
        self._waiting: dict[Share, None] = {}  # shares without room
        self._favoured: Share | None = None  # the share that may hold the spare

    def share(self, owner: object) -> Share:
        """Return a new share, which remembers its owner."""
        return Share(self, owner)

    def resumable(self) -> list[Share]:
        """Return the shares that had to wait and have room now. They wait no more."""
        if self._favoured is None and self._waiting:
            self._favoured = next(iter(self._waiting))
        found = [share for share in self._waiting if share.room]
        for share in found:
            del self._waiting[share]
        return found

    def hoarders(self, now_ms: int) -> list[Share]:
        """Return the shares that must end: they have given nothing back for long, and another one waits for room."""
        if not self._waiting:
            return []
        late = [share for share in self._over if now_ms - share.progress_ms >= SHARE_MS_MAX]
        return [share for share in late if any(other is not share for other in self._waiting)]

    def room_of(self, share: Share) -> int:
        """Return how many more bytes a share may hold."""
        over = max(share.held - self.least, 0)
        room = max(self.least - share.held, (self.free - over) // 2, 0)
        return max(room, self.least + self.spare - share.held) if share is self._favoured else room

    def changed(self, share: Share, before: int) -> None:
        """Count what a share holds now instead of `before`."""
        self.free += max(before - self.least, 0) - max(share.held - self.least, 0)
        if share.held >= self.least:
            self._over[share] = None
        else:
            self._over.pop(share, None)
            if share is self._favoured:
                self._favoured = None
        if share.room:
            self._waiting.pop(share, None)
        else:
            self._waiting[share] = None


class Share:
    """One direction of a connection, as a `WaitingBudget` counts it."""

    def __init__(self, budget: WaitingBudget, owner: object) -> None:
        self.owner = owner
        self.held = 0
        self.progress_ms = 0  # when this share last gave something back, or had not used up its own
        self._budget = budget

    @property
    def room(self) -> int:
        """The bytes that this share may hold besides. With none, wait until `WaitingBudget.resumable` names it."""
        return self._budget.room_of(self)

    def hold(self, size: int, now_ms: int) -> int:
        """Say how many bytes this share holds now, whether there was room for them or not. Return the room left."""
        before, self.held = self.held, size
        if size < before or before < self._budget.least:
            self.progress_ms = now_ms
        self._budget.changed(self, before)
        return self.room

    def end(self) -> None:
        """Give everything back."""
        self.hold(0, self.progress_ms)
