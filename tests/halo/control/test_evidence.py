"""Evidence of a fork that a feed repeats: it took 46 times as long to open a party with 4 MB of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.halo.control.test_checkpoints import ForkedHostile, answers, checkpoints_of, data_feed, setting_aside

from antiphon.feed.block import Block
from antiphon.halo.credentials.claims import Equivocated


def test_evidence_that_a_feed_repeats_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first counts, also for whoever is shown no branch; another member's counts beside it."""
    monkeypatch.setattr("antiphon.halo.control.checkpoints.FEW", 1)
    script = ForkedHostile()
    carol, dave = script.actors[2:4]
    dave.open_data(data_feed(dave, 0))
    script.part()
    for actor, count in ((dave, 20), (carol, 2)):
        for _ in range(count):
            actor.write(script.evidence(), seen=[])
    feeds: dict[bytes, Sequence[Block]] = {actor.control.key: tuple(actor.written) for actor in script.actors}
    feeds[script.one.control.key] = tuple(script.one.written[: script.fork])
    plain, machine = setting_aside(script, feeds), setting_aside(script, feeds)
    for known in (plain, machine):
        for blocks in feeds.values():
            known.add(blocks)
    saved = checkpoints_of(machine)
    assert machine.checkpoints.count == 20
    resumed = setting_aside(script, feeds, saved)
    assert sum(isinstance(act.claim, Equivocated) for act in resumed.acts()) == 2
    for known in (machine, resumed):
        assert known.fork_ends[script.one.control.key] == script.fork
        assert answers(script, known) == answers(script, plain)
