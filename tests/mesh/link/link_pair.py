"""Two links over one channel, with hosts that a test holds in its hands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from antiphon.core.keys import KeyPair
from antiphon.core.ports import SeededRandomness
from antiphon.mesh.channel.channel import Channel
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes
from antiphon.mesh.link.frames import Frame, decode, encode
from antiphon.mesh.link.link import Link
from antiphon.testing.parties import pair_of

NOW_MS = 1_700_000_000_000
ALICE, BOB = pair_of("alice's device"), pair_of("bob's device")


def party(name: str) -> bytes:
    """The key of a party."""
    return bytes(pair_of(name).key)


@dataclass(eq=False)
class HandHost:
    """A host that admits what a test says, and remembers what it was told."""

    speaks: set[bytes] = field(default_factory=set)
    follows: set[bytes] = field(default_factory=set)
    digests: dict[bytes, bytes] = field(default_factory=dict)
    told: list[tuple[str, bytes]] = field(default_factory=list)
    messages: list[tuple[bytes, bytes, bool]] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)
    room: list[bytes] = field(default_factory=list)

    def proven(self, link: Link) -> None:
        self.seen.append(link.device)

    def admitted(self, device: bytes) -> Iterable[bytes]:
        return sorted(self.speaks)

    def held(self) -> Iterable[bytes]:
        return self.speaks | self.follows

    def digest(self, party: bytes) -> bytes:
        return self.digests.get(party, bytes(32))

    def matched(self, link: Link, party: bytes, differs: bool) -> None:
        self.told.append(("differs" if differs else "equal", party))

    def unmatched(self, link: Link, party: bytes) -> None:
        self.told.append(("unmatched", party))

    def received(self, link: Link, party: bytes, message: bytes, shown: bool) -> None:
        self.messages.append((party, message, shown))

    def has_room(self, link: Link, party: bytes) -> None:
        self.room.append(party)


class LinkPair:
    """Alice has dialled Bob. Bytes pass when the test says so."""

    def __init__(self, seed: str = "", one: HandHost | None = None, other: HandHost | None = None) -> None:
        self.one = one or HandHost()
        self.other = other or HandHost()
        self.now_ms = NOW_MS
        self.alice = Link(
            Channel.dial(ALICE, BOB.key, now_ms=NOW_MS, randomness=SeededRandomness(f"{seed} dialler")),
            self.one,
            randomness=SeededRandomness(f"{seed} alice"),
            now_ms=NOW_MS,
        )
        self.bob = Link(
            Channel.answer(BOB, SeenHandshakes(), now_ms=NOW_MS, randomness=SeededRandomness(f"{seed} answering")),
            self.other,
            randomness=SeededRandomness(f"{seed} bob"),
            now_ms=NOW_MS,
        )

    def pump(self, budget: int = 1 << 20) -> None:
        """Carry bytes until neither end has any."""
        for _ in range(1_000):
            there, back = self.alice.outgoing(budget), self.bob.outgoing(budget)
            if not there and not back:
                return
            self.bob.receive(there, self.now_ms)
            self.alice.receive(back, self.now_ms)
        raise AssertionError("the links do not come to rest")

    def wait(self, ms: int) -> None:
        """Let time pass, and then bytes."""
        self.now_ms += ms
        self.alice.tick(self.now_ms)
        self.bob.tick(self.now_ms)
        self.pump()


class Prober:
    """A device that speaks to a link frame by frame, as no honest program does."""

    def __init__(self, host: HandHost, seed: str = "", own: KeyPair = ALICE) -> None:
        self.host = host
        self.now_ms = NOW_MS
        self.channel = Channel.dial(own, BOB.key, now_ms=NOW_MS, randomness=SeededRandomness(f"{seed} dialler"))
        self.link = Link(
            Channel.answer(BOB, SeenHandshakes(), now_ms=NOW_MS, randomness=SeededRandomness(f"{seed} answering")),
            host,
            randomness=SeededRandomness(f"{seed} bob"),
            now_ms=NOW_MS,
        )
        self.heard = b""  # all bytes that the answering end has sent
        self.link.receive(self.channel.outgoing(), NOW_MS)
        self._hear()
        self.link.receive(self.channel.outgoing(), NOW_MS)
        self.first = self.frames()

    def _hear(self) -> list[bytes]:
        data = self.link.outgoing(1 << 20)
        self.heard += data
        return self.channel.receive(data)

    def frames(self) -> list[Frame]:
        """What the link says now."""
        return [decode(frame) for frame in self._hear()]

    def say(self, *frames: Frame | bytes) -> list[Frame]:
        """Send frames, and return what the link says at once."""
        for frame in frames:
            data = frame if isinstance(frame, bytes) else encode(frame)
            self.link.receive(self.channel.seal(data), self.now_ms)
        return self.frames()

    def wait(self, ms: int) -> list[Frame]:
        """Let time pass, and return what the link says then."""
        self.now_ms += ms
        self.link.tick(self.now_ms)
        return self.frames()


def names(frames: Iterable[Frame]) -> Iterator[str]:
    """The kinds of frames."""
    return (type(frame).__name__ for frame in frames)
