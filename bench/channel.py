"""Guards the channel between two devices: the cost of a record beside the bare cipher's, a handshake, a silent end.

The suite on the wire was chosen by these figures. A change that copies frames, or parses them in Python, shows here.

    .venv/bin/python bench/channel.py --json [--quick]

1. The ciphers that Noise can have, of two libraries, for small records and for large ones: the anchors.
2. `Channel.seal` and `Channel.receive`, beside the cipher that they use.
3. Bytes that arrive one by one, and a megabyte at a time.
4. Handshakes, both ends together, and the memory of a channel that nobody dials.

`QUICK_GOALS` are looser: a short measurement on a busy machine moves by half.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from nacl.bindings import crypto_aead_chacha20poly1305_ietf_decrypt, crypto_aead_chacha20poly1305_ietf_encrypt

from antiphon.core.ports import SystemRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.limits import FRAME_SIZE_MAX
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.testing.parties import pair_of
from harness.report import Goal, Report, alternate, run_in_folder

SMALL = 200
SIZES = (16, SMALL, 4096, FRAME_SIZE_MAX)
ALICE, BOB = pair_of("alice laptop"), pair_of("bob laptop")
KEY, NONCE = bytes(range(32)), bytes(12)


class Goals(NamedTuple):
    """The figures that a run is held to."""

    large: float  # × the speed of the bare cipher, at least; sealed and opened
    small: float  # × the time of the bare cipher for 200 bytes, at most
    growth: float  # × the cost of a byte that arrives alone, in a record 64 times as large, at most
    handshake: float  # ms for both ends, at most
    silent: float  # bytes of a channel that nobody dials, at most


FULL_GOALS = Goals(large=0.6, small=4.0, growth=1.3, handshake=4.0, silent=1024.0)
QUICK_GOALS = Goals(large=0.4, small=6.0, growth=1.8, handshake=8.0, silent=1024.0)


class Plan(NamedTuple):
    """How much is measured."""

    rounds: int
    seconds: float  # for each figure of a round
    goals: Goals


FULL = Plan(7, 0.2, FULL_GOALS)
QUICK = Plan(3, 0.05, QUICK_GOALS)
TINY = Plan(1, 0.001, QUICK_GOALS)


def cost(act: Callable[[], object], seconds: float) -> float:
    """Return the seconds that one act takes, in a loop that lasts at least so long."""
    count, began = 0, time.perf_counter()
    while True:
        for _ in range(8):
            act()
        count += 8
        if (spent := time.perf_counter() - began) >= seconds:
            return spent / count


def by_cryptography(cipher: AESGCM | ChaCha20Poly1305, plain: bytes) -> Callable[[], object]:
    """Return an act that seals and opens."""
    sealed = cipher.encrypt(NONCE, plain, None)

    def act() -> object:
        return cipher.encrypt(NONCE, plain, None), cipher.decrypt(NONCE, sealed, None)

    return act


def by_pynacl(plain: bytes) -> Callable[[], object]:
    """Return an act that seals and opens with ChaChaPoly."""
    seal, open_ = crypto_aead_chacha20poly1305_ietf_encrypt, crypto_aead_chacha20poly1305_ietf_decrypt
    sealed = seal(plain, None, NONCE, KEY)

    def act() -> object:
        return seal(plain, None, NONCE, KEY), open_(sealed, None, NONCE, KEY)

    return act


def measure_ciphers(plan: Plan, report: Report) -> None:
    """Measure what each library takes to seal and to open."""
    found = {}
    for size in SIZES:
        plain = os.urandom(size)
        acts = {
            "AESGCM, cryptography": by_cryptography(AESGCM(KEY), plain),
            "ChaChaPoly, cryptography": by_cryptography(ChaCha20Poly1305(KEY), plain),
            "ChaChaPoly, PyNaCl": by_pynacl(plain),
        }
        found[size] = in_turns(plan, acts)
    rows = [(f"{size:,}", *(f"{value * 1e6:.2f}" for value in costs.values())) for size, costs in found.items()]
    report.figures["ciphers"] = {str(size): costs for size, costs in found.items()}
    report.table("Ciphers: µs to seal and to open", ("bytes", *found[SMALL]), rows)


def in_turns(plan: Plan, acts: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median cost of each act, measured in turns."""
    measures = [partial(cost, act, plan.seconds) for act in acts.values()]
    return dict(zip(acts, map(median, alternate(plan.rounds, measures)), strict=True))


