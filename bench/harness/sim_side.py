"""Our side of bench/sim.py; it takes one JSON object a line, each of a fresh process.

play     size, parts    → what one run came to; with `parts`, the seconds that each part of it took
seeds    count          → seconds that some small runs took, with all faults
warm                    → nothing; what is imported and compiled late was so before anything is timed

A run that breaks a law is an error: its figures would mean nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple
from unittest import mock

from antiphon.mesh.link.link import Link
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session
from antiphon.party.epochs.driver import EpochDriver
from antiphon.party.epochs.epochs import Epochs
from antiphon.party.live.processor import PartyProcessor
from antiphon.sim import laws
from antiphon.sim.network import Network
from antiphon.sim.peer import SimPeer
from antiphon.sim.run import Outcome, Stage, run
from antiphon.sim.scenario import PACE_MS_MAX, Scenario, make
from antiphon.sim.workload import Workload

ATTESTERS = 3
REST = "rest"
CHECKS = "checks of the laws"
#: Which methods a part is made of. Time in one that another calls is the inner one's alone.
PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "founding and joining": ((Stage, "_set_up"),),
    "writing": ((Workload, "write"),),
    "protocol": ((Session, "receive"), (Session, "tick"), (Session, "outgoing")),
    "links": ((Link, "receive"), (Link, "tick"), (Link, "outgoing"), (Link, "judge"), (Network, "carry")),
    "ingest": ((Replica, "take_ranges"), (Replica, "take_blobs"), (Replica, "take_fork")),
    "delivery and fold": ((PartyProcessor, "process"),),
    "epochs": ((EpochDriver, "tick"), (Epochs, "wanted"), (Epochs, "begins"), (SimPeer, "_prune")),
    "closing": ((Stage, "close"),),
}
WHOLE = frozenset(("founding and joining", CHECKS, "closing"))  # parts that keep what is called in them
now = time.perf_counter


class Size(NamedTuple):
    """The size of a run. An `even` run has fixed values for the choices of the seed, so that runs can be compared."""

    peers: int
    messages: int
    epochs: int
    seed: int = 7
    even: bool = False

    def scenario(self) -> Scenario:
        pace_ms = PACE_MS_MAX if self.even else 0
        made = make(self.seed, peers=self.peers, messages=self.messages, epochs=self.epochs, faults=(), pace_ms=pace_ms)
        if not self.even:
            return made
        names = made.cast.names
        cast = replace(made.cast, attesters=tuple(sorted(names[:ATTESTERS])), pruners=frozenset(names[::2]))
        return replace(made, cast=cast)


@dataclass
class Parts:
    """One stopwatch for each part, of which one runs at a time."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys((*PARTS, CHECKS, REST), 0.0))
    _open: list[str] = field(default_factory=lambda: [REST])
    _since: float = field(default_factory=now)

    def _turn(self) -> None:
        at = now()
        self.seconds[self._open[-1]] += at - self._since
        self._since = at

    def during(self, part: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, timed as this part."""

        def timed(*values: Any, **named: Any) -> Any:
            if self._open[-1] in WHOLE:
                return act(*values, **named)
            self._turn()
            self._open.append(part)
            try:
                return act(*values, **named)
            finally:
                self._turn()
                self._open.pop()

        return timed

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time the methods by wrapping them, so that the measured code needs nothing for it."""
        checked = {law: self._checked(check) for law, check in laws.LAWS.items()}
        methods = [(owner, name, part) for part, some in PARTS.items() for owner, name in some]
        with mock.patch.dict(laws.LAWS, checked), _patched(methods, self):
            self._since = now()
            yield
            self._turn()

    def _checked(self, check: laws.Law) -> laws.Law:
        """A law is a generator: its time passes when the next value is asked for."""
        whole = self.during(CHECKS, lambda stage: list(check(stage)))
        return lambda stage: iter(whole(stage))


@contextmanager
def _patched(methods: list[tuple[type, str, str]], parts: Parts) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, part in methods:
            stack.enter_context(mock.patch.object(owner, name, parts.during(part, getattr(owner, name))))
        yield


def play(folder: str, size: dict[str, Any], parts: bool = False) -> dict[str, Any]:
    scenario = Size(**size).scenario()
    watches = Parts()
    with watches.measured() if parts else nullcontext():
        outcome = _held(run(scenario, folder=folder))
    return {
        "messages": outcome.messages,
        "delivered": outcome.delivered,
        "epochs": outcome.epochs,
        "sent": outcome.sent,
        "virtual": outcome.virtual_ms / 1e3,
        "seconds": outcome.seconds,
        "rules": asdict(scenario.rules),
        "parts": watches.seconds if parts else {},
    }


def seeds(folder: str, count: int) -> dict[str, Any]:
    """Play small runs, as the tests do."""
    taken = []
    for seed in range(count):
        scenario = make(seed, peers=3 + seed % 3, messages=30 + seed % 20, epochs=1 + seed % 2)
        taken.append(_held(run(scenario, folder=folder)).seconds)
    return {"seconds": taken}


def warm(folder: str) -> dict[str, Any]:
    _held(run(make(1, messages=20, faults=()), folder=folder))
    return {}


def _held(outcome: Outcome) -> Outcome:
    if not outcome.ok:
        raise RuntimeError(f"seed {outcome.scenario.seed} breaks a law: {outcome.broken[0]}")
    return outcome


def main() -> None:
    commands: dict[str, Callable[..., dict[str, Any]]] = {"play": play, "seeds": seeds, "warm": warm}
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = commands[command.pop("do")](**command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
