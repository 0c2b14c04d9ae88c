"""A party in one file: exported here, verified and taken elsewhere, and refused where anything is wrong."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.party.epochs.epoch_acts import note, settle
from tests.party.forked import Forked, confront

from antiphon.core.cid import DAG_CBOR, RAW, Cid
from antiphon.core.errors import AntiphonError, BadEncoding, InvalidInput, MissingBlob, NotAuthorised, StoreError
from antiphon.feed import span as spans
from antiphon.feed.chain import verify_span
from antiphon.halo.credentials.claims import Policy, Role
from antiphon.model.file import UNKNOWN_TYPE
from antiphon.party.bundle.export import ExportReport, export_party
from antiphon.party.bundle.import_ import Bundle
from antiphon.party.bundle.nodes import (
    BundleFeed,
    BundleRoot,
    decode_list,
    decode_page,
    encode_list,
    encode_page,
    pages,
)
from antiphon.party.epochs.snapshot_fold import EpochSnapshot
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import MemoryBlobs
from antiphon.snapshot.car import write_car
from antiphon.snapshot.car_file import CarFile
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def write(peer: Peer, count: int = 12) -> list[bytes]:
    made = []
    for number in range(count):
        item = peer.party.create("antiphon/object")
        item.edit("set", "title", f"{peer.name}'s note {number}")
        made.append(bytes(item.id))
    return made


def write_file(peer: Peer, data: bytes) -> Cid:
    cid = content.write(data, peer.blobs)
    peer.party.create("antiphon/file").edit("set", cid, len(data), UNKNOWN_TYPE, "a file")
    return cid


def export(peer: Peer, path: Path, *, whole: bool = False, files: bool = True) -> ExportReport:
    assert peer.member is not None
    return export_party(peer.party, peer.member.machine, path, whole=whole, files=files)


def take(path: Path, taker: Peer) -> Bundle:
    with CarFile.open(path) as file:
        bundle = Bundle(file)
        bundle.take(taker.store, taker.blobs)
    taker.restart()
    return bundle


def newcomer(peers: Peers, name: str = "zoe") -> Peer:
    """Somebody who is admitted and has nothing yet."""
    alice = peers.all[0]
    made = peers.add(name, None)
    assert alice.member is not None
    alice.member.admit(made.key, [Role.EDITOR])
    return made


def test_a_party_without_epochs_goes_through_a_file(peers: Peers, tmp_path: Path) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice), write(bob)
    peers.settle()
    zoe = newcomer(peers)
    done = export(alice, tmp_path / "party.car")
    assert (done.number, done.feeds) == (0, 4)
    assert done.size == (tmp_path / "party.car").stat().st_size
    take(tmp_path / "party.car", zoe)
    assert zoe.snapshots() == alice.snapshots()
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("whole", [False, True])
def test_with_an_epoch_it_begins_at_the_snapshot(peers: Peers, tmp_path: Path, whole: bool) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    items = write(alice) + write(bob)
    peers.settle()
    alice.epochs.declare()
    peers.settle()
    bob.party.item(items[0]).edit("set", "title", "since")
    write(bob, 3)
    zoe = newcomer(peers)
    peers.pass_on(bob, alice)
    done = export(alice, tmp_path / "party.car", whole=whole)
    assert done.number == 1
    taken = take(tmp_path / "party.car", zoe)
    assert taken.base is not None
    assert zoe.epochs.number == 1
    assert zoe.snapshots() == alice.snapshots()
    starts = {record.start for record in zoe.store.feeds(zoe.party.key)}
    assert (starts == {0}) == whole
    # It is a peer like any other: it joins, writes, and takes part.
    zoe.join()
    note = zoe.party.create("antiphon/object")
    peers.settle()
    assert alice.party.item(note.id).value == {}


def test_a_pruned_party_goes_through_a_file(peers: Peers, tmp_path: Path) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    assert alice.epochs.prune()
    write(alice, 2)
    zoe = newcomer(peers)
    for whole in (False, True):
        export(alice, tmp_path / "party.car", whole=whole)
        take(tmp_path / "party.car", zoe)
        assert zoe.snapshots() == alice.snapshots()


def test_taking_it_twice_or_where_more_is_known_changes_nothing(peers: Peers, tmp_path: Path) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice)
    export(alice, tmp_path / "party.car")
    write(bob)
    peers.settle()
    before, lengths = bob.snapshots(), bob.lengths()
    take(tmp_path / "party.car", bob)
    assert (bob.snapshots(), bob.lengths()) == (before, lengths)


def test_files_come_along_or_not(peers: Peers, tmp_path: Path) -> None:
    alice = peers.add("alice")
    data = random.Random(1).randbytes(700_000)
    kept, gone = write_file(alice, data), Cid.of(b"not here")
    alice.party.create("antiphon/file").edit("set", gone, 8)
    alice.party.create("antiphon/file").edit("set", alice.blobs.put(b"no content", DAG_CBOR), 8)
    alice.epochs.declare()
    zoe = newcomer(peers)
    done = export(alice, tmp_path / "with.car")
    assert (done.files, done.left_out) == (1, 2)
    bare = export(alice, tmp_path / "without.car", files=False)
    assert bare.size < done.size - len(data)
    take(tmp_path / "without.car", zoe)
    assert not zoe.blobs.has(kept)
    take(tmp_path / "with.car", zoe)
    assert b"".join(content.pieces(kept, zoe.blobs)) == data


def test_large_spans_are_content(peers: Peers, tmp_path: Path) -> None:
    alice = peers.add("alice")
    chance = random.Random(2)
    with alice.party.batch():
        for _ in range(5):
            alice.party.create("antiphon/object").edit("set", "body", chance.randbytes(400_000))
    zoe = newcomer(peers)
    export(alice, tmp_path / "party.car")
    with CarFile.open(tmp_path / "party.car") as file:
        assert any(cid.codec == DAG_CBOR and file.get(cid)[:9] == b"\x84\x67content" for cid in file)
    take(tmp_path / "party.car", zoe)
    assert zoe.snapshots() == alice.snapshots()


def test_without_all_blobs_nothing_is_written(peers: Peers, tmp_path: Path) -> None:
    alice = peers.add("alice")
    write(alice)
    alice.epochs.declare()
    assert isinstance(alice.blobs, MemoryBlobs)
    lost = list(tree.walk(Cid(alice.epochs.chain().final[0].snapshot), alice.blobs))[-1]
    alice.blobs.delete([lost])
    (tmp_path / "party.car").write_bytes(b"an older one")
    with pytest.raises(MissingBlob, match="fetch them first"):
        export(alice, tmp_path / "party.car")
    assert [path.name for path in tmp_path.glob("*.car*")] == ["party.car"]
    assert (tmp_path / "party.car").read_bytes() == b"an older one"


def test_a_folder_that_is_not_there_is_told(peers: Peers, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file"):
        export(peers.add("alice"), tmp_path / "no" / "party.car")
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        CarFile.open(tmp_path / "none.car")


def test_an_independent_reader_walks_it_from_its_root(peers: Peers, tmp_path: Path, root: Path) -> None:
    modules, node = root / "bench" / "anchors" / "node_modules", shutil.which("node")
    if node is None or not (modules / "@ipld" / "car").is_dir():
        pytest.skip("npm's @ipld/car is not here: install Node, then `make bench/anchors/node_modules/.built`")
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice), write(bob)
    data = random.Random(6).randbytes(400_000)
    cid = write_file(alice, data)
    peers.settle()
    alice.epochs.declare()
    write(alice, 3)
    with alice.party.batch():
        for number in range(4):
            alice.party.create("antiphon/object").edit("set", "body", random.Random(number).randbytes(400_000))
    done = export(alice, tmp_path / "party.car")

    script = root / "tests" / "snapshot" / "car.mjs"
    command = [node, str(script), str(modules), str(tmp_path / "party.car")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)

    assert (found["roots"], len(found["cids"])) == ([str(done.root)], done.blobs)
    bundled = found["bundled"]
    assert (bundled["party"], bundled["files"]) == (alice.party.key.hex(), [[str(cid), data.hex()]])
    base = alice.epochs.snapshot(1)
    assert {bytes.fromhex(key): bytes.fromhex(value) for key, value in found["trees"]["items"]} == dict(base.all())
    for feed in bundled["feeds"]:
        record = alice.store.record(bytes.fromhex(feed["feed"]))
        ranges = [spans.decode(bytes.fromhex(data)) for data in feed["spans"]]
        assert feed["length"] == record.length
        assert sum(span.count for span in ranges) == record.length - feed["first"]
        assert all(verify_span(span).feed == record.feed for span in ranges)


def test_what_is_written_meanwhile_leaves_nothing_in_the_file_that_waits(peers: Peers, tmp_path: Path) -> None:
    """Both write while the file is, each having seen what the other wrote. Who takes it waits for nothing."""
    alice, bob = peers.add("alice"), peers.add("bob")
    one = write(alice, 1)[0]
    write(bob, 1)
    peers.sync()
    zoe = newcomer(peers)
    told: list[int] = []

    def meanwhile(what: str, done: int) -> None:
        told.append(done)
        if len(told) == 1:  # one data feed is in the file
            for number, peer in enumerate((alice, bob, alice, bob)):
                peer.party.item(one).edit("set", "title", f"meanwhile {number}")
                peers.pass_on(alice, bob), peers.pass_on(bob, alice)

    assert alice.member is not None
    export_party(alice.party, alice.member.machine, tmp_path / "party.car", tick=meanwhile)
    take(tmp_path / "party.car", zoe)
    assert zoe.party.status().blocked == ()
    assert zoe.party.item(one).value["title"].startswith("meanwhile")


def test_a_party_that_is_pruned_meanwhile_is_written_from_its_epoch(peers: Peers, tmp_path: Path) -> None:
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice), write(bob)
    peers.sync()
    zoe = newcomer(peers)
    told: list[int] = []

    def meanwhile(what: str, done: int) -> None:
        told.append(done)
        if len(told) == 1:  # one of two data feeds is in the file
            alice.epochs.declare()
            assert alice.epochs.prune()
            write(alice, 1)

    assert alice.member is not None
    done = export_party(alice.party, alice.member.machine, tmp_path / "party.car", tick=meanwhile)
    assert done.number == 1
    take(tmp_path / "party.car", zoe)
    assert zoe.snapshots() == alice.snapshots()


def test_who_held_another_branch_than_the_epoch_writes_a_file_that_can_be_taken(peers: Peers, tmp_path: Path) -> None:
    case = Forked(peers, longer=2)
    case.alice.epochs.declare()
    confront(peers)
    settle(peers)
    zoe = newcomer(peers)
    peers.pass_on(case.alice, case.carol)
    export(case.carol, tmp_path / "party.car")
    take(tmp_path / "party.car", zoe)
    assert zoe.snapshots() == case.carol.snapshots() == case.alice.snapshots()


def test_feeds_that_do_not_fit_into_the_root_are_in_pages(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.party.bundle.nodes.PAGE_SIZE", 1)
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice), write(bob, 3)
    peers.settle()
    zoe = newcomer(peers)
    export(alice, tmp_path / "party.car")
    bundle = take(tmp_path / "party.car", zoe)
    assert bundle.root.more
    assert len(bundle.feeds) == 4
    assert zoe.snapshots() == alice.snapshots()
    with pytest.raises(InvalidInput, match="a page of feeds stands in it twice"):
        replace(bundle.root, more=bundle.root.more * 2)
    rewrite(tmp_path / "party.car", tmp_path / "other.car", lambda root, _: replace(root, more=root.more[::-1]))
    check_refused(tmp_path / "other.car", zoe, BadEncoding, "feeds ascend")


def test_a_bundle_has_any_number_of_feeds() -> None:
    """20,000 were the most: a member that opened as many control feeds made exporting a party fail."""
    keys = [number.to_bytes(32, "big") for number in range(60_000)]
    feeds = [BundleFeed(key, True, 0, 1, (Cid.of(key, DAG_CBOR),)) for key in keys]
    first, *rest = pages(feeds)
    assert [feed for page in rest for feed in decode_page(encode_page(page))] == feeds[len(first) :]
    more = tuple(Cid.of(encode_page(page), DAG_CBOR) for page in rest)
    root = BundleRoot(b"p" * 32, keys[0], None, first, more=more)
    assert BundleRoot.decode(root.encode()) == root
    assert not root.problem_with(feeds)


def test_a_file_is_taken_to_its_end_where_another_branch_of_a_feed_is_held(peers: Peers, tmp_path: Path) -> None:
    """The first block that contradicted a held one stopped it: feeds that come later in the file were not taken."""
    case = Forked(peers, longer=2)
    made = [note(case.alice, "alone"), note(case.alice, "again")]
    files = [tmp_path / "alice.car", tmp_path / "carol.car"]
    export(case.alice, files[0])
    export(case.carol, files[1])
    for _ in range(2):  # the fork is known to the store when the file comes again
        take(files[0], case.carol)
        take(files[1], case.alice)
        assert case.known()
        assert [case.carol.party.item(item.id).value["title"] for item in made] == ["alone", "again"]
        assert case.titles() == ["common", "common"]
    assert case.carol.snapshots() == case.alice.snapshots()
    assert all(peer.store.record(case.feed).branches for peer in (case.alice, case.carol))


# -- what is wrong is refused, and nothing of it is taken


@pytest.fixture
def good(peers: Peers, tmp_path: Path) -> Path:
    """A file with an epoch, a tail, and a file."""
    alice, bob = peers.add("alice"), peers.add("bob")
    write(alice), write(bob, 3), write_file(alice, b"some content" * 9000)
    peers.settle()
    alice.epochs.declare()
    write(alice, 3)
    export(alice, tmp_path / "good.car")
    return tmp_path / "good.car"


def check_refused(path: Path, taker: Peer, error: type[AntiphonError], match: str) -> None:
    transaction, blobs = taker.store.transaction, list(taker.blobs)  # type: ignore[call-overload]
    with pytest.raises(error, match=match), CarFile.open(path) as file:
        Bundle(file).take(taker.store, taker.blobs)
    assert (taker.store.transaction, list(taker.blobs)) == (transaction, blobs)  # type: ignore[call-overload]


def test_a_file_that_is_cut_off_is_refused(good: Path, peers: Peers, tmp_path: Path) -> None:
    zoe, data = newcomer(peers), good.read_bytes()
    for size in [0, 1, 30, 60, 100, *random.Random(3).sample(range(100, len(data)), 25), len(data) - 1]:
        (tmp_path / "cut.car").write_bytes(data[:size])
        check_refused(tmp_path / "cut.car", zoe, BadEncoding, r"cut\.car")


def test_a_file_with_a_changed_byte_is_refused(good: Path, peers: Peers, tmp_path: Path) -> None:
    zoe, data = newcomer(peers), good.read_bytes()
    for at in random.Random(4).sample(range(len(data)), 40):
        changed = bytearray(data)
        changed[at] ^= 1 << random.Random(at).randrange(8)
        (tmp_path / "changed.car").write_bytes(changed)
        check_refused(tmp_path / "changed.car", zoe, AntiphonError, r"changed\.car")


def rewrite(good: Path, path: Path, change: Callable[[BundleRoot, MemoryBlobs], BundleRoot]) -> None:
    """The same file with another root, and whatever blobs that wants; every blob is what its CID says."""
    blobs = MemoryBlobs()
    with CarFile.open(good) as file:
        blobs.put_all((cid, file.get(cid)) for cid in file)
        root = change(BundleRoot.decode(file.get(file.roots[0])), blobs)
    cid = blobs.put(root.encode(), DAG_CBOR)
    with path.open("wb") as stream:
        write_car(stream, [cid], blobs, blobs)


def test_every_blob_must_be_in_it(good: Path, peers: Peers, tmp_path: Path) -> None:
    zoe = newcomer(peers)
    with CarFile.open(good) as file:
        cids = [cid for cid in file if cid not in file.roots]
    for gone in cids:

        def without(root: BundleRoot, blobs: MemoryBlobs, gone: Cid = gone) -> BundleRoot:
            blobs.delete([gone])
            return root

        rewrite(good, tmp_path / "lacks.car", without)
        check_refused(tmp_path / "lacks.car", zoe, BadEncoding, f"is not whole: blob {gone}")


def test_another_party_feed_or_snapshot_is_refused(good: Path, peers: Peers, tmp_path: Path) -> None:
    zoe, path = newcomer(peers), tmp_path / "other.car"

    def changed(root: BundleRoot, **fields: object) -> BundleRoot:
        """With a data feed that has a tail otherwise."""
        at = next(at for at, feed in enumerate(root.feeds) if not feed.control and feed.lists)
        feeds = [*root.feeds[:at], replace(root.feeds[at], **fields), *root.feeds[at + 1 :]]  # type: ignore[arg-type]
        return replace(root, feeds=tuple(sorted(feeds, key=lambda one: one.order)))

    def other(root: BundleRoot) -> bytes:
        return next(feed.feed for feed in root.feeds if feed.control and feed.feed != root.genesis)

    def no_content(root: BundleRoot, blobs: MemoryBlobs) -> BundleRoot:
        node = blobs.put(b"\x84\x01\x02\x03\x04", DAG_CBOR)
        return replace(root, files=(blobs.put(encode_list([node]), DAG_CBOR),))

    def twice_in_a_list(root: BundleRoot, blobs: MemoryBlobs) -> BundleRoot:
        (cid,) = decode_list(blobs.get(root.files[0]))
        return replace(root, files=(blobs.put(encode_list([cid, cid]), DAG_CBOR),))

    nobody = {"feed": b"\xff" * 32, "first": 0, "length": 0, "lists": ()}
    changes: list[tuple[str, Callable[[BundleRoot, MemoryBlobs], BundleRoot]]] = [
        ("is not the blocks from 0 on", lambda root, _: replace(root, party=b"p" * 32)),
        ("where no epoch was cut", lambda root, _: replace(root, snapshot=None)),
        ("not that of the last final epoch", lambda root, _: replace(root, snapshot=Cid.of(b"", DAG_CBOR))),
        ("are announced", lambda root, _: changed(root, length=10_000)),
        ("where no epoch was cut", lambda root, _: changed(root, first=1)),
        ("does not begin party", lambda root, _: replace(root, genesis=other(root))),
        ("was never admitted", lambda root, _: changed(root, **nobody)),
        ("content", no_content),
        ("is named twice", twice_in_a_list),
    ]
    with CarFile.open(good) as file:
        right = BundleRoot.decode(file.get(file.roots[0]))
    with pytest.raises(InvalidInput, match="a list of files stands in it twice"):
        replace(right, files=right.files * 2)
    for match, change in changes:
        rewrite(good, path, change)
        check_refused(path, zoe, AntiphonError, match)


def test_a_span_that_is_not_signed_is_refused(good: Path, peers: Peers, tmp_path: Path) -> None:
    zoe = newcomer(peers)

    def forge(root: BundleRoot, blobs: MemoryBlobs) -> BundleRoot:
        at = next(at for at, feed in enumerate(root.feeds) if not feed.control and feed.lists)
        [first] = root.feeds[at].lists
        span = next(cid for cid in blobs if cid.codec == RAW and blobs.get(cid)[37:69] == root.feeds[at].feed)
        forged = bytearray(blobs.get(span))
        forged[-1] ^= 1
        changed = list(root.feeds)
        changed[at] = replace(changed[at], lists=(blobs.put(encode_list([blobs.put(bytes(forged))]), DAG_CBOR),))
        assert first
        return replace(root, feeds=tuple(changed))

    rewrite(good, tmp_path / "forged.car", forge)
    check_refused(tmp_path / "forged.car", zoe, AntiphonError, "the body of block|not signed")


def test_as_many_attestations_as_policy_wants(peers: Peers, tmp_path: Path) -> None:
    alice, bob = peers.add("alice"), peers.add("bob", Role.OWNER)
    zoe = newcomer(peers)
    assert alice.member is not None
    devices = sorted(bytes(peer.device.key) for peer in (alice, bob))
    alice.member.set_policy(Policy(attesters=tuple(devices), attestations_min=2, generator=bytes(alice.device.key)))
    write(alice)
    peers.sync()
    alice.epochs.declare()
    peers.settle()
    assert alice.epochs.number == 1
    export(alice, tmp_path / "party.car")
    take(tmp_path / "party.car", zoe)
    assert zoe.epochs.number == 1


def test_too_few_attestations_are_refused(peers: Peers, tmp_path: Path) -> None:
    alice = peers.add("alice")
    assert alice.member is not None
    alice.member.set_policy(Policy(attesters=(bytes(alice.device.key),), attestations_min=2))
    write(alice)
    alice.epochs.declare()
    assert alice.epochs.number == 1
    export(alice, tmp_path / "party.car")
    check_refused(tmp_path / "party.car", newcomer(peers), NotAuthorised, "has 1 attestations, and policy wants 2")


def test_a_root_that_contradicts_its_genesis_is_refused(
    peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alice decides alone, and her program puts a false time into roots; she stands on them herself."""
    alice = peers.add("alice")
    write(alice)
    compute = alice.epochs._compute

    def wrong(*plan: Any) -> EpochSnapshot:
        made = compute(*plan)
        root = replace(made.root, created_ms=5)
        return replace(made, root=root, cid=alice.blobs.put(root.encode(), DAG_CBOR))

    monkeypatch.setattr(alice.epochs, "_compute", wrong)
    alice.epochs.declare()
    assert alice.epochs.number == 1
    export(alice, tmp_path / "party.car")
    check_refused(tmp_path / "party.car", newcomer(peers), BadEncoding, "the genesis of epoch 1: created_ms")
