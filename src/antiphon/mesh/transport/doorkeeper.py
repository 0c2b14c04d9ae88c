"""`Doorkeeper`: counts connections from the moment they are accepted, and says which have to go. It does no I/O.

>>> door = Doorkeeper(lambda guest, why: None)
>>> guest = door.arrive("192.0.2.7:4242", now_ms=0)
>>> isinstance(guest, Guest) and guest.standing
<Standing.UNPROVEN: 'unproven'>
>>> door.ban(guest, now_ms=10)
60010
>>> door.arrive("192.0.2.7:4243", now_ms=20)
'192.0.2.7 broke the protocol, and is not heard for another 60 s [door.banned]'

A connection begins *unproven*. Whoever proves a device becomes a *stranger*, or, if a party here admits the device, a
*member*. Connections that are dialled here have the place of a member from the beginning. Device keys cost nothing, so
strangers take no places of members, are counted by address, and their bans are by address, too.

A place that an unproven connection or a stranger has had for a while goes to the next one that comes. So whoever takes
all places and stays silent keeps nobody out for long.
"""

from __future__ import annotations

import enum
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, because
from antiphon.mesh.transport import limits
from antiphon.mesh.transport.bans import Bans


class Standing(enum.Enum):
    """How a connection counts."""

    UNPROVEN = "unproven"
    STRANGER = "stranger"
    MEMBER = "member"
    GONE = "gone"


@dataclass(eq=False, slots=True)
class Guest:
    """A connection, as the doorkeeper counts it."""

    host: str  # by which it is counted
    standing: Standing
    since_ms: int  # in this standing
    is_dialled: bool = False
    device: PublicKey | None = None  # that it has proven
    size: int = 0  # bytes that it has sent before that


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """How many connections there may be, and for how long."""

    unproven_max: int = limits.UNPROVEN_MAX
    host_max: int = limits.HOST_MAX
    strangers_max: int = limits.STRANGERS_MAX
    members_max: int = limits.MEMBERS_MAX
    unproven_ms_max: int = limits.UNPROVEN_MS_MAX
    ban_ms_min: int = limits.BAN_MS_MIN


