"""`FollowedViews`: the parties of which a device holds one view alone, and how far it is with each.

They stand in a file of the store's folder, so that a party is opened again as it was followed. What a device that
follows a view fetches, and from whom, is decided in `antiphon.party.views.partial_party`; here it goes from store to
store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from antiphon.api.invitation import Invitation
from antiphon.api.json_file import JsonFile
from antiphon.api.locator import Locator
from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.ids import ItemId
from antiphon.core.keys import PublicKey
from antiphon.party.store.item_store import ItemStore, delete_file
from antiphon.party.views.partial_party import PartialParty, open_items
from antiphon.party.views.selection import ViewSelection

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store
    from antiphon.party.live.processor import PartyProcessor

_END = 8  # bytes of an id that are looked at before it is derived


class Followed(NamedTuple):
    """A view that is followed: its id, once that is known, and whether all of the party is wanted again."""

    locator: Locator
    item: bytes = b""
    leaving: bool = False


class FollowedViews:
    """Thread-safe. The id of a view is not in its locator: it is learnt from whoever has the view, and checked."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._file = JsonFile(path, "the list of followed views")
        self._folder = folder  # of the item stores
        self._lock = threading.Lock()
        self.driving = threading.RLock()  # one thread at a time takes a view on; taken before any party's lock
        self._views = self._read()
        self._selections: dict[bytes, ViewSelection] = {}
        self._open: dict[bytes, tuple[PartyProcessor, PartialParty]] = {}

    # -- what is followed

    def __contains__(self, party: bytes) -> bool:
        return bytes(party) in self._views

    def locator(self, party: bytes) -> Locator | None:
        """The view that is followed of a party; None where that is followed whole, or not at all."""
        found = self._views.get(bytes(party))
        return None if found is None else found.locator

    def leaving(self, party: bytes) -> bool:
        """Whether all of a party is wanted again, and has not come yet."""
        found = self._views.get(bytes(party))
        return found is not None and found.leaving

    def leave(self, party: bytes) -> None:
        """Want all of a party again; the view is shown until it has come."""
        with self._lock:
            found = self._views[bytes(party)]._replace(leaving=True)
            self._keep({**self._views, bytes(party): found})

    def remove(self, party: bytes) -> None:
        """All of a party is here: it is opened as a whole from now on; it must not be open."""
        key = bytes(party)
        with self._lock:
            self._keep({other: found for other, found in self._views.items() if other != key})
            self._forget(key)

    def add(self, locator: Locator, item: bytes = b"") -> None:
        """Follow a view from now on; the party must not be open."""
        key = bytes(locator.party)
        with self._lock:
            self._keep({**self._views, key: Followed(locator, bytes(item))})
            self._forget(key)

    def _forget(self, key: bytes) -> None:
        """What was derived of a party."""
        self._selections.pop(key, None)
        self._open.pop(key, None)
        delete_file(self._path(key))

    def nameless(self, party: bytes) -> Locator | None:
        """The view that is followed of a party, if its id is not known yet."""
        found = self._views.get(bytes(party))
        return None if found is None or found.item else found.locator

    # -- running

    def open_items(self, party: bytes) -> ItemStore:
        """How a party's item store is opened: as a whole, or for the one view of it."""
        path, selection = self._path(party), self._selection(party)
        return ItemStore(path, party) if selection is None else open_items(selection, path, party)()

    def _path(self, party: bytes) -> Path:
        return self._folder / f"{party.hex()}.db"

    def _selection(self, party: bytes) -> ViewSelection | None:
        key = bytes(party)
        with self._lock:
            if key not in self._views:
                return None
            if key not in self._selections:
                found = self._views[key]
                self._selections[key] = ViewSelection(found.item or _unknown(found.locator))
            return self._selections[key]

    def keeps(self, party: bytes) -> Callable[[int, bytes], bool] | None:
        """Which bodies are wanted of a party, by kind and item; None: all."""
        selection = None if self.leaving(party) else self._selection(party)
        return None if selection is None else selection.keeps

    def of(self, party: Party) -> PartialParty | None:
        """The view that is followed of an open party. What changes there is looked at, to see what belongs to it."""
        selection = self._selection(party.key)
        if selection is None:
            return None
        key, processor = bytes(party.key), party.processor
        known = self._open.get(key)
        if known is not None and known[0] is processor:
            return known[1]
        made = PartialParty(processor, party.store.manager.epochs(key), selection)
        with self._lock:
            known = self._open.setdefault(key, (processor, made))
            if known[0] is not processor:
                known = self._open[key] = (processor, made)
        return known[1]

    def step(self, party: Party) -> None:
        """See what belongs to the view now, where one is followed and no batch is open."""
        view = None if party.processor.is_held() else self.of(party)
        if view is not None:
            with self.driving:
                view.step()

    # -- the file

    def _read(self) -> dict[bytes, Followed]:
        try:
            rows = [
                Followed(Locator.parse(row["view"]), bytes.fromhex(row["item"]), bool(row["leaving"]))
                for row in self._file.read() or ()
            ]
        except BadEncoding:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadEncoding(f"{self._file} is none: {error!r}; repair it") from None
        return {bytes(row.locator.party): row for row in rows}

    def _keep(self, views: dict[bytes, Followed]) -> None:
        rows = [
            {"view": str(found.locator), "item": found.item.hex(), "leaving": found.leaving} for found in views.values()
        ]
        self._file.write(rows)
        self._views = views


