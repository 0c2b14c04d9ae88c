"""`Model`: a deterministic state machine. Mutations in, state out, snapshot both ways; no clock, no I/O, no randomness.

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
    """What a model may forget at an epoch, by the party's policy. Zero means that there is no such limit."""

    now_ms: int  # when the epoch was created: the only clock that decides
    age_ms_max: int = 0
    count_max: int = 0

    @property
    def limits(self) -> bool:
        """Whether there is any limit; else nothing goes."""
        return bool(self.age_ms_max or self.count_max)


class Model(Generic[State]):
    """One kind of item. Instances hold nothing: state is made by `initial` or `restore` and handed to every call.

    The laws, which `run_model_tests` checks:

    - COMMUTATIVE: every causal delivery order gives the same value and the same snapshot bytes.
    - `restore(snapshot(s))` behaves like `s` for everything that may follow.
    - `apply` takes a mutation whole or raises `InvalidMutation` and leaves the state as it was, and whether it does
      depends on nothing that differs between delivery orders: on the mutation, its stamp, and earlier messages of the
      same feed, never on what other feeds have or have not delivered yet.
    - A mutation may name only messages with a lower lamport than its own (or its own feed's earlier ones), so that
      nobody can speak about another's future.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    #: The format of the snapshot. Another one needs another number, and `restore` must know the former ones as well.
    codec: ClassVar[int] = 1
    feeding: ClassVar[Feeding] = Feeding.COMMUTATIVE
    #: Whether the snapshot's bytes depend on the messages alone. Else they are made by folding in the total order.
    canonical: ClassVar[bool] = True
    #: The methods that build mutations: `(state, …, feed=…) -> bytes`, with `feed` the writer's own.
    commands: ClassVar[frozenset[str]] = frozenset()

    def initial(self) -> State:
        """The state of an item right after its genesis."""
        raise NotImplementedError

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        """Change `state` by one mutation, or raise `InvalidMutation` and leave it alone.

        A `void` message (its writer had no right to it) keeps its place but must not show: most models ignore it.
        """
        raise NotImplementedError

    def apply_run(self, state: State, frame: dict[bytes, Stamp], notes: Sequence[Note], at: int, since: int) -> int:
        """Apply as many messages from `at` on as there is a shorter way for; where that ended. `apply` takes the next.

        Only mutations that count, with a lamport above `since`. `frame` gets the stamp of each feed's last one.
        """
        return at

    def snapshot(self, state: State) -> bytes:
        """Canonical bytes of a state. A model that does not define this is kept as the list of its messages."""
        raise NotImplementedError

    def restore(self, data: bytes) -> State:
        """A state from its snapshot; hostile bytes raise `InvalidInput`."""
        raise NotImplementedError

    def value(self, state: State) -> Any:
        """What people and programs see: plain Python values, equal on peers with equal messages."""
        raise NotImplementedError

    def document(self, state: State) -> Any:
        """What queries see: a value in the sense of `model.value`, with the same bytes on peers with equal messages."""
        return self.value(state)

    def references(self, state: State) -> Iterable[Reference]:
        """References that are not in `document`, to items embedded in a text say."""
        return ()

    def blobs(self, state: State) -> Iterable[Cid]:
        """The blobs outside the state that it refers to: what must be fetched with it, and not be collected."""
        return ()

    def discard(self, state: State, policy: Discard) -> None:
        """Forget at an epoch what the policy lets go. Never called without a limit, nor on a model without a snapshot.

        What a late message says of something forgotten must come to the same in every order. Doing it twice is doing
        it once.
        """

    def capture(self, state: State, mutation: bytes, stamp: Stamp) -> Any:
        """What `revert` will need of the state just before `mutation` is applied to it."""
        return None

    def revert(self, state: State, captured: Any, mutation: bytes, stamp: Stamp, feed: bytes) -> list[bytes]:
        """Mutations (by the writer of `feed`) that undo one message and leave alone what others changed since."""
        raise InvalidInput(f"the model {self.name} has no undo")

    def context(self, state: State, command: str, feed: bytes, lamport: int) -> dict[str, Any]:
        """Further keywords that commands need when several mutations share a lamport, as they do in a batch."""
        return {}

    def perform(self, state: State, command: str, arguments: Sequence[Any], stamp: Stamp) -> bytes | None:
        """Make a command's mutation and apply it at once, where that costs much less than one after the other.

        None, with nothing changed, leaves it to the command and `apply`, which must come to the same.
        """
        return None

    def in_batch(self, state: State, mutation: bytes, feed: bytes, lamport: int) -> bytes:
        """A mutation made for this state, as it must be sent where earlier ones of its feed share its lamport."""
        return mutation

    def migrate(self, version: int, snapshot: bytes, feed: bytes) -> list[bytes]:
        """Mutations that bring a new item of this version to the state of one of an older version.

        `snapshot` is the older model's; of one without, the whole item's, with the list of its messages.
        """
        raise InvalidInput(f"the model {self.name} {self.version} does not say how to take over version {version}")

    def rehearse(self, state: State, chance: random.Random, feed: bytes) -> bytes:
        """Some mutation that a user might make in this state; what the test kit plays with."""
        raise NotImplementedError

    @property
    def has_snapshot(self) -> bool:
        return type(self).snapshot is not Model.snapshot

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.version


def need(condition: object, reason: str) -> None:
    """Refuse a mutation unless `condition` holds."""
    if not condition:
        raise InvalidMutation(reason)


Messages = Sequence[tuple[bytes, Stamp, bool]]
