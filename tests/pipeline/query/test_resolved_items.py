"""Items as queries see them on Spark are those of a live peer's index: with forks, circles, and models without code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from pyspark.sql import SparkSession
from tests.cli.conftest import call
from tests.party.histories import act, models, some_ranges
from tests.pipeline.small import small_jobs

from antiphon.core.errors import InvalidInput, InvalidMutation, UnknownItem
from antiphon.model.factory import ModelFactory
from antiphon.model.message import Change
from antiphon.model.value import Reference
from antiphon.pipeline.jobs.batch_run import Run
from antiphon.pipeline.query.resolved_items import seen
from antiphon.pipeline.tables.facts_column import fact_columns
from antiphon.pipeline.tables.item_rows import shown
from antiphon.pipeline.tables.links import links
from antiphon.query.facts import Facts
from antiphon.query.index.index import ItemIndex
from antiphon.query.packed_json import pack, unpack
from antiphon.testing.peers import Peer, Peers

HISTORIES, STEPS = 3, 90


def tie(peer: Peer, chance: random.Random) -> None:
    """What leads from item to item: links, embedded items, references, forks; and what is said about them."""
    one, other = (peer.party.item(item) for item in chance.sample(list(peer.party.items()), 2))
    what = chance.randrange(7)
    if what == 0:
        peer.party.create("antiphon/object", link=(one.id, other.id))
    elif what == 1:
        one.embed(other.id)
    elif what == 2:
        one.edit("set", "of", Reference(bytes(other.id)))
    elif what == 3:
        with peer.party.batch() as batch:
            batch.change(one.id, Change(forked_to=bytes(other.id)))
    elif what == 4:
        one.move(other.id)
    else:
        one.set_metadata(chance.choice(["type", "display_name"]), chance.choice(["task", "日本", 3]))


def some_party(peers: Peers, seed: int) -> Peer:
    """A peer that lacks the code for some models, after others and it have done this and that."""
    chance = random.Random(seed)
    alice, bob = peers.add(f"alice {seed}"), peers.add(f"bob {seed}")
    for _ in range(STEPS):
        peer, other = chance.sample([alice, bob], 2)
        with suppress(InvalidInput, InvalidMutation, UnknownItem, ValueError):
            if chance.random() < 0.1:
                some_ranges(other, peer, chance)
            else:
                (tie if chance.random() < 0.6 else act)(peer, chance)
    alice.take(bob.ranges(alice.lengths()))
    alice.models = ModelFactory.standard()
    alice.rebuild()
    alice.party.process()
    alice.party.save()
    return alice


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Peer]]:
    folder = tmp_path_factory.mktemp("seen")
    with ExitStack() as stack:
        towns = [stack.enter_context(Peers(folder / str(seed), models=models())) for seed in range(HISTORIES)]
        yield [some_party(town, seed) for seed, town in enumerate(towns)]


def index_of(peer: Peer) -> ItemIndex:
    index = peer.party.attach(ItemIndex)
    assert isinstance(index, ItemIndex)
    return index


def live_facts(peer: Peer) -> dict[bytes, Facts]:
    return dict(index_of(peer).facts([bytes(item) for item in peer.party.items()]))


def test_spark_sees_every_item_as_the_index_of_a_live_peer_does(spark: SparkSession, peers: list[Peer]) -> None:
    wanted = {(bytes(peer.party.key), item): facts for peer in peers for item, facts in live_facts(peer).items()}
    with small_jobs(spark), Run.begin(spark, [peer.folder for peer in peers]) as run:
        items = shown(run.items).persist()
        rows = seen(items).collect()
        ends = {row.way for row in links(run.items).collect()}
        items.unpersist()

    assert {(bytes(row.party), bytes(row.item)) for row in rows} == wanted.keys()
    for row in rows:
        facts = wanted[bytes(row.party), bytes(row.item)]
        asked = fact_columns(facts)
        assert bytes(row.facts) == asked.data, facts
        assert pack(unpack(row.value or "null")) == asked.value, facts
        assert {name: bytes(key) for name, key in row.keys.items()} == dict(asked.keys)
        assert {name: [bytes(key) for key in keys] for name, keys in row.members.items()} == dict(asked.members)
        assert bytes(row.parent or b"") == facts.parent, facts
    every = wanted.values()
    assert any(facts.forked_to for facts in every)
    assert any(facts.claims and facts.claims[-1][1] != facts.parent for facts in every)
    assert any(facts.model.startswith("test/") and facts.type for facts in every)  # of which no code is here
    assert ends == {"parent", "source", "target", "embeds", "references"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"where": {"hass": ["a"]}}', "'hass' is none of all, any, not"),
        ("{nothing", "no query: "),
        ("no/such/file", "no query: "),
    ],
)
def test_what_is_no_query_is_told_before_spark_is_asked(text: str, said: str) -> None:
    done = call("pipeline", "query", text)

    assert isinstance(done.exception, InvalidInput)
    assert said in str(done.exception)
