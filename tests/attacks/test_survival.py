"""Every attack by every way that blocks come: afterwards a party does all that it could do before (see `survival`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import pytest
from tests.attacks.survival import HONEST, WAYS, Attack, Scene, survive
from tests.attacks.test_lamports import climb
from tests.attacks.test_reading import STRANGER, Probe
from tests.attacks.test_strangers import Stranger, feeds_of
from tests.attacks.test_unusable_items import SMALL, beside, drafts, size_of, spine
from tests.model.array.test_pieces import bulk, deep_path
from tests.party.epochs.epoch_acts import held, member, note, say
from tests.party.helpers import all_of
from tests.pipeline.archives import blocks, branches, ends

from antiphon.core.errors import BadSignature
from antiphon.core.ids import ItemId
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.feed.span import Span
from antiphon.feed.store import quarantine
from antiphon.halo.credentials.claims import (
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
    Position,
    Role,
)
from antiphon.halo.limits import DEVICE_FEEDS_MAX, EDITOR_ADMISSIONS_MAX
from antiphon.model.array import codec as array_codec
from antiphon.model.message import Genesis, write_genesis
from antiphon.model.object.mutation_codec import write_mutation
from antiphon.model.object.state import Op
from antiphon.pipeline.archive.export import export_archive
from antiphon.pipeline.archive.import_ import import_archive
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.parties import pair_of
from antiphon.testing.spans import SpanWriter

TEAM = pair_of("team")
PUPPET = pair_of("puppet").key
MANY = 40


def runaway_control(scene: Scene) -> Iterator[None]:
    """1: a forked control feed, and a data feed that claims to have seen far beyond the fork."""
    mallory = scene.mallory
    one, other = mallory.admits(mallory.control(1), "x"), mallory.admits(mallory.control(2), "y")
    yield from _run_away(scene, one, other)


def runaway_data(scene: Scene) -> Iterator[None]:
    """1: the same with a forked data feed."""
    yield from _run_away(scene, scene.mallory.pen(seed=1).write(1), scene.mallory.pen(seed=2).write(2))


def _run_away(scene: Scene, one: Span, other: Span) -> Iterator[None]:
    steps = climb(scene.mallory.pen(scene.mallory.second), one)
    scene.show(one, *steps, to=("alice",))
    scene.show(other, *steps, to=("bob",))
    yield
    yield
    for peer in scene.peers.all:
        assert all(record.lamport < 1_000 for record in peer.store.feeds(peer.party.key) if record.writable)


def runaway_stranger(scene: Scene) -> Iterator[None]:
    """1: an outsider does it, with a forked control feed and another one."""
    outsider = Stranger(scene.mallory.party, "an outsider")
    (forked, first), (second, opened) = outsider.control(1), outsider.control(2)
    branches = [[writer.write(1)] for writer in (forked.fork(1), forked.fork(2))]
    steps = climb(second, branches[0][0])
    for name, branch in zip(HONEST, branches, strict=True):
        scene.show(*first, *branch, *opened, *steps, to=(name,))
    yield
    yield
    for peer in scene.peers.all:
        assert all(record.lamport < 1_000 for record in peer.store.feeds(peer.party.key) if record.writable)
        assert {bytes(forked.pair.key), bytes(second.pair.key)}.isdisjoint(member(peer).machine.timeframe())


def branch_for_one(scene: Scene) -> Iterator[None]:
    """2: Bob is shown a branch with high lamports, and writes; the epoch takes the other."""
    mallory = scene.mallory
    much = mallory.pen(mallory.second).write(30)
    scene.show(much)
    scene.show(mallory.pen(seed=1).write(1), to=("alice",))
    scene.show(mallory.pen(seed=2).write(1, seen=[much.block(much.count - 1).entry]), to=("bob",))
    yield


def two_control_branches(scene: Scene) -> Iterator[None]:
    """2: the same with control feeds, in which Mallory says other things on each branch."""
    mallory = scene.mallory
    for seed, name in enumerate(("alice", "bob")):
        writer = mallory.control(seed + 1)
        policy = mallory.say(writer, Policy(editors_admit=bool(seed)), seen=member(mallory.peer).machine.entries())
        scene.show(policy, mallory.admits(writer, f"{name}'s guest"), to=(name,))
    yield


def many_data_feeds(scene: Scene) -> Iterator[None]:
    """3: many more data feeds than a device may have, and blocks in all of them."""
    mallory = scene.mallory.peer
    pairs = [pair_of(f"data {number}") for number in range(MANY)]
    for pair in pairs:
        mallory.admit_feed(pair)
    scene.give_all()
    entries = member(mallory).machine.entries()
    scene.show(*(SpanWriter(pair, scene.mallory.party).write(2, seen=entries) for pair in pairs))
    yield
    yield
    for peer in scene.peers.all:
        known = [member(peer).state.feed(pair.key) for pair in pairs]
        assert sum(feed is not None for feed in known) <= DEVICE_FEEDS_MAX


def strangers(scene: Scene) -> Iterator[None]:
    """3: control feeds of somebody whom nobody has admitted."""
    spans = feeds_of(Stranger(scene.mallory.party, "nobody known"), MANY)
    scene.show(*spans)
    yield
    yield
    for peer in scene.peers.all:
        assert {bytes(span.feed) for span in spans}.isdisjoint(member(peer).machine.timeframe())


def two_models(scene: Scene) -> Iterator[None]:
    """4: an item begins as a text on one branch and as an object on the other, with one nonce and one lamport."""
    scene.meet_first = True  # else Bob's item is lost: docs/security.md, known gaps, entries inside a cut
    mallory = scene.mallory
    entries = member(mallory.peer).machine.entries()
    lamport, items = 1 + max(entry.lamport for entry in entries), []
    for name, model in (("alice", "antiphon/text"), ("bob", "antiphon/object")):
        message = write_genesis(Genesis(b"n" * 16, model, 1))
        feed = bytes(mallory.second.key)
        items.append(bytes(ItemId.derive(lamport, party=mallory.party, feed=feed, genesis=message)))
        writer = mallory.pen(mallory.second, seed=len(items))
        scene.show(*writer.extend([Draft(Kind.GENESIS, items[-1], message)], seen=entries), to=(name,))
    yield
    scene.alice.party.item(items[0]).edit("insert", 0, "Alice wrote")
    scene.bob.party.item(items[1]).edit("set", "by", "Bob")
    yield
    for peer in scene.peers.all:
        assert [peer.party.item(item).value for item in items] == ["Alice wrote", {"by": "Bob"}]


def much_seen(scene: Scene) -> Iterator[None]:
    """5: two control feeds that tell each other of every block."""
    mallory = scene.mallory
    second = pair_of("mallory's second control feed")
    peer = mallory.peer
    word = member(peer).vouch(peer.identity)
    claim = FeedAdmission(second.key, FeedKind.CONTROL, peer.key, peer.device.key, word)
    one, other = mallory.control(), SpanWriter(second, mallory.party)
    last = mallory.say(other, claim, pairs=(second,), seen=member(peer).machine.entries())
    scene.show(last)
    for _ in range(MANY):
        for writer in (one, other):
            last = mallory.say(writer, Policy(), seen=[last.block(0).entry])
            scene.show(last)
    yield


def much_seen_by_data(scene: Scene) -> Iterator[None]:
    """5: the same with two data feeds, which tell each other and name all control feeds."""
    mallory = scene.mallory
    writers, seen = [mallory.pen(), mallory.pen(mallory.second)], [*member(mallory.peer).machine.entries()]
    for number in range(2 * MANY):
        span = writers[number % 2].write(1, seen=seen)
        seen = [span.block(0).entry]
        scene.show(span)
    yield


def void_grants(scene: Scene) -> Iterator[None]:
    """6 and 12: far more grants than an editor may give: those beyond its budget are void."""
    mallory, alice = scene.mallory, scene.alice
    member(alice).set_policy(Policy(editors_admit=True))
    scene.peers.sync()
    writer, entries = mallory.control(), [*member(alice).machine.entries()]
    keys = [bytes(pair_of(f"puppet {number}").key) for number in range(EDITOR_ADMISSIONS_MAX + MANY)]
    for number, key in enumerate(keys):
        claim = MemberAdmission(key, frozenset({Role.READER}))
        scene.show(mallory.say(writer, claim, seen=() if number else entries))
    yield
    for peer in scene.honest:
        admitted = [key for key in keys if member(peer).machine.roles_of(key)]
        assert admitted == keys[:EDITOR_ADMISSIONS_MAX]
    yield


def narrowed_groups(scene: Scene) -> Iterator[None]:
    """6: grants of the founder into one's own group, narrowed as many times."""
    mallory, alice = scene.mallory, scene.alice
    member(alice).admit(TEAM.key, [Role.EDITOR], is_group=True)
    scene.peers.sync()
    writer, control = mallory.control(), member(alice).control
    assert control is not None
    entries = [*member(alice).machine.entries()]
    for number in range(MANY):
        scene.show(
            mallory.say(writer, GroupAdmission(TEAM.key, alice.key), pairs=(TEAM,), seen=() if number else entries)
        )
    for number in range(MANY):
        claim = Narrowing(bytes(alice.key), frozenset(), {bytes(control.feed): 2 * MANY - number}, group=TEAM.key)
        scene.show(mallory.say(writer, claim, pairs=(TEAM,)))
    yield
    yield
    assert Role.OWNER in member(scene.bob).machine.roles_of(alice.key)


