"""`LinkHost`: the port behind a link. It knows the parties of this device; a link knows none of them by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from antiphon.mesh.link.link import Link


class LinkHost(Protocol):
    """Answers a link, and is told of its parties, in the thread that calls the link. No method may block."""

    def proven(self, link: Link) -> None:
        """The other device is known: `link.device`. Its tags have not come yet."""

    def admitted(self, device: bytes) -> Iterable[bytes]:
        """Return the parties in which this end speaks to a device.

        Its control state admits the device; or the device has shown its admission, so that the gate of a session is
        open; or this device is a newcomer, who speaks first.
        """

    def held(self) -> Iterable[bytes]:
        """Return all parties that are followed here: any device may show a message about one."""

    def digest(self, party: bytes) -> bytes:
        """Return 32 bytes that are equal where the same is held of a party. It must not open the party."""

    def matched(self, link: Link, party: bytes, differs: bool) -> None:
        """Both ends speak in a party, and have compared digests. Begin a session if they differ."""

    def unmatched(self, link: Link, party: bytes) -> None:
        """This end speaks in a party, and the other end's tags have come without it.

        It may lack the party, or not know of this device's admission. Begin a session: its first message is shown.
        """

    def received(self, link: Link, party: bytes, message: bytes, shown: bool) -> None:
        """A message came for the session of a party. If it was `shown`, the device need not be admitted here."""

    def has_room(self, link: Link, party: bytes) -> None:
        """More than half of a party's queue is free again: `link.send` more."""
