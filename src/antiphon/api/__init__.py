"""The database as an application sees it: a store, its parties, and items that behave like Python objects.

Start reading at `store.py` (`antiphon.open`), then `party.py`, then `items/handle.py`.

    store         `Store`: one folder with keys, feeds and parties; the order of locks
    party         `Party`: members; creates, finds and watches items; history, undo, export
    epochs        `PartyEpochs` (`party.epochs`): declare, attest, prune, policy
    join          `Party.join`: opens the feeds of this device
    child_party   child parties: parties with the members of another party
    held_views    `HeldViews` (`store.held_views`): parties of which the store holds one view alone
    erase         `Party.erase`
    operator      `PartyOperator` (`party.operator`): costs, ignoring, ending a device, leaving
    invitation    `Invitation`: the text with which a device joins a party
    locator       `Locator`: the global address of a view
    registry      `Registry`: names of models and view classes, and the packages with their code
    options       keyword arguments that several methods share
    inputs        checks of arguments, with errors that name the expected value
    key_text      keys as text with a checksum
    json_file     small JSON files in a store's folder, replaced atomically
    copy_blobs    copies blobs between two stores in one process
    home_keys     opens or creates the keys of a home, before any other of its files
    backup/       copies of a home that is in use, and homes made of them
    health/       what is wrong with the files of a home, and what to do about it
    items/        handles: `Object`, `List`, `Text`, `Thread`, `File`
    query/        arguments of queries, their results and deltas
    typed/        objects with a schema
    network/      connections to other devices, and the parties of a store as they see them
    sync/         copies feeds, blobs and views between two stores in one process

In: calls of the application. Out: handles, results and subscriptions. The package imports every layer below it (core,
feed, halo, model, snapshot, party, query, schema, mesh); only the command line and the test kits import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.api.child_party import ChildParty as ChildParty
    from antiphon.api.invitation import Invitation as Invitation
    from antiphon.api.locator import Locator as Locator
    from antiphon.api.registry import (
        LocalRegistry as LocalRegistry,
        Registry as Registry,
        RegistryEntry as RegistryEntry,
    )
else:
    __getattr__, __dir__ = lazy_exports(__name__)
