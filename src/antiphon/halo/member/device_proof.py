"""The proof that a device shows to another one: whose device it is, and who admitted that identity.

A device that joins has no feed yet by which others could know it. It shows its identity's word for it (`vouch`), and
the other one finds that identity among the members. If the other one has not heard of its admission either, the
credentials of the admission lead to somebody whom it knows. A proof only opens a conversation about control feeds;
rights follow from these alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from antiphon.core.errors import AntiphonError
from antiphon.halo.acts.act import credential_of
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    WRITERS,
    DeviceAdmission,
    GroupAdmission,
    MemberAdmission,
    PartyGenesis,
    Roles,
    with_implied,
)
from antiphon.halo.credentials.credential import Credential
from antiphon.halo.keys.identity import Device, Identity
from antiphon.halo.rights.inheritance import is_ended

CREDENTIALS_MAX = 16
_GRANTS_TRIED = 64  # the last ones to a subject, among which one that holds is looked for


class DeviceStanding(enum.Enum):
    """The standing of a device by a party's control state."""

    UNKNOWN = "unknown"  # also: revoked, ended, or of an identity that was never admitted
    SHOWN = "shown"  # its identity is not known here, but credentials lead from it to a member who may admit
    MEMBER = "member"  # it is a device of a member


def vouch(party: bytes, identity: Identity, device: Device) -> bytes:
    """Return the identity's credential for a device in a party. Only this needs the identity's private key."""
    return credential.sign(party, DeviceAdmission(identity.key, device.key), [identity.pair, device.pair])


def make_proof(machine: PartyMachine, word: bytes) -> tuple[bytes, ...]:
    """Return the identity's word for a device, and credentials that lead from the identity to the party's founder."""
    claim = credential.read(machine.party, word).claim
    assert isinstance(claim, DeviceAdmission)
    authority, now = machine.authority, machine.everything()
    authority.settle()
    proof, subjects, known = [word], [claim.identity], set[bytes]()
    while subjects and len(proof) < CREDENTIALS_MAX:
        subject = subjects.pop(0)
        grants = () if subject in known else authority.grants_to(subject)[-_GRANTS_TRIED:]
        known.add(subject)
        own = (grant for grant in reversed(grants) if not authority.inherited(grant))
        grant = next((grant for grant in own if authority.left(grant, now)), None)
        if grant is None or isinstance(grant.claim, PartyGenesis):
            continue
        proof.append(credential_of(machine.block(grant)))
        if isinstance(grant.claim, GroupAdmission):
            subjects.append(grant.claim.group)
        issuer = authority.owner(grant.stamp.feed)
        if issuer is not None and issuer.opened.admission is not None:
            proof.append(issuer.opened.admission.device_credential)
            subjects.append(issuer.identity)
    return tuple(proof[:CREDENTIALS_MAX])


def stands(machine: PartyMachine, device: bytes, identities: Iterable[bytes], shown: Sequence[bytes]) -> DeviceStanding:
    """Return the standing of a device whose control feeds name these identities, and which shows these credentials."""
    proof = _Proof(machine, shown)
    claimed = {*identities, *proof.identities(device)}
    if any(proof.is_member(identity, device) for identity in claimed):
        return DeviceStanding.MEMBER
    if any(proof.leads(identity, device) for identity in claimed):
        return DeviceStanding.SHOWN
    return DeviceStanding.UNKNOWN


class _Proof:
    """Credentials from a device that may lie, next to the control state here. Those that do not verify are ignored."""

    def __init__(self, machine: PartyMachine, shown: Sequence[bytes]) -> None:
        self._machine = machine
        self._authority = machine.authority
        self._authority.settle()
        self._words: dict[bytes, set[bytes]] = {}
        self._grants: dict[bytes, list[Credential]] = {}
        self._asked: set[bytes] = set()
        for data in shown[:CREDENTIALS_MAX]:
            try:
                found = credential.read(machine.party, data)
            except AntiphonError:
                continue
            if isinstance(found.claim, DeviceAdmission):
                self._words.setdefault(found.claim.device, set()).add(found.claim.identity)
            elif isinstance(found.claim, MemberAdmission | GroupAdmission):
                self._grants.setdefault(found.claim.subject, []).append(found)

    def identities(self, device: bytes) -> set[bytes]:
        return self._words.get(device, set())

    def is_member(self, identity: bytes, device: bytes) -> bool:
        return bool(self._machine.roles_of(identity)) and not is_ended(self._authority, identity, device)

    def leads(self, identity: bytes, device: bytes) -> bool:
        """True if the identity is not known here, and credentials lead from it to a member who may admit."""
        return not is_ended(self._authority, identity, device) and self._vouched(identity, frozenset())

    def _vouched(self, subject: bytes, wanted: Roles) -> bool:
        """True if a subject has one of the wanted roles here, or credentials say that it has."""
        roles = self._machine.roles_of(subject)
        if roles or self._authority.was_granted(subject) or subject in self._asked:
            return bool(roles & wanted) if wanted else bool(roles)  # who was revoked stays so
        self._asked.add(subject)
        for grant in self._grants.get(subject, ()):
            claim = grant.claim
            if isinstance(claim, MemberAdmission) and wanted and not with_implied(claim.roles) & wanted:
                continue
            if isinstance(claim, GroupAdmission) and not self._vouched(claim.group, wanted):
                continue
            by_group = isinstance(claim, GroupAdmission) and claim.group in grant.signers
            if by_group or any(self._may_admit(signer) for signer in grant.signers):
                return True
        return False

    def _may_admit(self, device: bytes) -> bool:
        return any(
            not is_ended(self._authority, identity, device) and self._vouched(identity, WRITERS)
            for identity in self.identities(device)
        )
