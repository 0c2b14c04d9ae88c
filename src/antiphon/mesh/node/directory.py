"""`PartyDirectory`: which devices may speak about which parties, by the views of all parties."""

from __future__ import annotations

from collections.abc import Iterable, KeysView

from antiphon.mesh.node.ports import PartyView


class PartyDirectory:
    """The latest view of each party, and an index by device. Used in the network thread alone."""

    def __init__(self) -> None:
        self._views: dict[bytes, PartyView] = {}
        self._by_device: dict[bytes, set[bytes]] = {}
        self._seeking: set[bytes] = set()

    def update(self, view: PartyView) -> None:
        """Take a newer view of a party. One without devices that seeks nobody is forgotten."""
        party = view.party
        before = self._views.pop(party, None)
        for device in before.devices - view.devices if before is not None else ():
            parties = self._by_device[device]
            parties.discard(party)
            if not parties:
                del self._by_device[device]
        self._seeking.discard(party)
        if view.devices or view.seeks:
            self._views[party] = view
            for device in view.devices:
                self._by_device.setdefault(device, set()).add(party)
            if view.seeks:
                self._seeking.add(party)

    def admitted(self, device: bytes) -> Iterable[bytes]:
        """Return the parties that a device is a member of, and those in which this device speaks first."""
        return self._by_device.get(device, set()) | self._seeking

    def admits(self, device: bytes) -> bool:
        """True if a device is a member of any party here."""
        return device in self._by_device

    def seeks(self, party: bytes) -> bool:
        """True if this device is a newcomer in a party."""
        return party in self._seeking

    @property
    def parties(self) -> KeysView[bytes]:
        """All parties that a message may be about."""
        return self._views.keys()
