"""Texts go out as Yjs updates and come back as mutations."""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.model.text import yjs
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel
from antiphon.model.text.yjs import export_update, import_update
from antiphon.model.value import Reference

pycrdt = pytest.importorskip("pycrdt")
TEXT = TextModel()
ALICE, BOB = b"a" * 32, b"b" * 32


def rehearsed(seed: int, steps: int) -> TextState:
    chance, state = random.Random(seed), TEXT.initial()
    for lamport in range(1, steps + 1):
        feed = chance.choice([ALICE, BOB])
        TEXT.apply(state, TEXT.rehearse(state, chance, feed), Stamp(lamport, feed, lamport))
    return state


def take(state: TextState, mutations: list[bytes], lamport: int) -> None:
    for nth, mutation in enumerate(mutations):
        TEXT.apply(state, mutation, Stamp(lamport + nth, ALICE, lamport + nth))


@given(st.integers(0, 1 << 32), st.integers(0, 1 << 32), st.integers(0, 40))
@settings(max_examples=60)
def test_any_text_becomes_equal_to_what_another_one_exported(one: int, other: int, steps: int) -> None:
    source, target = rehearsed(one, steps), rehearsed(other, steps)

    take(target, import_update(target, export_update(source), feed=ALICE), 100)

    assert TEXT.value(target) == TEXT.value(source)
    assert TEXT.spans(target) == TEXT.spans(source)
    assert import_update(target, export_update(source), feed=ALICE) == []


def test_yjs_reads_text_marks_and_embedded_items() -> None:
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "héllo 😀 world", feed=ALICE), Stamp(1, ALICE, 0))
    TEXT.apply(state, TEXT.mark(state, 6, 7, "bold", feed=ALICE), Stamp(2, ALICE, 1))
    TEXT.apply(state, TEXT.embed(state, 0, bytes(5) + b"i" * 11, feed=ALICE), Stamp(3, ALICE, 2))
    when = datetime(2026, 1, 2, tzinfo=UTC)
    about = {"at": when, "see": [Reference(b"j" * 16)]}
    TEXT.apply(state, TEXT.mark(state, 1, 3, "about", about, feed=ALICE), Stamp(4, ALICE, 3))

    doc = pycrdt.Doc()
    doc.apply_update(export_update(state, name="page"))

    assert doc.get("page", type=pycrdt.Text).diff() == [
        ({"item": (bytes(5) + b"i" * 11).hex()}, None),
        ("hé", {"about": {"at": when.isoformat(), "see": [(b"j" * 16).hex()]}}),
        ("llo ", None),
        ("😀", {"bold": True}),
        (" world", None),
    ]


def test_a_document_that_yjs_wrote_comes_in_and_keeps_what_did_not_change() -> None:
    doc = pycrdt.Doc()
    text = doc.get("text", type=pycrdt.Text)
    text += "The brown fox"
    state = TEXT.initial()
    take(state, import_update(state, doc.get_update(), feed=ALICE), 1)
    cursor = TEXT.cursor(state, 4)
    text.insert(4, "quick ")
    text.format(0, 3, {"size": 12})

    take(state, import_update(state, doc.get_update(), feed=ALICE), 10)

    assert TEXT.spans(state) == [("The", {"size": 12}), (" quick brown fox", {})]
    assert TEXT.index_of(state, cursor) == 10, "the letter b is the same one"


def test_a_long_text_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yjs, "CHUNK_MAX", 10)
    monkeypatch.setattr(yjs, "DIFF_MAX", 5)
    doc = pycrdt.Doc()
    text = doc.get("text", type=pycrdt.Text)
    text += "<" + "0123456789abcdefghijklmnopqrstuvwxyz" + ">"
    state = TEXT.initial()
    TEXT.apply(state, TEXT.insert(state, 0, "<->", feed=ALICE), Stamp(1, ALICE, 0))

    mutations = import_update(state, doc.get_update(), feed=ALICE)
    take(state, mutations, 2)

    assert len(mutations) == 4
    assert TEXT.value(state) == str(text)


def test_what_is_no_update_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no Yjs update"):
        import_update(TEXT.initial(), b"\xff\xff\xff", feed=ALICE)
    doc = pycrdt.Doc()
    doc.get("text", type=pycrdt.Text).insert_embed(0, {"image": "x.png"})
    with pytest.raises(InvalidInput, match="embeds something other"):
        import_update(TEXT.initial(), doc.get_update(), feed=ALICE)


def test_without_pycrdt_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycrdt", None)
    with pytest.raises(InvalidInput, match=r"install antiphon\[yjs\]"):
        export_update(TEXT.initial())
