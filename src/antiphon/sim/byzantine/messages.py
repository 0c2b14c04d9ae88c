"""Lies that are told in messages between peers: rubbish, too much, what nobody asked for, what does not verify."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.cid import Cid
from antiphon.core.keys import KeyPair
from antiphon.feed.block import BodyState
from antiphon.feed.span import Span
from antiphon.mesh.limits import CIDS_MAX, HOLDINGS_MAX, MESSAGE_SIZE_MAX, RANGES_MAX
from antiphon.mesh.message import Announcement, Blobs, Body, Holding, Ranges, Want, WantBlobs
from antiphon.sim.byzantine.attacker import Tongue
from antiphon.testing.spans import SpanWriter

_FAR = 1 << 40
_NEVER_MADE = 1 << 30  # the number of a request that nobody has come to


def junk(liar: Tongue) -> None:
    """Bytes that are no message."""
    for name in liar.names():
        liar.send(name, liar.chance.randbytes(liar.chance.choice((1, 40, 4_000))))


def too_large(liar: Tongue) -> None:
    """A message, and lists in messages, that are longer than any may be."""
    (name, *_) = liar.names()
    held = Holding(bytes(32), 0, 1, bytes(32))
    bodies: tuple[Body, ...] = (
        Announcement(0, 1, (held,) * (HOLDINGS_MAX + 1)),
        Want(1, 1, ((bytes(32), 0),) * (RANGES_MAX + 1)),
        Ranges(1, (b"",) * (RANGES_MAX + 1)),
        WantBlobs(1, (Cid.of(b""),) * (CIDS_MAX + 1)),
    )
    liar.send(name, bytes(MESSAGE_SIZE_MAX + 1))
    liar.post(name, liar.chance.choice(bodies))


def unasked(liar: Tongue) -> None:
    """Answers to requests that nobody made: ranges of a stranger's feed, and blobs."""
    span = liar.stranger().write(3)
    for name in liar.names():
        liar.post(name, Ranges(_NEVER_MADE, (span.encode(),)))
        liar.post(name, Blobs(_NEVER_MADE, ((Cid.of(b"junk"), b"junk"),)))


def late_answers(liar: Tongue) -> None:
    """Late answers with a feed that was never announced, with two ranges of one, and to another kind of request."""
    writer = liar.stranger()
    spans = writer.write(2).encode(), writer.write(2).encode()
    for name in liar.names():
        liar.push_bytes(name, *spans[: liar.chance.choice((1, 2))])
        liar.post(name, Blobs(1, ((Cid.of(b"junk"), b"junk"),)))


def hollow_feeds(liar: Tongue) -> None:
    """Feeds are announced that are not there, and more of the real ones than there is, with forks that are none."""
    chance = liar.chance
    holdings = [Holding(chance.randbytes(32), 0, chance.choice((1, _FAR)), bytes(32), bool(n % 2)) for n in range(20)]
    for record in list(liar.peer.store.feeds(liar.peer.key))[:20]:
        fork = chance.choice((None, 0, record.length // 2))
        holdings.append(Holding(record.feed, record.start, record.length + 100, chance.randbytes(32), False, fork))
    for name in liar.names():
        liar.post(name, Announcement(0, 0, tuple(holdings)))


def other_party(liar: Tongue) -> None:
    """A feed of another party, as one of this; and a message about that party."""
    pair = KeyPair.from_seed(liar.chance.randbytes(32))
    span = SpanWriter(pair, pair.key).write(2)
    for name in liar.names():
        liar.post(name, None, party=bytes(pair.key))
        liar.push([name], span)


def false_acknowledgement(liar: Tongue) -> None:
    """What was never announced is acknowledged."""
    for name in liar.names():
        liar.post(name, None, heard=_FAR)


def replay(liar: Tongue) -> None:
    """Everything that is held, again, the newest first."""
    spans = liar.spans()[::-1]
    for name in liar.some():
        liar.push([name], *spans[:30])


def broken_ranges(liar: Tongue) -> None:
    """Others' blocks with one bit turned: in a header, a body, an entry, the signature, what they follow from."""
    spans = liar.spans(foreign=True)
    for name in liar.names() if spans else ():
        span = liar.chance.choice(spans)
        liar.push([name], _broken(span, liar))


def _broken(span: Span, liar: Tongue) -> Span:
    part = liar.chance.choice(("signature", "headers", "advance", "bodies", "previous"))
    before: bytes = getattr(span, part) or span.headers
    part = part if getattr(span, part) else "headers"
    at = liar.chance.randrange(len(before))
    after = before[:at] + bytes((before[at] ^ 1 << liar.chance.randrange(8),)) + before[at + 1 :]
    return replace(span, **{part: after})  # type: ignore[arg-type]


def cut_short(liar: Tongue) -> None:
    """Others' ranges as bytes of which the end is missing, or that go on with rubbish."""
    spans = liar.spans(foreign=True)
    for name in liar.names() if spans else ():
        data = liar.chance.choice(spans).encode()
        liar.push_bytes(name, data[: liar.chance.randrange(len(data))])
        liar.push_bytes(name, data + b"more")


def bodies_withheld(liar: Tongue) -> None:
    """Others' blocks without their bodies, as if they had been erased."""
    for name in liar.some():
        for span in liar.spans(foreign=True)[-8:]:
            states = bytes((liar.chance.choice((BodyState.LEFT_OUT, BodyState.ERASED)),)) * span.count
            liar.push([name], span.with_bodies([], states))


def bad_blobs(liar: Tongue) -> None:
    """Blobs that are not what their CIDs name, of the last snapshot."""
    base = liar.peer.epochs.base
    cid = Cid.of(b"some blob") if base is None else Cid(base.cid)
    for name in liar.names():
        liar.post(name, Blobs(1, ((cid, b"another blob"),)))
        liar.post(name, Blobs(1, (), (cid,)))


def greedy(liar: Tongue) -> None:
    """Everything is asked for, again and again."""
    feeds = tuple((record.feed, record.start) for record in liar.peer.store.feeds(liar.peer.key))[:RANGES_MAX]
    for name in liar.some():
        for number in range(30):
            liar.post(name, Want(_NEVER_MADE + liar.chance.randrange(40), 1 << 40, feeds, (bytes(32),) * (number % 2)))
            liar.post(name, WantBlobs(_NEVER_MADE + number, (Cid.of(b"no such blob"),)))
