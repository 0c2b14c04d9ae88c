"""The bytes of `LaneCheckpoint`s in a file: little-endian columns under a checksum (docs/design/formats.md)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from antiphon.core.codec import Reader, u32, u64
from antiphon.core.errors import BadEncoding
from antiphon.core.sightings import Sightings
from antiphon.halo.acts.act_columns import LISTED, NAMED, NUMBERS, ActColumns, Word
from antiphon.halo.acts.barren_acts import KEY_SIZE, NO_SEQS, BarrenActs
from antiphon.halo.control.branch_checkpoint import BranchCheckpoint
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint

TAG = b"antiphon.checkpoint.6\0"
_WHAT = "checkpoints of control feeds"
_SUM_SIZE = 32


def encode_checkpoints(party: bytes, lanes: Iterable[LaneCheckpoint]) -> bytes:
    """Encode checkpoints of control feeds of a party."""
    data = encode_body(party, lanes)
    return data + sha256(data).digest()


def encode_body(party: bytes, lanes: Iterable[LaneCheckpoint]) -> bytes:
    """Encode the same without its checksum."""
    return b"".join([TAG, party, *(_lane(lane) for lane in sorted(lanes, key=lambda lane: lane.feed))])


def _lane(lane: LaneCheckpoint) -> bytes:
    barren, acts = lane.barren, lane.acts
    parts = [lane.feed, u64(lane.length), lane.hash]
    parts += [barren.encode(), u32(len(acts.words)), *(u32(len(word)) + word for word in acts.words)]
    parts += [_numbers(acts.numbers.reshape(-1)), acts.named, u32(len(acts.feeds)), acts.feeds]
    parts += [_numbers(acts.listed.reshape(-1)), bytes([lane.valid is not None])]
    parts += [_numbers(NO_SEQS if lane.valid is None else lane.valid), lane.seen.encode()]
    parts += [b"\0" if lane.branches is None else b"\1" + lane.branches.encode()]
    return b"".join(parts)


def _numbers(column: npt.NDArray[np.int64]) -> bytes:
    return u32(len(column)) + column.astype("<i8").tobytes()


def decode_checkpoints(party: bytes, data: bytes) -> dict[bytes, LaneCheckpoint]:
    """Decode checkpoints of control feeds of a party, by feed. Raises `BadEncoding` if a bit is wrong."""
    body, total = data[:-_SUM_SIZE], data[-_SUM_SIZE:]
    if sha256(body).digest() != total:
        raise BadEncoding(f"{_WHAT}: the checksum is wrong")
    return decode_body(party, body)


def decode_body(party: bytes, body: bytes) -> dict[bytes, LaneCheckpoint]:
    """Decode the same without its checksum. Raises `BadEncoding`."""
    reader = Reader(body, _WHAT)
    if reader.take(len(TAG)) != TAG or reader.take(KEY_SIZE) != party:
        raise BadEncoding(f"{_WHAT}: it is of another format, or of another party")
    found: dict[bytes, LaneCheckpoint] = {}
    last = b""
    while reader.left:
        lane = _read(reader)
        if lane.feed <= last:
            raise BadEncoding(f"{_WHAT}: feeds that do not ascend")
        found[lane.feed] = lane
        last = lane.feed
    return found


def _read(reader: Reader) -> LaneCheckpoint:
    feed, length, hash_ = reader.take(KEY_SIZE), reader.u64(), reader.take(KEY_SIZE)
    barren = BarrenActs.decode(reader, feed, length)
    acts = _read_acts(reader, length)
    judged, valid = reader.u8(), _column(reader, length)
    if judged > 1 or (len(valid) and not judged):
        raise BadEncoding(f"{_WHAT}: verdicts that are not there")
    seen = Sightings.decode(reader)
    both = np.sort(np.concatenate((barren.seqs, acts.seqs)))
    if bool((np.diff(both) == 0).any()) or 0 in both[:1] or (seen.starts and seen.starts[-1] >= length):
        raise BadEncoding(f"{_WHAT}: its columns do not fit each other")
    beyond = reader.u8()
    if beyond > 1:
        raise BadEncoding(f"{_WHAT}: neither with nor without branches: {beyond}")
    branches = BranchCheckpoint.decode(reader, feed) if beyond else None
    return LaneCheckpoint(feed, length, hash_, barren, acts, seen, valid if judged else None, branches)


def _read_acts(reader: Reader, length: int) -> ActColumns:
    words = tuple(reader.take(reader.u32()) for _ in range(reader.u32()))
    for word in words:
        Word.decode(word)
    rows = _rows(reader, NUMBERS)
    _check(rows[:, 0], length)
    named, feeds = reader.take(len(rows) * NAMED), reader.take(reader.u32())
    listed = _rows(reader, LISTED)
    _check_below(rows[:, 4], len(words))
    _check_below(listed[:, 0], len(rows))
    _check_below(listed[:, 1], len(feeds) // KEY_SIZE)
    if len(feeds) % KEY_SIZE or bool((np.diff(listed[:, 0]) < 0).any()):
        raise BadEncoding(f"{_WHAT}: lists of acts that do not ascend, or a feed that is cut short")
    return ActColumns(rows, named, words, feeds, listed)


def _rows(reader: Reader, width: int) -> npt.NDArray[np.int64]:
    numbers = np.frombuffer(reader.take(reader.u32() * 8), dtype="<i8").astype(np.int64)
    if len(numbers) % width or (len(numbers) and int(numbers.min()) < 0):
        raise BadEncoding(f"{_WHAT}: {len(numbers)} numbers of acts")
    return numbers.reshape(-1, width)


def _check_below(places: npt.NDArray[np.int64], count: int) -> None:
    if len(places) and int(places.max()) >= count:
        raise BadEncoding(f"{_WHAT}: an act names what is not there")


def _column(reader: Reader, length: int) -> npt.NDArray[np.int64]:
    column = np.frombuffer(reader.take(reader.u32() * 8), dtype="<i8").astype(np.int64)
    _check(column, length)
    return column


def _check(seqs: npt.NDArray[np.int64], length: int) -> None:
    """Refuse seqs that do not ascend, or are not below a length."""
    if len(seqs) and (int(seqs[0]) < 0 or int(seqs[-1]) >= length or bool((np.diff(seqs) <= 0).any())):
        raise BadEncoding(f"{_WHAT}: blocks that do not ascend, or that are not there")
