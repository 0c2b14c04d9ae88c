"""`Party`: a group that shares items. Create items, link them, ask for them, watch them, go back in time.

>>> import antiphon
>>> from antiphon import prop
>>> with antiphon.open("laptop", unprotected=True) as store:
...     party = store.create_party("Household")
...     milk = party.object({"title": "Milk", "price": 2}, type="ware")
...     salt = party.object({"title": "Salt", "price": 1}, type="ware")
...     [ware["title"] for ware in party.query(type="ware", where=prop("price") > 1)]
['Milk']
"""

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
from antiphon.api.items.object import Object
from antiphon.api.items.text import Text
from antiphon.api.items.thread import Thread
from antiphon.api.options import Narrowing, Options, Parts, Place
from antiphon.api.query.arguments import asked, narrowed, record_of
from antiphon.api.query.deltas import Delta, delta_of
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
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.party.bundle.export import ExportReport, Tick, export_party, no_tick
from antiphon.party.engine.ports import Refused
from antiphon.party.epochs.renewal import drop_ended_feeds
from antiphon.party.live.history import PartyPast
from antiphon.party.live.item import Item
from antiphon.party.live.processor import PartyProcessor
from antiphon.party.live.status import Status
from antiphon.party.live.undo import UndoStack
from antiphon.query.filters import EVERYTHING, Fact, Filter
from antiphon.query.forks import lead
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


