"""From a user's change of an object to the operations of one mutation, with the stamps of the entries they replace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object.register import (
    PATH_LENGTH_MAX,
    SEGMENT_SIZE_MAX,
    Content,
    Counter,
    Entry,
    Mark,
    Node,
    Path,
    check_path,
    element_segment,
    find,
    is_container,
    show_path,
)
from antiphon.model.object.state import DELETE, Increment, Op
from antiphon.model.object.view import look, seek, shown
from antiphon.model.value import Value

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1


def as_path(path: str | Sequence[str]) -> Path:
    """Return a path given as one key or as several."""
    if isinstance(path, str):
        keys: Path = (path,)
    elif isinstance(path, list | tuple):
        keys = tuple(path)
    else:
        raise InvalidInput(f"a path is a key or a list of keys, not a {type(path).__name__}")
    check_path(keys)
    return keys


def names_at(root: Node, path: Path) -> Sequence[Stamp]:
    """Return the stamps that an operation at a path names: the last of each feed at the path and below it."""
    node = find(root, path)
    return () if node is None else _last_of_each(node.everything())


def _last_of_each(entries: Iterable[Entry]) -> Sequence[Stamp]:
    last: dict[bytes, Stamp] = {}
    for stamp, _ in entries:
        known = last.get(stamp.feed)
        if known is None or known < stamp:
            last[stamp.feed] = stamp
    return sorted(last.values())


def _values_at(root: Node, path: Path) -> Sequence[Stamp]:
    """Return the stamps of the entries at exactly a path that are no marks of containers."""
    node = find(root, path)
    entries = node.entries.values() if node else ()
    return sorted(stamp for stamp, content in entries if not is_container(content))


class Edit:
    """The operations of one mutation in the making."""

    __slots__ = ("_above", "_root", "_targets", "ops")

    def __init__(self, root: Node) -> None:
        self._root = root
        self._targets: set[Path] = set()
        self._above: set[Path] = set()  # the ancestors of the targets
        self.ops: dict[Path, Op] = {}

    def write(self, path: Path, value: Value) -> None:
        """Write a value. A dict becomes a map and a Python set becomes a set, which others can change inside."""
        self._aim(path)
        self._way(path)
        self._expand(path, value, names_at(self._root, path))

    def counter(self, path: Path, start: int) -> None:
        """Create a counter."""
        self._aim(path)
        self._way(path)
        self._put(path, Counter(_int64(start)), names_at(self._root, path))

    def increment(self, path: Path, by: int) -> None:
        """Add to a counter, or create one at an empty path."""
        node = seek(self._root, path)
        if node is None:
            self.counter(path, by)
            return
        content = shown(node)
        if type(content) is not Counter:
            raise InvalidInput(f'at {show_path(path)} is {_kind(content)}; make it a counter: `edit("counter", path)`')
        base = max(stamp for stamp, content in node.entries.values() if type(content) is Counter)
        self._put(path, Increment(_int64(by)), [base])

    def delete(self, path: Path) -> None:
        """Delete the values at a path and below it."""
        look(self._root, path)
        self._put(path, DELETE, names_at(self._root, path))

    def add(self, path: Path, element: Value) -> None:
        """Add an element to a set, which is created if missing."""
        node = seek(self._root, path)
        self._way(path)
        if node is None:
            self._put(path, Mark.SET, names_at(self._root, path))
        else:
            _need_set(node, path)
            if values := _values_at(self._root, path):
                self._put(path, Mark.SET, values)
        inside = self._inside(path, element)
        self._put(inside, Mark.MEMBER, names_at(self._root, inside))

    def remove(self, path: Path, element: Value) -> None:
        """Remove an element from a set."""
        _need_set(look(self._root, path), path)
        self.delete(self._inside(path, element))

    def _aim(self, path: Path) -> None:
        """Refuse two targets of which one is inside the other: neither would win by a rule."""
        prefixes = [path[:size] for size in range(1, len(path) + 1)]
        if path in self._above or not self._targets.isdisjoint(prefixes):
            raise InvalidInput(f"a change of {show_path(path)} and, at once, of a path inside it or around it")
        self._targets.add(path)
        self._above.update(prefixes[:-1])

    def _way(self, path: Path) -> None:
        """Mark the maps along a path that are missing, so that they remain when they become empty.

        Maps beside which there is a value are marked too: the mark replaces it.
        """
        for size in range(1, len(path)):
            above = path[:size]
            node = seek(self._root, above)
            content = Mark.MAP if above in self.ops else shown(node) if node else None
            if content is Mark.SET:
                raise InvalidInput(f"at {show_path(above)} is a set; sets hold elements and no keys")
            values = () if above in self.ops else _values_at(self._root, above)
            if content is not Mark.MAP or values:
                self._put(above, Mark.MAP, values)

    def _expand(self, path: Path, value: Value, names: Sequence[Stamp]) -> None:
        if isinstance(value, dict):
            self._put(path, Mark.MAP, names)
            for key, part in value.items():
                inside = (*path, key)
                check_path(inside)
                self._expand(inside, part, ())
        elif isinstance(value, set | frozenset):
            self._put(path, Mark.SET, names)
            for element in value:
                self._put(self._inside(path, element), Mark.MEMBER, ())
        else:
            self._put(path, value, names)

    def _inside(self, path: Path, element: Value) -> Path:
        if len(path) >= PATH_LENGTH_MAX:
            raise InvalidInput(f"a set at a path of {len(path)} segments; a path has at most {PATH_LENGTH_MAX}")
        return (*path, element_segment(element))

    def _put(self, path: Path, content: Content, names: Sequence[Stamp]) -> None:
        self.ops[path] = Op(path, content, names)


def quick_set(root: Node, path: str, value: Value) -> Op:
    """Return the operation that writes a plain value at one key, as most changes do."""
    if len(path) > SEGMENT_SIZE_MAX >> 2:
        check_path((path,))
    node = root.children.get(path)
    if node is None:
        return Op((path,), value)
    if node.children:
        return Op((path,), value, names_at(root, (path,)))
    return Op((path,), value, sorted(stamp for stamp, _ in node.entries.values()))


def _need_set(node: Node, path: Path) -> None:
    content = shown(node)
    if content is not Mark.SET:
        raise InvalidInput(f"at {show_path(path)} is {_kind(content)}, and no set; delete it first")


def _kind(content: Content) -> str:
    if content is Mark.MAP:
        return "a map"
    if content is Mark.SET:
        return "a set"
    return "a counter" if type(content) is Counter else f"a value ({type(content).__name__})"


def _int64(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int):  # in Python a bool is an int
        raise InvalidInput(f"a counter counts in integers, and {number!r} is a {type(number).__name__}")
    if not _INT_MIN <= number <= _INT_MAX:
        raise InvalidInput(f"the integer {number} does not fit into 64 bits")
    return int(number)
