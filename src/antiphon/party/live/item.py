"""`Item`: a handle on an item of a live party. It holds no state: every read shows the current one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import InvalidInput
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.core.timeframe import Timeframe
from antiphon.model.access import EVERYONE
from antiphon.model.fold import ItemState
from antiphon.model.item_state import EMBEDDED, META, OF_THE_SYSTEM
from antiphon.model.message import Change
from antiphon.model.model import Model
from antiphon.model.object.state import ObjectState
from antiphon.model.value import Reference, Value
from antiphon.party.live.batch import known_model
from antiphon.party.live.history import Event, Past, history

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


class Item:
    """A handle on an item, by its id. Handles are cheap."""

    __slots__ = ("__weakref__", "_party", "id")

    def __init__(self, party: PartyProcessor, item_id: bytes) -> None:
        self._party = party
        self.id = ItemId(item_id)

    def __repr__(self) -> str:
        return f"Item({self.id.hex()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and (self.id, self._party) == (other.id, other._party)

    def __hash__(self) -> int:
        return hash(self.id)

    def _state(self) -> ItemState:
        with self._party.locked() as engine:
            item = engine.entry(self.id).item
            assert item is not None
            return item

    def read(self, question: Callable[[Any, Any], Any]) -> Any:
        """Call a function with the model and the state: `text.read(lambda model, state: model.spans(state))`."""
        with self._party.locked():
            item = self._state()
            return question(known_model(item), item.state)

    @property
    def value(self) -> Any:
        """The item's content as plain Python values."""
        return self.read(lambda model, state: model.value(state))

    @property
    def model(self) -> tuple[str, int]:
        """The name and version of the item's model."""
        item = self._state()
        return item.name, item.version

    @property
    def opaque(self) -> bool:
        """True if no code for the item's model is here."""
        return self._state().model is None

    @property
    def metadata(self) -> dict[str, Any]:
        """The item's metadata."""
        with self._party.locked():
            return self._state().metadata

    @property
    def display_name(self) -> str:
        """The item's display name, from its metadata."""
        with self._party.locked():
            return self._state().display_name

    @property
    def type(self) -> str:
        """The item's type, from its metadata."""
        with self._party.locked():
            return self._state().type

    @property
    def embedded(self) -> tuple[bytes, ...]:
        """The ids of the items embedded in it, ascending, whether they are here or not."""
        with self._party.locked():
            return self._state().embedded

    @property
    def parent(self) -> bytes:
        """The parent that the item claims; empty if none. `PartyProcessor.parents` resolves cycles."""
        return self._state().parent

    @property
    def link(self) -> tuple[bytes, bytes] | None:
        """The ids at the two ends of a link; None if the item is no link."""
        return self._state().link

    @property
    def deleted(self) -> bool:
        """True if the item is deleted."""
        return self._state().is_deleted

    @property
    def forked_to(self) -> bytes:
        """The id of the item that this one was forked to; empty if none."""
        return self._state().forked_to

    @property
    def created_ms(self) -> int:
        """When the item was created, by its creator's clock."""
        return self._state().created_ms

    @property
    def timeframe(self) -> Timeframe:
        """The last message of each feed that is folded into the state."""
        with self._party.locked():
            return Timeframe({feed: stamp.seq for feed, stamp in self._state().frame.items()})

    def snapshot(self) -> bytes:
        """Return the canonical bytes of the item."""
        return self._party.snapshot(self.id)

    # -- the past

    def history(self) -> list[Event]:
        """Return all messages to this item in the total order, the refused ones with the reason."""
        return history(self._party, self.id)

    def at(self, timeframe: Timeframe) -> Past:
        """Return the item at an earlier timeframe, if the messages or snapshots it needs are held."""
        return Past.of(self._party, self.id, timeframe)

    # -- writing

    def edit(self, command: str, *arguments: Any, **options: Any) -> Stamp:
        """Run one of the model's commands (`set`, `insert`, `post` …), and write the mutation that it makes."""
        batch = self._party.batch_to_join()
        if batch is not None:
            return batch.edit(self.id, command, arguments, options)
        with self._party.batch() as batch:
            return batch.edit(self.id, command, arguments, options)

    def mutate(self, mutation: bytes) -> Stamp:
        """Write a mutation in the model's own bytes."""
        with self._party.batch() as batch:
            return batch.mutate(self.id, mutation)

    def set_metadata(self, path: Any, value: Any) -> Stamp:
        """Set one metadata value, such as the display name."""
        self._may_describe(path if isinstance(path, str) else path[0] if path else "")
        return self._describe(lambda meta, feed: META.set(meta, path, value, feed=feed))

    def set_all_metadata(self, values: Mapping[str, Value]) -> None:
        """Set several metadata keys in one message. Nothing is written if there are none."""
        for key in values:
            self._may_describe(key)
        paths: dict[str | tuple[str, ...], Value] = {(key,): value for key, value in values.items()}
        if paths:
            self._describe(lambda meta, feed: META.update(meta, paths, feed=feed))

    def _may_describe(self, key: str) -> None:
        if key == EMBEDDED or key in OF_THE_SYSTEM:
            raise InvalidInput(f"item {self.id}: {key} is not set as metadata; use `embed` and `restrict_writers`")

    def _describe(self, make: Callable[[ObjectState, bytes], bytes]) -> Stamp:
        """Write one message, made from the current metadata and this device's feed."""
        with self._party.batch() as batch:
            meta = self._state().meta
            return batch.describe(self.id, make(META.initial() if meta is None else meta, batch.feed))

    def embed(self, item: bytes) -> Stamp:
        """Embed another item: it is then part of this one in views and their snapshots."""
        added = Reference(bytes(item))

        def make(meta: ObjectState, feed: bytes) -> bytes:
            try:
                return META.add(meta, EMBEDDED, added, feed=feed)
            except InvalidInput:  # a peer wrote a value of another type there: replace it
                return META.set(meta, EMBEDDED, {added}, feed=feed)

        with self._party.batch():
            self._party.item(item)
            return self._describe(make)

    def release(self, item: bytes) -> Stamp:
        """End the embedding of an item."""
        removed = Reference(bytes(item))
        return self._describe(lambda meta, feed: META.remove(meta, EMBEDDED, removed, feed=feed))

    # -- who may write

    @property
    def writers(self) -> tuple[bytes, ...] | None:
        """The identities and groups that may write to the item, besides the owners of the party; None: all members."""
        with self._party.locked():
            access = self._state().access
            return None if access is None else access.names()

    def restrict_writers(self, *names: bytes) -> Stamp:
        """Let only these identities and groups, this device's own identity and the party's owners write from now on.

        Messages of others that have not arrived here become void, whenever they were written.
        """
        with self._party.batch() as batch:
            wanted = {bytes(name) for name in names} | {batch.author().identity}
            return batch.guard(self.id, wanted, batch.ever_named(self.id) - wanted)

    def allow_all_writers(self) -> Stamp:
        """Let all members that may write in the party write to the item again."""
        with self._party.batch() as batch:
            return batch.guard(self.id, [EVERYONE], [])

    def move(self, parent: bytes | None) -> Stamp:
        """Move the item under another parent, or under none."""
        with self._party.batch() as batch:
            return batch.change(self.id, Change(parent=parent or b""))

    def delete(self) -> Stamp:
        """Delete the item. Its state stays, and `restore` brings it back."""
        with self._party.batch() as batch:
            return batch.change(self.id, Change(deleted=True))

    def restore(self) -> Stamp:
        """Restore a deleted item."""
        with self._party.batch() as batch:
            return batch.change(self.id, Change(deleted=False))

    def fork(self, *, version: int | None = None) -> Item:
        """Make a new item of another version of the model, with this item's state, metadata and access list.

        This item then refers to the new one as its fork.
        """
        with self._party.batch() as batch:
            item = self._state()
            newer = self._party.models.get(item.name, version)

            def migrate(model: Model[Any], state: Any) -> list[bytes]:
                snapshot = model.snapshot(state) if model.has_snapshot else self.snapshot()
                return newer.migrate(item.version, snapshot, batch.feed)

            mutations = self.read(migrate)
            made = batch.create(newer.name, newer.version, item.parent, item.link)
            for mutation in mutations:
                batch.mutate(made, mutation)
            batch.change(self.id, Change(forked_to=made))
            fork = Item(self._party, made)
            for key, value in item.metadata.items():
                if key != EMBEDDED and key not in OF_THE_SYSTEM:
                    fork.set_metadata(key, value)
            for other in item.embedded:
                if self._party.engine.find(other) is not None:  # peers can name an item that does not exist
                    fork.embed(other)
            if self.writers is not None:
                fork.restrict_writers(*self.writers)
            return fork

    # -- listening

    def observe(self, callback: Callable[[Item], None]) -> Callable[[], None]:
        """Call back after each change of this item, until the returned function is called or this handle is gone."""
        return self._party.listeners.observe(self, self.id, callback)
