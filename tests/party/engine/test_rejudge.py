"""Which messages are looked at again when an epoch moves what lies below them."""

from __future__ import annotations

from pathlib import Path

from antiphon.party.engine.rejudge import decisive_in
from antiphon.testing.peers import Peers


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
