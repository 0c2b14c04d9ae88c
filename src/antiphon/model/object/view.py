"""Reading an object: the value that shows at a path, and the values in conflict with it.

A path may hold plain values and counters, each with its stamp, and a map and a set. The stamp of a map or set is the
greatest of its marks and of everything inside it. The content with the greatest stamp shows; the others are conflicts.
The counters at one path count as one, their sum. Of the entries of one message, a map shows before a set, and a set
before a value.
"""

from __future__ import annotations

from typing import Any

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.object.register import (
    Content,
    Counter,
    Entry,
    Mark,
    Node,
    Path,
    element_value,
    is_container,
    show_path,
)
from antiphon.model.value import Value

_RANK = {Mark.MAP: 2, Mark.SET: 1}


def shown(node: Node) -> Content:
    """Return the content that shows at a node: a value, `Counter`, or `Mark.MAP` or `SET` for the nodes below."""
    entries = node.entries
    if not node.children:
        _, winner = max(entries.values()) if len(entries) > 1 else next(iter(entries.values()))
        return _sum(node) if type(winner) is Counter else winner
    if all(is_container(content) for _, content in entries.values()):
        kinds = {content for _, content in entries.values()}
        if node.members < len(node.children):
            kinds.add(Mark.MAP)
        if node.members:
            kinds.add(Mark.SET)
        if len(kinds) == 1:
            return kinds.pop()
    return standing(node)[0][1]


def standing(node: Node) -> list[Entry]:
    """Return all concurrent contents of a node, the one that shows first."""
    found: list[Entry] = []
    tops: dict[Mark, list[Stamp]] = {}
    counters = []
    for stamp, content in node.entries.values():
        if is_container(content):
            tops.setdefault(content, []).append(stamp)
        elif type(content) is Counter:
            counters.append(stamp)
        else:
            found.append((stamp, content))
    if counters:
        found.append((max(counters), _sum(node)))
    for segment, child in node.children.items():
        tops.setdefault(Mark.SET if type(segment) is bytes else Mark.MAP, []).append(child.top())
    found.extend((max(stamps), mark) for mark, stamps in tops.items())
    found.sort(key=lambda row: (row[0], _RANK.get(row[1], 0) if type(row[1]) is Mark else 0), reverse=True)
    return found


def _sum(node: Node) -> Counter:
    return Counter(sum(content.total for _, content in node.entries.values() if type(content) is Counter))


def render(node: Node, content: Content) -> Value:
    """Return a content of a node as plain values."""
    kind = type(content)
    if kind is str or kind is int:  # the common case
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
    """Return the map below a node as a dict."""
    children = node.children
    return {key: render(children[key], shown(children[key])) for key in node.segments() if isinstance(key, str)}


def copied(value: Value) -> Value:
    """Return a copy of a value, which the caller may change without changing the state."""
    kind = type(value)
    if kind is list:
        return [copied(part) for part in value]
    if kind is dict:
        return {key: copied(part) for key, part in value.items()}
    return value


def seek(root: Node, path: Path) -> Node | None:
    """Return the node at a path if it shows, that is, if no value hides one of its ancestors; else None."""
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
    """Return the node at a path if it shows, or raise `InvalidInput`."""
    node = seek(root, path)
    if node is None:
        raise InvalidInput(f"the object has nothing at {show_path(path)}")
    return node


def dump(node: Node, path: Path) -> list[tuple[Path, Content]]:
    """Return the contents that show at a path and below it, for writing them back."""
    content = shown(node)
    rows = [(path, content)]
    if is_container(content):
        for segment in node.segments():
            if (type(segment) is bytes) is (content is Mark.SET):
                rows += dump(node.children[segment], (*path, segment))
    return rows
