"""Epochs of an application: declared, attested by `sync`, pruned, and the start of a new device."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import InvalidInput, NotAuthorised, Object, Party, PartyPaused, Role, Store, sync
from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import MissingBlob
from antiphon.halo import new_device
from antiphon.model import item_codec
from antiphon.party.epochs.snapshot_fold import EpochSnapshot
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.testing.copy_feeds import copy_feeds

pytestmark = pytest.mark.slow


def test_an_epoch_of_a_party_of_one_is_final_at_once(party: Party, ada: Store) -> None:
    milk = party.object({"title": "Milk"})
    assert (party.epochs.number, party.epochs.list()) == (0, [])

    epoch = party.epochs.declare()

    assert (epoch.number, epoch.term, epoch.final, epoch.reason) == (1, 0, True, "")
    assert party.epochs.number == party.status().epoch == 1
    assert list(party.epochs) == [epoch]
    assert [(voter.identity, voter.device) for voter in epoch.attested] == [(ada.me, ada.device)]
    assert epoch.declared_by.device == ada.device
    assert epoch.refused == ()
    assert epoch.messages == sum(seq + 1 for seq in party.timeframe.values())
    milk["title"] = "Oat milk"
    assert party.query().ids == (milk.id,)


def test_a_snapshot_can_be_asked_for_by_number(party: Party) -> None:
    milk = party.object({"title": "Milk"})
    party.epochs.declare()
    milk["title"] = "Oat milk"
    party.epochs.declare()
    states = [party.epochs.snapshot(number).item(milk.id) for number in (1, 2)]
    items = [item_codec.restore(state, party.store.models) for state in states if state is not None]
    assert len(items) == 2
    assert states[0] != states[1]
    assert states[1] == party.processor.snapshot(milk.id)
    with pytest.raises(InvalidInput, match="no final epoch 3"):
        party.epochs.snapshot(3)


def test_it_survives_a_restart_and_is_booted_from(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        milk = store.create_party("Household").object({"title": "Milk"})
        epoch = store.party("Household").epochs.declare()
        assert store.party("Household").epochs.prune() > 0
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.party("Household")
        assert party.epochs.list() == [epoch]
        assert party.epochs.number == 1
        assert party.item(milk.id).value == {"title": "Milk"}
        assert party.epochs.prune() == 0


# -- two devices


def test_an_exchange_lets_both_stand_on_it(ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    party.epochs.set_policy(attesters=[ada.me, bob.me], generator=ada.device)
    sync(ada, bob)
    theirs.object({"title": "Salt"})
    sync(ada, bob)

    epoch = party.epochs.declare()
    assert (epoch.final, len(epoch.attested), epoch.needed) == (False, 1, 2)
    assert party.epochs.number == 0
    sync(ada, bob)

    assert (party.epochs.number, theirs.epochs.number) == (1, 1)
    assert party.epochs.list() == theirs.epochs.list()
    assert {voter.identity for voter in party.epochs.list()[0].attested} == {ada.me, bob.me}
    assert sync(ada, bob) == 0


def test_who_is_not_asked_cannot_declare(theirs: Party) -> None:
    with pytest.raises(NotAuthorised, match="may not declare epoch 1"):
        theirs.epochs.declare()


def test_a_new_device_begins_with_the_snapshot_and_the_tail(tmp_path: Path, ada: Store, party: Party) -> None:
    milk = party.object({"title": "Milk"})
    notes = [party.text("x" * 3_000) for _ in range(40)]
    party.epochs.declare()
    party.epochs.prune()
    salt = party.object({"title": "Salt"})
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, eve)
        there = eve.party(party.key)
        assert there.epochs.number == 1
        assert there.epochs.waits_for == ""
        assert there.item(milk.id).value == {"title": "Milk"}
        assert there.item(salt.id).value == {"title": "Salt"}
        assert [there.item(note.id).value for note in notes] == [note.value for note in notes]
        there.item(milk.id, Object)["title"] = "Oat milk"
        sync(ada, eve)
        assert milk.value == {"title": "Oat milk"}
        assert there.query().ids == party.query().ids
        first = party.timeframe
        assert there.timeframe == first
    with antiphon.open(
        tmp_path / "eve", unprotected=True
    ) as eve:  # and goes on after a restart, with feeds that begin at the cut
        salt["title"] = "Sea salt"
        sync(ada, eve)
        assert eve.party(party.key).item(salt.id).value == {"title": "Sea salt"}
        assert eve.party(party.key).epochs.prune() >= 0


def test_a_new_device_wants_as_many_attestations_as_policy_says(tmp_path: Path, ada: Store, party: Party) -> None:
    party.epochs.set_policy(attestations_min=2)
    party.object({"title": "Milk"})
    party.epochs.declare()
    party.epochs.prune()
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, eve)
        there = eve.party(party.key)
        assert there.epochs.number == 0
        assert "1 attestations, and policy wants 2" in there.epochs.waits_for
        assert len(there.query()) == 0


def test_blobs_come_from_whoever_has_them(tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party) -> None:
    party.object({"title": "Milk"})
    party.epochs.declare()
    sync(ada, bob)
    party.epochs.prune()
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        sync(ada, bob)
        theirs.epochs.prune()
        sync(bob, eve)
        assert eve.party(party.key).epochs.number == 1
        assert eve.party(party.key).query().ids == party.query().ids


def test_who_gets_only_a_part_of_a_snapshot_waits_for_the_rest(tmp_path: Path, ada: Store, party: Party) -> None:
    for number in range(200):
        party.object({"n": number})
    epoch = party.epochs.declare()
    party.epochs.prune()
    held = list(ada.manager.blobs)  # type: ignore[call-overload]
    some = MemoryBlobs()
    some.put_all((cid, ada.manager.blobs.get(cid)) for cid in held if cid.codec != RAW or cid == epoch.snapshot)
    root = party.epochs.snapshot(1).root.items
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me))
        copy_feeds(ada.manager.feeds, eve.manager.feeds, party.key)
        there = eve.party(party.key)
        assert len(there.query()) == 0, "queries work, and find nothing yet"
        some.delete([cid for cid in some if cid not in (epoch.snapshot, root)][:1])
        there.epochs.step()
        there.epochs.fetch(some)
        assert there.epochs.number == 0
        assert "nor is the snapshot of epoch 1" in there.epochs.waits_for
        sync(ada, eve)
        assert there.epochs.number == 1
        assert len(there.query()) == 200


def test_a_snapshot_that_is_not_whole_keeps_the_messages(ada: Store, party: Party) -> None:
    party.object({"title": "Milk"})
    epoch = party.epochs.declare()
    blobs = ada.manager.blobs
    root = party.epochs.snapshot(1).root
    assert root.items is not None
    blobs.delete([root.items])  # type: ignore[attr-defined]
    with pytest.raises(MissingBlob, match="no message may be dropped"):
        party.epochs.prune()
    assert epoch.final


# -- policy


def test_a_policy_is_changed_in_part(ada: Store, party: Party) -> None:
    party.epochs.set_policy(attesters=[ada.me], epoch_messages=100)
    policy = party.epochs.set_policy(keep_epochs=2)
    assert (policy.attesters, policy.epoch_messages, policy.keep_epochs) == ((ada.device,), 100, 2)
    assert party.epochs.policy == policy
    assert party.epochs.set_policy(generator=str(ada.device.hex())).generator == ada.device
    assert party.epochs.set_policy(generator=b"").generator == b""


def test_what_a_policy_cannot_say_is_refused(ada: Store, bob: Store, party: Party) -> None:
    with pytest.raises(InvalidInput, match="must have joined: sync first"):
        party.epochs.set_policy(attesters=[bob.me])
    with pytest.raises(InvalidInput, match="the generator is named by the key"):
        party.epochs.set_policy(generator="nobody")
    with pytest.raises(InvalidInput, match="several keys, in a list"):
        party.epochs.set_policy(attesters=ada.me)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="has no 'epoch_message'"):
        party.epochs.set_policy(epoch_message=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="epoch_messages of a policy is a number from 0 on"):
        party.epochs.set_policy(epoch_messages=-1)
    with pytest.raises(InvalidInput, match="liars of a policy is true or false"):
        party.epochs.set_policy(liars=2)  # type: ignore[arg-type]


def test_an_identity_with_several_devices_is_asked_which(tmp_path: Path, ada: Store, party: Party) -> None:
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob:
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        second = new_device(bob.keys, "phone", bob.me)
        bob.manager.device = second  # a second device of Bob's, in the same folder
        bob.manager.close_party(party.key)
        bob.party(party.key).join()
        sync(ada, bob)
        with pytest.raises(InvalidInput, match="has 2 devices; name the one") as told:
            party.epochs.set_policy(attesters=[bob.me])
        assert second.key.hex() in str(told.value)
        assert party.epochs.set_policy(attesters=[second.key]).attesters == (second.key,)


def test_only_an_owner_sets_the_policy(theirs: Party) -> None:
    with pytest.raises(NotAuthorised):
        theirs.epochs.set_policy(epoch_messages=1)


# -- a device that differs


def test_a_device_that_differs_says_so_and_adopts(
    ada: Store, bob: Store, party: Party, theirs: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs = bob.manager.epochs(party.key)
    compute = epochs._compute

    def wrong(*plan: Any) -> EpochSnapshot:
        return replace(compute(*plan), cid=Cid.of(b"something else"))

    monkeypatch.setattr(epochs, "_compute", wrong)
    party.object({"title": "Milk"})
    party.epochs.declare()
    sync(ada, bob)

    assert theirs.epochs.number == 0
    assert theirs.epochs.disagreement is not None
    (record,) = party.epochs.list()
    (objection,) = record.refused
    assert (objection.voter.identity, objection.computed) == (bob.me, Cid.of(b"something else"))
    assert "not what the messages make" in objection.reason

    if not theirs.epochs.adopt():
        sync(ada, bob)
        assert theirs.epochs.adopt()
    assert theirs.epochs.number == 1
    assert theirs.epochs.disagreement is None
    assert theirs.query().ids == party.query().ids


# -- where it may be called


def test_not_inside_a_batch(party: Party) -> None:
    with party.batch():
        party.object({"title": "Milk"})
        for call in (party.epochs.declare, party.epochs.step, party.epochs.prune, party.epochs.adopt):
            with pytest.raises(InvalidInput, match="a batch is open"):
                call()
        assert party.epochs.number == 0
    assert party.epochs.declare().final


def test_not_on_a_party_that_is_closed(ada: Store, party: Party) -> None:
    ada.manager.close_party(party.key)
    with pytest.raises(PartyPaused):
        _ = party.epochs.number


def test_a_store_takes_part_by_itself(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        party = store.create_party("Household")
        epochs = store.manager.epochs(party.key)
        reached, step = threading.Event(), epochs.step

        def stepping() -> bool:
            moved = step()
            if epochs.number:
                reached.set()
            return moved

        epochs.step = stepping  # type: ignore[method-assign]
        party.epochs.set_policy(epoch_messages=1)
        party.object({"title": "Milk"})
        assert reached.wait(30)
        assert party.epochs.number >= 1


def test_a_reader_boots_from_an_epoch_too(tmp_path: Path, ada: Store, party: Party) -> None:
    party.object({"title": "Milk"})
    party.epochs.declare()
    party.epochs.prune()
    with antiphon.open(tmp_path / "eve", name="Eve", unprotected=True) as eve:
        eve.join(party.invite(eve.me, Role.READER))
        sync(ada, eve)
        assert eve.party(party.key).epochs.number == 1
        assert len(eve.party(party.key).query()) == 1


def test_a_device_that_may_have_forgotten_its_votes_says_so_and_exchanges_on(
    tmp_path: Path, ada: Store, party: Party
) -> None:
    """Its folder is an old copy: its votes on the epoch may be in blocks of its feed that it lacks."""
    with antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob:
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        party.epochs.set_policy(attesters=[ada.me, bob.me], generator=ada.me)
        sync(ada, bob)
    shutil.copytree(tmp_path / "bob", tmp_path / "twin")
    party.object({"title": "Milk"})
    party.epochs.declare()
    with antiphon.open(tmp_path / "twin", unprotected=True) as twin:
        sync(ada, twin)
        there = twin.party(party.key)
        assert len(there.query()) == 1
        assert "may have forgotten" in there.epochs.waits_for
        assert there.epochs.number == 0
        assert there.epochs.recover(), "its operator says that it has heard"
        assert there.epochs.waits_for == ""
        sync(ada, twin)
        assert (party.epochs.number, there.epochs.number) == (1, 1)


def test_a_device_that_takes_no_part_says_which_control_block_is_missing(
    tmp_path: Path, ada: Store, bob: Store, party: Party, theirs: Party
) -> None:
    with antiphon.open(tmp_path / "carol", name="Carol", unprotected=True, epochs=False) as carol:
        carol.join(party.invite(carol.me))
        antiphon.sync(ada, carol)
        carol.party(party.key)
        antiphon.sync(ada, carol)  # Ada has seen the first block of Carol's control feed,
        party.object({"title": "due"})
        party.epochs.declare()
        carols = {
            bytes(feed) for feed, owner in party.member.machine.authority.owners().items() if owner.identity == carol.me
        }
        for span in ada.manager.feeds.spans(
            party.member.genesis_feed, theirs.member.machine.length(party.member.genesis_feed)
        ):
            bob.manager.feeds.ingest_bytes(span.encode())  # and Bob gets Ada's blocks without it
    theirs.refresh()
    assert theirs.epochs.number == 0
    assert any(feed.hex()[:8] in theirs.epochs.waits_for for feed in carols)
    assert "sync with a member that has it" in theirs.epochs.waits_for
