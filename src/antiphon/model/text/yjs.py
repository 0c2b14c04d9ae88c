"""Texts in the format of Yjs, for editors: export as an update, import as mutations that make a text equal.

It needs the extra `yjs` (pycrdt). It transfers the text with its formatting and its embedded items, not the history:
Yjs names elements by its own clients, and its bytes are not a format of Antiphon (rule 12).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput
from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.model.text.codec import Draft, mark_value
from antiphon.model.text.marks import TextState, anchor_after, anchor_before
from antiphon.model.text.model import TextModel, shown
from antiphon.model.text.orphans import visible
from antiphon.model.text.runs import EMBED
from antiphon.model.text.undo import delete_run
from antiphon.model.value import Reference, Value

DIFF_MAX = 2_000  # characters on each side that are compared; longer parts are replaced as a whole
CHUNK_MAX = 100_000  # characters in one mutation, so that it fits into a body
_TEXT = TextModel()

_Change = tuple[int, int, int, int]  # start, end in the old text; start, end in the new text


class _Char(NamedTuple):
    """A character or an embedded item, with its marks as encoded values."""

    text: str
    item: bytes
    marks: tuple[tuple[str, bytes], ...]

    @property
    def content(self) -> tuple[str, bytes]:
        """The character and the item, without marks."""
        return self.text, self.item


def export_update(state: TextState, *, name: str = "text") -> bytes:
    """Return a Yjs update (v1) of a document with one root text."""
    pycrdt = _pycrdt()
    doc = pycrdt.Doc()
    text = doc.get(name, type=pycrdt.Text)
    with doc.transaction():
        for part, marks in reversed(_TEXT.spans(state)):  # inserted at the front, where no formatting expands
            attributes = {key: _plain(value) for key, value in marks.items() if value is not None} or None
            if isinstance(part, Reference):
                text.insert_embed(0, {"item": part.item.hex()}, attributes)
            else:
                text.insert(0, part, attributes)
    return bytes(doc.get_update())


def import_update(state: TextState, update: bytes, *, feed: bytes = b"", name: str = "text") -> list[bytes]:
    """Return mutations that, applied in order, make the text equal to that of a Yjs document."""
    state = visible(state)
    old = list(_chars(_TEXT.spans(state)))
    new = list(_chars(_read(update, name)))
    names = {kept.mark.name for kept in state.marks} | {name for char in new for name, _ in char.marks}
    changes = _changes([char.content for char in old], [char.content for char in new])
    drafts = [Draft(feed)]
    _reformat(state, drafts[0], old, new, changes)  # first, because it may cover inserted text, whose own marks win
    for low, high, begin, end in changes:
        for run, first, last in shown(state, low, high):
            delete_run(drafts[-1], run, first, last)
        for chunk in range(begin, end, CHUNK_MAX):
            full = drafts[-1].is_full or drafts[-1].inserted + end - chunk > CHUNK_MAX
            if full and drafts[-1].inserted:
                drafts.append(Draft(feed))
            _insert(state, drafts[-1], low, new[chunk : min(end, chunk + CHUNK_MAX)], names)
    return [draft.bytes() for draft in drafts if draft.proto.ByteSize()]


def _pycrdt() -> Any:
    try:
        import pycrdt
    except ImportError:
        raise InvalidInput("the Yjs format needs pycrdt; install antiphon[yjs]") from None
    return pycrdt


def _plain(value: Value) -> Any:
    """Return a value in JSON's types."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Reference):
        return str(value)
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value


def _value(plain: Any) -> Value:
    """Return a value from JSON, with integral numbers as integers."""
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1 << 53:
        return int(plain)
    if isinstance(plain, list):
        return [_value(part) for part in plain]
    if isinstance(plain, dict):
        return {key: _value(part) for key, part in plain.items()}
    return plain


def _read(update: bytes, name: str) -> Iterator[tuple[str | Reference, dict[str, Value]]]:
    pycrdt = _pycrdt()
    doc = pycrdt.Doc()
    try:
        doc.apply_update(update)
        parts = doc.get(name, type=pycrdt.Text).diff()
    except Exception as error:  # pycrdt raises the errors of its Rust code
        raise InvalidInput(f"these bytes are no Yjs update with a text {name!r}: {error}") from None
    for part, attributes in parts:
        marks = {key: _value(value) for key, value in (attributes or {}).items() if value is not None}
        yield (part if isinstance(part, str) else _embedded(part)), marks


def _embedded(part: Any) -> Reference:
    try:
        return Reference(bytes.fromhex(part["item"]))
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(
            f"the Yjs text embeds something other than an item ({ITEM_ID_SIZE} bytes in hex under `item`)"
        ) from None


def _chars(spans: Any) -> Iterator[_Char]:
    for part, marks in spans:
        encoded = tuple((name, mark_value(value)) for name, value in sorted(marks.items()))
        if isinstance(part, Reference):
            yield _Char(EMBED, part.item, encoded)
        else:
            for char in part:
                yield _Char(char, b"", encoded)


def _changes(old: list[Any], new: list[Any]) -> list[_Change]:
    """Return the parts of the old text that change, each with the part of the new text that replaces it."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    tail = 0
    while tail < min(len(old), len(new)) - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    low, high = old[start : len(old) - tail], new[start : len(new) - tail]
    if not low and not high:
        return []
    if max(len(low), len(high)) > DIFF_MAX:
        return [(start, start + len(low), start, start + len(high))]
    matcher = SequenceMatcher(None, low, high, autojunk=False)
    return [
        (start + a, start + b, start + c, start + d) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"
    ]


def _insert(state: TextState, draft: Draft, index: int, chars: list[_Char], names: set[str]) -> None:
    """Insert characters into a gap. Chunks of one gap have the same parent, and the order of their messages."""
    run, left, at = state.gap(index)
    for nth, part in enumerate(_grouped(chars)):
        first, text, item = draft.inserted + 1, "".join(char.text for char in part), part[0].item
        if nth == 0:
            draft.insert(text, run.writer.feed, run.clock(at) if run.length else 0, left=left, item=item)
        else:
            draft.insert_next(text, item=item)
        marks = dict(part[0].marks)
        for name in sorted(names):  # including marks to unset, which the text would inherit from its place
            draft.mark(name, marks.get(name), first, draft.inserted)


def _grouped(chars: list[_Char]) -> Iterator[list[_Char]]:
    begin = 0
    for at in range(1, len(chars) + 1):
        last = chars[at - 1]
        if at == len(chars) or last.item or chars[at].item or chars[at].marks != last.marks:
            yield chars[begin:at]
            begin = at


def _reformat(state: TextState, draft: Draft, old: list[_Char], new: list[_Char], changes: list[_Change]) -> None:
    """Set and unset marks on the characters that remain."""
    edits: list[tuple[int, str, bytes | None]] = []
    before = after = 0
    for low, high, _, end in [*changes, (len(old), len(old), len(new), len(new))]:
        for at in range(low - before):
            had, wanted = dict(old[before + at].marks), dict(new[after + at].marks)
            edits += [
                (before + at, name, wanted.get(name))
                for name in sorted(had.keys() | wanted.keys())
                if had.get(name) != wanted.get(name)
            ]
        before, after = high, end
    edits.sort(key=lambda edit: (edit[1], edit[0]))
    begin = 0
    for nth in range(1, len(edits) + 1):
        index, name, value = edits[nth - 1]
        if nth < len(edits) and edits[nth] == (index + 1, name, value):
            continue
        draft.mark(name, value, anchor_before(state, edits[begin][0]), anchor_after(state, index + 1))
        begin = nth
