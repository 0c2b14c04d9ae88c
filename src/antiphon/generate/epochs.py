"""`EpochMaker`: real epochs. The founder's device declares them, and a second device recomputes and attests them.

Each device runs a live engine of its own over the home's feeds, in memory. Only the founder's blobs are kept.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from antiphon.core.ports import SeededRandomness
from antiphon.feed.store.tables import Tables
from antiphon.generate.members import Home
from antiphon.generate.seeded import pair_of
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore
from antiphon.halo.member.membership import Membership
from antiphon.model.factory import ModelFactory
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.snapshot.blobs import Blobs, MemoryBlobs


class EpochMaker:
    """The two devices that make the epochs of a party. Close it after the party is written."""

    def __init__(self, home: Home, founder: Membership, folder: Path, blobs: Blobs, names: tuple[int, int]) -> None:
        self._home = home
        self._stack = ExitStack()
        self._founder = founder
        identity = Identity(pair_of(*names, "keeper"))
        device = Device(pair_of(*names, "keeper's device"), identity.key)
        keys = KeyStore.create(
            folder / f"{names[1]}.keys",
            protection=Protection.UNPROTECTED,
            randomness=SeededRandomness(f"{names} keeper"),
        )
        keys.add(device.pair, KeyKind.DEVICE, "second device", owner=identity.key)
        founder.admit(identity.key, [Role.EPOCH_GENERATOR])
        member = Membership.open(
            home.store,
            keys,
            device,
            founder.party,
            founder.genesis_feed,
            clock=home.clock,
            randomness=SeededRandomness(f"{names} member"),
        )
        member.join(member.vouch(identity))
        founder.refresh()
        founder.set_policy(Policy(attesters=tuple(sorted((home.device.key, device.key))), generator=home.device.key))
        self._member = member
        self._blobs = blobs
        self._epochs: list[Epochs] = []

    def _open(self) -> list[Epochs]:
        models = ModelFactory.standard()
        for member, blobs in ((self._founder, self._blobs), (self._member, MemoryBlobs())):
            processor = PartyProcessor(
                member.party,
                self._home.store,
                PartyAuthority.of(self._home.store, member),
                models=models,
                clock=self._home.clock,
                randomness=SeededRandomness("not drawn from"),
                blobs=blobs,
            )
            self._epochs.append(Epochs(self._stack.enter_context(processor), member))
        return self._epochs

    def epoch(self) -> dict[bytes, int]:
        """Declare an epoch of all blocks in the store, attest it, rebase both devices onto it, and return its cut."""
        founder, keeper = self._epochs or self._open()
        number = founder.number + 1
        founder.declare()
        keeper.step()
        founder.step()
        assert founder.number == keeper.number == number, founder.waits_for or keeper.waits_for
        return dict(founder.chain().final[-1].cut)

    def close(self) -> None:
        """Close both engines, and mark the second device's feed as not writable here: it belongs to another home."""
        self._stack.close()
        assert self._member.control is not None
        feed = bytes(self._member.control.feed)

        def give(tables: Tables) -> None:
            tables.put_record(replace(tables.record(feed), writable=False))

        with self._home.store.batch() as batch:
            batch.changes.append(give)
