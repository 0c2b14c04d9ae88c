"""Tags of protobuf fields that the code writes and reads by hand, against the schemas and the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antiphon.core.v1 import item_pb2, object_pb2, value_pb2
from antiphon.model.wire import tag_numbers, tags


def test_a_tag_is_what_the_library_writes() -> None:
    item, name, value = tags("ItemSnapshot", "Name", "Value")
    assert item_pb2.ItemSnapshot(state=b"a").SerializeToString() == item.state + b"\x01a"
    assert item_pb2.ItemSnapshot(model="a").SerializeToString() == item.model + b"\x01a"
    assert item_pb2.ItemSnapshot(codec=1).SerializeToString() == item.codec + b"\x01"
    assert item_pb2.ItemSnapshot(creator={}).SerializeToString() == item.creator + b"\x00"
    assert value_pb2.Name(seq=1).SerializeToString() == name.seq + b"\x01"
    assert value_pb2.Value(null=True).SerializeToString() == value.null + b"\x01"
    assert object_pb2.ObjectSnapshot(feeds=[b"a"]).SerializeToString() == tags("ObjectSnapshot")[0].feeds + b"\x01a"


def test_a_number_has_the_bytes_of_its_tag() -> None:
    for encoded, number in zip(tags("ItemSnapshot"), tag_numbers("ItemSnapshot"), strict=True):
        for field, tag in vars(encoded).items():
            assert vars(number)[field].to_bytes(len(tag), "little") == tag


def test_a_field_or_type_that_no_schema_has_is_refused() -> None:
    with pytest.raises(KeyError):
        tags("Unheard")
    with pytest.raises(AttributeError):
        tags("Name")[0].unheard  # noqa: B018


@pytest.mark.parametrize(
    ("one", "other", "fields"),
    [
        ("Name", "ObjectEntry", "feed lamport seq"),
        ("ObjectRegister", "ObjectKept", "path element"),
        ("ArrayState", "MessengerState", "feeds heard"),
        ("TextInsert", "TextDelete", "lamport"),
    ],
)
def test_message_types_that_share_code_share_tags(one: str, other: str, fields: str) -> None:
    first, second = tags(one, other)
    assert [vars(first)[name] for name in fields.split()] == [vars(second)[name] for name in fields.split()]


def test_no_tag_is_written_as_a_number(root: Path) -> None:
    """Every module that uses `wire`, and compares or joins bytes, takes its tags from the schemas."""
    source = root / "src" / "antiphon"
    users = [path for path in source.rglob("*.py") if "model.wire import" in path.read_text()]
    users.remove(source / "generate" / "faults.py")  # writes bytes that are no message
    assert len(users) >= 15
    literal = re.compile(r'b"[^"]*\\x(?!01|20)[0-9a-f]{2}[^"]*"|[!=]= 0x[0-9A-F]{2}\b')
    assert [(path.name, found) for path in users for found in literal.findall(path.read_text())] == []