def hold_view(store: Store, view: Locator | str, invitation: Invitation | str | None) -> None:
    """See `Store.hold_view`."""
    locator = Locator.parse(view) if isinstance(view, str) else view
    if not isinstance(locator, Locator):
        raise InvalidInput(f"a view is followed by its locator, or the text of one, not by {view!r:.80}")
    invited = Invitation.parse(invitation) if isinstance(invitation, str) else invitation
    if invited is not None and invited.party != locator.party:
        raise InvalidInput(f"the invitation is to party {invited.party.short}, the view of {locator.party.short}")
    party, genesis = store.running(bytes(locator.party)), None if invited is None else invited.genesis
    _follow(store, locator, b"" if party is None else _find(locator, party.processor))
    store.manager.subscribe(locator.party, genesis, "" if invited is None else invited.label, again=True)


def learn(store: Store, there: Party) -> None:
    """Ask somebody who has a party for the id of the view that is followed of it here, where it is not known yet."""
    locator = store.followed.nameless(there.key)
    item = b"" if locator is None else _find(locator, there.processor)
    if locator is not None and item:
        _follow(store, locator, item)


def become_whole(party: Party) -> None:
    """All of a party has come: open it as a whole from now on."""
    _close(party.store, party.key)
    party.store.followed.remove(party.key)


def _follow(store: Store, locator: Locator, item: bytes) -> None:
    """What was derived of a party goes, and comes again for the view alone."""
    _close(store, locator.party)
    store.followed.add(locator, item)


def _close(store: Store, key: PublicKey) -> None:
    party = store.running(bytes(key))
    if party is not None:
        if party.processor.is_held():
            raise InvalidInput(f"party {key.short}: a batch is open; leave it first")
        party.release()
    store.manager.close_party(key)


def _find(locator: Locator, there: PartyProcessor) -> bytes:
    """The id of a view in a party; empty if it is not there.

    Nobody can tell a wrong one: it follows from the inception key and the lamport that it begins with.
    """
    end = _unknown(locator)[-_END:]
    for item in map(ItemId, there.items()):  # of several geneses of one key the first holds
        if item[-_END:] == end and item == ItemId.of_view(item.lamport, party=locator.party, key=locator.key):
            return bytes(item)
    return b""


def _unknown(locator: Locator) -> ItemId:
    """Stands for a view whose id is not known yet: no genesis has the lamport 0."""
    return ItemId.of_view(0, party=locator.party, key=locator.key)
