"""Counterexamples that led to rules of the design, played step by step by whole peers, without randomness."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.core.errors import NotAuthorised
from antiphon.halo.credentials.claims import EpochGenesis, FeedKind, MemberAdmission, Position, Role
from antiphon.halo.limits import DEVICE_FEEDS_MAX
from antiphon.model.factory import ModelFactory
from antiphon.party.live.item import Item
from antiphon.sim import laws
from antiphon.sim.byzantine import blocks, credentials
from antiphon.sim.byzantine.attacker import Attacker, as_draft
from antiphon.sim.byzantine.worst_member import second_feed
from antiphon.sim.peer import SimPeer
from antiphon.sim.run import Stage
from antiphon.sim.scenario import Cast, Rules, Scenario
from antiphon.sim.trace import Kind
from antiphon.sim.workload import MODELS, Workload

pytestmark = pytest.mark.slow

Begin = Callable[..., "Play"]


class Play:
    """A stage on which acts are played by hand."""

    def __init__(self, folder: Path, *names: str, epoch_messages: int = 0, **cast: object) -> None:
        options = {"attesters": names[:1], **cast}
        scenario = Scenario(0, Cast(names, **options), Rules(epoch_messages=epoch_messages))  # type: ignore[arg-type]
        self.stage = Stage(scenario, folder, ModelFactory.standard())
        self.stage._set_up()

    def __getitem__(self, name: str) -> SimPeer:
        return self.stage.peers[name]

    def pass_time(self, seconds: float = 2) -> None:
        for peer in self.stage.peers.values():
            peer.poke()
        self.stage.world.run(self.stage.world.now_ms + int(seconds * 1_000))

    def part(self, *groups: str) -> None:
        self.stage.network.part(group.split() for group in groups)

    def end(self) -> None:
        """All faults end, and every law holds."""
        assert self.stage._calm_down()
        broken = [f"{law}: {text}" for law, check in laws.LAWS.items() for text in check(self.stage)]
        assert not broken, broken[0]

    def liar(self, name: str) -> Attacker:
        peer = self[name]
        others = [other for other in self.stage.peers.values() if other is not peer]
        return Attacker(peer, others, random.Random(1), lambda: self.stage.attacks.token(peer))

    def shown(self, item: bytes) -> list[object]:
        """What each honest peer shows of an item."""
        return [peer.party.item(item).value for peer in self.stage.honest()]

    def epochs(self) -> int:
        return min(peer.epochs.number for peer in self.stage.honest())


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    plays: list[Play] = []

    def start(*names: str, **options: object) -> Play:
        plays.append(Play(tmp_path, *names, **options))  # type: ignore[arg-type]
        return plays[-1]

    yield start
    for play in plays:
        play.stage.close()


def note(peer: SimPeer, model: str = "antiphon/object") -> Item:
    return peer.party.create(model)


def see(peer: SimPeer, item: Item) -> Item:
    return peer.party.item(item.id)


def change(peer: SimPeer, item: Item) -> None:
    see(peer, item).edit("set", "n", peer.world.now_ms)


def test_rule_1_who_has_seen_an_equivocators_other_branch_is_not_blamed(begin: Begin) -> None:
    play = begin("alice", "bob", "carol", "mallory", liars=frozenset({"mallory"}))
    item, other = note(play["mallory"]), note(play["alice"])
    play.pass_time()
    liar = play.liar("mallory")
    paper = liar.writer_at(liar.data_feed())
    play.part("bob mallory", "alice carol")
    for number in range(50):
        item.edit("set", "n", number)
    play.pass_time()
    see(play["bob"], other).edit("set", "by", "bob, who has seen the long branch")
    play["mallory"].crash()  # for good: nobody hears more of her than this
    for name in ("alice", "carol"):
        for span in paper.extend([liar.setting(item.id, "the short branch")]):
            play[name].replica.take_ranges([span])
    play.stage.network.heal()
    play.end()
    assert play.shown(other.id) == [{"by": "bob, who has seen the long branch"}] * 3
    assert all(peer.store.forks() or peer.member.machine.fork_ends for peer in play.stage.honest())


def test_rule_1_a_data_feed_that_only_one_branch_admits_keeps_nobody_waiting(begin: Begin) -> None:
    """Bob, who holds the other branch, waited for ever for the feed, and with it for all that Alice wrote since."""
    play = begin("alice", "bob", "carol", "mallory", liars=frozenset({"mallory"}))
    item = note(play["alice"])
    play.pass_time()
    control = play["mallory"].member.control
    assert control is not None
    liar = play.liar("mallory")
    paper = liar.writer_at(bytes(control.feed))
    play.part("alice mallory", "bob carol")
    note(play["mallory"])  # opens a data feed, in a block that Bob and Carol never see
    play.pass_time()
    change(play["alice"], item)
    stranger = MemberAdmission(bytes(liar.key().key), frozenset({Role.EDITOR}))
    for name in ("bob", "carol"):
        play[name].replica.take_ranges(list(paper.extend([as_draft(liar.signed(stranger))])))
        paper = liar.writer_at(bytes(control.feed))
    play["mallory"].crash()
    play.stage.network.heal()
    play.end()
    assert all(play.shown(item.id))


def test_rule_2_a_joiner_judges_like_a_veteran(begin: Begin) -> None:
    names = ("alice", "bob", "carol")
    play = begin(*names, epoch_messages=10, late=frozenset({"carol"}), pruners=frozenset({"alice"}))
    play.stage.network.sleep("carol")
    item = note(play["alice"])
    play.pass_time()
    play.part("alice carol", "bob")
    see(play["bob"], item).edit("set", "by", "bob, long ago")
    for number in range(12):
        item.edit("set", "n", number)
    play.pass_time(4)
    play.stage.network.wake("carol")
    play.stage._admit(play["carol"])
    play.pass_time(4)
    feed = play["alice"].member.open_data_feed().feed
    records = {record.feed: record for record in play["carol"].store.feeds(play["carol"].key)}
    assert feed not in records or records[feed].start == records[feed].length, "all is in the epoch"
    play.end()
    assert play.epochs() >= 1
    assert play.shown(item.id) == [{"by": "bob, long ago", "n": 11}] * 3


def test_rule_3_a_batch_stays_together_and_a_bad_body_voids_itself_alone(begin: Begin) -> None:
    play = begin("alice", "bob", "mallory", liars=frozenset({"mallory"}))
    log, item = note(play["alice"], "antiphon/messenger"), note(play["alice"])
    play.pass_time()
    play.part("alice", "bob mallory")
    for number in range(4):
        see(play["bob"], log).edit("post", f"bob {number}")
    with play["alice"].party.batch():
        for number in range(4):
            log.edit("post", f"alice {number}")
    liar = play.liar("mallory")
    good = liar.setting(item.id, "good")
    liar.write(good._replace(message=b"\xff"), good, good._replace(message=b""))
    play.end()
    for peer in play.stage.honest():
        said = [row["body"] for row in see(peer, log).value]
        start = said.index("alice 0")
        assert said[start : start + 4] == [f"alice {number}" for number in range(4)]
        assert see(peer, item).value == {"forged": "good"}
        assert len(peer.party.refused()) == 2


def test_rule_5_an_id_cannot_be_taken(begin: Begin) -> None:
    play = begin("alice", "bob", "mallory", liars=frozenset({"mallory"}))
    item = note(play["alice"])
    item.edit("set", "by", "alice")
    play.pass_time()
    blocks.stolen_ids(play.liar("mallory"))
    play.end()
    assert play.shown(item.id) == [{"by": "alice"}] * 2
    assert len(play["bob"].party.refused()) == 6


def test_rule_6_no_crash_makes_an_honest_writer_look_like_an_equivocator(begin: Begin) -> None:
    play = begin("alice", "bob", "carol")
    item = note(play["alice"])
    for crash_in in (1, 1, 2, 1, 1, 2):
        alice = play["alice"]
        alice.disk.crash_in = crash_in
        alice.guarded(lambda: change(play["alice"], item))
        play.pass_time(0.05)
        if not alice.up:
            alice.restart()
        play.pass_time()
    play.end()
    assert play.stage.world.trace.of(Kind.CRASH)
    assert all(peer.store.forks() == [] for peer in play.stage.honest())


def test_rule_7_no_back_dated_coup(begin: Begin) -> None:
    play = begin("alice", "bob", "mallory", liars=frozenset({"mallory"}))
    play.stage._revoke(play["mallory"])
    play.pass_time()
    for lie in (credentials.back_dated, credentials.coup, credentials.self_promotion, credentials.puppet):
        lie(play.liar("mallory"))
        play.pass_time()
    play.end()
    members = {bytes(member.subject) for member in play["bob"].member.state.members if member.roles}
    assert members == {bytes(play[name].identity.key) for name in ("alice", "bob")}


def test_rule_8_ended_feeds_never_come_back(begin: Begin) -> None:
    play = begin("alice", "bob", "carol")
    item = note(play["alice"])
    play.pass_time()
    play.part("alice bob", "carol")
    see(play["carol"], item).edit("set", "late", "past the cut")
    play.stage._revoke(play["carol"])
    play.stage.network.heal()
    play.pass_time()
    play.stage._admit(play["carol"])
    play.pass_time()
    see(play["carol"], item).edit("set", "again", "in a new feed")
    play.end()
    assert play.shown(item.id) == [{"again": "in a new feed"}] * 3


def test_rule_8_who_was_revoked_is_told_that_it_may_not_write(begin: Begin) -> None:
    """By every kind of edit, as an application would be. A model's own proposals went round the party's authority."""
    play = begin("alice", "bob", "carol")
    items = [note(play["alice"], model) for model in MODELS]
    play.pass_time()
    play.stage._revoke(play["carol"])
    play.pass_time()
    play["carol"].member.control = play["carol"].member.data = None  # as after a restart
    workload = Workload(items=[bytes(item.id) for item in items])
    for seed in range(40):
        workload.write(play["carol"], 1, seed)
    assert {type(error) for error in workload.refused} == {NotAuthorised}
    play.end()


def test_rule_9_an_epoch_and_a_revocation_that_cross_have_one_judge(begin: Begin) -> None:
    play = begin("alice", "bob", "carol", epoch_messages=10, attesters=("bob",))
    item = note(play["alice"])
    play.pass_time()
    play.part("alice", "bob carol")
    for number in range(12):
        see(play["carol"], item).edit("set", f"key {number % 2}", number)
    play.pass_time(4)
    assert play["bob"].epochs.number == 1
    play.stage._revoke(play["carol"])
    play.end()
    assert play.shown(item.id) == [{"key 0": 10, "key 1": 11}] * 2, "what a final epoch holds is final"


def test_rule_10_a_takeover_and_the_sleeper_agree(begin: Begin) -> None:
    names = ("alice", "bob", "carol")
    play = begin(*names, epoch_messages=10, attesters=names)
    generator = play["alice"].epochs.chain().open.config.generator
    first = next(name for name in names if bytes(play[name].device.key) == generator)
    writer = next(name for name in names if name != first)
    play.stage.network.sleep(first)
    item = note(play[writer])
    for number in range(12):
        item.edit("set", "n", number)
    play.pass_time(60)
    play.end()
    assert play.epochs() >= 1
    found = play["alice"].epochs.chain().final[0]
    assert found.term > 0


def test_rule_11_an_epoch_from_the_future_is_refused_and_another_made(begin: Begin) -> None:
    names = ("alice", "bob", "carol")
    play = begin(*names, epoch_messages=10, attesters=names)
    generator = play["alice"].epochs.chain().open.config.generator
    first = next(name for name in names if bytes(play[name].device.key) == generator)
    play[first].clock._skew_ms = 3_600_000
    item = note(play["alice"])
    for number in range(12):
        item.edit("set", "n", number)
    play.pass_time(60)
    play.end()
    acts = play["alice"].member.machine.acts()
    created = {act.claim.created_ms for act in acts if isinstance(act.claim, EpochGenesis)}
    final = play["alice"].epochs.chain().final[0].created_ms
    assert final < max(created) - 3_000_000


def test_rule_13_an_erased_message_is_void_everywhere(begin: Begin) -> None:
    play = begin("alice", "bob", "carol", late=frozenset({"carol"}))
    item = note(play["bob"])
    stamp = item.edit("set", "secret", "yes")
    item.edit("set", "rest", "stays")
    play.pass_time()
    play["alice"].member.erase(Position(bytes(stamp.feed), stamp.seq), identity=play["alice"].identity)
    play.stage._admit(play["carol"])
    play.end()
    assert play.shown(item.id) == [{"rest": "stays"}] * 3


def test_rule_15_what_others_wrote_into_a_voided_text_survives(begin: Begin) -> None:
    play = begin("alice", "bob", "mallory", liars=frozenset({"mallory"}))
    item = note(play["alice"], "antiphon/text")
    play.pass_time()
    play.part("alice", "bob mallory")
    see(play["mallory"], item).edit("insert", 0, "AAAA")
    play.pass_time()
    see(play["bob"], item).edit("insert", 2, "BB")
    play.stage._revoke(play["mallory"])
    play.end()
    assert [str(text) for text in play.shown(item.id)] == ["BB"] * 2


def test_rule_16_moves_that_would_close_a_circle_have_one_result(begin: Begin) -> None:
    play = begin("alice", "bob", "carol")
    one, two, three = (note(play["alice"]) for _ in range(3))
    play.pass_time()
    play.part("alice", "bob", "carol")
    one.move(two.id)
    see(play["bob"], two).move(one.id)
    see(play["bob"], two).move(three.id)
    see(play["carol"], three).move(one.id)
    play.end()
    trees = [peer.party.parents() for peer in play.stage.honest()]
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) == 2, "two of the three hang under others, so there is no circle"


def test_rule_2_who_was_shown_a_branch_that_the_epoch_does_not_take_goes_on(begin: Begin) -> None:
    """Bob has seen a lamport in Mallory's feed far above the one at the epoch's cut. Everybody ended his feed."""
    play = begin("alice", "bob", "carol", "mallory", epoch_messages=10, liars=frozenset({"mallory"}))
    item, other = note(play["mallory"]), note(play["alice"])
    play.pass_time()
    liar = play.liar("mallory")
    paper = liar.writer_at(liar.data_feed())
    play.part("bob mallory", "alice carol")
    for number in range(50):
        see(play["bob"], other).edit("set", "n", number)
    play.pass_time()
    item.edit("set", "n", "high above")
    play.pass_time()
    see(play["bob"], other).edit("set", "by", "bob, who has seen the high branch")
    play["mallory"].crash()  # for good
    low = list(paper.extend([liar.setting(item.id, "low")]))
    for name in ("alice", "carol"):
        play[name].replica.take_ranges(low)
    for number in range(12):
        see(play["alice"], other).edit("set", "a", number)
    play.pass_time(4)
    assert play["alice"].epochs.number == 1
    play.stage.network.heal()
    play.end()
    assert "bob, who has seen the high branch" in str(play.shown(other.id)[0])


@pytest.mark.parametrize("leaves", [True, False])
def test_members_are_linked_in_the_end_if_only_who_has_left_connects_them(begin: Begin, leaves: bool) -> None:
    """Nothing passes between Alice and Carol once Bob is revoked and Dora has ended her device (seed 6000414)."""
    play = begin("alice", "bob", "carol", "dora", liars=frozenset({"dora"}))
    alice, carol, dora = play["alice"], play["carol"], play["dora"]
    alice.neighbours.pop("carol", None)
    carol.neighbours.pop("alice", None)
    play.stage._revoke(play["bob"])
    play.pass_time()
    if leaves:
        dora.member.end_device(dora.device.key, dora.identity)
        play.pass_time()
    items = [note(alice), note(carol)]
    play.end()
    assert [play.shown(item.id)[:2] for item in items] == [[{}, {}], [{}, {}]]
    assert ("carol" in alice.neighbours) == leaves, "whom a member still connects need no link"


def test_a_liar_that_may_open_no_more_control_feeds_goes_on(begin: Begin) -> None:
    play = begin("alice", "bob", "mallory", liars=frozenset({"mallory"}))
    liar = play.liar("mallory")
    for _ in range(DEVICE_FEEDS_MAX):
        second_feed(liar, FeedKind.CONTROL)
    play.pass_time()
    play.stage._revoke(play["mallory"])
    play.pass_time()
    play.stage._admit(play["mallory"])
    play.pass_time()
    item = note(play["alice"])
    play.pass_time()
    assert play["mallory"].member.control is None
    assert item.id in play["mallory"].party.items()
    play.end()
