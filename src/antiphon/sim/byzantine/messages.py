"""Attacks with messages between peers: malformed, oversized, unrequested, or with data that does not verify."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.cid import Cid
from antiphon.core.keys import KeyPair
from antiphon.feed.block import BodyState
from antiphon.feed.span import Span
from antiphon.mesh.replication.limits import CIDS_MAX, HOLDINGS_MAX, MESSAGE_SIZE_MAX, RANGES_MAX
from antiphon.mesh.replication.message import Announcement, Blobs, Body, Holding, Ranges, Want, WantBlobs
from antiphon.sim.byzantine.attacker import Attacker
from antiphon.testing.spans import SpanWriter

_FAR = 1 << 40
_NEVER_MADE = 1 << 30  # the id of a request that was never made


def junk(foe: Attacker) -> None:
    """Send random bytes."""
    for name in foe.names():
        foe.send(name, foe.chance.randbytes(foe.chance.choice((1, 40, 4_000))))


def too_large(foe: Attacker) -> None:
    """Send a message, and lists in a message, above the limits."""
    (name, *_) = foe.names()
    held = Holding(bytes(32), 0, 1, bytes(32))
    bodies: tuple[Body, ...] = (
        Announcement(0, 1, (held,) * (HOLDINGS_MAX + 1)),
        Want(1, 1, ((bytes(32), 0),) * (RANGES_MAX + 1)),
        Ranges(1, (b"",) * (RANGES_MAX + 1)),
        WantBlobs(1, (Cid.of(b""),) * (CIDS_MAX + 1)),
    )
    foe.send(name, bytes(MESSAGE_SIZE_MAX + 1))
    foe.post(name, foe.chance.choice(bodies))


def unasked(foe: Attacker) -> None:
    """Answer requests that were never made, with spans of an unknown feed and with blobs."""
    span = foe.stranger().write(3)
    for name in foe.names():
        foe.post(name, Ranges(_NEVER_MADE, (span.encode(),)))
        foe.post(name, Blobs(_NEVER_MADE, ((Cid.of(b"junk"), b"junk"),)))


def late_answers(foe: Attacker) -> None:
    """Send late answers with a feed that was never announced, with two spans of one feed, or of another kind."""
    writer = foe.stranger()
    spans = writer.write(2).encode(), writer.write(2).encode()
    for name in foe.names():
        foe.push_bytes(name, *spans[: foe.chance.choice((1, 2))])
        foe.post(name, Blobs(1, ((Cid.of(b"junk"), b"junk"),)))


def hollow_feeds(foe: Attacker) -> None:
    """Announce feeds that do not exist, more blocks of real feeds than exist, and forks that did not happen."""
    chance = foe.chance
    holdings = [Holding(chance.randbytes(32), 0, chance.choice((1, _FAR)), bytes(32), bool(n % 2)) for n in range(20)]
    for record in list(foe.peer.store.feeds(foe.peer.key))[:20]:
        fork = chance.choice((None, 0, record.length // 2))
        holdings.append(Holding(record.feed, record.start, record.length + 100, chance.randbytes(32), False, fork))
    for name in foe.names():
        foe.post(name, Announcement(0, 0, tuple(holdings)))


def other_party(foe: Attacker) -> None:
    """Present a feed of another party as one of this party, and send a message about that party."""
    pair = KeyPair.from_seed(foe.chance.randbytes(32))
    span = SpanWriter(pair, pair.key).write(2)
    for name in foe.names():
        foe.post(name, None, party=bytes(pair.key))
        foe.push([name], span)


def false_acknowledgement(foe: Attacker) -> None:
    """Acknowledge announcements that were never made."""
    for name in foe.names():
        foe.post(name, None, heard=_FAR)


def replay(foe: Attacker) -> None:
    """Send all stored spans again, the newest first."""
    spans = foe.spans()[::-1]
    for name in foe.some():
        foe.push([name], *spans[:30])


def broken_ranges(foe: Attacker) -> None:
    """Send others' spans with one bit flipped: in a header, a body, an entry, the signature or the previous hash."""
    spans = foe.spans(foreign=True)
    for name in foe.names() if spans else ():
        span = foe.chance.choice(spans)
        foe.push([name], _broken(span, foe))


def _broken(span: Span, foe: Attacker) -> Span:
    part = foe.chance.choice(("signature", "headers", "advance", "bodies", "previous"))
    before: bytes = getattr(span, part) or span.headers
    part = part if getattr(span, part) else "headers"
    at = foe.chance.randrange(len(before))
    after = before[:at] + bytes((before[at] ^ 1 << foe.chance.randrange(8),)) + before[at + 1 :]
    return replace(span, **{part: after})  # type: ignore[arg-type]


def cut_short(foe: Attacker) -> None:
    """Send others' spans truncated, or with bytes appended."""
    spans = foe.spans(foreign=True)
    for name in foe.names() if spans else ():
        data = foe.chance.choice(spans).encode()
        foe.push_bytes(name, data[: foe.chance.randrange(len(data))])
        foe.push_bytes(name, data + b"more")


def bodies_withheld(foe: Attacker) -> None:
    """Send others' blocks without their bodies, as if they had been erased or left out."""
    for name in foe.some():
        for span in foe.spans(foreign=True)[-8:]:
            states = bytes((foe.chance.choice((BodyState.LEFT_OUT, BodyState.ERASED)),)) * span.count
            foe.push([name], span.with_bodies([], states))


def bad_blobs(foe: Attacker) -> None:
    """Send wrong bytes for a CID of the last snapshot, and claim that the blob does not exist."""
    base = foe.peer.epochs.base
    cid = Cid.of(b"some blob") if base is None else Cid(base.cid)
    for name in foe.names():
        foe.post(name, Blobs(1, ((cid, b"another blob"),)))
        foe.post(name, Blobs(1, (), (cid,)))


def greedy(foe: Attacker) -> None:
    """Request everything, many times."""
    feeds = tuple((record.feed, record.start) for record in foe.peer.store.feeds(foe.peer.key))[:RANGES_MAX]
    for name in foe.some():
        for number in range(30):
            foe.post(name, Want(_NEVER_MADE + foe.chance.randrange(40), 1 << 40, feeds, (bytes(32),) * (number % 2)))
            foe.post(name, WantBlobs(_NEVER_MADE + number, (Cid.of(b"no such blob"),)))
