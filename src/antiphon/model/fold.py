"""The one fold that every engine calls: (an item's state, messages to it) → its state, and a verdict on each message.

Nothing here reads a clock, a disk or another item. The live pipeline calls it with messages in a causal order, Spark in
the total order; the states are equal, and so are their snapshots, byte for byte.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import verify
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import TOO_MANY, AccessLog, Act, Author
from antiphon.model.factory import ModelFactory
from antiphon.model.item_state import EMBEDDED, META, Checkpoint, ItemState, Kept
from antiphon.model.message import Genesis, Inception, Note, content, read_change, read_genesis
from antiphon.model.model import Model
from antiphon.model.object.mutation_codec import read_mutation
from antiphon.model.object.register import Mark, element_value
from antiphon.model.replay import apply, failed, keeps_tail, merge
from antiphon.model.value import Reference

_MUTATION, _CHANGE = int(Kind.MUTATION), int(Kind.CHANGE)
_new = tuple.__new__  # half the price of calling the class, for every message

__all__ = [
    "META",
    "NO_BODY",
    "Checkpoint",
    "Folded",
    "ItemState",
    "Kept",
    "fold",
    "keeps_tail",
    "mutate",
    "system_item",
]

NO_BODY = "its body is not here; fetch it from a peer"
NO_ITEM = "there is no such item: its genesis is void, refused, missing, or later than this message"
HAS_GENESIS = "the item has its genesis already; of two, the one with the least stamp holds"
BASE_HAS_GENESIS = "the item has its genesis in an epoch that is final, whatever the stamp of another"
OWN_PARENT = "an item cannot be its own parent"

#: Whose the message at (feed, seq) is.
Authors = Callable[[bytes, int], Author]


def feed_itself(feed: bytes, seq: int) -> Author:
    """Where there are no credentials."""
    return Author(feed)


class Folded(NamedTuple):
    """The item (None: it has no valid genesis), a verdict on messages, and whether a late one needs a fold afresh.

    A verdict is the reason why a message does not count; empty for one that counts after all. Messages that are not
    among the verdicts count.
    """

    item: ItemState | None
    verdicts: dict[Stamp, str]
    late: bool = False


def fold(
    party: bytes,
    item_id: bytes,
    item: ItemState | None,
    notes: Sequence[Note],
    models: ModelFactory,
    authors: Authors = feed_itself,
    *,
    whole: bool = False,
) -> Folded:
    """Fold messages to one item, in a causal order, into its state, which is changed in place.

    If the answer is `late`, the state is spoilt: fold the item's history again, `whole` and in the total order. An item
    that is based on an epoch is its history up to there: hand in the base, restored, and the messages outside the cut.
    """
    if item is None and item_id == SYSTEM_ITEM:
        item = system_item(models)
    if item is not None and whole:
        _take_all_access(item, notes, authors)
    verdicts: dict[Stamp, str] = {}
    kept: list[Kept] = []
    plain, runs = _plain(item)
    at, count = 0, len(notes)
    while at < count:
        if runs and plain is not None and item is not None and item.access is None:
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
                plain, runs = _plain(item)
                item.frame[feed] = stamp
                # Messages to an id that nobody could know yet: in the total order they may stand after its genesis.
                if verdicts and max(verdicts) > stamp:
                    return Folded(item, verdicts, late=True)
                if whole:
                    _take_all_access(item, notes[at:], authors)
                continue
            if lamport <= item.genesis[0] and stamp < item.genesis:
                item.frame[feed] = stamp
                _begin(party, item_id, note, models)  # raises, unless it is a view's, with a lesser stamp
                if item.based:
                    raise InvalidMutation(BASE_HAS_GENESIS)
                return Folded(item, verdicts, late=True)
            if kind == _CHANGE and message is not None and not void and _take_access(item, note, authors):
                return Folded(item, verdicts, late=True)
            item.frame[feed] = stamp
            if message is None:
                raise InvalidMutation(NO_BODY)
            if item.access is not None and not void:
                void = item.access.refusal(stamp, authors(feed, seq))
            if kind == _MUTATION:
                mutation = content(kind, message)
                if plain is not None:
                    apply(plain, item.state, mutation, stamp, void)
                elif item.model is not None:  # else its messages wait in their feeds, until its code is here
                    kept.append(Kept(stamp, mutation, void))
            elif not void:
                _apply_other(item, note, stamp)
            if void:
                verdicts[stamp] = void
        except InvalidInput as error:
            verdicts[stamp] = (message is not None and void) or str(error)  # a body is looked for if void, too
    late = item is not None and bool(kept) and not merge(item, kept, verdicts)
    return Folded(item, verdicts, late)


def _plain(item: ItemState | None) -> tuple[Model[Any] | None, bool]:
    """The model of an item whose mutations are applied as they come, and not kept; and whether it takes whole runs."""
    model = None if item is None else item.model
    if model is None or keeps_tail(model):
        return None, False
    return model, type(model).apply_run is not Model.apply_run


def mutate(item: ItemState, mutation: bytes, stamp: Stamp) -> bool:
    """The fold of one valid mutation to an item that keeps no tail, without `fold`'s long way; else False."""
    model = item.model
    if model is None or item.access is not None or keeps_tail(model):
        return False
    try:
        model.apply(item.state, mutation, stamp)
    except (InvalidMutation, MemoryError):
        raise
    except Exception as error:
        raise failed(model, error) from error
    item.frame[stamp.feed] = stamp
    return True


