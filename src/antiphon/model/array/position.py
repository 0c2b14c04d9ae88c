"""Position keys: byte strings whose byte order is the order of an array's elements, so that SQL can sort them too.

A key is a path through a tree of runs and ends in the stamp of the message that put the element there, so that no two
messages make the same key:

    run offset mark  run offset mark …  run offset 02 stamp

A run belongs to one writer, who alone extends it, forwards and backwards. The encoding of offsets grows with their
logarithm. So runs that two people type at the same place do not interleave. Mark 02 is the element at an offset, 01
leads to runs before it and 03 to runs after it. Mark 02 with the stamp of an element inside a path leads to runs right
after exactly that element, for the rare case of two at one offset. The id of a run begins with its lamport. So of the
runs at one place the latest is the last (and before an element, where ids are inverted, the first). A writer who
appends or prepends opens a run beside the others, and not deeper.

>>> place = between(None, None, 2, b"")
>>> first, second = span_of(place.path, place.extends, place.offset, 2, Stamp(1, b"f" * 32, 0)).all_keys()
>>> place = between(first, second, 1, b"")
>>> [key] = span_of(place.path, place.extends, place.offset, 1, Stamp(2, b"g" * 32, 0)).all_keys()
>>> first < key < second
True
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from antiphon.core.stamp import STAMP_SIZE, Stamp
from antiphon.model.model import InvalidMutation

KEY_SIZE_MAX = 1 << 10
OFFSET_MAX = 1 << 48
TAG_SIZE = 4  # bytes of a feed key in a run's id; should two feeds agree in them, lamport and seq still differ
BEFORE, SELF, AFTER = b"\x01", b"\x02", b"\x03"
_BEFORE, _SELF, _AFTER = 1, 2, 3
_TAIL_SIZE = len(SELF) + STAMP_SIZE
_RUN_SIZE_MAX = 9 + TAG_SIZE + 9
_NEGATE = bytes(range(255, -1, -1))
_TWO, _THREE = 64, 64 + (1 << 13)
_NINE = _THREE + (1 << 20)


class Place(NamedTuple):
    """A place for elements: consecutive offsets of a new run at `path`, or with `extends` of the run that it names."""

    path: bytes
    offset: int
    extends: bool


class Span(NamedTuple):
    """The keys of elements that one message puts at consecutive offsets of a run. They are made when they are needed.

    Thousands of elements share a path of up to a KiB, so a span costs no more than it weighs in its mutation.
    """

    run: bytes  # the path, with the id of the run at its end
    offset: int
    size: int
    stamp: Stamp

    def key(self, at: int) -> bytes:
        """Return the key of the element at an index."""
        return self.run + encode_int(self.offset + at) + SELF + self.stamp.encode()

    def all_keys(self) -> Iterator[bytes]:
        """Yield all keys, ascending."""
        tail = SELF + self.stamp.encode()
        for number in range(self.offset, self.offset + self.size):
            yield self.run + encode_int(number) + tail

    def part(self, start: int, stop: int) -> Span:
        """Return the span of some of the elements."""
        return Span(self.run, self.offset + start, stop - start, self.stamp)


class Step(NamedTuple):
    """One run on the path to an element. The numbers are positions in the key."""

    base: int  # the start of the run's id
    run: int  # the end of the id
    end: int  # the end of the offset, where a mark follows
    offset: int
    lamport: int
    tag: bytes
    before: bool


class Path(NamedTuple):
    """A checked path: its runs, and the facts by which it is judged."""

    steps: tuple[Step, ...]
    lamport: int  # the greatest of all runs
    tag: bytes  # of the run that the path ends in; empty if it ends where a run may open


# -- integers in byte order


def encode_int(number: int) -> bytes:
    """Encode a number so that bytes sort like numbers, and none is a prefix of another.

    It takes 1 byte below 64, 2 below 8,256, 3 below a million, and 9 beyond.

    >>> sorted([3, -70, 64, 0, -1, 9000], key=encode_int)
    [-70, -1, 0, 3, 64, 9000]
    """
    if number < 0:
        return encode_int(~number).translate(_NEGATE)
    if number < _TWO:
        return bytes((0x80 + number,))
    if number < _THREE:
        return (0xC000 + number - _TWO).to_bytes(2, "big")
    if number < _NINE:
        return (0xE00000 + number - _THREE).to_bytes(3, "big")
    return b"\xf0" + (number - _NINE).to_bytes(8, "big")


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    """Read the number at a position; return it and its end."""
    first = data[at]
    if 0x40 <= first < 0xC0:  # one byte, by far the most
        return first - 0x80, at + 1
    if first < 0x80:
        number, end = _read_int(data[at : at + 9].translate(_NEGATE), 0)
        return ~number, at + end
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 9
    end = at + size
    if end > len(data) or first > 0xF0:
        raise InvalidMutation("a position key with a number that is cut off or no number")
    raw = int.from_bytes(data[at + (size == 9) : end], "big")
    return raw + (_TWO - 0xC000 if size == 2 else _THREE - 0xE00000 if size == 3 else _NINE), end


# -- keys to paths


@lru_cache(maxsize=1024)
def read_path(path: bytes) -> Path:
    """Read and check a path of a peer. It ends where a run may open, or in a run."""
    try:
        return _read_path(path)
    except IndexError:
        raise InvalidMutation("a position key that is cut off") from None


def _read_path(path: bytes) -> Path:
    steps: list[Step] = []
    lamport = at = 0
    before = False
    while at < len(path):
        base = at
        run, at = _read_run(path, at, before)
        lamport = max(lamport, run[0])
        if at == len(path):
            return Path(tuple(steps), lamport, run[1])
        end_of_run = at
        offset, at = _read_int(path, at)
        if not -OFFSET_MAX <= offset <= OFFSET_MAX:
            raise InvalidMutation(f"the offset {offset} in a position key is out of range")
        steps.append(Step(base, end_of_run, at, offset, run[0], run[1], before))
        mark = path[at]
        at += 1
        if mark == _SELF:
            at += STAMP_SIZE
        elif mark not in (_BEFORE, _AFTER):
            raise InvalidMutation(f"a position key with the mark {mark}")
        before = mark == _BEFORE
    if at > len(path):
        raise InvalidMutation("a position key that is cut off")
    return Path(tuple(steps), lamport, b"")


def _read_run(path: bytes, at: int, before: bool) -> tuple[tuple[int, bytes], int]:
    """Read the id of a run; return its lamport, its tag, and its end."""
    lamport, at = _read_int(path, at)
    tag = path[at : at + TAG_SIZE]
    at += TAG_SIZE
    seq, at = _read_int(path, at)
    if before:
        lamport, tag, seq = ~lamport, tag.translate(_NEGATE), ~seq
    if not (0 <= lamport < 1 << 63 and 0 <= seq < 1 << 63):
        raise InvalidMutation("a position key with a run that no message can have opened")
    return (lamport, tag), at


def span_of(path: bytes, extends: bool, offset: int, count: int, stamp: Stamp) -> Span:
    """Check a place of a peer, and return the keys of the elements that the message at `stamp` puts there."""
    if len(path) > KEY_SIZE_MAX:
        raise InvalidMutation(f"a position key of more than {KEY_SIZE_MAX} bytes")
    found = read_path(path)
    if found.lamport > stamp.lamport:
        # Otherwise a later run beside that one would not sort as the latest.
        raise InvalidMutation(f"a position key in a run of the lamport {found.lamport}, which it cannot have seen")
    if not extends:
        if found.tag:
            raise InvalidMutation("a position key that ends in a run, which it does not extend")
        run = encode_int(stamp.lamport) + stamp.feed[:TAG_SIZE] + encode_int(stamp.seq)
        path += run.translate(_NEGATE) if _opens_before(path, found) else run
    elif found.tag != stamp.feed[:TAG_SIZE]:
        raise InvalidMutation("a position key in a run of another writer")
    return check_span(Span(path, offset, count, stamp))


def check_span(span: Span) -> Span:
    """Return a span if its offsets are in range and its keys are not too long; else raise `InvalidMutation`."""
    first, last = span.offset, span.offset + span.size - 1
    if not -OFFSET_MAX <= first <= last <= OFFSET_MAX:
        raise InvalidMutation(f"the offsets {first} to {last} are out of range, or none")
    if len(span.run) + max(len(encode_int(first)), len(encode_int(last))) + _TAIL_SIZE > KEY_SIZE_MAX:
        raise InvalidMutation(f"a position key of more than {KEY_SIZE_MAX} bytes")
    return span


def _opens_before(path: bytes, found: Path) -> bool:
    return bool(found.steps) and path[found.steps[-1].end] == _BEFORE


class KeyReader:
    """Reads the paths of elements in a snapshot, each of which ends in the mark of the element.

    Elements of one run share its bytes, and the run is checked once.
    """

    __slots__ = ("_lamport", "_run")

    def __init__(self) -> None:
        self._run = b""
        self._lamport = 0  # the greatest of all runs on the path

    def read(self, path: bytes, stamp: Stamp) -> Span:
        """Check a path, and return the place of its element."""
        if len(path) + STAMP_SIZE > KEY_SIZE_MAX:
            raise InvalidMutation(f"a position key of more than {KEY_SIZE_MAX} bytes")
        if not self._run or not path.startswith(self._run):
            self._open(path, stamp)
        offset, end = self._offset(path)
        if path[end:] != SELF:
            self._open(path, stamp)  # its run is further down
            offset, end = self._offset(path)
        if path[end:] != SELF:
            raise InvalidMutation("a position key that does not end in an element")
        if self._lamport > stamp.lamport:
            raise InvalidMutation(f"a position key in a run of the lamport {self._lamport}, which it cannot have seen")
        return Span(self._run, offset, 1, stamp)

    def _open(self, path: bytes, stamp: Stamp) -> None:
        found = read_path(path + stamp.encode())
        if found.tag or not found.steps or path[-1:] != SELF:
            raise InvalidMutation("a position key that does not end in an element")
        self._run, self._lamport = path[: found.steps[-1].run], found.lamport

    def _offset(self, path: bytes) -> tuple[int, int]:
        try:
            offset, end = _read_int(path, len(self._run))
        except IndexError:
            raise InvalidMutation("a position key that is cut off") from None
        if not -OFFSET_MAX <= offset <= OFFSET_MAX:
            raise InvalidMutation(f"the offset {offset} in a position key is out of range")
        return offset, end


# -- a place between two keys


def between(left: bytes | None, right: bytes | None, count: int, feed: bytes) -> Place:
    """Return the place at which the writer of `feed` puts `count` elements between two neighbours."""
    before = read_path(left).steps if left is not None else ()
    after = read_path(right).steps if right is not None else ()
    tag = feed[:TAG_SIZE]
    if left is not None and before[-1].tag == tag and before[-1].offset + count <= OFFSET_MAX:
        run = left[: before[-1].run]
        if right is None or not right.startswith(run):
            return Place(run, before[-1].offset + 1, True)
    if right is not None and after[-1].tag == tag and after[-1].offset - count >= -OFFSET_MAX:
        run = right[: after[-1].run]
        if left is None or not left.startswith(run):
            return Place(run, after[-1].offset - count, True)
    bases = [base for base in (_base_after(left, before, right), _base_before(left, right, after)) if base is not None]
    return Place(min(bases, key=len), 0, False)


def _base_after(left: bytes | None, steps: tuple[Step, ...], right: bytes | None) -> bytes | None:
    """Return the shortest path whose newest run lies after `left` and before `right`."""
    if left is None:
        return b"" if right is None else None
    for step in steps:
        base = left[: step.base]
        if not step.before and (right is None or not right.startswith(base)):
            return base
    place = left[: steps[-1].end]
    if right is None or not right.startswith((place + SELF, place + AFTER)):
        return place + AFTER
    if right.startswith(place + SELF) and not right.startswith(left):
        return left
    return None


def _base_before(left: bytes | None, right: bytes | None, steps: tuple[Step, ...]) -> bytes | None:
    if right is None:
        return None
    for step in steps:
        base = right[: step.base]
        if step.before and (left is None or not left.startswith(base)):
            return base
    place = right[: steps[-1].end]
    # A path before an element lies before all elements at its offset, and `left` may be one of them.
    return None if left is not None and left.startswith((place + BEFORE, place + SELF)) else place + BEFORE


def key_size(place: Place, count: int) -> int:
    """Return an upper bound for the keys at a place. The id of a new run is unknown before the message has a stamp."""
    run = 0 if place.extends else _RUN_SIZE_MAX
    offset = max(len(encode_int(place.offset)), len(encode_int(place.offset + count - 1)))
    return len(place.path) + run + offset + _TAIL_SIZE
