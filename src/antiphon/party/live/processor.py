"""`PartyProcessor`: one running party. Create, pause, resume or delete it at any time; parties are independent.

>>> from antiphon.core.keys import KeyPair
>>> from antiphon.feed.store.feed_store import FeedStore
>>> from antiphon.party.engine.authority import OpenAuthority
>>> with FeedStore.open("feeds") as store:
...     key = KeyPair.from_seed(b"p" * 32).key
...     alone = OpenAuthority(store, key, KeyPair.from_seed(b"f" * 32))
...     with PartyProcessor(key, store, alone) as party:
...         note = party.create("antiphon/object")
...         _ = note.edit("set", "title", "Milk")
...         note.value
{'title': 'Milk'}
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from antiphon.core.errors import DamagedItems, FeedRetired, InvalidInput, MissingBlob, MissingBlocks, PartyPaused
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Clock, Randomness, SystemClock, SystemRandomness
from antiphon.core.reasons import Reason, text_of
from antiphon.core.timeframe import Timeframe
from antiphon.feed.header import Entry
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.writer import FeedWriter
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.fold import IGNORED, NO_BODY, NO_ITEM
from antiphon.model.hierarchy import derive
from antiphon.party.engine.cache import CACHE_ITEMS_MAX
from antiphon.party.engine.engine import Engine
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import Authority, Index, Items, LaneState, Refused
from antiphon.party.engine.rest import Rest
from antiphon.party.engine.rot import Rot
from antiphon.party.engine.row_cache import prepare_rows
from antiphon.party.epochs.rebase import choose_base, hydrate
from antiphon.party.live.batch import Batch
from antiphon.party.live.engine_lock import Locked
from antiphon.party.live.feed_watcher import FeedWatcher
from antiphon.party.live.history import PartyPast
from antiphon.party.live.index_attach import attach
from antiphon.party.live.item import Item
from antiphon.party.live.listeners import Listeners
from antiphon.party.live.resting import load_rest, save_rest
from antiphon.party.live.status import Status
from antiphon.party.live.unlisted_control import UnlistedControl
from antiphon.party.store.consistency import check_begun, load_lanes
from antiphon.party.store.item_store import ItemStore, delete_file
from antiphon.snapshot.blobs import Blobs, MemoryBlobs

_LOG = logging.getLogger(__name__)


class PartyProcessor:
    """Runs the live engine of one party, and writes to it. Thread-safe; local calls are synchronous.

    `path` is the item store's file; without one, and without `open_items`, states are kept in memory. `start` processes
    new blocks in a thread; without it, call `process` after blocks were stored.
    """

    def __init__(
        self,
        party: bytes,
        store: FeedStore,
        authority: Authority,
        *,
        path: str | Path | None = None,
        models: ModelFactory | None = None,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        cache_items_max: int = CACHE_ITEMS_MAX,
        open_items: Callable[[], Items] | None = None,
        index: Callable[[Any], Index] | None = None,
        blobs: Blobs | None = None,
    ) -> None:
        self.key = PublicKey(party)
        self.store = store
        self.authority = authority
        self.models = models or ModelFactory.standard()
        self.clock = clock or SystemClock()
        self.randomness = randomness or SystemRandomness()
        self.path = Path(path) if path is not None else None
        self._cache_items_max = cache_items_max
        self.blobs = MemoryBlobs() if blobs is None else blobs
        self._index = index  # attached at the start, unless there are items without an index
        self._open_items = open_items or (lambda: ItemStore(self.path, self.key))
        self._lock = threading.RLock()
        self.waited_for = False  # set when a caller has to wait for the lock; reset by long work that yields
        self.let_in = threading.Event()  # set when a waiting caller has got the lock
        self._locked = Locked(self)
        self._events: list[bytes] = []
        self._after: list[Callable[[], None]] = []
        self.listeners = Listeners(self.key.short)
        self._advanced = threading.Condition(self._lock)
        self.moved: set[bytes] = set()  # feeds with blocks delivered since this device last wrote
        self.control = UnlistedControl()
        self.why_rebuilt = self.error = ""
        self._rot = Rot()
        self._rebuilding = False
        self.checks: list[Callable[[Batch], None]] = []  # called before a batch is written; one that raises refuses it
        self.resume()

    # -- start and stop

    @property
    def engine(self) -> Engine:
        """The live engine. Raises `PartyPaused` if the party does not run."""
        if self._rebuilding:
            with self._lock:
                pass  # another thread builds it again: wait for that
        if self._engine is None:
            why = f"stopped by an error ({self.error})" if self.failed else "paused, closed or deleted here"
            raise PartyPaused(f"party {self.key.short} is {why}; resume it, or open it again")
        return self._engine

    @property
    def running(self) -> bool:
        """True if the party is not paused, closed, deleted or stopped by an error. It runs while it is built again."""
        return self._engine is not None or self._rebuilding

    def resume(self) -> None:
        """Start the engine from the item store, and process new blocks. Does nothing if the party runs."""
        with self._lock:
            if self._engine is not None:
                return
            items = self._open_items()
            try:
                rest = load_rest(items, self)
                lanes, why = ([], "") if rest is not None else load_lanes(items, self.store, self.key)
                try:
                    self._begin(items, lanes, items.why_rebuilt or why, rest)
                except DamagedItems as error:
                    self._begin(items, [], str(error))
            except BaseException:
                self._engine = None
                items.close()
                raise
            assert self._engine is not None
            self.failed, self.error = False, ""
            self._engine.changed = self._events.extend
            self.moved, self.control = set(), UnlistedControl()
            self._resting = True
            self._advanced.notify_all()  # the engine that failed may have delivered what somebody waits for
        try:
            self.process()
        except DamagedItems:
            if self._depth or self._engine is None:  # else the items are rebuilt already
                raise

    def _begin(self, items: Items, lanes: list[LaneState], why: str, rest: Rest | None = None) -> None:
        """Make the engine of an item store, after emptying it if there is a reason to build it again."""
        if why:
            items.clear()
            lanes = []
        base, lost = choose_base(items, self.authority, self.blobs, self.key, begun=bool(lanes) or rest is not None)
        self._note_rebuilt(why or lost)
        self._engine = Engine(
            self.key,
            self.store,
            self.authority,
            items,
            self.models,
            cache_items_max=self._cache_items_max,
            base=base,
            lanes=None if lost else lanes or None,  # an emptied store may begin at an epoch
            rest=None if lost else rest,
            rot=self._rot,
        )
        self._attach(self._engine)

    def begin_again(self) -> None:
        """Empty the item store, and start at the last final epoch whose snapshot is here."""
        with self.locked():
            if self._batch is not None:
                raise InvalidInput(f"party {self.key.short}: a batch is open; leave it first")
            self._rebuild(self.sound().items.ids())

    def attach(self, make: Callable[[Any], Index]) -> Index | None:
        """Attach an index for queries to the item store, and fill it if it is new."""
        with self.locked():
            self._make_index = make
            engine = self.sound()
            return engine.items.index or attach(engine, make)

    def _attach(self, engine: Engine) -> None:
        """Attach an existing index, or a new one if the party is empty. Filling one for many items takes time."""
        if self._make_index is not None:
            attach(engine, self._make_index)
        elif self._index is not None:
            found = attach(engine, self._index, only_known=not engine.items.empty() or not engine.whole)
            self._make_index = None if found is None else self._index

    def pause(self, *, is_idle: bool = False) -> None:
        """Save, stop, and free all memory. Handles stay, and work again after `resume`.

        `is_idle` tells that the epochs of the party wait for new blocks alone.
        """
        self._stop_thread()
        with self._lock:
            engine, self._engine = self._engine, None
            self.failed = False
            if engine is not None:
                try:
                    engine.save()
                    save_rest(engine, self.store, is_idle=is_idle)
                finally:
                    engine.close()
            self._advanced.notify_all()

    close = pause

    def delete(self) -> None:
        """Stop, and delete the item store. The feeds stay in the feed store, so the party can be opened again."""
        self._stop_thread()
        with self._lock:
            engine, self._engine = self._engine, None
            self.failed = False
            if engine is not None:
                engine.close(clear=True)
            if self.path is not None:
                delete_file(self.path)
            self._advanced.notify_all()

    def start(self, above: bytes | None = None) -> None:
        """Process new blocks in a thread of this party's own. `above` is the parent of a child party."""
        of = [self.key] if above is None else [self.key, above]
        with self._lock:
            if self._watcher is None or not self._watcher.thread.is_alive():
                self._watcher = FeedWatcher(self.store.watch(of), f"antiphon {self.key.short}", self._catch_up)

    def _catch_up(self) -> bool:
        """Process new blocks, in the watcher's thread. False if the party is paused, so the thread ends."""
        try:
            (self.resume if self.failed else self.process)()
        except PartyPaused:
            return self.failed
        except Exception as error:
            self.error = str(error)  # shown by `status`; the next block tries again
        return True

    def _stop_thread(self) -> None:
        if self.open_batch() is not None:
            raise InvalidInput(f"party {self.key.short}: a batch is open; leave it first")
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop(wait=not self.is_held())

    def __enter__(self) -> PartyProcessor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- processing

    def locked(self) -> Locked:
        """Return a context that gives the engine to one caller at a time. Listeners run when the outermost one ends."""
        return self._locked

    def is_held(self) -> bool:
        """True if the calling thread has the party's lock, and so must not wait for another thread."""
        return self._owner == threading.get_ident()

    def process(self) -> int:
        """Process the new blocks of all feeds, and return how many messages were delivered."""
        with self.locked() as engine:
            if self._batch is not None:
                return 0  # the batch has fixed its lamport and states: new blocks are processed after it
            try:
                taken = engine.process()
            except DamagedItems as error:
                if self._depth > 1:
                    raise  # the items are rebuilt when the outermost context ends
                self._damaged = str(error)
                self._rebuild()
                return 0
            except BaseException as error:
                self._reset(str(error) or repr(error))
                raise
            if engine.rest is not None:
                return 0
            self.moved |= engine.delivery.take_moved()
            if self._resting:
                self._resting = False
                self.moved.update(engine.delivery.lanes)
            if taken:
                self.error = ""
                self._advanced.notify_all()
            return taken

    def rouse(self) -> int:
        """End the rest of the party, and process all its feeds; without one, as `process`."""
        with self.locked() as engine:
            engine.rouse()
            return self.process()

    def rest(self) -> Rest | None:
        """Return what the party rests on, if nothing has come since it was closed; else None."""
        with self._lock:
            engine = self._engine
            return engine.rest if engine is not None and engine.rests() else None

    def look(self) -> None:
        """Read new control blocks, which may name further feeds. `process` still finds that they came."""
        with self._lock:
            self.authority.look()

    def _reset(self, why: str) -> None:
        """Drop the engine after an error: its memory may be inconsistent, and the item store is not."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
            self.failed, self.error = True, why
        self._batch = self._batch_task = None

    def sound(self) -> Engine:
        """Return the engine once its item store was checked, built again if it was damaged. The caller has the lock."""
        try:
            self.engine.items.checked()
        except DamagedItems as error:
            if self._depth > 1 or self._batch is not None:
                raise  # the items are rebuilt when the outermost context ends
            self._damaged = str(error)
            self._rebuild()
        return self.engine

    def _rebuild(self, known: Iterable[bytes] = ()) -> None:
        """Empty the item store, and build it again from the feeds. Any item may have changed."""
        before = set(known)
        engine, self._engine, self._batch = self._engine, None, None
        self._note_rebuilt(self._damaged)
        self._damaged = ""
        if engine is not None:
            self._rebuilding = True  # else another thread would open the party a second time
            try:
                engine.close(clear=True)
                self.resume()
            finally:
                self._rebuilding = False
            if self.listeners.listening:
                with suppress(MissingBlob):
                    before.update(self.items())
                self._events.extend(before)

    def _note_rebuilt(self, why: str) -> None:
        if why:
            self.why_rebuilt = why
            _LOG.warning("party %s: its items are built again from the feeds: %s", self.key.short, why)

    @property
    def processed(self) -> object:
        """A value that changes whenever blocks were processed: then `wanted_blocks` may answer differently."""
        with self.locked() as engine:
            return engine.processed

    def wanted_blocks(self) -> list[Entry]:
        """Return blocks that are not here, perhaps of other branches of their feeds, and that others refer to."""
        with self.locked() as engine:
            return list(dict.fromkeys((*engine.authority.wanted(), *engine.delivery.wanted())))

    def save(self) -> None:
        """Save all applied messages to the item store now. This also happens regularly, and on closing."""
        prepare_rows(self)
        with self.locked() as engine:
            engine.save()

    @property
    def timeframe(self) -> Timeframe:
        """The last delivered message of each data feed."""
        with self.locked() as engine:
            return engine.delivery.timeframe()

    def wait_for(self, timeframe: Timeframe, timeout_s: float | None = None) -> bool:
        """Wait until all of `timeframe` is delivered. False if the time is up first."""
        if self.is_held():
            raise InvalidInput(f"party {self.key.short}: do not wait inside a batch or a read; nothing arrives there")
        if self.failed:
            self.resume()
        with self._advanced:
            return self._advanced.wait_for(
                lambda: not self.failed and self.engine.delivery.covers(timeframe), timeout_s
            )

    def status(self) -> Status:
        """Return the current status, also of a party that does not run."""
        for _ in range(2 if self.running else 0):  # once more if a check ends meanwhile, and the items are rebuilt
            with suppress(PartyPaused, DamagedItems), self.locked():
                return Status.of(self.sound(), self.error, self.why_rebuilt)
        return Status.of(None, self.error, self.why_rebuilt)

    def refused(self, limit: int = 1000) -> list[Refused]:
        """Return refused messages, each with the reason."""
        with self.locked():
            engine = self.sound()
            engine.save()
            ignored = {record.feed for record in self.store.feeds(self.key) if record.ignored}
            return [
                row._replace(reason=IGNORED) if row.feed in ignored and row.reason in (NO_BODY, NO_ITEM) else row
                for row in engine.items.refused(limit)
            ]

    # -- items

    def item(self, item_id: bytes) -> Item:
        """Return a handle on an item, or raise `UnknownItem`."""
        with self.locked() as engine:
            engine.entry(item_id)
            return Item(self, bytes(item_id))

    def items(self, model: str | None = None) -> list[bytes]:
        """Return the ids of all items, also deleted ones, in the order of their geneses."""
        with self.locked():
            engine = self.sound()
            engine.save()
            hydrate(engine)
            found = list(engine.items.ids(model))
            if self._batch is None:
                return found
            unsaved = [entry.item for entry in engine.cache.open() if entry.item is not None]
            return sorted({*found, *(bytes(item.id) for item in unsaved if model in (None, item.name))})

    def parents(self) -> dict[bytes, bytes]:
        """Return the parent of each item that has one. Cycles are broken in the same way on every peer."""
        with self.locked() as engine:
            return derive((at, item, parent) for item in self.items() for at, parent in engine.claims(item))

    def snapshot(self, item_id: bytes) -> bytes:
        """Return the canonical bytes of an item: equal on every peer and engine with the same messages."""
        with self.locked() as engine:
            item = engine.entry(item_id).item
            assert item is not None
            return item_codec.snapshot(item)

    def create(
        self,
        model: str,
        *,
        version: int | None = None,
        parent: bytes | None = None,
        link: tuple[bytes, bytes] | None = None,
        inception: KeyPair | None = None,
    ) -> Item:
        """Create an item, or a view if there is an inception key. Its parent and the ends of a link must be here."""
        known = self.models.get(model, version)
        with self.batch() as batch:
            for other in filter(None, (parent, *(link or ()))):
                self.engine.entry(other)
            return Item(self, batch.create(known.name, known.version, parent or b"", link, inception))

    @property
    def root(self) -> Item:
        """The system item, the root of the party's items. Every party has one; it is an ordinary object."""
        return Item(self, bytes(SYSTEM_ITEM))

    # -- writing

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Write several messages, to any items, of which others see all or none. Nested batches join the outer one."""
        with self.locked():
            known = self.batch_to_join()
            if known is not None:
                yield known
                return
            if self._resting:
                self.rouse()
            batch = self._batch = Batch(self, capture=self._undo_listener is not None)
            self._batch_thread, self._batch_task = threading.get_ident(), current_task()
            self.engine.batch_open = True
            try:
                yield batch
                for check in self.checks:
                    check(batch)
            except BaseException:
                self._end_batch()
                batch.roll_back()
                raise
            finally:
                self._after += batch.on_end
            self._end_batch()
            touched = batch.items
            batch.commit()
            self._events.extend(touched)
            self._advanced.notify_all()
            if self._undo_listener is not None and batch.reversals:
                self._undo_listener(batch)

    def batch_to_join(self) -> Batch | None:
        """Return the batch that a write of the caller becomes part of, or None.

        A write of another asyncio task than the one that opened the batch is refused: it would be acknowledged, and
        rolled back with the batch.
        """
        batch = self.open_batch()
        if batch is not None and self._batch_task is not None and self._batch_task is not current_task():
            raise InvalidInput(
                f"party {self.key.short}: another task of this event loop holds a batch open across an `await`, and "
                "this write would become part of it; nothing was written: let that task await before or after its batch"
            )
        return batch

    def _end_batch(self) -> None:
        self._batch, self._batch_thread, self._batch_task = None, 0, None
        self.engine.batch_open = False

    def open_batch(self) -> Batch | None:
        """Return the batch that the calling thread is in, or None."""
        return self._batch if self._batch_thread == threading.get_ident() else None

    _engine: Engine | None = None
    _resting = False  # nothing was processed since the party was opened
    _watcher: FeedWatcher | None = None
    _batch: Batch | None = None
    _make_index: Callable[[Any], Index] | None = None
    _batch_thread = _depth = _owner = 0  # the batch's thread, the nesting depth of the lock, the lock's thread
    _batch_task: object = None  # the asyncio task that opened the batch; None outside of event loops
    _damaged, failed = "", False  # `failed`: stopped by an error, not by a caller
    _undo_listener: Callable[[Batch], None] | None = None

    def record_changes(self, listener: Callable[[Batch], None] | None) -> None:
        """Pass each batch that is written here to an undo stack, with what undoing it needs. None ends that."""
        with self._lock:
            if listener is not None and self._undo_listener is not None:
                raise InvalidInput(f"party {self.key.short} has an undo stack already; close that first")
            self._undo_listener = listener

    def at(self, timeframe: Timeframe) -> PartyPast:
        """Return the whole party at an earlier timeframe, if the messages or snapshots it needs are held."""
        return PartyPast(self, timeframe)

    def own_lane(self, writer: FeedWriter) -> Lane:
        """Return the lane of this device's feed, delivered to its end."""
        engine = self.engine
        lane = engine.delivery.lanes.get(writer.feed)
        if lane is None or lane.state.position != self.store.record(writer.feed).length:
            self.process()
            engine.delivery.activate(writer.feed)
            lane = engine.delivery.lanes[writer.feed]
            check_begun(lane.state, self.store)
            self._check_delivered(writer.feed)
        return lane

    def _check_delivered(self, feed: bytes) -> None:
        """Raise `MissingBlocks` before a write to a feed whose own last blocks wait for others.

        If a final epoch holds another branch of the feed, what is here never continues it: the feed is retired.
        """
        blocked = self.engine.delivery.blocked_at(feed)
        if self.engine.delivery.lanes[feed].other_branch:
            raise self.retire(feed, "a final epoch holds another branch of it")
        if blocked is not None and blocked.code is Reason.DAMAGED:
            raise self.retire(feed, text_of(blocked.reason))
        if blocked is not None and blocked.waits_for is not None:
            raise MissingBlocks(
                f"party {self.key.short}: block {blocked.seq} of this device's own feed waits: {blocked.reason}; it "
                "can write again once that is here: sync with a peer that has it"
            )

    def retire(self, feed: bytes, why: str) -> FeedRetired:
        """Never write this device's feed again, and return the error that says so."""
        self.store.retire(feed)
        return FeedRetired(
            f"party {self.key.short}: this device must not write its feed {feed.hex()[:8]} any more, as {why}; nothing "
            "was written: refresh the party, or open it again, which opens a new feed"
        )

    def listen(
        self,
        callback: Callable[[frozenset[bytes]], None],
        note: Callable[[frozenset[bytes]], None] | None = None,
    ) -> Callable[[], None]:
        """Call back with the ids of changed items after each change, until the returned function is called.

        `note` gets them before, under the party's lock: see `Listeners.listen`.
        """
        return self.listeners.listen(callback, note)


def current_task() -> object:
    """Return the asyncio task that the caller runs in; None outside of event loops."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None
