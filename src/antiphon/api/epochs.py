"""`PartyEpochs`: the epochs of a party. Declare one, see who agrees, set the policy, let old messages go.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     party = store.create_party("Household")
...     groceries = party.list(["milk", "bread"])
...     epoch = party.epochs.declare()
...     groceries.append("salt")
...     epoch.final, party.epochs.number, groceries.value
(True, 1, ['milk', 'bread', 'salt'])
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from antiphon.api.copy_blobs import take_blobs
from antiphon.api.key_text import from_any_text
from antiphon.core.cid import Cid
from antiphon.core.errors import InvalidInput, MissingBlob
from antiphon.core.keys import KEY_SIZE
from antiphon.core.timeframe import Timeframe
from antiphon.halo.credentials.claims import Policy
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.epochs.epochs import Disagreement, Epochs
from antiphon.party.epochs.external_snapshot import SnapshotMaker
from antiphon.party.epochs.listing import EpochRecord, list_epochs
from antiphon.party.live.history import PartyPast
from antiphon.party.maintenance.verify_epoch import Verification, verify_epoch
from antiphon.party.views.source import ViewSnapshot, ViewSource
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs

if TYPE_CHECKING:
    from antiphon.api.items.handle import Handle
    from antiphon.api.party import Party

_LIMIT_MAX = (1 << 63) - 1


class Limits(TypedDict, total=False):
    """What a policy says besides who attests; a limit of 0 is none. `Policy` has the meanings."""

    editors_admit: bool
    attestations_min: int
    liars: bool
    silent_ms: int
    skew_ms: int
    epoch_messages: int
    epoch_bytes: int
    epoch_age_ms: int
    epoch_idle_ms: int
    message_age_ms: int
    message_count: int
    deleted_epochs: int
    keep_epochs: int


class PartyEpochs:
    """The epochs of a party, as this device takes part in them. Thread-safe; not to be used inside a batch."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._whole: Cid | None = None  # the last snapshot that is known to be here whole
        self._views: ViewSource | None = None

    def __repr__(self) -> str:
        return f"<epochs of party {self._party.key.short}>"

    # -- what there is

    @property
    def number(self) -> int:
        """The number of the epoch that the party stands on here; 0 before the first."""
        return self._epochs.number

    def list(self) -> builtins.list[EpochRecord]:
        """All final epochs and then what is proposed for the next: who has attested, who has refused, and why."""
        with self._party.processor.locked():
            self._party.member.refresh()
            return list_epochs(self._party.member.machine)

    def __iter__(self) -> Iterator[EpochRecord]:
        return iter(self.list())

    def snapshot(self, number: int) -> EpochBase:
        """The party at an epoch: `item(id)` and `all()` give the bytes of items, as far as blobs are here."""
        try:
            return self._epochs.snapshot(number)
        except MissingBlob as error:
            raise MissingBlob(
                f"party {self._party.key.short}: the snapshot of epoch {number} is not here: {error}; `epochs.fetch` "
                "takes it from the blobs of a store that has it",
                cid=error.cid,
            ) from None

    def at(self, number: int) -> PartyPast:
        """The party as it was at an epoch's cut, as far as snapshots are held: items with their values."""
        cuts = self.snapshot(number).feeds.items()
        return self._party.at(Timeframe({feed: cut.length - 1 for feed, cut in cuts if cut.length}))

    def snapshot_of(self, view: Handle | bytes, number: int | None = None) -> ViewSnapshot:
        """What a view, or any item, and all that belongs to it are at an epoch, the last if none is named.

        It is a part of the epoch's own tree, so its CID is the epoch's; `write` puts it into a CAR file.
        """
        item = bytes(view if isinstance(view, bytes) else view.id)
        at = self.number if number is None else number
        if not at:
            raise InvalidInput(f"party {self._party.key.short} stands on no epoch yet; declare one first")
        return self.views.snapshot_of(self.snapshot(at).cid, item)

    @property
    def views(self) -> ViewSource:
        """Answers whoever follows one view of the party alone."""
        if self._views is None:
            self._views = ViewSource(self._party.key, self._party.processor.store, self._party.processor.blobs)
        return self._views

    @property
    def waits_for(self) -> str:
        """What keeps this device from the next epoch; empty if nothing does."""
        return self._epochs.waits_for or self._party.store.manager.epoch_status(self._party.key)

    @property
    def disagreement(self) -> Disagreement | None:
        """Where this device came to another snapshot than the party. It stays as it is until you `adopt`."""
        return self._epochs.disagreement

    def verify(self, number: int | None = None, *, full: bool = False) -> Verification:
        """Recompute an epoch, the last if none is named, from the messages, and say what differs; nothing is written.

        It builds on the epoch before it, or with `full` on nothing, as far as messages are held.
        """
        return verify_epoch(self._party.processor, self._party.member.machine, number, full=full)

    # -- taking part

    def declare(self, *, raw: bool = False, maker: SnapshotMaker | None = None) -> EpochRecord:
        """Begin an epoch here and now, if it is this device's turn. It is final once enough attesters agree.

        Items whose model has no code here stop it, unless they are to be kept `raw`. A `maker` computes the snapshot
        instead of this thread, say on Spark (`antiphon.pipeline.epoch.epoch_job`).
        """
        genesis = self._alone.declare(raw=raw, maker=maker)
        key = (genesis.number, genesis.snapshot)
        return next(record for record in self.list() if (record.number, record.snapshot) == key)

    def step(self) -> bool:
        """Attest what is proposed and stand on what is final. `sync` does it; a store with `epochs` always."""
        return self._alone.step()

    def prune(self) -> int:
        """Let go of messages that a final epoch holds, as policy allows; returns how many.

        Of those that policy keeps, the bodies go that the party had erased before the epoch.
        """
        return self._alone.prune()

    def recover(self) -> bool:
        """Say that this device has heard all that it ever said about the open epoch; was anything done then?

        A device whose store was restored may have forgotten its votes, and does not vote until a final epoch holds its
        new feed (`waits_for`). Exchange with all other attesters first: who says this too early may vote twice.
        """
        self._party.member.recovered = True
        return self.step()

    def adopt(self) -> bool:
        """Give up this device's own state for the party's epoch, where they differ.

        False if its snapshot is not here yet; sync with somebody who has it, and adopt again.
        """
        return self._alone.adopt()

    # -- policy

    @property
    def policy(self) -> Policy:
        """What the party has agreed on."""
        return self._epochs.policy()

    def set_policy(
        self,
        *,
        attesters: Iterable[bytes | str] | None = None,
        generator: bytes | str | None = None,
        **limits: Unpack[Limits],
    ) -> Policy:
        """Change what is named here, and keep the rest. An owner may.

        Attesters and generator are devices; an identity stands for its device, if it has one. Who attests changes with
        the next epoch. A `generator` of `b""` is nobody: then it is the attester that ranks first.
        """
        if isinstance(attesters, bytes | str):
            raise InvalidInput("the attesters of a policy are several keys, in a list")
        changes: dict[str, Any] = _checked(limits)
        with self._party.processor.locked():
            if attesters is not None:
                changes["attesters"] = tuple(sorted({self._device(one, "an attester") for one in attesters}))
            if generator is not None:
                changes["generator"] = self._device(generator, "the generator") if generator else b""
            self._party.member.set_policy(replace(self.policy, tightens=(), cuts={}, **changes))
            return self.policy

    def _device(self, named: bytes | str, what: str) -> bytes:
        """The one device that is meant."""
        key = from_any_text(named) if isinstance(named, str) else named
        if not isinstance(key, bytes) or len(key) != KEY_SIZE:
            raise InvalidInput(f"{what} is named by the key of a device or an identity, not by {named!r:.80}")
        member = self._party.member
        devices = member.devices(key)
        if len(devices) > 1:
            several = ", ".join(device.hex() for device in devices)
            raise InvalidInput(
                f"identity {key.hex()[:8]} has {len(devices)} devices; name the one that is to be {what}: {several}"
            )
        if devices:
            return devices[0]
        if key in member.machine.epochs().feeds.values():
            return bytes(key)
        raise InvalidInput(
            f"{key.hex()[:8]} is no device of party {self._party.key.short}, and no identity with one, as far as is "
            f"known here; who is to be {what} must have joined: sync first"
        )

    # -- blobs

    def fetch(self, source: Blobs, number: int | None = None) -> int:
        """Take from another store what is missing of an epoch's snapshot, the last if none is named; how many blobs.

        That of an earlier one stays until garbage is collected; with its blobs here, `at` and `snapshot` go there.
        """
        blobs, moved = self._party.processor.blobs, 0
        with blobs.putting():  # nobody collects them before the party stands on them
            while taken := take_blobs(source, blobs, self._wanted() if number is None else self._missing(number)):
                moved += taken
            if moved and number is None:
                self.step()
        return moved

    def _missing(self, number: int) -> builtins.list[Cid]:
        final = self._epochs.chain().final
        if not 0 < number <= len(final):
            raise InvalidInput(f"party {self._party.key.short} has no final epoch {number}; it has {len(final)}")
        return builtins.list(tree.missing(Cid(final[number - 1].snapshot), self._party.processor.blobs))

    def _wanted(self) -> builtins.list[Cid]:
        final = self._epochs.chain().last
        root = None if final is None else Cid(final.snapshot)
        if root is None or root == self._whole:
            return []
        wanted = self._epochs.wanted(whole=True)
        if not wanted and self._party.processor.blobs.has(root):
            self._whole = root
        return wanted

    # -- inside

    @property
    def _epochs(self) -> Epochs:
        _ = self._party.processor.engine  # one that is closed says so
        return self._party.store.manager.epochs(self._party.key)

    @property
    def _alone(self) -> Epochs:
        """For what may compute for long: not under the party's lock, which others wait for."""
        if self._party.processor.is_held():
            raise InvalidInput(f"party {self._party.key.short}: a batch is open; leave it first")
        return self._epochs


def _checked(limits: Limits) -> dict[str, Any]:
    known = {field.name: field.type for field in fields(Policy)}
    for name, value in limits.items():
        if name not in Limits.__annotations__:
            raise InvalidInput(f"a policy has no {name!r}; it has {', '.join(sorted(Limits.__annotations__))}")
        wanted = bool if known[name] == "bool" else int
        if type(value) is not wanted or not 0 <= value <= _LIMIT_MAX:
            raise InvalidInput(f"{name} of a policy is {'true or false' if wanted is bool else 'a number from 0 on'}")
    return dict(limits)
