"""`Admits`: the port that says which device may have which party; `PartyAdmits` answers by the control feeds.

A session asks it when it opens, when the other end shows credentials, and after each control change. What it answers
about one device is told to nobody: strangers, revoked members and ended devices all meet the same silence.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import FeedKind
from antiphon.halo.member.device_proof import CREDENTIALS_MAX, DeviceStanding, make_proof, stands
from antiphon.halo.member.membership import Membership
from antiphon.party.live.processor import PartyProcessor


class Access(enum.IntEnum):
    """How much of a party a device may have."""

    NOTHING = 0  # it is not even told that the party is held here
    CONTROL = 1  # control feeds only
    WHOLE = 2


class Admits(Protocol):
    """Which device may have a party. Device keys are proven before they come here: by a channel, or in one process."""

    def version(self) -> int:
        """Return a number that changes whenever an answer may have changed. Cheap if nothing was written."""

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        """Return what a device may have that shows these credentials, which are not verified yet."""

    def seeks(self) -> bool:
        """True if this device is no member as far as known here: then it speaks first, and takes what it is given."""

    def proof(self) -> tuple[bytes, ...]:
        """Return the credentials that this device shows to others."""


class PartyAdmits:
    """Answers by the control state of a party. Members of the party, and of its parent, may have all of it.

    `word` is the identity's word for this device (`device_proof.vouch`); without it, the one in the device's feeds is
    shown. Members of `children` may have the control feeds, by which their own party is judged.
    """

    def __init__(
        self,
        party: PartyProcessor,
        member: Membership,
        *,
        word: bytes = b"",
        children: Callable[[], Iterable[Admits]] = tuple,
    ) -> None:
        self._party = party
        self._member = member
        self._word = word
        self._children = children
        self._read = -1  # the store's transaction at the last look
        self._version = 0
        self._indexed: tuple[int, dict[bytes, dict[bytes, bytes]]] = (-1, {})
        self._proven: tuple[int, tuple[bytes, ...]] = (-1, ())  # at a version: every session asks

    def version(self) -> int:
        """Return the version of the control state, with those of the children."""
        version = self._look()
        for child in self._children():
            version += child.version()
        return version

    def _look(self) -> int:
        now = self._party.store.transaction
        if now != self._read:
            with self._party.locked():
                self._member.refresh()
                machine = self._member.machine
                above = 0 if machine.parent is None else machine.parent.authority.version
                self._version = machine.authority.version + above
            self._read = now
        return self._version

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        """Members' devices may have the party; a device with a proof, and guests of a child, its control feeds."""
        version = self._look()
        with self._party.locked():
            machine = self._member.machine
            standing = stands(machine, device, self._identities(version, machine).get(device, ()), shown)
        if standing is DeviceStanding.MEMBER:
            return Access.WHOLE
        guest = any(child.access(device, shown) is Access.WHOLE for child in self._children())
        return Access.CONTROL if guest or standing is DeviceStanding.SHOWN else Access.NOTHING

    def _identities(self, version: int, machine: PartyMachine) -> dict[bytes, dict[bytes, bytes]]:
        """Return the identities of each device, with their words for it, by all control feeds, valid or not."""
        if self._indexed[0] != version:
            found: dict[bytes, dict[bytes, bytes]] = {}
            for place in (machine, machine.parent):
                for _, owner in () if place is None else place.authority.feeds:
                    admission = owner.opened.admission
                    if owner.kind is FeedKind.CONTROL and admission is not None:
                        found.setdefault(owner.device, {})[owner.identity] = admission.device_credential
            self._indexed = version, found
        return self._indexed[1]

    def seeks(self) -> bool:
        """True if this device's identity is no member as far as known here."""
        self._look()
        with self._party.locked():
            return not self._member.machine.roles_of(self._member.device.identity)

    def proof(self) -> tuple[bytes, ...]:
        """Return the word for this device, and the credentials of its identity's admission.

        A guest of a child is no member here, and shows what it has there.
        """
        own, guest = self._own_proof(), self.seeks()
        return (*own, *(word for child in self._children() if guest for word in child.proof()))[:CREDENTIALS_MAX]

    def _own_proof(self) -> tuple[bytes, ...]:
        version = self._look()
        if self._proven[0] != version:
            self._proven = version, self._find_proof()
        return self._proven[1]

    def _find_proof(self) -> tuple[bytes, ...]:
        with self._party.locked():
            machine, device = self._member.machine, self._member.device
            word = self._word
            for _, owner in () if word else machine.authority.feeds:
                if (owner.device, owner.identity) == (device.key, device.identity) and owner.opened.admission:
                    word = owner.opened.admission.device_credential
            return make_proof(machine, word) if word else ()


class NewcomerAdmits:
    """For a device that was invited and holds nothing of the party: it gives nothing, and shows its identity's word."""

    def __init__(self, word: bytes) -> None:
        self._word = word

    def version(self) -> int:
        """Return 0: nothing is known that could change."""
        return 0

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        """Nobody is known to be a member."""
        return Access.NOTHING

    def seeks(self) -> bool:
        """Return True: it speaks first."""
        return True

    def proof(self) -> tuple[bytes, ...]:
        """Return the word for this device."""
        return (self._word,) if self._word else ()


class ParentAdmits:
    """For the control feeds of a child's parent, held without the parent itself: members of the child may have them."""

    def __init__(self, child: Admits) -> None:
        self._child = child

    def version(self) -> int:
        """Return the version of the child's control state, which has the parent's in it."""
        return self._child.version()

    def access(self, device: bytes, shown: Sequence[bytes]) -> Access:
        """Return what the child admits, at most the control feeds."""
        return min(Access.CONTROL, self._child.access(device, shown))

    def seeks(self) -> bool:
        """True if this device is no member of the child, as far as known here."""
        return self._child.seeks()

    def proof(self) -> tuple[bytes, ...]:
        """Return the proof for the child: the other end knows its members, if it holds the child."""
        return self._child.proof()