def void_policies(scene: Scene) -> Iterator[None]:
    """7: void policies shall push the real one out of what a tighter one replaces."""
    mallory, alice = scene.mallory, scene.alice
    member(alice).set_policy(Policy(editors_admit=True))
    scene.peers.sync()
    writer = mallory.control()
    entries = [*member(alice).machine.entries()]
    for number in range(MANY):
        scene.show(mallory.say(writer, Policy(editors_admit=True), seen=() if number else entries))
    yield
    member(alice).set_policy(Policy(editors_admit=False))
    late = mallory.say(writer, MemberAdmission(PUPPET, frozenset({Role.EDITOR})))
    for peer in scene.honest:
        peer.take([late])
    yield
    assert not any(member(peer).machine.roles_of(PUPPET) for peer in scene.peers.all)


def owner_takes_back(scene: Scene) -> Iterator[None]:
    """7: an owner who has narrowed an editor ends its own feed before that; another's narrowing still holds."""
    mallory, alice = scene.mallory, scene.alice
    member(alice).admit(mallory.peer.key, [Role.OWNER])
    scene.peers.sync()
    writer = mallory.control()
    kept = writer.record.length + 1
    admitted = mallory.say(
        writer, MemberAdmission(PUPPET, frozenset({Role.EDITOR})), seen=member(alice).machine.entries()
    )
    narrowed = mallory.say(writer, Narrowing(PUPPET, frozenset(), {}))
    for peer in scene.honest:
        peer.take([admitted, narrowed])
    member(alice).revoke(PUPPET)
    scene.peers.sync()
    peer = mallory.peer
    cuts = {bytes(writer.pair.key): kept}
    scene.show(mallory.say(writer, FeedEnd(bytes(peer.key), bytes(peer.device.key), cuts), pairs=(peer.identity.pair,)))
    yield
    yield
    assert not any(member(peer).machine.roles_of(PUPPET) for peer in scene.peers.all)


