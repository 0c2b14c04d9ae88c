"""`Batch`: messages are applied to the states in memory first, then written together.

Code inside the batch sees its own changes. If that code raises, or writing fails, all changes are rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from antiphon.core.errors import CorruptBlock, InvalidInput, InvalidMutation, ItemForked, StoreError, UnknownModel
from antiphon.core.ids import NONCE_SIZE, ItemId
from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.encoder import Draft, Written
from antiphon.feed.header import Entry as SeenEntry, Kind
from antiphon.feed.writer import FeedWriter
from antiphon.model.access import EVERYONE, NAMES_MAX, Access, Author
from antiphon.model.fold import META, ItemState, fold, keeps_tail, mutate
from antiphon.model.fork_chain import lead
from antiphon.model.message import (
    Change,
    Genesis,
    Inception,
    Note,
    content,
    read_change,
    wrap,
    write_change,
    write_genesis,
)
from antiphon.model.model import Model
from antiphon.party.engine.authors import Steps, author_at
from antiphon.party.engine.cache import Entry

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor


LATE = "it would judge messages again that are here already: name how far each feed counts, as `restrict_writers` does"
_new = tuple.__new__  # half the cost of calling the class, for every message


class Reversal:
    """Data to undo a message: the message, and what it replaced (`captured`)."""

    __slots__ = ("captured", "item", "kind", "message", "stamp")

    def __init__(self, item: bytes, kind: int, message: bytes, stamp: Stamp, captured: Any) -> None:
        self.item = item
        self.kind = kind
        self.message = message
        self.stamp = stamp
        self.captured = captured


class Batch:
    """Messages of one device that belong together: they share a lamport, and a reader sees all of them or none."""

    def __init__(self, processor: PartyProcessor, *, capture: bool) -> None:
        self._processor = processor
        self._engine = processor.engine
        self._writer: FeedWriter = processor.authority.writer()
        self._lane = processor.own_lane(self._writer)
        self._created_ms = processor.clock.now_ms()
        self._capture = capture
        self._drafts: list[Draft] = []
        self._seqs: dict[bytes, list[int]] = {}  # item → seqs of the messages to it
        self._touched: dict[bytes, Entry] = {}
        self._spoilt = False  # a message was refused after it may have changed a state
        self._saved = False  # the item store has the states from before the batch
        self.reversals: list[Reversal] = []
        self.on_end: list[Callable[[], None]] = []  # called without a lock after the batch is written or rolled back
        self.feed = bytes(self._writer.feed)  # as models see the feeds of others: text of a `PublicKey` is another
        self._first = self._lane.state.position
        # The lamport is above every block that this block will list as seen, also new control blocks.
        self._seen_control = self._engine.authority.entries()
        self._control = processor.control.find(self.feed, self._seen_control)
        self._own: Steps | None = None  # the authors of this device's feed, as the batch will have seen them
        self.lamport = 1 + max([self._engine.lamport, *(entry.lamport for entry in self._control)])

    def __len__(self) -> int:
        return len(self._drafts)

    @property
    def items(self) -> list[bytes]:
        """The items that the batch writes to."""
        return list(self._seqs)

    def drafts(self, item: bytes) -> list[Draft]:
        """Return the messages of the batch to one item."""
        return [self._drafts[seq - self._first] for seq in self._seqs.get(item, ())]

    # -- messages

    def create(
        self,
        model: str,
        version: int,
        parent: bytes,
        link: tuple[bytes, bytes] | None,
        inception: KeyPair | None = None,
    ) -> bytes:
        """Create an item, or a view if there is an inception key, and return its id."""
        party = self._engine.party
        if inception is None:
            nonce = self._processor.randomness.bytes(NONCE_SIZE)
            message = write_genesis(Genesis(nonce, model, version, parent, link))
            item = ItemId.derive(self.lamport, party=party, feed=self.feed, genesis=message)
        else:
            view = Inception(inception.key, inception.sign(Inception.statement(party, self.feed)))
            message = write_genesis(Genesis(b"", model, version, parent, link, view))
            item = ItemId.of_view(self.lamport, party=party, key=inception.key)
        self._touched[item] = self._engine.cache.put(Entry(item, None))
        self._add(Kind.GENESIS, item, message)
        return item

    def edit(self, item: bytes, command: str, arguments: Sequence[Any], options: dict[str, Any]) -> Stamp:
        """Run a command of the item's model, and add the mutation that it makes."""
        entry = self._touched.get(item) or self._entry(item)
        state = entry.item
        assert state is not None
        if state.forks:
            self._check_fork(item)
        model = state.model or known_model(state)
        if not (options or self._capture or state.access is not None or keeps_tail(model)):
            seq = self._first + len(self._drafts)
            stamp = _new(Stamp, (self.lamport, self.feed, seq))
            try:
                made = model.perform(state.state, command, arguments, stamp)
            except BaseException:
                self._refuse(item)
                raise
            if made is not None:
                state.frame[self.feed] = stamp
                self._keep(Kind.MUTATION, item, wrap(Kind.MUTATION, made), seq)
                return stamp
        if command not in model.commands:
            raise InvalidInput(
                f"the model {model.name} has no command {command!r}; it has {', '.join(sorted(model.commands))}"
            )
        if type(model).context is not Model.context:
            options = {**model.context(state.state, command, self.feed, self.lamport), **options}
        mutation: bytes = getattr(model, command)(state.state, *arguments, feed=self.feed, **options)
        return self._add(Kind.MUTATION, item, wrap(Kind.MUTATION, mutation), mutation)

    def mutate(self, item: bytes, mutation: bytes) -> Stamp:
        """Add a mutation in the model's own bytes."""
        state = self._entry(item).item
        if state is not None and state.forks:
            self._check_fork(item)
        return self._add(Kind.MUTATION, item, wrap(Kind.MUTATION, mutation), mutation)

    def describe(self, item: bytes, mutation: bytes) -> Stamp:
        """Add a mutation of the item's metadata."""
        return self._add(Kind.METADATA, item, wrap(Kind.METADATA, mutation))

    def change(self, item: bytes, change: Change) -> Stamp:
        """Add a change of parent, deletion, access list or fork."""
        return self._add(Kind.CHANGE, item, write_change(change))

    def guard(self, item: bytes, grant: Iterable[bytes], revoke: Iterable[bytes]) -> Stamp:
        """Change who may write to an item. Messages that are here already stay valid."""
        state = self._entry(item).item
        assert state is not None
        named, ended = sorted(set(grant)), sorted(set(revoke))
        parts = max(1, -(-max(len(named), len(ended)) // NAMES_MAX))
        stamps = [self._guard(item, state, named[nth::parts], ended[nth::parts]) for nth in range(parts)]
        assert state.access is not None
        still = state.access.standing().intersection(ended)
        if still:
            self._refuse(item)
            raise InvalidInput(
                f"item {item.hex()}: {min(still).hex()[:8]} was not named after you, so you cannot take it off the "
                "access list; ask an owner of the party"
            )
        return stamps[-1]

    def _guard(self, item: bytes, state: ItemState, named: list[bytes], ended: list[bytes]) -> Stamp:
        cuts = tuple((feed, state.frame[feed].seq + 1) for feed in sorted(state.frame)) if ended else ()
        return self.change(item, Change(access=Access(tuple(named), tuple(ended), cuts)))

    def ever_named(self, item: bytes) -> set[bytes]:
        """Return all names that are or were in an item's access list. At first it has its creator, and everyone."""
        state = self._entry(item).item
        assert state is not None
        if state.access is not None:
            return state.access.ever_named()
        return {EVERYONE, self._author(state.genesis.feed, state.genesis.seq).identity}

    def author(self) -> Author:
        """Return the author of this batch: an identity, and its groups."""
        return self._author(self.feed, self._first + len(self._drafts))

    def _check_fork(self, item: bytes) -> None:
        """Raise `ItemForked` if an item continues as another one that is here."""
        to = lead(item, self._forked_to)
        if to != item:
            raise ItemForked(
                f"item {item.hex()} was forked, and is written no more; it continues as item {to.hex()}: write to that "
                "(`party.item` leads there)",
                to=to,
            )

    def _forked_to(self, item: bytes) -> bytes:
        state = self._engine.find(item)
        return state.forked_to if state is not None and self._engine.find(state.forked_to) is not None else b""

    def _entry(self, item: bytes) -> Entry:
        entry = self._touched.get(item)
        if entry is None:
            entry = self._touched[item] = self._engine.entry(item)
        return entry

    def _add(self, kind: Kind, item: bytes, message: bytes, mutation: bytes | None = None) -> Stamp:
        """Apply a message to the state. A message that peers would refuse raises, and is not written."""
        entry = self._entry(item)
        seq = self._first + len(self._drafts)
        stamp = _new(Stamp, (self.lamport, self.feed, seq))
        captured = capture(entry.item, kind, message, stamp) if self._capture else None
        try:
            if mutation is None or entry.item is None or not mutate(entry.item, mutation, stamp):
                self._fold(entry, Note(kind, self.lamport, self.feed, seq, self._created_ms, message))
        except BaseException as error:
            self._refuse(item)
            if isinstance(error, InvalidMutation):
                raise InvalidMutation(f"item {item.hex()}: {error}") from error
            raise
        if self._capture:
            self.reversals.append(Reversal(item, kind, message, stamp, captured))
        self._keep(kind, item, message, seq)
        return stamp

    def _keep(self, kind: Kind, item: bytes, message: bytes, seq: int) -> None:
        """Keep a message that was applied, to be written with the batch."""
        self._drafts.append(_new(Draft, (kind, item, message)))
        seqs = self._seqs.get(item)
        if seqs is None:
            self._seqs[item] = [seq]
        else:
            seqs.append(seq)

    def _refuse(self, item: bytes) -> None:
        """Mark the batch as failed: a refused message may have changed a state, so all of it must be rolled back."""
        self._spoilt = True
        self._seqs.setdefault(item, [])

    def _fold(self, entry: Entry, note: Note) -> None:
        if note.kind == Kind.MUTATION and entry.item is not None:
            known_model(entry.item)  # a message that cannot be applied here is not written
        folded = fold(self._engine.party, entry.id, entry.item, [note], self._engine.models, self._author)
        entry.put(folded.state)
        reason = LATE if folded.late else folded.verdicts.get(note.stamp)
        if reason:
            raise InvalidMutation(reason)

    def _author(self, feed: bytes, seq: int) -> Author:
        if feed != self.feed or seq < self._first:
            return self._engine.author(feed, seq)
        if self._own is None:  # judged by the control blocks that the batch will list as seen
            seen = self._processor.control.timeframe(self._seen_control)
            self._own = self._engine.authors.own(feed, self._first, seen)
        return author_at(self._own, seq)

    def save_before(self) -> None:
        """Save the states from before this batch, for queries inside it. Done at most once, when a query needs it.

        The states in memory include the batch, so unsaved ones are reloaded without it first.
        """
        if self._saved:
            return
        engine, dirty = self._engine, self._engine.cache.dirty
        tried = [(entry, entry.item) for item in self._seqs if (entry := self._touched.get(item)) and item in dirty]
        engine.batch_open = False
        try:
            for entry, _ in tried:
                engine.reload(entry)
            engine.save()
        finally:
            engine.batch_open = True
            for entry, state in tried:
                entry.put(state)
        self._saved = True

    # -- commit and rollback

    def commit(self) -> Written | None:
        """Write the messages, durably. Returns None if the batch is empty."""
        if self._spoilt:
            self.roll_back()
            raise InvalidInput("a message of this batch was refused, so nothing of it was written")
        if not self._drafts:
            self.roll_back()
            return None
        store = self._processor.store
        before = store.transaction
        try:
            self._writer.see_only(self._entries())
            written = self._writer.extend(
                self._drafts, atomic=True, created_ms=self._created_ms, expect=(self._first, self.lamport)
            )
        except BaseException as error:
            self.roll_back()
            if isinstance(error, CorruptBlock) and error.feed == self.feed:
                raise self._processor.retire(self.feed, str(error)) from error
            raise
        if written.alone:
            self._engine.authority.wrote(before, store.transaction)
        self._accept(written)
        return written

    def _accept(self, written: Written) -> None:
        state, authority = self._lane.state, self._engine.authority
        control = {entry.feed: entry.seq for entry in written.advance if authority.is_control_block(entry)}
        if control:
            self._lane.see(written.first, control)
        state.position = written.first + len(written)
        state.lamport, state.hash = self.lamport, written.hash
        self._lane.release()
        self._engine.lamport = self.lamport
        left = self._writer.unwritten
        self._processor.moved = left & self._engine.delivery.lanes.keys()
        self._processor.control.wrote(self._seen_control, self._control, left)
        try:
            self._engine.accept(self._lane, self._seqs, written.first, self._own)
        except StoreError as error:
            # The messages are on the disk, so the caller must not write them again. The party stops; `resume` continues
            # from its item store.
            self._processor.error = str(error)

    def roll_back(self) -> None:
        """Undo the batch in memory: reload every state that it changed."""
        broken, self._engine.broken = self._engine.broken, "a batch was not undone"  # until every state is reloaded
        for item, entry in self._touched.items():
            if item in self._seqs or entry.item is None:
                self._engine.reload(entry)
        self._touched.clear()
        self._engine.broken = broken

    def _entries(self) -> Sequence[SeenEntry]:
        """The blocks that this device has delivered since it last wrote, latest first.

        If they are too many for one header, the first ones have the greatest lamports, so the lamport rule holds.
        """
        self._processor.moved |= self._engine.delivery.take_moved()
        lanes = [self._engine.delivery.lanes[feed].state for feed in self._processor.moved]
        seen = [SeenEntry(lane.feed, lane.position - 1, lane.lamport, lane.hash) for lane in lanes if lane.position]
        seen += self._control
        return sorted(seen, key=lambda entry: -entry.lamport)


def known_model(item: ItemState) -> Model[Any]:
    """Return an item's model, or raise `UnknownModel` if its code is not here."""
    if item.model is None:
        raise UnknownModel(
            f"item {item.id.hex()}: no code for model {item.name} {item.version} is here; its messages are safe, and "
            "are folded once it is installed"
        )
    return item.model


def capture(item: ItemState | None, kind: int, message: bytes, stamp: Stamp) -> Any:
    """Return the part of a state that undoing this message needs."""
    if item is None:
        return None
    if kind == Kind.MUTATION and item.model is not None:
        return item.model.capture(item.state, content(kind, message), stamp)
    if kind == Kind.METADATA:
        return META.capture(META.initial() if item.meta is None else item.meta, content(kind, message), stamp)
    guards = kind == Kind.CHANGE and item.access is not None and read_change(message).access is not None
    return item.parent, item.is_deleted, item.access.standing() if guards and item.access is not None else None
