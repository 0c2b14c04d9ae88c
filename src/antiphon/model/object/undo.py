"""Undo of one message of an object. It keeps what others changed since. A redo is the undo of an undo.

`remember` stores the values that showed at each path before the message. `undo` writes them back where the value of the
message still shows, and restores deleted values where the path is empty now. The value of a message also counts as
showing if its writer has restored it since by undoing a later message, so that undo works step by step. The operations
name only entries of the same writer, so that no entry of another is replaced. Increments are subtracted again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from antiphon.core.stamp import Stamp
from antiphon.feed.limits import BODY_SIZE_MAX
from antiphon.model.bounds import covers
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.register import OPS_MAX, Content, Counter, Mark, Node, Path, grow, is_container
from antiphon.model.object.state import DELETE, Increment, ObjectState, Op
from antiphon.model.object.view import dump, seek, shown
from antiphon.model.value import value_bytes

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1

Before = dict[Path, list[tuple[Path, Content]]]


def remember(state: ObjectState, ops: Iterable[Op]) -> Before:
    """Return, for the path of each operation, the values that show at it and below it."""
    found: Before = {}
    for op in ops:
        node = seek(state.root, op.path)
        found[op.path] = dump(node, op.path) if node else []
    return found


def undo(state: ObjectState, before: Before, ops: Sequence[Op], stamp: Stamp) -> list[Op]:
    """Return the operations that undo the message at `stamp`, which consisted of `ops`."""
    paths = {op.path for op in ops}
    standing = {op.path: found for op in ops if (found := _standing(state, op, stamp))}
    alone = {op.path: standing[op.path] for op in ops if op.path in standing and not _counted(state, op, standing)}
    made: dict[Path, Op] = {}
    for op in ops:
        rows = before.get(op.path, [])
        for undoing in _undo_one(state, op, rows, standing, alone):
            if undoing.path == op.path or not _within(undoing.path, op.path, paths):
                made.setdefault(undoing.path, undoing)
    return [op for op in made.values() if _matters(op, made)]


def _standing(state: ObjectState, op: Op, stamp: Stamp) -> Stamp | None:
    """Return the stamp of the entry that a message wrote or added to, if it shows: its own, or a later of its feed."""
    node = seek(state.root, op.path)
    if op.content is DELETE or node is None or not node.entries:
        return None
    top, content = max(node.entries.values())
    ours = top.feed == stamp.feed and top > stamp
    if type(op.content) is Increment:
        base = op.names[0]
        return base if _entry(node, base) is not None else top if ours and type(content) is Counter else None
    if not is_container(content) and node.children and is_container(shown(node)):
        return None
    return top if top == stamp or (ours and _same(content, op.content)) else None


def _same(one: Content, other: Content) -> bool:
    if type(one) is not type(other) or type(one) is Counter:
        return type(one) is type(other)
    return one is other if type(one) is Mark else value_bytes(one) == value_bytes(other)


def _counted(state: ObjectState, op: Op, standing: dict[Path, Stamp]) -> bool:
    """True if others have added to a counter that the message created."""
    return type(op.content) is Counter and _entry(grow(state.root, op.path), standing[op.path]) != op.content


def _entry(node: Node, stamp: Stamp) -> Content | None:
    """Return the content that the message at a stamp wrote, if it remains; None for the value None too."""
    found, content = node.entries.get(stamp.feed, (None, None))
    return content if found == stamp else None


def _undo_one(
    state: ObjectState, op: Op, rows: list[tuple[Path, Content]], standing: dict[Path, Stamp], alone: dict[Path, Stamp]
) -> Iterator[Op]:
    """Yield the operations that undo one operation.

    `standing` has the entries to undo, by path; `alone` the same without counters that others have added to.
    """
    path, content, _ = op
    old = rows[0][1] if rows else DELETE
    now = standing.get(path)
    if content is DELETE:
        if old is DELETE or not _free(state, path, 0, standing):
            return
        yield Op(path, old)
    elif now is None:
        return
    elif type(content) is Increment:
        yield Op(path, Increment(_negative(content.by)), (now,))
        return
    elif content is not old or not isinstance(content, Mark):
        if path not in alone:
            yield Op(path, Increment(_negative(content.total)), (now,))
            return
        if is_container(content) and _others(grow(state.root, path), path, alone):
            return
        yield Op(path, old, (now,))
    for inside, part in rows[1:]:
        if _free(state, inside, len(path), standing):
            yield Op(inside, part)


def _others(node: Node, path: Path, alone: dict[Path, Stamp]) -> bool:
    """True if a map or set holds entries besides those to undo."""
    return any(other != alone.get(where) for where, below in node.below(path) for other, _ in below.entries.values())


def _free(state: ObjectState, path: Path, inside: int, standing: dict[Path, Stamp]) -> bool:
    """True if a path is empty, and no value of another writer hides it below the first `inside` segments."""
    node: Node | None = state.root
    for depth, segment in enumerate(path):
        node = node.children.get(segment) if node else None
        if node is None:
            return True
        if inside <= depth < len(path) - 1:
            wanted = Mark.SET if type(path[depth + 1]) is bytes else Mark.MAP
            if shown(node) is not wanted and path[: depth + 1] not in standing:
                return False
    return False


def _within(path: Path, outer: Path, paths: set[Path]) -> bool:
    """True if a path below `outer` belongs to another operation of the message, which undoes it itself."""
    return any(path[:size] in paths for size in range(len(outer) + 1, len(path) + 1))


def _matters(op: Op, made: dict[Path, Op]) -> bool:
    """False for a deletion of entries that an operation above it replaces anyway."""
    if op.content is not DELETE:
        return True
    above = (made.get(op.path[:size]) for size in range(1, len(op.path)))
    return not any(
        found and all(any(_covers(name, one) for name in found.names) for one in op.names) for found in above
    )


def _covers(name: Stamp, stamp: Stamp) -> bool:
    return name.feed == stamp.feed and covers(name, stamp)


def _negative(by: int) -> int:
    return max(_INT_MIN, min(_INT_MAX, -by))  # the least integer has no negative; the greatest comes closest


def pack(ops: list[Op], feed: bytes) -> list[bytes]:
    """Encode operations as mutations that fit into blocks: a deletion may have removed entries of many messages."""
    if not ops:
        return []
    if len(ops) <= OPS_MAX:
        data = write_mutation(ops, feed)
        if len(data) <= BODY_SIZE_MAX // 2 or len(ops) == 1:
            return [data]
    middle = len(ops) // 2
    return pack(ops[:middle], feed) + pack(ops[middle:], feed)