def scorched_earth(scene: Scene) -> Iterator[None]:
    """8: the creator of an item ends its own feeds before their first blocks."""
    peer = scene.mallory.peer
    item = _built_on(scene)
    say(peer, FeedEnd(bytes(peer.key), bytes(peer.device.key), {}))
    scene.give_all()
    yield
    yield
    assert all("Bob" in one.party.item(item).value for one in scene.peers.all)


def forked_genesis(scene: Scene) -> Iterator[None]:
    """8: the creator of an item signs another block 0."""
    item = _built_on(scene)
    writer = SpanWriter(scene.mallory.pen().pair, scene.mallory.party, seed=9)
    scene.show(writer.write(1))
    yield
    yield
    assert all("Bob" in one.party.item(item).value for one in scene.peers.all)


def _built_on(scene: Scene) -> bytes:
    """An array of Mallory's, into which Bob has written."""
    item = scene.mallory.peer.party.create("antiphon/array")
    for peer in scene.honest:
        peer.take(scene.mallory.peer.ranges(peer.lengths()))
    scene.bob.party.item(item.id).edit("append", "Bob")
    scene.peers.sync()
    return bytes(item.id)


def stolen_phone(scene: Scene) -> Iterator[None]:
    """9: a thief erases with Bob's phone what Bob wrote elsewhere."""
    bob = scene.bob
    item = note(bob, "Milk")
    phone = scene.peers.add("bob's phone", owner=bob)
    scene.peers.sync()
    scene.peers.all.remove(phone)
    places = sorted(Position(bytes(row.stamp.feed), row.stamp.seq) for row in phone.party.item(item.id).history())
    say(phone, Erasure(tuple(places)))
    scene.show(*phone.ranges(scene.alice.lengths()))
    phone.close()
    yield
    yield
    assert [peer.party.item(item.id).value["title"] for peer in scene.peers.all] == ["Milk"] * 3


