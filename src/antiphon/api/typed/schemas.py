"""The typed objects of one party. Schemas are items themselves, and objects are checked against them when written.

>>> import antiphon
>>> from dataclasses import dataclass
>>> @antiphon.typed("task")
... @dataclass
... class Task:
...     title: str
...     done: bool = False
>>> with antiphon.open("laptop", unprotected=True) as store:
...     party = store.create_party()
...     task = party.object(Task("Plan"))
...     task["done"] = "soon"
Traceback (most recent call last):
...
antiphon.schema.errors.SchemaViolation: does not fit the schema task 1: at done: expected a bool, found text 'soon'

Every device that holds the item of the schema checks its own writes, with or without the Python class. Messages of
other devices are never refused because of a schema: reading is tolerant, and only the paths that a batch writes are
checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.api.items.handle import Handle, plain
from antiphon.api.items.object import Object
from antiphon.api.typed.read_values import Readings
from antiphon.api.typed.schema_items import ITEM, SCHEMA_TYPE, SEAL, SchemaItems
from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.item_state import META, ItemState
from antiphon.model.message import content
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.mutation_codec import read_mutation
from antiphon.model.value import Value
from antiphon.party.live.batch import Batch
from antiphon.schema.definition import Schema
from antiphon.schema.document import same
from antiphon.schema.errors import Problem, SchemaViolation
from antiphon.schema.migrations import Migrations
from antiphon.schema.reader import Read

if TYPE_CHECKING:
    from antiphon.api.party import Party

__all__ = ["SCHEMA_TYPE", "Schemas"]

T = TypeVar("T")
_FAILED_SHOWN = 3
_TRIES_MAX = 16
_LATEST = Stamp(1 << 62, bytes(32), 1 << 62)


class Schemas:
    """The schemas of a party (`party.schemas`), and the objects that have one."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._items = SchemaItems(party)
        self._migrations: dict[str, Migrations] = {}
        self._readings = Readings()

    # -- schemas are items

    def register(self, source: Any, migrations: Migrations | None = None) -> Object:
        """Return the item of a schema; create it if the party has no item with the same schema.

        `source` is a `Schema`, a class, or a JSON Schema. `migrations` upgrade objects of older versions when they are
        read.
        """
        schema = source if isinstance(source, Schema) else Schema.of(source)
        if migrations is not None:
            if not same(migrations.schema, schema):
                raise InvalidInput(f"{schema}: these migrations lead to {migrations.schema}")
            self._migrations[schema.name] = migrations
        return self._items.register(schema)

    def all(self) -> list[Schema[Any]]:
        """Return the schemas that the party holds, by name and version."""
        return self._items.all()

    def of(self, item: Object[Any]) -> Schema[Any] | None:
        """Return the schema of an object; None if it has none, or the schema is not on this device."""
        return self._items.of(item.metadata)

    # -- objects

    def create(self, thing: T, *, parent: Handle | None = None, name: str = "") -> Object[T]:
        """Create an object from an instance of a class with a schema."""
        schema = Schema.of(type(thing))
        values = schema.write(thing)
        self._items.find(schema)  # before the batch: queries inside a batch do not find the newest items
        with self._party.processor.batch():
            described = self._items.register(schema)
            made = Object(self._party, self._party.object(parent=parent, name=name).item, type(thing))
            self._apply(made, schema, {}, values)
            self._items.assign(made, described, schema)
        self._remember(made, thing, values)
        return made

    def assign(self, item: Object[Any], source: Any) -> None:
        """Assign a schema to an existing object. `SchemaViolation` if its value does not fit."""
        schema = source if isinstance(source, Schema) else Schema.of(source)
        self._items.find(schema)
        with self._party.processor.batch():
            described = self._items.register(schema)
            schema.check(item.item.value)
            self._items.assign(item, described, schema)

    def read(self, item: Object[Any], cls: type[T]) -> Read[T]:
        """Read an object as an instance of a class. The result also lists problems and unknown keys."""
        found = self._reading(item, Schema.of(cls))
        self._remember(item, found.object, found.before)
        return found

    def _reading(self, item: Object[Any], schema: Schema[T]) -> Read[T]:
        value = item.item.value
        own = self.of(item)
        migrations = self._migrations.get(schema.name)
        older = own is not None and own.name == schema.name and own.version < schema.version
        if older and migrations is not None and own is not None:
            try:
                value = migrations.upgrade(value, own.version)
            except InvalidInput as error:
                found = schema.read(value)
                return replace(found, problems=[Problem((), str(error)), *found.problems])
        return schema.read(value)

    def _remember(self, item: Object[Any], thing: Any, values: dict[str, Value] | None) -> None:
        if thing is not None and values is not None:
            self._party.on_rollback(self._readings.put(bytes(item.id), thing, values))

    def save(self, item: Object[Any], thing: Any, since: Any = None) -> None:
        """Write the fields of an instance that changed since it was read from an item, and no others.

        `since` is the instance that was read, or the result of `read_as`, if `thing` is another instance.
        """
        schema = Schema.of(type(thing))
        after = schema.write(thing)
        with self._party.processor.batch():
            self._apply(item, schema, self._before(item, thing, since), after, keep=True)
        self._remember(item, thing, after)

    def _before(self, item: Object[Any], thing: Any, since: Any) -> dict[str, Value]:
        """Return the values that the instance was read with.

        The current values of the item would be wrong: a concurrent change by others would look like a change to undo.
        """
        if isinstance(since, Read):
            before = since.before
        else:
            before = self._readings.find(bytes(item.id), thing if since is None else since)
        if before is None:
            name = type(thing).__name__
            raise InvalidInput(
                f"item {item.id}: this {name} was not read from it, so it is not known which fields were changed; "
                f"read one with `read()` and save that, or save a changed copy with `since=` the {name} that was read"
            )
        return before

    def _apply(
        self,
        item: Object[Any],
        schema: Schema[Any],
        before: dict[str, Value],
        after: dict[str, Value],
        *,
        keep: bool = False,
    ) -> None:
        made = schema.changes(plain(before, self._party), plain(after, self._party))
        with self._party.processor.batch():
            if keep:
                schema.keep(made, item.item.value)
            if made.writes:
                item.item.edit("update", made.writes)
            for path in made.deletes:
                item.item.edit("delete", path)
            for path, element in made.adds:
                item.item.edit("add", path, element)
            for path, element in made.removes:
                item.item.edit("remove", path, element)
            for path, by in made.increments:
                self._count(item, path, by)

    def _count(self, item: Object[Any], path: tuple[str, ...], by: int) -> None:
        try:
            item.item.edit("increment", path, by)
        except InvalidMutation:
            raise
        except InvalidInput:  # the number was written as a plain value: make it a counter
            found = item.plain_at(path)
            item.item.edit("counter", path, by + (found if isinstance(found, int) else 0))

    def migrate(self, migrations: Migrations) -> int:
        """Upgrade all objects of older versions of a schema, each in a batch of its own. Return how many were upgraded.

        Objects that cannot be upgraded stay unchanged; after all others are done, an error names them.
        """
        schema = migrations.schema
        described = self.register(schema, migrations)
        done, failed = 0, []
        for item in self._party.query(type=schema.name):
            own = self.of(item) if isinstance(item, Object) else None
            if own is None or own.name != schema.name or own.version >= schema.version or not isinstance(item, Object):
                continue
            try:
                self._migrate(item, own.version, migrations, described)
                done += 1
            except InvalidInput as error:
                failed.append(f"item {item.id}: {error}")
        if failed:
            shown = "; ".join(failed[:_FAILED_SHOWN])
            raise InvalidInput(f"{done} objects were upgraded to {schema}, and {len(failed)} could not be: {shown}")
        return done

    def _migrate(self, item: Object[Any], version: int, migrations: Migrations, described: Object[Any]) -> None:
        """Upgrade one object. The steps are code of the application, so they run outside of the batch, without a lock.

        If the object was changed meanwhile, they run again.
        """
        for _ in range(_TRIES_MAX):
            with self._party.processor.locked():
                seen, value = item.item.timeframe, item.item.value
            upgraded = migrations.upgrade(value, version)
            with self._party.processor.locked():
                if item.item.timeframe == seen:
                    self._write_upgraded(item, migrations.schema, value, upgraded, described)
                    return
        raise InvalidInput(f"it was changed during each of {_TRIES_MAX} attempts; try again")

    def _write_upgraded(
        self,
        item: Object[Any],
        schema: Schema[Any],
        value: dict[str, Value],
        upgraded: dict[str, Value],
        described: Object[Any],
    ) -> None:
        with self._party.processor.batch():
            self._apply(item, schema, value, upgraded)
            for key in sorted(item.item.value.keys() - upgraded.keys()):  # a step removed it
                item.item.edit("delete", key)
            self._items.assign(item, described, schema)

    # -- checking

    def check(self, batch: Batch) -> None:
        """Refuse a batch if the paths that it writes do not fit the schemas of their objects."""
        for item in batch.items:
            state = self._party.processor.engine.entry(item).item
            if state is None or state.name != ObjectModel.name or state.meta is None or not META.has(state.meta, ITEM):
                continue
            schema = self._items.of(state.metadata)
            if schema is None:
                continue
            touched = list(_touched(batch, state))
            problems = [problem for problem in schema.problems(state.value) if _concerns(problem.path, touched)]
            if problems:
                raise SchemaViolation(schema.name, schema.version, problems)


def _touched(batch: Batch, state: ItemState) -> Iterator[Sequence[Any]]:
    """Yield the paths that a batch writes; the empty path if it creates the object or assigns a schema."""
    for kind, _, message in batch.drafts(state.id):
        if kind == Kind.GENESIS:
            yield ()
        elif kind in (Kind.MUTATION, Kind.METADATA):
            paths = [path for path, _, _ in read_mutation(content(kind, message), _LATEST)]
            if kind == Kind.MUTATION:
                yield from ([part for part in path if isinstance(part, str)] for path in paths)
            elif any(path[0] in (ITEM, SEAL) for path in paths):
                yield ()


def _concerns(path: Sequence[Any], touched: list[Sequence[Any]]) -> bool:
    """True if one of the two paths is a prefix of the other."""
    return any(list(path[: len(one)]) == list(one[: len(path)]) for one in touched)
