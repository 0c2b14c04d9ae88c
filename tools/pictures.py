"""Redraw the pictures of docs/simulation.md, each from a scenario that is simulated here.

tools/pictures.py            play all of them, and rewrite docs/pictures
tools/pictures.py --check    list the outdated ones, and change nothing
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from antiphon.sim.byzantine.attacks import ATTACKS
from antiphon.sim.picture.draw import draw
from antiphon.sim.run import Outcome, run
from antiphon.sim.scenario import Act, ActKind, Cast, Rules, Scenario

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 1000
NAMES = ("alice", "bob", "carol", "dora", "emil", "frida")


def partition() -> Scenario:
    """Two groups of three peers write apart; then they meet, and agree on an epoch."""
    parted = Act(1_500, ActKind.PART, groups=(NAMES[:3], NAMES[3:]))
    acts = [*writes(1, NAMES, 500, 9_000, 30), parted, Act(6_500, ActKind.HEAL)]
    return scenario(1, NAMES, NAMES[:1], acts, epoch_messages=26)


def sleeper() -> Scenario:
    """Dora sleeps through two epochs, and writes meanwhile."""
    names = NAMES[:5]
    acts = [*writes(2, names, 500, 13_000, 48), Act(1_300, ActKind.SLEEP, "dora"), Act(9_000, ActKind.WAKE, "dora")]
    return scenario(2, names, names[:3], acts, epoch_messages=28, pruners=frozenset(names[1:3]))


def takeover() -> Scenario:
    """Alice is away, and epoch 2 is hers to declare: the other attesters elect one of them."""
    names = NAMES[:5]
    acts = [*writes(3, names, 500, 7_000, 22), Act(600, ActKind.SLEEP, "alice"), Act(9_000, ActKind.WAKE, "alice")]
    return scenario(3, names, names[:3], acts, epoch_messages=24)


def equivocator() -> Scenario:
    """Emil signs two histories of his control feed, and shows each to others."""
    names = NAMES[:5]
    lie = Act(3_000, ActKind.LIE, "emil", seed=seed_of_lie("forked control"))
    return scenario(4, names, names[:3], [*writes(4, names, 500, 9_000, 30), lie], epoch_messages=24, liars=names[4:])


PICTURES: dict[str, Callable[[], Scenario]] = {
    "partition": partition,
    "sleeper": sleeper,
    "takeover": takeover,
    "equivocator": equivocator,
}


def scenario(
    seed: int,
    names: tuple[str, ...],
    attesters: tuple[str, ...],
    acts: Iterable[Act],
    *,
    epoch_messages: int,
    pruners: frozenset[str] = frozenset(),
    liars: Iterable[str] = (),
) -> Scenario:
    cast = Cast(names, liars=frozenset(liars), attesters=attesters, pruners=pruners)
    ordered = tuple(sorted(acts, key=lambda act: (act.at_ms, act.what.value, act.peer)))
    return Scenario(seed, cast, Rules(epoch_messages=epoch_messages, silent_ms=2_000), acts=ordered)


def writes(seed: int, names: tuple[str, ...], begin_ms: int, end_ms: int, count: int) -> list[Act]:
    """Writes of all peers in turn, evenly spaced, so that epochs are, too."""
    chance = random.Random(seed)
    step = (end_ms - begin_ms) // count
    return [
        Act(
            begin_ms + n * step + chance.randrange(step),
            ActKind.WRITE,
            names[n % len(names)],
            chance.choice((1, 1, 2, 3, 6)),
            chance.randrange(1 << 32),
        )
        for n in range(count)
    ]


def seed_of_lie(name: str) -> int:
    """A seed with which a liar chooses this lie, as `Attacks.perform` does."""
    names = sorted(ATTACKS)
    return next(seed for seed in range(10_000) if random.Random(seed).choice(names) == name)


def play(name: str) -> Outcome:
    outcome = run(PICTURES[name]())
    if outcome.broken:
        raise SystemExit(f"{name}: {outcome.broken[0]}")
    return outcome


def picture(name: str, outcome: Outcome) -> str:
    described = (PICTURES[name].__doc__ or "").strip().rstrip(".")
    return draw(outcome.trace, title=described, width=WIDTH)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    stale = []
    for name in PICTURES:
        path, made = FOLDER / f"{name}.svg", picture(name, play(name))
        if not path.exists() or path.read_text(encoding="utf-8") != made:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(made, encoding="utf-8")
    done = "not current" if "--check" in sys.argv else "redrawn"
    print(f"{len(PICTURES)} pictures; {', '.join(stale) or 'none'} {done}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
