"""`Matching`: the parties that this end speaks in, and those that both ends do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from antiphon.core.ports import Randomness
from antiphon.mesh.link.frames import TAG_SIZE, Tags
from antiphon.mesh.link.limits import TAG_GROUP, TAGS_IN_FRAME_MAX, TAGS_MAX
from antiphon.mesh.link.party_tags import PartyTags


@dataclass(slots=True)
class SpokenParty:
    """A party that this end speaks in. `mine` and `theirs` are its tags."""

    party: bytes
    mine: bytes
    theirs: bytes
    is_matched: bool = False
    their_digest: bytes = b""  # the last that has come


class Matching:
    """Compares the tags of both ends of a link."""

    def __init__(self, mine: PartyTags, theirs: PartyTags, randomness: Randomness) -> None:
        self._mine = mine
        self._theirs = theirs
        self._randomness = randomness
        self._spoken: dict[bytes, SpokenParty] = {}
        self._by_tag: dict[bytes, SpokenParty] = {}
        self._others: dict[bytes, None] = {}  # tags that came, of no party that this end speaks in; the oldest first
        self._unsent: dict[bytes, None] | None = None  # parties whose tag is to be sent; None: no tags were sent yet
        self.has_heard = False  # the other end's first tags have come

    def __iter__(self) -> Iterator[SpokenParty]:
        return iter(list(self._spoken.values()))

    def get(self, party: bytes) -> SpokenParty | None:
        """Return a party if this end speaks in it."""
        return self._spoken.get(party)

    def stream(self, tag: bytes) -> SpokenParty | None:
        """Return the party of the other end's stream; None if there is none, or it is not matched."""
        spoken = self._by_tag.get(tag)
        return spoken if spoken is not None and spoken.is_matched else None

    @property
    def has_tags(self) -> bool:
        """True if tags are to be sent."""
        return self._unsent is None or bool(self._unsent)

    def speak(self, parties: Iterable[bytes]) -> list[SpokenParty]:
        """Speak in further parties. Return them; those are matched whose tag has come."""
        fresh = []
        for party in parties:
            if party not in self._spoken:
                spoken = SpokenParty(party, self._mine.tag(party), self._theirs.tag(party))
                self._spoken[party] = self._by_tag[spoken.theirs] = spoken
                spoken.is_matched = spoken.theirs in self._others
                self._others.pop(spoken.theirs, None)
                fresh.append(spoken)
                if self._unsent is not None:
                    self._unsent[party] = None
        return fresh

    def take_tags(self) -> list[Tags]:
        """Return the tags to send now, with random ones among them. The first time there is at least one group.

        Sorted, their order tells nothing.
        """
        parties, first = (self._spoken if self._unsent is None else self._unsent), self._unsent is None
        tags = [self._spoken[party].mine for party in parties]
        self._unsent = {}
        padding = -len(tags) % TAG_GROUP if tags or not first else TAG_GROUP
        every = sorted(tags + [self._randomness.bytes(TAG_SIZE) for _ in range(padding)])
        return [Tags(tuple(every[at : at + TAGS_IN_FRAME_MAX])) for at in range(0, len(every), TAGS_IN_FRAME_MAX)]

    def hear(self, tags: Iterable[bytes]) -> list[SpokenParty]:
        """Note tags of the other end. Return the parties that are matched by them, now or again."""
        matched = []
        for tag in tags:
            spoken = self._by_tag.get(tag)
            if spoken is None:
                self._others.pop(tag, None)
                self._others[tag] = None
                if len(self._others) > TAGS_MAX:
                    del self._others[next(iter(self._others))]
            else:
                spoken.is_matched = True
                matched.append(spoken)
        return matched

    def drop(self, party: bytes) -> None:
        """Speak in a party no more. The other end's tag is remembered, in case this end speaks again."""
        spoken = self._spoken.pop(party, None)
        if self._unsent is not None:
            self._unsent.pop(party, None)
        if spoken is not None:
            del self._by_tag[spoken.theirs]
            if spoken.is_matched:
                self._others[spoken.theirs] = None
