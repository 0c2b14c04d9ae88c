"""What the generator has made, and what it expects a peer to make of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

RUBBISH, NO_ITEM, FUTURE, NO_MESSAGE = "rubbish", "no item", "future", "no item message"
REVOKED, NOT_NAMED = "revoked", "not named"


@dataclass(slots=True)
class PartyReport:
    """One party."""

    party: bytes
    label: str
    messages: int = 0  # in its data feeds, those past a fork included
    items: int = 0  # that a peer has: none of those whose genesis is void
    members: int = 0
    writers: int = 0
    epochs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # messages by kind
    models: Counter[str] = field(default_factory=Counter)  # items by model
    links: int = 0
    views: int = 0
    batches: int = 0
    guarded: int = 0  # items with an access list
    refused: dict[tuple[bytes, int], str] = field(default_factory=dict)  # by feed and seq: what is wrong with it
    cut: dict[bytes, int] = field(default_factory=dict)  # of its last epoch
    forks: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # by feed: where it is cut, how long it is
    hottest: int = 0  # messages to the item that has most, as far as registers go

    @property
    def beyond(self) -> int:
        """Blocks past forks: held, and not delivered."""
        return sum(length - end for end, length in self.forks.values())

    @property
    def listed(self) -> dict[tuple[bytes, int], str]:
        """What a peer lists that begins at the last epoch: of what is inside its cut, that knows nothing."""
        return {(feed, seq): why for (feed, seq), why in self.refused.items() if seq >= self.cut.get(feed, 0)}

    def row(self) -> dict[str, Any]:
        return {
            "party": self.party.hex(),
            "label": self.label,
            "messages": self.messages,
            "items": self.items,
            "members": self.members,
            "writers": self.writers,
            "epochs": self.epochs,
            "refused": len(self.refused),
            "refused_since_epoch": len(self.listed),
            "beyond_forks": self.beyond,
        }


@dataclass(slots=True)
class HomeReport:
    """A home."""

    parties: list[PartyReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def messages(self) -> int:
        return sum(party.messages for party in self.parties)

    def row(self) -> dict[str, Any]:
        """All of it as JSON has it; equal for equal options, but for the time that it took."""
        kinds, models, refused = Counter[str](), Counter[str](), Counter[str]()
        for party in self.parties:
            kinds += party.kinds
            models += party.models
            refused += Counter(party.refused.values())
        return {
            "messages": self.messages,
            "items": sum(party.items for party in self.parties),
            "kinds": dict(sorted(kinds.items())),
            "models": dict(sorted(models.items())),
            "links": sum(party.links for party in self.parties),
            "views": sum(party.views for party in self.parties),
            "guarded": sum(party.guarded for party in self.parties),
            "batches": sum(party.batches for party in self.parties),
            "epochs": sum(party.epochs for party in self.parties),
            "forked_feeds": sum(len(party.forks) for party in self.parties),
            "beyond_forks": sum(party.beyond for party in self.parties),
            "hottest": max((party.hottest for party in self.parties), default=0),
            "refused": dict(sorted(refused.items())),
            "parties": [party.row() for party in self.parties],
            "seconds": round(self.seconds, 3),
        }
