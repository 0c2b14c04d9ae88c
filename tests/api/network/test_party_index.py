"""The index of parties: what it remembers is of what is held now."""

from __future__ import annotations

import pytest

from antiphon import Party, Store
from antiphon.api.network import party_index
from antiphon.api.network.party_index import PartyIndex
from antiphon.core.errors import CorruptBlock
from antiphon.halo.control.machine import PartyMachine
from antiphon.mesh.replication.digest import holdings_digest


def test_a_digest_that_was_overtaken_by_a_commit_is_not_kept(
    ada: Store, party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else `synced` would compare others with what was held before, until the next commit."""
    index = PartyIndex(ada)
    index.look(None)
    index.stale(party.key)

    def slow(*args: object) -> bytes:
        found = holdings_digest(*args)  # type: ignore[arg-type]
        party.object({"written": "meanwhile"})
        index.stale(party.key)
        return found

    monkeypatch.setattr(party_index, "holdings_digest", slow)
    index.digest(party.key)
    monkeypatch.undo()
    assert index.digest(party.key) == holdings_digest(ada.manager.feeds, party.key)


def test_control_feeds_that_could_not_be_folded_are_folded_at_the_next_look(
    ada: Store, bob: Store, party: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a revocation could be missed."""
    index = PartyIndex(ada)
    index.look(None)
    before = index.version(party.key)
    party.revoke(bob.me)
    honest = PartyIndex._machine

    def fail(self: PartyIndex, key: bytes) -> PartyMachine | None:
        raise CorruptBlock("it cannot be read for a moment", feed=key, seq=0)

    monkeypatch.setattr(PartyIndex, "_machine", fail)
    index.look([party.key])
    assert index.version(party.key) == before
    monkeypatch.setattr(PartyIndex, "_machine", honest)
    index.look([party.key])
    assert index.version(party.key) > before
