"""Reading an object: which of the concurrent values shows at a path, and what the others are.

At a path there may stand plain values and counters, each with its stamp, and a map and a set, whose stamp is the
greatest of their marks and of everything inside them. The greatest stamp shows; the others are conflicts. Counters at
one path are one counter, their sum. Of one message's entries a map shows before a set, and a set before a value.
"""

from __future__ import annotations

from typing import Any

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object.register import Content, Counter, Mark, Node, Path, element_value, is_container, show_path
from antiphon.model.value import Value

_RANK = {Mark.MAP: 2, Mark.SET: 1}


def shown(node: Node) -> Content:
    """What shows at a node that holds something: a value, `Counter`, or `Mark.MAP` or `SET` for what is below."""
    values = node.values
    if not node.children:
        winner = values[max(values) if len(values) > 1 else next(iter(values))]
        return _sum(values) if type(winner) is Counter else winner
    if not values or all(map(is_container, values.values())):
        kinds = set(values.values())
        if node.members < len(node.children):
            kinds.add(Mark.MAP)
        if node.members:
            kinds.add(Mark.SET)
        if len(kinds) == 1:
            return kinds.pop()
    return standing(node)[0][1]


def standing(node: Node) -> list[tuple[Stamp, Content]]:
    """All that stands at a node, what shows first."""
    found: list[tuple[Stamp, Content]] = []
    tops: dict[Mark, list[Stamp]] = {}
    counters = []
    for stamp, content in node.values.items():
        if is_container(content):
            tops.setdefault(content, []).append(stamp)
        elif type(content) is Counter:
            counters.append(stamp)
        else:
            found.append((stamp, content))
    if counters:
        found.append((max(counters), _sum(node.values)))
    for segment, child in node.children.items():
        tops.setdefault(Mark.SET if type(segment) is bytes else Mark.MAP, []).append(child.top())
    found.extend((max(stamps), mark) for mark, stamps in tops.items())
    found.sort(key=lambda row: (row[0], _RANK.get(row[1], 0) if type(row[1]) is Mark else 0), reverse=True)
    return found


def _sum(values: dict[Stamp, Content]) -> Counter:
    return Counter(sum(content.total for content in values.values() if type(content) is Counter))


def render(node: Node, content: Content) -> Value:
    """Plain values for what stands at a node."""
    kind = type(content)
    if kind is str or kind is int:  # as most are
        return content
    if content is Mark.MAP:
        return read_map(node)
    if content is Mark.SET:
        return [element_value(segment) for segment in node.segments() if isinstance(segment, bytes)]
    if content is Mark.MEMBER:
        return True
    if kind is Counter:
        return content.total
    return copied(content)


def read_map(node: Node) -> dict[str, Any]:
    children = node.children
    return {key: render(children[key], shown(children[key])) for key in node.segments() if isinstance(key, str)}


def copied(value: Value) -> Value:
    """A value that the reader may change without changing the state."""
    kind = type(value)
    if kind is list:
        return [copied(part) for part in value]
    if kind is dict:
        return {key: copied(part) for key, part in value.items()}
    return value


def seek(root: Node, path: Path) -> Node | None:
    """The node at a path if it shows: no value in its way has won over the maps that it is in."""
    node = root
    for segment in path:
        child = node.children.get(segment)
        if child is None:
            return None
        wanted = Mark.SET if type(segment) is bytes else Mark.MAP
        if node is not root and shown(node) is not wanted:
            return None
        node = child
    return node


def look(root: Node, path: Path) -> Node:
    """The node at a path that shows, or `InvalidInput`."""
    node = seek(root, path)
    if node is None:
        raise InvalidInput(f"the object has nothing at {show_path(path)}")
    return node


def dump(node: Node, path: Path) -> list[tuple[Path, Content]]:
    """What shows at a path and below it, as contents to write back."""
    content = shown(node)
    rows = [(path, content)]
    if is_container(content):
        for segment in node.segments():
            if (type(segment) is bytes) is (content is Mark.SET):
                rows += dump(node.children[segment], (*path, segment))
    return rows
