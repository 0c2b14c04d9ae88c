"""Rule 6: a device restored from a backup never writes its old feeds again, or it would look like an equivocator."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.core.errors import Equivocation, FeedRetired
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.feed.feed_record import Bounds
from antiphon.feed.store.feed_store import FeedStore
from antiphon.feed.store.ingest import Outcome
from antiphon.feed.writer import FeedWriter
from antiphon.testing.spans import SpanWriter, drafts, key_pair

OpenStore = Callable[..., FeedStore]


@pytest.fixture
def written(open_store: OpenStore, alice: KeyPair, party: PublicKey) -> FeedStore:
    """Alice's store with three blocks of her own."""
    store = open_store("alice")
    store.create(alice.key, party)
    store.append(alice, party, drafts(3))
    return store


def test_without_the_rule_an_honest_writer_looks_like_an_equivocator(
    store: FeedStore, writer: SpanWriter, alice: KeyPair
) -> None:
    """The counterexample: backup, two more blocks that Bob gets, restore, and on it goes from the backup."""
    backup_at = writer.write(3)
    restored = writer.fork()
    store.ingest_all([backup_at, writer.write(2)])

    with pytest.raises(Equivocation):
        store.ingest(restored.write(1))

    assert store.bounds(alice.key).end == 3


def test_a_restored_store_refuses_to_go_on(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    """The same history with the rule: Bob sees one history, and Alice goes on in a new feed."""
    bob = open_store("bob")
    shutil.copytree(tmp_path / "alice", tmp_path / "backup")
    written.append(alice, party, drafts(2))
    bob.ingest_all(list(written.spans(alice.key)))

    restored = open_store("backup")
    with pytest.raises(FeedRetired, match="restored or closed"):
        restored.append(alice, party, drafts(1))
    new = key_pair("alice's new feed")
    FeedWriter.open(restored, new, party).extend(drafts(1))
    bob.ingest_all([*restored.spans(alice.key), *restored.spans(new.key)])

    assert bob.bounds(alice.key) == Bounds(0, 5, None)
    assert bob.bounds(new.key) == Bounds(0, 1, None)
    assert [block.seq for block in restored.read(alice.key)] == [0, 1, 2]


def test_a_store_restored_to_its_old_place_is_found_too(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    """The file system may give the copy the very inode number that the lost file had."""
    shutil.copytree(tmp_path / "alice", tmp_path / "backup")
    written.append(alice, party, drafts(2))
    written.close()
    for _ in range(5):
        shutil.rmtree(tmp_path / "alice")
        shutil.copytree(tmp_path / "backup", tmp_path / "alice")
        with open_store("alice") as restored, pytest.raises(FeedRetired):
            restored.append(alice, party, drafts(1))


def test_only_the_file_restored_is_found_too(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    data = tmp_path / "alice" / "data.mdb"
    shutil.copy(data, tmp_path / "kept")
    written.append(alice, party, drafts(2))
    written.close()
    data.unlink()
    shutil.move(tmp_path / "kept", data)

    with pytest.raises(FeedRetired):
        open_store("alice").append(alice, party, drafts(1))


def test_a_retired_feed_stays_retired(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    shutil.copytree(tmp_path / "alice", tmp_path / "backup")
    open_store("backup").close()

    again = open_store("backup")
    again.create(alice.key, party)

    with pytest.raises(FeedRetired):
        again.append(alice, party, drafts(1))
    assert written.append(alice, party, drafts(1))[0].seq == 3  # the original goes on


def test_a_store_that_was_only_moved_goes_on(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    written.close()
    (tmp_path / "alice").rename(tmp_path / "moved")

    assert open_store("moved").append(alice, party, drafts(1))[0].seq == 3


def test_reading_a_copy_claims_nothing(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair
) -> None:
    shutil.copytree(tmp_path / "alice", tmp_path / "backup")

    with open_store("backup", readonly=True) as copy:
        assert len(list(copy.read(alice.key))) == 3
        assert not copy.record(alice.key).retired
    with open_store("backup") as copy:
        assert copy.record(alice.key).retired


def test_feeds_of_others_are_not_retired_by_a_restore(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, bob: KeyPair, party: PublicKey
) -> None:
    other = SpanWriter(bob, party)
    written.ingest(other.write(2))
    shutil.copytree(tmp_path / "alice", tmp_path / "backup")

    restored = open_store("backup")

    assert restored.ingest(other.write(2)).outcome is Outcome.STORED
    assert not restored.record(bob.key).retired


def test_who_learns_from_others_that_it_is_behind_is_retired_and_gets_its_blocks_back(
    written: FeedStore, open_store: OpenStore, tmp_path: Path, alice: KeyPair, party: PublicKey
) -> None:
    """A restore that the file does not show: here over the old file itself, elsewhere of a whole disk. The first peer
    that knows more than the writer tells it, if it is asked before anything is written."""
    data = tmp_path / "alice" / "data.mdb"
    shutil.copy(data, tmp_path / "kept")
    written.append(alice, party, drafts(2, 9000))
    *_, lost = written.spans(alice.key)
    written.close()
    shutil.copyfile(tmp_path / "kept", data)
    restored = open_store("alice")
    assert not restored.record(alice.key).retired

    assert restored.ingest(lost).added == 2

    assert [block.body for block in restored.read(alice.key, 3)] == lost.body_list()
    assert restored.verify(alice.key).length == 5
    with pytest.raises(FeedRetired):
        restored.append(alice, party, drafts(1))


def test_hearing_of_what_one_has_changes_nothing(written: FeedStore, alice: KeyPair, party: PublicKey) -> None:
    echo = list(written.spans(alice.key))

    assert [result.outcome for result in written.ingest_all(echo)] == [Outcome.KNOWN]

    assert written.append(alice, party, drafts(1))[0].seq == 3
