"""Everything that the messages to one item have made of it: what the fold changes, and the codecs keep."""

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
OF_THE_SYSTEM = frozenset({"access", "view_key", "id_proof"})  # metadata that is not written, but follows


class Kept(NamedTuple):
    """A mutation that is kept, because it may have to be replayed."""

    stamp: Stamp
    mutation: bytes
    void: str


class Checkpoint(NamedTuple):
    """The state after all messages up to `stamp`, as a snapshot."""

    stamp: Stamp
    state: bytes


class Raw(NamedTuple):
    """What a base holds for a model whose code is not used: its state as it was last reified. See `ItemRaw`."""

    state: bytes
    codec: int  # of the state; 0 stands for the first
    kind: int


class ItemState:
    """Everything that the messages to one item have made of it. Change it through `fold` only."""

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
        self.model = model  # None: no code for it is here, and its messages wait in their feeds
        self.genesis = genesis
        self.created_ms = 0
        self.link: tuple[bytes, bytes] | None = None
        self.view: Inception | None = None
        self.access: AccessLog | None = None  # None: nobody ever changed who may write to it
        self.parents: list[tuple[Stamp, bytes]] = []  # claims, by ascending stamp
        self.deleted: Stamp | None = None  # the last word on `is_deleted`
        self.is_deleted = False
        self.forks: list[tuple[Stamp, bytes]] = []
        self.meta: Any = None
        self.state: Any = None if model is None else model.initial()
        self.frame: dict[bytes, Stamp] = {}  # the last message of each feed that was looked at
        self.tail: list[Kept] = []  # what may be replayed; empty unless `keeps_tail`
        self.trimmed = False  # the tail no longer begins at the item's beginning
        self.checkpoints: list[Checkpoint] = []
        self.based = False  # it began as the snapshot of an epoch, which is final
        self.base_count = 0  # how many messages of the tail that had: they stay in front, in their order
        self.raw: Raw | None = None  # what the base holds, where the model's code is not used

    @property
    def value(self) -> Any:
        return None if self.model is None else self.model.value(self.state)

    @property
    def metadata(self) -> dict[str, Any]:
        """What was written, and what follows from the item itself: a view's key and proof, who may write to it."""
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
        return self._text("display_name")

    @property
    def type(self) -> str:
        return self._text("type")

    @property
    def view_class(self) -> str:
        return self._text("view_class")

    @property
    def embedded(self) -> tuple[bytes, ...]:
        """The items that are embedded in it, ascending: members of a set, which alone were checked when they came.
        A list that a peer wrote there says nothing."""
        node = self._written(EMBEDDED)
        if node is None or shown(node) is not Mark.SET:
            return ()
        known = render(node, Mark.SET)
        return tuple(sorted(one.item for one in known if isinstance(one, Reference) and not one.party))

    def _text(self, key: str) -> str:
        """A text in the metadata; empty where a peer wrote something else."""
        found = self._said(key)
        return found if isinstance(found, str) else ""

    def _said(self, key: str) -> Any:
        """What was written at one key of the metadata, without a look at the others."""
        node = self._written(key)
        return None if node is None else render(node, shown(node))

    def _written(self, key: str) -> Node | None:
        return None if self.meta is None else self.meta.root.children.get(key)

    @property
    def parent(self) -> bytes:
        """The last claim. Where claims of several items make a circle, the tree is derived from all of them."""
        return self.parents[-1][1] if self.parents else b""

    @property
    def forked_to(self) -> bytes:
        return self.forks[0][1] if self.forks else b""
