"""`PartyOperator` (`party.operator`): what the person who runs this device sees of a party, and does about it.

Nothing here but `end_device` is told to others. docs/operators.md says what to do when a member misbehaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.api.inputs import need_key
from antiphon.core.errors import InvalidInput, NotAuthorised, UnknownFeed
from antiphon.core.keys import PublicKey
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import FeedKind
from antiphon.party.maintenance.costs import MemberCost, party_costs
from antiphon.party.maintenance.devices import PartyDevice, party_devices

if TYPE_CHECKING:
    from antiphon.api.party import Party

IGNORED, WANTED = "antiphon.ignored", "antiphon.wanted"  # preferences of the party on this device: keys in hex


class PartyOperator:
    """The last word at home: see who costs how much, ignore what somebody wrote, end a device, leave."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._ignored: frozenset[bytes] | None = None

    def __repr__(self) -> str:
        return f"<operator of party {self._party.key.short}>"

    def costs(self) -> list[MemberCost]:
        """List what each identity costs this device, the dearest first: blocks, bytes, refused messages, seconds."""
        return party_costs(self._party.processor, self._party.member)

    def devices(self) -> list[PartyDevice]:
        """List the devices that have feeds in the party: key, identity, name if known here, feeds, ended or not."""
        return party_devices(self._party.processor, self._party.member, self._party.store.keys)

    # -- ignoring

    @property
    def ignored(self) -> tuple[PublicKey, ...]:
        """The identities and data feeds whose bodies this device ignores."""
        return tuple(PublicKey(key) for key in sorted(self._keys()))

    def ignore(self, who: bytes | str) -> None:
        """Ignore what an identity wrote, or one data feed: drop the bodies of its messages, and take none again.

        Headers and control feeds stay, and small geneses, to be given to others. So this device still agrees with the
        others about everything else. The messages are void here alone (`local.ignored`). While anything outside the
        last epoch is ignored, this device declares and attests no epochs; it moves to those of the others by their
        snapshots.
        """
        key = need_key(who, "who is ignored")
        feeds = self._feeds(key)
        if not feeds and key not in self._identities():
            raise InvalidInput(
                f"{key.hex()[:8]} is no identity or data feed of party {self._party.key.short}; control feeds are not "
                "ignored: leave the party instead"
            )
        written = [feed for feed in feeds if self._is_own(feed)]
        if written:
            raise InvalidInput(
                f"feed {written[0].hex()[:8]} is written here; what this device wrote itself is not ignored"
            )
        self._save(self._keys() | {bytes(key)})
        self.apply()

    def heed(self, who: bytes | str) -> None:
        """Ignore somebody no longer. The bodies come back with the next `sync` with a device that has them."""
        key = bytes(need_key(who, "who is no longer ignored"))
        if key not in self._keys():
            raise InvalidInput(f"{key.hex()[:8]} is not ignored in party {self._party.key.short}")
        self._save(self._keys() - {key})
        store, still = self._party.processor.store, self._ignored_feeds()
        back = [record.feed for record in store.feeds(self._party.key) if record.ignored and record.feed not in still]
        for feed in back:
            store.heed(feed)
        self._want({*self.wanted(), *map(bytes, back)})

    def apply(self) -> None:
        """Drop the bodies of ignored feeds, also of those that were opened since. `Party.refresh` calls this."""
        if not self._keys():
            return
        party, folded = self._party, False
        with party.processor.locked() as engine:
            for feed in sorted(self._ignored_feeds()):
                try:
                    if party.processor.store.record(feed).ignored:
                        continue
                except UnknownFeed:  # nothing of it has come yet
                    continue
                party.processor.store.ignore(feed)
                lane = engine.delivery.lanes.get(feed)
                folded = folded or (lane is not None and lane.state.position > lane.state.base)
        if folded:
            party.processor.begin_again()  # what its messages did to items goes with them
            party.processor.process()

    def wanted(self) -> set[bytes]:
        """Return the feeds whose bodies were dropped here, and are to be fetched again."""
        found = self._party.store.manager.meta.get(WANTED, [], party=self._party.key)
        return {bytes.fromhex(feed) for feed in found}

    def came(self, feed: bytes) -> None:
        """Take note that all bodies of a feed are here again."""
        self._want(self.wanted() - {feed})

    def _want(self, feeds: set[bytes]) -> None:
        self._party.store.manager.meta.set(WANTED, sorted(feed.hex() for feed in feeds), party=self._party.key)

    def _keys(self) -> frozenset[bytes]:
        if self._ignored is None:
            found = self._party.store.manager.meta.get(IGNORED, [], party=self._party.key)
            self._ignored = frozenset(bytes.fromhex(key) for key in found)
        return self._ignored

    def _save(self, keys: frozenset[bytes]) -> None:
        self._party.store.manager.meta.set(IGNORED, sorted(key.hex() for key in keys), party=self._party.key)
        self._ignored = keys

    def _feeds(self, key: bytes) -> set[bytes]:
        """Return the data feeds that a key names: itself, or those of the identity."""
        with self._party.processor.locked():
            self._party.member.refresh()
            owners = self._party.member.machine.authority.owners()
        return {feed for feed, owner in owners.items() if owner.kind is FeedKind.DATA and key in (feed, owner.identity)}

    def _identities(self) -> set[bytes]:
        """Return the identities that have feeds in the party, or are members of it."""
        with self._party.processor.locked():
            self._party.member.refresh()
            owners = self._party.member.machine.authority.owners().values()
        return {owner.identity for owner in owners} | {one.subject for one in self._party.members.members}

    def _ignored_feeds(self) -> set[bytes]:
        """Return the data feeds that are ignored, other than those that this device writes."""
        return {feed for key in self._keys() for feed in self._feeds(key) if not self._is_own(feed)}

    def _is_own(self, feed: bytes) -> bool:
        try:
            return self._party.processor.store.record(feed).writable
        except UnknownFeed:
            return False

    # -- ending

    def end_device(self, device: bytes | str, *, before: Stamp | None = None) -> None:
        """End a device of your identity, such as a stolen one: what it wrote after what is held here does not count.

        With `before`, only what it wrote before that message (a `Stamp`, as `history` lists them) counts, as far as no
        final epoch holds more. It takes the key of the identity (`Store.may_vouch`).
        """
        party, key = self._party, need_key(device, "which device ends")
        if key == party.store.device:
            raise InvalidInput(f"{key.hex()[:8]} is this device: end it from another one, or leave the party here")
        with party.processor.locked():
            party.member.refresh()
            owners = party.member.machine.authority.owners().values()
            if key not in {owner.device for owner in owners if owner.identity == party.store.me}:
                raise NotAuthorised(
                    f"party {party.key.short}: {key.hex()[:8]} is no device of your identity; owners revoke members"
                )
            party.member.end_device(key, party.store.identity, before=before)
        party.refresh()

    def leave(self) -> None:
        """Leave the party on this device: it is closed, costs nothing but disk space, and is neither shown nor synced.

        Others are not told, and you remain a member. No invitation and no peer opens it again; `Store.take_back` does.
        """
        self._party.store.leave(self._party.key)
