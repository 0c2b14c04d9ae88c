"""`Handle`: an item as an application uses it. It has no state of its own: it always shows the current state.

This module has the members that every item has: name, type, hierarchy, links, history, writers. The subclasses
`Object`, `List`, `Text`, `Thread` and `File` add the members of each model.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from antiphon.api.inputs import need_callable, need_handle, need_key, need_text, need_timeframe
from antiphon.api.items.nested import NestedDict, NestedList
from antiphon.api.locator import Locator
from antiphon.core.errors import AntiphonError, InvalidInput, UnknownItem
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.model.value import Reference, Value
from antiphon.party.live.history import Event, Past
from antiphon.party.live.item import Item
from antiphon.party.live.past_epochs import Earlier, Fetch, earlier
from antiphon.query.filters import Fact
from antiphon.query.query import Way

if TYPE_CHECKING:
    from antiphon.api.items.list import List
    from antiphon.api.items.object import Object
    from antiphon.api.items.text import Text
    from antiphon.api.items.thread import Thread
    from antiphon.api.party import Party
    from antiphon.api.query.results import Results

Self = TypeVar("Self", bound="Handle")
_REPR = Repr()
_REPR.maxdict = _REPR.maxlist = 8
_REPR.maxstring = _REPR.maxother = 80


class Handle:
    """An item of an open party. Handles of the same item are equal, and can be created freely.

    `Party.item`, `Party.query` and the methods that create items return handles.
    """

    __slots__ = ("__weakref__", "item", "party")

    def __init__(self, party: Party, item: Item) -> None:
        self.party = party
        self.item = item

    def __repr__(self) -> str:
        try:
            shown = f"{self.name!r} {_REPR.repr(self.value)}"
        except AntiphonError as error:
            shown = f"({builtins.type(error).__name__})"
        return f"<{builtins.type(self).__name__} {self.id.hex()[:10]} {shown}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.item == other.item

    def __hash__(self) -> int:
        return hash(self.item)

    def __bool__(self) -> bool:
        return True  # an item exists even if it is empty; use `len` to test for that

    @property
    def id(self) -> ItemId:
        """The id of the item, unique in its party: 16 bytes."""
        return self.item.id

    @property
    def reference(self) -> Reference:
        """A reference to the item that is valid everywhere, also in other parties."""
        return Reference(bytes(self.id), bytes(self.party.key))

    @property
    def value(self) -> Value:
        """The content of the item as plain Python values."""
        return self.item.value

    @property
    def opaque(self) -> bool:
        """True if the code of its model is not installed. It has no value then; its messages are kept."""
        return self.item.opaque

    def snapshot(self) -> bytes:
        """Return the state as canonical bytes. They are equal on all devices that have the same messages."""
        return self.item.snapshot()

    @property
    def model(self) -> str:
        """The name of its model, such as `antiphon/object`."""
        return self.item.model[0]

    # -- metadata

    @property
    def name(self) -> str:
        """The display name. Assign to it to rename the item."""
        return self.item.display_name

    @name.setter
    def name(self, name: str) -> None:
        self.item.set_metadata("display_name", need_text(name, "the name of an item"))

    @property
    def type(self) -> str:
        """The kind of thing that the item represents, such as the name of its schema; empty if it has none."""
        return self.item.type

    @type.setter  # noqa: A003 - what everybody calls it
    def type(self, name: str) -> None:
        self.item.set_metadata("type", need_text(name, "the type of an item"))

    @property
    def metadata(self) -> dict[str, Any]:
        """A copy of the metadata: display name, type, and your own keys. Change it with `set_metadata`."""
        return self.item.metadata

    def set_metadata(self, key: str, value: Any) -> None:
        """Write one metadata value.

        The access list, the embedded items and the key of a view cannot be written this way: use `restrict_writers` and
        `embed`.
        """
        self.item.set_metadata(need_text(key, "a key of metadata"), plain(value, self.party))

    # -- hierarchy

    @property
    def parent(self) -> Handle | None:
        """The parent in the hierarchy; None at the top, or if the parent has not arrived."""
        parent = self.party.parent_of(self.id)
        if not parent or parent == SYSTEM_ITEM:
            return None
        try:
            return self.party.item(parent)
        except UnknownItem:
            return None

    @property
    def children(self) -> Results:
        """The items directly under this one that are not deleted, in the order of creation."""
        if self.id == SYSTEM_ITEM:  # items without a parent are children of the party's root
            return self.party.query(~Fact.PARENT.exists() | Fact.PARENT.is_(self.id))
        return self.party.neighbours(self, Way.CHILDREN)

    def move_under(self, parent: Handle | None) -> None:
        """Move the item under another parent, or to the top (None).

        If concurrent moves would form a cycle, all devices break it in the same way.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     board, task = party.object(name="Board"), party.object(name="Task")
        ...     task.move_under(board)
        ...     task.parent.name
        'Board'
        """
        if parent is None:
            self.item.move(None)
            return
        self._same_party(parent, "its parent")
        with self.party.processor.locked():
            if self == parent or self.id in self.party.queries.above(bytes(parent.id)):
                raise InvalidInput(f"item {self.id} cannot be moved under {parent.id}, which is itself or below it")
            self.item.move(parent.id)

    def _same_party(self, other: Handle, what: str) -> None:
        need_handle(other, what)
        if other.party.key != self.party.key:
            raise InvalidInput(f"item {self.id}: {what} must be of its own party; refer to items of other parties")

    def embed(self: Self, child: Handle) -> None:
        """Make another item a part of this one, so that it belongs to the same views and their snapshots.

        An item has one parent, but can be embedded in several items.
        """
        self._same_party(child, "the argument of `embed`")
        self.item.embed(child.id)

    def release(self, child: Handle) -> None:
        """Undo `embed`: the other item is no longer a part of this one."""
        self.item.release(need_handle(child, "the argument of `release`").id)

    @property
    def embedded(self) -> Results:
        """The items that are embedded in this one and not deleted."""
        return self.party.neighbours(self, Way.EMBEDS)

    @overload
    def create(self, model: Literal["antiphon/object"] = ..., *, name: str = ..., type: str = ...) -> Object: ...
    @overload
    def create(self, model: Literal["antiphon/array"], *, name: str = ..., type: str = ...) -> List: ...
    @overload
    def create(self, model: Literal["antiphon/text"], *, name: str = ..., type: str = ...) -> Text: ...
    @overload
    def create(self, model: Literal["antiphon/messenger"], *, name: str = ..., type: str = ...) -> Thread: ...
    @overload
    def create(self, model: str, *, name: str = ..., type: str = ...) -> Handle: ...
    def create(self, model: str = "antiphon/object", *, name: str = "", type: str = "") -> Handle:  # noqa: A002
        """Create an item under this one, and embed it: it belongs to this item in views and snapshots.

        `model`, `name` and `type` are those of `Party.create`.
        """
        with self.party.processor.batch():
            child = self.party.create(model, parent=self, name=name, type=type)
            self.embed(child)
            return child

    def links(self, *, back: bool = False) -> Results:
        """The links that start at this item; with `back`, those that end here. A link has `source` and `target`."""
        return self.party.neighbours(self, Way.BACKLINKS if back else Way.LINKS)

    @property
    def referrers(self) -> Results:
        """The items of this party whose values refer to this one."""
        return self.party.neighbours(self, Way.REFERRERS)

    @property
    def source(self) -> Handle | None:
        """The item at which this link starts; None if it has not arrived. `InvalidInput` if this is no link."""
        return self._end(0)

    @property
    def target(self) -> Handle | None:
        """The item at which this link ends; None if it has not arrived. `InvalidInput` if this is no link."""
        return self._end(1)

    def _end(self, which: int) -> Handle | None:
        link = self.item.link
        if link is None:
            raise InvalidInput(f"item {self.id} is no link")
        try:
            return self.party.item(link[which])
        except UnknownItem:
            return None

    # -- views

    @property
    def locator(self) -> Locator:
        """The permanent global address of this view, for `Store.resolve` and `Store.hold_view`. `str` gives its text.

        An item that a view was forked into has the same address. `InvalidInput` if this item is no view.
        """
        key = self.item.metadata.get("view_key") or self.party.queries.view_key(bytes(self.id))
        if not key:
            raise InvalidInput(f"item {self.id} is no view; views are made with `create_view`, and have a locator")
        return Locator(self.party.key, PublicKey(key))

    def closure(self) -> list[Handle]:
        """Return this item and all items that belong to it, deleted or not.

        These are the items embedded in it or below it, those embedded in or below them, and so on; and the links
        between them.
        """
        return list(dict.fromkeys(self.party.item(item) for item in self.party.closure(self.id)))

    # -- deletion, history, changes

    @property
    def deleted(self) -> bool:
        """True if the item is deleted, and so hidden from queries."""
        return self.item.deleted

    def delete(self) -> None:
        """Delete the item: queries hide it. Its content is kept, and `restore` brings it back."""
        self.item.delete()

    def restore(self) -> None:
        """Undo `delete`: queries find the item again."""
        self.item.restore()

    def fork(self, *, version: int | None = None) -> Handle:
        """Create an item of another version of the model, by default the latest, and return it.

        The new item has the content, the metadata, the embedded items and the writers of this one. This item is
        deleted, and references to it lead to the new item.
        """
        with self.party.processor.batch():
            made = self.item.fork(version=version)
            self.item.delete()
            return self.party.handle(made)

    def history(self) -> list[Event]:
        """List the messages to this item, in the order that all devices agree on. Void messages have a reason."""
        return self.item.history()

    def at(self, timeframe: Timeframe) -> Past:
        """Return the item as it was at a timeframe, read-only.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     note = party.text("Draft")
        ...     before = party.timeframe
        ...     note.append(" 2")
        ...     note.at(before).value, str(note)
        ('Draft', 'Draft 2')
        """
        return self.item.at(need_timeframe(timeframe))

    async def earlier(self, number: int | None = None, *, fetch: Fetch | None = None) -> Earlier:
        """Return the item as it is in the snapshot of an earlier epoch, by default the one before the last.

        `fetch` gets missing blobs from a peer. Without it, `MissingBlob` names the first that is missing.
        """
        return await earlier(self.party.processor, bytes(self.id), number, fetch)

    def observe(self: Self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Call a function with this handle after each change of the item. Return a function that stops it.

        Observing stops when this handle is garbage-collected: keep a reference to it.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     task = store.create_party().object({"title": "Plan"})
        ...     stop = task.observe(lambda task: print(task["title"]))
        ...     task["title"] = "Do"
        ...     stop()
        Do
        """
        need_callable(callback, "an observer")
        return self.party.processor.listeners.observe(self, self.id, callback)

    def edit(self, command: str, *arguments: Any, **options: Any) -> Stamp:
        """Run a command of the model by its name, and return the stamp of the message.

        Use it for models without a handle class, and for commands without a method: `task.edit("counter", "votes")`.
        """
        return self.item.edit(command, *[plain(argument, self.party) for argument in arguments], **options)

    def inspect(self, question: Callable[[Any, Any], Any]) -> Any:
        """Call a function with the model and its state, and return the result. It must change neither."""
        return self.item.read(question)

    # -- who may write

    @property
    def writers(self) -> tuple[bytes, ...] | None:
        """The identities and groups that may write to the item, besides the party owners; None for all editors."""
        return self.item.writers

    def restrict_writers(self, *names: bytes | str) -> None:
        """Let only these identities and groups, yourself, and the owners of the party write to the item.

        Messages of others that have not arrived on this device become void. `allow_all_writers` lifts the restriction.
        """
        self.item.restrict_writers(*[need_key(name, "who may write") for name in names])

    def allow_all_writers(self) -> None:
        """Let all editors of the party write to the item again."""
        self.item.allow_all_writers()


