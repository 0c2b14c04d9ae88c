"""The result of verifying an epoch, for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from antiphon.core.cid import Cid
from antiphon.core.keys import PublicKey

BYTES, MISSING, EXTRA = "bytes", "missing", "extra"
_SAID = {BYTES: "has other bytes", MISSING: "is missing in the snapshot", EXTRA: "should not be in the snapshot"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry that differs between the declared snapshot and the one computed from the messages."""

    tree: str  # items, feeds or deaths; or root, with a field's name as key
    key: str  # in hex
    how: str  # bytes: different bytes; missing: the snapshot lacks the entry; extra: the entry should not be in it
    detail: str = ""

    def __str__(self) -> str:
        what = f"{self.tree}: {self.key} {_SAID[self.how]}"
        return f"{what} ({self.detail})" if self.detail else what


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of recomputing an epoch. `right` and `whole` sum it up."""

    party: PublicKey
    number: int
    snapshot: Cid  # as it was declared
    computed: Cid | None  # from the messages; None if it could not be recomputed here
    since: int  # the epoch on whose snapshot the fold started; 0: from the first messages
    differences: tuple[Difference, ...] = ()
    more: int = 0  # differences that are not listed
    unchecked: tuple[str, ...] = ()  # why it could not be recomputed, or not be compared
    blobs: int = 0  # of the snapshot, read and found right
    missing: tuple[Cid, ...] = ()  # blobs of the snapshot that are not here; blobs below them are unknown
    damaged: tuple[Cid, ...] = ()
    faults: tuple[str, ...] = ()  # blobs that match their CIDs and are no valid snapshot

    @property
    def right(self) -> bool:
        """True if the messages make exactly this snapshot."""
        return self.computed == self.snapshot

    @property
    def whole(self) -> bool:
        """True if every blob of the snapshot is here and undamaged."""
        return not (self.missing or self.damaged or self.faults)

    @property
    def wrong(self) -> bool:
        """True if the snapshot, or one of its blobs, is wrong. False if it merely could not be recomputed."""
        return bool(self.differences or self.damaged or self.faults) or self.computed not in (None, self.snapshot)

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "party": self.party.hex(),
            "number": self.number,
            "snapshot": str(self.snapshot),
            "computed": None if self.computed is None else str(self.computed),
            "since": self.since,
            "right": self.right,
            "whole": self.whole,
            "differences": [
                {"tree": one.tree, "key": one.key, "how": one.how, "detail": one.detail} for one in self.differences
            ],
            "more": self.more,
            "unchecked": list(self.unchecked),
            "blobs": self.blobs,
            "missing": [str(cid) for cid in self.missing],
            "damaged": [str(cid) for cid in self.damaged],
            "faults": list(self.faults),
        }

    def lines(self) -> list[str]:
        """Return the result as lines of text."""
        said = [f"epoch {self.number} of party {self.party.short}: {self._verdict()}"]
        if self.computed is not None:
            said.append(f"computed from {f'epoch {self.since}' if self.since else 'the first messages'} on")
        if self.computed not in (None, self.snapshot):
            said.append(f"declared {self.snapshot}, computed {self.computed}")
        said += [str(one) for one in self.differences]
        said += [f"{self.more} more differences"] if self.more else []
        said += [f"not checked: {reason}" for reason in self.unchecked]
        said.append(f"{self.blobs} blobs of the snapshot are here and right")
        said += [f"{len(self.missing)} blobs are not here, {self.missing[0]} among them"] if self.missing else []
        said += [f"blob {cid} has changed on the disk" for cid in self.damaged]
        return said + list(self.faults)

    def _verdict(self) -> str:
        if self.wrong:
            return "NOT right"
        return "right" if self.right else "could not be recomputed"
