"""Every item of a snapshot gets its row beside those who write: a joiner that declares stops nobody for long."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.party.epochs.epoch_acts import agree_on, device, epoch, join, note, same

from antiphon.halo.credentials.claims import Role
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.epochs import rebase
from antiphon.party.epochs.snapshot_fold import Cancelled
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


@pytest.fixture
def carol(peers: Peers, alice: Peer, monkeypatch: pytest.MonkeyPatch) -> Peer:
    """A joiner who stands on an epoch with twenty notes, has opened none, and is to declare the next."""
    monkeypatch.setattr(rebase, "ROWS_PER_STEP", 4)
    for number in range(20):
        note(alice, f"note {number}")
    epoch(peers)
    joiner = join(peers, "carol", Role.OWNER)
    agree_on(peers, joiner, generator=device(joiner))
    epoch(peers)  # who attests changes with it
    joiner.party.begin_again()
    assert not joiner.party.engine.whole
    return joiner


def interrupt(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Do something before each item is read from the snapshot."""
    every = EpochBase.all

    def slowly(base: EpochBase) -> Iterator[tuple[bytes, bytes]]:
        for count, found in enumerate(every(base)):
            act(count)
            yield found

    monkeypatch.setattr(EpochBase, "all", slowly)


def test_what_is_written_while_rows_are_given_is_kept(
    peers: Peers, alice: Peer, carol: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To items that have their rows by then, and to those that have not."""
    items, held = sorted(alice.party.items()), list[bool]()

    def write(count: int) -> None:
        held.append(carol.party.is_held())
        if count % 3 == 0:
            carol.party.item(items[count]).edit("set", "title", f"mine {count}")
            carol.party.item(items[-1 - count]).edit("set", "also", count)
        if count == 7:
            alice.party.item(items[1]).edit("set", "title", "hers, in its row")
            alice.party.item(items[15]).edit("set", "title", "hers, before it")
            peers.sync()

    interrupt(monkeypatch, write)
    carol.epochs.declare()
    assert len(held) == 20, "they are gone through once"
    assert not any(held), "nobody waits while they are read"
    monkeypatch.undo()
    peers.settle()
    same(alice, carol)
    assert carol.epochs.number == 3
    assert carol.party.item(items[15]).value["title"] == "mine 15"
    assert carol.party.item(items[1]).value["title"] == "hers, in its row"
    before = carol.snapshots()
    carol.restart()
    assert carol.party.engine.whole
    assert carol.snapshots() == before


def test_rows_are_given_from_the_snapshot_that_is_stood_on_at_the_end(
    peers: Peers, alice: Peer, carol: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that was derived is thrown away half-way, as where it was found damaged: it is done again."""
    done = list[int]()

    def begin_again(count: int) -> None:
        if count == 9 and not done:
            done.append(count)
            carol.party.begin_again()

    interrupt(monkeypatch, begin_again)
    carol.epochs.declare()
    assert done == [9]
    monkeypatch.undo()
    peers.settle()
    assert carol.party.engine.whole
    assert len(carol.party.items()) == 20
    same(alice, carol)


def test_it_can_be_called_off_and_goes_on_later(carol: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(count: int) -> None:
        if count == 9:
            carol.epochs.cancel(for_good=True)

    interrupt(monkeypatch, stop)
    with pytest.raises(Cancelled, match="epoch 3 was cancelled"):
        carol.epochs.declare()
    assert not carol.party.engine.whole
    assert carol.party.engine.saved.count() == 8, "two slices are done"
    monkeypatch.undo()
    assert len(carol.party.items()) == 20


def test_who_has_all_rows_reads_nothing(carol: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    carol.party.items()
    read = list[int]()
    interrupt(monkeypatch, read.append)
    rebase.hydrate_in_steps(carol.party)
    assert read == []