def siblings(scene: Scene) -> Iterator[None]:
    """10: many writes of one key, none of which replaces another."""
    item = note(scene.alice, "Milk")
    writer = scene.mallory.pen()
    mutations = (write_mutation([Op(("title",), number)], bytes(writer.pair.key)) for number in range(10 * MANY))
    scene.show(*writer.extend(drafts(item.id, mutations), seen=all_of(scene.alice)))
    yield
    assert size_of(scene.alice, scene.alice.party.item(item.id).edit("set", "title", "Bread")) < SMALL
    yield
    assert [peer.party.item(item.id).value for peer in scene.peers.all] == [{"title": "Bread"}] * 3


def long_keys(scene: Scene) -> Iterator[None]:
    """10: an array with long position keys, and many writes of one element."""
    item = scene.alice.party.create("antiphon/array")
    item.edit("append", "Milk")
    element = item.read(lambda model, state: model.ids(state)[0])
    changes = [array_codec.Draft(b"") for _ in range(10 * MANY)]
    for number, change in enumerate(changes):
        change.set(element, number, [])
    mutations = [*chain.from_iterable(change.encode() for change in changes), bulk(deep_path(), 1024)]
    entries = all_of(scene.alice)
    scene.show(*scene.mallory.pen().extend(drafts(item.id, mutations), seen=entries))
    yield
    item = scene.alice.party.item(item.id)
    assert len(item.value) == 1 + 1024
    assert size_of(scene.alice, item.edit("set", item.value.index(10 * MANY - 1), "Bread")) < 4 * SMALL
    yield
    assert all(peer.party.item(item.id).value.count("Bread") == 1 for peer in scene.peers.all)


def text_spine(scene: Scene) -> Iterator[None]:
    """10: a text whose characters each hang to the left of the one before, and others beside all of them."""
    mallory = scene.mallory
    item = scene.alice.party.create("antiphon/text")
    item.edit("insert", 0, "Milk")
    entries = all_of(scene.alice)
    writers = sorted((mallory.pen(), mallory.pen(mallory.second)), key=lambda writer: writer.pair.key, reverse=True)
    lamport = 1 + max(entry.lamport for entry in entries)
    (long,) = writers[0].extend(drafts(item.id, [spine(lamport, 10 * MANY)]), seen=entries)
    assert long.block(0).lamport == lamport
    mutations = [beside(bytes(writers[0].pair.key), lamport, 10 * MANY)] * 2
    scene.show(
        long,
        *writers[1].extend(
            drafts(item.id, mutations),
            seen=[*(entry for entry in entries if entry.feed != writers[1].pair.key), long.block(0).entry],
        ),
    )
    yield
    item = scene.alice.party.item(item.id)
    assert len(item.value) == 4 + 30 * MANY
    assert size_of(scene.alice, item.edit("delete", 0, len(item.value))) < SMALL
    yield
    assert {peer.party.item(item.id).value for peer in scene.peers.all} == {""}


