"""The laws of a blob store, for any adapter: `run_blob_store_tests(make)` checks an adapter.

>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> len(run_blob_store_tests(MemoryBlobs))
7
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from antiphon.core.cid import BLOB_SIZE_MAX, DAG_CBOR, RAW, Cid
from antiphon.core.errors import AntiphonError, BadEncoding, MissingBlob, TooLarge
from antiphon.snapshot import tree
from antiphon.snapshot.blobs import Blobs

Error = TypeVar("Error", bound=AntiphonError)
DATA = [b"blob %d" % number * (number + 1) for number in range(600)]
CIDS = [Cid.of(data) for data in DATA]


def _raised(kind: type[Error], act: Callable[[], object]) -> Error:
    try:
        act()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def what_is_put_is_there(store: Blobs) -> None:
    """A blob can be read by its CID, and has one CID for each codec."""
    cids = [store.put(DATA[0]), store.put(DATA[0], DAG_CBOR), store.put(b"")]
    assert cids == [Cid.of(DATA[0], RAW), Cid.of(DATA[0], DAG_CBOR), Cid.of(b"")]
    assert [store.get(cid) for cid in cids] == [DATA[0], DATA[0], b""]
    assert all(map(store.has, cids))


def what_is_not_there_is_named(store: Blobs) -> None:
    """A blob that is not there is missing: `get` raises with its CID."""
    absent = Cid.of(b"absent")
    assert not store.has(absent)
    error = _raised(MissingBlob, lambda: store.get(absent))
    assert error.cid == absent
    assert str(absent) in str(error)


def many_are_put_together(store: Blobs) -> None:
    """Many blobs can be put at once, in any order, and some of them again."""
    pairs = list(zip(CIDS, DATA, strict=True))
    store.put_all(reversed(pairs))
    store.put_all([*pairs[:3], pairs[0]])
    store.put_all([])
    assert [store.get(cid) for cid in CIDS] == DATA


def missing_ones_are_listed(store: Blobs) -> None:
    """`missing` keeps the order of the question."""
    store.put_all([(CIDS[1], DATA[1])])
    low, high = sorted([Cid.of(b"one"), Cid.of(b"two")])
    assert store.missing([high, CIDS[1], low]) == [high, low]
    assert store.missing([]) == []


def wrong_bytes_are_refused(store: Blobs) -> None:
    """Bytes that do not match their CID are refused, with all blobs of the same call."""
    other = Cid.of(b"alone")
    _raised(BadEncoding, lambda: store.put_all([(other, b"alone"), (Cid.of(b"right"), b"wrong")]))
    assert not store.has(other)
    assert not store.has(Cid.of(b"right"))


def sizes_have_a_bound(store: Blobs) -> None:
    """The largest allowed blob is stored, a larger one refused."""
    largest = bytes(BLOB_SIZE_MAX)
    assert store.get(store.put(largest)) == largest
    _raised(TooLarge, lambda: store.put(largest + b"1"))


def a_tree_can_be_kept(store: Blobs) -> None:
    """A tree built in the store is complete, and reads back the same."""
    entries = [(number.to_bytes(16, "big"), bytes([number % 256]) * number) for number in range(0, 6000, 7)]
    root = tree.build(entries, store)
    assert root is not None
    assert list(tree.missing(root, store)) == []
    assert list(tree.entries(root, store)) == entries


LAWS: tuple[Callable[[Blobs], None], ...] = (
    what_is_put_is_there,
    what_is_not_there_is_named,
    many_are_put_together,
    missing_ones_are_listed,
    wrong_bytes_are_refused,
    sizes_have_a_bound,
    a_tree_can_be_kept,
)


def run_blob_store_tests(make: Callable[[], Blobs]) -> tuple[str, ...]:
    """Check every law on a store from `make`: a new one each time, or one store, which may hold other blobs."""
    for law in LAWS:
        try:
            law(make())
        except AssertionError as error:
            raise AssertionError(f"{law.__doc__} {error}") from error
    return tuple((law.__doc__ or "").strip() for law in LAWS)
