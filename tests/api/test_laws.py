"""The law of the API: whatever two devices do, once they have exchanged they see the same, and so does a fresh index.

Each example is a list of acts on either device, through the API alone, with exchanges in between. In the end every
query, the hierarchy, links, access lists and values are equal on both, and equal to those of a store whose derived
files were thrown away.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.budget import budget

import antiphon
from antiphon import Deleted, Fact, Handle, InvalidInput, List, Object, Party, Query, Store, Text, prop, sync
from antiphon.core.ports import SeededRandomness
from antiphon.testing.peers import Ticks

pytestmark = pytest.mark.slow

EXAMPLES = budget(12, 200)
TYPES = ("task", "note", "board")


@antiphon.typed("typed-task")
@dataclass
class Task:
    title: str
    n: int = 0


QUERIES = [
    *(Query(Fact.TYPE.is_(name)) for name in TYPES),
    Query(prop("n") >= 2).order_by("n", descending=True),
    Query(prop("owner").exists()).references(),
    Query(Fact.TYPE.is_("board")).children().children(),
    Query(prop("n") < 3).parent(),
    Query().links(prop("n") > 0).target(),
    Query(deleted=Deleted.SHOWN).backlinks().source(),
    Query(Fact.VIEW_KEY.exists()).embeds(),
    Query(antiphon.Match("mil*")),
    Query(deleted=Deleted.ONLY),
    Query(Fact.PARENT.exists()).order_by(Fact.NAME).take(5),
]


def some(party: Party, chance: random.Random, kind: type[Handle] = Handle) -> Any:
    """One of the items; a new one if there is none of the kind."""
    found = party.query(deleted=Deleted.SHOWN).of(kind)
    return chance.choice(found) if found else party.object({"n": 0})


def make(party: Party, chance: random.Random) -> None:
    kind, name = chance.choice(TYPES), chance.choice(["milk", "salt", "milky way"])
    parent = some(party, chance) if chance.random() < 0.5 else None
    ways: list[Callable[[], Handle]] = [
        lambda: party.object({"n": chance.randrange(5), "title": name}, type=kind, name=name, parent=parent),
        lambda: party.list([name, chance.randrange(5)], type=kind, parent=parent),
        lambda: party.text(name, type=kind, name=name, parent=parent),
        lambda: party.object(Task(name, chance.randrange(5)), parent=parent),
        lambda: party.create_view("org.example:board", name=name, type=kind, parent=parent),
        lambda: party.link(some(party, chance), some(party, chance), {"n": chance.randrange(3)}),
    ]
    chance.choice(ways)()


def write(party: Party, chance: random.Random) -> None:
    thing = some(party, chance, Object)
    thing["n"] = chance.randrange(5)
    if chance.random() < 0.5:
        thing["owner"] = some(party, chance)
    thing.add("tags", chance.choice("abc"))
    if "title" in thing and not party.schemas.of(thing):
        del thing["title"]


def write_many(party: Party, chance: random.Random) -> None:
    with party.batch():
        write(party, chance)
        make(party, chance)
    for item in party.query(limit=3).of(List):
        item.insert(chance.randrange(3), some(party, chance))
        item.sort(key=repr)
    for text in party.query(Fact.MODEL.is_("antiphon/text"), limit=2).of(Text):
        text.insert(chance.randrange(len(text) + 1), chance.choice(["x", " milk "]))


def place(party: Party, chance: random.Random) -> None:
    some(party, chance).move_under(some(party, chance) if chance.random() < 0.8 else None)


def live(party: Party, chance: random.Random) -> None:
    item = some(party, chance)
    (item.restore if item.deleted else item.delete)()


def embed(party: Party, chance: random.Random) -> None:
    item = some(party, chance)
    if item.embedded and chance.random() < 0.4:
        item.release(item.embedded[0])
    else:
        item.embed(some(party, chance))


def guard(party: Party, chance: random.Random) -> None:
    item = some(party, chance)
    if item.writers is None:
        members = [member.subject for member in party.members.members]
        item.restrict_writers(*chance.sample(members, chance.randrange(len(members) + 1)))
    else:
        item.allow_all_writers()


ACTS: list[Callable[[Party, random.Random], None]] = [make, make, write, write_many, place, live, embed, guard]


def act(party: Party, chance: random.Random) -> None:
    with suppress(InvalidInput):  # not theirs to write, a circle, a schema: refused, and nothing happened
        chance.choice(ACTS)(party, chance)


def view_of(party: Party) -> dict[str, Any]:
    """All that an application sees, in a form that can be compared between devices."""
    items = party.query(deleted=Deleted.SHOWN)
    return {
        "queries": [party.query(query).ids for query in QUERIES],
        "totals": party.aggregate(Query().count(group=Fact.TYPE)),
        "sum": party.aggregate(Query().sum("n", group=Fact.MODEL)),
        "parents": {item.id: party.parent_of(item.id) for item in items},
        "children": {item.id: [child.id for child in item.children] for item in items},
        "links": {item.id: [link.id for link in item.links()] for item in items},
        "backlinks": {item.id: [link.id for link in item.links(back=True)] for item in items},
        "closures": {view.id: [item.id for item in view.closure()] for view in party.views()},
        "writers": {item.id: item.writers for item in items},
        "metadata": {item.id: item.metadata for item in items},
        "values": {item.id: item.value for item in items},
        "schemas": [(schema.name, schema.version) for schema in party.schemas.all()],
        "refused": sorted((refused.feed, refused.seq, refused.reason) for refused in party.refused()),
    }


def opened(folder: Path, name: str) -> Store:
    return antiphon.open(
        folder / name, name=name, clock=Ticks(), randomness=SeededRandomness(name + folder.name), unprotected=True
    )


def check_law(folder: Path, chance: random.Random, acts: list[int]) -> None:
    with opened(folder, "ada") as ada, opened(folder, "bob") as bob:
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        sync(ada, bob)
        devices = (party, bob.party(party.key))
        watched = [device.subscribe(query) for device in devices for query in QUERIES]
        for which in acts:
            if which < 2:
                act(devices[which], chance)
            else:
                sync(ada, bob)
        sync(ada, bob)
        seen = view_of(party)
        assert view_of(devices[1]) == seen
        assert [subscription.result.ids for subscription in watched] == seen["queries"] * 2
        key = party.key
    shutil.rmtree(folder / "ada" / "items")
    with opened(folder, "ada") as again:
        assert view_of(again.party(key)) == seen


@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 1 << 32), acts=st.lists(st.sampled_from([0, 1, 0, 1, 0, 1, 2]), min_size=5, max_size=30))
def test_two_devices_that_exchanged_see_the_same_as_a_fresh_index(seed: int, acts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_law(Path(folder), random.Random(seed), acts)