def reading(scene: Scene) -> Iterator[None]:
    """11: somebody who is not admitted says all that there is to say."""
    for peer in scene.honest:
        assert not any(message.body for message in Probe(peer, STRANGER).everything())
    yield


def identity_as_group(scene: Scene) -> Iterator[None]:
    """12: an editor calls its own identity a group, and takes others into it."""
    mallory = scene.mallory
    member(scene.alice).set_policy(Policy(editors_admit=False))
    scene.peers.sync()
    writer, me = mallory.control(), mallory.peer.identity.pair
    entries = member(scene.alice).machine.entries()
    scene.show(mallory.say(writer, GroupAdmission(bytes(me.key), PUPPET), pairs=(me,), seen=entries))
    yield
    yield
    assert not any(member(peer).machine.roles_of(PUPPET) for peer in scene.peers.all)


def flooded_quarantine(scene: Scene) -> Iterator[None]:
    """12: more forks than the quarantine lists, each of another feed; what peers handed in stays listed."""
    peer, party = scene.mallory.peer, scene.mallory.party
    sources = [bytes(pair_of(f"{name}'s device").key) for name in ("dora", "emil", "fred")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quarantine, "QUARANTINE_ENTRIES_MAX", MANY // 2)
        for source, honest in product(sources, scene.honest):
            damaged = replace(SpanWriter(pair_of("damaged on the way"), party).write(), signature=source + source)
            with pytest.raises(BadSignature):
                honest.store.ingest_bytes(replace(damaged, first=sources.index(source)).encode(), source=source)
        word, entries = member(peer).vouch(peer.identity), member(peer).machine.entries()
        for number in range(MANY):
            pair = pair_of(f"control feed {number}")
            claim = FeedAdmission(pair.key, FeedKind.CONTROL, peer.key, peer.device.key, word)
            writer = SpanWriter(pair, party)
            scene.show(scene.mallory.say(writer, claim, pairs=(pair,), seen=entries))
            for seed, name in enumerate(HONEST, 1):
                scene.show(scene.mallory.say(writer.fork(seed), Policy(), seen=()), to=(name,))
        yield
        yield
        for one in scene.honest:
            listed = one.store.quarantine()
            assert listed.dropped >= MANY // 2
            assert {refusal.source for refusal in listed.refusals} >= set(sources)


ATTACKS: list[Attack] = [
    runaway_control,
    runaway_data,
    runaway_stranger,
    branch_for_one,
    two_control_branches,
    many_data_feeds,
    strangers,
    two_models,
    much_seen,
    much_seen_by_data,
    void_grants,
    narrowed_groups,
    void_policies,
    owner_takes_back,
    scorched_earth,
    forked_genesis,
    stolen_phone,
    siblings,
    long_keys,
    text_spine,
    reading,
    identity_as_group,
    flooded_quarantine,
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_party_survives(tmp_path: Path, attack: Attack, way: str) -> None:
    scene = Scene(tmp_path)
    try:
        survive(scene, attack, WAYS[way])
        assert attack.__doc__
    finally:
        scene.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", [runaway_control, two_models], ids=lambda attack: attack.__name__)
def test_an_archive_of_an_attacked_home_is_whole(tmp_path: Path, attack: Attack) -> None:
    """What the pipeline archives comes back with all branches, and where each feed ends."""
    scene = Scene(tmp_path)
    try:
        survive(scene, attack, WAYS["session"])
    finally:
        scene.close()
    home, back = scene.alice.folder, tmp_path / "back"
    with BlobStore.open(home / "blobs") as blobs:
        blobs.put_all((cid, scene.alice.blobs.get(cid)) for cid in held(scene.alice))
    assert not export_archive(None, home, tmp_path / "archive").faults
    import_archive(tmp_path / "archive", back)
    assert any(branches(home).values())
    for looked in (blocks, ends, branches):
        assert looked(back) == looked(home)
