"""`Finding`: one thing that is wrong with a home: where, what, since when it is known by which code, and the next step.

>>> found = Finding(FindingCode.BLOB, "blobs/data.mdb", "blob bafkqaaa has changed", cid="bafkqaaa")
>>> found.code, found.remedy.name, found.repairable
(<FindingCode.BLOB: 'blob.damaged'>, 'PEER', True)
>>> print(found)
blobs/data.mdb: blob bafkqaaa has changed [blob.damaged]. Drop it, then sync: a peer that has it sends it again
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class Remedy(enum.Enum):
    """From what a finding is repaired."""

    PEER = "peer"  # what is rotten is dropped, and fetched again from a peer
    REBUILD = "rebuild"  # it is derived from sound files of this home
    TIGHTEN = "tighten"  # the permissions of the file are changed
    COPY = "copy"  # only a copy of the file helps, or the ways that the advice names
    NOTHING = "nothing"  # nothing is lost, and nothing needs to be done


class FindingCode(enum.StrEnum):
    """Stable codes of findings. None is ever removed or given another meaning; new ones may be added."""

    FILE_MISSING = "file.missing"
    FILE_DAMAGED = "file.damaged"
    FILE_LOCKED = "file.locked"
    FILE_PERMISSIONS = "file.permissions"
    FEED_BLOCKS = "feed.blocks"
    FEED_RECORD = "feed.record"
    FEED_TIMEFRAME = "feed.timeframe"
    FEED_EVIDENCE = "feed.evidence"
    FEED_BRANCH = "feed.branch"
    FEED_REFUSAL = "feed.refusal"
    BLOB = "blob.damaged"
    KEYS_DAMAGED = "keys.damaged"
    KEYS_LACKING = "keys.lacking"
    METADATA_DAMAGED = "metadata.damaged"
    METADATA_PARTY = "metadata.party"
    METADATA_UNREAD = "metadata.unread"
    ITEMS_DAMAGED = "items.damaged"
    CHECKPOINT_DAMAGED = "checkpoint.damaged"
    SETTINGS_DAMAGED = "settings.damaged"
    VERSION_DAMAGED = "version.damaged"
    VERSION_NEWER = "version.newer"


_FETCH = "Drop it, then sync: a peer that has it sends it again"
_REBUILD = "It is built again from the feeds when the party is opened"

#: By code: the remedy, and the next step.
_STEPS: dict[FindingCode, tuple[Remedy, str]] = {
    FindingCode.FILE_MISSING: (Remedy.COPY, "Put a copy of it back"),
    FindingCode.FILE_DAMAGED: (Remedy.COPY, "Put a copy of it back"),
    FindingCode.FILE_LOCKED: (Remedy.NOTHING, "Give the passphrase to have it checked"),
    FindingCode.FILE_PERMISSIONS: (Remedy.TIGHTEN, "Opening the home takes the permissions of others away"),
    FindingCode.FEED_BLOCKS: (Remedy.PEER, _FETCH),
    FindingCode.FEED_RECORD: (Remedy.REBUILD, "Drop it: it is made again from the blocks of the feed"),
    FindingCode.FEED_TIMEFRAME: (Remedy.REBUILD, "Drop it: it is made again from the blocks of the feed"),
    FindingCode.FEED_EVIDENCE: (Remedy.PEER, _FETCH),
    FindingCode.FEED_BRANCH: (Remedy.PEER, _FETCH),
    FindingCode.FEED_REFUSAL: (Remedy.REBUILD, "Drop it: a list of refused blocks lacks one entry then"),
    FindingCode.BLOB: (Remedy.PEER, _FETCH),
    FindingCode.KEYS_DAMAGED: (
        Remedy.COPY,
        "Put a copy of it back; or begin a new home with the recovery phrase of the identity, join your parties, and "
        "sync",
    ),
    FindingCode.KEYS_LACKING: (Remedy.NOTHING, "This device opens a new feed when it writes"),
    FindingCode.METADATA_DAMAGED: (
        Remedy.REBUILD,
        "Put a copy of it back, or make it anew from the feeds; labels and preferences are lost then",
    ),
    FindingCode.METADATA_PARTY: (Remedy.REBUILD, "Put the party on the list again; its label is lost"),
    FindingCode.METADATA_UNREAD: (
        Remedy.COPY,
        "It may be sound, and is left as it is: remove the cause, and check again. If it is no file of this home, put "
        "a copy of the right one back, or move it away and repair",
    ),
    FindingCode.ITEMS_DAMAGED: (Remedy.REBUILD, _REBUILD),
    FindingCode.CHECKPOINT_DAMAGED: (Remedy.REBUILD, "It is written again; the next opening takes longer"),
    FindingCode.SETTINGS_DAMAGED: (Remedy.COPY, "Put a copy of it back, or correct it: it is JSON"),
    FindingCode.VERSION_DAMAGED: (
        Remedy.REBUILD,
        "Drop it: the next opening goes through all upgrades again. Put a copy of it back instead if a newer program "
        "has used this home",
    ),
    FindingCode.VERSION_NEWER: (
        Remedy.COPY,
        "Use the newer program; or restore a backup that is older than the upgrade",
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `file` is relative to the home; `party`, `feed` and `cid` are hex, or text of a CID."""

    code: FindingCode
    file: str
    what: str
    party: str = ""
    feed: str = ""
    seq: int | None = None  # the first block concerned
    count: int = 0  # blocks concerned, as far as is known
    cid: str = ""
    advice: str = ""  # the next step, where it is another than usually

    @property
    def remedy(self) -> Remedy:
        """From what it is repaired."""
        return _STEPS[self.code][0]

    @property
    def repairable(self) -> bool:
        """True if a repair needs nothing but this home, or this home and a peer."""
        return self.remedy in (Remedy.PEER, Remedy.REBUILD, Remedy.TIGHTEN)

    @property
    def harmless(self) -> bool:
        """True if nothing is wrong with the data: it is said, and no error."""
        return self.remedy is Remedy.NOTHING

    @property
    def next_step(self) -> str:
        """A sentence that says what to do."""
        return self.advice or _STEPS[self.code][1]

    def __str__(self) -> str:
        return f"{self.file}: {self.what} [{self.code}]. {self.next_step}"

    def row(self) -> dict[str, Any]:
        """Return the finding for JSON, without what does not apply."""
        row: dict[str, Any] = {"code": self.code, "file": self.file, "what": self.what}
        row |= {name: value for name in ("party", "feed", "cid") if (value := getattr(self, name))}
        if self.seq is not None:
            row |= {"seq": self.seq, "count": self.count}
        return row | {"remedy": self.remedy.value, "repairable": self.repairable, "next": self.next_step}
