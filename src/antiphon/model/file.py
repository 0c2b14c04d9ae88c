"""`FileModel`: a large file, whose content is in blobs outside the state. The item holds the CID and the name.

>>> from antiphon.core.stamp import Stamp
>>> model, alice = FileModel(), b"a" * 32
>>> state = model.initial()
>>> mutation = model.set(state, Cid.of(b"hello"), 5, "text/plain", "hello.txt", feed=alice)
>>> model.apply(state, mutation, Stamp(1, alice, 0))
>>> model.apply(state, model.rename(state, "greeting.txt", feed=alice), Stamp(2, alice, 1))
>>> model.value(state)["name"], model.value(state)["size"], model.value(state)["content"] == Cid.of(b"hello")
('greeting.txt', 5, True)

A file is an object with two registers. One holds the content with its size and media type, which are always written
together. The other holds the name. Of concurrent writes the one with the greatest stamp shows. The others can be read
as conflicts until somebody writes again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.model import InvalidMutation, Model, need
from antiphon.model.object.edit import quick_set
from antiphon.model.object.mutation_codec import read_mutation, write_mutation
from antiphon.model.object.snapshot_codec import read_snapshot, write_snapshot
from antiphon.model.object.state import DELETE, ObjectState, Op
from antiphon.model.object.undo import Before, pack, remember, undo
from antiphon.model.object.view import standing
from antiphon.model.value import Value

__all__ = ["Content", "FileModel"]

SIZE_MAX = (1 << 63) - 1
NAME_SIZE_MAX = 1 << 10  # bytes of UTF-8
MEDIA_TYPE_SIZE_MAX = 255
UNKNOWN_TYPE = "application/octet-stream"
_CONTENT, _NAME = "content", "name"
_MEDIA_TYPE = re.compile(r"[!-.0-~]+/[ -~]*[!-~]", re.ASCII)
# A peer must not send a name that leads out of a folder, or that hides in a listing.
_NO_NAME = re.compile(r"[\x00-\x1f\x7f/\\]|\A\.{0,2}\Z")


class Content(NamedTuple):
    """The content of a file: the blob at its root, its size in bytes, and its media type."""

    cid: Cid
    size: int
    media_type: str


class FileModel(Model[ObjectState]):
    """A file. See docs/models/file.md."""

    name = "antiphon/file"
    commands = frozenset({"set", "rename"})

    # -- the model

    def initial(self) -> ObjectState:
        return ObjectState()

    def apply(self, state: ObjectState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        ops = _read(mutation, stamp)
        if not void:
            state.take(ops, stamp)
        state.hear(stamp)

    def snapshot(self, state: ObjectState) -> bytes:
        return write_snapshot(state)

    def restore(self, data: bytes) -> ObjectState:
        state = read_snapshot(data)
        try:
            for path, node in state.root.below():
                for _, written in node.entries.values():
                    _check(path, written)
        except InvalidMutation as error:
            raise BadEncoding(f"snapshot of a file: {error}") from None
        for effects in state.kept.feeds.values():
            if effects.increments or any(path not in ((_CONTENT,), (_NAME,)) for path in effects.bounds):
                raise BadEncoding("snapshot of a file: it waits for what no file has")
        return state

    def capture(self, state: ObjectState, mutation: bytes, stamp: Stamp) -> Before:
        return remember(state, _read(mutation, stamp))

    def revert(self, state: ObjectState, captured: Before, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        return pack(undo(state, captured, _read(mutation, stamp), stamp), feed)

    # -- reading

    def value(self, state: ObjectState) -> dict[str, Any]:
        """Return `content` (a `Cid`, None before the first `set`), `size`, `media_type`, and `name`, maybe empty."""
        content, name = self.content(state), _standing(state, _NAME)
        return {
            "content": content.cid if content else None,
            "media_type": content.media_type if content else "",
            "name": name[0][1] if name else "",
            "size": content.size if content else 0,
        }

    def document(self, state: ObjectState) -> dict[str, Value]:
        """Return `value` with the CID as text."""
        value = self.value(state)
        return {**value, "content": None if value["content"] is None else str(value["content"])}

    def content(self, state: ObjectState) -> Content | None:
        """Return the content that shows; None before the first `set`."""
        found = _standing(state, _CONTENT)
        return _content(found[0][1]) if found else None

    def conflicts(self, state: ObjectState) -> list[tuple[Stamp, Content]]:
        """Return all concurrent contents, the one that shows first; empty if there is only one."""
        found = _standing(state, _CONTENT)
        return [(stamp, _content(value)) for stamp, value in found] if len(found) > 1 else []

    def names(self, state: ObjectState) -> list[tuple[Stamp, str]]:
        """Return all concurrent names, the one that shows first; empty if there is only one."""
        found = _standing(state, _NAME)
        return found if len(found) > 1 else []

    def blobs(self, state: ObjectState) -> Sequence[Cid]:
        """Return the roots of all concurrent contents, ascending: conflicts stay readable, so all are kept."""
        return sorted({_content(value).cid for _, value in _standing(state, _CONTENT)})

    # -- commands

    def set(
        self,
        state: ObjectState,
        content: bytes,
        size: int,
        media_type: str = UNKNOWN_TYPE,
        name: str | None = None,
        *,
        feed: bytes = b"",
    ) -> bytes:
        """Replace the content, given by the CID of its root, and the name if one is given."""
        ops = [quick_set(state.root, _CONTENT, [bytes(content), size, media_type])]
        if name is not None:
            ops.append(quick_set(state.root, _NAME, name))
        return _write(ops, feed)

    def rename(self, state: ObjectState, name: str, *, feed: bytes = b"") -> bytes:
        """Replace the name."""
        return _write([quick_set(state.root, _NAME, name)], feed)

    # -- the test kit

    def rehearse(self, state: ObjectState, chance: random.Random, feed: bytes) -> bytes:
        if chance.random() < 0.3:
            return self.rename(state, f"name {chance.randrange(9)}", feed=feed)
        cid = Cid.of(chance.randbytes(2), chance.choice((RAW, DAG_CBOR)))
        name = chance.choice((None, f"name {chance.randrange(9)}"))
        return self.set(
            state, cid, chance.randrange(1 << 40), chance.choice((UNKNOWN_TYPE, "text/plain")), name, feed=feed
        )


def _read(mutation: bytes, stamp: Stamp) -> Sequence[Op]:
    """Read the operations of a received mutation, or raise `InvalidMutation` if they are not those of a file."""
    ops = read_mutation(mutation, stamp)
    for path, content, _ in ops:
        if content is DELETE:
            need(path in ((_CONTENT,), (_NAME,)), "a file has a content and a name, and nothing else")
        else:
            _check(path, content)
    return ops


def _write(ops: Sequence[Op], feed: bytes) -> bytes:
    try:
        for op in ops:
            _check(op.path, op.content)
    except InvalidMutation as error:
        raise InvalidInput(str(error)) from None
    return write_mutation(ops, feed)


def _check(path: Sequence[object], value: Any) -> None:
    """Raise `InvalidMutation` unless a path may hold this value."""
    if path == (_NAME,):
        need(
            type(value) is str and not _NO_NAME.search(value) and len(value.encode(errors="replace")) <= NAME_SIZE_MAX,
            f"a file's name has 1 to {NAME_SIZE_MAX} bytes, no slash or control character, and is not . or ..",
        )
        return
    need(path == (_CONTENT,), "a file has a content and a name, and nothing else")
    need(type(value) is list and len(value) == 3, "a file's content is a CID, a size and a media type")
    cid, size, media_type = value
    need(type(cid) is bytes and _is_cid(cid), "a file's content is named by a CID of 36 bytes")
    need(type(size) is int and 0 <= size <= SIZE_MAX, f"a file has 0 to {SIZE_MAX} bytes")
    need(
        type(media_type) is str and len(media_type) <= MEDIA_TYPE_SIZE_MAX and _MEDIA_TYPE.fullmatch(media_type),
        f"a media type is like text/plain, with at most {MEDIA_TYPE_SIZE_MAX} characters of ASCII",
    )


def _is_cid(raw: bytes) -> bool:
    try:
        return bool(Cid(raw))
    except BadEncoding:
        return False


def _standing(state: ObjectState, key: str) -> list[tuple[Stamp, Any]]:
    """Return all concurrent values at a key, the one that shows first."""
    node = state.root.children.get(key)
    return [] if node is None else standing(node)


def _content(value: list[Any]) -> Content:
    cid, size, media_type = value
    return Content(Cid(cid), size, media_type)
