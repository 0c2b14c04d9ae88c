"""Which messages are looked at again when an epoch moves what lies below them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.halo.credentials.claims import Role
from antiphon.party.engine.judge import Judge
from antiphon.party.engine.lane import Lane
from antiphon.party.engine.ports import Void
from antiphon.party.engine.rejudge import decisive_in
from antiphon.testing.peers import Peers, pair_of


def test_geneses_and_changes_of_who_may_write_decide_about_other_messages_and_what_commutes_does_not(
    tmp_path: Path,
) -> None:
    with Peers(tmp_path) as peers:
        party = peers.add("alice").party
        other, guarded, plain = (party.create("antiphon/object") for _ in range(3))
        feed = bytes(party.engine.authority.writer().feed)
        first = party.store.bounds(feed).length
        plain.edit("set", "a", 1)
        plain.set_metadata("display_name", "b")
        plain.move(other.id)
        plain.delete()
        guarded.restrict_writers()
        made = party.create("antiphon/object")
        found = [decisive_in(span, low, high) for span, low, high in party.store.runs(feed, first)]
        assert set().union(*found) == {bytes(guarded.id), bytes(made.id)}


def test_feeds_without_messages_are_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Peers(tmp_path) as peers:
        alice = peers.add("alice")
        alice.party.create("antiphon/object")
        for at in range(5):
            alice.admit_feed(pair_of(f"unused {at}"))
        alice.party.process()
        judged: list[bytes] = []
        voids = Judge.voids

        def counted(self: Judge, lane: Lane, start: int, stop: int) -> Iterator[Void]:
            judged.append(lane.feed)
            return voids(self, lane, start, stop)

        monkeypatch.setattr(Judge, "voids", counted)
        assert alice.member is not None
        alice.member.admit(pair_of("bob").key, [Role.EDITOR])
        alice.party.process()
        assert judged == [bytes(alice.party.engine.authority.writer().feed)]
