"""`SnapshotRoot`: the root of a snapshot, and `FeedCut`: a feed at its cut. Attesters attest the root's CID.

>>> root = SnapshotRoot(b"p" * 32, number=1, previous=None, created_ms=5, models=(("antiphon/text", 1, 1),))
>>> SnapshotRoot.decode(root.encode()) == root
True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.codec import Reader, u64
from antiphon.core.errors import BadEncoding, InvalidInput
from antiphon.core.keys import KEY_SIZE
from antiphon.core.timeframe import Timeframe
from antiphon.snapshot.cbor import CborReader, array, field_order, mapping, optional_link, raw, text, uint
from antiphon.snapshot.limits import CONTROL_SIZE_MAX, COUNT_MAX, MODEL_NAME_SIZE_MAX, MODELS_MAX

FORMAT = "antiphon.snapshot.v1"
HASH_SIZE = 32
NUMBER_MAX = (1 << 63) - 1
#: A model that the snapshot was made with: its name, its version, and that of the encoding of its states.
ModelPin = tuple[str, int, int]
TREES = ("items", "feeds", "deaths")
_FIELDS = tuple(
    field_order(
        ("format", "party", "number", "previous", "created_ms", "control", "models", "item_count", "feed_count", *TREES)
    )
)


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `BadEncoding` for any `InvalidInput`: a decoder reports values out of bounds as bad bytes."""
    try:
        yield
    except InvalidInput as error:
        raise BadEncoding(str(error)) from None


@dataclass(frozen=True, slots=True)
class FeedCut:
    """A feed at the cut. A feed with no block in the cut has length 0 and a hash of zeros."""

    length: int
    hash: bytes
    lamport: int
    created_ms: int
    control: Timeframe

    def __post_init__(self) -> None:
        numbers = (self.length, self.lamport, self.created_ms)
        if len(self.hash) != HASH_SIZE or not all(0 <= number <= NUMBER_MAX for number in numbers):
            raise InvalidInput(f"no feed is cut like that: {numbers}, a hash of {len(self.hash)} bytes")
        if not self.length and (any(self.hash) or self.lamport or self.created_ms or self.control):
            raise InvalidInput("a feed with nothing in the cut has no hash, lamport, time or timeframe")

    def encode(self) -> bytes:
        """Canonical bytes: length, hash, lamport, time, timeframe."""
        return u64(self.length) + self.hash + u64(self.lamport) + u64(self.created_ms) + self.control.encode()

    @classmethod
    @_reading()
    def decode(cls, data: bytes) -> FeedCut:
        """Decode the bytes of `encode`."""
        reader = Reader(data, "feed cut")
        length, last, lamport, created_ms = reader.u64(), reader.take(HASH_SIZE), reader.u64(), reader.u64()
        return cls(length, last, lamport, created_ms, Timeframe.decode(reader.rest()))


def encode_death(number: int) -> bytes:
    """Encode a value of the tree of deaths: the number of the first epoch in which the item is deleted."""
    if not 0 <= number <= NUMBER_MAX:
        raise InvalidInput(f"no number of an epoch: {number}")
    return u64(number)


def decode_death(data: bytes) -> int:
    reader = Reader(data, "death")
    number = reader.u64()
    reader.done()
    return number


