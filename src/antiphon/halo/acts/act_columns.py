"""`ActColumns`: acts of one control feed as columns, from which each is made again as it was read from its block.

To make an act from columns takes no signature, no protobuf and no disk; and columns of thousands of acts are read
without a step for each. They hold claims that a member can write without end, of which few differ in more than keys
and cuts: the rest of a claim is a *word*, and kept once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from antiphon.core.errors import BadEncoding
from antiphon.core.sightings import Sightings
from antiphon.core.stamp import Stamp
from antiphon.halo.acts.act import Act, Place
from antiphon.halo.acts.barren_acts import KEY_SIZE, NO_SEQS, Seqs
from antiphon.halo.credentials.claims import (
    Claim,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Position,
    Role,
    Roles,
)
from antiphon.halo.credentials.credential import SIGNATURES_MAX

NUMBERS = 5  # of each act: seq, lamport, created_ms, expires_ms, the place of its word
LISTED = 3  # of each entry of a list: the place of its act, the place of its feed, a length or a seq
NAMED = 3 * KEY_SIZE  # of each act: the key that it names, the digest of its credential, the hash of its block
Numbers = npt.NDArray[np.int64]

DATA_FEED, MEMBER, GROUP, NARROWING, END, ERASURE = range(1, 7)  # what an act says
TAKING = (NARROWING, END, ERASURE)  # these stay columns
_KEYS = {DATA_FEED: 2, MEMBER: 0, GROUP: 1, NARROWING: 1, END: 1, ERASURE: 0}  # further keys in its word
_HEAD = 4  # bytes of a word before its keys: what it says, roles, flags, how many others have signed
_IS_GROUP, _EXPIRED, _ECHO, _OF_GROUP, _SIGNED = (1 << bit for bit in range(5))  # signed: also by the key it names
_NO_KEY = bytes(KEY_SIZE)
_ROLES: list[Roles] = [
    frozenset(role for role in Role if bits >> (role - 1) & 1) for bits in range(1 << len(Role))
]  # by bits


@dataclass(frozen=True, slots=True)
class Word:
    """The part of a claim that several acts share: all but the key that each names, and its list."""

    says: int
    roles: Roles
    flags: int
    keys: tuple[bytes, ...]
    signers: frozenset[bytes]
    rest: bytes  # an identity's word for its device

    @classmethod
    def decode(cls, data: bytes) -> Word:
        """Decode a word. Raises `BadEncoding`."""
        says, bits, flags, others = data[:_HEAD] if len(data) >= _HEAD else (0, 0, 0, 0)
        start = _HEAD + _KEYS.get(says, 0) * KEY_SIZE
        stop = start + others * KEY_SIZE
        fits = len(data) >= stop if says == DATA_FEED else len(data) == stop
        if says not in _KEYS or bits >= len(_ROLES) or others > SIGNATURES_MAX or not fits:
            raise BadEncoding("the columns of acts: a word of another form")
        keys = [data[at : at + KEY_SIZE] for at in range(_HEAD, stop, KEY_SIZE)]
        own, signers = tuple(keys[: _KEYS[says]]), frozenset(keys[_KEYS[says] :])
        return cls(says, _ROLES[bits], flags, own, signers, data[stop:])

    def claim(self, named: bytes, listed: Sequence[Position]) -> Claim:
        """Return the claim that an act with this word makes about a key."""
        if self.says == DATA_FEED:
            identity, device = self.keys
            return FeedAdmission(named, FeedKind.DATA, identity, device, self.rest)
        if self.says == MEMBER:
            return MemberAdmission(named, self.roles, bool(self.flags & _IS_GROUP))
        if self.says == GROUP:
            return GroupAdmission(self.keys[0], named, bool(self.flags & _IS_GROUP))
        if self.says == ERASURE:
            return Erasure(tuple(listed))
        if self.says == END:
            return FeedEnd(self.keys[0], named, dict(listed))
        return Narrowing(named, self.roles, dict(listed), self.expired, self.group, self.echo)

    @property
    def expired(self) -> bool:
        return bool(self.flags & _EXPIRED)

    @property
    def echo(self) -> bool:
        return bool(self.flags & _ECHO)

    @property
    def group(self) -> bytes:
        """The group that a narrowing names, if any."""
        return self.keys[0] if self.flags & _OF_GROUP else b""

    def signed_by(self, named: bytes) -> frozenset[bytes]:
        """Return who has signed an act with this word that names a key."""
        return self.signers | {named} if self.flags & _SIGNED else self.signers


def _encode(says: int, act: Act, named: bytes, keys: Sequence[bytes], flags: int, roles: Roles, rest: bytes) -> bytes:
    others = sorted(act.signers - {named})
    flags |= _SIGNED if named in act.signers else 0
    bits = sum(1 << (role - 1) for role in roles)
    return bytes((says, bits, flags, len(others))) + b"".join((*keys, *others)) + rest


def _split(act: Act) -> tuple[bytes, bytes, Iterable[tuple[bytes, int]]]:
    """Return the key that an act names, its word, and its list."""
    claim = act.claim
    nobody: Roles = frozenset()
    if isinstance(claim, FeedAdmission):
        keys = (claim.identity, claim.device)
        return claim.feed, _encode(DATA_FEED, act, claim.feed, keys, 0, nobody, claim.device_credential), ()
    if isinstance(claim, MemberAdmission):
        flags = _IS_GROUP if claim.is_group else 0
        return claim.subject, _encode(MEMBER, act, claim.subject, (), flags, claim.roles, b""), ()
    if isinstance(claim, GroupAdmission):
        flags = _IS_GROUP if claim.is_group else 0
        return claim.subject, _encode(GROUP, act, claim.subject, (claim.group,), flags, nobody, b""), ()
    if isinstance(claim, FeedEnd):
        return claim.device, _encode(END, act, claim.device, (claim.identity,), 0, nobody, b""), claim.cuts.items()
    if isinstance(claim, Erasure):
        return _NO_KEY, _encode(ERASURE, act, _NO_KEY, (), 0, nobody, b""), claim.positions
    assert isinstance(claim, Narrowing)
    flags = (_EXPIRED if claim.expired else 0) | (_ECHO if claim.echo else 0) | (_OF_GROUP if claim.group else 0)
    word = _encode(NARROWING, act, claim.subject, (claim.group or _NO_KEY,), flags, claim.roles, b"")
    return claim.subject, word, claim.cuts.items()


def stays_columns(act: Act) -> bool:
    """True for an act that is looked up in columns, if these can hold it: it takes something."""
    return isinstance(act.claim, Narrowing | FeedEnd | Erasure) and fits_columns(act)


def fits_columns(act: Act) -> bool:
    """True for an act that columns can hold: one of those that a member can write without end."""
    claim = act.claim
    if isinstance(claim, FeedAdmission):
        held = claim.kind is FeedKind.DATA
    else:
        held = isinstance(claim, MemberAdmission | GroupAdmission | Narrowing | FeedEnd | Erasure)
    return held and act.stamp.seq > 0 and not act.continued and len(act.digest) == KEY_SIZE


class ActColumns:
    """Acts of a control feed, by seq."""

    def __init__(self, numbers: Numbers, named: bytes, words: Sequence[bytes], feeds: bytes, listed: Numbers) -> None:
        self.numbers = numbers  # a row of `NUMBERS` for each
        self.named = named  # `NAMED` bytes for each
        self.words = words
        self.feeds = feeds  # those in lists, `KEY_SIZE` bytes each
        self.listed = listed  # rows of `LISTED`, by act
        self._kinds = np.frombuffer(b"".join(word[:1] for word in words), dtype=np.uint8)
        self._read: dict[int, Word] = {}
        self._listings: dict[tuple[bytes, int], tuple[Seqs, Seqs]] = {}
        self._order: tuple[npt.NDArray[np.uint64], Seqs] | None = None  # beginnings of named keys, and their places

    @classmethod
    def of(cls, acts: Iterable[Act], before: ActColumns | None = None) -> ActColumns:
        """Keep acts, all of which `fits_columns`, and others that are kept."""
        words = {} if before is None else {word: at for at, word in enumerate(before.words)}
        known = b"" if before is None else before.feeds
        feeds = {known[at : at + KEY_SIZE]: at // KEY_SIZE for at in range(0, len(known), KEY_SIZE)}
        first = 0 if before is None else len(before)
        rows: list[tuple[int, ...]] = []
        named: list[bytes] = [] if before is None else [before.named]
        listed: list[tuple[int, int, int]] = []
        for place, act in enumerate(acts, first):
            key, word, entries = _split(act)
            at = words.setdefault(word, len(words))
            rows.append((act.stamp.seq, act.stamp.lamport, act.created_ms, act.expires_ms, at))
            named += (key, act.digest, act.hash)
            listed += ((place, feeds.setdefault(feed, len(feeds)), number) for feed, number in entries)
        made = np.array(rows, dtype=np.int64).reshape(len(rows), NUMBERS)
        lists = np.array(listed, dtype=np.int64).reshape(len(listed), LISTED)
        if before is not None:
            made, lists = np.concatenate((before.numbers, made)), np.concatenate((before.listed, lists))
        return cls(made, b"".join(named), tuple(words), b"".join(feeds), lists)._by_seq()

    def _by_seq(self) -> ActColumns:
        """Return the same in the order of the seqs."""
        if bool((np.diff(self.seqs) > 0).all()):
            return self
        order = np.argsort(self.seqs)
        places = np.argsort(order)  # where each row is then
        listed = self.listed.copy()
        listed[:, 0] = places[listed[:, 0]]
        listed = listed[np.argsort(listed[:, 0], kind="stable")]
        return ActColumns(self.numbers[order], self._named(order), self.words, self.feeds, listed)

    def _named(self, rows: npt.NDArray[np.bool_] | Seqs) -> bytes:
        return np.frombuffer(self.named, dtype=np.uint8).reshape(-1, NAMED)[rows].tobytes()

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def seqs(self) -> Seqs:
        return self.numbers[:, 0]

    @property
    def says(self) -> npt.NDArray[np.uint8]:
        """The kind of claim of each act."""
        return self._kinds[self.numbers[:, 4]]

    def before(self, stop: int) -> ActColumns:
        """Return the same without the acts from a seq on."""
        return self.only(self.seqs < stop)

    def only(self, wanted: npt.NDArray[np.bool_]) -> ActColumns:
        """Return the acts in these rows."""
        if bool(wanted.all()):
            return self
        if not bool(wanted.any()):
            return ActColumns(self.numbers[:0], b"", (), b"", self.listed[:0])
        places = np.cumsum(wanted) - 1
        listed = self.listed[wanted[self.listed[:, 0]]]
        listed[:, 0] = places[listed[:, 0]]
        numbers = self.numbers[wanted]
        words, numbers[:, 4] = np.unique(numbers[:, 4], return_inverse=True)
        feeds, listed[:, 1] = np.unique(listed[:, 1], return_inverse=True)
        named = b"".join(map(self._feed, feeds.tolist()))
        return ActColumns(numbers, self._named(wanted), [self.words[at] for at in words.tolist()], named, listed)

    def __contains__(self, seq: int) -> bool:
        place = int(np.searchsorted(self.seqs, seq))
        return place < len(self) and int(self.seqs[place]) == seq

    def word(self, place: int) -> Word:
        """Return what the act in a row says."""
        return self._word(int(self.numbers[place, 4]))

    def _word(self, at: int) -> Word:
        found = self._read.get(at)
        if found is None:
            found = self._read[at] = Word.decode(self.words[at])
        return found

    def act(self, feed: bytes, seen: Sightings, place: int) -> Act:
        """Make the act in a row, of a control feed with this log, as it was read from its block."""
        return next(self._made(feed, seen, place, place + 1))

    def between(self, feed: bytes, seen: Sightings, start: int, stop: int) -> Iterator[Act]:
        """Yield the acts of a control feed in [start, stop)."""
        return self._made(feed, seen, *self.places(start, stop))

    def _made(self, feed: bytes, seen: Sightings, low: int, high: int) -> Iterator[Act]:
        lists = np.searchsorted(self.listed[:, 0], np.arange(low, high + 1)).tolist()
        for place, (seq, lamport, created_ms, expires_ms, word_at) in enumerate(self.numbers[low:high].tolist(), low):
            word, at = self._word(word_at), place * NAMED
            key, first, last = self.named[at : at + KEY_SIZE], lists[place - low], lists[place - low + 1]
            yield Act(
                Stamp(lamport, feed, seq),
                Place(feed, seq, seen.at(seq)),
                created_ms,
                word.claim(key, self._list(first, last) if first < last else ()),
                word.signed_by(key),
                expires_ms,
                digest=self.named[at + KEY_SIZE : at + 2 * KEY_SIZE],
                hash=self.named[at + 2 * KEY_SIZE : at + NAMED],
            )

    def _list(self, first: int, last: int) -> list[Position]:
        return [Position(self._feed(at), number) for _, at, number in self.listed[first:last].tolist()]

    def _feed(self, place: int) -> bytes:
        return self.feeds[place * KEY_SIZE : (place + 1) * KEY_SIZE]

    def places(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first row, and the one after the last, of the acts in [start, stop)."""
        return int(np.searchsorted(self.seqs, start)), int(np.searchsorted(self.seqs, stop))

    def about(self, key: bytes, says: int) -> Seqs:
        """Return the rows of the acts that name a key and say this, in order."""
        keys, wanted = _words_of(self.named, NAMED), _words_of(key, KEY_SIZE)
        if self._order is None:
            order = np.argsort(keys[:, 0], kind="stable")
            self._order = keys[order, 0], order
        begins, order = self._order
        low, high = (int(np.searchsorted(begins, wanted[0, 0], side=side)) for side in ("left", "right"))
        near = order[low:high]
        same = (keys[near, : KEY_SIZE // 8] == wanted).all(axis=1)
        found: Seqs = near[same & (self._kinds[self.numbers[near, 4]] == says)]
        return found

    def listing(self, feed: bytes, says: int) -> tuple[Seqs, Seqs]:
        """Return the entries about a feed in the lists of acts that say this: the rows of the acts, and the numbers."""
        if (feed, says) not in self._listings:
            at = self._place_of(feed)
            if at is None:
                return NO_SEQS, NO_SEQS
            entries = self.listed[self.listed[:, 1] == at]
            entries = entries[self._kinds[self.numbers[entries[:, 0], 4]] == says]
            self._listings[feed, says] = entries[:, 0], entries[:, 2]
        return self._listings[feed, says]

    def cuts(self, places: Numbers, feed: bytes) -> Numbers:
        """Return where the act in each of these rows, ascending, cuts a feed; 0 if it does not name it."""
        found = np.zeros(len(places), dtype=np.int64)
        at = self._place_of(feed)
        if at is not None:
            rows = self.listed[self.listed[:, 1] == at]
            where = np.searchsorted(places, rows[:, 0])
            inside = where < len(places)
            rows, where = rows[inside], where[inside]
            right = places[where] == rows[:, 0]
            found[where[right]] = rows[right, 2]
        return found

    def _place_of(self, feed: bytes) -> int | None:
        found = np.flatnonzero((_words_of(self.feeds, KEY_SIZE) == _words_of(feed, KEY_SIZE)).all(axis=1))
        return int(found[0]) if len(found) else None


def _words_of(data: bytes, size: int) -> npt.NDArray[np.uint64]:
    """Return values of a size as rows of 64-bit words, to be compared."""
    return np.frombuffer(data, dtype=np.uint64).reshape(-1, size // 8)
