"""`TextModel`: text that several people type in at once, with formatting, embedded items and cursors.

>>> text = TextModel()
>>> state, alice = text.initial(), b"a" * 32
>>> text.apply(state, text.insert(state, 0, "hello world", feed=alice), Stamp(1, alice, 0))
>>> text.apply(state, text.replace(state, 0, 1, "H", feed=alice), Stamp(2, alice, 1))
>>> text.value(state)
'Hello world'

Runs that two people type at the same place do not interleave, forwards or backwards. Positions are those of Python's
`str`: code points. Commands return mutations and do not change the state. They take the writer's own `feed`, so that a
mutation need not contain its key.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from google.protobuf.message import DecodeError

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import text_pb2
from antiphon.model.model import InvalidMutation, Model
from antiphon.model.text import snapshot_reader, snapshot_writer, undo as textundo
from antiphon.model.text.codec import (
    MARK_NAME_MAX,
    Anchor,
    Draft,
    Ops,
    at_offset,
    checked,
    decode,
    mark_value,
    quick,
    quick_bytes,
    read_mark_value,
)
from antiphon.model.text.marks import Places, TextState, anchor_after, anchor_before, segments
from antiphon.model.text.orphans import current_copy, place_orphans, visible
from antiphon.model.text.runs import HOLE, LAMPORT, OFFSET_BITS, OFFSET_MAX, Run, Unit
from antiphon.model.value import Reference, Value

QUICK_SIZE_MAX = 64  # a mutation of one typed character has about 9 bytes

Span = tuple[str | Reference, dict[str, Value]]


_INSERTING = frozenset({"insert", "replace", "embed"})


class TextModel(Model[TextState]):
    """Text with marks. See docs/models/text.md."""

    name = "antiphon/text"
    commands = frozenset({"insert", "delete", "replace", "embed", "mark", "unmark"})

    def initial(self) -> TextState:
        return TextState()

    def apply(self, state: TextState, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        self._apply(state, mutation, stamp, void=void)
        leaves = state.leaves
        leaves.messages += 1
        if len(leaves.open) > leaves.limit:
            leaves.tidy()
        if state.copy is not None and (copy := current_copy(state, stamp.feed)) is not None:
            self._apply(copy, mutation, stamp, void=void)
            place_orphans(state, copy)
            copy.leaves.tidy()

    def _apply(self, state: TextState, mutation: bytes, stamp: Stamp, *, void: bool) -> None:
        if len(mutation) <= QUICK_SIZE_MAX and not void and self._apply_quickly(state, mutation, stamp):
            return
        ops = decode(mutation, stamp)
        writer = state.writers.get(stamp.feed)
        if ops.inserts and writer is not None and ops.base < writer.floor:
            raise InvalidMutation("it inserts elements under ids that its feed has used, or gone past")
        writer = state.writer(stamp.feed)
        if not void:
            for feed, deletes in groupby(ops.deletes, key=lambda delete: delete.feed):
                state.delete_of(feed, [(first, last) for _, first, last in deletes], own=feed == stamp.feed)
        for insert in ops.inserts:
            unit = Unit(writer, insert.start, len(insert.text), None if void else insert.text, insert.item)
            unit.above = state.writer(insert.feed) if insert.feed else None
            unit.above_clock, unit.left = insert.parent, insert.left
            state.insert(unit)
            if insert.revived and not void:
                state.add_copies(insert, stamp.feed)
        writer.raise_floor(ops.end if ops.inserts else stamp.lamport * LAMPORT)
        if not void:
            for nth, mark in enumerate(ops.marks):
                state.add_mark(mark, stamp, nth)

    def _apply_quickly(self, state: TextState, mutation: bytes, stamp: Stamp) -> bool:
        """Apply a mutation of typing without the general decoder; False, without effect, if that is needed."""
        try:
            found = quick(mutation)
        except (IndexError, UnicodeDecodeError):
            return False
        writer = state.writers.get(stamp.feed)
        if found is None or writer is None:
            return False
        named, text = found
        lamport = stamp.lamport
        if named >= lamport:
            return False
        base = lamport << OFFSET_BITS
        clock = named << OFFSET_BITS
        if not text:
            if writer.units:
                return False
            state.delete_one(writer, clock)
            if base > writer.floor:
                writer.raise_floor(base)
            return True
        if base < writer.floor:
            return False
        if len(text) > 1 or not state.type_one(writer, base, clock, text):
            unit = Unit(writer, base, len(text), text, None)
            unit.above, unit.above_clock = writer, clock
            state.insert(unit)
            writer.raise_floor(base + len(text))
        return True

    def snapshot(self, state: TextState) -> bytes:
        return snapshot_writer.encode(state)

    def restore(self, data: bytes) -> TextState:
        return snapshot_reader.decode(data)

    # -- reading

    def value(self, state: TextState) -> str:
        return "".join([leaf.text for leaf in visible(state).each_leaf()])

    def length(self, state: TextState) -> int:
        """Return the number of characters."""
        return visible(state).length

    def read(self, state: TextState, start: int, stop: int) -> str:
        """Return the text from `start` to before `stop`."""
        state = visible(state)
        self._check_range(state, start, stop)
        return "".join(_text(run)[low:high] for run, low, high in shown(state, start, stop)).replace(HOLE, "")

    def embeds(self, state: TextState) -> list[tuple[int, ItemId]]:
        """Return embedded items with their positions, at which the text has U+FFFC."""
        found = []
        position = 0
        for leaf in visible(state).each_leaf():
            found += [(position + place, ItemId(item)) for place, item in leaf.items]
            position += leaf.shown
        return found

    def references(self, state: TextState) -> list[Reference]:
        """Return references to the embedded items."""
        return [Reference(bytes(item)) for _, item in self.embeds(state)]

    def spans(self, state: TextState) -> list[Span]:
        """Return the text in pieces of uniform formatting. An embedded item is a piece of its own."""
        text = self.value(state)
        items = dict(self.embeds(state))
        bounds = sorted({at for item in items for at in (item, item + 1)})
        found: list[Span] = []
        following = 0
        values: dict[bytes, Value] = {}
        for start, stop, winners in segments(visible(state)):
            marks = {
                name: _read_value(kept.mark.value, values)
                for name, kept in sorted(winners.items())
                if kept.mark.value is not None
            }
            while start < stop:
                while following < len(bounds) and bounds[following] <= start:
                    following += 1
                end = min(bounds[following] if following < len(bounds) else stop, stop)
                if start in items:
                    found.append((Reference(items[start]), marks))
                elif found and isinstance(found[-1][0], str) and found[-1][1] == marks:
                    found[-1] = (found[-1][0] + text[start:end], marks)
                else:
                    found.append((text[start:end], marks))
                start = end
        return found

    def next_offset(self, state: TextState, feed: bytes, lamport: int) -> int:
        """Return the offset of the feed's next insertion in a batch at `lamport`."""
        writer = state.writers.get(feed)
        return writer.floor & OFFSET_MAX if writer is not None and writer.floor >> OFFSET_BITS == lamport else 0

    def in_batch(self, state: TextState, mutation: bytes, feed: bytes, lamport: int) -> bytes:
        """Return a mutation of any command or undo in the form for a batch at `lamport`."""
        offset = self.next_offset(state, feed, lamport)
        return at_offset(mutation, offset) if offset else mutation

    # -- cursors

    def context(self, state: TextState, command: str, feed: bytes, lamport: int) -> dict[str, Any]:
        """Return the offset for insertions that share a lamport, as in a batch: they follow the previous one."""
        return {"offset": self.next_offset(state, feed, lamport)} if command in _INSERTING else {}

    def cursor(self, state: TextState, index: int, *, after: bool = False) -> bytes:
        """Return a place that survives edits: before the character at `index`, or after the one in front of it."""
        state = visible(state)
        self._check_range(state, index, state.length)
        anchor = anchor_after(state, index) if after else anchor_before(state, index)
        return text_pb2.TextCursor(
            feed=anchor.feed, lamport=anchor.clock >> OFFSET_BITS, offset=anchor.clock & OFFSET_MAX, after=anchor.after
        ).SerializeToString(deterministic=True)

    def index_of(self, state: TextState, cursor: bytes) -> int:
        """Return the index of a cursor. If its character was deleted, that is the place where it was."""
        try:
            proto = text_pb2.TextCursor.FromString(cursor)
        except (DecodeError, TypeError):
            raise BadEncoding("these bytes are no cursor of a text") from None
        if len(proto.feed) not in (0, 32) or proto.offset > OFFSET_MAX:
            raise BadEncoding("these bytes are no cursor of a text")
        anchor = Anchor(proto.feed, proto.lamport << OFFSET_BITS | proto.offset, proto.after)
        index = Places(visible(state)).of(anchor)
        if index is None:
            raise InvalidInput("the cursor names a character that is not here yet")
        return index

    # -- commands

    def insert(self, state: TextState, index: int, text: str, *, feed: bytes = b"", offset: int = 0) -> bytes:
        """Insert text in front of the character at `index`, or at the end."""
        return self.replace(state, index, 0, text, feed=feed, offset=offset)

    def delete(self, state: TextState, index: int, count: int = 1, *, feed: bytes = b"") -> bytes:
        """Delete `count` characters from `index` on."""
        return self.replace(state, index, count, "", feed=feed)

    def replace(
        self, state: TextState, index: int, count: int, text: str, *, feed: bytes = b"", offset: int = 0
    ) -> bytes:
        """Replace `count` characters from `index` on, in one mutation, so that nobody sees an intermediate state."""
        if type(index) is not int or type(count) is not int or type(offset) is not int:
            raise InvalidInput(f"positions, counts and offsets are integers, not {index!r}, {count!r}, {offset!r}")
        state = visible(state)
        self._check_range(state, index, index + count)
        checked(text)
        if not count and not text:
            raise InvalidInput("there is nothing to insert or to delete")
        if len(text) > OFFSET_MAX + 1 - offset:
            raise TooLarge(f"a message inserts at most {OFFSET_MAX + 1} characters, not {len(text)}")
        if offset == 0 and count + len(text) == 1 and (found := _typed(state, index, text, feed)) is not None:
            return found
        draft = Draft(feed, offset)
        textundo.delete_runs(draft, list(shown(state, index, index + count)))
        if text:
            _insert(state, draft, index, text, b"")
        return draft.bytes()

    def embed(self, state: TextState, index: int, item: bytes, *, feed: bytes = b"", offset: int = 0) -> bytes:
        """Embed an item in front of the character at `index`."""
        state = visible(state)
        self._check_range(state, index, state.length)
        draft = Draft(feed, offset)
        _insert(state, draft, index, "", ItemId(item))
        return draft.bytes()

    def mark(
        self,
        state: TextState,
        start: int,
        stop: int,
        name: str,
        value: Value = True,
        *,
        expand: bool = True,
        feed: bytes = b"",
    ) -> bytes:
        """Set a mark. With `expand`, text typed at its end has it too (bold); without, it has not (a link)."""
        return self._mark(state, start, stop, name, mark_value(value), expand, feed)

    def unmark(
        self, state: TextState, start: int, stop: int, name: str, *, expand: bool = True, feed: bytes = b""
    ) -> bytes:
        """Unset a mark."""
        return self._mark(state, start, stop, name, None, expand, feed)

    def _mark(
        self, state: TextState, start: int, stop: int, name: str, value: bytes | None, expand: bool, feed: bytes
    ) -> bytes:
        state = visible(state)
        self._check_range(state, start, stop)
        if start == stop:
            raise InvalidInput("a mark covers at least one character")
        if not 0 < len(checked(name)) <= MARK_NAME_MAX:
            raise InvalidInput(f"the name of a mark has 1 to {MARK_NAME_MAX} characters")
        draft = Draft(feed)
        end = anchor_before(state, stop) if expand else anchor_after(state, stop)
        draft.mark(name, value, anchor_before(state, start), end)
        return draft.bytes()

    def _check_range(self, state: TextState, start: int, stop: int) -> None:
        if type(start) is not int or type(stop) is not int:
            raise InvalidInput(f"positions are integers, not {start!r} and {stop!r}")
        if not 0 <= start <= stop <= state.length:
            raise InvalidInput(f"{start} to {stop} does not lie in a text of {state.length} characters")

    # -- undo

    def capture(self, state: TextState, mutation: bytes, stamp: Stamp) -> textundo.Captured:
        return textundo.capture(visible(state), self._ops(mutation, stamp))

    def revert(self, state: TextState, captured: Any, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        return textundo.revert(visible(state), captured, self._ops(mutation, stamp), stamp, feed)

    def _ops(self, mutation: bytes, stamp: Stamp) -> Ops:
        return decode(mutation, stamp)

    def rehearse(self, state: TextState, chance: random.Random, feed: bytes) -> bytes:
        length = visible(state).length
        start = chance.randint(0, length)
        stop = min(length, start + chance.randint(0, 5))
        act = chance.random()
        if act < 0.1 and start < stop:
            return self.mark(state, start, stop, chance.choice("bi"), chance.randint(0, 2), feed=feed)
        if act < 0.15 and start < stop:
            return self.unmark(state, start, stop, chance.choice("bi"), expand=False, feed=feed)
        if act < 0.2:
            return self.embed(state, start, bytes(5) + chance.randbytes(11), feed=feed)
        if act < 0.5 and start < stop:
            return self.delete(state, start, stop - start, feed=feed)
        typed = "".join(chance.choices("abcdefgh é😀", k=chance.randint(1, 6)))
        return self.replace(state, start, stop - start if act < 0.6 else 0, typed, feed=feed)


def _typed(state: TextState, index: int, text: str, feed: bytes) -> bytes | None:
    """Encode one keystroke (no text: a deletion), if it names an element of the same writer; else None."""
    left = False
    if text:
        run, left, at = state.gap(index)
    else:
        run, at = state.find(index)
    if left or run.writer.feed != feed or not feed:
        return None
    return quick_bytes(run.start + at * run.stride, text)


def _insert(state: TextState, draft: Draft, index: int, text: str, item: bytes) -> None:
    run, left, at = state.gap(index)
    draft.insert(text, run.writer.feed, run.clock(at) if run.length else 0, left=left, item=item)


def _read_value(encoded: bytes, known: dict[bytes, Value]) -> Value:
    """Decode the value of a mark. Immutable values are cached."""
    if encoded in known:
        return known[encoded]
    value = read_mark_value(encoded)
    if not isinstance(value, (list, dict)):
        known[encoded] = value
    return value


def _text(run: Run) -> str:
    assert run.text is not None
    return run.text


def shown(state: TextState, start: int, stop: int) -> Iterator[tuple[Run, int, int]]:
    """Yield the runs that hold a part of the text, each with its first element and the one after its last.

    Deleted elements at the ends of a run belong to the part if all between them do, so that it is the whole run.
    """
    if start >= stop:
        return
    run, low = state.find(start)
    if not run.shown_until(low):
        low = 0
    rest = stop - start
    leaf = run.leaf
    runs = leaf.runs
    at = runs.index(run)
    while True:
        if run.text is not None:
            before = run.shown_until(low)
            count = min(rest, run.shown - before)
            whole = count == run.shown - before
            yield run, low, run.length if whole else run.nth_shown(before + count - 1) + 1
            rest -= count
            if not rest:
                return
        low = 0
        at += 1
        if at == len(runs):
            assert leaf.after is not None
            leaf, at = leaf.after, 0
            runs = leaf.copies()
        run = runs[at]
