"""Fuzz targets: queries and their index, schemas, and keys and invitations as text."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf.message import DecodeError
from tools.example import Example
from tools.examples_queries import (
    LATE,
    SCHEMA,
    TASKS,
    document_bytes,
    query_text,
    read_document,
)
from tools.target import Target

from antiphon.api.backup.manifest import decode_manifest, encode_manifest
from antiphon.api.invitation import Invitation
from antiphon.api.key_text import from_text, to_text
from antiphon.api.locator import Locator
from antiphon.api.registry import LocalRegistry, RegistryEntry
from antiphon.core.codec import u32
from antiphon.core.errors import BadEncoding
from antiphon.core.home_version import decode_version, encode_version
from antiphon.core.v1 import query_pb2, value_pb2
from antiphon.mesh.transport.address import Address
from antiphon.model.value import read_value, to_proto
from antiphon.query.codec import protobuf
from antiphon.query.codec.facts import apart, decode_facts, encode_facts
from antiphon.query.codec.json_form import from_json
from antiphon.query.value_order import column, value_of
from antiphon.schema.canonical_json import digest_of
from antiphon.schema.definition import Schema


def text(data: bytes) -> str:
    """Text from any bytes, one to one, as it comes from a command line."""
    return data.decode("utf-8", "surrogateescape")


def parsed(data: bytes) -> Any:
    """JSON as a program reads it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadEncoding("no JSON") from None


def query_json(data: bytes) -> bytes:
    """A query in JSON as bytes, since Python's equality confuses 1 and True and NaN is not equal to itself."""
    return protobuf.encode(from_json(parsed(data)))


def facts(data: bytes) -> bytes:
    """Facts as bytes, for the same reason."""
    return encode_facts(decode_facts(data))


def summed(data: bytes) -> bytes:
    """Facts without claims, with the right checksum."""
    return u32(0) + u32(zlib.crc32(data)) + data


def index_column(data: bytes) -> bytes:
    """A blob column of the index, re-encoded from its value."""
    stored = column(value_of(data))
    if not isinstance(stored, bytes):
        raise BadEncoding("a value that needs no blob")
    return stored


def document(data: bytes) -> Schema[dict[str, Any]]:
    try:
        return read_document(data)
    except DecodeError:
        raise BadEncoding("no value") from None


def digested(data: bytes) -> bytes:
    """A schema's document with the digest of its text."""
    try:
        value = read_value(value_pb2.Value.FromString(data))
    except DecodeError:
        raise BadEncoding("no value") from None
    if isinstance(value, dict) and isinstance(value.get("schema"), str):
        value["digest"] = digest_of(value["schema"])
    return to_proto(value).SerializeToString(deterministic=True)


def registry(data: bytes) -> list[RegistryEntry]:
    """The file of a registry: after one of its names is registered again, the others are unchanged."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "names.json"
        path.write_bytes(data)
        names = LocalRegistry(path)
        records = names.records()
        for record in records[:1]:
            names.register(record)
            others = {one for one in records if (one.name, one.version) != (record.name, record.version)}
            assert set(names.records()) == {record} | others
        return records


def query_targets(made: dict[str, Example]) -> dict[str, Target]:
    wires = (made["query"].data, made["query-late"].data)
    columns = tuple(made[name].data for name in ("column-time", "column-reference", "column-list"))
    return {
        "query": Target(protobuf.decode, protobuf.encode, wires, message=query_pb2.Query),
        "query-json": Target(
            query_json,
            lambda data: query_text(protobuf.decode(data)),
            (query_text(LATE), query_text(TASKS)),
            canonical=False,
        ),
        "facts": Target(facts, same, (made["facts"].data,), canonical=False),
        "facts-summed": Target(
            lambda data: facts(summed(data)),
            lambda data: data[8:],
            (bytes(apart(made["facts"].data)[1][4:]),),
            canonical=False,
        ),
        "index-column": Target(index_column, same, columns, canonical=False),
    }


def same(data: bytes) -> bytes:
    return data


def schema_targets(made: dict[str, Example]) -> dict[str, Target]:
    documents = (made["schema-document"].data,)
    return {
        "schema-text": Target(
            lambda data: Schema("fuzzed", 1, text(data)), lambda schema: schema.text.encode(), (SCHEMA.text.encode(),)
        ),
        "schema-document": Target(document, document_bytes, documents, canonical=False, message=value_pb2.Value),
        "schema-document-digested": Target(
            lambda data: document(digested(data)), document_bytes, documents, canonical=False, message=value_pb2.Value
        ),
    }


def text_targets(made: dict[str, Example]) -> dict[str, Target]:
    """Check that upper case and surrounding spaces do not change the meaning."""
    key, locator, invitation, names = (made[name].data for name in ("key-text", "locator", "invitation", "registry"))
    address = made["address"].data
    return {
        "key-text-checked": Target(
            lambda data: from_text(text(data), "a key"), lambda found: to_text(found).encode(), (key,), canonical=False
        ),
        "locator": Target(
            lambda data: Locator.parse(text(data)), lambda found: str(found).encode(), (locator,), canonical=False
        ),
        "address": Target(
            lambda data: Address.parse(text(data)), lambda found: str(found).encode(), (address,), canonical=False
        ),
        "invitation": Target(
            lambda data: Invitation.parse(text(data)), lambda found: str(found).encode(), (invitation,), canonical=False
        ),
        "registry": Target(registry, None, (names,)),
        "home-version": Target(decode_version, encode_version, (made["home-version"].data,)),
        "home-version-summed": Target(
            lambda data: decode_version(b"%s %s" % (data, sha256(data).hexdigest()[:16].encode())),
            lambda version: encode_version(version).partition(b" ")[0],
            (b"antiphon.home.2",),
        ),
        "backup-manifest": Target(decode_manifest, encode_manifest, (made["backup-manifest"].data,)),
        "backup-manifest-summed": Target(
            lambda data: decode_manifest(with_checksum(data)),
            lambda manifest: without_checksum(encode_manifest(manifest)),
            (without_checksum(made["backup-manifest"].data),),
        ),
    }


def with_checksum(data: bytes) -> bytes:
    """Add the last field of a manifest, with the right checksum, to the text of the other fields."""
    return data.removesuffix(b"\n}") + b',\n "checksum": "%s"\n}' % sha256(data).hexdigest().encode()


def without_checksum(data: bytes) -> bytes:
    return data.partition(b',\n "checksum": ')[0] + b"\n}"


def other_targets(made: dict[str, Example]) -> dict[str, Target]:
    return {**query_targets(made), **schema_targets(made), **text_targets(made)}