def plain(value: Any, party: Party) -> Value:
    """Convert a value to the form that items store: handles become references."""
    if isinstance(value, Handle):
        value = value.reference
    if isinstance(value, Reference):  # inside one party, a reference does not name the party
        return Reference(value.item) if value.party == party.key else value
    if isinstance(value, Mapping):
        return {key: plain(part, party) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, party) for part in value]
    if isinstance(value, set | frozenset):
        return {plain(part, party) for part in value}
    return value


def shown(value: Value, party: Party, *, detached: bool = False) -> Any:
    """Convert a stored value for the application: a reference to an item of an open party becomes a handle.

    Lists and dicts inside an item refuse changes, unless the value is `detached`: no longer in the item. Call this
    without the lock of a party, except inside a batch of the application.
    """
    if isinstance(value, Reference):
        found = party.store.try_resolve(value, party)
        return value if found is None else found
    if isinstance(value, dict):
        parts = {key: shown(part, party, detached=detached) for key, part in value.items()}
        return parts if detached else NestedDict(parts)
    if isinstance(value, list):
        elements = [shown(part, party, detached=detached) for part in value]
        return elements if detached else NestedList(elements)
    return value


def each(values: list[Value], party: Party) -> Iterator[Any]:
    """Yield values in the form for the application."""
    return (shown(value, party) for value in values)
