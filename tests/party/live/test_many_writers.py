"""A party of many writers: catching up, writing and receiving cost what is new, however many feeds there are.

Work is counted in function calls. Each test failed before: the calls grew with the number of feeds.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.attacks.work import calls

from antiphon.model.factory import ModelFactory
from antiphon.testing.crowd import Crowd
from antiphon.testing.peers import Peer

FEW, MANY = 8, 64
ROUNDS = 6
NEWS = 3  # messages that the device catches up with before it writes
GROWTH_MAX = 1.1


class Work:
    """Function calls of the parts of some rounds, in a party of so many writers."""

    def __init__(self, folder: Path, count: int) -> None:
        peer = Peer("founder", folder / "founder", ModelFactory.standard(), founder=None, open_party=None)
        self.catch_up = self.write = self.nothing = 0
        with Crowd(peer, folder / "crowd", count) as crowd:
            watch = peer.store.watch()
            peer.take(crowd.new_spans())
            for nth in range(ROUNDS + 2):
                crowd.write(NEWS, active=NEWS)
                peer.store.ingest_all(crowd.new_spans())
                catch_up = calls(peer.party.process) + calls(watch.poll)
                item = peer.party.item(crowd.items[nth % NEWS])
                write = calls(partial(item.edit, "set", "title", nth))
                crowd.see(peer.store.block(peer.party.authority.writer().feed, nth).entry)
                if nth >= 2:  # the first messages list all feeds as seen
                    self.catch_up += catch_up
                    self.write += write
            self.nothing = calls(peer.party.process)
            self.values = {item: peer.party.item(item).value for item in crowd.items[:NEWS]}
            self.refused = peer.party.refused()
            watch.close()
        peer.close()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> tuple[Work, Work]:
    """Of a few and of many writers."""
    few, many = (Work(tmp_path_factory.mktemp(f"{count} writers"), count) for count in (FEW, MANY))
    assert not few.refused
    assert not many.refused
    return few, many


def test_catching_up_costs_what_is_new(work: tuple[Work, Work]) -> None:
    few, many = work
    assert many.catch_up < GROWTH_MAX * few.catch_up
    assert many.nothing < GROWTH_MAX * few.nothing


def test_writing_costs_what_is_new(work: tuple[Work, Work]) -> None:
    few, many = work
    assert many.write < GROWTH_MAX * few.write


def test_each_message_lists_only_blocks_that_are_new_to_its_feed(tmp_path: Path) -> None:
    peer = Peer("founder", tmp_path / "founder", ModelFactory.standard(), founder=None, open_party=None)
    with Crowd(peer, tmp_path / "crowd", 5) as crowd:
        peer.take(crowd.new_spans())
        item = peer.party.item(crowd.items[0])
        first = item.edit("set", "title", "one")
        second = item.edit("set", "title", "two")
        crowd.write(2, active=2)
        peer.take(crowd.new_spans())
        third = item.edit("set", "title", "three")
        listed = [len(peer.store.block(stamp.feed, stamp.seq).advance) for stamp in (first, second, third)]
        assert listed == [11, 0, 2]  # 5 data feeds, 5 control feeds and the founder's own
    peer.close()
