"""`MetaStore`: the parties that this machine follows, their feeds, and the preferences of its user.

>>> from antiphon.core.keys import KeyPair
>>> party, feed = KeyPair.from_seed(b"p" * 32).key, KeyPair.from_seed(b"f" * 32).key
>>> with MetaStore.open("meta.db") as store:
...     followed = store.subscribe(party, label="Book club", genesis_feed=feed)
...     store.set("theme", "dark", party=party)
>>> with MetaStore.open("meta.db") as store:
...     store.find(party).label, store.feeds(party)[0].genesis, store.get("theme", "light", party=party)
('Book club', True, 'dark')

It is one SQLite file (`meta_file`). Nothing in it is replicated.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, overload

from antiphon.core.errors import InvalidInput, StoreError, TooLarge
from antiphon.core.keys import PublicKey
from antiphon.core.ports import Clock, SystemClock
from antiphon.halo.credentials.claims import FeedKind
from antiphon.halo.keys.key_file import encode_label
from antiphon.party.store.meta_file import MetaFile, Rows

BUSY_TIMEOUT_MS = 10_000
PARTIES_MAX = 4096
FEEDS_PER_PARTY_MAX = 16_384
PREFERENCES_PER_SCOPE_MAX = 256
PREFERENCE_KEY_SIZE_MAX = 128
PREFERENCE_VALUE_SIZE_MAX = 64 << 10
PREFERENCE_DEPTH_MAX = 32
_ADDED_MAX = 1 << 62
_EVERYWHERE = b""  # the scope of preferences without a party

Value = TypeVar("Value", bool, int, float, str, list[Any], dict[str, Any])


class SubscriptionState(enum.Enum):
    """State of a subscription. A forgotten party stays as a tombstone, so that it is not followed again by accident."""

    ACTIVE = "active"
    PAUSED = "paused"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A party that is, or was, followed here. `genesis_feed` is None until it is found."""

    party: PublicKey
    genesis_feed: PublicKey | None
    label: str
    state: SubscriptionState
    added_ms: int


@dataclass(frozen=True, slots=True)
class KnownFeed:
    """A feed of a party. `kind` and `device` are None until the feed's admission was read."""

    feed: PublicKey
    party: PublicKey
    kind: FeedKind | None
    device: PublicKey | None
    written_here: bool
    genesis: bool


