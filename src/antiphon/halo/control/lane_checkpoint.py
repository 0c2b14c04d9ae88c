"""`LaneCheckpoint`: what was found out about the blocks of one control feed, so that an opening reads few of them.

It is derived from blocks whose signatures and causes were checked, and is bound to the hash of the last of them. That
hash names all the blocks before it and all that their writer had seen; so a checkpoint is right wherever a feed has
that block at that place, and is used only there. Losing it costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import KEY_SIZE, BarrenActs, Seqs
from antiphon.halo.credentials.claims import FeedAdmission, FeedKind

NUMBERS = 5  # of each admission: seq, lamport, created_ms, expires_ms, the place of its word


@dataclass(frozen=True, slots=True)
class Word:
    """An identity's word for a device, which the admissions of its data feeds repeat."""

    identity: bytes
    device: bytes
    credential: bytes


class AdmissionColumns:
    """Admissions of data feeds, as read from their blocks. A device may write a thousand that say much the same."""

    def __init__(self, numbers: npt.NDArray[np.int64], keys: bytes, words: Sequence[Word]) -> None:
        self.numbers = numbers  # a row of `NUMBERS` for each
        self.keys = keys  # of each: the data feed, the digest of the credential, and the hash of the block
        self.words = words

    @classmethod
    def of(cls, acts: Iterable[Act]) -> AdmissionColumns:
        """Keep admissions, by seq. All are `is_plain`."""
        words: dict[Word, int] = {}
        rows, keys = [], []
        for act in acts:
            claim = act.claim
            assert isinstance(claim, FeedAdmission)
            word = words.setdefault(Word(claim.identity, claim.device, claim.device_credential), len(words))
            rows.append((act.stamp.seq, act.stamp.lamport, act.created_ms, act.expires_ms, word))
            keys.append(claim.feed + act.digest + act.hash)
        numbers = np.array(rows, dtype=np.int64).reshape(len(rows), NUMBERS)
        return cls(numbers, b"".join(keys), tuple(words))

    @property
    def seqs(self) -> Seqs:
        return self.numbers[:, 0]

    def between(self, feed: bytes, seen: Sightings, start: int, stop: int) -> Iterator[Act]:
        """Yield the acts of a control feed in [start, stop)."""
        low, high = (int(place) for place in np.searchsorted(self.seqs, (start, stop)))
        for place, (seq, lamport, created_ms, expires_ms, at) in enumerate(self.numbers[low:high].tolist(), low):
            first = place * 3 * KEY_SIZE
            named, digest, hash_ = (self.keys[first + k * KEY_SIZE : first + (k + 1) * KEY_SIZE] for k in range(3))
            word = self.words[at]
            yield Act(
                Stamp(lamport, feed, seq),
                Place(feed, seq, seen.at(seq)),
                created_ms,
                FeedAdmission(named, FeedKind.DATA, word.identity, word.device, word.credential),
                frozenset((word.device, named)),
                expires_ms,
                digest=digest,
                hash=hash_,
            )


def is_plain(act: Act) -> bool:
    """True for the admission of a data feed that its device and the feed have signed, and nobody else."""
    claim = act.claim
    if not isinstance(claim, FeedAdmission) or claim.kind is not FeedKind.DATA or not act.stamp.seq:
        return False
    return act.signers == {claim.device, claim.feed} and not act.continued and len(act.digest) == KEY_SIZE


@dataclass(frozen=True, slots=True)
class LaneCheckpoint:
    """A control feed up to a block: its barren acts, its admissions of data feeds, and what its writer had seen."""

    feed: bytes
    length: int
    hash: bytes  # of the last block
    barren: BarrenActs
    admissions: AdmissionColumns
    seen: Sightings

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.barren) + len(self.admissions.numbers) + len(self.seen)

    def live(self) -> list[int]:
        """Return the seqs of the acts that must be read from their blocks, in order."""
        wanted = np.ones(self.length, dtype=np.bool_)
        wanted[self.barren.seqs] = wanted[self.admissions.seqs] = False
        seqs: list[int] = np.flatnonzero(wanted).tolist()
        return seqs
