"""The live engine of one party: verified feeds in, item states out. It has no thread, no lock and no clock.

Delivery hands over runs of blocks in a causal order, the judge says which of them are void, the demultiplexer gathers
messages by item, and the fold that all engines share makes states of them. What was applied is saved together with the
positions that it stands at, so that a crash at any point leaves a store that is right, if perhaps a little behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from antiphon.core.errors import MissingBlob, UnknownItem
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.feed.header import NO_END
from antiphon.feed.store.reader import FeedReader
from antiphon.model import item_codec
from antiphon.model.access import Author
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import NO_BODY, ItemState, fold, system_item
from antiphon.model.message import Note
from antiphon.party.engine.authors import Authors
from antiphon.party.engine.cache import CACHE_ITEMS_MAX, Entry, ItemCache
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE, settle_many
from antiphon.party.engine.delivery import Delivery
from antiphon.party.engine.demux import ItemDemuxer
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.gc_pause import uncollected
from antiphon.party.engine.judge import Judge
from antiphon.party.engine.lane import NOTHING, Lane, Run
from antiphon.party.engine.message_lookup import Archive
from antiphon.party.engine.ports import Authority, Items, Posting, Save, Void
from antiphon.party.engine.postings import encode_postings
from antiphon.party.engine.rejudge import Revision
from antiphon.party.engine.row_cache import Ahead, row_of
from antiphon.party.engine.scope import Scope

UNSAVED_MESSAGES_MAX = 5_000  # a restart after a crash folds no more than about this many again; a save is a pause
UNSAVED_ITEMS_MAX = 400
AHEAD_ROWS = 4  # are made for each message, as a save draws near
MANY = 1_000  # items that came from others: so many are saved, and if they are not open, they pass through memory


class Engine:
    """Not thread-safe: `PartyProcessor` is."""

    def __init__(
        self,
        party: bytes,
        store: FeedReader,
        authority: Authority,
        items: Items,
        models: ModelFactory,
        *,
        cache_items_max: int = CACHE_ITEMS_MAX,
        base: EpochBase | None = None,
    ) -> None:
        self.party = party
        self.base = base  # the snapshot that all states stand on
        mark = items.base()
        self.whole = base is None or mark is None or mark.whole  # every item of the base has a row
        self.store = store
        self.authority = authority
        self.saved = items  # the item store, as far as it was saved
        self.models = models
        self.scope = Scope(self, items.ready_items)
        self.cache = ItemCache(cache_items_max)
        self._judge = Judge(authority)
        self._revision = Revision(self, self._judge)
        self.items_in = self._revision.items_in
        self.authors = Authors(authority)
        self._demux = ItemDemuxer()
        self._verdicts: dict[bytes, dict[Stamp, str]] = {}  # by item: the last word on each message, not saved yet
        self._unsaved = 0
        self._ahead = Ahead()
        self._known_models: frozenset[tuple[str, int]] = frozenset()
        self.changed: Callable[[Iterable[bytes]], None] = lambda _: None
        self.delivery = Delivery(store, authority, items.lanes())
        self._archive = Archive(store, self.delivery)
        self.lamport = max((lane.state.lamport for lane in self.delivery.lanes.values()), default=0)
        self.held = False  # a batch is open: states hold what is not written yet, and must not be saved
        self.broken = False
        self._marks: dict[bytes, tuple[object, ...]] = {}  # the lanes as the item store has them
        self.bodiless = True  # messages may be refused because their bodies are not here
        self._processed = -1  # the store's transaction when all was last looked at
        self._fresh = True  # verdicts saved by an earlier run are compared with those of now

    # -- the pipeline

    def process(self) -> int:
        """Take everything that is new and can be delivered; returns how many messages that was."""
        now, news = self.store.transaction, self.authority.refresh()
        if now == self._processed and not news and self._at_rest():
            return 0
        self._refresh(news)
        with uncollected():
            taken = self._deliver()
        self._processed = now
        return taken

    def _at_rest(self) -> bool:
        """Whether nothing but what comes into the store can move anything."""
        known = not self._fresh and self.models.keys == self._known_models
        return known and self.delivery.at_rest and (self.lazy or not self._demux.count)

    def _deliver(self) -> int:
        taken = 0
        for run in self.delivery.pump():
            self._demux.take(run, self._void_parts(run))
            self.lamport = max(self.lamport, int(run.span.columns["lamport"][run.high - 1]))
            taken += run.high - run.low
            if self._demux.full:
                self.catch_up()
        if self.lazy:
            self._fold_open()
        else:
            self.catch_up()
        return taken

    @property
    def lazy(self) -> bool:
        """Whether messages to items that nobody has opened wait: most items of the base have no row either."""
        return not self.whole and self.scope.ready_items is None

    @property
    def items(self) -> Items:
        """The item store, for whoever looks at more than one item: everything that was delivered is folded first."""
        self.catch_up()
        return self.saved

    def catch_up(self) -> None:
        """Fold what waits."""
        if self._demux.count:
            news = self._demux.news()
            self._settle()
            self.changed(news)

    def _fold_open(self) -> None:
        """Fold what came to items that are open; the others wait until they are opened, or somebody wants them all."""
        news = self._demux.news()
        open_ = {item: entry for item in news if (entry := self.cache.get(item)) is not None}
        if open_:
            for item, notes in self._demux.claim(open_).items():
                self.fold_in(open_[item], notes)
        self.changed(news)

    def _refresh(self, news: bool) -> None:
        for feed in self.authority.data_feeds():
            self.delivery.activate(feed)
        for record in self.store.feeds(self.party):
            lane = self.delivery.lanes.get(record.feed)
            if lane is None:
                continue
            end = min(record.end, self.authority.fork_end(record.feed))
            if end != NO_END:
                self._revision.end_lane(lane, end)
            if lane.state.position < record.valid_length:
                self.delivery.wake(record.feed)
        if self.bodiless:
            self._revision.look_for_bodies()
        if news or self._fresh:
            self._fresh = False
            self.lamport = max([self.lamport, *(entry.lamport for entry in self.authority.entries())])
            self.delivery.wake_for_control()
            self._revision.judge_again()
        if self.models.keys != self._known_models:
            self._known_models = self.models.keys
            self._revision.pick_up()

    def _void_parts(self, run: Run) -> list[Void]:
        lane = self.delivery.lanes[run.feed]
        voids = list(self._judge.voids(lane, run.start, run.stop))
        known = lane.state.voids
        for void in voids:
            if known and known[-1].stop == void.start and known[-1].reason == void.reason:
                known[-1] = known[-1]._replace(stop=void.stop)
            else:
                known.append(void)
        return voids

    def _settle(self) -> None:
        """Fold what was gathered. Where it touches more items than the cache holds, they pass through it one by one."""
        gathered = self._demux.drain()
        items = gathered.items()
        open_ = {item: entry for item in items if (entry := self.cache.get(item)) is not None}  # held: they must not go
        if len(items) - len(open_) > MANY and not self.held:
            settle_many(self, gathered, items)
        else:
            records = self.load([item for item in items if item not in open_])
            for item, notes in gathered.groups().items():
                entry = open_.get(item) or self.cache.put(self.entry_of(item, records.get(item)))
                self.fold_in(entry, notes)
            self._unsaved += gathered.count
            if self._unsaved > UNSAVED_MESSAGES_MAX or len(self.cache.dirty) > MANY:
                self.save()

    def fold_in(self, entry: Entry, notes: list[Note], *, keep: bool = True) -> dict[Stamp, str]:
        left_out = self.scope.leaves_out(entry.id)
        if left_out or (entry.item is None and not self.whole and not self._fetched(entry.id)):
            entry.item = None
            self.post(entry, notes)  # they are folded when the item is opened, or taken up
            if keep:
                self.cache.dirty[entry.id] = entry
            return {}
        folded = fold(self.party, entry.id, entry.item, notes, self.models, self.author)
        late = folded.late or (entry.orphaned and folded.item is not None)
        entry.item, entry.orphaned = folded.item, folded.item is None
        self.post(entry, notes)
        if late:
            return self.refold(entry)
        if folded.verdicts:
            self._verdicts.setdefault(entry.id, {}).update(folded.verdicts)
            self.bodiless = self.bodiless or NO_BODY in folded.verdicts.values()
        if keep:
            self.cache.dirty[entry.id] = entry
        return folded.verdicts

    def post(self, entry: Entry, notes: list[Note]) -> None:
        """Remember where the messages are."""
        entry.post_all(notes, self.delivery.lanes)

    def accept(self, lane: Lane, groups: dict[bytes, list[int]], first: int) -> None:
        """Own messages, folded before they were written, are on the disk: they count from now on.

        Unless the rights went in the very moment: then they are judged like anybody's.
        """
        number = lane.state.number
        voids = list(self._judge.voids(lane, first, lane.state.position))
        for item, seqs in groups.items():
            entry = self.cache.get(item)
            assert entry is not None
            for seq in seqs:
                entry.post(number, seq)
            self.cache.dirty[item] = entry
            self._unsaved += len(seqs)
        if voids:
            lane.state.voids += voids
            self.refold_all(set(groups))
        dirty = len(self.cache.dirty)
        left = min(UNSAVED_MESSAGES_MAX - self._unsaved, UNSAVED_ITEMS_MAX - dirty)
        if left < 0:
            self.save()
        elif left * AHEAD_ROWS < dirty:
            self._ahead.make(self.cache.dirty, AHEAD_ROWS * len(groups), self.saved.index)

    # -- what is known now may change what counted before

    def author(self, feed: bytes, seq: int) -> Author:
        """Whose a message is, in its own timeframe."""
        lane = self.delivery.lanes.get(feed)
        return self.authors.of(lane, seq) if lane is not None else self.authority.author(feed, seq, NOTHING)

    def refold_all(self, items: set[bytes]) -> None:
        if not items:
            return
        with self.saving() as put:
            self.refold_into(put, items)
        self.changed(items)

    def refold_into(self, put: Callable[[Save], None], items: Iterable[bytes]) -> None:
        """With the verdicts and positions that they follow from: all of them or none."""
        for item in sorted(items):
            if self.scope.leaves_out(item):
                self._verdicts.pop(item, None)
                self.scope.set_aside(item)
            elif not self.scope.lacks(item):  # else it has no state here, and none of its messages has a verdict
                self.refold(self.cache.get(item) or Entry(item, None))
            if len(self.cache.dirty) > UNSAVED_ITEMS_MAX:
                put(self.save_of(self.cache.dirty.values(), self.drain_verdicts()))
                self.cache.dirty.clear()
        self.put_all(put)

    def refold(self, entry: Entry) -> dict[Stamp, str]:
        """Fold an item from all its messages, in the total order."""
        postings = self._archive.trim(self.items.postings(entry.id) + entry.postings)
        notes = self._archive.read(self._archive.outside(postings))
        folded = fold(self.party, entry.id, self.based(entry.id), notes, self.models, self.author, whole=True)
        entry.item, entry.orphaned = folded.item, folded.item is None
        self.items.forget(entry.id)
        entry.postings = postings
        known = dict.fromkeys(self._verdicts.get(entry.id, ()), "")
        self._verdicts[entry.id] = {**known, **folded.verdicts}
        self.cache.put(entry)
        self.cache.dirty[entry.id] = entry
        return folded.verdicts

    def outside(self, item: bytes, more: Sequence[Posting] = ()) -> list[Posting]:
        """Where the messages to an item are that its base does not have."""
        return self._archive.outside([*self.items.postings(item), *more])

    def notes_outside(self, item: bytes, more: Sequence[Posting] = ()) -> list[Note]:
        """These messages, in the total order."""
        return self._archive.read(self.outside(item, more))

    def reload(self, entry: Entry) -> None:
        """The item as the feeds have it: what was tried and not written is undone."""
        record = self.load([entry.id]).get(entry.id)
        item = self._decode(record)
        notes = self._archive.read(entry.postings)
        folded = fold(self.party, entry.id, item, notes, self.models, self.author)
        entry.item = folded.item
        if folded.late:
            self.refold(entry)
        elif entry.item is None and not entry.postings:
            self.cache.drop(entry.id)

    # -- messages

    def history(self, item: bytes) -> list[Note]:
        """All messages to an item that are still here, by stamp."""
        postings = self.items.postings(item)
        entry = self.cache.get(item)
        return self._archive.read(self._archive.held(postings + (entry.postings if entry else [])))

    def is_based(self, note: Note) -> bool:
        """Whether a message is in the base."""
        return note.seq < self.delivery.lanes[note.feed].state.base

    # -- items

    def entry(self, item: bytes) -> Entry:
        """An item's state, read from the item store where it is not open."""
        entry = self.cache.get(item)
        if entry is None:
            record = self.load([item]).get(item)
            based = None if record is not None or self.whole else self.based(item)  # raises without its blobs
            waited = self._demux.claim([item]).get(item) if self._demux.count else None
            if based is not None or record is not None or waited:
                entry = Entry(item, based) if based is not None else self.entry_of(item, record)
            elif item == SYSTEM_ITEM:
                entry = Entry(item, system_item(self.models))
            else:
                raise UnknownItem(f"party {self.party.hex()[:8]} holds no item {item.hex()}, or not yet")
            self.cache.put(entry)
            if waited:
                self.fold_in(entry, waited)
        if entry.item is None and (not self.whole or self.scope.ready_items is not None):
            self.scope.check(item)
            self.refold(entry)  # its messages came before it was known here what the base has of it
        if entry.item is None:
            raise UnknownItem(f"party {self.party.hex()[:8]}: item {item.hex()} has messages, but no valid genesis")
        return entry

    def find(self, item: bytes) -> ItemState | None:
        """An item's state; None where there is no such item, or not yet."""
        try:
            return self.entry(item).item
        except UnknownItem:
            return None

    def claims(self, item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        """Under what an item was ever hung, by ascending stamp."""
        state = self.find(item)
        return () if state is None else state.parents

    def load(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """The records of items: of those that were opened or changed here their rows, of others what the base has."""
        found = self.saved.load(ids)
        if self.base is not None and not self.whole:
            rest = [item for item in ids if item not in found and not self.scope.leaves_out(item)]
            found.update((item, item_codec.record_of(data)) for item, data in self.base.items(rest).items())
        return found

    def _fetched(self, item: bytes) -> bool:
        """Whether it is known what the base has of an item."""
        try:
            return self.base is None or self.base.item(item) is None
        except MissingBlob:
            return False

    def count(self) -> int:
        """How many items there are, with or without rows."""
        rows = self.items.count()
        if self.base is None or self.whole:
            return rows
        opened = self.base.items(list(self.items.ids()))
        return rows - len(opened) + self.base.root.item_count

    def based(self, item: bytes) -> ItemState | None:
        """An item as the base has it."""
        data = None if self.base is None else self.base.item(item)
        return None if data is None else item_codec.restore(data, self.models)

    def entry_of(self, item: bytes, record: bytes | None) -> Entry:
        entry = Entry(item, self._decode(record))
        entry.orphaned = record == b""
        return entry

    def _decode(self, record: bytes | None) -> ItemState | None:
        return item_codec.decode(record, self.models) if record else None

    # -- saving

    def save(self) -> None:
        """Put everything that was applied into the item store, with the positions that it stands at."""
        if self.held:
            return
        self.catch_up()
        if not (self._unsaved or self.cache.dirty or self._verdicts or self._moved()):
            return
        with self.saving() as put:
            self.put_all(put)

    @contextmanager
    def saving(self) -> Iterator[Callable[[Save], None]]:
        try:
            with self.items.saving() as put:
                yield put
        except BaseException:
            self.broken = True  # what is in memory is no longer what the store will be told of
            raise

    def put_all(self, put: Callable[[Save], None]) -> None:
        dirty = list(self.cache.dirty.values())
        for start in range(0, len(dirty), ROWS_AT_ONCE):
            put(self.save_of(dirty[start : start + ROWS_AT_ONCE], []))
        moved = [lane.state for feed, lane in self.delivery.lanes.items() if self._marks.get(feed) != lane.state.mark]
        put(Save(verdicts=self.drain_verdicts(), lanes=moved))
        self._marks.update((state.feed, state.mark) for state in moved)
        self.cache.dirty.clear()
        self._ahead.clear()
        self._unsaved = 0
        self.changed(self.items.moved())

    def close(self, *, clear: bool = False) -> None:
        """Let go of the item store, and of what it holds too."""
        if clear:
            self.saved.clear()
        self.saved.close()

    def _moved(self) -> bool:
        return any(self._marks.get(feed) != lane.state.mark for feed, lane in self.delivery.lanes.items())

    def drain_verdicts(self) -> list[tuple[Stamp, bytes, str]]:
        verdicts, self._verdicts = self._verdicts, {}
        return [(stamp, item, reason) for item, known in verdicts.items() for stamp, reason in known.items()]

    def save_of(self, entries: Iterable[Entry], verdicts: list[tuple[Stamp, bytes, str]]) -> Save:
        save = Save(verdicts=verdicts)
        posted = []
        for entry in entries:
            save.rows.append(row_of(entry, self.items.index))
            entry.made = None
            if entry.postings:
                posted.append(entry)
        encoded = encode_postings([entry.postings for entry in posted])
        for entry, postings in zip(posted, encoded, strict=True):
            save.postings.append((entry.id, postings))
            entry.postings = []
        return save
