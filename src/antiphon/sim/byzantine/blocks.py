"""Lies that stand in blocks of data feeds: bodies, headers and entries that are wrong, and writers without rights."""

from __future__ import annotations

from antiphon.core.ids import ItemId
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Flag, Kind
from antiphon.feed.limits import BODY_SIZE_MAX, LAMPORT_MAX, SALT_SIZE
from antiphon.model.message import wrap
from antiphon.sim.byzantine.attacker import Tongue
from antiphon.testing.spans import Forged

_YEARS_MS = 10 * 365 * 24 * 3_600_000
_KINDS = (Kind.GENESIS, Kind.CHANGE, Kind.MUTATION, Kind.METADATA, Kind.CREDENTIAL)


def rubbish(liar: Tongue) -> None:
    """Bodies that no model reads, of every kind, to items of all models; good ones between them."""
    chance, items = liar.chance, liar.items()
    drafts = []
    for kind in _KINDS:
        item = chance.choice(items) if items else chance.randbytes(16)
        data = chance.randbytes(chance.choice((0, 1, 30, 3_000)))
        wrapped = kind in (Kind.MUTATION, Kind.METADATA) and chance.random() < 0.7
        drafts.append(Draft(kind, item, wrap(kind, data) if wrapped else data))
    target = liar.an_object()
    if target is not None:
        drafts.insert(2, liar.setting(target, "an honest word between lies"))
    liar.write(*drafts, atomic=chance.random() < 0.5)


def large(liar: Tongue) -> None:
    """The largest body that a block may have, full of rubbish."""
    item = liar.an_object() or bytes(16)
    size = BODY_SIZE_MAX - SALT_SIZE if liar.chance.random() < 0.2 else 100_000
    liar.write(Draft(Kind.MUTATION, item, wrap(Kind.MUTATION, bytes(size - 8))[:size]))


def stolen_ids(liar: Tongue) -> None:
    """Geneses of items that are others', or not to be had."""
    chance, items = liar.chance, liar.items()
    lamport = liar.peer.store.record(liar.data_feed()).lamport
    ahead = ItemId.derive(lamport + 50, party=liar.peer.key, feed=liar.data_feed(), nonce=bytes(16))
    ids = [chance.choice(items) if items else bytes(16), ahead, bytes(16), b"\xff" * 16]
    for item in ids:
        models = ("antiphon/object", "antiphon/text", "no/such-model")
        liar.write(liar.genesis(item, chance.choice(models)))
    liar.write(liar.setting(ahead, liar.token()), liar.setting(b"\xff" * 16, liar.token()))


def false_time(liar: Tongue) -> None:
    """Messages that were written years ago, or will be."""
    item = liar.an_object()
    if item is not None:
        created = liar.peer.clock.now_ms() + liar.chance.choice((-_YEARS_MS, _YEARS_MS))
        writer = liar.peer.member.open_data_feed()
        writer.extend([liar.setting(item, "when?")], created_ms=max(0, created))


def false_headers(liar: Tongue) -> None:
    """Headers that break a rule, signed by the feed's key: lamports, positions, flags, sizes."""
    item = liar.an_object() or bytes(16)
    feed = liar.data_feed()
    writer = liar.pen(feed)
    length, lamport = writer.record.length, writer.record.lamport
    body = liar.body(item, liar.token())
    wrong = liar.chance.choice(
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
    liar.push(liar.some(), writer.forge(wrong, Forged(liar.body(item, liar.token()), item=item)))


def false_entries(liar: Tongue) -> None:
    """A message that has seen what is not there: another hash, another lamport, a block of the future.

    It waits, or ends its feed. It may count where what it has seen turns out to lie beyond a cut.
    """
    others = [record for record in liar.peer.store.feeds(liar.peer.key) if record.length and record.end > record.length]
    item = liar.an_object()
    if item is None or not others:
        return
    record = liar.chance.choice(sorted(others, key=lambda record: record.feed))
    last = record.length - 1
    entry = liar.chance.choice(
        (
            Entry(record.feed, last, record.lamport, liar.chance.randbytes(32)),
            Entry(record.feed, last + 1_000, record.lamport + 1_000, liar.chance.randbytes(32)),
            Entry(record.feed, last, record.lamport + 500, record.hash),
            Entry(liar.chance.randbytes(32), 5, 5, bytes(32)),
        )
    )
    writer = liar.peer.member.open_data_feed()
    writer.see(entry)
    liar.write(liar.setting(item, "a message that has seen too much"))


def stranger(liar: Tongue) -> None:
    """A feed that nobody has admitted writes into others' items."""
    item = liar.an_object() or bytes(16)
    writer = liar.stranger()
    seen = [entry for entry in liar.peer.member.machine.entries() if liar.chance.random() < 0.5]
    spans = writer.extend([liar.setting(item, liar.token()) for _ in range(3)], seen=seen)
    liar.push(liar.some(), *spans)


def in_others_names(liar: Tongue) -> None:
    """Blocks that go on another's feed, signed with the liar's own key or with none."""
    item = liar.an_object() or bytes(16)
    own = {bytes(w.feed) for w in (liar.peer.member.control, liar.peer.member.data) if w is not None}
    records = sorted((r for r in liar.peer.store.feeds(liar.peer.key) if r.feed not in own), key=lambda r: r.feed)
    if not records:
        return
    record = liar.chance.choice(records)
    writer = liar.stranger()
    writer.record = record
    span = writer.forge(Forged(liar.body(item, liar.token()), item=item))
    liar.push(liar.names(), span)
