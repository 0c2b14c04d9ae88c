"""Garbage collection: only blobs that no party refers to are deleted, also under concurrent writes."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest
from tests.api.conftest import blobs

import antiphon
from antiphon import Party, Store
from antiphon.core import Cid
from antiphon.core.errors import InvalidInput
from antiphon.party.epochs.snapshot_fold import EpochFold
from antiphon.snapshot import tree

ONE, TWO = random.Random(1).randbytes(300_000), random.Random(2).randbytes(300_000)


def fill(party: Party, count: int = 30) -> None:
    for number in range(count):
        party.object({"number": number, "body": "x" * 60})


def below(root: Cid, store: Store) -> set[Cid]:
    return set(tree.walk(root, blobs(store)))


def test_contents_of_files_stay_and_what_they_were_goes(store: Store) -> None:
    party = store.create_party()
    kept, replaced, deleted = party.file(ONE), party.file(TWO), party.file(b"deleted" * 9)
    loose = blobs(store).put(b"of nobody")
    replaced.write(ONE + b"!")
    deleted.delete()
    done = store.collect_garbage()
    assert (done.stopped, done.count > 3, done.size > 200_000) == ("", True, True)
    assert not blobs(store).has(loose)
    assert (kept.read_bytes(), replaced.read_bytes(), deleted.read_bytes()) == (ONE, ONE + b"!", b"deleted" * 9)
    assert store.collect_garbage().count == 0


def test_all_contents_of_a_conflict_stay(store: Store, tmp_path: Path) -> None:
    party = store.create_party("Household")
    file = party.file(b"first")
    with antiphon.open(tmp_path / "other", unprotected=True) as other:
        other.join(party.invite(other.me))
        antiphon.sync(store, other)
        other.party("Household").item(file.id, antiphon.File).write(TWO)
        file.write(ONE)
        theirs = blobs(other)
        antiphon.sync(store, other)
        blobs(store).put_all((cid, theirs.get(cid)) for cid in theirs)
    store.collect_garbage()
    contents = [found.cid for _, found in file.inspect(lambda model, state: model.conflicts(state))]
    assert len(contents) == 2
    assert all(not list(tree.missing(cid, blobs(store))) for cid in contents)


def test_snapshots_that_policy_keeps_stay(store: Store) -> None:
    party = store.create_party()
    roots = []
    for number in range(4):
        fill(party)
        party.root["round"] = number
        roots.append(Cid(party.epochs.declare().snapshot))
    held = [below(root, store) for root in roots]
    party.epochs.set_policy(keep_epochs=1)
    party.root["round"] = 9
    roots.append(Cid(party.epochs.declare().snapshot))
    held.append(below(roots[-1], store))
    store.collect_garbage(earlier=None)
    assert all(not blobs(store).missing(some) for some in held)
    store.collect_garbage(earlier=2)
    assert [bool(blobs(store).missing([root])) for root in roots] == [True, True, False, False, False]
    store.collect_garbage()
    assert [bool(blobs(store).missing([root])) for root in roots] == [True, True, True, False, False]
    assert set(blobs(store)) == held[-1] | held[-2]
    assert party.epochs.verify(5).whole
    assert party.epochs.verify(5).right
    assert party.epochs.verify(1).right, "computed anew, without its blobs"


def test_paused_and_closed_parties_keep_theirs_and_forgotten_ones_do_not(store: Store) -> None:
    parties = [store.create_party(name) for name in ("open", "closed", "paused", "gone")]
    for number, party in enumerate(parties):
        party.file(b"%d" % number * 50_000)
        party.epochs.declare()
    keys = [party.key for party in parties]
    store.manager.close_party(keys[1])
    store.manager.pause(keys[2])
    store.manager.delete(keys[3])
    before = blobs(store).count
    done = store.collect_garbage()
    assert 0 < done.count < before
    store.manager.resume(keys[2])
    for key in keys[:3]:
        party = store.party(bytes(key))
        assert party.epochs.verify().whole
        [file] = [found for found in party.query() if isinstance(found, antiphon.File)]
        assert len(file.read_bytes()) == 50_000


def test_a_paused_party_stays_paused(store: Store) -> None:
    party = store.create_party("paused")
    party.file(ONE)
    store.manager.pause(party.key)
    store.collect_garbage()
    assert [(known.state.value, known.open) for known in store.parties()] == [("paused", False)]
    assert blobs(store).count > 1


def test_nothing_goes_while_a_file_comes_in(store: Store) -> None:
    party = store.create_party()
    seen: list[str] = []

    class Slow(io.RawIOBase):
        left = 5

        def read(self, size: int = -1) -> bytes:
            seen.append(store.collect_garbage().stopped)
            self.left -= 1
            return random.Random(self.left).randbytes(100_000) if self.left >= 0 else b""

    file = party.file(Slow())  # type: ignore[arg-type]
    assert set(seen) == {"blobs are being put for a file or an epoch"}
    assert store.collect_garbage().stopped == ""
    assert len(file.read_bytes()) == 500_000


def test_nothing_goes_while_an_epoch_is_computed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    party = store.create_party()
    fill(party)
    run: Any = EpochFold.run
    seen: list[str] = []

    def collecting(fold: EpochFold) -> Any:
        seen.append(store.collect_garbage().stopped)
        made = run(fold)
        seen.append(store.collect_garbage().stopped)
        return made

    monkeypatch.setattr(EpochFold, "run", collecting)
    party.epochs.declare()
    assert seen == ["blobs are being put for a file or an epoch"] * 2
    assert party.epochs.number == 1
    assert store.collect_garbage().stopped == ""
    assert party.epochs.verify().whole


def test_what_is_only_proposed_stays(store: Store, tmp_path: Path) -> None:
    party = store.create_party("Household")
    with antiphon.open(tmp_path / "other", unprotected=True) as other:
        other.join(party.invite(other.me, antiphon.Role.OWNER))
        antiphon.sync(store, other)
        party.epochs.set_policy(attesters=[store.device, other.device], generator=store.device)
        fill(party)
        antiphon.sync(store, other)
        epoch = party.epochs.declare()
        assert not epoch.final
        store.collect_garbage()
        assert not list(tree.missing(Cid(epoch.snapshot), blobs(store)))
        antiphon.sync(store, other)
        assert party.epochs.number == 1


def test_a_batch_is_left_first(store: Store) -> None:
    party = store.create_party()
    with party.batch(), pytest.raises(InvalidInput, match="leave it first"):
        store.collect_garbage()


def test_a_party_of_which_nothing_has_come_is_no_hindrance(store: Store, tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "other", unprotected=True) as other:
        store.join(other.create_party("Far").invite(store.me))
    loose = blobs(store).put(b"of nobody")
    assert store.collect_garbage().count == 1
    assert not blobs(store).has(loose)


def test_nothing_goes_while_a_party_waits_for_the_snapshot_that_it_stood_on(store: Store) -> None:
    """Once the messages are pruned, only the snapshot says which files the party has."""
    party = store.create_party()
    file = party.file(ONE)
    root = Cid(party.epochs.declare().snapshot)
    party.epochs.prune()
    data = blobs(store).get(root)
    party.processor.pause()
    blobs(store).delete([root])
    party.processor.resume()
    done = store.collect_garbage()
    assert "waits for the snapshot" in done.stopped
    assert done.count == 0
    blobs(store).put_all([(root, data)])
    party.epochs.step()
    assert store.collect_garbage().stopped == ""
    assert file.read_bytes() == ONE
