"""The test kit for models: the base collection passes, and each broken model fails by the law that it breaks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon.core.stamp import Stamp
from antiphon.model.array.model import ArrayModel
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.model import Discard, Feeding, InvalidMutation, Model
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.testing.model_laws import LAWS, run_model_tests

State = dict[str, Any]


class Votes(Model[State]):
    """A sound model: who voted for what, the greatest stamp of each feed. The broken ones below differ in one place."""

    name = "test/votes"

    def initial(self) -> State:
        return {"votes": {}}

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if len(mutation) != 1 or mutation[0] > 9:
            raise InvalidMutation("a vote is a byte from 0 to 9")
        if not void:
            state["votes"][stamp.feed] = max(state["votes"].get(stamp.feed, (stamp, 0)), (stamp, mutation[0]))

    def snapshot(self, state: State) -> bytes:
        rows = [stamp.encode() + bytes([vote]) for _, (stamp, vote) in sorted(state["votes"].items())]
        return b"".join(rows)

    def restore(self, data: bytes) -> State:
        if len(data) % 49:
            raise InvalidMutation("no votes")
        rows = [(Stamp.decode(data[at : at + 48]), data[at + 48]) for at in range(0, len(data), 49)]
        votes = {stamp.feed: (stamp, vote) for stamp, vote in rows}
        if [stamp.feed for stamp, _ in rows] != sorted(votes) or any(vote > 9 for _, vote in rows):
            raise InvalidMutation("no votes in their one form")
        return {"votes": votes}

    def value(self, state: State) -> dict[bytes, int]:
        return {feed: vote for feed, (_, vote) in state["votes"].items()}

    def rehearse(self, state: State, chance: random.Random, feed: bytes) -> bytes:
        return bytes([chance.randrange(10)])


class LastToArrive(Votes):
    """One vote for all, and whoever arrives last decides."""

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation, stamp, void=void)
        if not void:
            state["votes"] = {bytes(32): (stamp._replace(feed=bytes(32)), mutation[0])}


class Forgetful(Votes):
    """Its snapshot leaves the stamps out, so a late vote always wins (trap 4)."""

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation, stamp, void=void)
        state["count"] = state.get("count", 0) + 1

    def value(self, state: State) -> Any:
        return super().value(state), state.get("count", 0)


class InOrderOfArrival(Votes):
    """Its snapshot has the rows in the order in which they came (trap 5)."""

    def snapshot(self, state: State) -> bytes:
        return b"".join(stamp.encode() + bytes([vote]) for stamp, vote in state["votes"].values())


class Hasty(Votes):
    """Changes its state, and only then refuses."""

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if mutation and not void:
            state["votes"][stamp.feed] = (stamp, mutation[0] % 10)
        super().apply(state, mutation, stamp, void=void)


class Deaf(Votes):
    """A void message shows."""

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation, stamp)


class Jealous(Votes):
    """Refuses a second vote for the same, by whoever comes second."""

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        if any(vote == mutation[0] for feed, (_, vote) in state["votes"].items() if feed != stamp.feed and mutation):
            raise InvalidMutation("somebody has voted for that")
        super().apply(state, mutation, stamp, void=void)


class Restless(Votes):
    """Reads something from outside."""

    calls = 0

    def value(self, state: State) -> Any:
        Restless.calls += 1
        return super().value(state), Restless.calls


class Trusting(Votes):
    """Takes any bytes for a snapshot."""

    def restore(self, data: bytes) -> State:
        return super().restore(data) if not len(data) % 49 and data[-1:] < b"\x0a" and data else self.initial()


class Doubling(Votes):
    """ORDERED, but its state does not survive a restart: the restored one counts from nothing."""

    name = "test/doubling"
    feeding = Feeding.ORDERED

    def apply(self, state: State, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        super().apply(state, mutation, stamp, void=void)
        state["turn"] = state.get("turn", 0) + 1
        if not void:
            state["votes"][stamp.feed] = (stamp, state["turn"] % 10)


class Shrinking(Votes):
    """Forgets one more vote at each epoch, though nobody has voted since."""

    def discard(self, state: State, policy: Discard) -> None:
        if state["votes"]:
            del state["votes"][min(state["votes"])]


class Named(Votes):
    """Shows writers as text: `str` of a `PublicKey` is its hex digits, and of plain bytes something else."""

    def value(self, state: State) -> Any:
        return {str(feed): vote for feed, vote in super().value(state).items()}


@pytest.mark.parametrize("model", [ObjectModel, ArrayModel, TextModel, MessengerModel, Votes])
def test_sound_models_pass(model: type[Model[Any]]) -> None:
    laws = run_model_tests(model, examples=25)
    assert len(laws) == len(LAWS)
    assert all(laws)


@pytest.mark.parametrize(
    ("model", "law"),
    [
        (LastToArrive, "Every causal delivery order gives the same value"),
        (InOrderOfArrival, "Every causal delivery order gives the same value"),
        (Jealous, "Every causal delivery order gives the same value"),
        (Restless, "Every causal delivery order gives the same value|The same history folded again"),
        (Named, "A feed's key as `bytes` and as `PublicKey` gives the same state"),
        (Forgetful, "A snapshot restores to a state with the same value"),
        (Doubling, "An item that is saved and restored at any point"),
        (Deaf, "A void message that nobody built upon"),
        (Hasty, "A mutation is applied as a whole, or refused"),
        (Trusting, "Damaged bytes are refused"),
        (Shrinking, "Messages about content that an epoch discarded"),
    ],
)
def test_a_broken_model_fails_by_the_law_that_it_breaks(model: type[Model[Any]], law: str) -> None:
    with pytest.raises(AssertionError, match=rf"^{model.name}: ({law}).* Seed \d+: ") as caught:
        run_model_tests(model, examples=50)
    assert caught.value.__cause__ is not None


def test_a_failure_repeats_with_its_seed() -> None:
    messages = []
    for _ in range(2):
        with pytest.raises(AssertionError) as caught:
            run_model_tests(LastToArrive, examples=20, seed=7)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
