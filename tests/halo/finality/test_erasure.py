"""Who may erase a message, and what an epoch that held it before keeps."""

from __future__ import annotations

from tests.halo.finality.test_epoch_chain import data_party, declare, meet, party, verdict

from antiphon.halo.credentials.claims import Erasure, Position
from antiphon.halo.rights.authorship import NOT_ERASABLE
from antiphon.testing.parties import pair_of


def test_an_erasure_is_an_owners_or_that_of_the_identity_whose_message_it_is() -> None:
    alice, bob, carol = party("bob", "carol", policy=False)
    data = pair_of("bob data")
    bob.open_data(data)
    meet(alice, bob, carol)
    carol.write(Erasure((Position(bytes(data.key), 1),)))
    bob.write(Erasure((Position(bytes(data.key), 2), Position(bytes(alice.control.key), 0))))
    alice.write(Erasure((Position(bytes(data.key), 3),)), [alice.identity])
    before = alice.machine.timeframe()
    meet(alice, bob, carol)
    assert alice.machine.erased(data.key) == {2, 3}
    assert alice.machine.erased(alice.control.key) == frozenset()
    assert alice.machine.at(before).erased(data.key) == {3}
    assert [void.reason for void in alice.voids] == [NOT_ERASABLE]
    assert verdict(alice, data, 2) == ""  # kept apart: voids of rights are ends of feeds


def test_what_an_epoch_held_before_an_erasure_stays_in_it() -> None:
    alice, _, data = data_party()
    alice.write(Erasure((Position(bytes(data.key), 1),)), [alice.identity])
    declare(alice, cut={bytes(data.key): 5})
    alice.write(Erasure((Position(bytes(data.key), 2), Position(bytes(data.key), 6))), [alice.identity])
    assert alice.machine.erased(data.key) == {1, 6}
