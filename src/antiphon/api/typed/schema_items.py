"""The items of a party that hold schemas, and which of them holds for an object.

Everybody who may write to the party may write to these items too. So an object names its schema twice: by the item, and
by a seal over the schema's name, version and text. An item that somebody has rewritten does not fit the seals any more:
it is then no schema to those objects, and whoever next needs the right one finds or makes another item for it.

What peers wrote is compared as text first. It is compiled only to check an object that it is the schema of.
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
ITEM, SEAL = "schema", "schema_seal"  # metadata of an object
_TAG = b"antiphon.schema.seal.v1"
_KNOWN_MAX = 1024


class _CachedSchema(NamedTuple):
    """What an item says, and the schema that it gives; None where it is none that may be used."""

    document: Document
    schema: Schema[Any] | None


def seal_of(schema: Schema[Any] | Document) -> bytes:
    """What names a schema for good: SHA-256 over its name, version and text."""
    return sha256(_TAG + f"{schema.name}\0{schema.version}\0".encode() + schema.digest).digest()


class SchemaItems:
    """Finds, makes and reads the items that hold a party's schemas."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._ids: dict[bytes, bytes] = {}  # by seal, the item where a schema was last found
        self._known: dict[bytes, _CachedSchema] = {}

    def register(self, schema: Schema[Any]) -> Object:
        """The item of a schema; made, if the party has none that holds the same."""
        item = self.find(schema)
        if item is None:
            item = self._party.object(to_document(schema), name=schema.name, type=SCHEMA_TYPE)
            self._remember(seal_of(schema), bytes(item.id))
        return item

    def find(self, schema: Schema[Any]) -> Object | None:
        """The item that holds a schema now, whatever it once held."""
        seal = seal_of(schema)
        known = self._ids.get(seal)
        if known is None or self._seal_at(known) != seal:  # rewritten, or its batch was taken back
            where = Fact.TYPE.is_(SCHEMA_TYPE) & (prop("name") == schema.name) & (prop("version") == schema.version)
            ids = self._party.query(Query(where)).ids
            known = next((item for item in ids if self._seal_at(item) == seal), None)
        if known is None:
            return None
        self._remember(seal, known)
        found = self._party.item(known)
        return found if isinstance(found, Object) else None

    def all(self) -> list[Schema[Any]]:
        """The schemas that the party holds, by name and version."""
        found = [self._schema_at(item) for item in self._party.query(type=SCHEMA_TYPE).ids]
        return sorted((schema for schema in found if schema), key=lambda schema: (schema.name, schema.version))

    def assign(self, item: Object[Any], described: Object[Any], schema: Schema[Any]) -> None:
        """Let an object have a schema, which the item that is passed holds."""
        metadata: dict[str, Value] = {ITEM: Reference(bytes(described.id)), SEAL: seal_of(schema), "type": schema.name}
        item.item.set_all_metadata(metadata)

    def of(self, described: Mapping[str, Any]) -> Schema[Any] | None:
        """The schema of an object with this metadata, if it has one and it is here."""
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
        """What an item says; None if it is not here, or says nothing of a schema."""
        with self._party.processor.locked() as engine:
            state = engine.find(item)
            if state is None or state.name != ObjectModel.name or not isinstance(state.model, ObjectModel):
                return None
            model, held = state.model, state.state
            value = {key: model.get(held, key) for key in DOCUMENT_KEYS if model.has(held, key)}
        try:
            return read_document(value)
        except InvalidInput:
            return None  # somebody broke it; its objects are then read as they are

    def _schema_at(self, item: bytes, seal: Value = None) -> Schema[Any] | None:
        """The schema that an item holds, with a seal the one that it names; None if there is none that may be used.

        Compiled without the party's lock, unless the caller has it: a peer's may take most of a second.
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
