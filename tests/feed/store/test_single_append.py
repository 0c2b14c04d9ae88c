"""A message appended alone: `append_single` and `build` write the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.encoder import Append, Draft, Written
from antiphon.feed.header import Kind
from antiphon.feed.store import group_commit
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.single_append import append_single
from antiphon.feed.store.tables import Tables
from antiphon.testing.spans import SeededRandomness, StillClock


def written(path: Path, pair: KeyPair, party: PublicKey) -> list[bytes]:
    """A feed of single messages, with a batch and an erased body among them, as it goes over the wire."""
    with FeedStore.open(path, clock=StillClock(), randomness=SeededRandomness(7)) as store:
        store.create(pair.key, party)
        for n in range(60):
            store.append(pair, party, [Draft(Kind.MUTATION, bytes([n]) * 16, bytes([n]) * (n * 7 % 400))])
            if n == 20:
                store.append(pair, party, [Draft(Kind.MUTATION, bytes(16), b"two")] * 2, atomic=True)
            if n == 40:
                store.erase(pair.key, 40)
        store.verify(pair.key)
        return [span.encode() for span in store.spans(pair.key)]


def test_both_ways_write_the_same_bytes(
    tmp_path: Path, alice: KeyPair, party: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Written | None] = []

    def counted(tables: Tables, append: Append) -> Written | None:
        taken.append(append_single(tables, append))
        return taken[-1]

    monkeypatch.setattr(group_commit, "append_single", counted)
    quick = written(tmp_path / "quick", alice, party)
    monkeypatch.setattr(group_commit, "append_single", lambda *_: None)
    general = written(tmp_path / "general", alice, party)
    assert quick == general
    assert sum(one is not None for one in taken) > 30, "the quick way was really taken"
