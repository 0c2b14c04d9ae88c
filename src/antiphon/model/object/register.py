"""The parts of an object: paths, and at each path a register, which keeps one value of each feed with its stamp.

A path is a tuple of keys. Its last segment may instead be an element of a set, as the bytes of its canonical encoding.
So a set is a map whose keys are values: adding an element twice has no further effect, and a removal names the
additions that it removes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import value_pb2
from antiphon.model.value import Value, read_value, value_bytes

PATH_LENGTH_MAX = 32  # segments
SEGMENT_SIZE_MAX = 1 << 10  # of a key in UTF-8, or of an element's encoding
OPS_MAX = 4096  # in a mutation

Segment = str | bytes  # a key, or an element's encoding
Path = tuple[Segment, ...]


class Mark(enum.Enum):
    """Contents of a register besides plain values and counters."""

    MAP = 2  # there is a map, even if nothing is in it
    SET = 3  # likewise a set
    MEMBER = 4  # the element is in the set


class Counter(NamedTuple):
    """A counter. Its total is unbounded, so that no sum depends on the order of additions."""

    total: int


Content = Any  # a Value, a Mark or a Counter
Entry = tuple[Stamp, Content]  # sorts by its stamp, because no two entries have the same
PACKED_REGISTERS_MAX = 64  # of one object, that cache their bytes: in a large one they take more than its values
_NO_CHILDREN: dict[Segment, Node] = {}  # shared by all leaves, and never changed: most nodes are leaves


class Node:
    """The register at a path, and the nodes below it. A feed has at most one entry in a register, its last."""

    __slots__ = ("children", "entries", "members", "packed")

    def __init__(self) -> None:
        self.entries: dict[bytes, Entry] = {}  # by feed
        self.children = _NO_CHILDREN
        self.packed: tuple[Content, Any, int, bytes] | None = None  # its bytes in a snapshot: see `snapshot_codec`
        self.members = 0  # the number of children that are elements, counted as they change

    @classmethod
    def root(cls) -> Node:
        """Return the root of an object, which code may add children to directly."""
        node = cls()
        node.children = {}
        return node

    def child(self, segment: Segment) -> Node:
        """Return the node of a segment; it is created if missing."""
        child = self.children.get(segment)
        if child is None:
            if self.children is _NO_CHILDREN:
                self.children = {}
            child = self.children[segment] = Node()
            self.members += type(segment) is bytes
        return child

    def drop(self, segment: Segment) -> None:
        """Remove the node of a segment."""
        del self.children[segment]
        self.members -= type(segment) is bytes

    def segments(self) -> list[Segment]:
        """Return the segments of the children in the order of paths: keys before elements, each by their bytes."""
        if self.members:
            return sorted(self.children, key=segment_order)
        return sorted(self.children)  # all are text, whose order is that of UTF-8

    def below(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Yield this node and all below it in the order of paths, parents first."""
        yield path, self
        for segment in self.segments():
            yield from self.children[segment].below((*path, segment))

    def everything(self) -> Iterator[Entry]:
        """Yield the entries here and below, in no order."""
        nodes = [self]
        while nodes:
            node = nodes.pop()
            yield from node.entries.values()
            nodes.extend(node.children.values())

    def top(self) -> Stamp:
        """Return the greatest stamp here and below. Only the root may be empty; it has no stamp then."""
        return max(stamp for stamp, _ in self.everything())


def segment_order(segment: Segment) -> tuple[bool, bytes]:
    """Return the sort key of a segment."""
    return (False, segment.encode()) if isinstance(segment, str) else (True, segment)


def path_order(path: Path) -> tuple[tuple[bool, bytes], ...]:
    """Return the sort key of a path."""
    return tuple(map(segment_order, path))


def is_container(content: Content) -> bool:
    """True for the marks of a map or set."""
    return content is Mark.MAP or content is Mark.SET


def find(root: Node, path: Path) -> Node | None:
    """Return the node at a path, or None."""
    node: Node | None = root
    for segment in path:
        if node is None:
            return None
        node = node.children.get(segment)
    return node


def grow(root: Node, path: Path) -> Node:
    """Return the node at a path; missing nodes are created."""
    node = root
    for segment in path:
        node = node.child(segment)
    return node


def trim(root: Node, path: Path) -> None:
    """Remove the nodes along a path that are empty."""
    trail = [root]
    for segment in path:
        child = trail[-1].children.get(segment)
        if child is None:
            break
        trail.append(child)
    for at in range(len(trail) - 1, 0, -1):
        if trail[at].entries or trail[at].children:
            return
        trail[at - 1].drop(path[at - 1])


def check_path(path: Sequence[object]) -> None:
    """Raise `InvalidInput` for a path that is empty or too long, or has a key that is no text or too long."""
    if not path or len(path) > PATH_LENGTH_MAX:
        raise InvalidInput(f"a path has 1 to {PATH_LENGTH_MAX} segments, not {len(path)}")
    for key in path:
        if not isinstance(key, str):
            raise InvalidInput(f"the keys of a path are text, and {key!r} is a {type(key).__name__}")
        # A character has at most 4 bytes, so most keys are measured without encoding them.
        if len(key) > SEGMENT_SIZE_MAX >> 2 and len(key.encode(errors="replace")) > SEGMENT_SIZE_MAX:
            raise TooLarge(f"a key of more than {SEGMENT_SIZE_MAX} bytes")


def element_segment(element: Value) -> bytes:
    """Return the segment of an element of a set."""
    encoded = value_bytes(element)
    if len(encoded) > SEGMENT_SIZE_MAX:
        raise TooLarge(f"an element of {len(encoded)} bytes; one of a set has at most {SEGMENT_SIZE_MAX}")
    return encoded


def element_value(segment: bytes) -> Value:
    """Return the element of a set that a segment encodes."""
    return read_value(value_pb2.Value.FromString(segment))


def show_path(path: Path) -> str:
    """Format a path for an error message."""
    return " → ".join(repr(segment if isinstance(segment, str) else element_value(segment)) for segment in path)
