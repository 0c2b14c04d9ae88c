"""Rule 25: budgets count where order is total. Attack 3: a reader admits thousands of data feeds; and other floods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.work import calls
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import member, note

from antiphon.core.errors import NotAuthorised
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.reasons import Reason, code_of
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import FeedEnd, FeedKind, MemberAdmission, Policy, Role
from antiphon.halo.limits import DEVICE_FEEDS_MAX, EDITOR_ADMISSIONS_MAX, GIVEN_MAX, IDENTITY_DEVICES_MAX
from antiphon.pipeline.plan.party_plan import Planner
from antiphon.testing.parties import Actor, Rehearsal, pair_of
from antiphon.testing.peers import Peer, Peers
from antiphon.testing.spans import SpanWriter


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    with Peers(tmp_path / "peers") as made:
        made.add("alice")
        yield made


def open_feeds(peer: Peer, kind: FeedKind) -> set[bytes]:
    """The feeds of a device that count, as the founder of the party has it."""
    return {bytes(feed.feed) for feed in member(peer).state.feeds if feed.kind is kind}


def another(rehearsal: Rehearsal, actor: Actor, number: int) -> Actor:
    """A further control feed of the same device."""
    control = pair_of(f"control {number} of {actor.device.key.hex()}")
    more = Actor(rehearsal, actor.identity, actor.device, control)
    rehearsal.actors.append(more)
    return more


def codes(actor: Actor) -> set[Reason | None]:
    return {code_of(void.reason) for void in actor.voids}


@pytest.mark.slow
def test_a_reader_that_admits_thousands_of_data_feeds_stops_nobody(peers: Peers) -> None:
    """8,193 of them made every revocation, policy and epoch too large. Few of them are known, and eight admitted."""
    alice, bob, mallory = peers.all[0], peers.add("bob"), peers.add("mallory", Role.READER)
    feeds = [pair_of(f"data {number}") for number in range(GIVEN_MAX + 50)]
    for feed in feeds:
        mallory.admit_feed(feed)
    for feed in (*feeds[:20], feeds[-1]):
        mallory.store.ingest(SpanWriter(feed, alice.party.key).write())
    wire = Wire(peers)
    wire.run()

    machine = member(alice).machine
    assert [machine.knows(feed.key) for feed in feeds] == [True] * GIVEN_MAX + [False] * 50
    assert bytes(feeds[-1].key) not in alice.lengths()
    assert bytes(feeds[19].key) in alice.lengths()  # it is void, but somebody may have seen it
    admitted = open_feeds(alice, FeedKind.DATA) & {bytes(feed.key) for feed in feeds}
    assert admitted == {bytes(feed.key) for feed in feeds[:DEVICE_FEEDS_MAX]}
    budget = [void for void in member(alice).voids if code_of(void.reason) is Reason.BUDGET]
    assert len(budget) == len(feeds) - DEVICE_FEEDS_MAX

    note(alice)
    member(alice).set_policy(Policy(editors_admit=True))
    alice.epochs.declare()
    member(alice).revoke(mallory.key)
    note(bob)
    peers.settle()
    assert alice.epochs.number == bob.epochs.number == 1
    carol = peers.add("carol")
    note(carol)
    peers.settle()
    alice.epochs.declare()
    peers.settle()
    for peer in (alice, bob, carol):
        assert not peer.party.status().blocked
        assert peer.snapshots() == alice.snapshots()
        assert peer.epochs.number == 2


def work_of_epoch(path: Path, feeds: int) -> int:
    """Return the work of declaring an epoch after a member has admitted data feeds, and written to none."""
    with Peers(path) as peers:
        alice, mallory = peers.add("alice"), peers.add("mallory", Role.READER)
        note(alice)
        for number in range(feeds):
            mallory.admit_feed(pair_of(f"data {number}"))
        peers.settle()
        alice.epochs.declare()
        assert len(member(alice).machine.data_feeds()) > feeds
        assert len(alice.party.engine.delivery.lanes) == 1, "only feeds with blocks have lanes"
        note(alice)
        return calls(alice.epochs.declare)


@pytest.mark.slow
def test_an_epoch_does_nothing_for_data_feeds_without_blocks(tmp_path: Path) -> None:
    """A thousand of them made a declaration take 3.6 times as long: it judged and copied a lane for each."""
    few, many = (work_of_epoch(tmp_path / str(count), count) for count in (20, 120))
    assert many <= few + 15 * 100  # it was 96 calls for each of them, and is 10; a garbage collection adds a few


def test_the_first_control_feeds_of_a_device_count_by_stamp() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.OWNER)
    opened = [bob, *(another(rehearsal, bob, number) for number in range(DEVICE_FEEDS_MAX + 3))]
    for number, actor in enumerate(opened):
        alice.write(Policy())
        actor.hear(alice)
        actor.join()
        actor.admit(pair_of(f"guest {number}").key, Role.READER)
    for actor in reversed(opened):
        alice.hear(actor)
    counting = [bytes(actor.control.key) for actor in opened[:DEVICE_FEEDS_MAX]]
    assert {feed.feed for feed in alice.state.feeds} == {bytes(alice.control.key), *counting}
    members = {found.subject for found in alice.state.members}
    assert [pair_of(f"guest {number}").key in members for number in range(len(opened))] == [True] * DEVICE_FEEDS_MAX + [
        False
    ] * 4
    assert codes(alice) == {Reason.BUDGET}


def test_a_thief_uses_up_the_feeds_of_a_stolen_phone_alone() -> None:
    """Counted by identity, Alice's recovered device could not open a control feed to end the phone."""
    rehearsal = Rehearsal()
    bob = rehearsal.founder("bob")
    phone = rehearsal.actor("alice", "phone")
    bob.admit(phone, Role.EDITOR)
    phone.hear(bob)
    phone.join()
    nothing: list[Entry] = []
    for number in range(4 * DEVICE_FEEDS_MAX):
        thief = another(rehearsal, phone, number)
        thief.hear(phone)
        thief.join(seen=nothing if number % 2 else None)  # also back-dated
        thief.open_data(pair_of(f"data {number}"))
        bob.hear(thief)
    recovered = rehearsal.actor("alice", "recovered", phone.identity)
    recovered.hear(bob)
    recovered.join()
    recovered.open_data(pair_of("data of the recovered device"))
    end = FeedEnd(phone.identity.key, phone.device.key, {bytes(phone.control.key): 1})
    recovered.write(end, [phone.identity])
    bob.hear(recovered)
    devices = {feed.device for feed in bob.state.feeds if feed.identity == phone.identity.key and feed.end is None}
    assert devices == {bytes(recovered.device.key)}
    assert len([feed for feed in bob.state.feeds if feed.device == recovered.device.key]) == 2


