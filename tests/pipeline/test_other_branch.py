"""A device of which a final epoch holds another branch of a feed: Spark comes to what it comes to, with and without the
proof of that branch.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.mesh.replication.wire import Wire
from tests.party.epochs.epoch_acts import held, same
from tests.party.forked import pruned
from tests.pipeline.lawbulk import differences, in_bulk
from tests.pipeline.lawhomes import Live, look

from antiphon.mesh.replication.codec import decode
from antiphon.mesh.replication.message import Branch
from antiphon.snapshot.blob_store import BlobStore
from antiphon.testing.peers import Peers

pytestmark = pytest.mark.slow


def home_of_carol(folder: Path, *, longer: int, goes_on: bool, proven: bool) -> Live:
    with Peers(folder) as peers:
        case = pruned(peers, longer=longer, refers=True, goes_on=goes_on)
        wire = Wire(peers)
        if not proven:
            wire.watch = lambda giver, taker, data: not isinstance(decode(data).body, Branch)
        wire.run(600_000)
        if proven:
            same(case.alice, case.carol)
        carol = case.carol
        with BlobStore.open(carol.folder / "blobs") as blobs:
            blobs.put_all((cid, carol.blobs.get(cid)) for cid in held(carol))
        return look(folder.name, carol.folder, carol.party, carol.store, carol.epochs.waits_for)


def test_spark_comes_to_what_a_device_on_another_branch_comes_to(spark: SparkSession, tmp_path: Path) -> None:
    wrong = {}
    for longer, goes_on, proven in ((2, True, True), (2, False, False), (7, True, False)):
        name = f"{longer} {goes_on} {proven}"
        live = home_of_carol(tmp_path / name, longer=longer, goes_on=goes_on, proven=proven)
        wrong[name] = list(differences(live, in_bulk(spark, [live])[live.party]))

    assert {name: texts for name, texts in wrong.items() if texts} == {}
