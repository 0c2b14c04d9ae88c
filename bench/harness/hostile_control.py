"""What a hostile member writes into its control feed for `bench/hostile.py`: the dearest acts that we know of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.feed.encoder import Draft
from antiphon.halo.credentials.claims import (
    EpochAttestation,
    EpochGenesis,
    EpochRefusal,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
    Position,
    Role,
)
from antiphon.halo.limits import GIVEN_MAX
from harness.hostile_member import TEAM, Mallory, key_pairs


def control_acts(mallory: Mallory, size: int) -> None:
    """Grants into a group of its own, grants and policies without any right, all in one control feed."""
    group = next(key_pairs("group"))

    def acts() -> Iterator[Draft]:
        for number, pair in enumerate(key_pairs("member")):
            yield mallory.signed(GroupAdmission(bytes(group.key), bytes(pair.key)), 3 * number, group)
            yield mallory.signed(MemberAdmission(bytes(pair.key), frozenset({Role.OWNER})), 3 * number + 1)
            yield mallory.signed(Policy(editors_admit=True, keep_epochs=number), 3 * number + 2)

    mallory.spend(mallory.control, size, acts())


def feeds(mallory: Mallory, size: int) -> None:
    """Admissions of data feeds without end, all by one device."""
    device = mallory.member.device
    word = mallory.vouch()

    def admissions() -> Iterator[Draft]:
        for number, pair in enumerate(key_pairs("feed")):
            claim = FeedAdmission(bytes(pair.key), FeedKind.DATA, device.identity, device.key, word)
            yield mallory.signed(claim, number, pair)

    mallory.spend(mallory.control, size, admissions())


def narrowings(mallory: Mallory, size: int) -> None:
    """As many grants into a group as count, to all members, and then narrowings of all of them, again and again."""
    members = [member.subject for member in mallory.member.state.members if member.subject != TEAM.key]
    founder = mallory.honest[FeedKind.CONTROL]

    def acts() -> Iterator[Draft]:
        for number, key in enumerate(islice(cycle(members), GIVEN_MAX)):
            yield mallory.signed(GroupAdmission(bytes(TEAM.key), key), number, TEAM)
        for number, key in enumerate(cycle(members)):  # each leaves one block less than the one before
            cuts = {founder: size - number}
            yield mallory.signed(Narrowing(key, frozenset(), cuts, group=bytes(TEAM.key)), number, TEAM)

    mallory.spend(mallory.control, size, acts())


def policies(mallory: Mallory, size: int) -> None:
    """Void policies that claim to replace all before them, and admissions, each of which asks which policy holds."""
    founder = mallory.honest[FeedKind.CONTROL]

    def acts() -> Iterator[Draft]:
        for number, pair in enumerate(key_pairs("puppet")):
            yield mallory.signed(Policy(editors_admit=True, tightens=True, cuts={founder: size - number}), 2 * number)
            yield mallory.signed(MemberAdmission(bytes(pair.key), frozenset({Role.READER})), 2 * number + 1)

    mallory.spend(mallory.control, size, acts())


def ends(mallory: Mallory, size: int) -> None:
    """Ends of its own device's feeds that leave all blocks that there are, one block less each time."""
    device = mallory.member.device

    def acts() -> Iterator[Draft]:
        for number, _ in enumerate(cycle([0])):
            cuts = dict.fromkeys(map(bytes, (mallory.control.feed, mallory.data.feed)), (1 << 40) - number)
            yield mallory.signed(FeedEnd(device.identity, device.key, cuts), number)

    mallory.spend(mallory.control, size, acts())


def erasures(mallory: Mallory, size: int) -> None:
    """Erasures of messages of its own data feed, most of which are not written yet."""

    def acts() -> Iterator[Draft]:
        for number, _ in enumerate(cycle([0])):
            positions = tuple(Position(mallory.data.feed, 8 * number + at) for at in range(1, 9))
            yield mallory.signed(Erasure(positions), number)

    mallory.spend(mallory.control, size, acts())


def votes(mallory: Mallory, size: int) -> None:
    """Attestations by a device that is no attester, for snapshots and geneses that nobody has declared."""

    def acts() -> Iterator[Draft]:
        for number, pair in enumerate(key_pairs("genesis")):
            snapshot = bytes(Cid.of(number.to_bytes(8, "big"), DAG_CBOR))
            yield mallory.signed(EpochAttestation(0, 1, snapshot, bytes(pair.key)), number)

    mallory.spend(mallory.control, size, acts())


def geneses(mallory: Mallory, size: int) -> None:
    """Declarations of epochs that nobody has made, by a device that cannot declare any."""
    control = mallory.member.machine.timeframe()
    control_hash = mallory.member.machine.control_hash(control)

    def acts() -> Iterator[Draft]:
        for number, _ in enumerate(cycle([0])):
            snapshot = bytes(Cid.of(number.to_bytes(8, "big"), DAG_CBOR))
            genesis = EpochGenesis(number % 8, 1, b"", {}, control, snapshot, number, control_hash=control_hash)
            yield mallory.signed(genesis, number)

    mallory.spend(mallory.control, size, acts())


def refusals(mallory: Mallory, size: int) -> None:
    """Refusals of snapshots that nobody has declared, each said twice."""

    def acts() -> Iterator[Draft]:
        for number, _ in enumerate(cycle([0])):
            snapshot = bytes(Cid.of((number // 2).to_bytes(8, "big"), DAG_CBOR))
            yield mallory.signed(EpochRefusal(0, 1, snapshot, reason="no"), number)

    mallory.spend(mallory.control, size, acts())


CONTROL_ATTACKS: dict[str, Callable[[Mallory, int], None]] = {
    "control acts": control_acts,
    "feeds": feeds,
    "narrowings": narrowings,
    "policies": policies,
    "ends": ends,
    "erasures": erasures,
    "votes": votes,
    "geneses": geneses,
    "refusals": refusals,
}
