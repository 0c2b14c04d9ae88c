"""`ItemState`: the state of one item. The fold changes it, and the codecs store it."""

from __future__ import annotations

from typing import Any, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.access import AccessLog
from antiphon.model.message import Inception
from antiphon.model.model import Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.object.register import Mark, Node
from antiphon.model.object.view import render, shown
from antiphon.model.value import Reference

META = ObjectModel()  # the model of every item's metadata
EMBEDDED = "embedded_items"  # metadata: the set of items embedded in an item
OF_THE_SYSTEM = frozenset({"access", "view_key", "id_proof"})  # metadata that the system derives and nobody writes


class KeptMessage(NamedTuple):
    """A mutation that is kept, because it may be replayed."""

    stamp: Stamp
    mutation: bytes
    void: str


class Checkpoint(NamedTuple):
    """The state after all messages up to `stamp`, as a snapshot."""

    stamp: Stamp
    state: bytes


class Raw(NamedTuple):
    """The part of a base that belongs to a model whose code is not used: its last reified state. See `ItemRaw`."""

    state: bytes
    codec: int  # of the state; 0 means the first
    kind: int


class ItemState:
    """The state of one item after its messages. Only `fold` may change it."""

    __slots__ = (
        "access",
        "base_count",
        "based",
        "checkpoints",
        "created_ms",
        "deleted",
        "forks",
        "frame",
        "genesis",
        "hidden",
        "id",
        "is_deleted",
        "link",
        "meta",
        "model",
        "name",
        "parents",
        "raw",
        "state",
        "tail",
        "trimmed",
        "version",
        "view",
    )

    def __init__(self, item: bytes, name: str, version: int, model: Model[Any] | None, genesis: Stamp) -> None:
        self.id = item
        self.name = name
        self.version = version
        self.model = model  # None: its code is missing, and the messages wait in their feeds
        self.genesis = genesis
        self.hidden = ""  # why the genesis is void, until another identity builds on the item
        self.created_ms = 0
        self.link: tuple[bytes, bytes] | None = None
        self.view: Inception | None = None
        self.access: AccessLog | None = None  # None: nobody ever changed the access list
        self.parents: list[tuple[Stamp, bytes]] = []  # claims, by ascending stamp
        self.deleted: Stamp | None = None  # the stamp of the last deletion or restoration
        self.is_deleted = False
        self.forks: list[tuple[Stamp, bytes]] = []
        self.meta: Any = None
        self.state: Any = None if model is None else model.initial()
        self.frame: dict[bytes, Stamp] = {}  # the last message of each feed that the fold has seen
        self.tail: list[KeptMessage] = []  # messages that may be replayed; empty unless `keeps_tail`
        self.trimmed = False  # the tail no longer begins at the genesis
        self.checkpoints: list[Checkpoint] = []
        self.based = False  # it was restored from the snapshot of a final epoch
        self.base_count = 0  # messages of the tail that belong to that snapshot: they stay in front, in their order
        self.raw: Raw | None = None  # the state in the base, if the code of the model is not used

    @property
    def value(self) -> Any:
        """The value that the model shows; None without the code of the model."""
        return None if self.model is None else self.model.value(self.state)

    @property
    def metadata(self) -> dict[str, Any]:
        """Written metadata, with the derived entries: key and proof of a view, and the names in the access list."""
        found: dict[str, Any] = {} if self.meta is None else META.value(self.meta)
        for key in OF_THE_SYSTEM.intersection(found):
            del found[key]
        if self.view is not None:
            found["view_key"], found["id_proof"] = self.view
        names = None if self.access is None else self.access.names()
        if names is not None:
            found["access"] = list(names)
        return found

    @property
    def display_name(self) -> str:
        """The name for users, from the metadata; may be empty."""
        return self._text("display_name")

    @property
    def type(self) -> str:
        """The type, from the metadata; may be empty."""
        return self._text("type")

    @property
    def view_class(self) -> str:
        """The class of a view, from the metadata; may be empty."""
        return self._text("view_class")

    @property
    def embedded(self) -> tuple[bytes, ...]:
        """The items that are embedded in this one, ascending.

        Only members of a set count, because only those are checked on arrival. A list that a peer wrote there does not.
        """
        node = self._written(EMBEDDED)
        if node is None or shown(node) is not Mark.SET:
            return ()
        known = render(node, Mark.SET)
        return tuple(sorted(one.item for one in known if isinstance(one, Reference) and not one.party))

    def _text(self, key: str) -> str:
        """Return a text of the metadata; empty if a peer wrote a value of another type."""
        found = self._said(key)
        return found if isinstance(found, str) else ""

    def _said(self, key: str) -> Any:
        """Return the value at one key of the metadata, without rendering the others."""
        node = self._written(key)
        return None if node is None else render(node, shown(node))

    def _written(self, key: str) -> Node | None:
        return None if self.meta is None else self.meta.root.children.get(key)

    @property
    def parent(self) -> bytes:
        """The parent by the item's own last claim. If claims of several items form a cycle, see `hierarchy`."""
        return self.parents[-1][1] if self.parents else b""

    @property
    def forked_to(self) -> bytes:
        """The item that this one was first forked into; empty for none."""
        return self.forks[0][1] if self.forks else b""
