"""The one fold that every engine calls: (an item's state, messages to it) → its state, and a verdict on each message.

Nothing here reads a clock, a disk or another item. The live pipeline calls it with messages in a causal order, Spark in
the total order; the states are equal, and so are their snapshots, byte for byte.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.ids import ItemId
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.envelope import Note, content, read_change, read_genesis
from antiphon.model.factory import ModelFactory
from antiphon.model.interface import Feeding, Model
from antiphon.model.object import ObjectModel

META = ObjectModel()
_KEEPS: dict[type[Model[Any]], bool] = {}
_MUTATION = int(Kind.MUTATION)
_TAG = 0x22  # of the field `mutation`
_new = tuple.__new__  # half the price of calling the class, for every message
CHECKPOINT_EVERY = 256  # messages of an ORDERED item between two states to roll back to

NO_BODY = "its body is not here; fetch it from a peer"
NO_ITEM = "there is no such item: its genesis is void, refused, missing, or later than this message"
OWN_PARENT = "an item cannot be its own parent"


class Kept(NamedTuple):
    """A mutation that is kept, because it may have to be replayed."""

    stamp: Stamp
    mutation: bytes
    void: str


class Checkpoint(NamedTuple):
    """The state after all messages up to `stamp`, as a snapshot."""

    stamp: Stamp
    state: bytes


class ItemState:
    """Everything that the messages to one item have made of it. Change it through `fold` only."""

    __slots__ = (
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
        "state",
        "tail",
        "trimmed",
        "version",
    )

    def __init__(self, item: bytes, name: str, version: int, model: Model[Any] | None, genesis: Stamp) -> None:
        self.id = item
        self.name = name
        self.version = version
        self.model = model  # None: no code for it is here, and its messages wait in their feeds
        self.genesis = genesis
        self.created_ms = 0
        self.link: tuple[bytes, bytes] | None = None
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

    @property
    def value(self) -> Any:
        return None if self.model is None else self.model.value(self.state)

    @property
    def metadata(self) -> Any:
        return {} if self.meta is None else META.value(self.meta)

    @property
    def parent(self) -> bytes:
        """The last claim. Where claims of several items make a circle, the tree is derived from all of them."""
        return self.parents[-1][1] if self.parents else b""

    @property
    def forked_to(self) -> bytes:
        return self.forks[0][1] if self.forks else b""


class Folded(NamedTuple):
    """The item (None: it has no valid genesis), a verdict on messages, and whether a late one needs a fold afresh.

    A verdict is the reason why a message does not count; empty for one that counts after all. Messages that are not
    among the verdicts count.
    """

    item: ItemState | None
    verdicts: dict[Stamp, str]
    late: bool = False


def is_ordered(model: Model[Any]) -> bool:
    """Whether a model must be fed in the total order: also one whose bytes would show the order of arrival."""
    return model.feeding is Feeding.ORDERED or not model.canonical


def keeps_tail(model: Model[Any]) -> bool:
    """Whether its messages are kept beside its state. Asked for every message, so each class answers once."""
    kind = type(model)
    known = _KEEPS.get(kind)
    if known is None:
        known = _KEEPS[kind] = is_ordered(model) or not model.has_snapshot
    return known


def fold(party: bytes, item_id: bytes, item: ItemState | None, notes: Sequence[Note], models: ModelFactory) -> Folded:
    """Fold messages to one item, in a causal order, into its state, which is changed in place.

    If the answer is `late`, the state is spoilt: fold the item's whole history again, in the total order.
    """
    verdicts: dict[Stamp, str] = {}
    replay: list[Kept] = []
    late = False
    plain = _plain(item)
    at, count = 0, len(notes)
    while at < count:
        if plain is not None and item is not None:
            at = plain.apply_run(item.state, item.frame, notes, at, item.genesis[0])
            if at == count:
                break
        note = notes[at]
        at += 1
        kind, lamport, feed, seq, _, message, void = note
        stamp = _new(Stamp, (lamport, feed, seq))
        try:
            if item is None:
                item = _begin(party, item_id, note, models)
                plain = _plain(item)
                item.frame[feed] = stamp
                # Messages to an id that nobody could know yet: in the total order they may stand after its genesis.
                late = bool(verdicts) and max(verdicts) > stamp
                continue
            item.frame[feed] = stamp
            if lamport <= item.genesis[0] and stamp < item.genesis:
                raise InvalidMutation(NO_ITEM)
            if message is None:
                raise InvalidMutation(NO_BODY)
            if kind == _MUTATION:
                # Most messages are short and hold the one field: see `content`.
                size = len(message)
                short = 1 < size < 130 and message[0] == _TAG and message[1] == size - 2
                mutation = message[2:] if short else content(kind, message)
                if plain is not None and not void:
                    try:
                        plain.apply(item.state, mutation, stamp)
                    except (InvalidInput, MemoryError):
                        raise
                    except Exception as error:
                        raise _failed(plain, error) from error
                    continue
                model = item.model
                if model is None:
                    pass  # its messages wait in their feeds, until its code is here
                elif plain is None:
                    replay.append(Kept(stamp, mutation, void))
                else:
                    _apply(model, item.state, mutation, stamp, void)
            elif not void:
                _apply_other(item, note, stamp)
            if void:
                verdicts[stamp] = void
        except InvalidInput as error:
            verdicts[stamp] = void or str(error)
    if item is not None and replay and not late:
        late = not _merge(item, replay, verdicts)
    return Folded(item, verdicts, late)


def _plain(item: ItemState | None) -> Model[Any] | None:
    """The model of an item whose mutations are applied as they come, and not kept."""
    model = None if item is None else item.model
    return None if model is None or keeps_tail(model) else model


def mutate(item: ItemState, mutation: bytes, stamp: Stamp) -> bool:
    """The fold of one valid mutation to an item that keeps no tail, without `fold`'s long way; else False."""
    model = item.model
    if model is None or keeps_tail(model):
        return False
    try:
        model.apply(item.state, mutation, stamp)
    except (InvalidMutation, MemoryError):
        raise
    except Exception as error:
        raise _failed(model, error) from error
    item.frame[stamp.feed] = stamp
    return True


