"""A writer, its reader and a plain list: whatever is done, in whatever order, all three agree."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.budget import budget

from antiphon.feed.feed_record import Bounds
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome
from antiphon.testing.spans import drafts, key_pair


@settings(max_examples=budget(25, 1000), stateful_step_count=30)
class Life(RuleBasedStateMachine):
    """Anything that a writer and its reader do leaves both with what a plain list would hold."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = TemporaryDirectory(prefix="antiphon-")
        self.folder = Path(self._temporary.name)
        self.pair, self.party = key_pair("alice"), key_pair("party").key
        self.mine = FeedStore.open(self.folder / "mine", durable=False, map_size=1 << 17)
        self.peer = FeedStore.open(self.folder / "peer", durable=False, map_size=1 << 17)
        self.mine.create(self.pair.key, self.party)
        self.blocks: list[bytes | None] = []
        self.starts = [0]
        self.start = 0
        self.rested: tuple[bytes | None, object] = (None, None)  # the mark of the party, and what was held then

    @rule(count=st.integers(1, 40), size=st.sampled_from([0, 10, 300, 9000]), atomic=st.booleans())
    def append(self, count: int, size: int, atomic: bool) -> None:
        batch = drafts(count, size, f"{len(self.blocks)}:")
        self.mine.append(self.pair, self.party, batch, atomic=atomic)
        first = len(self.blocks)
        self.starts += [first + count] if atomic else range(first + 1, first + count + 1)
        self.blocks += [draft.message for draft in batch]

    @rule(share=st.floats(0, 1))
    def erase(self, share: float) -> None:
        seq = int(share * len(self.blocks))
        if self.start <= seq < len(self.blocks):
            self.mine.erase(self.pair.key, seq)
            self.blocks[seq] = None

    @rule(share=st.floats(0, 0.7))
    def prune(self, share: float) -> None:
        before = int(share * len(self.blocks))
        self.start = max(self.start, max(start for start in self.starts if start <= before))
        assert self.mine.prune(self.pair.key, before).start == self.start

    @rule(bare=st.booleans())
    def replicate(self, bare: bool) -> None:
        held = self.peer.bounds(self.pair.key).length if self.peer.feeds() else 0
        if held >= self.start:
            for span in self.mine.spans(self.pair.key, held, bodies=not bare):
                assert self.peer.ingest_bytes(span.encode()).outcome is Outcome.STORED
            for span in self.mine.spans(self.pair.key):
                self.peer.ingest_bytes(span.encode())

    @rule()
    def reopen(self) -> None:
        self.mine.close()
        self.mine = FeedStore.open(self.folder / "mine", durable=False)

    @rule()
    def rest(self) -> None:
        mark = self.mine.put_rest(self.party, self.mine.transaction)
        assert mark is not None
        self.rested = mark, self.held()

    def held(self) -> object:
        return self.mine.feeds(self.party), [(block.hash, block.body) for block in self.mine.read(self.pair.key)]

    @invariant()
    def a_party_with_its_mark_holds_what_it_held(self) -> None:
        mark = self.mine.rest(self.party)
        assert mark in (None, self.rested[0])
        assert mark is None or self.held() == self.rested[1]

    @invariant()
    def what_is_read_is_what_was_written(self) -> None:
        assert [block.message for block in self.mine.read(self.pair.key)] == self.blocks[self.start :]
        assert self.mine.verify(self.pair.key) == Bounds(self.start, len(self.blocks), None)
        if self.peer.feeds():
            held = self.peer.verify(self.pair.key)
            for block in self.peer.read(self.pair.key):
                assert block.message is None or self.blocks[block.seq] in (None, block.message)
            assert held.length <= len(self.blocks)

    def teardown(self) -> None:
        self.mine.close()
        self.peer.close()
        self._temporary.cleanup()


TestLife = pytest.mark.slow(Life.TestCase)