def _begin(party: bytes, item_id: bytes, note: Note, models: ModelFactory) -> ItemState:
    if note.kind != Kind.GENESIS or note.message is None:
        raise InvalidMutation(NO_BODY if note.kind == Kind.GENESIS else NO_ITEM)
    if note.void:
        raise InvalidMutation(note.void)
    genesis = read_genesis(note.message)
    _check_id(party, item_id, note, genesis)
    if genesis.parent == item_id:
        raise InvalidMutation(OWN_PARENT)
    model = models.find(genesis.model, genesis.version)
    item = ItemState(item_id, genesis.model, genesis.version, model, note.stamp)
    item.created_ms = note.created_ms
    item.link, item.view = genesis.link, genesis.view
    if genesis.parent:
        item.parents.append((note.stamp, genesis.parent))
    return item


def _check_id(party: bytes, item_id: bytes, note: Note, genesis: Genesis) -> None:
    """Nobody can take an id (rule 5): it follows from the place of its genesis, or from a key that signs for it."""
    if genesis.view is None:
        right = ItemId(item_id).matches(note.lamport, party=party, feed=note.feed, nonce=genesis.nonce)
    else:
        right = item_id == ItemId.of_view(note.lamport, party=party, key=genesis.view.key)
    if not right:
        raise InvalidMutation(f"item {item_id.hex()}: this id is not that of the genesis, so nobody can take it")
    if genesis.view and not verify(genesis.view.key, Inception.statement(party, note.feed), genesis.view.proof):
        raise InvalidMutation(f"item {item_id.hex()}: its inception key did not sign for this party and feed")


def system_item(models: ModelFactory) -> ItemState:
    """The root of every party, which nobody creates: an object, from before the first message."""
    model = models.find(META.name, META.version)
    return ItemState(SYSTEM_ITEM, META.name, META.version, model, Stamp(0, bytes(32), 0))


def _act(note: Note, authors: Authors) -> Act | None:
    """The change of who may write that a message makes, if it makes one, whatever else is to be said of it."""
    if note.kind != _CHANGE or note.message is None or note.void:
        return None
    try:
        access = read_change(note.message).access
    except InvalidMutation:
        return None  # it is refused for that in a moment
    return None if access is None else Act(note.stamp, authors(note.feed, note.seq), access)


def _take_access(item: ItemState, note: Note, authors: Authors) -> bool:
    """Let a change of who may write count; whether messages before it are to be judged again."""
    act = _act(note, authors)
    if act is None:
        return False
    if item.access is None:
        item.access = _open(item, authors, ())
    return item.access.add(act) and item.access.unsettles(act, item.frame)


def _take_all_access(item: ItemState, notes: Sequence[Note], authors: Authors) -> None:
    """All changes of who may write, before anything is judged by them."""
    acts = [act for note in notes if (act := _act(note, authors)) is not None and act.stamp > item.genesis]
    if acts:
        item.access = _open(item, authors, acts)


def _open(item: ItemState, authors: Authors, acts: Sequence[Act]) -> AccessLog:
    """The list with these changes, and those that the base has. Of its creator the identity alone: that is always known
    of a feed, while groups and roles at the genesis are known only to who holds what was written then."""
    if item.access is not None:
        return AccessLog(item.genesis, item.access.creator, [*item.access.acts, *acts])
    return AccessLog(item.genesis, Author(authors(item.genesis.feed, item.genesis.seq).identity), acts)


def _apply_other(item: ItemState, note: Note, stamp: Stamp) -> None:
    """Genesis, change and metadata: what is the system's, not the model's. All of it commutes."""
    assert note.message is not None
    if note.kind == Kind.METADATA:
        meta = META.initial() if item.meta is None else item.meta
        mutation = content(note.kind, note.message)
        _check_embeds(item, mutation, stamp)
        apply(META, meta, mutation, stamp, False)
        item.meta = meta
    elif note.kind == Kind.CHANGE:
        change = read_change(note.message)
        if change.access is not None:
            if item.access is None or stamp not in item.access:  # the others were taken, and judged, before
                raise InvalidMutation(TOO_MANY)
        elif item.id == SYSTEM_ITEM:
            raise InvalidMutation("the system item is the root of its party: it does not move, and is not deleted")
        elif change.deleted is not None:
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
        raise InvalidMutation(HAS_GENESIS)
    else:
        raise InvalidMutation("a message of this kind does not belong to an item")


def _check_embeds(item: ItemState, mutation: bytes, stamp: Stamp) -> None:
    """An item is embedded after it was made: its id says when that was, and nobody knows an id before."""
    if EMBEDDED.encode() not in mutation:
        return
    for path, content_, _ in read_mutation(mutation, stamp):
        if path[0] != EMBEDDED or not isinstance(path[-1], bytes) or content_ is not Mark.MEMBER:
            continue
        child = element_value(path[-1])
        if not isinstance(child, Reference) or child.party:
            raise InvalidMutation("what is embedded in an item is a reference to an item of its party")
        if ItemId(child.item).lamport > stamp.lamport or child.item == item.id:
            raise InvalidMutation(f"item {child.item.hex()} is embedded before it was made, or in itself")
