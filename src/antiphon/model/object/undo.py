"""Undo of one message of an object, which leaves alone what others changed since; a redo is the undo of an undo.

`remember` keeps what showed at each path before the message. `undo` then writes that back, but only where what the
message wrote still shows, and what it deleted only where nothing stands now. What it wrote shows also if the same
writer has brought it back since, by undoing something later: so one can undo step by step. The operations name what
they undo alone, so that nothing of anybody else is replaced. What was added to a counter is taken off again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from antiphon.core.stamp import Stamp
from antiphon.feed.limits import BODY_SIZE_MAX
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.register import OPS_MAX, Content, Counter, Mark, Node, Path, grow, is_container
from antiphon.model.object.state import DELETE, Increment, ObjectState, Op
from antiphon.model.object.view import dump, seek, shown
from antiphon.model.value import value_bytes

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1

Before = dict[Path, list[tuple[Path, Content]]]


def remember(state: ObjectState, ops: Iterable[Op]) -> Before:
    """For the path of each operation, what shows at it and below it."""
    found: Before = {}
    for op in ops:
        node = seek(state.root, op.path)
        found[op.path] = dump(node, op.path) if node else []
    return found


def undo(state: ObjectState, before: Before, ops: Sequence[Op], stamp: Stamp) -> list[Op]:
    """The operations that undo the message `stamp`, which had these."""
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
    """The stamp with which stands, and shows, what a message wrote or added to: its own, or a later one of its feed."""
    node = seek(state.root, op.path)
    if op.content is DELETE or node is None or not node.values:
        return None
    top = max(node.values)
    ours = top.feed == stamp.feed and top > stamp
    content = node.values[top]
    if type(op.content) is Increment:
        base = op.names[0]
        return base if base in node.values else top if ours and type(content) is Counter else None
    if not is_container(content) and node.children and is_container(shown(node)):
        return None
    return top if top == stamp or (ours and _same(content, op.content)) else None


def _same(one: Content, other: Content) -> bool:
    if type(one) is not type(other) or type(one) is Counter:
        return type(one) is type(other)
    return one is other if type(one) is Mark else value_bytes(one) == value_bytes(other)


def _counted(state: ObjectState, op: Op, standing: dict[Path, Stamp]) -> bool:
    """Whether others have added to a counter that the message made."""
    return type(op.content) is Counter and grow(state.root, op.path).values[standing[op.path]] != op.content


def _undo_one(
    state: ObjectState,
    op: Op,
    rows: list[tuple[Path, Content]],
    standing: dict[Path, Stamp],
    alone: dict[Path, Stamp],
) -> Iterator[Op]:
    """`standing` is what is undone, by path, and `alone` the same without counters that others have added to."""
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
    """Whether anything is inside a map or set besides what is undone."""
    return any(other != alone.get(where) for where, below in node.below(path) for other in below.values)


def _free(state: ObjectState, path: Path, inside: int, standing: dict[Path, Stamp]) -> bool:
    """Whether nothing stands at a path, nor somebody else's value in its way below the first `inside` segments."""
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
    """Whether a path below `outer` belongs to another operation of the message, which has its own memory of it."""
    return any(path[:size] in paths for size in range(len(outer) + 1, len(path) + 1))


def _matters(op: Op, made: dict[Path, Op]) -> bool:
    """Not if it deletes what an operation above it replaces anyhow."""
    if op.content is not DELETE:
        return True
    above = (made.get(op.path[:size]) for size in range(1, len(op.path)))
    return not any(found and set(op.names) <= set(found.names) for found in above)


def _negative(by: int) -> int:
    return max(_INT_MIN, min(_INT_MAX, -by))  # the least integer has no opposite; one less is as near as can be


def pack(ops: list[Op], feed: bytes) -> list[bytes]:
    """Mutations that fit into blocks: what was deleted may have been written by many messages."""
    if not ops:
        return []
    if len(ops) <= OPS_MAX:
        data = write_mutation(ops, feed)
        if len(data) <= BODY_SIZE_MAX // 2 or len(ops) == 1:
            return [data]
    middle = len(ops) // 2
    return pack(ops[:middle], feed) + pack(ops[middle:], feed)