def test_the_first_devices_of_an_identity_count() -> None:
    rehearsal = Rehearsal()
    alice = rehearsal.founder("alice")
    devices = [rehearsal.actor("bob", f"device {number}") for number in range(IDENTITY_DEVICES_MAX + 3)]
    alice.admit(devices[0], Role.EDITOR)
    for actor in devices:
        alice.write(Policy())
        actor.hear(alice)
        actor.join()
    for actor in devices:
        alice.hear(actor)
    found = {feed.device for feed in alice.state.feeds} - {bytes(alice.device.key)}
    assert found == {bytes(actor.device.key) for actor in devices[:IDENTITY_DEVICES_MAX]}
    assert codes(alice) == {Reason.BUDGET}


def test_an_editor_admits_so_many_and_an_owner_more() -> None:
    rehearsal = Rehearsal()
    alice, bob = rehearsal.founder("alice"), rehearsal.actor("bob")
    alice.admit(bob, Role.EDITOR)
    alice.write(Policy(editors_admit=True))
    bob.hear(alice)
    bob.join()
    for number in range(EDITOR_ADMISSIONS_MAX + 5):
        bob.admit(pair_of(f"bob's guest {number}").key, Role.READER)
        alice.admit(pair_of(f"alice's guest {number}").key, Role.READER)
    alice.hear(bob)
    assert len(alice.state.members) == 2 + EDITOR_ADMISSIONS_MAX + EDITOR_ADMISSIONS_MAX + 5
    assert codes(alice) == {Reason.BUDGET}


def test_what_is_given_counts_from_the_last_final_epoch_on(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """An honest device is told before it writes; after an epoch it goes on."""
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 6)
    alice, bob = peers.all[0], peers.add("bob")
    note(bob)
    peers.settle()
    for number in range(5):  # Bob was the first
        member(alice).admit(pair_of(f"guest {number}").key, [Role.READER])
    with pytest.raises(NotAuthorised, match=Reason.BUDGET.value):
        member(alice).admit(pair_of("one too many").key, [Role.READER])
    alice.epochs.declare()
    peers.settle()
    for number in range(10, 16):
        member(alice).admit(pair_of(f"guest {number}").key, [Role.READER])
    peers.settle()
    assert member(bob).state.digest == member(alice).state.digest
    assert member(bob).state.member(pair_of("guest 15").key) is not None
    joiner = peers.add("carol", None)
    peers.sync()
    assert member(joiner).state.digest == member(alice).state.digest


