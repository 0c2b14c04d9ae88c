"""When a device speaks about epochs: thresholds, the generator's turn, those who sleep, and those who cannot."""

from __future__ import annotations

import pytest
from tests.party.town import SILENT_MS, numbers, terms, town, write

from antiphon.core.errors import PartyPaused, UnknownModel
from antiphon.halo.credentials.claims import Policy
from antiphon.testing.peers import Peers

pytestmark = pytest.mark.slow

# -- thresholds


def test_without_thresholds_nothing_is_declared(peers: Peers) -> None:
    one = town(peers, 2)
    write(peers.all[0], 10)
    one.run(10**9)
    assert numbers(peers.all) == [0, 0]
    assert [driver.status for driver in one.drivers.values()] == ["", ""]


def test_an_epoch_begins_after_so_many_messages(peers: Peers) -> None:
    one = town(peers, 2, epoch_messages=6)
    write(peers.all[0], 1)
    write(peers.all[1], 1)
    one.talk()
    assert numbers(peers.all) == [0, 0]

    write(peers.all[1], 1)
    one.talk()
    assert numbers(peers.all) == [1, 1]
    assert one.wakes == {"alice": None, "bob": None}, "it waits for messages, and for nothing else"

    write(peers.all[0], 2)
    one.talk()
    assert numbers(peers.all) == [1, 1], "what the epoch holds is not counted again"
    write(peers.all[0], 1)
    one.talk()
    assert numbers(peers.all) == [2, 2]


def test_an_epoch_begins_after_so_many_bytes(peers: Peers) -> None:
    one = town(peers, 1, epoch_bytes=10_000)
    for _ in range(4):
        write(peers.all[0], 1, "x" * 2_000)
        one.talk()
    assert numbers(peers.all) == [0]
    write(peers.all[0], 1, "x" * 2_000)
    one.talk()
    assert numbers(peers.all) == [1]


def test_an_epoch_begins_when_the_last_one_is_old_and_there_is_something_new(peers: Peers) -> None:
    one = town(peers, 2, epoch_age_ms=5_000)
    one.now_ms = one.peers.all[0].clock.now_ms()
    one.run(60_000)
    assert numbers(peers.all) == [0, 0], "there is nothing to hold"

    write(peers.all[0])
    one.talk()
    assert numbers(peers.all) == [1, 1], "the party is old enough"
    write(peers.all[0])
    one.talk()
    assert one.wakes["alice"] == pytest.approx(one.now_ms + 5_000, abs=50)  # clocks of tests go on with each look
    one.run(4_900)
    assert numbers(peers.all) == [1, 1]
    one.run(200)
    assert numbers(peers.all) == [2, 2]


def test_an_epoch_begins_when_nobody_has_written_for_a_while(peers: Peers) -> None:
    one = town(peers, 2, epoch_idle_ms=5_000)
    one.now_ms = one.peers.all[0].clock.now_ms()
    for _ in range(4):
        write(peers.all[0])
        one.run(3_000)
    assert numbers(peers.all) == [0, 0]
    one.run(2_100)
    assert numbers(peers.all) == [1, 1]
    one.run(60_000)
    assert numbers(peers.all) == [1, 1], "nothing new came"


def test_idle_time_goes_on_over_a_restart(peers: Peers) -> None:
    one = town(peers, 1, epoch_idle_ms=5_000)
    one.now_ms = peers.all[0].clock.now_ms()
    write(peers.all[0])
    one.now_ms += 6_000
    one.begin(peers.all[0])
    one.talk()
    assert numbers(peers.all) == [1]


def test_a_new_policy_is_heeded_at_once(peers: Peers) -> None:
    one = town(peers, 1)
    write(peers.all[0], 3)
    one.talk()
    assert numbers(peers.all) == [0]
    member = peers.all[0].member
    assert member is not None
    member.set_policy(Policy(attesters=(one.device(peers.all[0]),), epoch_messages=1))
    one.talk()
    assert numbers(peers.all) == [1]


# -- whose turn it is


def test_the_generator_declares_and_nobody_else(peers: Peers) -> None:
    one = town(peers, 3, generator=2, epoch_messages=1)
    alice, _, carol = peers.all
    one.sleep(carol)
    write(alice)
    one.talk()
    assert numbers(peers.all) == [0, 0, 0]
    assert "is to declare it (2 messages" in one.drivers["alice"].status

    one.wake(carol)
    one.talk()
    assert numbers(peers.all) == [1, 1, 1]
    chain = alice.epochs.chain()
    assert chain.feeds[chain.final[0].declared.feed] == one.device(carol)
    assert terms(alice) == [0]


def test_a_request_needs_no_threshold(peers: Peers) -> None:
    one = town(peers, 3, generator=0)
    write(peers.all[1])
    one.sync()
    peers.all[0].epochs.declare()
    one.talk()
    assert numbers(peers.all) == [1, 1, 1]


# -- those who sleep, and those who cannot


def test_an_attester_who_slept_through_three_epochs_goes_on(peers: Peers) -> None:
    one = town(peers, 3, epoch_messages=2)
    sleeper = one.by_rank()[2]
    one.sleep(sleeper)
    write(sleeper)
    for _ in range(3):
        write(one.awake[0])
        one.run(SILENT_MS * 3)
    assert numbers(one.awake) == [3, 3]

    one.wake(sleeper)
    one.run(SILENT_MS * 3)
    assert len(set(numbers(peers.all))) == 1
    assert len({tuple(sorted(peer.snapshots().items())) for peer in peers.all}) == 1
    assert len(sleeper.snapshots()) == 4


def test_a_generator_that_lacks_code_leaves_it_to_others_and_says_so(
    peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = town(peers, 3, epoch_messages=1)
    first, *others = one.by_rank()

    def lacks(**_: bool) -> None:
        raise UnknownModel("no code for model chess 1 is here")

    monkeypatch.setattr(first.epochs, "declare", lacks)
    write(others[0])
    one.talk()
    assert "no code for model chess" in one.drivers[first.name].status
    one.run(SILENT_MS)
    assert numbers(peers.all) == [1, 1, 1]
    assert terms(first) == [1]


def test_a_device_that_is_no_member_waits(peers: Peers) -> None:
    one = town(peers, 1, epoch_messages=1)
    stranger = peers.add("stranger", role=None)
    peers.pass_on(peers.all[0], stranger)
    one.begin(stranger)
    assert one.tick(stranger) is not None
    assert "no control feed" in one.drivers["stranger"].status


def test_a_party_that_is_paused_is_not_driven(peers: Peers) -> None:
    one = town(peers, 1, epoch_messages=1)
    peers.all[0].party.pause()
    with pytest.raises(PartyPaused):
        one.tick(peers.all[0])
