"""Models without code here: their items are kept, and picked up when the code comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.party.helpers import Story, factory

from antiphon.core.errors import UnknownModel
from antiphon.model.factory import ModelFactory
from antiphon.testing.peers import Peers


@pytest.mark.parametrize("restart", [False, True])
def test_an_unknown_model_is_kept_and_picked_up_later(tmp_path: Path, restart: bool) -> None:
    with Peers(tmp_path, models=factory(Story)) as peers:
        alice = peers.add("alice")
        bob = peers.add("bob", models=ModelFactory.standard())
        story = alice.party.create("test/story")
        story.edit("tell", "once")
        story.set_metadata("name", "A tale")
        peers.sync()
        item = bob.party.item(story.id)
        assert (item.opaque, item.model, item.metadata) == (True, ("test/story", 1), {"name": "A tale"})
        for act in (lambda: item.value, lambda: item.edit("tell", "no"), lambda: item.mutate(b"no"), item.snapshot):
            with pytest.raises(UnknownModel, match=r"no code for .*model test/story 1 is here; its messages are safe"):
                act()
        item.delete()  # what is the system's can be changed
        peers.sync()
        assert alice.party.item(story.id).deleted
        item.restore()
        story.edit("tell", "upon")
        peers.sync()
        if restart:
            bob.party.close()
            bob.models.register(Story)
            bob.restart()
        else:
            bob.models.register(Story)
            bob.party.process()
        assert bob.party.item(story.id).value == [b"once", b"upon"]
        assert bob.snapshots() == alice.snapshots()
        assert bob.party.refused() == []
        bob.party.item(story.id).edit("tell", "a")
        assert bob.party.item(story.id).value == [b"once", b"upon", b"a"]


def test_code_that_goes_away_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    with Peers(tmp_path, models=factory(Story)) as peers:
        alice, bob = peers.add("alice"), peers.add("bob")
        story = alice.party.create("test/story")
        story.edit("tell", "once")
        peers.sync()
        bob.models = ModelFactory.standard()
        bob.restart()
        story.edit("tell", "upon")
        peers.sync()
        assert bob.party.item(story.id).opaque
        bob.models = factory(Story)
        bob.restart()
        assert bob.party.item(story.id).value == [b"once", b"upon"]
        assert bob.snapshots() == alice.snapshots()