def _apply(model: Model[Any], state: Any, mutation: bytes, stamp: Stamp, void: object) -> None:
    try:
        model.apply(state, mutation, stamp, void=bool(void))
    except (InvalidMutation, MemoryError):
        raise
    except Exception as error:
        raise _failed(model, error) from error


def _failed(model: Model[Any], error: Exception) -> InvalidMutation:
    """The fault of a model's code must not stop the party; it is listed like any other refusal."""
    return InvalidMutation(f"the model {model.name} {model.version} failed: {error!r}")


def _begin(party: bytes, item_id: bytes, note: Note, models: ModelFactory) -> ItemState:
    if note.kind != Kind.GENESIS or note.message is None:
        raise InvalidMutation(NO_BODY if note.kind == Kind.GENESIS else NO_ITEM)
    if note.void:
        raise InvalidMutation(note.void)
    genesis = read_genesis(note.message)
    if not ItemId(item_id).matches(note.lamport, party=party, feed=note.feed, nonce=genesis.nonce):
        raise InvalidMutation(f"item {item_id.hex()}: this id is not that of the genesis, so nobody can take it")
    if genesis.parent == item_id:
        raise InvalidMutation(OWN_PARENT)
    model = models.find(genesis.model, genesis.version)
    item = ItemState(item_id, genesis.model, genesis.version, model, note.stamp)
    item.created_ms = note.created_ms
    item.link = genesis.link
    if genesis.parent:
        item.parents.append((note.stamp, genesis.parent))
    return item


def _apply_other(item: ItemState, note: Note, stamp: Stamp) -> None:
    """Genesis, change and metadata: what is the system's, not the model's. All of it commutes."""
    assert note.message is not None
    if note.kind == Kind.METADATA:
        meta = META.initial() if item.meta is None else item.meta
        _apply(META, meta, content(note.kind, note.message), stamp, False)
        item.meta = meta
    elif note.kind == Kind.CHANGE:
        change = read_change(note.message)
        if change.deleted is not None:
            if item.deleted is None or stamp > item.deleted:
                item.deleted, item.is_deleted = stamp, change.deleted
        elif change.parent is not None:
            if change.parent == item.id:
                raise InvalidMutation(OWN_PARENT)
            bisect.insort(item.parents, (stamp, change.parent))
        elif change.forked_to is not None:
            if change.forked_to == item.id:
                raise InvalidMutation("an item cannot be forked into itself")
            bisect.insort(item.forks, (stamp, change.forked_to))
    elif note.kind == Kind.GENESIS:
        raise InvalidMutation("the item has its genesis already; of two, the one with the least stamp holds")
    else:
        raise InvalidMutation("a message of this kind does not belong to an item")


def _merge(item: ItemState, replay: list[Kept], verdicts: dict[Stamp, str]) -> bool:
    """Put new messages into the tail and apply what follows; False if one lies before all that is kept."""
    model = item.model
    assert model is not None
    replay.sort()
    first = replay[0].stamp
    last = item.tail[-1].stamp if item.tail else item.checkpoints[-1].stamp if item.checkpoints else None
    if last is None or first > last:
        item.tail += replay
    elif not is_ordered(model):
        item.tail = sorted(item.tail + replay)
    else:
        while item.checkpoints and item.checkpoints[-1].stamp >= first:
            item.checkpoints.pop()
        if not item.checkpoints and item.trimmed:
            return False
        item.tail = sorted(item.tail + replay)
        base = item.checkpoints[-1] if item.checkpoints else None
        item.state = model.restore(base.state) if base else model.initial()
        replay = [kept for kept in item.tail if base is None or kept.stamp > base.stamp]
        verdicts.update((kept.stamp, kept.void) for kept in replay)
    for stamp, mutation, void in replay:
        try:
            _apply(model, item.state, mutation, stamp, void)
        except InvalidMutation as error:
            verdicts[stamp] = void or str(error)
    if is_ordered(model) and model.has_snapshot:
        _checkpoint(item, model)
    return True


def _checkpoint(item: ItemState, model: Model[Any]) -> None:
    """Now and then keep a state to roll back to, and let go of what lies before the last but one."""
    since = item.checkpoints[-1].stamp if item.checkpoints else None
    fresh = len(item.tail) if since is None else sum(1 for kept in item.tail[-CHECKPOINT_EVERY:] if kept.stamp > since)
    if fresh < CHECKPOINT_EVERY:
        return
    item.checkpoints.append(Checkpoint(item.tail[-1].stamp, model.snapshot(item.state)))
    if len(item.checkpoints) > 2:
        del item.checkpoints[0]
        oldest = item.checkpoints[0].stamp
        item.tail = [kept for kept in item.tail if kept.stamp > oldest]
        item.trimmed = True
