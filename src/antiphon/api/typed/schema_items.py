"""The items of a party that hold schemas, and the schema of each object.

Everybody who may write to the party may also write to these items. So an object names its schema twice: by the item,
and by a seal, a hash of the schema's name, version and text. If somebody rewrites the item, it no longer matches the
seals of its objects, and they ignore it. The next device that needs the original schema finds or creates another item
for it.

The schema of a peer is first compared as text. It is compiled only to check an object that has this schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from antiphon.api.items.object import Object
from antiphon.core.errors import InvalidInput
from antiphon.model.object.model import ObjectModel
from antiphon.model.value import Reference, Value
from antiphon.query.filters import Fact, prop
from antiphon.query.query import Query
from antiphon.schema.definition import Schema
from antiphon.schema.document import DOCUMENT_KEYS, Document, read_document, to_document

if TYPE_CHECKING:
    from antiphon.api.party import Party

SCHEMA_TYPE = "antiphon/schema"
ITEM, SEAL = "schema", "schema_seal"  # metadata keys of an object
_TAG = b"antiphon.schema.seal.v1"
_KNOWN_MAX = 1024


class _CachedSchema(NamedTuple):
    """The document of an item, and its compiled schema; None if it cannot be used."""

    document: Document
    schema: Schema[Any] | None


def seal_of(schema: Schema[Any] | Document) -> bytes:
    """Return the seal of a schema: SHA-256 of its name, version and text."""
    return sha256(_TAG + f"{schema.name}\0{schema.version}\0".encode() + schema.digest).digest()


class SchemaItems:
    """Finds, creates and reads the items that hold the schemas of a party."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._ids: dict[bytes, bytes] = {}  # by seal, the item where a schema was last found
        self._known: dict[bytes, _CachedSchema] = {}

    def register(self, schema: Schema[Any]) -> Object:
        """Return the item of a schema; create it if the party has none with the same schema."""
        item = self.find(schema)
        if item is None:
            item = self._party.object(to_document(schema), name=schema.name, type=SCHEMA_TYPE)
            self._remember(seal_of(schema), bytes(item.id))
        return item

    def find(self, schema: Schema[Any]) -> Object | None:
        """Return the item that now holds a schema, whatever it held before; None if there is none."""
        seal = seal_of(schema)
        known = self._ids.get(seal)
        if known is None or self._seal_at(known) != seal:  # rewritten, or its batch was rolled back
            where = Fact.TYPE.is_(SCHEMA_TYPE) & (prop("name") == schema.name) & (prop("version") == schema.version)
            ids = self._party.query(Query(where)).ids
            known = next((item for item in ids if self._seal_at(item) == seal), None)
        if known is None:
            return None
        self._remember(seal, known)
        found = self._party.item(known)
        return found if isinstance(found, Object) else None

    def all(self) -> list[Schema[Any]]:
        """Return the schemas that the party holds, by name and version."""
        found = [self._schema_at(item) for item in self._party.query(type=SCHEMA_TYPE).ids]
        return sorted((schema for schema in found if schema), key=lambda schema: (schema.name, schema.version))

    def assign(self, item: Object[Any], described: Object[Any], schema: Schema[Any]) -> None:
        """Assign a schema to an object. `described` is the item that holds the schema."""
        metadata: dict[str, Value] = {ITEM: Reference(bytes(described.id)), SEAL: seal_of(schema), "type": schema.name}
        item.item.set_all_metadata(metadata)

    def of(self, described: Mapping[str, Any]) -> Schema[Any] | None:
        """Return the schema of an object with this metadata; None if it has none, or the schema is not here."""
        reference, seal = described.get(ITEM), described.get(SEAL)
        if not isinstance(reference, Reference) or reference.party:
            return None
        known = self._ids.get(seal) if isinstance(seal, bytes) else None
        found = (self._schema_at(item, seal) for item in (reference.item, known) if item is not None)
        return next((schema for schema in found if schema is not None), None)

    def _remember(self, seal: bytes, item: bytes) -> None:
        if len(self._ids) >= _KNOWN_MAX:
            self._ids.clear()
        self._ids[seal] = item

    def _seal_at(self, item: bytes) -> bytes | None:
        document = self._document_at(item)
        return None if document is None else seal_of(document)

    def _document_at(self, item: bytes) -> Document | None:
        """Return the schema document of an item; None if the item is not here, or holds none."""
        with self._party.processor.locked() as engine:
            state = engine.find(item)
            if state is None or state.name != ObjectModel.name or not isinstance(state.model, ObjectModel):
                return None
            model, held = state.model, state.state
            value = {key: model.get(held, key) for key in DOCUMENT_KEYS if model.has(held, key)}
        try:
            return read_document(value)
        except InvalidInput:
            return None  # a peer wrote an invalid one; its objects are then read without a schema

    def _schema_at(self, item: bytes, seal: Value = None) -> Schema[Any] | None:
        """Return the schema that an item holds; None if there is none that can be used. With a seal, it must match.

        It is compiled without the lock of the party, unless the caller holds it: compiling the schema of a peer may
        take most of a second.
        """
        document = self._document_at(item)
        if document is None or (seal is not None and seal_of(document) != seal):
            return None
        known = self._known.get(item)
        if known is None or known.document != document:
            known = _CachedSchema(document, _compile(document))
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[item] = known
        return known.schema


def _compile(document: Document) -> Schema[Any] | None:
    try:
        return Schema(document.name, document.version, document.text)
    except InvalidInput:
        return None
