"""`Engine`: the live engine of one party. Verified feeds in, item states out. It has no thread, no lock and no clock.

`Delivery` yields runs of blocks in a causal order. `Judge` finds which of them are void. `ItemDemuxer` gathers their
messages by item. `model.fold`, which all engines share, folds the messages into states. States are saved together with
the positions of the feeds that they include, so a crash at any point leaves a correct item store that is at most a few
thousand messages behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from time import perf_counter

from antiphon.core.errors import CorruptBlock, DamagedItems, MissingBlob, UnknownItem
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.stamp import Stamp
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.store.reader import FeedReader
from antiphon.model import item_codec
from antiphon.model.access import Author
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import NO_BODY, Folded, ItemState, fold, system_item
from antiphon.model.message import Note
from antiphon.party.engine.authors import Authors, Steps
from antiphon.party.engine.branch_geneses import BranchGeneses, Candidates, choose, may_begin_otherwise
from antiphon.party.engine.cache import CACHE_ITEMS_MAX, Entry, ItemCache
from antiphon.party.engine.cold_fold import ROWS_AT_ONCE, fold_many
from antiphon.party.engine.demux import Gathered, ItemDemuxer
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.fold_times import FoldTimes
from antiphon.party.engine.gc_pause import gc_paused
from antiphon.party.engine.judge import Judge
from antiphon.party.engine.lane import Lane, Run
from antiphon.party.engine.ports import Authority, Items, LaneState, Posting, Save, Void
from antiphon.party.engine.postings import encode_postings
from antiphon.party.engine.rejudge import Rejudge
from antiphon.party.engine.rest import Rest, RestingLanes
from antiphon.party.engine.rot import Rot
from antiphon.party.engine.row_cache import RowsAhead, row_of
from antiphon.party.engine.scope import Scope

UNSAVED_MESSAGES_MAX = 5_000  # a restart after a crash folds about this many again; a save makes writers wait
UNSAVED_ITEMS_MAX = 400
ROWS_SIZE_AT_ONCE = 1 << 20  # bytes of rows that a save encodes before it writes them
ROW_SIZE_FREE = 1 << 10  # a greater row is paid for by messages, before the next save encodes it again
MESSAGE_PAYS = 64  # bytes of such rows: so saves of growing items cost no more than their messages
GREAT_ROW_SIZE = 16 << 10  # the rest of a greater row also puts off a save for the number of changed items,
PUT_OFF_ITEMS_MAX = 3_000  # by so many items at most: they stay in memory until they are saved
AHEAD_ROWS = 4  # rows encoded with each own message shortly before a save
_BLANK = LaneState(b"", 0).mark  # of a lane in which nothing has happened
MANY = 1_000  # received items: with more changed ones, save; more that are not open are folded without the cache


class Engine(RestingLanes):
    """Feeds, item states and the item store of one party. Not thread-safe: `PartyProcessor` holds a lock around it."""

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
        lanes: list[LaneState] | None = None,
        rest: Rest | None = None,
        rot: Rot | None = None,
    ) -> None:
        """Continue from an item store. `lanes` are those in it, if the caller has loaded them.

        With a `rest` that still holds, they are read when something asks for them.
        """
        super().__init__(party, store, authority, items, models, rest=rest, rot=rot)
        self.base = base  # the snapshot that all states start from
        mark = items.base()
        self.whole = base is None or mark is None or mark.whole  # every item of the base has a row
        self.scope = Scope(self, items.ready_items)
        self.cache = ItemCache(cache_items_max)
        self._judge = Judge(authority)
        self._rejudge = Rejudge(self, self._judge)
        self.items_in = self._rejudge.items_in
        self.authors = Authors(authority)
        self._demux = ItemDemuxer()
        self._verdicts: dict[bytes, dict[Stamp, str]] = {}  # by item: the latest verdict on each message, unsaved
        self.times = FoldTimes()
        self._unsaved = 0
        self._unpaid = 0  # messages that the next save waits for, because of the rows of the last one
        self._unpaid_items = 0  # changed items beyond the usual ones that it waits for, because of great rows
        self._ahead = RowsAhead()
        self._known_models: frozenset[tuple[str, int]] = frozenset()
        self.changed: Callable[[Iterable[bytes]], None] = lambda _: None
        self._branch_geneses = BranchGeneses(store)
        self.batch_open = False  # if so, states hold unwritten messages, and must not be saved
        self.broken = ""  # why memory and item store have parted; "" if they have not
        self.bodiless = True  # there may be messages that were refused because their bodies are missing
        self._rounds = 0
        self._processed = -1  # the feed store's transaction at the last `process`
        self._changed_feeds = store.changed_feeds(party)
        self._fresh = True  # the verdicts that an earlier process saved are not compared with those of now yet
        if rest is None:
            self.load_lanes(items.lanes() if lanes is None else lanes)

    def device_at_rest(self) -> bytes:
        """Return this device and its feeds, if all that is here is processed and saved; else ""."""
        if self.rest is not None:
            return self.rest.device if self.rests() else b""
        settled = self.whole and self.saved.ready_items is None and not (self._demux.count or self.cache.dirty)
        if not settled or self.bodiless or self._fresh or self.broken or self.models.keys != self._known_models:
            return b""
        records = self.store.feeds(self.party)
        return self.authority.device_at_rest() if self.delivery.is_done(records) else b""

    # -- processing

    def process(self) -> int:
        """Deliver and fold all new blocks that can be delivered. Return the number of messages."""
        if self.rests():
            return 0
        now, news = self.store.transaction, self.authority.refresh()
        if now == self._processed and not news and self._at_rest():
            return 0
        with self._without_rot():
            self._refresh(news)
            with gc_paused():
                taken = self._deliver()
        self.authors.record_moved(self.delivery.lanes, self.delivery.moved)
        self._processed = now
        self._rounds += 1
        return taken

    @contextmanager
    def _without_rot(self) -> Iterator[None]:
        """Raise `DamagedItems` where a delivered message has changed on the disk, and its items are to be folded.

        They are built again then, from the blocks before it. The rot itself is no reason to stop the party.
        """
        try:
            yield
        except CorruptBlock as error:
            if error.feed not in self.delivery.lanes or not self.delivery.rot.note(error, self.store.find(error.feed)):
                raise
            raise DamagedItems(f"{error}: items are built again without it") from error

    @property
    def processed(self) -> object:
        """A value that changes with each processing: the feed store's transaction then, and how often there was one."""
        return self._processed, self._rounds, id(self)

    def _at_rest(self) -> bool:
        """True if only new blocks in the feed store can change anything."""
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
        """True if messages wait in the demuxer until their item is opened. Most items of the base have no row then."""
        return not self.whole and self.scope.ready_items is None

    @property
    def items(self) -> Items:
        """The item store, for reads of more than one item: all delivered messages are folded first."""
        self.catch_up()
        return self.saved

    def catch_up(self) -> None:
        """Fold all messages that wait in the demuxer."""
        if self._demux.count:
            news = self._demux.news()
            self._settle()
            self.changed(news)

    def _fold_open(self) -> None:
        """Fold messages to open items. The others wait until their item is opened, or until `items` is read."""
        news = self._demux.news()
        open_ = {item: entry for item in news if (entry := self.cache.get(item)) is not None}
        if open_:
            for item, notes in self._demux.claim(open_).items():
                self.fold_in(open_[item], notes)
        self.changed(news)

    def _refresh(self, news: bool) -> None:
        records: Iterable[FeedRecord] = self._changed_feeds.take()
        if news or self._fresh:  # any feed may have been admitted, or cut
            records = self.store.feeds(self.party)
        known: Collection[bytes] | None = None
        for record in records:
            if record.feed not in self.delivery.lanes:
                known = self.authority.data_feeds() if known is None else known
                if record.feed in known:  # many may have no blocks: a device may admit many feeds, and write to few
                    self.delivery.activate(record.feed)
            lane = self.delivery.lanes.get(record.feed)
            if lane is None:
                continue
            end = min(record.end, self.authority.fork_end(record.feed))
            if end != NO_END:
                self._rejudge.end_lane(lane, end)
            self.delivery.take_branches(record)
            if lane.state.position < record.valid_length:
                self.delivery.wake(record.feed)
        if self.bodiless:
            self._rejudge.look_for_bodies()
        if news or self._fresh:
            self._fresh = False
            self.delivery.wake_for_control()
            self._rejudge.judge_again()
        if self.models.keys != self._known_models:
            self._known_models = self.models.keys
            self._rejudge.pick_up()

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
        """Fold the gathered messages. If they go to very many items that are not open, bypass the cache."""
        gathered = self._demux.drain()
        items = gathered.items()
        open_ = {item: entry for item in items if (entry := self.cache.get(item)) is not None}  # hold them: they stay
        if len(items) - len(open_) > MANY and not self.batch_open:
            fold_many(self, gathered, items)
        else:
            self._fold_gathered(gathered, open_)
            self._unsaved += gathered.count
            del gathered  # a save takes memory of its own
            if min(self._messages_left(), MANY + self._unpaid_items - len(self.cache.dirty)) < 0:
                self.save()

    def _fold_gathered(self, gathered: Gathered, open_: dict[bytes, Entry]) -> None:
        """Fold gathered messages into the cache; `open_` has those of their items that are open."""
        records = self.load([item for item in gathered.items() if item not in open_])
        for groups in gathered.steps():
            for item, notes in groups.items():
                if item not in open_:
                    open_[item] = self.cache.put(self.entry_of(item, records.pop(item, None)))
                self.fold_in(open_[item], notes)

    def fold_in(self, entry: Entry, notes: list[Note], *, keep: bool = True) -> dict[Stamp, str]:
        """Fold messages into an open item. Return the verdicts. With `keep`, the item is saved with the next save."""
        left_out = self.scope.leaves_out(entry.id)
        if left_out or (entry.state is None and not self.whole and not self._fetched(entry.id)):
            entry.put(None)
            self.post(entry, notes)  # they are folded when the item is opened, or comes into scope
            if keep:
                self.cache.dirty[entry.id] = entry
            return {}
        if self._begins_otherwise(entry.state, notes):
            self.post(entry, notes)
            return self._refold_if_here(entry)
        beyond = None if entry.state is not None else self.beyond(entry.id, notes)
        began = perf_counter()
        folded = fold(self.party, entry.id, entry.state, notes, self.models, self.author, beyond=beyond)
        self.times.charge(notes, perf_counter() - began)
        late = folded.late or (entry.orphaned and folded.state is not None)
        entry.put(folded.state)
        self.post(entry, notes)
        if late:
            return self._refold_if_here(entry)
        if folded.verdicts:
            self._verdicts.setdefault(entry.id, {}).update(folded.verdicts)
            self.bodiless = self.bodiless or NO_BODY in folded.verdicts.values()
        if keep:
            self.cache.dirty[entry.id] = entry
        return folded.verdicts

    def post(self, entry: Entry, notes: list[Note]) -> None:
        """Record the feeds and seqs of messages in the postings of their item."""
        entry.post_all(notes, self.delivery.lanes)

    def accept(self, lane: Lane, groups: dict[bytes, list[int]], first: int, authors: Steps | None = None) -> None:
        """Count own messages, which were folded before they were written, and are on the disk now.

        If this device lost its rights in between, they are void like any other message. `authors` are those that items
        with access lists were folded by.
        """
        self.authors.record(lane, first, authors)
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
        left = min(self._messages_left(), UNSAVED_ITEMS_MAX + self._unpaid_items - dirty)
        if left < 0:
            self.save()
        elif left * AHEAD_ROWS < dirty:
            self._ahead.make(self.cache.dirty, AHEAD_ROWS * len(groups), self.saved.index)

    def _messages_left(self) -> int:
        """Return how many messages can be applied before the next save is due."""
        return max(UNSAVED_MESSAGES_MAX, self._unpaid) - self._unsaved

    # -- folding again, when verdicts have changed

    def author(self, feed: bytes, seq: int) -> Author:
        """Return the author of a message, by the control state in its own timeframe."""
        lane = self.delivery.lanes.get(feed)
        return self.authors.of(lane, seq) if lane is not None else self.authority.author(feed, seq, {})

    def refold_all(self, items: set[bytes]) -> None:
        """Fold items again from their messages, and save them, all in one transaction."""
        if not items:
            return
        with self.saving() as put:
            self.refold_into(put, items)
        self.changed(items)

    def refold_into(self, put: Callable[[Save], None], items: Iterable[bytes]) -> None:
        """Fold items again inside a transaction, with the verdicts and positions that their states follow from."""
        for item in sorted(items):
            self._refold_if_here(self.cache.get(item) or Entry(item, None))
            if len(self.cache.dirty) > UNSAVED_ITEMS_MAX:
                put(self.save_of(self.cache.dirty.values(), self.drain_verdicts()))
                self.cache.dirty.clear()
        self.put_all(put)

    def _refold_if_here(self, entry: Entry) -> dict[Stamp, str]:
        """Fold an item again. One that cannot be folded loses its state, which may follow from former verdicts."""
        if self.scope.lacks(entry.id):
            self._verdicts.pop(entry.id, None)
            self.scope.set_aside(entry)
            return {}
        return self.refold(entry)

    def refold(self, entry: Entry) -> dict[Stamp, str]:
        """Fold an item again from its base state and all messages outside the base, in the total order."""
        postings = self._messages.trim(self.items.postings(entry.id) + entry.postings)
        with self._without_rot():
            notes = self._messages.read(self._messages.outside(postings))
        began = perf_counter()
        folded = self.fold_whole(entry.id, notes)
        self.times.charge(notes, perf_counter() - began)
        entry.put(folded.state)
        self.items.forget(entry.id)
        entry.postings = postings
        known = dict.fromkeys(self._verdicts.get(entry.id, ()), "")
        self._verdicts[entry.id] = {**known, **folded.verdicts}
        self.cache.put(entry)
        self.cache.dirty[entry.id] = entry
        return folded.verdicts

    def fold_whole(self, item: bytes, notes: Sequence[Note]) -> Folded:
        """Fold messages outside the base, in the total order, onto the base state of an item."""
        beyond, based = self.beyond(item, notes), self.based(item)
        return fold(self.party, item, based, notes, self.models, self.author, whole=True, beyond=beyond)

    def beyond(self, item: bytes, notes: Sequence[Note]) -> Note | None:
        """Return the genesis beyond a fork that may begin an item with these messages; None for none."""
        if not self.authority.forked() or any(note.kind == Kind.GENESIS for note in notes):
            return None
        return choose(self._candidates(), item, notes)

    def _candidates(self) -> Candidates:
        """Return the geneses beyond forks, by item."""
        bounds = {feed: (lane.state.base, lane.state.position) for feed, lane in self.delivery.lanes.items()}
        return self._branch_geneses.update(self.authority.forked(), bounds)

    def _begins_otherwise(self, item: ItemState | None, notes: Sequence[Note]) -> bool:
        """True if messages may give a view that began beyond a fork another genesis."""
        if item is None or item.view is None or item.based or not self.authority.forked():
            return False
        return may_begin_otherwise(self._candidates(), item.id, item.frame, notes)

    def outside(self, item: bytes, more: Sequence[Posting] = ()) -> list[Posting]:
        """Return the postings of an item outside the base."""
        return self._messages.outside([*self.items.postings(item), *more])

    def notes_outside(self, item: bytes, more: Sequence[Posting] = ()) -> list[Note]:
        """Read the messages to an item outside the base, in the total order."""
        return self._messages.read(self.outside(item, more))

    def reload(self, entry: Entry) -> None:
        """Read an item again from the item store and its unsaved messages: undo messages that were not written."""
        record = self.load([entry.id]).get(entry.id)
        item = self._decode(record)
        with self._without_rot():
            notes = self._messages.read(entry.postings)
        beyond = None if item is not None else self.beyond(entry.id, notes)
        otherwise = self._begins_otherwise(item, notes)
        folded = fold(self.party, entry.id, item, notes, self.models, self.author, beyond=beyond)
        entry.put(folded.state)
        if folded.late or otherwise:
            self._refold_if_here(entry)
        elif entry.state is None and not entry.postings:
            self.cache.drop(entry.id)

    # -- messages

    def history(self, item: bytes) -> list[Note]:
        """Read all messages to an item that are still held, by stamp."""
        postings = self.items.postings(item)
        entry = self.cache.get(item)
        return self._messages.read(self._messages.held(postings + (entry.postings if entry else [])))

    def is_based(self, note: Note) -> bool:
        """True if a message is inside the base."""
        return note.seq < self.delivery.lanes[note.feed].state.base

    # -- items

    def entry(self, item: bytes) -> Entry:
        """Return an open item. One that is not open is read from the item store or the base."""
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
        if entry.state is None and (not self.whole or self.scope.ready_items is not None):
            self.scope.check(item)
            self.refold(entry)  # its messages came before its blobs of the base
        if entry.item is None:
            why = "" if entry.state is None else ", and nobody else has built on it"
            raise UnknownItem(
                f"party {self.party.hex()[:8]}: item {item.hex()} has messages, but no valid genesis{why}"
            )
        return entry

    def find(self, item: bytes) -> ItemState | None:
        """Return the state of an item; None if it is not known."""
        try:
            return self.entry(item).item
        except UnknownItem:
            return None

    def claims(self, item: bytes) -> Sequence[tuple[Stamp, bytes]]:
        """Return all claims of an item to a parent, by ascending stamp."""
        state = self.find(item)
        return () if state is None else state.parents

    def load(self, ids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Load the records of items from their rows, or from the base where an item has no row."""
        found = self.saved.load(ids)
        if self.base is not None and not self.whole:
            rest = [item for item in ids if item not in found and not self.scope.leaves_out(item)]
            found.update((item, item_codec.record_of(data)) for item, data in self.base.items(rest).items())
        return found

    def _fetched(self, item: bytes) -> bool:
        """True if the base is known not to hold this item."""
        try:
            return self.in_base(item) is None
        except MissingBlob:
            return False

    def count(self) -> int:
        """Count the items, with or without rows."""
        rows = self.items.count()
        if self.base is None or self.whole:
            return rows
        opened = self.base.items(list(self.items.ids()))
        return rows - len(opened) + self.base.root.item_count - self.base.hidden_count

    def in_base(self, item: bytes) -> bytes | None:
        """Return the bytes of an item in the base, or None. Raises `MissingBlob`, but not for one that began later."""
        return None if self.base is None or self.base.is_before(item) else self.base.item(item)

    def based(self, item: bytes) -> ItemState | None:
        """Restore an item from the base."""
        data = self.in_base(item)
        return None if data is None else item_codec.restore(data, self.models)

    def entry_of(self, item: bytes, record: bytes | None) -> Entry:
        """Make an entry from a record of the item store. An empty record means: messages, but no genesis."""
        entry = Entry(item, self._decode(record))
        entry.orphaned = record == b""
        return entry

    def _decode(self, record: bytes | None) -> ItemState | None:
        return item_codec.decode(record, self.models) if record else None

    # -- saving

    def save(self) -> None:
        """Save all applied messages to the item store, together with the positions of the feeds."""
        if self.batch_open:
            return
        self.catch_up()
        if not (self._unsaved or self.cache.dirty or self._verdicts or self._moved()):
            return
        with self.saving() as put:
            self.put_all(put)

    @contextmanager
    def saving(self) -> Iterator[Callable[[Save], None]]:
        """Open a transaction of the item store. If it fails, the engine is broken, and must be dropped."""
        try:
            with self.items.saving() as put, gc_paused():
                yield put
        except BaseException as error:
            self.broken = str(error) or repr(error)
            raise

    def put_all(self, put: Callable[[Save], None]) -> None:
        """Save all changed items, verdicts and lanes inside a transaction."""
        dirty, unpaid, great = iter(list(self.cache.dirty.values())), 0, 0
        while (save := self.save_of(islice(dirty, ROWS_AT_ONCE), [], ROWS_SIZE_AT_ONCE)).rows:
            unpaid += sum(max(0, row.size - ROW_SIZE_FREE) for row in save.rows)
            great += sum(max(0, row.size - GREAT_ROW_SIZE) for row in save.rows)
            put(save)
        self._unpaid = unpaid // MESSAGE_PAYS
        self._unpaid_items = min(PUT_OFF_ITEMS_MAX, great // MESSAGE_PAYS)
        lanes = self.delivery.lanes.items()
        moved = [lane.state for feed, lane in lanes if self._marks.get(feed, _BLANK) != lane.state.mark]
        put(Save(verdicts=self.drain_verdicts(), lanes=moved))
        self._marks.update((state.feed, state.mark) for state in moved)
        self.cache.dirty.clear()
        self._ahead.clear()
        self._unsaved = 0
        self.changed(self.items.moved())

    def close(self, *, clear: bool = False) -> None:
        """Close the item store; with `clear`, delete its contents first."""
        if clear:
            self.saved.clear()
        self.saved.close()

    def _moved(self) -> bool:
        lanes = self.delivery.lanes.items() if self.are_read else ()
        return any(self._marks.get(feed, _BLANK) != lane.state.mark for feed, lane in lanes)

    def drain_verdicts(self) -> list[tuple[Stamp, bytes, str]]:
        """Take the unsaved verdicts, for `Save.verdicts`."""
        verdicts, self._verdicts = self._verdicts, {}
        return [(stamp, item, reason) for item, known in verdicts.items() for stamp, reason in known.items()]

    def save_of(
        self, entries: Iterable[Entry], verdicts: list[tuple[Stamp, bytes, str]], size_max: int | None = None
    ) -> Save:
        """Make a `Save` of items and their new postings, which are emptied; of no more after `size_max` bytes."""
        save = Save(verdicts=verdicts)
        posted, size = [], 0
        for entry in entries:
            save.rows.append(row_of(entry, self.items.index))
            entry.cached = None
            if entry.postings:
                posted.append(entry)
            size += save.rows[-1].size
            if size_max is not None and size >= size_max:
                break
        encoded = encode_postings([entry.postings for entry in posted])
        for entry, postings in zip(posted, encoded, strict=True):
            save.postings.append((entry.id, postings))
            entry.postings = []
        return save