@dataclass(slots=True)
class Doorkeeper:
    """Gives places to connections. `evict` is called with a guest that has lost its place, and why: close its pipe.

    Methods that can refuse return the reason, as a text with a code; who is refused has no place any more.
    """

    evict: Callable[[Guest, str], None]
    limits: DoorLimits = field(default_factory=DoorLimits)
    refusals: Counter[Reason] = field(default_factory=Counter)  # refused and evicted, by reason
    _places: dict[Standing, dict[Guest, None]] = field(init=False)  # each in the order of arrival
    _hosts: dict[str, dict[Guest, None]] = field(init=False, default_factory=dict)  # unproven ones and strangers
    _banned_hosts: Bans = field(init=False)
    _banned_devices: Bans = field(init=False)

    def __post_init__(self) -> None:
        self._places = {standing: {} for standing in (Standing.UNPROVEN, Standing.STRANGER, Standing.MEMBER)}
        self._banned_hosts = Bans(ban_ms_min=self.limits.ban_ms_min)
        self._banned_devices = Bans(ban_ms_min=self.limits.ban_ms_min)

    def count(self, standing: Standing) -> int:
        """Return how many connections have a standing."""
        return len(self._places[standing])

    # -- what happens to a connection

    def arrive(self, far_end: str, now_ms: int) -> Guest | str:
        """Give a place to a connection that was accepted, or refuse it."""
        guest = Guest(host_of(far_end), Standing.GONE, now_ms)
        until_ms = self._banned_hosts.until(guest.host, now_ms)
        if until_ms is not None:
            return self._refuse(Reason.DOOR_BANNED, _banned(guest.host, until_ms - now_ms))
        why = self._make_room(Standing.UNPROVEN, guest.host, now_ms)
        return why or self._place(guest, Standing.UNPROVEN, now_ms)

    def dial(self, far_end: str, now_ms: int) -> Guest | str:
        """Give a place to a connection that is dialled here, or refuse it."""
        guest = Guest(host_of(far_end), Standing.GONE, now_ms, is_dialled=True)
        return self._make_room(Standing.MEMBER, guest.host, now_ms) or self._place(guest, Standing.MEMBER, now_ms)

    def receive(self, guest: Guest, size: int) -> str | None:
        """Count bytes of a connection. Return why it loses its place, if it does."""
        if guest.device is not None or guest.standing is Standing.GONE:
            return None
        guest.size += size
        if guest.size <= limits.UNPROVEN_SIZE_MAX:
            return None
        self.leave(guest)
        return self._refuse(Reason.DOOR_SIZE, f"{guest.size:,} bytes came before a device was proven")

    def prove(self, guest: Guest, device: PublicKey, now_ms: int, *, is_admitted: bool) -> str | None:
        """Note that a connection has proven its device, which a party here admits or not. Return why it is refused."""
        until_ms = self._banned_devices.until(device, now_ms)
        if until_ms is not None:
            self.leave(guest)
            return self._refuse(Reason.DOOR_BANNED, _banned(f"device {device.short}", until_ms - now_ms))
        guest.device = device
        return self.judge(guest, now_ms, is_admitted=is_admitted)

    def judge(self, guest: Guest, now_ms: int, *, is_admitted: bool) -> str | None:
        """Note that a device is admitted, or is not any more. Return why its connection is refused, if it is."""
        wanted = Standing.MEMBER if is_admitted or guest.is_dialled else Standing.STRANGER
        if guest.standing in (wanted, Standing.GONE):
            return None
        self.leave(guest)
        why = self._make_room(wanted, guest.host, now_ms)
        if why is None:
            self._place(guest, wanted, now_ms)
        return why

    def leave(self, guest: Guest) -> None:
        """Take a connection off the books, because it has ended. A second time changes nothing."""
        if guest.standing is Standing.GONE:
            return
        del self._places[guest.standing][guest]
        guests = self._hosts.get(guest.host, {})
        guests.pop(guest, None)
        if not guests:
            self._hosts.pop(guest.host, None)
        guest.standing = Standing.GONE

    def ban(self, guest: Guest, now_ms: int) -> int:
        """Ban a connection that broke the protocol, and take it off the books. Return the time at which the ban ends.

        A member's device is banned, and not its address, which others may share; a stranger's address is, too.
        """
        until_ms = self._banned_devices.ban(guest.device, now_ms) if guest.device is not None else 0
        if guest.standing is not Standing.MEMBER:
            until_ms = max(until_ms, self._banned_hosts.ban(guest.host, now_ms))
        self.leave(guest)
        return until_ms

    def pardon(self, device: PublicKey) -> None:
        """End the ban of a device, because the user wants it connected."""
        self._banned_devices.pardon(device)

    # -- time

    def tick(self, now_ms: int) -> int | None:
        """Evict connections whose time is over. Return the time at which to call this again, if anybody waits."""
        for guest, until_ms in list(self._deadlines()):
            if until_ms <= now_ms:
                what = "prove its device" if guest.device is None else "be admitted by a party here"
                self._evict(guest, Reason.DOOR_SLOW, f"it took too long to {what}")
        return min((until_ms for _, until_ms in self._deadlines()), default=None)

    def _deadlines(self) -> Iterator[tuple[Guest, int]]:
        unproven_ms = self.limits.unproven_ms_max
        yield from ((guest, guest.since_ms + unproven_ms) for guest in self._places[Standing.UNPROVEN])
        yield from ((guest, guest.since_ms + limits.STRANGER_MS_MAX) for guest in self._places[Standing.STRANGER])
        dialled = (guest for guest in self._places[Standing.MEMBER] if guest.device is None)
        yield from ((guest, guest.since_ms + unproven_ms) for guest in dialled)

    # -- places

    def _make_room(self, standing: Standing, host: str, now_ms: int) -> str | None:
        """Make room for one more with a standing. Return why there is none."""
        guests = self._places[standing]
        if standing is Standing.MEMBER:
            if len(guests) < self.limits.members_max:
                return None
            return self._refuse(Reason.DOOR_FULL, f"{len(guests):,} connections are open, the most allowed")
        neighbours = self._hosts.get(host, {})
        if len(neighbours) >= self.limits.host_max and not self._displace(neighbours, now_ms):
            return self._refuse(Reason.DOOR_HOST, f"{len(neighbours)} strange connections from {host} are open")
        most = self.limits.unproven_max if standing is Standing.UNPROVEN else self.limits.strangers_max
        if len(guests) >= most and not self._displace(guests, now_ms):
            return self._refuse(Reason.DOOR_CROWDED, f"{len(guests)} {standing.value} connections are open")
        return None

    def _displace(self, guests: dict[Guest, None], now_ms: int) -> bool:
        """Evict the guest that has had its place longest, a silent one first. False if all have come just now."""
        chosen = next((guest for guest in guests if _is_silent(guest, now_ms)), None)
        chosen = chosen or next((guest for guest in guests if _has_had_time(guest, now_ms)), None)
        if chosen is None:
            return False
        self._evict(chosen, Reason.DOOR_MADE_ROOM, "a newer connection took its place")
        return True

    def _place(self, guest: Guest, standing: Standing, now_ms: int) -> Guest:
        guest.standing, guest.since_ms = standing, now_ms
        self._places[standing][guest] = None
        if standing is not Standing.MEMBER:
            self._hosts.setdefault(guest.host, {})[guest] = None
        return guest

    def _evict(self, guest: Guest, code: Reason, text: str) -> None:
        self.leave(guest)
        self.evict(guest, self._refuse(code, text))

    def _refuse(self, code: Reason, text: str) -> str:
        self.refusals[code] += 1
        return because(code, text)


def host_of(far_end: str) -> str:
    """Return how the host of a far end is counted: an IPv4 address by itself, an IPv6 address by its /64.

    >>> host_of("192.0.2.7:4242"), host_of("[2001:db8::7]:4242"), host_of("[::ffff:192.0.2.7]:4242"), host_of("alice:1")
    ('192.0.2.7', '2001:db8::/64', '192.0.2.7', 'alice')
    """
    host = far_end.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))


def _is_silent(guest: Guest, now_ms: int) -> bool:
    return guest.device is None and not guest.size and now_ms - guest.since_ms >= limits.SILENT_MS


def _has_had_time(guest: Guest, now_ms: int) -> bool:
    least_ms = limits.UNPROVEN_MS_MIN if guest.device is None else limits.STRANGER_MS_MIN
    return now_ms - guest.since_ms >= least_ms


def _banned(what: str, left_ms: int) -> str:
    return f"{what} broke the protocol, and is not heard for another {-(-left_ms // 1000)} s"
