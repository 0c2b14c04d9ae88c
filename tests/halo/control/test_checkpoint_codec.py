"""The bytes and the file of checkpoints, and values of a history that are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.halo.test_convergence import GROUPS, ROLES, Script

from antiphon.core.sightings import Sightings
from antiphon.feed.block import Block
from antiphon.feed.header import Entry
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.act_columns import NARROWING, ActColumns, fits_columns
from antiphon.halo.acts.barren_acts import SIGNED, BarrenActs, BarrenKind, Row
from antiphon.halo.control.branch_checkpoint import BranchCheckpoint, SettledSpan
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.checkpoint_file import CheckpointFile
from antiphon.halo.control.control_lane import Recallable
from antiphon.halo.control.lane_checkpoint import LaneCheckpoint
from antiphon.halo.credentials.claims import Erasure, FeedEnd, Narrowing, Position
from antiphon.testing.parties import pair_of

NAMES = ("stamp", "claim", "signers", "expires_ms", "created_ms", "problem", "digest", "hash", "continued")
KEYS = st.binary(min_size=32, max_size=32)
ROWS = st.lists(st.tuples(st.sampled_from(BarrenKind), KEYS, KEYS), max_size=12)


def a_lane(feed: bytes, rows: Sequence[tuple[BarrenKind, bytes, bytes]], acts: Sequence[Block] = ()) -> LaneCheckpoint:
    table = BarrenActs.of(
        feed,
        (Row(at + 1, says, key, further(says, key, group)) for at, (says, key, group) in enumerate(rows)),
    )
    seen = Sightings((seq, {bytes(range(1, 33)): 2 * seq}) for seq in table.seqs[::3].tolist())
    return LaneCheckpoint(feed, len(rows) + 1, bytes(32), table, ActColumns.of([]), seen, None, some_branches(rows))


def further(says: BarrenKind, key: bytes, group: bytes) -> bytes:
    return group if says is BarrenKind.GROUP else group * key[8] if says in SIGNED else b""


def some_branches(rows: Sequence[tuple[BarrenKind, bytes, bytes]]) -> BranchCheckpoint | None:
    """A span for each row, of one or two blocks; some are shown, some wait, and some are read again."""
    spans = [
        SettledSpan(key, at, at, (group, key), (at, at + 1), 1, Entry(key, at, at, group), before=group)
        if says is BarrenKind.GROUP
        else SettledSpan(key, at, at, (key,), (at,), 1, before=group)
        if says is BarrenKind.MEMBER
        else SettledSpan(key, at, 0)
        for at, (says, key, group) in enumerate(rows)
    ]
    keys = {key: group for _, key, group in rows}
    count = sum(len(span.hashes) for span in spans)
    votes = [Row(at, says, key, further(says, key, group)) for at, (says, key, group) in enumerate(rows[:count])]
    table = BarrenActs.of(b"", votes)
    return BranchCheckpoint.of(1, 2, bytes(32), spans, set(keys), keys, table) if len(rows) % 2 else None


@given(st.dictionaries(KEYS, ROWS, max_size=3), st.data())
def test_the_bytes_of_what_was_kept_are_checked(
    lanes: dict[bytes, list[tuple[BarrenKind, bytes, bytes]]], data: st.DataObject
) -> None:
    party = bytes(range(32))
    encoded = encode_checkpoints(party, [a_lane(feed, rows) for feed, rows in lanes.items()])
    decoded = decode_checkpoints(party, encoded)
    assert encode_checkpoints(party, decoded.values()) == encoded
    for feed, rows in lanes.items():
        found = [(row.says, row.key, row.more) for row in decoded[feed].barren.rows()]
        assert found == [(says, key, further(says, key, group)) for says, key, group in rows]
        wanted, branches = some_branches(rows), decoded[feed].branches
        assert (branches is None) == (wanted is None)
        if wanted is not None and branches is not None:
            assert list(branches.spans()) == list(wanted.spans())
            assert (branches.admitted(), set(branches.named())) == (wanted.admitted(), set(wanted.named()))
            assert (branches.acts, len(branches)) == (wanted.acts, len(wanted))
            assert list(branches.votes.rows()) == list(wanted.votes.rows())
    at = data.draw(st.integers(0, len(encoded) - 1))
    broken = bytearray(encoded)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Exception, match="checksum"):
        decode_checkpoints(party, bytes(broken))
    with pytest.raises(Exception, match="another party"):
        decode_checkpoints(bytes(32), encoded)


def test_acts_come_back_as_they_were_read() -> None:
    script = Script()
    bob, carol = script.actors[1:3]
    group, data = GROUPS[0], pair_of("data").key
    for number in range(4):
        bob.open_data(pair_of(f"data {number}"))
        bob.admit(carol, *ROLES[number], expires_ms=number and script.rehearsal.now_ms + number, is_group=number > 2)
        bob.group(group.key, carol.identity.key, [group] if number % 2 else [])
        cuts: dict[bytes, int] = {carol.control.key: number, data: 2 * number, pair_of(f"data {number}").key: 1}
        signers = [pair for pair in (group, carol.identity) if number % 3]
        named = group.key if number % 2 else b""
        bob.write(Narrowing(carol.identity.key, frozenset(ROLES[number]), cuts, number > 1, named), signers)
        bob.write(FeedEnd(bob.identity.key, bob.device.key, {data: number} if number else {}), [bob.identity])
        bob.write(Erasure((Position(data, number), Position(data, number + 5))), [bob.identity] if number % 2 else [])
    acts = [act for act in bob.machine.acts() if act.stamp.feed == bob.control.key and fits_columns(act)]
    assert len(acts) == 6 * 4
    _, history = next(found for found in bob.machine.histories() if found[0] == bob.control.key)
    [log] = {id(act.place.seen._log): act.place.seen._log for act in history}.values()  # type: ignore[attr-defined]
    lane = LaneCheckpoint(bob.control.key, len(history), bytes(32), BarrenActs.of(b"", ()), ActColumns.of(acts), log)
    [saved] = decode_checkpoints(bytes(32), encode_checkpoints(bytes(32), [lane])).values()
    last = acts[-5].stamp.seq
    joined = [ActColumns.of(acts[9:], ActColumns.of(acts[:9])), ActColumns.of(acts[1::2], ActColumns.of(acts[::2]))]
    for columns in (saved.acts, *joined, saved.acts.before(last)):
        again = list(columns.between(bob.control.key, log, 0, len(history)))
        assert [told(act) for act in again] == [told(act) for act in acts[: len(again)]]
        assert len(again) in (len(acts), len(acts) - 5)
    for act in acts:
        if isinstance(act.claim, Narrowing):
            rows = saved.acts.about(act.claim.subject, NARROWING)
            found = dict(zip(saved.acts.seqs[rows], saved.acts.cuts(rows, data), strict=True))
            assert found[act.stamp.seq] == act.claim.cuts[data]


def told(act: Act) -> list[object]:
    """Return all that an act says."""
    return [*(getattr(act, name) for name in NAMES), dict(act.place.seen), act.place.seq]


def test_a_file_that_cannot_be_written_or_read_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is derived, and the disk may be full: opening a party, and closing it, raised the error of the system."""
    file = CheckpointFile(tmp_path / "party.checkpoint", bytes(32))
    (tmp_path / "party.checkpoint.new").mkdir()
    file.save([])
    assert "party.checkpoint cannot be written" in caplog.text
    assert file.load() == {}
    (tmp_path / "party.checkpoint").mkdir()
    assert file.load() == {}
    assert "party.checkpoint cannot be read" in caplog.text


def test_values_that_were_let_go_are_loaded_in_any_slice() -> None:
    values = Recallable(lambda start, stop: list(range(start, stop)))
    values.extend([0, None, 2, None, None, 5])
    every = list(range(6))
    for part in (slice(None), slice(1, 4), slice(None, None, 2), slice(4, 1, -1), slice(None, None, -1)):
        assert values[part] == every[part]
    assert [*values] == every
    assert values[-3] == 3
