"""`HeldViews`: the parties of which a store holds one view alone, and their state.

The list is a file in the store's folder, so that a party is opened the same way after a restart.
`antiphon.party.views.partial_party` decides what a device that holds one view fetches; this module connects it to the
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
from antiphon.halo.keys.key_file import usable_label
from antiphon.party.store.item_store import ItemStore, delete_file
from antiphon.party.views.partial_party import PartialParty, open_items
from antiphon.party.views.selection import ViewSelection

if TYPE_CHECKING:
    from antiphon.api.party import Party
    from antiphon.api.store import Store
    from antiphon.party.live.processor import PartyProcessor

_END = 8  # bytes of an id that are compared before the whole id is derived


class HeldView(NamedTuple):
    """A held view. `item` is its id, empty until it is known. `leaving`: the store is to hold the whole party again."""

    locator: Locator
    item: bytes = b""
    leaving: bool = False


class HeldViews:
    """The held views of a store, by party. Thread-safe.

    The locator of a view does not contain its item id. A device that has the view sends the id, and it is checked here.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self._file = JsonFile(path, "the list of held views")
        self._folder = folder  # of the item stores
        self._lock = threading.Lock()
        self.step_lock = threading.RLock()  # for `PartialParty.step`; taken before the lock of any party
        self._views = self._read()
        self._selections: dict[bytes, ViewSelection] = {}
        self._open: dict[bytes, tuple[PartyProcessor, PartialParty]] = {}

    # -- the list

    def __contains__(self, party: bytes) -> bool:
        return bytes(party) in self._views

    def locator(self, party: bytes) -> Locator | None:
        """Return the locator of the held view of a party; None if the party is held whole, or not at all."""
        found = self._views.get(bytes(party))
        return None if found is None else found.locator

    def wants_whole(self, party: bytes) -> bool:
        """True if the store is to hold the whole party again, but not all of it has arrived."""
        found = self._views.get(bytes(party))
        return found is not None and found.leaving

    def want_whole(self, party: bytes) -> None:
        """Hold the whole party again. The view is shown until everything has arrived."""
        with self._lock:
            found = self._views[bytes(party)]._replace(leaving=True)
            self._keep({**self._views, bytes(party): found})

    def remove(self, party: bytes) -> None:
        """Open a party as a whole from now on, because all of it has arrived. The party must not be open."""
        key = bytes(party)
        with self._lock:
            self._keep({other: found for other, found in self._views.items() if other != key})
            self._forget(key)

    def add(self, locator: Locator, item: bytes = b"") -> None:
        """Hold a view of a party from now on. The party must not be open."""
        key = bytes(locator.party)
        with self._lock:
            self._keep({**self._views, key: HeldView(locator, bytes(item))})
            self._forget(key)

    def _forget(self, key: bytes) -> None:
        """Delete the derived data of a party: its selection and its item store."""
        self._selections.pop(key, None)
        self._open.pop(key, None)
        delete_file(self._path(key))

    def without_id(self, party: bytes) -> Locator | None:
        """Return the locator of the held view of a party, if its item id is not known yet; else None."""
        found = self._views.get(bytes(party))
        return None if found is None or found.item else found.locator

    # -- open parties

    def open_items(self, party: bytes) -> ItemStore:
        """Open the item store of a party: for the held view alone, or for the whole party."""
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
                self._selections[key] = ViewSelection(found.item or _placeholder_id(found.locator))
            return self._selections[key]

    def keeps(self, party: bytes) -> Callable[[int, bytes], bool] | None:
        """Return a function (kind, item) that is True for the bodies to store; None to store all bodies."""
        selection = None if self.wants_whole(party) else self._selection(party)
        return None if selection is None else selection.keeps

    def partial_party(self, party: Party) -> PartialParty | None:
        """Return the `PartialParty` of an open party of which one view is held; None for a party that is held whole.

        It observes the changes of the party, to find which items belong to the view.
        """
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
        """Update the items that belong to the held view of a party, if there is one and no batch is open."""
        view = None if party.processor.is_held() else self.partial_party(party)
        if view is not None:
            with self.step_lock:
                view.step()

    # -- the file

    def _read(self) -> dict[bytes, HeldView]:
        try:
            rows = [
                HeldView(Locator.parse(row["view"]), bytes.fromhex(row["item"]), bool(row["leaving"]))
                for row in self._file.read() or ()
            ]
        except BadEncoding:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadEncoding(f"{self._file} is none: {error!r}; repair it") from None
        return {bytes(row.locator.party): row for row in rows}

    def _keep(self, views: dict[bytes, HeldView]) -> None:
        rows = [
            {"view": str(found.locator), "item": found.item.hex(), "leaving": found.leaving} for found in views.values()
        ]
        self._file.write(rows)
        self._views = views


def hold_view(store: Store, view: Locator | str, invitation: Invitation | str | None) -> None:
    """Implement `Store.hold_view`."""
    locator = Locator.parse(view) if isinstance(view, str) else view
    if not isinstance(locator, Locator):
        raise InvalidInput(f"a view is named by its locator, or the text of one, not by {view!r:.80}")
    invited = Invitation.parse(invitation) if isinstance(invitation, str) else invitation
    if invited is not None and invited.party != locator.party:
        raise InvalidInput(f"the invitation is to party {invited.party.short}, the view of {locator.party.short}")
    party, genesis = store.running(bytes(locator.party)), None if invited is None else invited.genesis
    _hold(store, locator, b"" if party is None else _find_view(locator, party.processor))
    label = "" if invited is None else usable_label(invited.label)
    store.manager.subscribe(locator.party, genesis, label, again=True)


def learn_view_id(store: Store, there: Party) -> None:
    """Take the id of a held view from a party that has the view, if the id is not known yet."""
    locator = store.held_views.without_id(there.key)
    item = b"" if locator is None else _find_view(locator, there.processor)
    if locator is not None and item:
        _hold(store, locator, item)


def open_whole(party: Party) -> None:
    """Open a party as a whole from now on, because all of it has arrived."""
    _close(party.store, party.key)
    party.store.held_views.remove(party.key)


def _hold(store: Store, locator: Locator, item: bytes) -> None:
    """Delete the derived data of a party, and hold one view of it from now on."""
    _close(store, locator.party)
    store.held_views.add(locator, item)


def _close(store: Store, key: PublicKey) -> None:
    party = store.running(bytes(key))
    if party is not None:
        if party.processor.is_held():
            raise InvalidInput(f"party {key.short}: a batch is open; leave it first")
        party.close_subscriptions()
    store.manager.close_party(key)


def _find_view(locator: Locator, there: PartyProcessor) -> bytes:
    """Return the id of a view in a party; empty if the view is not there.

    A wrong id cannot be passed off: it is derived from the inception key and from the lamport at its start.
    """
    end = _placeholder_id(locator)[-_END:]
    for item in map(ItemId, there.items()):  # if a key was used several times, the first view counts
        if item[-_END:] == end and item == ItemId.of_view(item.lamport, party=locator.party, key=locator.key):
            return bytes(item)
    return b""


def _placeholder_id(locator: Locator) -> ItemId:
    """The item id of a view whose id is not known yet. No real item has it: no genesis has the lamport 0."""
    return ItemId.of_view(0, party=locator.party, key=locator.key)