def connect(seen: SeenHandshakes) -> tuple[Channel, Channel]:
    """Return two ends of an open channel."""
    chance = SystemRandomness()
    one = Channel.dial(ALICE, BOB.key, now_ms=0, randomness=chance)
    other = Channel.answer(BOB, seen, now_ms=0, randomness=chance)
    other.receive(one.outgoing())
    one.receive(other.outgoing())
    other.receive(one.outgoing())
    assert other.is_open
    return one, other


def measure_records(plan: Plan, report: Report) -> None:
    """Measure frames from one end to the other, beside the bare cipher."""
    one, other = connect(SeenHandshakes())
    rows, found = [], dict[int, dict[str, float]]()
    for size in SIZES:
        frame = os.urandom(size)

        def carry(frame: bytes = frame) -> object:
            return other.receive(one.seal(frame))

        costs = found[size] = in_turns(plan, {"channel": carry, "cipher": by_cryptography(AESGCM(KEY), frame)})
        rate = size / costs["channel"] / 1e9
        rows.append((f"{size:,}", *(f"{value * 1e6:.2f}" for value in costs.values()), f"{rate:.2f}"))
    report.figures["records"] = {str(size): costs for size, costs in found.items()}
    report.table("Records: µs to seal and to receive", ("bytes", "channel", "bare cipher", "GB/s"), rows)
    small, large = found[SMALL], found[FRAME_SIZE_MAX]
    report.goals += [
        Goal.at_least(
            "a record of 64 KiB, × the bare cipher's speed", large["cipher"] / large["channel"], plan.goals.large
        ),
        Goal.below(
            "a record of 200 bytes, × the bare cipher's time", small["channel"] / small["cipher"], plan.goals.small
        ),
    ]


def measure_pieces(plan: Plan, report: Report) -> None:
    """Measure how bytes arrive: one by one in small and in large records, and a megabyte at a time."""
    one, other = connect(SeenHandshakes())

    def bytewise(size: int) -> Callable[[], float]:
        def measure() -> float:
            total = 1 << 18 if plan.seconds > 0.1 else 1 << 16
            stream = b"".join(one.seal(bytes(size)) for _ in range(total // size))
            began = time.perf_counter()
            for at in range(len(stream)):
                other.receive(stream[at : at + 1])
            return (time.perf_counter() - began) / len(stream)

        return measure

    def megabyte() -> float:
        stream = b"".join(one.seal(bytes(SMALL)) for _ in range((1 << 20) // SMALL))
        began = time.perf_counter()
        other.receive(stream)
        return (time.perf_counter() - began) / len(stream)

    small, large, whole = map(median, alternate(plan.rounds, [bytewise(1 << 10), bytewise(FRAME_SIZE_MAX), megabyte]))
    report.figures["pieces"] = {"1 KiB by bytes": small, "64 KiB by bytes": large, "a megabyte": whole}
    rows = [
        ("records of 1 KiB, byte by byte", f"{small * 1e9:,.0f}"),
        ("records of 64 KiB, byte by byte", f"{large * 1e9:,.0f}"),
        ("records of 200 bytes, a megabyte at a time", f"{whole * 1e9:,.1f}"),
    ]
    report.table("Pieces: ns for each byte received", ("", "ns"), rows)
    report.goals.append(Goal.below("a byte alone in a large record, × a small one's", large / small, plan.goals.growth))


def measure_beginnings(plan: Plan, report: Report) -> None:
    """Measure handshakes, and channels that wait for one."""
    seen = SeenHandshakes()
    handshake = in_turns(plan, {"handshake": lambda: connect(seen)})["handshake"]
    chance = SystemRandomness()
    tracemalloc.start()
    waiting = [Channel.answer(BOB, seen, now_ms=0, randomness=chance) for _ in range(1000)]
    silent = tracemalloc.get_traced_memory()[0] / len(waiting)
    tracemalloc.stop()
    report.figures["beginnings"] = {"handshake": handshake, "silent": silent}
    report.goals += [
        Goal.below("a handshake, both ends, ms", handshake * 1e3, plan.goals.handshake),
        Goal.below("a channel that nobody dials, bytes", silent, plan.goals.silent),
    ]


def main(plan: Plan | None = None) -> None:
    def measure(quick: bool, report: Report, _: Path) -> None:
        chosen = plan or (QUICK if quick else FULL)
        for part in (measure_ciphers, measure_records, measure_pieces, measure_beginnings):
            report.progress(part.__name__.replace("_", " "))
            part(chosen, report)

    run_in_folder("The channel between two devices", __doc__ or "", measure)


if __name__ == "__main__":
    main()
