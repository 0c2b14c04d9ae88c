"""A rotten block of a data feed: the feed is delivered up to it, all else goes on, and a repair and a sync heal it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.health.test_check import flip

import antiphon
from antiphon import sync
from antiphon.api.health.repair import repair_home
from antiphon.core.reasons import Reason

pytestmark = pytest.mark.slow

Values = dict[str, Any]
SPAN_SIZE = 70_000  # bytes with which a stored span ends: what is rotten in a span takes all of it along


def values(party: antiphon.Party) -> Values:
    return {item.name: item.value for item in party.query()}


def opened(home: Path) -> antiphon.Store:
    return antiphon.open(home, unprotected=True, epochs=False)


def rot(home: Path, text: bytes) -> None:
    flip(home / "feeds" / "data.mdb", text)


def forget_items(home: Path) -> None:
    """Delete what is derived from the blocks, so that all of them are read again."""
    for path in (home / "items").glob("*.db*"):
        path.unlink()


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Path, Path, Values]:
    """The homes of Ada and Bob, who share a party, and its values. Ada has another party."""
    with opened(tmp_path / "ada") as ada, opened(tmp_path / "bob") as bob:
        party = ada.create_party("Household")
        party.object({"by": "Ada"}, name="hers")
        bob.join(str(party.invite(bob.me)))
        sync(ada, bob)
        shared = bob.party("Household")
        shared.object({"by": "Bob"}, name="early")
        shared.text("f" * SPAN_SIZE, name="filler")
        sync(ada, bob)
        shared.text("of Bob, rotten soon", name="late")
        sync(ada, bob)
        party.text("of Ada, rotten soon", name="own")
        sync(ada, bob)
        ada.create_party("Alone").text("untouched", name="note")
        assert values(party) == values(shared)
        return tmp_path / "ada", tmp_path / "bob", values(party)


def heal(home: Path, other: Path) -> Values:
    """Drop what is rotten, sync, and return what both homes hold then."""
    assert repair_home(home).wrong == ()
    with opened(home) as ada, opened(other) as bob:
        sync(ada, bob)
        party, shared = ada.party("Household"), bob.party("Household")
        assert values(party) == values(shared)
        for item in party.query():
            assert party.processor.snapshot(item.id) == shared.processor.snapshot(item.id)
        assert party.status().blocked == ()
        return values(party)


def test_a_feed_of_another_is_delivered_up_to_its_rot(
    homes: tuple[Path, Path, Values], caplog: pytest.LogCaptureFixture
) -> None:
    """Before, the party stopped until it was repaired."""
    home, other, wanted = homes
    rot(home, b"of Bob, rotten soon")
    forget_items(home)

    with opened(home) as ada, opened(other) as bob, caplog.at_level(logging.WARNING):
        party = ada.party("Household")
        assert values(party) == {name: wanted[name] for name in ("hers", "early", "filler")}
        (blocked, *waiting) = sorted(party.status().blocked, key=lambda one: one.code)
        assert blocked.code is Reason.DAMAGED
        assert "doctor --repair" in blocked.reason
        assert [one.code for one in waiting] == [Reason.WAITS_BLOCK]  # Ada's own message had seen it
        assert "delivered only up to its rot" in caplog.text
        assert values(ada.party("Alone")) == {"note": "untouched"}
        with pytest.raises(antiphon.MissingBlocks, match="waits"):
            party.text("not written", name="not written")
        bob.party("Household").text("meanwhile", name="meanwhile")
        sync(ada, bob)
        assert "meanwhile" not in values(party)  # Bob's feed goes on behind the rot

    assert heal(home, other) == {**wanted, "meanwhile": "meanwhile"}


def test_a_device_writes_on_beside_the_rot_of_another(homes: tuple[Path, Path, Values]) -> None:
    home, other, _ = homes
    with opened(home) as ada, opened(other) as bob:
        shared = bob.party("Household")
        shared.text("g" * SPAN_SIZE, name="second filler")
        sync(ada, bob)
        wanted = values(ada.party("Household"))
        shared.text("the last of Bob", name="last")
        sync(ada, bob)
    rot(home, b"the last of Bob")
    forget_items(home)

    with opened(home) as ada:
        party = ada.party("Household")
        assert values(party) == wanted
        party.text("beside the rot", name="new")
        assert values(party) == {**wanted, "new": "beside the rot"}

    assert heal(home, other) == {**wanted, "new": "beside the rot", "last": "the last of Bob"}


def test_an_item_that_has_to_be_folded_again_from_rotten_messages(homes: tuple[Path, Path, Values]) -> None:
    """Messages are applied once; one that has rotted since is read again if another one is void now."""
    home, other, wanted = homes
    with opened(home) as ada, opened(other) as bob:
        shared = bob.party("Household")
        item = next(item for item in shared.query() if item.name == "hers")
        item.edit("set", "bob", "what Bob set")
        shared.text("g" * SPAN_SIZE, name="second filler")
        item.edit("set", "bob", "what Bob did then")
        last = item.history()[-1].stamp
        sync(ada, bob)
    rot(home, b"what Bob set")

    with opened(home) as ada:
        party = ada.party("Household")
        assert values(party)["hers"]["bob"] == "what Bob did then"  # nothing has to be read again
        party.erase(last)
        shown = values(party)
        assert party.processor.running
        assert shown.items() <= {**wanted, "hers": {"by": "Ada"}}.items()
        assert shown["early"] == wanted["early"]
        assert "block" in party.status().rebuilt
        assert Reason.DAMAGED in {one.code for one in party.status().blocked}

    assert heal(home, other)["hers"] == {"by": "Ada", "bob": "what Bob set"}


@pytest.mark.parametrize("reads", [forget_items, lambda home: None])
def test_a_device_goes_on_in_a_new_feed_if_its_own_is_rotten(
    homes: tuple[Path, Path, Values], reads: Callable[[Path], None]
) -> None:
    home, other, wanted = homes
    rot(home, b"of Ada, rotten soon")
    reads(home)

    with opened(home) as ada, opened(other) as bob:
        party = ada.party("Household")
        before = values(party)
        assert before.items() <= wanted.items()
        with pytest.raises(antiphon.FeedRetired, match="refresh the party"):
            party.text("not written", name="not written")
        party.refresh()
        party.text("in a new feed", name="new")
        assert values(party) == {**before, "new": "in a new feed"}
        sync(ada, bob)
        assert values(bob.party("Household"))["new"] == "in a new feed"

    assert heal(home, other) == {**wanted, "new": "in a new feed"}
