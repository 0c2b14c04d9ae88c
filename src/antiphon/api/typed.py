"""Typed items of one party: schemas that are items themselves, and objects that are checked against them when written.

>>> import antiphon
>>> from dataclasses import dataclass
>>> @antiphon.typed("task")
... @dataclass
... class Task:
...     title: str
...     done: bool = False
>>> with antiphon.open("laptop") as store:
...     party = store.create_party()
...     task = party.object(Task("Plan"))
...     task["done"] = "soon"
Traceback (most recent call last):
...
antiphon.schema.errors.SchemaViolation: does not fit the schema task 1: at done: expected a bool, found text 'soon'

Whoever holds the schema's item checks with it, with or without the class. What peers wrote is never refused for it:
reading is tolerant, and only what a batch touches is checked.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.api.handle import Handle, plain
from antiphon.api.objects import Object
from antiphon.core.errors import InvalidInput, UnknownItem
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.envelope import content
from antiphon.model.itemstate import ItemState
from antiphon.model.object import ObjectModel
from antiphon.model.objectcodec import read_mutation
from antiphon.model.value import Reference, Value
from antiphon.party.batch import Batch
from antiphon.query.filters import Fact, prop
from antiphon.query.query import Query
from antiphon.schema.definition import Schema
from antiphon.schema.definition import schema as typed
from antiphon.schema.document import from_document, same, to_document
from antiphon.schema.errors import Problem, SchemaViolation
from antiphon.schema.migrations import Migrations
from antiphon.schema.reader import Read

if TYPE_CHECKING:
    from antiphon.api.party import Party

__all__ = ["SCHEMA_TYPE", "Schemas", "typed"]

SCHEMA_TYPE = "antiphon/schema"
T = TypeVar("T")
_KNOWN_MAX = 1024
_FAILED_TOLD = 3


class Schemas:
    """The schemas of a party, and the objects that have one."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._ids: dict[tuple[str, int, bytes], bytes] = {}  # the item of each schema that was looked for
        self._known: dict[bytes, tuple[dict[bytes, Stamp], Schema[Any] | None]] = {}  # by item, as of its last message
        self._migrations: dict[str, Migrations] = {}
        self._read: dict[int, tuple[bytes, dict[str, Value]]] = {}  # by `id`: of which item, and what was there
        party.processor.checks.append(self._check)

    # -- schemas are items

    def register(self, source: Any, migrations: Migrations | None = None) -> Object:
        """The item of a schema, a class or a JSON Schema; made, if the party has none that is the same."""
        schema = source if isinstance(source, Schema) else Schema.of(source)
        if migrations is not None:
            if not same(migrations.schema, schema):
                raise InvalidInput(f"{schema}: these migrations lead to {migrations.schema}")
            self._migrations[schema.name] = migrations
        item = self._find(schema)
        if item is not None:
            return item
        made = self._party.object(to_document(schema), name=schema.name, type=SCHEMA_TYPE)
        self._ids[schema.name, schema.version, schema.digest] = bytes(made.id)
        return made

    def _find(self, schema: Schema[Any]) -> Object | None:
        key = (schema.name, schema.version, schema.digest)
        known = self._ids.get(key)
        if known is None or not self._party.has(known):  # the batch that made it was perhaps taken back
            known = None
            where = Fact.TYPE.is_(SCHEMA_TYPE) & (prop("name") == schema.name) & (prop("version") == schema.version)
            for item in self._party.query(Query(where)):
                found = self._of(bytes(item.id))
                if found is not None and same(found, schema):
                    known = self._ids[key] = bytes(item.id)
                    break
        if known is None:
            return None
        found_item = self._party.item(known)
        return found_item if isinstance(found_item, Object) else None

    def all(self) -> list[Schema[Any]]:
        """The schemas that the party holds, by name and version."""
        found = [self._of(bytes(item.id)) for item in self._party.query(type=SCHEMA_TYPE)]
        return sorted((schema for schema in found if schema is not None), key=lambda known: (known.name, known.version))

    def of(self, item: Object) -> Schema[Any] | None:
        """The schema of an object, if it has one and it is here."""
        reference = item.metadata.get("schema")
        return self._of(reference.item) if isinstance(reference, Reference) and not reference.party else None

    def _of(self, item: bytes) -> Schema[Any] | None:
        """The schema that an item holds; None if it is not here, or is none."""
        with self._party.processor.locked() as engine:
            try:
                state = engine.entry(item).item
            except UnknownItem:
                return None
            if state is None or state.name != ObjectModel.name:
                return None
            known = self._known.get(item)
            if known is not None and known[0] == state.frame:
                return known[1]
            try:
                schema: Schema[Any] | None = from_document(state.value)
            except InvalidInput:
                schema = None  # somebody broke it; its objects are then read as they are
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[item] = (dict(state.frame), schema)
            return schema

    # -- objects

    def create(self, thing: Any, *, parent: Handle | None = None, name: str = "") -> Object:
        """A new object of the schema of a Python object."""
        schema = Schema.of(type(thing))
        values = schema.write(thing)
        self._find(schema)  # here, since inside a batch what came last is not found
        with self._party.processor.batch():
            described = self.register(schema)
            made = self._party.object(values, type=schema.name, parent=parent, name=name)
            made.item.describe("schema", Reference(bytes(described.id)))
            return made

    def assign(self, item: Object, source: Any) -> None:
        """Give an object a schema; its value must fit."""
        schema = source if isinstance(source, Schema) else Schema.of(source)
        self._find(schema)
        with self._party.processor.batch():
            described = self.register(schema)
            schema.check(item.item.value)
            item.item.describe("type", schema.name)
            item.item.describe("schema", Reference(bytes(described.id)))

    def read(self, item: Object, cls: type[T]) -> Read[T]:
        """A Python object from an object, whatever is in it: with what is wrong, and what the class does not know."""
        found = self._reading(item, Schema.of(cls))
        self._remember(item, found.object)
        return found

    def _reading(self, item: Object, schema: Schema[T]) -> Read[T]:
        value = item.item.value
        own = self.of(item)
        migrations = self._migrations.get(schema.name)
        older = own is not None and own.name == schema.name and own.version < schema.version
        if older and migrations is not None and own is not None:
            try:
                value = migrations.upgrade(value, own.version)
            except InvalidInput as error:
                found = schema.read(value)
                return Read(found.object, [Problem((), str(error)), *found.problems], found.extra)
        return schema.read(value)

    def _remember(self, item: Object, thing: Any) -> None:
        """Keep what was read beside the Python object, as long as that lives: what it did not change is not saved."""
        if thing is not None:
            with suppress(TypeError):  # a class with slots: it is then compared with what is there when it is saved
                if id(thing) not in self._read:
                    weakref.finalize(thing, self._read.pop, id(thing), None).atexit = False
                self._read[id(thing)] = (bytes(item.id), Schema.of(type(thing)).write(thing))

    def save(self, item: Object, thing: Any) -> None:
        """Write what was changed in a Python object since it was read from an object; nothing else is touched."""
        schema = Schema.of(type(thing))
        with self._party.processor.batch():
            read_from, before = self._read.get(id(thing), (b"", {}))
            if read_from != item.id:
                before = schema.write(self._reading(item, schema).object)
            self._apply(item, schema, before, schema.write(thing))
        self._remember(item, thing)

    def _apply(self, item: Object, schema: Schema[Any], before: dict[str, Value], after: dict[str, Value]) -> None:
        made = schema.changes(plain(before, self._party), plain(after, self._party))
        with self._party.processor.batch():
            if made.writes:
                item.item.edit("update", made.writes)
            for path in made.deletes:
                item.item.edit("delete", path)
            for path, element in made.adds:
                item.item.edit("add", path, element)
            for path, element in made.removes:
                item.item.edit("remove", path, element)
            for path, by in made.increments:
                item.item.edit("increment", path, by)

    def migrate(self, migrations: Migrations) -> int:
        """Bring the objects of older versions of a schema to this one, each in a batch; returns how many there were.

        Those that cannot be brought there stay as they are, and an error names them after the others are done.
        """
        schema = migrations.schema
        described = self.register(schema, migrations)
        done, failed = 0, []
        for item in self._party.query(type=schema.name):
            own = self.of(item) if isinstance(item, Object) else None
            if own is None or own.name != schema.name or own.version >= schema.version or not isinstance(item, Object):
                continue
            try:
                self._migrate(item, own.version, migrations, Reference(bytes(described.id)))
                done += 1
            except InvalidInput as error:
                failed.append(f"item {item.id}: {error}")
        if failed:
            told = "; ".join(failed[:_FAILED_TOLD])
            raise InvalidInput(f"{done} objects were brought to {schema}, and {len(failed)} could not be: {told}")
        return done

    def _migrate(self, item: Object, version: int, migrations: Migrations, described: Reference) -> None:
        with self._party.processor.batch():
            value = item.item.value
            upgraded = migrations.upgrade(value, version)
            self._apply(item, migrations.schema, value, upgraded)
            for key in sorted(item.item.value.keys() - upgraded.keys()):  # the step took it away
                item.item.edit("delete", key)
            item.item.describe("schema", described)

    # -- checking

    def _check(self, batch: Batch) -> None:
        """Refuse a batch after which what it touched would not fit."""
        for item in batch.items:
            state = self._party.processor.engine.entry(item).item
            if state is None or state.meta is None or state.name != ObjectModel.name:
                continue
            reference = state.metadata.get("schema")
            schema = self._of(reference.item) if isinstance(reference, Reference) and not reference.party else None
            if schema is None:
                continue
            touched = list(_touched(batch, state))
            problems = [problem for problem in schema.problems(state.value) if _concerns(problem.path, touched)]
            if problems:
                raise SchemaViolation(schema.name, schema.version, problems)


def _touched(batch: Batch, state: ItemState) -> Iterator[Sequence[Any]]:
    """The paths that a batch writes; the empty one, which is the whole, if it makes the object or gives it a schema."""
    for kind, _, message in batch.drafts(state.id):
        if kind == Kind.MUTATION:
            for path, _, _ in read_mutation(content(kind, message), Stamp(1 << 62, batch.feed, 1 << 62)):
                yield [part for part in path if isinstance(part, str)]
        elif kind in (Kind.GENESIS, Kind.METADATA):
            yield ()


def _concerns(path: Sequence[Any], touched: list[Sequence[Any]]) -> bool:
    """Whether one of the two paths leads to the other."""
    return any(list(path[: len(one)]) == list(one[: len(path)]) for one in touched)
