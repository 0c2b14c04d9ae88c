"""Connections are counted from the moment they are accepted, whatever they do."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from antiphon.core.keys import PublicKey
from antiphon.core.reasons import Reason, code_of
from antiphon.mesh.transport import limits
from antiphon.mesh.transport.bans import Bans
from antiphon.mesh.transport.doorkeeper import Doorkeeper, DoorLimits, Guest, Standing, host_of

ALICE = PublicKey(b"a" * 32)
MALLORY = PublicKey(b"m" * 32)
DEVICES = st.sampled_from([PublicKey(bytes([number]) * 32) for number in range(4)])
HOSTS = st.sampled_from(["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8::2]:1", "alice:1"])
TINY = DoorLimits(unproven_max=5, host_max=3, strangers_max=3, members_max=4)


class Door:
    """A doorkeeper, and whom it evicted."""

    def __init__(self, limits_: DoorLimits | None = None) -> None:
        self.evicted: list[tuple[Guest, str]] = []
        self.keeper = Doorkeeper(lambda guest, why: self.evicted.append((guest, why)), limits_ or DoorLimits())

    def arrive(self, far_end: str = "192.0.2.1:1", now_ms: int = 0) -> Guest:
        guest = self.keeper.arrive(far_end, now_ms)
        assert isinstance(guest, Guest), guest
        return guest

    def refusal(self, far_end: str, now_ms: int = 0) -> Reason:
        why = self.keeper.arrive(far_end, now_ms)
        assert isinstance(why, str)
        return code_of(why)

    def counts(self) -> tuple[int, int, int]:
        """Return how many are unproven, strangers, members."""
        unproven, stranger, member = (s for s in Standing if s is not Standing.GONE)
        return self.keeper.count(unproven), self.keeper.count(stranger), self.keeper.count(member)


class AnySequence(RuleBasedStateMachine):
    """Whatever comes, in whatever order: no count drifts, and no bound is exceeded."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.inside: set[Guest] = set()
        self.told: Counter[Reason] = Counter()
        self.keeper = Doorkeeper(self._evicted, TINY)

    def _evicted(self, guest: Guest, why: str) -> None:
        self.inside.remove(guest)
        self._refused(why)

    def _refused(self, why: str | None) -> None:
        if why is not None:
            assert code_of(why) is not Reason.OTHER
            self.told[code_of(why)] += 1

    def _enter(self, guest: Guest | str) -> None:
        if isinstance(guest, str):
            self._refused(guest)
        else:
            self.inside.add(guest)

    def _one(self, number: int) -> Guest | None:
        ordered = sorted(self.inside, key=id)
        return ordered[number % len(ordered)] if ordered else None

    @rule(host=HOSTS)
    def arrive(self, host: str) -> None:
        self._enter(self.keeper.arrive(host, self.now_ms))

    @rule(host=HOSTS)
    def dial(self, host: str) -> None:
        self._enter(self.keeper.dial(host, self.now_ms))

    @rule(number=st.integers(0, 99), size=st.integers(0, 3000))
    def receive(self, number: int, size: int) -> None:
        guest = self._one(number)
        if guest is not None:
            why = self.keeper.receive(guest, size)
            self._refused(why)
            self.inside.discard(guest) if why else None

    @rule(number=st.integers(0, 99), device=DEVICES, is_admitted=st.booleans())
    def prove(self, number: int, device: PublicKey, is_admitted: bool) -> None:
        guest = self._one(number)
        if guest is not None and guest.device is None:
            why = self.keeper.prove(guest, device, self.now_ms, is_admitted=is_admitted)
            self._refused(why)
            self.inside.discard(guest) if why else None

    @rule(number=st.integers(0, 99), is_admitted=st.booleans())
    def judge(self, number: int, is_admitted: bool) -> None:
        guest = self._one(number)
        if guest is not None and guest.device is not None:
            why = self.keeper.judge(guest, self.now_ms, is_admitted=is_admitted)
            self._refused(why)
            self.inside.discard(guest) if why else None

    @rule(number=st.integers(0, 99), times=st.integers(1, 2))
    def leave(self, number: int, times: int) -> None:
        guest = self._one(number)
        if guest is not None:
            for _ in range(times):
                self.keeper.leave(guest)
            self.inside.discard(guest)

    @rule(number=st.integers(0, 99))
    def ban(self, number: int) -> None:
        guest = self._one(number)
        if guest is not None:
            self.keeper.ban(guest, self.now_ms)
            self.inside.discard(guest)

    @rule(ms=st.sampled_from([1, limits.SILENT_MS, limits.UNPROVEN_MS_MIN, limits.UNPROVEN_MS_MAX, limits.BAN_MS_MIN]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms
        next_ms = self.keeper.tick(self.now_ms)
        assert next_ms is None or next_ms > self.now_ms

    @invariant()
    def counts_are_those_of_the_guests(self) -> None:
        counted = Counter(guest.standing for guest in self.inside)
        for standing in (Standing.UNPROVEN, Standing.STRANGER, Standing.MEMBER):
            assert self.keeper.count(standing) == counted.pop(standing, 0)
        assert not counted
        strange = Counter(guest.host for guest in self.inside if guest.standing is not Standing.MEMBER)
        assert {host: len(guests) for host, guests in self.keeper._hosts.items()} == strange
        assert max(strange.values(), default=0) <= TINY.host_max

    @invariant()
    def bounds_hold(self) -> None:
        assert self.keeper.count(Standing.UNPROVEN) <= TINY.unproven_max
        assert self.keeper.count(Standing.STRANGER) <= TINY.strangers_max
        assert self.keeper.count(Standing.MEMBER) <= TINY.members_max
        for guest in self.inside:
            assert (guest.standing is Standing.UNPROVEN) <= (guest.device is None)
            assert guest.device is not None or guest.size <= limits.UNPROVEN_SIZE_MAX
            assert not guest.is_dialled or guest.standing is Standing.MEMBER

    @invariant()
    def every_refusal_has_a_reason(self) -> None:
        assert self.keeper.refusals == self.told


TestAnySequence = AnySequence.TestCase


# -- places


def test_one_address_has_few_places() -> None:
    door = Door()
    for port in range(limits.HOST_MAX):
        door.arrive(f"192.0.2.1:{port}")

    assert door.refusal("192.0.2.1:99") is Reason.DOOR_HOST
    assert door.refusal("[::ffff:192.0.2.1]:99") is Reason.DOOR_HOST
    door.arrive("192.0.2.2:1")
    for number in range(limits.HOST_MAX):
        door.arrive(f"[2001:db8::{number}]:1")
    assert door.refusal("[2001:db8::ffff:1]:1") is Reason.DOOR_HOST
    door.arrive("[2001:db8:0:1::1]:1")


def test_unproven_connections_have_a_bound_in_all() -> None:
    door = Door()
    for number in range(limits.UNPROVEN_MAX):
        door.arrive(f"192.0.{number}.1:1")

    assert door.refusal("198.51.100.1:1") is Reason.DOOR_CROWDED
    assert door.counts() == (limits.UNPROVEN_MAX, 0, 0)


def test_silent_sockets_keep_nobody_out_for_long() -> None:
    """Given silent sockets in every place, when a member comes a moment later, then it gets a place at once."""
    door = Door()
    for number in range(1000):
        door.keeper.arrive(f"192.0.2.1:{number}", now_ms=number % 7)
    guest = door.arrive("192.0.2.1:1", now_ms=limits.SILENT_MS + 7)

    assert [code_of(why) for _, why in door.evicted] == [Reason.DOOR_MADE_ROOM]
    assert door.keeper.prove(guest, ALICE, 400, is_admitted=True) is None
    assert door.counts() == (limits.HOST_MAX - 1, 0, 1)


def test_a_handshake_under_way_is_not_displaced_at_once() -> None:
    door = Door(TINY)
    guests = [door.arrive(now_ms=0) for _ in range(TINY.host_max)]
    for guest in guests:
        assert door.keeper.receive(guest, 48) is None

    assert door.refusal("192.0.2.1:9", limits.UNPROVEN_MS_MIN - 1) is Reason.DOOR_HOST
    door.arrive(now_ms=limits.UNPROVEN_MS_MIN)
    assert [guest for guest, _ in door.evicted] == [guests[0]]


def test_strangers_take_no_places_of_members() -> None:
    """Device keys cost nothing: whoever makes many gets the places of strangers."""
    door = Door()
    for number in range(2 * limits.STRANGERS_MAX):
        guest = door.arrive(f"192.0.{number}.1:1")
        door.keeper.prove(guest, PublicKey(number.to_bytes(32, "big")), 0, is_admitted=False)

    assert door.counts() == (0, limits.STRANGERS_MAX, 0)
    assert door.keeper.refusals[Reason.DOOR_CROWDED] == limits.STRANGERS_MAX
    guest = door.arrive("198.51.100.1:1")
    assert door.keeper.prove(guest, ALICE, 0, is_admitted=True) is None
    assert guest.standing is Standing.MEMBER


def test_a_newcomer_becomes_a_member_and_a_revoked_device_a_stranger() -> None:
    door = Door()
    guest = door.arrive()
    door.keeper.prove(guest, ALICE, 0, is_admitted=False)
    assert door.counts() == (0, 1, 0)
    assert door.keeper.judge(guest, 5, is_admitted=True) is None
    assert door.keeper.judge(guest, 6, is_admitted=True) is None
    assert door.counts() == (0, 0, 1)
    assert door.keeper.tick(1 << 40) is None, "a member has all the time"

    door.keeper.judge(guest, 10, is_admitted=False)
    assert door.counts() == (0, 1, 0)
    assert door.keeper.tick(11) == 10 + limits.STRANGER_MS_MAX


def test_members_and_dialled_connections_share_a_bound() -> None:
    door = Door(TINY)
    for number in range(TINY.members_max):
        assert isinstance(door.keeper.dial(f"peer{number}:1", 0), Guest)
    guest = door.arrive()

    assert code_of(door.keeper.prove(guest, ALICE, 0, is_admitted=True) or "") is Reason.DOOR_FULL
    assert guest.standing is Standing.GONE
    why = door.keeper.dial("peer:1", 0)
    assert isinstance(why, str)
    assert code_of(why) is Reason.DOOR_FULL


# -- time and size


@pytest.mark.parametrize("dialled", [True, False])
def test_a_device_must_be_proven_in_time(dialled: bool) -> None:
    door = Door()
    guest = door.keeper.dial("192.0.2.1:1", 5) if dialled else door.keeper.arrive("192.0.2.1:1", 5)
    assert isinstance(guest, Guest)

    assert door.keeper.tick(5) == 5 + limits.UNPROVEN_MS_MAX
    assert door.evicted == []
    assert door.keeper.tick(5 + limits.UNPROVEN_MS_MAX) is None
    assert [(evicted, code_of(why)) for evicted, why in door.evicted] == [(guest, Reason.DOOR_SLOW)]
    assert door.counts() == (0, 0, 0)


def test_a_stranger_must_be_admitted_in_time() -> None:
    door = Door()
    guest = door.arrive()
    door.keeper.prove(guest, ALICE, 0, is_admitted=False)

    assert door.keeper.tick(limits.STRANGER_MS_MAX - 1) == limits.STRANGER_MS_MAX
    door.keeper.tick(limits.STRANGER_MS_MAX)
    assert [code_of(why) for _, why in door.evicted] == [Reason.DOOR_SLOW]


def test_little_may_come_before_a_device_is_proven() -> None:
    door = Door()
    guest = door.arrive()
    assert door.keeper.receive(guest, limits.UNPROVEN_SIZE_MAX) is None
    why = door.keeper.receive(guest, 1)

    assert code_of(why or "") is Reason.DOOR_SIZE
    assert door.counts() == (0, 0, 0)
    member = door.arrive()
    door.keeper.prove(member, ALICE, 0, is_admitted=True)
    assert door.keeper.receive(member, 1 << 30) is None


# -- bans


def test_an_address_that_broke_the_protocol_is_not_heard_for_a_while() -> None:
    door = Door()
    assert door.keeper.ban(door.arrive(), 0) == limits.BAN_MS_MIN

    assert door.refusal("192.0.2.1:7", limits.BAN_MS_MIN - 1) is Reason.DOOR_BANNED
    door.arrive("192.0.2.2:1", limits.BAN_MS_MIN - 1)
    door.arrive("192.0.2.1:7", limits.BAN_MS_MIN)
    assert isinstance(door.keeper.dial("192.0.2.1:1", 1), Guest), "what the user dials is dialled"


def test_a_member_is_banned_without_its_address() -> None:
    """Others of the same house are heard."""
    door = Door()
    guest = door.arrive()
    door.keeper.prove(guest, MALLORY, 0, is_admitted=True)
    door.keeper.ban(guest, 0)

    other = door.arrive()
    assert door.keeper.prove(other, ALICE, 1, is_admitted=True) is None
    again = door.arrive()
    assert code_of(door.keeper.prove(again, MALLORY, 1, is_admitted=True) or "") is Reason.DOOR_BANNED
    door.keeper.pardon(MALLORY)
    assert door.keeper.prove(door.arrive(), MALLORY, 2, is_admitted=True) is None


def test_a_stranger_cannot_shake_off_a_ban_with_a_new_key() -> None:
    door = Door()
    guest = door.arrive()
    door.keeper.prove(guest, MALLORY, 0, is_admitted=False)
    door.keeper.ban(guest, 0)

    assert door.refusal("192.0.2.1:2") is Reason.DOOR_BANNED


def test_bans_double_up_to_a_bound_and_are_forgotten_after_a_quiet_time() -> None:
    bans = Bans()
    lengths = []
    now_ms = 0
    for _ in range(9):
        until_ms = bans.ban("host", now_ms)
        lengths.append((until_ms - now_ms) // 60_000)
        now_ms = until_ms
    assert lengths == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    assert bans.until("host", now_ms) is None
    now_ms += limits.BAN_MS_MAX
    assert bans.ban("host", now_ms) - now_ms == limits.BAN_MS_MIN


def test_bans_are_bounded() -> None:
    bans = Bans(count_max=3)
    for name in ("a", "b", "c", "a", "d"):
        bans.ban(name, 0)

    assert len(bans) == 3
    assert [name for name in "abcd" if bans.until(name, 1) is not None] == ["a", "c", "d"]


@pytest.mark.parametrize("far_end", ["[2001:db8:1:2:3:4:5:6]:1", "[2001:db8:1:2::%eth0]:1"])
def test_an_ipv6_address_counts_by_its_network(far_end: str) -> None:
    assert host_of(far_end) == "2001:db8:1:2::/64"
