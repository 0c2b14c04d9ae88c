"""The result of a run as a value: what became of every block, what was refused and why, and digests to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from antiphon.core.cid import Cid
from antiphon.pipeline.fold.block_account import Account
from antiphon.pipeline.fold.summary import Skew

COUNTS = ("held", "control", "based", "applied", "refused", "pending", "ended", "lost")
EXPLAINED = ("refused", "pending", "ended")  # each with a reason


@dataclass(frozen=True, slots=True)
class PartyReport:
    """The report of one party. `states` is the digest of its items, the same on live peers with the same blocks."""

    account: Account
    items: int
    states: bytes
    epoch: int = 0
    snapshot: bytes = b""  # the CID of the snapshot of that epoch
    error: str = ""
    waits: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        counts = {name: getattr(self.account, name) for name in COUNTS}
        snapshot = str(Cid(self.snapshot)) if self.snapshot else ""
        about = {"items": self.items, "epoch": self.epoch, "snapshot": snapshot, "states": self.states.hex()}
        reasons = {name: dict(found.most_common()) for name, found in sorted(self.account.reasons.items())}
        return {
            "party": self.account.party.hex(),
            **counts,
            **about,
            "reasons": reasons,
            "waits": list(self.waits),
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run."""

    homes: tuple[str, ...]
    parties: tuple[PartyReport, ...]
    skew: Skew
    seconds: dict[str, float] = field(default_factory=dict)  # of each stage
    versions: dict[str, int] = field(default_factory=dict)  # of tables that were written
    full: dict[str, int] = field(default_factory=dict)  # by reason: parties that were not read incrementally
    unchanged: int = 0  # the number of parties without anything new

    @property
    def counts(self) -> dict[str, int]:
        """The account of all blocks: held is the sum of the others, and lost is 0."""
        return totals(one.account for one in self.parties)

    @property
    def reasons(self) -> dict[str, Counter[str]]:
        """The number of blocks refused, pending or ended, by reason."""
        found: dict[str, Counter[str]] = {name: Counter() for name in EXPLAINED}
        for one in self.parties:
            for name, reasons in one.account.reasons.items():
                found[name].update(reasons)
        return found

    def row(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "homes": list(self.homes),
            "blocks": self.counts,
            "items": sum(one.items for one in self.parties),
            "reasons": {name: dict(found.most_common()) for name, found in self.reasons.items()},
            "skew": self.skew.row(),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "versions": self.versions,
            "full": self.full,
            "unchanged": self.unchanged,
            "parties": [one.row() for one in self.parties],
        }


def totals(accounts: Iterable[Account]) -> dict[str, int]:
    """Add up the accounts of some parties."""
    known = list(accounts)
    return {name: sum(getattr(one, name) for one in known) for name in COUNTS}
