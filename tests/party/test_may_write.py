"""Whether this device may write is asked once for all that is known, and again when more is."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.core.errors import NotAuthorised
from antiphon.halo.credentials.claims import Role
from antiphon.testing.peers import Peers


def test_a_device_that_may_write_is_not_judged_again_until_it_hears_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Peers(tmp_path) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        peers.settle()
        item = bob.party.create("antiphon/object")
        item.edit("set", "a", 1)
        assert alice.member is not None
        assert bob.member is not None
        with monkeypatch.context() as patched:
            patched.setattr(bob.member.machine, "roles_of", None)
            item.edit("set", "a", 2)
        alice.member.demote(bob.key, [Role.READER])
        peers.pass_on(alice, bob)
        with pytest.raises(NotAuthorised):
            item.edit("set", "a", 3)
