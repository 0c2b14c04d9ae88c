"""The digest of the states of a party: of the items, and of nothing else, however they are divided."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, strategies as st

from antiphon.core.ids import ITEM_ID_SIZE
from antiphon.pipeline.fold.digest import LEAF_MAX, digest_of, hash_of, hashes_digest, join_digests, states_digest
from antiphon.pipeline.order.shuffle_chunk import buckets_of, ids_of

ids = st.lists(st.binary(min_size=ITEM_ID_SIZE, max_size=ITEM_ID_SIZE), max_size=200, unique=True)


def states_of(count: int) -> list[tuple[bytes, bytes]]:
    return [(sha256(bytes([at])).digest()[:ITEM_ID_SIZE], bytes([at])) for at in range(count)]


def test_it_depends_on_each_item_and_on_no_order() -> None:
    states = states_of(100)

    assert states_digest(states) == states_digest(reversed(states))
    assert states_digest(states) != states_digest([*states[:-1], (states[-1][0], b"other")])
    assert states_digest(states) != states_digest(states[:-1])
    assert states_digest(states) == hashes_digest((item, sha256(data).digest()) for item, data in states)
    assert states_digest([]) == sha256().digest()


@given(ids, st.sampled_from([1, 2, 4, 16, 64]))
def test_the_digests_of_partitions_are_joined_to_that_of_the_whole(items: list[bytes], buckets: int) -> None:
    hashes = {item: hash_of(item, sha256(item).digest()) for item in items}
    where = buckets_of(ids_of(items), buckets)
    parts = [[item for item, at in zip(items, where, strict=True) if at == bucket] for bucket in range(buckets)]

    found = join_digests([digest_of(part, [hashes[item] for item in part], buckets.bit_length() - 1) for part in parts])

    assert found == digest_of(items, [hashes[item] for item in items])
    assert found.count == len(items)


@pytest.mark.parametrize("count", [0, 1, LEAF_MAX, LEAF_MAX + 1, 3 * LEAF_MAX])
def test_items_whose_places_are_one_have_a_digest(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "antiphon.pipeline.fold.digest.item_hashes", lambda items: np.zeros(len(items), dtype=np.uint64)
    )
    states = states_of(count)

    assert states_digest(states) == states_digest(reversed(states))
    assert count == 0 or states_digest(states) != states_digest(states[1:])
