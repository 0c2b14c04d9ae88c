"""Schemas as items: a document and back, through the object model, and the digest that tells them apart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest

from antiphon.core.stamp import Stamp
from antiphon.model.object.model import ObjectModel
from antiphon.schema import Schema, SchemaViolation, from_document, same, to_document, typed


@typed("task", version=3)
@dataclass
class Task:
    title: str
    raw: bytes = b""


TASK = Schema.of(Task)


def test_a_schema_survives_its_item() -> None:
    model, feed = ObjectModel(), b"f" * 32
    state = model.initial()
    model.apply(state, model.set(state, "it", to_document(TASK)), Stamp(1, feed, 0))

    found = from_document(model.get(state, "it"))

    assert same(found, TASK)
    assert found.python is None
    assert found.json_schema == TASK.json_schema
    found.check({"title": "Plan", "raw": b"x"})
    with pytest.raises(SchemaViolation, match="task 3: at raw: expected bytes"):
        found.check({"title": "Plan", "raw": "x"})


def test_the_digest_is_over_the_canonical_text() -> None:
    one = Schema.of({"type": "object", "required": ["a"]}, "one")
    other = Schema.of({"required": ["a"], "type": "object"}, "one")

    assert one.text == '{"required":["a"],"type":"object"}'
    assert one.digest == hashlib.sha256(one.text.encode()).digest()
    assert same(one, other)


def test_schemas_differ_by_name_version_and_text() -> None:
    text = {"type": "object"}
    one = Schema.of(text, "one")

    assert not same(one, Schema.of(text, "two"))
    assert not same(one, Schema.of(text, "one", 2))
    assert not same(one, Schema.of({"type": "string"}, "one"))


def test_the_schema_of_a_class_does_not_depend_on_what_else_is_defined() -> None:
    assert Schema.of(Task).text == Schema.of(Task).text == TASK.text
    assert TASK.digest.hex()[:16] == "bfa35591f9e833d3"
