"""`party_devices`: the devices that write in a party, for its operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.keys import PublicKey
from antiphon.halo.credentials.claims import FeedKind
from antiphon.halo.keys.key_file import KeyKind

if TYPE_CHECKING:
    from antiphon.halo.keys.key_store import KeyStore
    from antiphon.halo.member.membership import Membership
    from antiphon.party.live.processor import PartyProcessor


@dataclass(frozen=True, slots=True)
class PartyDevice:
    """A device that has opened feeds in a party. `name` is the label of a key on this machine; "" for others."""

    device: PublicKey
    identity: PublicKey
    name: str
    control_feeds: tuple[PublicKey, ...]
    data_feeds: tuple[PublicKey, ...]
    ended: bool  # all its feeds have ended: the device was ended, its member revoked, or each feed has two histories
    here: bool  # it is this device


def party_devices(party: PartyProcessor, member: Membership, keys: KeyStore) -> list[PartyDevice]:
    """List the devices with feeds in a party, by identity and key. Feeds beyond the budget of a device are left out."""
    with party.locked():
        member.refresh()
        authority = member.machine.authority
        owners = sorted(authority.owners().items())
        ended = {feed: authority.has_ended(feed, owner) for feed, owner in owners}
    names = {bytes(record.key): record.label for record in keys.keys(KeyKind.DEVICE)}
    feeds: dict[tuple[bytes, bytes], list[tuple[bytes, FeedKind]]] = {}
    for feed, owner in owners:
        feeds.setdefault((owner.identity, owner.device), []).append((feed, owner.kind))
    return [
        PartyDevice(
            device=PublicKey(device),
            identity=PublicKey(identity),
            name=names.get(device, ""),
            control_feeds=tuple(PublicKey(feed) for feed, kind in found if kind is FeedKind.CONTROL),
            data_feeds=tuple(PublicKey(feed) for feed, kind in found if kind is FeedKind.DATA),
            ended=all(ended[feed] for feed, _ in found),
            here=device == member.device.key,
        )
        for (identity, device), found in sorted(feeds.items())
    ]
