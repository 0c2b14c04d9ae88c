"""A stranger, a member of nothing here, a revoked member and a device without the party get one and the same answer.

The host answers for the control state: what sessions tell such devices, which is nothing, is tested with theirs.
"""

from __future__ import annotations

import random

import pytest
from tests.budget import budget
from tests.mesh.link.link_pair import HandHost, Prober, party

from antiphon.mesh.link.frames import Data, Digest, Frame, Ping, Show, Tags, UnknownFrame
from antiphon.mesh.link.party_tags import ANSWERING, DIALLER, PartyTags

CHESS, OTHERS = party("chess"), [party(f"party {number}") for number in range(20)]
TRIES = budget(50, 2_000)


def stranger() -> HandHost:
    """A host that follows no party of which the prober has heard."""
    return HandHost(follows=set(OTHERS))


def no_such_party() -> HandHost:
    return HandHost()


def non_member() -> HandHost:
    """A host that follows the party: the prober knows its key, by an invitation perhaps."""
    return HandHost(follows={CHESS, *OTHERS})


def revoked() -> HandHost:
    """A host that has spoken to the prober's device about the party, on another link, until it was revoked."""
    host = HandHost({CHESS}, follows=set(OTHERS))
    Prober(host, "earlier").link.judge()
    host.speaks = set()
    host.follows.add(CHESS)
    return host


def moves(chance: random.Random, prober: Prober) -> list[Frame]:
    """What a prober says that knows the party's key, in one step."""
    mine, theirs = PartyTags(prober.channel.id, DIALLER), PartyTags(prober.channel.id, ANSWERING)
    tag, other = mine.tag(CHESS), theirs.tag(CHESS)
    box = mine.close(CHESS, 0, chance.randbytes(chance.choice((40, 400, 4_000))))
    frames: list[Frame] = [
        Tags((tag, *(chance.randbytes(16) for _ in range(15)))),
        Show(tag, box),
        Show(chance.randbytes(16), box),
        Show(tag, chance.randbytes(60)),
        Digest(tag, bytes(32)),
        Data(tag, True, True, chance.randbytes(30)),
        Data(other, True, False, chance.randbytes(30)),
        Ping(chance.randbytes(8)),
        UnknownFrame(b"\x80" + chance.randbytes(4)),
    ]
    return chance.choices(frames, k=chance.randint(0, 4))


def answers(host: HandHost, number: int) -> tuple[bytes, list[tuple[str, int]]]:
    """Return all bytes that a prober gets, and the kinds and sizes of frames, each with what it was the answer to."""
    chance, prober = random.Random(number), Prober(host, f"{number}")
    said: list[tuple[str, int]] = [(type(frame).__name__, step) for step, frame in enumerate(prober.first)]
    for step in range(12):
        said += [(type(frame).__name__, step) for frame in prober.say(*moves(chance, prober))]
        said += [(type(frame).__name__, step) for frame in prober.wait(chance.choice((0, 300, 1_000, 25_000)))]
        prober.link.judge()
    return prober.heard, said


@pytest.mark.parametrize("case", [no_such_party, non_member, revoked], ids=lambda case: str(case.__name__))
def test_every_probe_gets_the_same_bytes(case: object) -> None:
    assert callable(case)
    for number in range(TRIES):
        expected, found = answers(stranger(), number), answers(case(), number)
        assert found[1] == expected[1]
        assert found[0] == expected[0]


def test_a_member_gets_another_answer() -> None:
    assert any(answers(HandHost({CHESS}), number) != answers(stranger(), number) for number in range(20))
