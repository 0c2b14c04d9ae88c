"""`Present`: answers about rights by all delivered blocks, cached until an act changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.halo.credentials.claims import Policy, Roles
from antiphon.halo.rights.authority import Authority

if TYPE_CHECKING:
    from antiphon.halo.control.machine import PartyMachine

_ROLES_MAX = 1_024  # identities whose roles are cached


class Present:
    """The policy of a party, and the roles of identities, as they are now. Acts about epochs change neither."""

    def __init__(self, machine: PartyMachine) -> None:
        self._machine = machine
        self._of: tuple[tuple[Authority, int], ...] = ()  # the authorities, here and in the parent, at their versions
        self._policy: Policy | None = None
        self._roles: dict[bytes, Roles] = {}

    def policy(self) -> Policy:
        """Return the policy."""
        authority = self._look()
        if self._policy is None:
            self._policy = authority.policy(self._machine.everything())
        return self._policy

    def roles(self, identity: bytes) -> Roles:
        """Return the roles of an identity."""
        authority = self._look()
        known = self._roles.get(identity)
        if known is None:
            if len(self._roles) >= _ROLES_MAX:
                self._roles.clear()
            known = self._roles[identity] = authority.roles(identity, self._machine.everything())
        return known

    def _look(self) -> Authority:
        """Forget the answers if an act has come that may change them."""
        authority = self._machine.authority
        authority.settle()
        of = tuple((known, known.version) for known in (authority, authority.parent) if known is not None)
        if of != self._of:
            self._of, self._policy = of, None
            self._roles.clear()
        return authority
