"""Messages to an end that may not know of this device's rights: newcomers, and members of whom it has not heard.

`ShowQueue` is the sender's part, `ShowJudge` the receiver's. The receiver answers at once and alike, whatever it was
shown, and looks into it later; so neither the answer nor its time tells which parties there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from antiphon.mesh.link.frames import Data, Show
from antiphon.mesh.link.limits import BOX_SIZE_MAX, JUDGE_MS, SHOW_MS
from antiphon.mesh.link.party_tags import PartyTags

_SEAL_SIZE = 16


class ShowQueue:
    """Messages that this end shows: the newest of each party, one after another. `tags` are those of this end."""

    def __init__(self, tags: PartyTags) -> None:
        self._tags = tags
        self._messages: dict[bytes, bytes] = {}
        self._next_ms = 0
        self._count = 0

    @property
    def is_waiting(self) -> bool:
        """True if a message waits to be shown."""
        return bool(self._messages)

    @property
    def due_ms(self) -> int | None:
        """When the next message can be shown; None if none waits."""
        return self._next_ms if self._messages else None

    def put(self, party: bytes, messages: Iterable[bytes]) -> None:
        """Queue the last of these messages. One that does not fit into a frame is dropped."""
        fit = [message for message in messages if message and len(message) + _SEAL_SIZE <= BOX_SIZE_MAX]
        if fit:
            self._messages[party] = fit[-1]

    def drop(self, party: bytes) -> list[bytes]:
        """Forget the message of a party. Return it, if one was queued."""
        message = self._messages.pop(party, None)
        return [] if message is None else [message]

    def take(self, now_ms: int) -> Show | None:
        """Return the next message if it is time to show one."""
        if not self._messages or now_ms < self._next_ms:
            return None
        party = next(iter(self._messages))
        number, self._count = self._count, self._count + 1
        self._next_ms = now_ms + SHOW_MS
        return Show(self._tags.tag(party), self._tags.close(party, number, self._messages.pop(party)))


class ShowJudge:
    """The last message that the other end shows, decrypted at most once a second. `tags` are of that end.

    Who was admitted, is not any more, and does not know that, sends a message as before: it may show an admission too.
    Of such messages the first counts, for a session sends its admission before all else.
    """

    def __init__(self, tags: PartyTags) -> None:
        self._tags = tags
        self._count = 0
        self._last: tuple[int, Show] | None = None
        self._data: Data | None = None
        self._next_ms = 0
        self._parties: dict[bytes, bytes] = {}  # by tag, of all parties that are held here
        self._indexed: frozenset[bytes] = frozenset()

    @property
    def is_waiting(self) -> bool:
        """True if a message waits to be judged."""
        return self._last is not None or self._data is not None

    @property
    def due_ms(self) -> int | None:
        """When the next message can be judged; None if none waits."""
        return self._next_ms if self.is_waiting else None

    @property
    def size(self) -> int:
        """The bytes that wait to be judged."""
        box = b"" if self._last is None else self._last[1].box
        return len(box) + (0 if self._data is None else len(self._data.piece))

    def hear(self, show: Show) -> None:
        """Keep a message until it is judged."""
        self._last = self._count, show
        self._count += 1

    def hear_data(self, data: Data) -> None:
        """Keep a message in one piece of a party that this end does not speak in."""
        if self._data is None and data.first and data.last:
            self._data = data

    def judge(self, held: Callable[[], Iterable[bytes]], now_ms: int) -> tuple[bytes, bytes] | None:
        """Return the party and the message that was shown last, if it is time and this device holds the party."""
        if now_ms < self._next_ms or (self._last is None and self._data is None):
            return None
        self._next_ms = now_ms + JUDGE_MS
        self._index(frozenset(held()))
        if self._last is None:
            data, self._data = self._data, None
            party = None if data is None else self._parties.get(data.stream)
            return None if party is None or data is None else (party, data.piece)
        (number, show), self._last = self._last, None
        party = self._parties.get(show.tag)
        message = self._tags.open(party, number, show.box)
        return None if party is None or message is None else (party, message)

    def _index(self, held: frozenset[bytes]) -> None:
        """Compute the tags of parties that are new here, and forget those of parties that are gone."""
        if held == self._indexed:
            return
        fresh, gone = held - self._indexed, self._indexed - held
        if gone:
            self._parties = {tag: party for tag, party in self._parties.items() if party not in gone}
        self._parties.update((self._tags.tag(party), party) for party in fresh)
        self._indexed = held
