"""`Party`: a group of members that shares items. Create, link, find and watch items; read their history."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from antiphon.api import child_party
from antiphon.api.child_party import ChildParty
from antiphon.api.epochs import PartyEpochs
from antiphon.api.erase import erase
from antiphon.api.inputs import need_handle, need_id, need_key, need_role, need_text, need_timeframe, need_values
from antiphon.api.invitation import Invitation
from antiphon.api.items.file import File, FileOptions, Source, new_file
from antiphon.api.items.handle import Handle, plain
from antiphon.api.items.list import List
from antiphon.api.items.object import Object, need_kind
from antiphon.api.items.text import Text
from antiphon.api.items.thread import Thread
from antiphon.api.join import join
from antiphon.api.network.replicated_party import ReplicatedParty
from antiphon.api.operator import PartyOperator
from antiphon.api.options import ItemOptions, QueryArguments, QueryOptions, ViewOptions
from antiphon.api.query.arguments import narrow, query_from, record_class
from antiphon.api.query.deltas import Delta
from antiphon.api.query.queries import Queries
from antiphon.api.query.results import Kind, Record, Results
from antiphon.api.typed.schemas import Schemas
from antiphon.core.errors import InvalidInput, UnknownItem
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials.claims import Role
from antiphon.halo.member.membership import Membership
from antiphon.model.array.model import ArrayModel
from antiphon.model.file import FileModel
from antiphon.model.fork_chain import lead
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.party.bundle.export import ExportReport, Tick, export_party, no_tick
from antiphon.party.engine.ports import Refused
from antiphon.party.live.history import PartyPast
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.live.status import Status
from antiphon.party.live.undo import UndoStack
from antiphon.query.filters import EVERYTHING, Fact, Filter
from antiphon.query.live.subscription import Subscription
from antiphon.query.query import Deleted, Query, Way
from antiphon.query.validate import check

if TYPE_CHECKING:
    from antiphon.api.store import Store

_KINDS: dict[str, type[Handle]] = {
    ObjectModel.name: Object,
    ArrayModel.name: List,
    TextModel.name: Text,
    MessengerModel.name: Thread,
    FileModel.name: File,
}


class Party(ReplicatedParty):
    """An open party of a store: its members and its items. `Store.create_party` and `Store.party` return it.

    Thread-safe. Reading and writing use local data only, and never wait for a network.
    """

    def __init__(self, store: Store, processor: PartyProcessor, member: Membership) -> None:
        self.store = store
        self.processor = processor
        self.member = member
        self.queries = Queries(self)
        self.schemas = Schemas(self)
        self.epochs = PartyEpochs(self)
        self.operator = PartyOperator(self)
        self._on_rollback: list[Callable[[], None]] = []
        self.parent_acts_applied = -1  # number of acts of the parent at the last `apply_parent_revocations`

    def __repr__(self) -> str:
        return f"<Party {self.key.short}{f' {self.name!r}' if self.processor.running else ''}>"

    @property
    def key(self) -> PublicKey:
        """The key that names the party everywhere."""
        return self.processor.key

    @property
    def name(self) -> str:
        """The name of the party, shared by all members. Assign to it to rename the party."""
        return self.root.name

    @name.setter
    def name(self, name: str) -> None:
        self.root.name = name

    @property
    def root(self) -> Object:
        """The system item, which every party has. Use it as an object for the settings of the whole party."""
        return Object(self, self.processor.root)

    # -- members

    @property
    def members(self) -> PartyState:
        """The members with their roles, the feeds and the policy, as the control feeds define them."""
        with self.processor.locked():
            return self.member.state

    def invite(self, identity: bytes | str, role: Role = Role.EDITOR) -> Invitation:
        """Admit an identity as a member, and return the invitation with which its devices join (`Store.join`).

        `identity` is the public key of the identity (its `store.me`), as bytes or text. An invitation is no secret:
        only devices of the admitted identity can join with it.
        """
        key = need_key(identity, "who is invited")
        with self.processor.locked():
            self.member.admit(key, {need_role(role)})
            return Invitation(self.key, self.member.genesis_feed, self.name)

    def revoke(self, identity: bytes | str, *, before: Stamp | None = None) -> None:
        """End the membership of an identity. Messages of it that are here, or those `before` one, stay valid."""
        key = need_key(identity, "whose membership ends")
        with self.processor.locked():
            self.member.revoke(key, before=before)
        self.refresh()
        child_party.refresh_children(self)

    def join(self) -> None:
        """Open this device's feeds once its identity is admitted. The store and `refresh` call this."""
        join(self)

    def refresh(self) -> int:
        """Process the messages that have arrived in the feeds. Return how many there were."""
        self.join()
        self.operator.apply()
        taken = self.processor.process()
        self.store.held_views.step(self)
        return taken

    # -- child parties

    def create_child(self, name: str = "") -> Party:
        """Create a child party: it has the members of this party, but its own items, epochs and undo."""
        return self.store.create_party(name, parent=self)

    @property
    def parent(self) -> Party | None:
        """The parent party, whose members are the members of this one; None if this is no child party."""
        above = self.member.machine.parent
        return None if above is None else self.store.party(above.party)

    def child_parties(self) -> builtins.list[ChildParty]:
        """List the child parties that items of this party refer to. `open_child` opens one."""
        return [*child_party.child_references(self)]

    def open_child(self, child: ChildParty | bytes) -> Party:
        """Join a child party and open it.

        `MissingBlocks` if its first blocks have not arrived yet: `sync`, and try again. `NotAuthorised` if the party is
        no child of this one.
        """
        return child_party.open_child(self, child.key if isinstance(child, ChildParty) else need_key(child, "a child"))

    # -- making items

    def create(
        self,
        model: str = ObjectModel.name,
        *,
        parent: Handle | None = None,
        name: str = "",
        type: str = "",  # noqa: A002 - what everybody calls it
        link: tuple[bytes, bytes] | None = None,
        inception: KeyPair | None = None,
    ) -> Handle:
        """Create an item of any model. (`object`, `list`, `text`, `thread` and `file` create the usual kinds.)

        - `model`: the name of the model, such as `"antiphon/object"`, or of a model of your own.
        - `parent`: the item under which the new one is placed in the hierarchy.
        - `name`: the display name.
        - `type`: the kind of thing that the item represents, for queries, such as `"task"`.
        - `link`: the ids of source and target, if the item is a link (see `link`).
        - `inception`: the key pair of a view (see `create_view`).
        """
        if parent is not None and need_handle(parent, "the parent of an item").party.key != self.key:
            raise InvalidInput(f"party {self.key.short}: the parent of an item must be of the same party")
        said = {"display_name": need_text(name, "the name of an item"), "type": need_text(type, "the type of an item")}
        with self.processor.batch():
            under = None if parent is None else bytes(parent.id)
            item = self.processor.create(model, parent=under, link=link, inception=inception)
            item.set_all_metadata({key: word for key, word in said.items() if word})
            return self.handle(item)

    @overload
    def object(self, values: Mapping[str, Any] | None = None, **options: Unpack[ItemOptions]) -> Object: ...
    @overload
    def object(self, values: Record, **options: Unpack[ItemOptions]) -> Object[Record]: ...
    def object(self, values: Any = None, **options: Unpack[ItemOptions]) -> Object[Any]:
        """Create an object from a dict, or from an instance of a class that is decorated with `antiphon.typed`.

        Options: `name`, `type` (not with a class), `parent`; see `create`.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     board = party.object({"title": "This week"}, type="board", name="Week")
        ...     task = party.object({"title": "Plan"}, type="task", parent=board)
        ...     [child["title"] for child in board.children]
        ['Plan']
        """
        if values is not None and not isinstance(values, Mapping):
            if "type" in options:
                raise InvalidInput("an object of a class has the type of its schema; leave `type` out")
            return self.schemas.create(values, parent=options.get("parent"), name=options.get("name", ""))
        written = plain(dict(values or {}), self)
        with self.processor.batch():
            made = self.create(ObjectModel.name, **options)
            assert isinstance(made, Object)
            made.update(written)
            return made

    def list(self, values: Iterable[Any] = (), **options: Unpack[ItemOptions]) -> List:
        """Create a list from any iterable except a string, bytes or a dict. Options: `name`, `type`, `parent`."""
        written = plain(need_values(values), self)
        with self.processor.batch():
            made = self.create(ArrayModel.name, **options)
            assert isinstance(made, List)
            made.extend(written)
            return made

    def text(self, text: str = "", **options: Unpack[ItemOptions]) -> Text:
        """Create a text for collaborative editing. Options: `name`, `type`, `parent`."""
        with self.processor.batch():
            made = self.create(TextModel.name, **options)
            assert isinstance(made, Text)
            made.insert(0, text)
            return made

    def thread(self, **options: Unpack[ItemOptions]) -> Thread:
        """Create a conversation, without posts. Options: `name`, `type`, `parent`."""
        made = self.create(MessengerModel.name, **options)
        assert isinstance(made, Thread)
        return made

    def file(self, data: Source = b"", **options: Unpack[FileOptions]) -> File:
        """Create a file item from bytes, a binary stream, or a path, which also gives its name and media type.

        Options: `name`, `media_type`, `type`, `parent`."""
        return new_file(self, data, **options)

    @overload
    def link(self, source: Handle, target: Handle, *, model: str, **options: Unpack[ItemOptions]) -> Handle: ...
    @overload
    def link(
        self, source: Handle, target: Handle, values: Mapping[str, Any] | None = None, **options: Unpack[ItemOptions]
    ) -> Object: ...
    def link(
        self,
        source: Handle,
        target: Handle,
        values: Mapping[str, Any] | None = None,
        *,
        model: str = ObjectModel.name,
        **options: Unpack[ItemOptions],
    ) -> Handle:
        """Create a link from one item to another of this party. Return the link, which is an item itself.

        By default the link is an object, and `values` are its properties. For an item of another party, write a
        reference into an object instead. Options: `model`, `name`, `type`, `parent`.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     ada, book = party.object({"name": "Ada"}), party.object({"title": "Emma"})
        ...     loan = party.link(ada, book, {"due": "Friday"}, type="loan")
        ...     loan.target["title"], [link["due"] for link in ada.links()]
        ('Emma', ['Friday'])
        """
        if {need_handle(end, "an end of a link").party.key for end in (source, target)} != {self.key}:
            raise InvalidInput(f"party {self.key.short}: a link joins two items of one party; across parties, refer")
        written = plain(dict(values or {}), self)
        with self.processor.batch():
            made = self.create(model, link=(bytes(source.id), bytes(target.id)), **options)
            if isinstance(made, Object):
                made.update(written)
            elif written:
                raise InvalidInput(f"a link of the model {model} is no object: write to it by its own commands")
            return made

    @overload
    def create_view(self, view_class: str, *, name: str, model: str, **options: Unpack[ViewOptions]) -> Handle: ...
    @overload
    def create_view(self, view_class: str, *, name: str, **options: Unpack[ViewOptions]) -> Object: ...
    def create_view(
        self, view_class: str, *, name: str, model: str = ObjectModel.name, **options: Unpack[ViewOptions]
    ) -> Handle:
        """Create a view: an item with a global address (`Handle.locator`), which a store can hold alone (`hold_view`).

        - `view_class`: the purpose of the view, such as `"org.example:board"`. `views` finds views by class.
        - `name`: the display name, which a view must have.
        - `model`, `type`, `parent`: see `create`.

        The view gets a key pair of its own, the inception key, which signs its first message and is then discarded.
        """
        if not need_text(view_class, "the class of a view") or not need_text(name, "the name of a view"):
            raise InvalidInput("a view has a class, which says what it is for, and a display name")
        with self.processor.batch():
            pair = KeyPair.generate(self.processor.randomness)
            made = self.create(model, name=name, inception=pair, **options)
            made.item.set_metadata("view_class", view_class)
            return made

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write everything inside the `with` block as one unit: other devices see all of it or nothing.

        If the block raises an exception, nothing is written. Inside the block, reading an item shows the changes of the
        batch, but queries find the items as they were before it. The batch holds the lock of the party: keep it short,
        and do not use other parties inside.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     account, other = party.object({"balance": 5}), party.object({"balance": 0})
        ...     with party.batch():
        ...         account["balance"] -= 2
        ...         other["balance"] += 2
        ...     account["balance"], other["balance"]
        (3, 2)
        """
        with self.processor.locked():
            outermost = self.processor.open_batch() is None
            try:
                with self.processor.batch():
                    yield
            except BaseException:
                while outermost and self._on_rollback:
                    self._on_rollback.pop()()
                raise
            finally:
                if outermost:
                    self._on_rollback.clear()  # frees the objects that the functions refer to

    def on_rollback(self, undo: Callable[[], None]) -> None:
        """Call a function if the open batch is rolled back. Without an open batch, do nothing."""
        if self.processor.open_batch() is not None:
            self._on_rollback.append(undo)

    # -- finding items

    @overload
    def item(self, item_id: bytes) -> Handle: ...
    @overload
    def item(self, item_id: bytes, kind: type[Kind]) -> Kind: ...  # type: ignore[overload-overlap]
    @overload
    def item(self, item_id: bytes, kind: type[Record]) -> Object[Record]: ...
    def item(self, item_id: bytes, kind: type[Any] = Handle) -> Any:
        """Return an item by its id. The id of a forked item leads to the new item. `UnknownItem` if it is not here.

        `kind` is the expected kind of handle (`Object`, `List`, `Text`, `Thread`, `File`), for type checkers too;
        `InvalidInput` if the item is of another kind. If `kind` is a class with a schema, the result is an object that
        reads as that class.
        """
        found = self.processor.item(need_id(item_id))
        if found.forked_to:
            found = self.processor.item(lead(bytes(found.id), self.queries.forked_to))
        wanted, record = (kind, None) if issubclass(kind, Handle) else (Object, kind)
        return need_kind(self.handle(found, record), wanted, record)

    def has(self, item_id: bytes) -> bool:
        """True if the party holds an item with this id."""
        try:
            self.item(item_id)
        except UnknownItem:
            return False
        return True

    def __contains__(self, item: Handle | bytes) -> bool:
        if isinstance(item, Handle):
            return item.party.key == self.key and self.has(item.id)
        return self.has(item)

    def handle(self, item: Item, record: type | None = None) -> Handle:
        """Return a handle of the right kind for an item. An object reads as the class `record`, if given."""
        kind = _KINDS.get(item.model[0], Handle)
        return Object(self, item, record) if kind is Object else kind(self, item)

    @overload
    def query(
        self,
        query: Filter | None = None,
        *,
        type: builtins.type[Record],
        **parts: Unpack[QueryOptions],
    ) -> Results[Object[Record]]: ...
    @overload
    def query(self, query: Query | Filter | None = None, **parts: Unpack[QueryArguments]) -> Results: ...
    def query(self, query: Query | Filter | None = None, **parts: Unpack[QueryArguments]) -> Results[Any]:
        """Find items. Pass a complete `Query`, or a filter and these arguments:

        - `type`: the type of the items, or a class with a schema. With a class, the results are typed objects.
        - `where`: a filter, such as `prop("price") > 1`.
        - `match`: words that must occur in the texts of the item.
        - `order`: `"title"`, `"-priority"` (descending), `Fact.NAME`, or a list of several.
        - `limit`: the greatest number of results.
        - `deleted`: `Deleted.SHOWN` or `Deleted.ONLY`; by default deleted items are hidden.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     for title, price in (("Milk", 2), ("Salt", 1), ("Oil", 7)):
        ...         ware = party.object({"title": title, "price": price}, type="ware")
        ...     [ware["title"] for ware in party.query(antiphon.prop("price") > 1, type="ware", order="-price")]
        ['Oil', 'Milk']
        """
        whole = query_from(query, parts, self.key, self.queries.lead)
        if whole.aggregate is not None:
            raise InvalidInput("a query that counts or sums finds no items; ask for its `aggregate`")
        return Results(self, whole, self.queries.run(whole).ids, record_class(parts))

    def count(self, query: Query | Filter | None = None, **parts: Unpack[QueryArguments]) -> int:
        """Return the number of items that a query finds. The arguments are those of `query`. No item is loaded."""
        whole = query_from(query, parts, self.key, self.queries.lead)
        if whole.aggregate is not None:
            raise InvalidInput("this query counts or sums already; ask for its `aggregate`")
        check(whole)
        found = int(self.queries.aggregate(replace(whole, order=(), limit=None).count()))
        return found if whole.limit is None else min(found, whole.limit)

    def aggregate(self, query: Query, **parts: Unpack[QueryArguments]) -> Any:
        """Return the value of a query with an aggregate; with groups, a list of pairs (group, value).

        `type`, `where`, `match` and `deleted` restrict the items, as in `query`.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     wares = [party.object({"price": price}, type="ware") for price in (2, 1, 7)]
        ...     party.aggregate(antiphon.Query().sum("price"), type="ware")
        10
        """
        return self.queries.aggregate(narrow(query, parts, self.key, self.queries.lead))

    @overload
    def subscribe(
        self,
        query: Filter | None = None,
        callback: Callable[[Delta[Object[Record]]], builtins.object] | None = None,
        *,
        type: builtins.type[Record],
        values: bool = False,
        **parts: Unpack[QueryOptions],
    ) -> Subscription[Delta[Object[Record]]]: ...
    @overload
    def subscribe(
        self,
        query: Query | Filter | None = None,
        callback: Callable[[Delta], builtins.object] | None = None,
        *,
        values: bool = False,
        **parts: Unpack[QueryArguments],
    ) -> Subscription[Delta]: ...
    def subscribe(
        self,
        query: Query | Filter | None = None,
        callback: Callable[[Any], builtins.object] | None = None,
        *,
        values: bool = False,
        **parts: Unpack[QueryArguments],
    ) -> Subscription[Any]:
        """Run a query and keep its result up to date. Return the `Subscription`. The arguments are those of `query`.

        The `callback` is called with a `Delta` for the first result and for each change of it. With a callback, the
        subscription lasts until it or the party is closed; without one, as long as you keep a reference to it.

        Each result is of one moment. With `values`, deltas have the values of their items at that moment.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     task = party.object({"title": "Plan"}, type="task")
        ...     tasks = party.subscribe(callback=lambda delta: print(len(delta.added), "added"), type="task")
        ...     task = party.object({"title": "Do"}, type="task")
        1 added
        1 added
        """
        return self.queries.subscribe(query, parts, callback, values=values)

    def neighbours(self, item: Handle, way: Way) -> Results:
        """Return the items that one way (children, links, …) leads to from an item, without deleted ones."""
        start = Query(Fact.ID.is_(item.id), deleted=Deleted.SHOWN)
        return Results(self, start.step(way), self.queries.neighbours(bytes(item.id), way).ids)

    def view(self, key: bytes) -> Handle:
        """Return the view with this inception key. If the key was used several times, the first view counts."""
        found = self.query(Query(Fact.VIEW_KEY.is_(bytes(need_key(key, "a view"))), deleted=Deleted.SHOWN))
        if not found:
            raise UnknownItem(f"party {self.key.short} holds no view {bytes(key).hex()[:8]}, or not yet")
        return self.item(found.ids[0])

    def views(self, view_class: str | None = None) -> Results:
        """Return the views of the party, of one class or of all classes."""
        of_class = EVERYTHING if view_class is None else Fact.VIEW_CLASS.is_(view_class)
        return self.query(Fact.VIEW_KEY.exists(), where=of_class)

    def items(self) -> Results:
        """Return all items that are not deleted."""
        return self.query(EVERYTHING)

    def parent_of(self, item_id: bytes) -> bytes:
        """Return the id of the parent of an item; empty at the top of the hierarchy."""
        return self.queries.parent_of(bytes(item_id))

    def closure(self, item_id: bytes) -> builtins.list[bytes]:
        """Return the ids of an item and of all items that belong to it; see `Handle.closure`."""
        return self.queries.closure(bytes(item_id))

    # -- time

    @property
    def timeframe(self) -> Timeframe:
        """The current state as a vector clock: the last message of each feed. Keep it to return to it with `at`."""
        return self.processor.timeframe

    def at(self, timeframe: Timeframe) -> PartyPast:
        """Return the party as it was at a timeframe, read-only.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     task = party.object({"title": "Plan"})
        ...     before = party.timeframe
        ...     task["title"] = "Do"
        ...     party.at(before).item(task.id).value
        {'title': 'Plan'}
        """
        return self.processor.at(need_timeframe(timeframe))

    def undo_stack(self) -> UndoStack:
        """Return a stack for undo and redo of the changes that this device makes from now on. Changes of others stay.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     task = party.object({"title": "Plan"})
        ...     stack = party.undo_stack()
        ...     task["title"] = "Do"
        ...     undone = stack.undo()
        ...     task["title"]
        'Plan'
        """
        return UndoStack(self.processor)

    # -- state

    def status(self) -> Status:
        """Return the state of the party on this device: counts of items and messages, and feeds that wait."""
        return self.processor.status()

    def refused(self) -> builtins.list[Refused]:
        """List the messages that do not count, each with the reason."""
        return self.processor.refused()

    def erase(self, *stamps: Stamp) -> None:
        """Make messages void on all devices: your own, or as an owner those of any member.

        A device whose store lacks the identity's private key can erase only messages that it wrote itself.
        `stamps` name the messages, as `Handle.history` lists them. `epochs.prune` deletes their bytes once a final
        epoch contains them. The state inside an epoch that is final already does not change.
        """
        erase(self, stamps)

    def export(
        self, path: str | Path, *, whole: bool = False, files: bool = True, tick: Tick = no_tick
    ) -> ExportReport:
        """Write the party into a CAR file, which `Store.import_party` reads. Return a report.

        The file contains the control feeds, the last snapshot and the messages since then; with `whole`, all messages.
        `files` includes the contents of file items that are here. `tick` is called with the step, and the bytes done.
        """
        return export_party(self.processor, self.member.machine, path, whole=whole, files=files, tick=tick)

    def close_subscriptions(self) -> None:
        """End all subscriptions. The store calls this before it closes the party."""
        self.queries.close()
