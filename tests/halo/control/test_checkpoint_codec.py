"""The bytes and the file of checkpoints, and values of a history that are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from tests.halo.test_convergence import Script

from antiphon.core.sightings import Sightings
from antiphon.feed.block import Block
from antiphon.halo.acts.barren_acts import BarrenActs, BarrenKind, Row
from antiphon.halo.control.checkpoint_codec import decode_checkpoints, encode_checkpoints
from antiphon.halo.control.checkpoint_file import CheckpointFile
from antiphon.halo.control.control_lane import Recallable
from antiphon.halo.control.lane_checkpoint import AdmissionColumns, LaneCheckpoint, is_plain
from antiphon.testing.parties import pair_of

KEYS = st.binary(min_size=32, max_size=32)
ROWS = st.lists(st.tuples(st.sampled_from(BarrenKind), KEYS, KEYS), max_size=12)


def a_lane(feed: bytes, rows: Sequence[tuple[BarrenKind, bytes, bytes]], acts: Sequence[Block] = ()) -> LaneCheckpoint:
    table = BarrenActs.of(
        feed,
        (
            Row(at + 1, says, key, group if says is BarrenKind.GROUP else b"")
            for at, (says, key, group) in enumerate(rows)
        ),
    )
    seen = Sightings((seq, {bytes(range(1, 33)): 2 * seq}) for seq in table.seqs[::3].tolist())
    return LaneCheckpoint(feed, len(rows) + 1, bytes(32), table, AdmissionColumns.of([]), seen)


@given(st.dictionaries(KEYS, ROWS, max_size=3), st.data())
def test_the_bytes_of_what_was_kept_are_checked(
    lanes: dict[bytes, list[tuple[BarrenKind, bytes, bytes]]], data: st.DataObject
) -> None:
    party = bytes(range(32))
    encoded = encode_checkpoints(party, [a_lane(feed, rows) for feed, rows in lanes.items()])
    decoded = decode_checkpoints(party, encoded)
    assert encode_checkpoints(party, decoded.values()) == encoded
    for feed, rows in lanes.items():
        assert [(row.says, row.key) for row in decoded[feed].barren.rows()] == [(says, key) for says, key, _ in rows]
    at = data.draw(st.integers(0, len(encoded) - 1))
    broken = bytearray(encoded)
    broken[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Exception, match="checksum"):
        decode_checkpoints(party, bytes(broken))
    with pytest.raises(Exception, match="another party"):
        decode_checkpoints(bytes(32), encoded)


def test_admissions_come_back_as_they_were_read() -> None:
    script = Script()
    bob = script.actors[1]
    for number in range(4):
        bob.open_data(pair_of(f"data {number}"))
    acts = [act for act in bob.machine.acts() if act.stamp.feed == bob.control.key and is_plain(act)]
    assert len(acts) == 4
    _, history = next(found for found in bob.machine.histories() if found[0] == bob.control.key)
    saved = AdmissionColumns.of(acts)
    [log] = {id(act.place.seen._log): act.place.seen._log for act in history}.values()  # type: ignore[attr-defined]
    for act, again in zip(acts, saved.between(bob.control.key, log, 0, len(history)), strict=True):
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
