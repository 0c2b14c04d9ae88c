"""`PartyEpochs`: the epochs of a party. Declare and attest epochs, set the policy, prune old messages.

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


class PolicyLimits(TypedDict, total=False):
    """The limits of a policy, besides its attesters and generator. 0 is no limit. `Policy` documents each one."""

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
    """The epochs of a party: `party.epochs`.

    An epoch is a numbered cut through all feeds, with a snapshot of all items at that cut. It is final once enough
    attesters have computed the same snapshot. Thread-safe. Methods that compute snapshots cannot be used inside a
    batch.
    """

    def __init__(self, party: Party) -> None:
        self._party = party
        self._views: ViewSource | None = None

    def __repr__(self) -> str:
        return f"<epochs of party {self._party.key.short}>"

    # -- reading

    @property
    def number(self) -> int:
        """The number of the epoch that this device's state is based on; 0 before the first epoch."""
        return self._epochs.number

    def list(self) -> builtins.list[EpochRecord]:
        """List all final epochs, then the proposals for the next one.

        Each record says which devices have attested the epoch, and which have refused it and why.
        """
        with self._party.processor.locked():
            self._party.member.refresh()
            return list_epochs(self._party.member.machine)

    def __iter__(self) -> Iterator[EpochRecord]:
        return iter(self.list())

    def snapshot(self, number: int) -> EpochBase:
        """Return the snapshot of an epoch. Its `item(id)` and `all()` return the encoded states of items.

        `MissingBlob` if blobs of the snapshot are not on this device.
        """
        try:
            return self._epochs.snapshot(number)
        except MissingBlob as error:
            raise MissingBlob(
                f"party {self._party.key.short}: the snapshot of epoch {number} is not here: {error}; `epochs.fetch` "
                "takes it from the blobs of a store that has it",
                cid=error.cid,
            ) from None

    def at(self, number: int) -> PartyPast:
        """Return the party as it was at the cut of an epoch: items with their values, as far as snapshots are held."""
        cuts = self.snapshot(number).feeds.items()
        return self._party.at(Timeframe({feed: cut.length - 1 for feed, cut in cuts if cut.length}))

    def snapshot_of(self, view: Handle | bytes, number: int | None = None) -> ViewSnapshot:
        """Return the part of a snapshot that holds a view, or any item, with all items that belong to it.

        `number` is the epoch, by default the current one. The result is a part of the epoch's own tree, so its CID is
        the CID of the epoch. Its `write` writes a CAR file.
        """
        item = bytes(view if isinstance(view, bytes) else view.id)
        at = self.number if number is None else number
        if not at:
            raise InvalidInput(f"party {self._party.key.short} has no epoch yet; declare one first")
        return self.views.snapshot_of(self.snapshot(at).cid, item)

    @property
    def views(self) -> ViewSource:
        """Answers the requests of devices that hold one view of this party alone."""
        if self._views is None:
            self._views = ViewSource(self._party.key, self._party.processor.store, self._party.processor.blobs)
        return self._views

    @property
    def waits_for(self) -> str:
        """The reason why this device cannot declare, attest or adopt the next epoch; empty if there is none."""
        status = self._epochs.waits_for or self._party.store.manager.epoch_status(self._party.key)
        return status or self._epochs.obstacle()  # also if this device takes no part in epochs by itself

    @property
    def disagreement(self) -> Disagreement | None:
        """The final epoch whose snapshot differs from the one that this device computed; None if there is none.

        The device keeps its own state until you call `adopt`.
        """
        return self._epochs.disagreement

    def verify(self, number: int | None = None, *, full: bool = False) -> Verification:
        """Recompute the snapshot of an epoch from the messages, and report the differences. Nothing is written.

        `number` is the epoch, by default the last. The computation starts from the epoch before it; with `full`, from
        the first message, as far as messages are held.
        """
        return verify_epoch(self._party.processor, self._party.member.machine, number, full=full)

    # -- taking part

    def declare(self, *, raw: bool = False, maker: SnapshotMaker | None = None) -> EpochRecord:
        """Declare an epoch at the current state, if it is this device's turn. It is final once enough attesters agree.

        Items whose model has no code on this device prevent the epoch, unless `raw` keeps them as bytes. A `maker`
        computes the snapshot instead of this thread, for example on Spark (`antiphon.pipeline.epoch.epoch_job`).
        """
        genesis = self._unlocked_epochs.declare(raw=raw, maker=maker)
        key = (genesis.number, genesis.snapshot)
        return next(record for record in self.list() if (record.number, record.snapshot) == key)

    def step(self) -> bool:
        """Attest proposed epochs, and move to a new final one. True if anything was done.

        `sync` calls this. Unless a store was opened with `epochs=False`, it also does it in the background.
        """
        return self._unlocked_epochs.step()

    def prune(self) -> int:
        """Delete messages that a final epoch contains, as far as policy allows. Return how many.

        Of messages that policy keeps, only the bodies are deleted that the party had erased (`Party.erase`) before the
        epoch.
        """
        return self._unlocked_epochs.prune()

    def recover(self) -> bool:
        """Confirm that this restored device has received everything that it ever wrote about the open epoch.

        A device whose store was restored from a backup may have forgotten its votes. It does not vote until a final
        epoch contains its new feed (`waits_for` says so), or until you call this. Sync with all other attesters first:
        a device that confirms too early may vote twice. True if `step` did anything then.
        """
        self._party.member.recovered = True
        return self.step()

    def adopt(self) -> bool:
        """Replace this device's own state with the snapshot of the party's epoch, where they differ (`disagreement`).

        False if that snapshot is not on this device yet: sync with a device that has it, and adopt again.
        """
        return self._unlocked_epochs.adopt()

    # -- policy

    @property
    def policy(self) -> Policy:
        """The policy in force: who attests epochs, and when messages are pruned."""
        return self._epochs.policy()

    def set_policy(
        self,
        *,
        attesters: Iterable[bytes | str] | None = None,
        generator: bytes | str | None = None,
        **limits: Unpack[PolicyLimits],
    ) -> Policy:
        """Change the named parts of the policy, and keep the rest. Only owners can do this. Return the new policy.

        - `attesters`: the devices that attest epochs, from the next epoch on.
        - `generator`: the device that declares epochs. `b""` means none: then the attester that ranks first declares
        them.
        - `limits`: the fields of `PolicyLimits`, such as `epoch_messages=1000`.

        A device is named by its key, or by the key of its identity if the identity has exactly one device.

        >>> import antiphon
        >>> with antiphon.open("laptop", unprotected=True) as store:
        ...     party = store.create_party()
        ...     policy = party.epochs.set_policy(attesters=[store.device], epoch_messages=1000)
        ...     policy.epoch_messages, policy.attesters == (store.device,)
        (1000, True)
        """
        if isinstance(attesters, bytes | str):
            raise InvalidInput("the attesters of a policy are several keys, in a list")
        changes: dict[str, Any] = _check_limits(limits)
        with self._party.processor.locked():
            if attesters is not None:
                changes["attesters"] = tuple(sorted({self._device(one, "an attester") for one in attesters}))
            if generator is not None:
                changes["generator"] = self._device(generator, "the generator") if generator else b""
            self._party.member.set_policy(replace(self.policy, tightens=False, cuts={}, **changes))
            return self.policy

    def _device(self, named: bytes | str, what: str) -> bytes:
        """Return the device that a key names."""
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
        """Copy the missing blobs of a snapshot from another store (`store.manager.blobs`). Return how many were copied.

        `number` is the epoch, by default the last. The blobs of an earlier epoch stay until the next garbage
        collection; until then, `at` and `snapshot` can read that epoch.
        """
        blobs, moved = self._party.processor.blobs, 0
        with blobs.putting():  # no garbage collection before the party uses them
            while taken := take_blobs(source, blobs, self._missing(number)):
                moved += taken
            if moved and number is None:
                self.step()
        return moved

    def _missing(self, number: int | None) -> builtins.list[Cid]:
        if number is None:
            return self._epochs.wanted(whole=True)
        final = self._epochs.chain().final
        if not 0 < number <= len(final):
            raise InvalidInput(f"party {self._party.key.short} has no final epoch {number}; it has {len(final)}")
        return builtins.list(tree.missing(Cid(final[number - 1].snapshot), self._party.processor.blobs))

    # -- inside

    @property
    def _epochs(self) -> Epochs:
        _ = self._party.processor.engine  # raises `PartyPaused` if the party is closed
        return self._party.store.manager.epochs(self._party.key)

    @property
    def _unlocked_epochs(self) -> Epochs:
        """The epochs, for long computations, which must not run while the caller holds the party's lock."""
        if self._party.processor.is_held():
            raise InvalidInput(f"party {self._party.key.short}: a batch is open; leave it first")
        return self._epochs


def _check_limits(limits: PolicyLimits) -> dict[str, Any]:
    known = {field.name: field.type for field in fields(Policy)}
    for name, value in limits.items():
        if name not in PolicyLimits.__annotations__:
            raise InvalidInput(f"a policy has no {name!r}; it has {', '.join(sorted(PolicyLimits.__annotations__))}")
        wanted = bool if known[name] == "bool" else int
        if type(value) is not wanted or not 0 <= value <= _LIMIT_MAX:
            raise InvalidInput(f"{name} of a policy is {'true or false' if wanted is bool else 'a number from 0 on'}")
    return dict(limits)
