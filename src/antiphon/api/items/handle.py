"""`Handle`: an item as an application holds it. It has no state of its own: it shows what is there now.

What every item has is here: name, type, place in the hierarchy, links, history, who may write. What it holds is its
model's, and stands in the kinds of handle: `Object`, `List`, `Text`, `Thread`.
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
    """An item of an open party. Equal handles are of one item; make as many as you like."""

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
        return True  # an item is there, however little it holds: `len` tells that

    @property
    def id(self) -> ItemId:
        """The id of the item, unique in its party: 16 bytes."""
        return self.item.id

    @property
    def reference(self) -> Reference:
        """What names it from anywhere, other parties too."""
        return Reference(bytes(self.id), bytes(self.party.key))

    @property
    def value(self) -> Value:
        """What it holds, as plain Python values."""
        return self.item.value

    @property
    def opaque(self) -> bool:
        """Whether no code for its model is here: then it has no value to show, and its messages wait."""
        return self.item.opaque

    def snapshot(self) -> bytes:
        """Its canonical bytes: equal on every device that has the same messages."""
        return self.item.snapshot()

    @property
    def model(self) -> str:
        """The name of its model, such as `antiphon/object`."""
        return self.item.model[0]

    # -- metadata

    @property
    def name(self) -> str:
        """Its display name."""
        return self.item.display_name

    @name.setter
    def name(self, name: str) -> None:
        self.item.set_metadata("display_name", need_text(name, "the name of an item"))

    @property
    def type(self) -> str:
        """What kind of thing it is, the name of its schema say; empty if nobody said."""
        return self.item.type

    @type.setter  # noqa: A003 - what everybody calls it
    def type(self, name: str) -> None:
        self.item.set_metadata("type", need_text(name, "the type of an item"))

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known about it besides what it holds; a copy, to be changed with `set_metadata`."""
        return self.item.metadata

    def set_metadata(self, key: str, value: Any) -> None:
        """Write metadata. What follows from the item itself (its access list, a view's key) is not written."""
        self.item.set_metadata(need_text(key, "a key of metadata"), plain(value, self.party))

    # -- hierarchy

    @property
    def parent(self) -> Handle | None:
        """The item that it hangs under; None at the top, or where that item is not here."""
        parent = self.party.parent_of(self.id)
        if not parent or parent == SYSTEM_ITEM:
            return None
        try:
            return self.party.item(parent)
        except UnknownItem:
            return None

    @property
    def children(self) -> Results:
        """What hangs under it and is not deleted, in the order of making."""
        if self.id == SYSTEM_ITEM:  # what hangs nowhere hangs under the party's root
            return self.party.query(~Fact.PARENT.exists() | Fact.PARENT.is_(self.id))
        return self.party.neighbours(self, Way.CHILDREN)

    def move_under(self, parent: Handle | None) -> None:
        """Hang it under another item, or at the top."""
        if parent is None:
            self.item.move(None)
            return
        self._same_party(parent, "its parent")
        with self.party.processor.locked():
            if self == parent or self.id in self.party.queries.above(bytes(parent.id)):
                raise InvalidInput(f"item {self.id} cannot hang under {parent.id}, which is itself or below it")
            self.item.move(parent.id)

    def _same_party(self, other: Handle, what: str) -> None:
        need_handle(other, what)
        if other.party.key != self.party.key:
            raise InvalidInput(f"item {self.id}: {what} must be of its own party; refer to items of other parties")

    def embed(self: Self, child: Handle) -> None:
        """Make another item a part of this one: views, snapshots and whoever follows them take it along."""
        self._same_party(child, "what it embeds")
        self.item.embed(child.id)

    def release(self, child: Handle) -> None:
        """The other item is a part of this one no longer."""
        self.item.release(need_handle(child, "what it releases").id)

    @property
    def embedded(self) -> Results:
        """The items that are embedded in it and not deleted."""
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
        """A new item that hangs under this one, and is embedded in it."""
        with self.party.processor.batch():
            child = self.party.create(model, parent=self, name=name, type=type)
            self.embed(child)
            return child

    def links(self, *, back: bool = False) -> Results:
        """The links that begin here, or with `back` that end here. A link is an item, with an end at each side."""
        return self.party.neighbours(self, Way.BACKLINKS if back else Way.LINKS)

    @property
    def referrers(self) -> Results:
        """The items of this party whose values refer to it."""
        return self.party.neighbours(self, Way.REFERRERS)

    @property
    def source(self) -> Handle | None:
        """Of a link: the item that it begins at, if that is here."""
        return self._end(0)

    @property
    def target(self) -> Handle | None:
        """Of a link: the item that it ends at, if that is here."""
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
        """The address of a view, or of what it was forked into; it holds everywhere."""
        key = self.item.metadata.get("view_key") or self.party.queries.view_key(bytes(self.id))
        if not key:
            raise InvalidInput(f"item {self.id} is no view; views are made with `create_view`, and have a locator")
        return Locator(self.party.key, PublicKey(key))

    def closure(self) -> list[Handle]:
        """It and everything that belongs to it, deleted or not.

        That is what is embedded in it or hangs under it, and so on, with the links between any of these.
        """
        return list(dict.fromkeys(self.party.item(item) for item in self.party.closure(self.id)))

    # -- life

    @property
    def deleted(self) -> bool:
        """True if it is deleted, and so hidden from queries."""
        return self.item.deleted

    def delete(self) -> None:
        """Mark it deleted. Queries hide it; `restore` brings it back."""
        self.item.delete()

    def restore(self) -> None:
        """Undo `delete`: queries find it again."""
        self.item.restore()

    def fork(self, *, version: int | None = None) -> Handle:
        """A new item of another version of the model, with what is known about this one; references lead there.

        This one stays as a tombstone, which queries hide like what is deleted.
        """
        with self.party.processor.batch():
            made = self.item.fork(version=version)
            self.item.delete()
            return self.party.handle(made)

    def history(self) -> list[Event]:
        """Every message to it, in the order that all agree on, the refused ones with the reason."""
        return self.item.history()

    def at(self, timeframe: Timeframe) -> Past:
        """The item as it was."""
        return self.item.at(need_timeframe(timeframe))

    async def earlier(self, number: int | None = None, *, fetch: Fetch | None = None) -> Earlier:
        """The item as the snapshot of an earlier epoch has it, by default of the one before the last.

        Blobs that are not held are got with `fetch`; without, `MissingBlob` names the first.
        """
        return await earlier(self.party.processor, bytes(self.id), number, fetch)

    def observe(self: Self, callback: Callable[[Self], None]) -> Callable[[], None]:
        """Call back after each change of it; returns how to stop. It ends with this handle at the latest."""
        need_callable(callback, "an observer")
        return self.party.processor.listeners.observe(self, self.id, callback)

    def edit(self, command: str, *arguments: Any, **options: Any) -> Stamp:
        """Run one of the model's own commands."""
        return self.item.edit(command, *[plain(argument, self.party) for argument in arguments], **options)

    def inspect(self, question: Callable[[Any, Any], Any]) -> Any:
        """Call a function with the model and its state, and return what it returns. It must change neither."""
        return self.item.read(question)

    # -- who may write

    @property
    def writers(self) -> tuple[bytes, ...] | None:
        """The identities and groups that may write to it, besides the party's owners; None for every editor."""
        return self.item.writers

    def restrict_writers(self, *names: bytes | str) -> None:
        """Only these, oneself, and the party's owners."""
        self.item.restrict_writers(*[need_key(name, "who may write") for name in names])

    def allow_all_writers(self) -> None:
        """Let every editor of the party write to it again."""
        self.item.allow_all_writers()


def plain(value: Any, party: Party) -> Value:
    """A value as items hold it: handles become references."""
    if isinstance(value, Handle):
        value = value.reference
    if isinstance(value, Reference):  # to its own party it needs no name
        return Reference(value.item) if value.party == party.key else value
    if isinstance(value, Mapping):
        return {key: plain(part, party) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, party) for part in value]
    if isinstance(value, set | frozenset):
        return {plain(part, party) for part in value}
    return value


def shown(value: Value, party: Party, *, detached: bool = False) -> Any:
    """A value as an application sees it: a reference to an item of an open party becomes a handle.

    Lists and dicts inside an item refuse changes, unless the value is `detached`: no longer in the item.
    Never called with a party's lock held, other than that of a batch that the application has opened.
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
    return (shown(value, party) for value in values)
