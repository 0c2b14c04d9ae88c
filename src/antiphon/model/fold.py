"""The fold that every engine calls: (state of an item, messages to it) → new state, and a verdict on each message.

Nothing here reads a clock, a disk or another item. The live engine calls it with messages in a causal order, the Spark
pipeline in the total order. The states are equal, and their snapshots are equal byte for byte.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.ids import SYSTEM_ITEM, ItemId
from antiphon.core.keys import verify
from antiphon.core.reasons import Reason, because, coded
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Kind
from antiphon.model.access import TOO_MANY, AccessLog, Act, Author
from antiphon.model.factory import ModelFactory
from antiphon.model.item_state import EMBEDDED, META, Checkpoint, ItemState, KeptMessage
from antiphon.model.late_messages import apply, failed, keeps_tail, merge
from antiphon.model.message import Genesis, Inception, Note, content, read_change, read_genesis
from antiphon.model.model import Model
from antiphon.model.object.mutation_codec import read_mutation
from antiphon.model.object.register import Mark, element_value
from antiphon.model.value import Reference

_MUTATION, _CHANGE = int(Kind.MUTATION), int(Kind.CHANGE)
_new = tuple.__new__  # half the price of calling the class, for every message

__all__ = [
    "META",
    "NO_BODY",
    "Checkpoint",
    "Folded",
    "ItemState",
    "KeptMessage",
    "fold",
    "keeps_tail",
    "mutate",
    "system_item",
]

NO_BODY = because(Reason.NO_BODY, "its body is not here; fetch it from a peer")
IGNORED = because(Reason.IGNORED, "its body is ignored on this device")
NO_ITEM = because(
    Reason.NO_ITEM, "there is no such item: its genesis is void, refused, missing, or later than this message"
)
HAS_GENESIS = because(
    Reason.ITEM_GENESIS, "the item has its genesis already; of two, the one with the least stamp holds"
)
HIDDEN = because(Reason.ITEM_HIDDEN, "the genesis of its item is void, and nobody else has built on it")
BASE_HAS_GENESIS = because(
    Reason.ITEM_GENESIS, "the item has its genesis in an epoch that is final, whatever the stamp of another"
)
BEYOND_FORK = because(Reason.FORK, "its writer signed two histories, and this genesis is beyond the fork")
OWN_PARENT = because(Reason.ITEM_CHANGE, "an item cannot be its own parent")
OWN_FORK = because(Reason.ITEM_CHANGE, "an item cannot be forked into itself")
ROOT = because(Reason.ITEM_CHANGE, "the system item is the root of its party: it does not move, and is not deleted")
OTHER_KIND = because(Reason.ITEM_ENCODING, "a message of this kind does not belong to an item")

#: Returns the author of the message at (feed, seq).
Authors = Callable[[bytes, int], Author]


def feed_itself(feed: bytes, seq: int) -> Author:
    """Return the feed as its own author, where there are no credentials."""
    return Author(feed)


class Folded(NamedTuple):
    """The state (None: there is no genesis), verdicts on messages, and `late`: the item must be folded again.

    A verdict is the reason why a message does not count. It is empty for a message that did not count before and counts
    now. Messages without a verdict count. No message to a hidden item counts.
    """

    state: ItemState | None
    verdicts: dict[Stamp, str]
    late: bool = False

    @property
    def item(self) -> ItemState | None:
        """The item; None without a genesis, and while the item is hidden."""
        return None if self.state is None or self.state.hidden else self.state


def fold(
    party: bytes,
    item_id: bytes,
    item: ItemState | None,
    notes: Sequence[Note],
    models: ModelFactory,
    authors: Authors = feed_itself,
    *,
    whole: bool = False,
    beyond: Note | None = None,
) -> Folded:
    """Fold messages to one item, in a causal order, into its state, which is changed in place.

    `beyond` is a genesis beyond a fork, which is no message but may begin the item if others built on it (rule 26).
    If the result is `late`, the state is invalid: fold the history of the item again, `whole` and in the total order.
    If the item is based on an epoch, the base replaces that history: pass the base and the messages outside the cut.
    """
    if item is None and item_id == SYSTEM_ITEM:
        item = system_item(models)
    if beyond is not None and item is None:
        notes = sorted([beyond, *notes], key=lambda note: note.stamp) if whole else [beyond, *notes]
    if item is not None and item.hidden and is_built_on(item.genesis, notes, authors):
        if not whole:
            return Folded(item, {}, late=True)  # verdicts on earlier messages change
        item.hidden = ""
    if item is not None and whole:
        _take_all_access(item, notes, authors)
    made = _fold(party, item_id, item, notes, models, authors, whole=whole)
    if made.state is not None and made.state.hidden and not made.late:
        _refuse_all(notes, made.verdicts)
    if beyond is not None:
        made.verdicts.pop(beyond.stamp, None)
    return made


def _fold(
    party: bytes,
    item_id: bytes,
    item: ItemState | None,
    notes: Sequence[Note],
    models: ModelFactory,
    authors: Authors,
    *,
    whole: bool,
) -> Folded:
    verdicts: dict[Stamp, str] = {}
    kept: list[KeptMessage] = []
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
                # Messages to an id that nobody could know yet: in the total order they may follow its genesis.
                if verdicts and max(verdicts) > stamp:
                    return Folded(item, verdicts, late=True)
                if void:
                    verdicts[stamp] = void
                    item.hidden = "" if is_built_on(stamp, notes[at:], authors) else void
                if whole:
                    _take_all_access(item, notes[at:], authors)
                continue
            if lamport <= item.genesis[0] and stamp < item.genesis:
                item.frame[feed] = stamp
                _begin(party, item_id, note, models)  # raises, unless it creates the same view with a lesser stamp
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
                elif item.model is not None:  # else the messages wait in their feeds for the code of the model
                    kept.append(KeptMessage(stamp, mutation, void))
            elif not void:
                _apply_other(item, note, stamp)
            if void:
                verdicts[stamp] = void
        except InvalidInput as error:
            known = message is not None and void  # a missing body is fetched even if void
            verdicts[stamp] = known or coded(Reason.ITEM_ENCODING, str(error))
    return Folded(item, verdicts, late=item is not None and bool(kept) and not merge(item, kept, verdicts))


def is_built_on(genesis: Stamp, notes: Iterable[Note], authors: Authors) -> bool:
    """True if somebody else has built on the item that a void genesis began, so that the item is there (rule 26).

    That takes one message to it with a later stamp, by another identity than that of the genesis, which rights, cuts
    and erasures leave valid. Neither its body nor the access list matters. Nobody guesses an id, so its writer has seen
    the genesis, or knows somebody who has.
    """
    creator = b""
    for note in notes:
        if note.void or note.feed == genesis.feed or note.stamp < genesis:
            continue
        creator = creator or authors(genesis.feed, genesis.seq).identity
        if authors(note.feed, note.seq).identity != creator:
            return True
    return False


def _refuse_all(notes: Sequence[Note], verdicts: dict[Stamp, str]) -> None:
    """Refuse all messages to a hidden item that nothing else refuses."""
    for stamp in [*(note.stamp for note in notes), *verdicts]:
        verdicts[stamp] = verdicts.get(stamp) or HIDDEN


def _plain(item: ItemState | None) -> tuple[Model[Any] | None, bool]:
    """Return the model if mutations are applied at once and not kept, and True if it implements `apply_run`."""
    model = None if item is None else item.model
    if model is None or keeps_tail(model):
        return None, False
    return model, type(model).apply_run is not Model.apply_run


def mutate(item: ItemState, mutation: bytes, stamp: Stamp) -> bool:
    """Apply one valid mutation to an item that keeps no tail, without the overhead of `fold`; False for other items."""
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
    """Return the item that a genesis begins, void or not; raise if it is no genesis of this id."""
    if note.kind != Kind.GENESIS or note.message is None:
        raise InvalidMutation(NO_BODY if note.kind == Kind.GENESIS else NO_ITEM)
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
    """Check that the id belongs to the genesis (rule 5): it follows from its position, or from a key that signs it."""
    if genesis.view is None:
        assert note.message is not None
        right = ItemId(item_id).matches(note.lamport, party=party, feed=note.feed, genesis=note.message)
    else:
        right = item_id == ItemId.of_view(note.lamport, party=party, key=genesis.view.key)
    if not right:
        other = f"item {item_id.hex()}: this id is not that of the genesis, so nobody can take it"
        raise InvalidMutation(because(Reason.ITEM_GENESIS, other))
    if genesis.view and not verify(genesis.view.key, Inception.statement(party, note.feed), genesis.view.proof):
        unsigned = f"item {item_id.hex()}: its inception key did not sign for this party and feed"
        raise InvalidMutation(because(Reason.ITEM_GENESIS, unsigned))


def system_item(models: ModelFactory) -> ItemState:
    """Return the root of every party: an object that exists before the first message."""
    model = models.find(META.name, META.version)
    return ItemState(SYSTEM_ITEM, META.name, META.version, model, Stamp(0, bytes(32), 0))


def _act(note: Note, authors: Authors) -> Act | None:
    """Return the change of the access list that a message contains, valid or not; None if it contains none."""
    if note.kind != _CHANGE or note.message is None or note.void:
        return None
    try:
        access = read_change(note.message).access
    except InvalidMutation:
        return None  # `_apply_other` refuses it
    return None if access is None else Act(note.stamp, authors(note.feed, note.seq), access)


def _take_access(item: ItemState, note: Note, authors: Authors) -> bool:
    """Add a change of the access list. True if messages that were folded before must be judged again."""
    act = _act(note, authors)
    if act is None:
        return False
    if item.access is None:
        item.access = _open(item, authors, ())
    return item.access.add(act) and item.access.unsettles(act, item.frame)


def _take_all_access(item: ItemState, notes: Sequence[Note], authors: Authors) -> None:
    """Add all changes of the access list before any message is judged by it."""
    acts = [act for note in notes if (act := _act(note, authors)) is not None and act.stamp > item.genesis]
    if acts:
        item.access = _open(item, authors, acts)


def _open(item: ItemState, authors: Authors, acts: Sequence[Act]) -> AccessLog:
    """Return the access log with these changes and those of the base.

    It holds only the identity of the creator. The identity behind a feed is always known, but groups and roles at the
    genesis are known only to peers that hold the control feeds of that time.
    """
    if item.access is not None:
        return AccessLog(item.genesis, item.access.creator, [*item.access.acts, *acts])
    return AccessLog(item.genesis, Author(authors(item.genesis.feed, item.genesis.seq).identity), acts)


def _apply_other(item: ItemState, note: Note, stamp: Stamp) -> None:
    """Apply a genesis, change or metadata mutation, which the system handles, not the model. All of them commute."""
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
            if item.access is None or stamp not in item.access:  # `_take_access` added and judged the others
                raise InvalidMutation(TOO_MANY)
        elif item.id == SYSTEM_ITEM:
            raise InvalidMutation(ROOT)
        elif change.deleted is not None:
            if item.deleted is None or stamp > item.deleted:
                item.deleted, item.is_deleted = stamp, change.deleted
        elif change.parent is not None:
            if change.parent == item.id:
                raise InvalidMutation(OWN_PARENT)
            bisect.insort(item.parents, (stamp, change.parent))
        elif change.forked_to is not None:
            if change.forked_to == item.id:
                raise InvalidMutation(OWN_FORK)
            bisect.insort(item.forks, (stamp, change.forked_to))
    elif note.kind == Kind.GENESIS:
        raise InvalidMutation(HAS_GENESIS)
    else:
        raise InvalidMutation(OTHER_KIND)


def _check_embeds(item: ItemState, mutation: bytes, stamp: Stamp) -> None:
    """Refuse to embed an item before its creation. The id contains the lamport of the genesis."""
    if EMBEDDED.encode() not in mutation:
        return
    for path, content_, _ in read_mutation(mutation, stamp):
        if path[0] != EMBEDDED or not isinstance(path[-1], bytes) or content_ is not Mark.MEMBER:
            continue
        child = element_value(path[-1])
        if not isinstance(child, Reference) or child.party:
            wrong = "what is embedded in an item is a reference to an item of its party"
            raise InvalidMutation(because(Reason.ITEM_CHANGE, wrong))
        if ItemId(child.item).lamport > stamp.lamport or child.item == item.id:
            early = f"item {child.item.hex()} is embedded before it was made, or in itself"
            raise InvalidMutation(because(Reason.ITEM_CHANGE, early))
