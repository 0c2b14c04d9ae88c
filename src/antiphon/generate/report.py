"""Reports of the generator: what was written, and what a peer must make of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

RUBBISH, NO_ITEM, FUTURE, NO_MESSAGE = "rubbish", "no item", "future", "no item message"
REVOKED, NOT_NAMED = "revoked", "not named"


@dataclass(slots=True)
class PartyReport:
    """Counts of one generated party, and the messages that peers must refuse."""

    party: bytes
    label: str
    messages: int = 0  # in its data feeds, those past a fork included
    items: int = 0  # that a peer has: items with a void genesis are not counted
    members: int = 0
    writers: int = 0
    epochs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # messages by kind
    models: Counter[str] = field(default_factory=Counter)  # items by model
    links: int = 0
    views: int = 0
    batches: int = 0
    guarded: int = 0  # items with an access list
    refused: dict[tuple[bytes, int], str] = field(default_factory=dict)  # (feed, seq) → the kind of fault
    cut: dict[bytes, int] = field(default_factory=dict)  # of its last epoch
    forks: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # feed → (where it forks, its length)
    hottest: int = 0  # messages to the first item, which has most

    @property
    def beyond(self) -> int:
        """The number of blocks past forks: stored, and never delivered."""
        return sum(length - end for end, length in self.forks.values())

    @property
    def listed(self) -> dict[tuple[bytes, int], str]:
        """The refused messages that a peer lists which starts at the last epoch: those outside its cut."""
        return {(feed, seq): why for (feed, seq), why in self.refused.items() if seq >= self.cut.get(feed, 0)}

    def row(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
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
    """The report of a generated home."""

    parties: list[PartyReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def messages(self) -> int:
        """The messages in all parties."""
        return sum(party.messages for party in self.parties)

    def row(self) -> dict[str, Any]:
        """Return the report as a JSON object. Equal options give equal reports, except for `seconds`."""
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
