"""Attacks with blocks of data feeds: wrong bodies, headers and timeframe entries, and writers without rights."""

from __future__ import annotations

from antiphon.core.ids import ItemId
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import BODY_SIZE_MAX, LAMPORT_MAX, SALT_SIZE
from antiphon.model.message import wrap
from antiphon.sim.byzantine.attacker import Attacker
from antiphon.testing.spans import Forged

_YEARS_MS = 10 * 365 * 24 * 3_600_000
_KINDS = (Kind.GENESIS, Kind.CHANGE, Kind.MUTATION, Kind.METADATA, Kind.CREDENTIAL)


def rubbish(foe: Attacker) -> None:
    """Write bodies of every kind that no model can read, to items of all models, with valid ones between them."""
    chance, items = foe.chance, foe.items()
    drafts = []
    for kind in _KINDS:
        item = chance.choice(items) if items else chance.randbytes(16)
        data = chance.randbytes(chance.choice((0, 1, 30, 3_000)))
        wrapped = kind in (Kind.MUTATION, Kind.METADATA) and chance.random() < 0.7
        drafts.append(Draft(kind, item, wrap(kind, data) if wrapped else data))
    target = foe.an_object()
    if target is not None:
        drafts.insert(2, foe.setting(target, "an honest word between lies"))
    foe.write(*drafts, atomic=chance.random() < 0.5)


def large(foe: Attacker) -> None:
    """Write the largest body that a block may have, full of zeros."""
    item = foe.an_object() or bytes(16)
    size = BODY_SIZE_MAX - SALT_SIZE if foe.chance.random() < 0.2 else 100_000
    foe.write(Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, bytes(size - 8))[:size]))


def stolen_ids(foe: Attacker) -> None:
    """Write a genesis for items that exist already, or with ids that no writer can have."""
    chance, items = foe.chance, foe.items()
    lamport = foe.peer.store.record(foe.data_feed()).lamport
    ahead = ItemId.derive(lamport + 50, party=foe.peer.key, feed=foe.data_feed(), genesis=bytes(16))
    ids = [chance.choice(items) if items else bytes(16), ahead, bytes(16), b"\xff" * 16]
    for item in ids:
        models = ("antiphon/object", "antiphon/text", "no/such-model")
        foe.write(foe.genesis(item, chance.choice(models)))
    foe.write(foe.setting(ahead, foe.token()), foe.setting(b"\xff" * 16, foe.token()))


def false_time(foe: Attacker) -> None:
    """Write messages dated years in the past or in the future."""
    item = foe.an_object()
    if item is not None:
        created = foe.peer.clock.now_ms() + foe.chance.choice((-_YEARS_MS, _YEARS_MS))
        writer = foe.peer.member.open_data_feed()
        writer.extend([foe.setting(item, "when?")], created_ms=max(0, created))


def false_headers(foe: Attacker) -> None:
    """Sign headers that break a rule: lamports, positions, flags, sizes."""
    item = foe.an_object() or bytes(16)
    feed = foe.data_feed()
    writer = foe.writer_at(feed)
    length, lamport = writer.record.length, writer.record.lamport
    body = foe.body(item, foe.token())
    wrong = foe.chance.choice(
        (
            Forged(body, item=item, lamport=max(0, lamport - 3)),
            Forged(body, item=item, lamport=lamport),
            Forged(body, item=item, lamport=lamport + (1 << 33)),
            Forged(body, item=item, lamport=LAMPORT_MAX + 1),
            Forged(body, item=item, seq=length + 1),
            Forged(body, item=item, version=7),
            Forged(body, item=item, kind=99),
            Forged(body, item=item, flags=Flag.CONTINUED),
            Forged(body, item=item, flags=0x80),
            Forged(body, item=item, body_hash=bytes(32)),
            Forged(body, item=item, body_size=3),
            Forged(body, item=item, created_ms=(1 << 62) + 1),
        )
    )
    foe.push(foe.some(), writer.forge(wrong, Forged(foe.body(item, foe.token()), item=item)))


def false_entries(foe: Attacker) -> None:
    """Write a message whose timeframe names a block that does not exist: a wrong hash or lamport, or a future block.

    The message waits, or ends its feed. It may count if the block that it names turns out to be beyond a cut.
    """
    others = [record for record in foe.peer.store.feeds(foe.peer.key) if record.length and record.end > record.length]
    item = foe.an_object()
    if item is None or not others:
        return
    record = foe.chance.choice(sorted(others, key=lambda record: record.feed))
    last = record.length - 1
    entry = foe.chance.choice(
        (
            Entry(record.feed, last, record.lamport, foe.chance.randbytes(32)),
            Entry(record.feed, last + 1_000, record.lamport + 1_000, foe.chance.randbytes(32)),
            Entry(record.feed, last, record.lamport + 500, record.hash),
            Entry(foe.chance.randbytes(32), 5, 5, bytes(32)),
        )
    )
    writer = foe.peer.member.open_data_feed()
    writer.see(entry)
    foe.write(foe.setting(item, "a message that has seen too much"))


def stranger(foe: Attacker) -> None:
    """Write into others' items from a feed that is not admitted."""
    item = foe.an_object() or bytes(16)
    writer = foe.stranger()
    seen = [entry for entry in foe.peer.member.machine.entries() if foe.chance.random() < 0.5]
    spans = writer.extend([foe.setting(item, foe.token()) for _ in range(3)], seen=seen)
    foe.push(foe.some(), *spans)


def in_others_names(foe: Attacker) -> None:
    """Continue another device's feed with blocks signed by a key that is not the feed's."""
    item = foe.an_object() or bytes(16)
    own = {bytes(w.feed) for w in (foe.peer.member.control, foe.peer.member.data) if w is not None}
    records = sorted((r for r in foe.peer.store.feeds(foe.peer.key) if r.feed not in own), key=lambda r: r.feed)
    if not records:
        return
    record = foe.chance.choice(records)
    writer = foe.stranger()
    writer.record = record
    span = writer.forge(Forged(foe.body(item, foe.token()), item=item))
    foe.push(foe.names(), span)
