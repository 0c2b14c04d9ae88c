"""`SessionGate`: what one session may give to the other end's device, and whether it speaks to it at all."""

from __future__ import annotations

from antiphon.mesh.replication.admits import Access, Admits
from antiphon.mesh.replication.limits import JUDGE_MS, NEVER, TIMEOUT_MAX_MS
from antiphon.mesh.replication.message import Holding


class SessionGate:
    """Asks `Admits` about one device: at first, after each control change, and when it shows credentials.

    A device can make this one verify credentials at most once a second.
    """

    def __init__(self, admits: Admits, device: bytes) -> None:
        self._admits = admits
        self.device = bytes(device)
        self._version: int | None = None
        self._shown: tuple[bytes, ...] = ()
        self._unjudged: tuple[bytes, ...] | None = None
        self._judge_ms = 0
        self._proof: tuple[bytes, ...] = ()
        self.gives = Access.NOTHING
        self.takes = Access.NOTHING
        self._sought = False  # this end was a newcomer when the session began, or later
        self._show_ms = 0  # when to show the proof again
        self._lates = 0  # late answers of the other end, at the last look

    @property
    def is_open(self) -> bool:
        """True if this end speaks: the other may have something, or this one is a newcomer, who speaks first."""
        return self.takes > Access.NOTHING

    @property
    def proof(self) -> tuple[bytes, ...]:
        """The credentials to show."""
        return self._proof

    @property
    def judge_ms(self) -> int:
        """When shown credentials can be judged."""
        return NEVER if self._unjudged is None else self._judge_ms

    @property
    def show_ms(self) -> int:
        """When to show the own credentials again."""
        return self._show_ms if self._sought and self._proof else NEVER

    def shows(self, now_ms: int, lates: int) -> bool:
        """True if it is time to show the proof again: the other end may have restarted, and forgotten it.

        Who does not know this device cannot say so. Newcomers show their proof each minute, others after late answers.
        """
        late, self._lates = lates > self._lates, lates
        if not self._proof or not (late or now_ms >= self.show_ms):
            return False
        self._show_ms = now_ms + TIMEOUT_MAX_MS
        return True

    def gives_feed(self, held: Holding | None) -> bool:
        """True if the other end may have a feed."""
        return held is not None and self.gives >= (Access.CONTROL if held.control else Access.WHOLE)

    def takes_feed(self, held: Holding) -> bool:
        """True if this end takes a feed from the other end."""
        return self.takes >= (Access.CONTROL if held.control else Access.WHOLE)

    def hear(self, credentials: tuple[bytes, ...]) -> None:
        """Note what the other end shows; `look` judges it."""
        if self.gives < Access.WHOLE and credentials != self._shown:
            self._unjudged = credentials

    def look(self, now_ms: int) -> bool:
        """Ask again if an answer may have changed. Return True if it has."""
        version = self._admits.version()
        due = self._unjudged is not None and now_ms >= self._judge_ms
        if version == self._version and not due:
            return False
        if due and self._unjudged is not None:
            self._shown, self._unjudged = self._unjudged, None
            self._judge_ms = now_ms + JUDGE_MS
        if version != self._version:
            self._version, self._proof = version, self._admits.proof()
        before = self.gives, self.takes
        self.gives = self._admits.access(self.device, self._shown)
        seeks = self._admits.seeks()
        self._sought = self._sought or seeks
        self.takes = Access.WHOLE if seeks else self.gives
        return before != (self.gives, self.takes)
