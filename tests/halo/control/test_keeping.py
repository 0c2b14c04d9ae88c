"""Law: a machine that sets barren acts aside, or begins with what another has kept, gives every answer as one without.

Histories are hostile: acts without right, beyond budgets, in batches, with chosen entries, forks, and epochs between.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.attacks.work import GROWTH_MAX, calls
from tests.budget import budget
from tests.halo.test_convergence import GROUPS, Crowd, Script, Step, shuffled
from tests.halo.test_forked_convergence import Forked

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.keys import KeyPair
from antiphon.feed.block import Block
from antiphon.feed.feed_record import FeedRecord
from antiphon.feed.span import Span
from antiphon.halo.acts.barren_acts import BarrenActs, BarrenKind, Row
from antiphon.halo.control.control_lane import Recallable
from antiphon.halo.control.kept_codec import decode_kept, encode_kept
from antiphon.halo.control.kept_file import KeptFile
from antiphon.halo.control.kept_lane import KeptAdmissions, KeptLane, is_plain
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochGenesis, FeedKind, MemberAdmission, Policy, Role
from antiphon.testing.parties import Actor, pair_of

LIMITS = ("DEVICE_FEEDS_MAX", "IDENTITY_DEVICES_MAX", "GIVEN_MAX", "EDITOR_ADMISSIONS_MAX")
Feeds = Mapping[bytes, Sequence[Block]]


class Hostile(Crowd):
    """The same with much that is void: without right, beyond budgets, unreadable; and the founder declares epochs."""

    def play(self, step: Step) -> None:
        actor = self.actors[(3, 3, step.actor)[step.actor % 3] % len(self.actors)]  # often an editor
        kind = step.action % 12
        if kind == 0:
            self.actors[0].hear(*self.actors)
            _declare(self.actors[0])
        elif kind < 7 and actor.written:
            if step.number % 3:
                actor.hear(*self.actors)
            for number in range(1 + step.other % 5):
                self._abuse(actor, kind, step.number + number)
        else:
            super().play(step)

    def _abuse(self, actor: Actor, kind: int, number: int) -> None:
        other = self.actors[number % len(self.actors)]
        if kind == 1:
            actor.write_batch([b"" if number % 2 else actor.word] * (1 + number % 3))
        elif kind == 2:
            cuts: dict[bytes, int] = {other.control.key: 1}
            tightens = bool(number % 2)
            actor.write(Policy(bool(number % 3), tightens=tightens, cuts=cuts if tightens else {}), size=number % 2)
        elif kind == 3:
            actor.admit(other, [Role.OWNER, Role.EDITOR][number % 2])
        elif kind == 4:
            actor.group(GROUPS[number % 2].key, other.identity.key, [GROUPS[number % 2]] if number % 3 else [])
        elif kind == 5:
            actor.open_data(data_feed(actor, number))
        else:  # the admission of another's data feed, repeated
            actor.write_signed(other.admission(FeedKind.DATA, data_feed(other, number))[1])


def data_feed(actor: Actor, number: int) -> KeyPair:
    return pair_of(f"data {number % 5} of {actor.device.key.hex()}")


def random_steps(chance: random.Random, most: int) -> list[Step]:
    return [Step(*(chance.randrange(1_000_000) for _ in range(4))) for _ in range(chance.randrange(5, most))]


def _declare(founder: Actor) -> None:
    machine = founder.machine
    chain, control = machine.epochs(), machine.timeframe()
    snapshot = bytes(Cid.of(bytes([chain.open.number % 256]), DAG_CBOR))
    previous = chain.last.snapshot if chain.last else b""
    hash_ = machine.control_hash(control)
    founder.write(EpochGenesis(0, chain.open.number, previous, {}, control, snapshot, 5, control_hash=hash_))


def keeping(script: Script, feeds: Feeds, kept: Iterable[KeptLane] = ()) -> PartyMachine:
    """Return a machine that lets barren acts go, and begins with what was kept."""
    machine = PartyMachine(script.rehearsal.party.key, script.rehearsal.genesis_feed)
    data = encode_kept(machine.party, kept)
    machine.keeping.offer(decode_kept(machine.party, data), lambda feed, start, stop: feeds[feed][start:stop])
    return machine


def feed_in(machine: PartyMachine, feeds: Feeds, order: Iterable[bytes], chance: random.Random | None) -> None:
    """Hand blocks in; at times let the machine set acts aside, or answer, so that nothing stale is remembered."""
    at = dict.fromkeys(feeds, 0)
    for feed in order:
        if not machine.length(feed):
            machine.resume(FeedRecord(feed, machine.party, length=len(feeds[feed])))
        machine.add(feeds[feed][max(at[feed], machine.length(feed)) : at[feed] + 1])
        at[feed] += 1
        if chance is not None and chance.random() < 0.3:
            machine.set_aside(1)
        if chance is not None and chance.random() < 0.1:
            machine.state()


def answers(script: Script, machine: PartyMachine) -> list[object]:
    """Return every kind of answer that a machine gives."""
    data = [data_feed(actor, number).key for actor in script.actors for number in range(5)]
    seen = dict(machine.timeframe())
    chain = machine.epochs()
    return [
        machine.state(),
        machine.act_count,
        sorted(machine.data_feeds()),
        sorted(machine.known_feeds.named),
        machine.timeframe(),
        sorted(machine.entries()),
        machine.waiting(),
        chain,
        [machine.judge_data(feed, 0, seen) for feed in data],
        [machine.author(feed, 0, seen) for feed in data],
        [machine.roles_of(actor.identity.key) for actor in script.actors],
        [machine.authority.was_granted(actor.identity.key) for actor in script.actors],
        [machine.at(epoch.control, epoch.control_hash).policy(machine.everything()) for epoch in chain.final],
    ]


def kept_of(machine: PartyMachine) -> list[KeptLane]:
    machine.set_aside(1)
    return machine.keeping.kept() or []


@pytest.mark.slow
@settings(max_examples=budget(60, 3000), deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_set_aside_or_kept_changes_no_answer(seed: int) -> None:
    with pytest.MonkeyPatch.context() as small:
        for name in LIMITS:
            small.setattr(f"antiphon.halo.rights.budgets.{name}", 2)
        small.setattr("antiphon.halo.control.keeping.FEW", 1)
        script = Hostile()
        chance = random.Random(seed)
        for step in random_steps(chance, 50):
            script.play(step)
        feeds = script.rehearsal.blocks()
        plain = script.rehearsal.machine(shuffled(script.rehearsal, chance))
        wanted = answers(script, plain)
        sweeping = keeping(script, feeds)
        feed_in(sweeping, feeds, shuffled(script.rehearsal, chance), chance)
        assert answers(script, sweeping) == wanted
        early = keeping(script, feeds)
        order = shuffled(script.rehearsal, chance)
        feed_in(early, feeds, order[: chance.randrange(len(order))], None)
        for kept in (kept_of(early), kept_of(sweeping)):
            resumed = keeping(script, feeds, kept)
            feed_in(resumed, feeds, shuffled(script.rehearsal, chance), chance)
            assert answers(script, resumed) == wanted


@pytest.mark.slow
@settings(max_examples=budget(20, 1000), deadline=None)
@given(st.integers(0, 2**32))
def test_forks_find_what_was_set_aside(seed: int) -> None:
    with pytest.MonkeyPatch.context() as small:
        small.setattr("antiphon.halo.control.keeping.FEW", 1)
        chance, script = random.Random(seed), Forked()
        for step in random_steps(chance, 15):
            script.play(step)
        for number in range(3):  # without entries, so that nothing was seen: void for ever
            script.one.write(Policy(keep_epochs=number), seen=[])
        script.part()
        for step in random_steps(chance, 15):
            script.apart(step)
        wanted = script.states(chance)
        kept: list[KeptLane] = []
        for _ in range(3):
            main, other = (script.one, script.two) if chance.random() < 0.5 else (script.two, script.one)
            feeds: dict[bytes, tuple[Block, ...]] = {
                actor.control.key: tuple(actor.written) for actor in script.actors if actor is not script.one
            }
            feeds[main.control.key] = tuple(main.written)
            machine = keeping(script, feeds, kept)
            order = [feed for feed, blocks in feeds.items() for _ in blocks]
            chance.shuffle(order)
            feed_in(machine, feeds, order, chance)
            shown: list[Span] = [span for span in other.raw if span.first >= script.fork]
            chance.shuffle(shown)
            for span in shown:
                machine.show(span)
                if chance.random() < 0.3:
                    machine.set_aside(1)
            assert machine.state() == wanted
            assert machine.waiting() == ()
            kept = kept_of(machine)


def test_barren_acts_are_let_go_and_live_ones_stay() -> None:
    script = Hostile()
    alice, dave = script.actors[0], script.actors[3]
    alice.hear(dave)
    for number in range(5):
        dave.admit(pair_of(f"nobody {number}").key, Role.OWNER)
        dave.write(Policy(keep_epochs=number))
    dave.open_data(pair_of("data"))
    feeds = script.rehearsal.blocks()
    machine = keeping(script, feeds)
    feed_in(machine, feeds, [feed for feed, blocks in feeds.items() for _ in blocks], None)
    before, count = machine.state(), machine.act_count
    machine.set_aside(1)
    assert machine.keeping.count == 10
    assert len(machine.acts()) == count - 10
    assert machine.act_count == count
    assert machine.state() == before
    assert machine.names(pair_of("nobody 3").key), "void grants name their subjects all the same"
    assert machine.keeping.kept() is None, "so few are not worth keeping"


def work_of_opening(count: int) -> int:
    """Return the work of opening a party with void grants, each of which has an entry, and so is a step of its own."""
    script = Hostile()
    alice, dave = script.actors[0], script.actors[3]
    alice.hear(dave)
    for number in range(count):
        alice.write(Policy(keep_epochs=number % 7))
        grant = MemberAdmission(pair_of(f"nobody {number}").key, frozenset({Role.OWNER}))
        dave.write(grant, seen=[alice.written[-1].entry])
    feeds = script.rehearsal.blocks()
    before = keeping(script, feeds)
    for blocks in feeds.values():
        before.add(blocks)
    resumed = keeping(script, feeds, kept_of(before))
    mine = dave.control.key
    for feed, blocks in feeds.items():
        if feed != mine:
            resumed.add(blocks)
    work = calls(lambda: resumed.resume(FeedRecord(mine, resumed.party, length=len(feeds[mine]))))
    assert resumed.keeping.count == count
    assert resumed.state() == before.state()
    return work


def test_an_opening_takes_work_in_proportion_to_what_was_kept() -> None:
    """Each step looked again at what all steps before it had named."""
    assert work_of_opening(400) <= GROWTH_MAX * work_of_opening(200)


# -- bytes

KEYS = st.binary(min_size=32, max_size=32)
ROWS = st.lists(st.tuples(st.sampled_from(BarrenKind), KEYS, KEYS), max_size=12)


def a_lane(feed: bytes, rows: Sequence[tuple[BarrenKind, bytes, bytes]], acts: Sequence[Block] = ()) -> KeptLane:
    table = BarrenActs.of(
        feed,
        (
            Row(at + 1, says, key, group if says is BarrenKind.GROUP else b"")
            for at, (says, key, group) in enumerate(rows)
        ),
    )
    heads = table.seqs[::3]
    steps = table.seqs[:0].copy()
    steps.resize(1)
    return KeptLane(feed, len(rows) + 1, bytes(32), table, KeptAdmissions.of([]), heads, steps)


@given(st.dictionaries(KEYS, ROWS, max_size=3), st.data())
def test_the_bytes_of_what_was_kept_are_checked(
    lanes: dict[bytes, list[tuple[BarrenKind, bytes, bytes]]], data: st.DataObject
) -> None:
    party = bytes(range(32))
    encoded = encode_kept(party, [a_lane(feed, rows) for feed, rows in lanes.items()])
    decoded = decode_kept(party, encoded)
    assert encode_kept(party, decoded.values()) == encoded
    for feed, rows in lanes.items():
        assert [(row.says, row.key) for row in decoded[feed].barren.rows()] == [(says, key) for says, key, _ in rows]
    at = data.draw(st.integers(0, len(encoded) - 1))
    broken = bytearray(encoded)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Exception, match="checksum"):
        decode_kept(party, bytes(broken))
    with pytest.raises(Exception, match="another party"):
        decode_kept(bytes(32), encoded)


def test_admissions_come_back_as_they_were_read() -> None:
    script = Script()
    bob = script.actors[1]
    for number in range(4):
        bob.open_data(pair_of(f"data {number}"))
    acts = [act for act in bob.machine.acts() if act.stamp.feed == bob.control.key and is_plain(act)]
    assert len(acts) == 4
    _, history = next(found for found in bob.machine.histories() if found[0] == bob.control.key)
    kept = KeptAdmissions.of(acts)
    [log] = {id(act.place.seen._log): act.place.seen._log for act in history}.values()  # type: ignore[attr-defined]
    for act, again in zip(acts, kept.between(bob.control.key, log, 0, len(history)), strict=True):
        assert (again.stamp, again.claim, again.signers, again.expires_ms) == (
            act.stamp,
            act.claim,
            act.signers,
            act.expires_ms,
        )
        assert (again.digest, again.hash, again.created_ms) == (act.digest, act.hash, act.created_ms)
        assert dict(again.place.seen) == dict(act.place.seen)


def test_a_file_that_cannot_be_written_or_read_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is derived, and the disk may be full: opening a party, and closing it, raised the error of the system."""
    file = KeptFile(tmp_path / "party.kept", bytes(32))
    (tmp_path / "party.kept.new").mkdir()
    file.save([])
    assert "party.kept cannot be written" in caplog.text
    assert file.load() == {}
    (tmp_path / "party.kept").mkdir()
    assert file.load() == {}
    assert "party.kept cannot be read" in caplog.text


def test_values_that_were_let_go_are_loaded_in_any_slice() -> None:
    values = Recallable(lambda start, stop: list(range(start, stop)))
    values.extend([0, None, 2, None, None, 5])
    every = list(range(6))
    for part in (slice(None), slice(1, 4), slice(None, None, 2), slice(4, 1, -1), slice(None, None, -1)):
        assert values[part] == every[part]
    assert [*values] == every
    assert values[-3] == 3
