"""Schemas as items: the document in the item of a schema, and the schema of a document from a peer.

>>> from antiphon.schema.definition import Schema
>>> task = Schema.of({"type": "object", "properties": {"title": {"type": "string"}}}, name="task")
>>> sorted(to_document(task))
['digest', 'name', 'schema', 'version']
>>> same(from_document(to_document(task)), task)
True
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.model.value import Value
from antiphon.schema.canonical_json import digest_of
from antiphon.schema.definition import Schema
from antiphon.schema.limits import SCHEMA_SIZE_MAX

DOCUMENT_KEYS = ("name", "version", "schema", "digest")


def to_document(schema: Schema[Any]) -> dict[str, Value]:
    """The stored document: plain values, with the JSON Schema as one text, since a partly merged schema is useless."""
    return {"name": schema.name, "version": schema.version, "schema": schema.text, "digest": schema.digest}


class Document(NamedTuple):
    """The document of a schema as stored; the text is not compiled, and may be anything."""

    name: str
    version: int
    text: str
    digest: bytes


def read_document(value: Value) -> Document:
    """Read a document, or raise `InvalidInput`. Unknown fields, of a newer version, are ignored.

    The cost is small for any input: the text is compared with its digest, and not compiled.
    """
    if not isinstance(value, dict):
        raise BadEncoding(f"the document of a schema is a map, and no {type(value).__name__}")
    name, version, text = value.get("name"), value.get("version"), value.get("schema")
    if not isinstance(name, str) or type(version) is not int or not isinstance(text, str):
        raise BadEncoding("the document of a schema has a name, a version and the schema as text")
    if len(text) > SCHEMA_SIZE_MAX:
        raise TooLarge(f"the schema {name[:100]!r} in an item has {len(text)} characters; at most {SCHEMA_SIZE_MAX} go")
    try:
        digest = digest_of(text)
    except ValueError:
        raise BadEncoding(f"the schema {name[:100]!r} in an item: its text is not valid Unicode") from None
    if value.get("digest") != digest:  # two peers wrote concurrently: the text of one is beside the digest of the other
        raise BadEncoding(
            f"the schema {name[:100]!r} {version} in an item does not have the digest that stands beside it"
        )
    return Document(name, version, text, digest)


def from_document(value: Value) -> Schema[dict[str, Any]]:
    """Return the schema of a document, or raise `InvalidInput`."""
    said = read_document(value)
    try:
        return Schema(said.name, said.version, said.text)
    except InvalidInput as error:
        raise type(error)(f"the schema {said.name[:100]!r} in an item: {error}") from None


def same(one: Schema[Any], other: Schema[Any]) -> bool:
    """True if two schemas are the same, regardless of their Python classes."""
    return (one.name, one.version, one.digest) == (other.name, other.version, other.digest)
