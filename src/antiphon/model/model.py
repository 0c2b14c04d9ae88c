"""`Model`: a deterministic state machine. Mutations in, state out, snapshots both ways; no clock, I/O or randomness.

A model of your own takes a few lines. With no snapshot of its own, the list of its messages is the snapshot:

>>> class Tally(Model[list[int]]):
...     name = "example/tally"
...     def initial(self) -> list[int]:
...         return [0]
...     def apply(self, state, mutation, stamp, *, void=False):
...         if len(mutation) != 1:
...             raise InvalidMutation(f"a tally takes one byte, not {len(mutation)}")
...         if not void:
...             state[0] += mutation[0]
...     def value(self, state):
...         return state[0]

`antiphon.testing.run_model_tests(Tally)` then checks that it keeps the laws.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from antiphon.core.errors import InvalidInput, InvalidMutation
from antiphon.core.stamp import Stamp

if TYPE_CHECKING:
    from antiphon.core.cid import Cid
    from antiphon.model.message import Note
    from antiphon.model.value import Reference

State = TypeVar("State")

__all__ = ["Discard", "Feeding", "InvalidMutation", "Model"]


class Feeding(enum.Enum):
    """How a model must be fed."""

    COMMUTATIVE = "commutative"  # any causal order gives the same state
    ORDERED = "ordered"  # the total order; a late message rolls back and replays


@dataclass(frozen=True, slots=True)
class Discard:
    """The limits of a party's policy beyond which a model discards data at an epoch. 0 means no limit."""

    now_ms: int  # the creation time of the epoch: the only clock that decides
    age_ms_max: int = 0
    count_max: int = 0

    @property
    def limits(self) -> bool:
        """True if there is any limit."""
        return bool(self.age_ms_max or self.count_max)


class Model(Generic[State]):
    """One kind of item. Instances hold no data: `initial` and `restore` make a state, and every call takes it.

    The laws, which `run_model_tests` checks:

    - COMMUTATIVE: every causal delivery order gives the same value and the same snapshot bytes.
    - `restore(snapshot(s))` behaves like `s` for everything that may follow.
    - `apply` applies a whole mutation, or raises `InvalidMutation` and leaves the state as it was. Which of the two
      depends on the mutation, its stamp, and earlier messages of the same feed. It never depends on the messages that
      other feeds have or have not delivered yet, because those differ between delivery orders.
    - A mutation may name only messages with a lower lamport than its own, or earlier ones of its own feed, so that
      nobody can refer to another's future.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    #: The format of the snapshot. A new format needs a new number, and `restore` must still read the former ones.
    codec: ClassVar[int] = 1
    feeding: ClassVar[Feeding] = Feeding.COMMUTATIVE
    #: True if the snapshot's bytes depend on the messages alone. Otherwise the fold uses the total order.
    canonical: ClassVar[bool] = True
    #: The methods that build mutations: `(state, …, feed=…) -> bytes`, where `feed` is the writer's own.
    commands: ClassVar[frozenset[str]] = frozenset()

    def initial(self) -> State:
        """Return the state of an item right after its genesis."""
        raise NotImplementedError

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        """Change `state` by one mutation, or raise `InvalidMutation` and leave it alone.

        A `void` message (its writer had no right to it) must have no visible effect: most models ignore it.
        """
        raise NotImplementedError

    def apply_run(self, state: State, frame: dict[bytes, Stamp], notes: Sequence[Note], at: int, since: int) -> int:
        """Apply messages from `at` on as long as a faster way exists; return the index of the first that was not.

        It may apply only mutations that count, with a lamport above `since`. It sets `frame` to the stamp of the last
        message of each feed. The caller passes the next message to `apply`.
        """
        return at

    def snapshot(self, state: State) -> bytes:
        """Return the canonical bytes of a state. An item of a model without this method is stored as its messages."""
        raise NotImplementedError

    def restore(self, data: bytes) -> State:
        """Return the state of a snapshot. Invalid bytes raise `InvalidInput`."""
        raise NotImplementedError

    def value(self, state: State) -> Any:
        """Return what users see: plain Python values, equal on peers with equal messages."""
        raise NotImplementedError

    def document(self, state: State) -> Any:
        """Return what queries see: a value as in `model.value`, with equal bytes on peers with equal messages."""
        return self.value(state)

    def references(self, state: State) -> Iterable[Reference]:
        """Return references that are not in `document`, such as items embedded in a text."""
        return ()

    def blobs(self, state: State) -> Iterable[Cid]:
        """Return the blobs outside the state that it refers to: they are fetched with it, and not collected."""
        return ()

    def discard(self, state: State, policy: Discard) -> None:
        """Discard at an epoch the data beyond the limits. Not called without a limit, nor on models without a snapshot.

        A late message that refers to discarded data must have the same effect in every order. The call must be
        idempotent.
        """

    def capture(self, state: State, mutation: bytes, stamp: Stamp) -> Any:
        """Return what `revert` will need of the state just before `mutation` is applied."""
        return None

    def revert(self, state: State, captured: Any, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        """Return mutations of the writer of `feed` that undo one message and keep what others changed since."""
        raise InvalidInput(f"the model {self.name} has no undo")

    def context(self, state: State, command: str, feed: bytes, lamport: int) -> dict[str, Any]:
        """Return keywords for a command whose mutation shares its lamport with others, as in a batch."""
        return {}

    def perform(self, state: State, command: str, arguments: Sequence[Any], stamp: Stamp) -> bytes | None:
        """Build the mutation of a command and apply it in one step, where that is much cheaper than two.

        Return None, without effect, to let the caller run the command and `apply`. The result must be the same.
        """
        return None

    def in_batch(self, state: State, mutation: bytes, feed: bytes, lamport: int) -> bytes:
        """Return a mutation made for this state in the form for a batch, where earlier ones share its lamport."""
        return mutation

    def migrate(self, version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
        """Return mutations that give a new item of this version the state of an item of an older version.

        `snapshot` is the snapshot of the older model. If that model has none, it is the snapshot of the whole item,
        with the list of its messages.
        """
        raise InvalidInput(f"the model {self.name} {self.version} does not say how to take over version {version}")

    def rehearse(self, state: State, chance: random.Random, feed: bytes) -> bytes:
        """Return a random mutation that a user might make in this state, for the test kit."""
        raise NotImplementedError

    @property
    def has_snapshot(self) -> bool:
        """True if the model defines `snapshot`."""
        return type(self).snapshot is not Model.snapshot

    @property
    def key(self) -> tuple[str, int]:
        """Name and version, by which items refer to the model."""
        return self.name, self.version


def need(condition: object, reason: str) -> None:
    """Raise `InvalidMutation` with this reason unless `condition` holds."""
    if not condition:
        raise InvalidMutation(reason)


Messages = Sequence[tuple[bytes, Stamp, bool]]
