"""`FoldTimes`: the seconds that folding took, by the feed whose messages were folded. For operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from antiphon.model.message import Note

SHORT_S = 0.001  # a shorter fold is not worth dividing


class FoldTimes:
    """Measured once for each item and run of messages, so a message costs nothing. Not saved."""

    def __init__(self) -> None:
        self.seconds: dict[bytes, float] = defaultdict(float)

    def charge(self, notes: Sequence[Note], seconds: float) -> None:
        """Charge the writers of these messages: by the bytes of each, or the last one for a short time."""
        if not notes:
            return
        if seconds < SHORT_S:
            self.seconds[notes[-1].feed] += seconds
            return
        sizes: dict[bytes, int] = defaultdict(int)
        for note in notes:
            sizes[note.feed] += 1 + len(note.message or b"")
        whole = sum(sizes.values())
        for feed, size in sizes.items():
            self.seconds[feed] += seconds * size / whole