@dataclass(frozen=True, slots=True)
class SnapshotRoot:
    """The party, number and cut of a snapshot, and the roots of its trees; None is an empty tree."""

    party: bytes
    number: int
    previous: Cid | None
    created_ms: int
    control: Timeframe = field(default_factory=Timeframe)
    models: tuple[ModelPin, ...] = ()
    item_count: int = 0
    feed_count: int = 0
    items: Cid | None = None
    feeds: Cid | None = None
    deaths: Cid | None = None

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise InvalidInput(f"snapshot {self.number} of party {self.party.hex()}: {problem}")

    def _problem(self) -> str:
        if len(self.party) != KEY_SIZE:
            return "a party key has 32 bytes"
        if not 0 <= self.number <= NUMBER_MAX or not 0 <= self.created_ms <= NUMBER_MAX:
            return f"number and time are from 0 to 2^63 - 1, not {self.created_ms}"
        if self.previous is not None and self.previous.codec != DAG_CBOR:
            return f"{self.previous} is the CID of no snapshot"
        for count, tree in ((self.item_count, self.items), (self.feed_count, self.feeds)):
            if not 0 <= count <= COUNT_MAX or (count > 0) != (tree is not None):
                return f"{count} entries in the tree {tree}"
        if any(tree is not None and tree.codec != DAG_CBOR for tree in (self.items, self.feeds, self.deaths)):
            return "a tree has no raw nodes"
        return self._problem_of_models()

    def _problem_of_models(self) -> str:
        if len(self.models) > MODELS_MAX:
            return f"{len(self.models)} models, at most {MODELS_MAX} are allowed"
        keys = [(name.encode(), version) for name, version, _ in self.models]
        if keys != sorted(set(keys)):
            return "models ascend by name and version, each once"
        for name, version, codec in self.models:
            if not 0 < len(name.encode()) <= MODEL_NAME_SIZE_MAX:
                return f"a model's name has 1 to {MODEL_NAME_SIZE_MAX} bytes, not {len(name.encode())}"
            if not 0 <= version <= NUMBER_MAX or not 0 <= codec <= NUMBER_MAX:
                return f"model {name} has version {version} and codec {codec}"
        return ""

    @property
    def cid(self) -> Cid:
        """CID of the encoded root."""
        return Cid.of(self.encode(), DAG_CBOR)

    @property
    def trees(self) -> tuple[Cid, ...]:
        """The roots of the trees that are not empty: items, feeds, deaths."""
        return tuple(tree for tree in (self.items, self.feeds, self.deaths) if tree is not None)

    def encode(self) -> bytes:
        """Canonical bytes: a DAG-CBOR map."""
        control = self.control.encode()
        if len(control) > CONTROL_SIZE_MAX:
            raise InvalidInput(f"snapshot {self.number}: a timeframe of {len(self.control)} control feeds is too large")
        models = [text(name) + uint(version) + uint(codec) for name, version, codec in self.models]
        return mapping(
            {
                "format": text(FORMAT),
                "party": raw(self.party),
                "number": uint(self.number),
                "previous": optional_link(self.previous),
                "created_ms": uint(self.created_ms),
                "control": raw(control),
                "models": array(len(models)) + b"".join(array(3) + model for model in models),
                "item_count": uint(self.item_count),
                "feed_count": uint(self.feed_count),
                "items": optional_link(self.items),
                "feeds": optional_link(self.feeds),
                "deaths": optional_link(self.deaths),
            }
        )

    @classmethod
    @_reading()
    def decode(cls, data: bytes) -> SnapshotRoot:
        """Decode a root; refuse bytes that are not canonical."""
        reader = CborReader(data, "snapshot root")
        reader.fields(_FIELDS)
        read = {
            "format": reader.text,
            "party": reader.raw,
            "number": reader.uint,
            "created_ms": reader.uint,
            "control": reader.raw,
            "models": lambda: _read_models(reader),
            "item_count": reader.uint,
            "feed_count": reader.uint,
        }
        found: dict[str, object] = {}
        for name in _FIELDS:
            reader.field(name)
            found[name] = read.get(name, reader.optional_link)()
        reader.done()
        if found.pop("format") != FORMAT:
            raise BadEncoding(f"snapshot root: not of the format {FORMAT}; a newer Antiphon may read it")
        found["control"] = Timeframe.decode(found["control"])  # type: ignore[arg-type]
        root = cls(**found)  # type: ignore[arg-type]
        root.encode()  # the limit of the timeframe
        return root


def _read_models(reader: CborReader) -> tuple[ModelPin, ...]:
    count = reader.array()
    if count > MODELS_MAX:
        raise BadEncoding(f"snapshot root: {count} models, at most {MODELS_MAX} are allowed")
    models = []
    for _ in range(count):
        if reader.array() != 3:
            raise BadEncoding("snapshot root: a model is a name, a version and a codec")
        models.append((reader.text(), reader.uint(), reader.uint()))
    return tuple(models)