class MetaStore:
    """Open one with `open`, and close it or use it in a `with`. Thread-safe; several processes may share one file.

    A change is on the disk when its call returns.
    """

    def __init__(self, file: MetaFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    @classmethod
    def open(cls, path: str | Path, *, clock: Clock | None = None, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> MetaStore:
        """Open the store in file `path`, or create it. A damaged or foreign file is refused."""
        return cls(MetaFile(Path(path).absolute(), busy_timeout_ms), clock or SystemClock())

    @property
    def path(self) -> Path:
        """Absolute path of the file."""
        return self._file.path

    # -- parties

    def subscribe(
        self, party: bytes, *, label: str = "", genesis_feed: bytes | None = None, again: bool = False
    ) -> Subscription:
        """Follow a party. For a followed party this only sets a missing genesis feed: a paused party stays paused.

        A forgotten party is refused unless `again` is set.
        """
        key, genesis, now_ms = PublicKey(party), _optional(genesis_feed), self._clock.now_ms()
        encode_label(label)
        if not 0 <= now_ms < _ADDED_MAX:
            raise InvalidInput(f"the clock says {now_ms} ms since 1970; set it right")
        with self._file.write() as rows:
            known = _find(rows, key)
            if known is None:
                _check_room(rows.count("parties"), PARTIES_MAX, "parties; no more can be followed from one store")
                known = Subscription(key, None, label, SubscriptionState.ACTIVE, now_ms)
            elif known.state is SubscriptionState.FORGOTTEN:
                if not again:
                    raise _forgotten(key)
                known = replace(known, label=label or known.label, state=SubscriptionState.ACTIVE, added_ms=now_ms)
            if genesis is not None:
                known = _with_genesis(rows, known, genesis)
            return _put(rows, known)

    def pause(self, party: bytes) -> Subscription:
        """Keep the data of a party, but do not run it until `resume`."""
        return self._change(party, state=SubscriptionState.PAUSED)

    def resume(self, party: bytes) -> Subscription:
        """Run a paused party again."""
        return self._change(party, state=SubscriptionState.ACTIVE)

    def rename(self, party: bytes, label: str) -> Subscription:
        """Give a party another label; it is seen on this machine only."""
        encode_label(label)
        return self._change(party, label=label)

    def set_genesis_feed(self, party: bytes, feed: bytes) -> Subscription:
        """Note the feed that holds the party's genesis, once it is found. It never changes afterwards."""
        key, genesis = PublicKey(party), PublicKey(feed)
        with self._file.write() as rows:
            return _put(rows, _with_genesis(rows, _followed(rows, key), genesis))

    def forget(self, party: bytes) -> Subscription:
        """Never run this party again. Deletes its preferences; keeps its list of feeds, to delete their blocks by."""
        key = PublicKey(party)
        with self._file.write() as rows:
            known = _find(rows, key)
            if known is None:
                raise _unknown(key)
            rows.drop("preferences", scope=bytes(key))
            return _put(rows, replace(known, state=SubscriptionState.FORGOTTEN))

    def find(self, party: bytes) -> Subscription | None:
        """Return the subscription of a party, also of a forgotten one; None if there is none."""
        with self._file.read() as rows:
            return _find(rows, PublicKey(party))

    def parties(self, state: SubscriptionState | None = None) -> tuple[Subscription, ...]:
        """Return the parties in a state, or all including tombstones, ascending by key."""
        with self._file.read() as rows:
            return tuple(known for known in map(_party, rows.select("parties")) if state in (None, known.state))

    def _change(self, party: bytes, **changes: Any) -> Subscription:
        key = PublicKey(party)
        with self._file.write() as rows:
            return _put(rows, replace(_followed(rows, key), **changes))

    # -- feeds

    def add_feed(
        self,
        feed: bytes,
        party: bytes,
        kind: FeedKind | None = None,
        *,
        device: bytes | None = None,
        written_here: bool | None = None,
    ) -> KnownFeed:
        """Add a feed of a party, or complete what is known of it.

        Kind and device never change once they are known. `written_here` may; None keeps its value.
        """
        key, owner, writer = PublicKey(feed), PublicKey(party), _optional(device)
        with self._file.write() as rows:
            return _add_feed(rows, _followed(rows, owner), key, kind, writer, written_here)

    def find_feed(self, feed: bytes) -> KnownFeed | None:
        """Return a known feed of any party, or None."""
        with self._file.read() as rows:
            return _find_feed(rows, PublicKey(feed))

    def feeds(self, party: bytes | None = None) -> tuple[KnownFeed, ...]:
        """Return the feeds of a party, or of all parties, ascending by key. Includes feeds of forgotten parties."""
        where = {} if party is None else {"party": bytes(PublicKey(party))}
        with self._file.read() as rows:
            genesis = {known.party: known.genesis_feed for known in map(_party, rows.select("parties", **where))}
            return tuple(_feed(row, genesis.get(row[1])) for row in rows.select("feeds", **where))

    # -- preferences and configuration

    def set(self, key: str, value: object, *, party: bytes | None = None) -> None:
        """Set a JSON value under a key, for one party or for this machine."""
        scope, text = _scope(key, party), _to_json(key, value)
        with self._file.write() as rows:
            if scope:
                _followed(rows, PublicKey(scope))
            if not rows.count("preferences", scope=scope, key=key):
                count = rows.count("preferences", scope=scope)
                _check_room(count, PREFERENCES_PER_SCOPE_MAX, "preferences; unset some")
            rows.put("preferences", scope, key, text)

    @overload
    def get(self, key: str, default: None = None, *, party: bytes | None = None) -> Any: ...
    @overload
    def get(self, key: str, default: Value, *, party: bytes | None = None) -> Value: ...
    def get(self, key: str, default: Any = None, *, party: bytes | None = None) -> Any:
        """Return the value under a key, or the default. It must have the default's type; an int passes for a float."""
        scope = _scope(key, party)
        with self._file.read() as rows:
            row = rows.one("preferences", scope=scope, key=key)
        if row is None:
            return default
        value = json.loads(row[2])
        if type(default) is float and type(value) is int:
            return float(value)
        if default is not None and type(value) is not type(default):
            raise InvalidInput(
                f"the preference {key!r} holds a {type(value).__name__}, not a {type(default).__name__}; "
                "unset it, or ask with a default of its own type"
            )
        return value

    def unset(self, key: str, *, party: bytes | None = None) -> bool:
        """Delete a value. True if there was one."""
        scope = _scope(key, party)
        with self._file.write() as rows:
            return rows.drop("preferences", scope=scope, key=key) > 0

    def preferences(self, party: bytes | None = None) -> dict[str, Any]:
        """Return all values of one party, or those without a party, ascending by key."""
        scope = _EVERYWHERE if party is None else bytes(PublicKey(party))
        with self._file.read() as rows:
            return {key: json.loads(text) for _, key, text in rows.select("preferences", scope=scope)}

    # -- the file

    def verify(self) -> None:
        """Read and verify everything; `open` does so, too."""
        self._file.verify()

    def copy(self, path: Path) -> None:
        """Write the state of this moment into a new file. Several processes may write meanwhile."""
        self._file.copy(path)

    def close(self) -> None:
        """Close the store. Closing again has no effect."""
        self._file.close()

    def __enter__(self) -> MetaStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Rows as values, and the rules between them. These functions run inside the caller's transaction.


def _party(row: tuple[Any, ...]) -> Subscription:
    party, genesis_feed, label, state, added_ms = row
    return Subscription(PublicKey(party), _optional(genesis_feed), label, SubscriptionState(state), added_ms)


def _feed(row: tuple[Any, ...], genesis_feed: PublicKey | None) -> KnownFeed:
    feed, party, kind, device, written_here = row
    return KnownFeed(
        PublicKey(feed),
        PublicKey(party),
        FeedKind[kind.upper()] if kind else None,
        _optional(device),
        written_here=bool(written_here),
        genesis=feed == genesis_feed,
    )


def _put(rows: Rows, known: Subscription) -> Subscription:
    rows.put("parties", known.party, known.genesis_feed, known.label, known.state.value, known.added_ms)
    return known


def _find(rows: Rows, party: PublicKey) -> Subscription | None:
    row = rows.one("parties", party=party)
    return None if row is None else _party(row)


def _followed(rows: Rows, party: PublicKey) -> Subscription:
    known = _find(rows, party)
    if known is None:
        raise _unknown(party)
    if known.state is SubscriptionState.FORGOTTEN:
        raise _forgotten(party)
    return known


def _with_genesis(rows: Rows, known: Subscription, feed: PublicKey) -> Subscription:
    before = known.genesis_feed
    if before is not None and before != feed:
        raise InvalidInput(
            f"party {known.party.short} has its genesis in feed {before.short}, not in {feed.short}; a party has one "
            "genesis, so do not trust the source of the other one"
        )
    begun = replace(known, genesis_feed=feed)
    _add_feed(rows, begun, feed, FeedKind.CONTROL, None, None)
    return begun


def _find_feed(rows: Rows, feed: PublicKey) -> KnownFeed | None:
    row = rows.one("feeds", feed=feed)
    if row is None:
        return None
    owner = _find(rows, PublicKey(row[1]))
    return _feed(row, owner.genesis_feed if owner else None)


def _add_feed(
    rows: Rows, owner: Subscription, feed: PublicKey, kind: FeedKind | None, device: PublicKey | None, own: bool | None
) -> KnownFeed:
    known = _find_feed(rows, feed)
    if known is None:
        count = rows.count("feeds", party=owner.party)
        _check_room(count, FEEDS_PER_PARTY_MAX, f"feeds of party {owner.party.short}; no party of people has so many")
        known = KnownFeed(feed, owner.party, kind, device, written_here=False, genesis=False)
    if known.party != owner.party:
        raise InvalidInput(f"feed {feed.short} belongs to party {known.party.short}; a feed belongs to one party")
    if kind and known.kind and kind is not known.kind:
        raise InvalidInput(f"feed {feed.short} is a {_name(known.kind)} feed, not a {_name(kind)} feed; open another")
    if device and known.device and device != known.device:
        raise InvalidInput(f"feed {feed.short} is written by device {known.device.short}; a feed has one writer")
    learnt = replace(
        known,
        kind=known.kind or kind,
        device=known.device or device,
        written_here=known.written_here if own is None else own,
        genesis=feed == owner.genesis_feed,
    )
    rows.put("feeds", feed, learnt.party, _name(learnt.kind), learnt.device, int(learnt.written_here))
    return learnt


def _name(kind: FeedKind | None) -> str | None:
    return kind.name.lower() if kind else None


def _optional(key: bytes | None) -> PublicKey | None:
    return None if key is None else PublicKey(key)


def _unknown(party: PublicKey) -> StoreError:
    return StoreError(f"party {party.short} is not followed here; subscribe to it first")


def _forgotten(party: PublicKey) -> StoreError:
    return StoreError(
        f"party {party.short} was forgotten here; subscribe with again=True, or take it back, if its return is meant"
    )


def _check_room(count: int, most: int, what: str) -> None:
    if count >= most:
        raise TooLarge(f"there are {count} {what}")


# Preferences


def _scope(key: str, party: bytes | None) -> bytes:
    """Check the key of a preference, and return its scope. Keys are shown to people, so they are printable."""
    if not key.isprintable() or not 0 < len(key.encode()) <= PREFERENCE_KEY_SIZE_MAX:
        raise InvalidInput(
            f"the key of a preference is 1 to {PREFERENCE_KEY_SIZE_MAX} bytes of printable text, not {key[:40]!r}"
        )
    return _EVERYWHERE if party is None else bytes(PublicKey(party))


def _to_json(key: str, value: object) -> str:
    """Encode a value as JSON that decodes to an equal value, or raise."""
    if value is None:
        raise InvalidInput(f"the preference {key!r} cannot hold None; unset it instead")
    text, back, deep = "", None, True
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        back = json.loads(text) if len(text.encode()) <= PREFERENCE_VALUE_SIZE_MAX else None
        deep = _depth(back) > PREFERENCE_DEPTH_MAX
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the preference {key!r} is no JSON value: {error}") from None
    except RecursionError:  # deeper than Python can walk
        deep = True
    if back is None or deep:
        raise TooLarge(
            f"the preference {key!r} is too large; at most {PREFERENCE_VALUE_SIZE_MAX} bytes are kept, nested at most "
            f"{PREFERENCE_DEPTH_MAX} deep. Larger things belong into items"
        )
    if back != value:
        raise InvalidInput(f"the preference {key!r} would come back changed; use lists, and text as keys of dicts")
    return text


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)