def test_grants_beyond_a_budget_name_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's void admissions make so many strangers known, and no more."""
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 4)
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.READER)
    mallory.hear(alice)
    mallory.join()
    strangers = [rehearsal.actor(f"stranger {number}") for number in range(6)]
    for stranger in strangers:
        mallory.admit(stranger, Role.OWNER)
        stranger.hear(mallory)
        stranger.join()
    alice.hear(mallory, *strangers)
    assert [alice.machine.knows(actor.control.key) for actor in strangers] == [True] * 4 + [False] * 2
    assert not any(alice.state.feed(actor.control.key) for actor in strangers)


def test_feeds_that_ended_count_until_an_epoch_holds_their_end(peers: Peers) -> None:
    alice, bob = peers.all[0], peers.add("bob")
    note(bob)
    for number in range(DEVICE_FEEDS_MAX - 1):
        bob.admit_feed(pair_of(f"data {number}"))
    peers.sync()
    old = open_feeds(alice, FeedKind.DATA)
    assert len(old) == DEVICE_FEEDS_MAX
    member(alice).revoke(bob.key)
    member(alice).admit(bob.key, [Role.EDITOR])
    peers.sync()
    bob.restart()
    bob.join()
    with pytest.raises(NotAuthorised, match="new device"):
        note(bob)
    alice.epochs.declare()
    peers.settle()
    note(bob, "again")
    peers.settle()
    (fresh,) = {bytes(f.feed) for f in member(alice).state.feeds if f.kind is FeedKind.DATA and f.end is None}
    assert fresh not in old
    assert [item.value["title"] for item in map(alice.party.item, alice.party.items())] == ["note", "again"]
    assert bob.snapshots() == alice.snapshots()
    alice.epochs.declare()
    peers.settle()
    assert member(bob).state.digest == member(alice).state.digest


def test_the_pipeline_judges_feeds_beyond_budgets_and_of_strangers_like_the_live_engine(peers: Peers) -> None:
    alice, bob = peers.all[0], peers.add("bob")
    note(bob)
    feeds = [pair_of(f"data {number}") for number in range(DEVICE_FEEDS_MAX + 2)]
    for feed in feeds:
        bob.admit_feed(feed)
        bob.store.ingest(SpanWriter(feed, alice.party.key).write(2, seen=member(bob).machine.entries()))
    stranger = SpanWriter(pair_of("a stranger's feed"), alice.party.key)
    bob.store.ingest(stranger.write(2))
    peers.sync()
    bob.party.process()
    plan = Planner("", bob.store, bob.blobs, bob.party.key).plan()
    assert not plan.error
    with bob.party.locked() as engine:
        live = {feed: tuple(lane.state.voids) for feed, lane in engine.delivery.lanes.items()}
    assert {lane.feed: lane.voids for lane in plan.lanes} == live
    beyond = [live[bytes(feed.key)] for feed in feeds[DEVICE_FEEDS_MAX - 1 :]]
    assert [[code_of(void.reason) for void in voids] for voids in beyond] == [[Reason.BUDGET]] * 3
    assert bytes(stranger.pair.key) in plan.other


def test_whom_the_branches_of_a_fork_name_does_not_depend_on_which_came_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond a fork every grant names: an epoch may rest on either branch, and begin a new count there."""
    monkeypatch.setattr("antiphon.halo.rights.budgets.GIVEN_MAX", 3)
    rehearsal = Rehearsal()
    alice, mallory = rehearsal.founder("alice"), rehearsal.actor("mallory")
    alice.admit(mallory, Role.READER)
    writer = SpanWriter(mallory.control, rehearsal.party.key)

    def draft(signed: bytes) -> Draft:
        return Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))

    def grants(name: str) -> list[Draft]:
        claims = [MemberAdmission(pair_of(f"{name} {at}").key, frozenset({Role.READER})) for at in range(5)]
        return [draft(credential.sign(rehearsal.party.key, claim, [mallory.device])) for claim in claims]

    (opening,) = writer.extend([draft(mallory.admission(FeedKind.CONTROL, mallory.control)[1])])
    branches = [writer.fork().extend(grants(name)) for name in ("a", "b")]
    for first, second in (branches, branches[::-1]):
        machine = PartyMachine(rehearsal.party.key, rehearsal.genesis_feed)
        machine.add(alice.written)
        for span in (opening, *first):
            machine.add(span.blocks(0, span.count))
        for span in second:
            machine.show(span)
        named = [[machine.names(pair_of(f"{name} {at}").key) for at in range(5)] for name in ("a", "b")]
        assert named == [[True] * 5] * 2