class Party:
    """An open party of a store. Thread-safe; what it does to local data it does at once."""

    def __init__(self, store: Store, processor: PartyProcessor, member: Membership) -> None:
        self.store = store
        self.processor = processor
        self.member = member
        self.queries = Queries(self)
        self.schemas = Schemas(self)
        self.epochs = PartyEpochs(self)
        self._if_undone: list[Callable[[], None]] = []
        self.echoed = -1  # how much of the parent was known when this device last said where feeds end by it

    def __repr__(self) -> str:
        return f"<Party {self.key.short} {self.name!r}>" if self.processor.running else f"<Party {self.key.short}>"

    @property
    def key(self) -> PublicKey:
        """The key that names the party everywhere."""
        return self.processor.key

    @property
    def name(self) -> str:
        """What its members call it."""
        return self.root.name

    @name.setter
    def name(self, name: str) -> None:
        self.root.name = name

    @property
    def root(self) -> Object:
        """The system item, which every party has: an object for what belongs to the party as a whole."""
        return Object(self, self.processor.root)

    # -- members

    @property
    def members(self) -> PartyState:
        """Members, roles, feeds and policy, as the control feeds have it."""
        with self.processor.locked():
            return self.member.state

    def invite(self, identity: bytes | str, role: Role = Role.EDITOR) -> Invitation:
        """Admit somebody, and say what they must know to join."""
        key = need_key(identity, "who is invited")
        with self.processor.locked():
            self.member.admit(key, {need_role(role)})
            return Invitation(self.key, self.member.genesis_feed, self.name)

    def revoke(self, identity: bytes | str) -> None:
        """End somebody's membership. What they wrote so far, and is here, stays."""
        key = need_key(identity, "whose membership ends")
        with self.processor.locked():
            self.member.revoke(key)
        self.refresh()
        child_party.heard(self)

    def join(self) -> None:
        """Open this device's feed, once its identity is admitted (again); the store and `refresh` see to that."""
        member = self.member
        admitted = self.store.may_vouch and drop_ended_feeds(self.processor, member)
        if member.control is not None or not admitted:
            child_party.echo(self)
            return
        with self.processor.locked():
            if child_party.founded(self) and member.control is None:  # no other thread was quicker
                member.join(member.vouch(self.store.identity))

    def refresh(self) -> int:
        """Take what came into the feeds; returns how many messages that was."""
        self.join()
        taken = self.processor.process()
        self.store.followed.step(self)
        return taken

    # -- child parties

    def create_child(self, name: str = "") -> Party:
        """A light-weight party: whoever is a member here is one there. Its epochs and its undo are its own."""
        return self.store.create_party(name, parent=self)

    @property
    def parent(self) -> Party | None:
        """The party whose members are this one's, if this is a child."""
        above = self.member.machine.parent
        return None if above is None else self.store.party(above.party)

    def child_parties(self) -> builtins.list[ChildParty]:
        """The children that members have told of here; `open_child` opens one."""
        return [*child_party.referred(self)]

    def open_child(self, child: ChildParty | bytes) -> Party:
        """Follow a child and open it, once its blocks are here: see `sync`."""
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
        """A new item of any model."""
        if parent is not None and need_handle(parent, "the parent of an item").party.key != self.key:
            raise InvalidInput(f"party {self.key.short}: the parent of an item must be of the same party")
        said = {"display_name": need_text(name, "the name of an item"), "type": need_text(type, "the type of an item")}
        with self.processor.batch():
            under = None if parent is None else bytes(parent.id)
            item = self.processor.create(model, parent=under, link=link, inception=inception)
            item.set_all_metadata({key: word for key, word in said.items() if word})
            return self.handle(item)

    @overload
    def object(self, values: Mapping[str, Any] | None = None, **options: Unpack[Options]) -> Object: ...
    @overload
    def object(self, values: Record, **options: Unpack[Options]) -> Object[Record]: ...
    def object(self, values: Any = None, **options: Unpack[Options]) -> Object[Any]:
        """A new object, from a dict, or from an instance of a class that has a schema."""
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

    def list(self, values: Iterable[Any] = (), **options: Unpack[Options]) -> List:
        """A new list, of any iterable but a text: wrap that in `list(...)`, or in brackets."""
        written = plain(need_values(values), self)
        with self.processor.batch():
            made = self.create(ArrayModel.name, **options)
            assert isinstance(made, List)
            made.extend(written)
            return made

    def text(self, text: str = "", **options: Unpack[Options]) -> Text:
        """A new text."""
        with self.processor.batch():
            made = self.create(TextModel.name, **options)
            assert isinstance(made, Text)
            made.insert(0, text)
            return made

    def thread(self, **options: Unpack[Options]) -> Thread:
        """A new conversation."""
        made = self.create(MessengerModel.name, **options)
        assert isinstance(made, Thread)
        return made

    def file(self, data: Source = b"", **options: Unpack[FileOptions]) -> File:
        """A new file, from bytes, a binary stream, or the path of a file, which also tells its name and media type."""
        return new_file(self, data, **options)

    @overload
    def link(self, source: Handle, target: Handle, *, model: str, **options: Unpack[Options]) -> Handle: ...
    @overload
    def link(
        self, source: Handle, target: Handle, values: Mapping[str, Any] | None = None, **options: Unpack[Options]
    ) -> Object: ...
    def link(
        self,
        source: Handle,
        target: Handle,
        values: Mapping[str, Any] | None = None,
        *,
        model: str = ObjectModel.name,
        **options: Unpack[Options],
    ) -> Handle:
        """A link between two items of this party. It is an item itself, of any model; an object can hold values."""
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
    def create_view(self, view_class: str, *, name: str, model: str, **options: Unpack[Place]) -> Handle: ...
    @overload
    def create_view(self, view_class: str, *, name: str, **options: Unpack[Place]) -> Object: ...
    def create_view(
        self, view_class: str, *, name: str, model: str = ObjectModel.name, **options: Unpack[Place]
    ) -> Handle:
        """A view: an item with an address that holds everywhere. Its inception key signs for it once."""
        if not need_text(view_class, "the class of a view") or not need_text(name, "the name of a view"):
            raise InvalidInput("a view has a class, which says what it is for, and a display name")
        with self.processor.batch():
            pair = KeyPair.generate(self.processor.randomness)
            made = self.create(model, name=name, inception=pair, **options)
            made.item.set_metadata("view_class", view_class)
            return made

    @contextmanager
    def batch(self) -> Iterator[None]:
        """What is written inside is one message to all others: they see all of it or nothing.

        Queries inside find what was there before; reading an item shows what the batch has done to it. Keep it short,
        and out of other parties: nobody else gets at this one meanwhile.
        """
        with self.processor.locked():
            outermost = self.processor.open_batch() is None
            try:
                with self.processor.batch():
                    yield
            except BaseException:
                while outermost and self._if_undone:
                    self._if_undone.pop()()
                raise
            finally:
                if outermost:
                    self._if_undone.clear()  # with the objects that they hold

    def if_undone(self, undo: Callable[[], None]) -> None:
        """Should the open batch, if there is one, come to nothing, take this back as well."""
        if self.processor.open_batch() is not None:
            self._if_undone.append(undo)

    # -- finding items

    @overload
    def item(self, item_id: bytes) -> Handle: ...
    @overload
    def item(self, item_id: bytes, kind: type[Kind]) -> Kind: ...  # type: ignore[overload-overlap]
    @overload
    def item(self, item_id: bytes, kind: type[Record]) -> Object[Record]: ...
    def item(self, item_id: bytes, kind: type[Any] = Handle) -> Any:
        """An item by its id; the id of a forked item leads to the new item.

        With a `kind` (`Object`, `List`, `Text`, `Thread`, `File`) it must be of that kind, and a type checker knows it.
        A class with a schema gives an object that reads as that class.
        """
        found = self.processor.item(need_id(item_id))
        if found.forked_to:
            found = self.processor.item(lead(bytes(found.id), self._forked_to))
        wanted, record = (kind, None) if issubclass(kind, Handle) else (Object, kind)
        handle = self.handle(found, record)
        if not isinstance(handle, wanted):
            raise InvalidInput(f"item {handle.id} is a {type(handle).__name__}, not a {wanted.__name__}")
        return handle

    def _forked_to(self, item: bytes) -> bytes:
        """What an item was forked into, if that has come."""
        with self.processor.locked() as engine:
            state = engine.find(item)
            return state.forked_to if state is not None and engine.find(state.forked_to) is not None else b""

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
        """The handle of an item, of the kind of its model. An object reads as the class `record`, if there is one."""
        kind = _KINDS.get(item.model[0], Handle)
        return Object(self, item, record) if kind is Object else kind(self, item)

    @overload
    def query(
        self,
        query: Filter | None = None,
        *,
        type: builtins.type[Record],
        **parts: Unpack[Narrowing],
    ) -> Results[Object[Record]]: ...
    @overload
    def query(self, query: Query | Filter | None = None, **parts: Unpack[Parts]) -> Results: ...
    def query(self, query: Query | Filter | None = None, **parts: Unpack[Parts]) -> Results[Any]:
        """The items that a query asks for.

        Pass a whole `Query`, or say here which `type`, `where` (a filter), `match` (words), `order` ("title",
        "-priority", or several), `limit`, and whether the `deleted` ones are shown.
        """
        whole = asked(query, parts, self.key, self.queries.lead)
        if whole.aggregate is not None:
            raise InvalidInput("a query that counts or sums finds no items; ask for its `aggregate`")
        return Results(self, whole, self.queries.run(whole).ids, record_of(parts))

    def count(self, query: Query | Filter | None = None, **parts: Unpack[Parts]) -> int:
        """How many items a query asks for, said as in `query`; none of them is looked at."""
        whole = asked(query, parts, self.key, self.queries.lead)
        if whole.aggregate is not None:
            raise InvalidInput("this query counts or sums already; ask for its `aggregate`")
        check(whole)
        found = int(self.queries.aggregate(replace(whole, order=(), limit=None).count()))
        return found if whole.limit is None else min(found, whole.limit)

    def aggregate(self, query: Query, **parts: Unpack[Parts]) -> Any:
        """The value of a query with an aggregate; of one with groups, the pairs of group and value.

        `type`, `where`, `match` and `deleted` narrow it, as in `query`.
        """
        return self.queries.aggregate(narrowed(query, parts, self.key, self.queries.lead))

    @overload
    def subscribe(
        self,
        query: Filter | None = None,
        callback: Callable[[Delta[Object[Record]]], builtins.object] | None = None,
        *,
        type: builtins.type[Record],
        **parts: Unpack[Narrowing],
    ) -> Subscription[Delta[Object[Record]]]: ...
    @overload
    def subscribe(
        self,
        query: Query | Filter | None = None,
        callback: Callable[[Delta], builtins.object] | None = None,
        **parts: Unpack[Parts],
    ) -> Subscription[Delta]: ...
    def subscribe(
        self,
        query: Query | Filter | None = None,
        callback: Callable[[Any], builtins.object] | None = None,
        **parts: Unpack[Parts],
    ) -> Subscription[Any]:
        """A standing query, said as in `query`: it has its result, and tells of each change.

        With a callback it lasts until it is closed, or the party is; without, as long as you hold it.
        """
        whole = asked(query, parts, self.key, self.queries.lead)
        return self.queries.subscribe(whole, callback, delta_of(self, whole, record_of(parts)))

    def near(self, item: Handle, way: Way) -> Results:
        """Where a way leads to from one item, deleted or not; but not what is deleted."""
        start = Query(Fact.ID.is_(item.id), deleted=Deleted.SHOWN)
        return Results(self, start.step(way), self.queries.near(bytes(item.id), way).ids)

    def view(self, key: bytes) -> Handle:
        """The view with this inception key. Should there be several geneses of it, the first holds."""
        found = self.query(Query(Fact.VIEW_KEY.is_(bytes(need_key(key, "a view"))), deleted=Deleted.SHOWN))
        if not found:
            raise UnknownItem(f"party {self.key.short} holds no view {bytes(key).hex()[:8]}, or not yet")
        return self.item(found.ids[0])

    def views(self, view_class: str | None = None) -> Results:
        """The views of the party, of one class or all."""
        of_class = EVERYTHING if view_class is None else Fact.VIEW_CLASS.is_(view_class)
        return self.query(Fact.VIEW_KEY.exists(), where=of_class)

    def items(self) -> Results:
        """Everything that is not deleted."""
        return self.query(EVERYTHING)

    def parent_of(self, item_id: bytes) -> bytes:
        """The id of the item that one hangs under; empty at the top."""
        return self.queries.parent_of(bytes(item_id))

    def closure(self, item_id: bytes) -> builtins.list[bytes]:
        """The ids of an item and of what belongs to it: see `Handle.closure`."""
        return self.queries.closure(bytes(item_id))

    # -- time

    @property
    def timeframe(self) -> Timeframe:
        """What of each feed is in what you see: keep it, and come back to it with `at`."""
        return self.processor.timeframe

    def at(self, timeframe: Timeframe) -> PartyPast:
        """The party as it was."""
        return self.processor.at(need_timeframe(timeframe))

    def undo_stack(self) -> UndoStack:
        """Undo and redo of this device's own changes, from now on; what others changed stays."""
        return UndoStack(self.processor)

    # -- state

    def status(self) -> Status:
        """How the party is doing on this device: counts of items and messages, and feeds that wait."""
        return self.processor.status()

    def refused(self) -> builtins.list[Refused]:
        """Messages that do not count, each with the reason."""
        return self.processor.refused()

    def erase(self, *stamps: Stamp) -> None:
        """Make messages void everywhere; their bytes go with `epochs.prune`, once a final epoch covers them."""
        erase(self, stamps)

    def export(
        self, path: str | Path, *, whole: bool = False, files: bool = True, tick: Tick = no_tick
    ) -> ExportReport:
        """Write it into a CAR file: control feeds, the last snapshot, the messages since; with `whole`, all messages.

        `files` takes the contents of files along, as far as they are here.
        """
        return export_party(self.processor, self.member.machine, path, whole=whole, files=files, tick=tick)

    def release(self) -> None:
        """Let go of subscriptions, before it is closed."""
        self.queries.close()
