"""Attacks that once stopped a party, filled memories or undid others' work: rules 22 to 26 are against them.

Writes on a branch carry no token: either branch may count, because an epoch may include it.
"""

from __future__ import annotations

from antiphon.core.ids import ItemId
from antiphon.core.keys import KeyPair
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.halo.credentials.claims import DeviceAdmission, FeedAdmission, FeedEnd, FeedKind, MemberAdmission, Role
from antiphon.model.message import Genesis, write_genesis
from antiphon.sim.byzantine.attacker import Attacker, as_draft
from antiphon.testing.spans import Forged, SpanWriter

_GREAT_STEP = (1 << 32) - 2
_EDITOR = frozenset({Role.EDITOR})
_MODELS = ("antiphon/array", "antiphon/messenger", "antiphon/object", "antiphon/text")


def runaway_control(foe: Attacker) -> None:
    """Fork the control feed, and write to a data feed as if a block far beyond the fork had a huge lamport."""
    control = foe.peer.member.control
    if control is None:
        return
    feed = bytes(control.feed)
    writer = foe.writer_at(feed)
    foe.push(foe.some(), *writer.extend([_void(foe)]), control=True)
    foe.append(MemberAdmission(bytes(foe.key().key), _EDITOR))
    _run_away(foe, feed)


def runaway_data(foe: Attacker) -> None:
    """The same with a fork of the data feed."""
    item = foe.an_object()
    if item is None:
        return
    feed = foe.data_feed()
    foe.push(foe.some(), *foe.writer_at(feed).extend([foe.setting(item, "a branch")]))
    foe.write(foe.setting(item, "the other branch"))
    _run_away(foe, feed)


def _run_away(foe: Attacker, forked: bytes) -> None:
    """Claim in another feed that blocks beyond a fork lifted the lamport by all that one step once might."""
    item = foe.an_object() or bytes(16)
    writer = second_feed(foe, FeedKind.DATA)
    length = foe.peer.store.record(forked).length
    known = {entry.feed: entry for entry in foe.peer.member.machine.entries()}
    spans = []
    for step in range(1, 4):
        claimed = Entry(forked, length + step, step * _GREAT_STEP, foe.chance.randbytes(32))
        seen = sorted((known if step == 1 else {}) | {forked: claimed})
        entries = tuple(claimed if feed == forked else known[feed] for feed in seen)
        spans.append(writer.forge(Forged(foe.body(item, foe.token()), item=item, advance=entries)))
    foe.push(foe.names(), *spans)


def branch_for_one(foe: Attacker) -> None:
    """Show one neighbour a branch of the data feed with high lamports, and the rest one with low lamports.

    The neighbour writes on, having seen the high one. The next epoch may take the low one.
    """
    item = foe.an_object()
    if item is None:
        return
    feed, count, (one, *others) = foe.data_feed(), foe.chance.randint(1, 12), foe.names()
    records = [record for record in foe.peer.store.feeds(foe.peer.key) if record.length and record.feed != feed]
    seen = [Entry(record.feed, record.length - 1, record.lamport, record.hash) for record in records]
    foe.push([one], *foe.writer_at(feed).extend([foe.setting(item, "high")] * count, seen=seen))
    foe.push(others, *foe.writer_at(feed).extend([foe.setting(item, "low")] * count))


def wrong_places(foe: Attacker) -> None:
    """Name true hashes at wrong places, where honest peers must ask for the same blocks at their true places.

    One neighbour is shown another branch of the data feed than the rest. The blocks of a second feed name the last
    block of that branch, and of an honest feed, by their hashes, but behind their places or in another feed.
    """
    item = foe.an_object()
    if item is None:
        return
    feed, (one, *others) = foe.data_feed(), foe.names()
    honest = [record for record in foe.peer.store.feeds(foe.peer.key) if record.length and record.feed != feed]
    branch = foe.writer_at(feed).extend([foe.setting(item, "shown to one")] * foe.chance.randint(2, 6))
    foe.push([one], *branch)
    foe.push(others, *foe.writer_at(feed).extend([foe.setting(item, "shown to the rest")]))
    last, other = branch[-1].block(branch[-1].count - 1), foe.chance.choice(honest)
    lies = [
        Entry(feed, last.seq + foe.chance.randint(1, 3), last.lamport, last.hash),
        Entry(other.feed, other.length + foe.chance.randint(0, 3), other.lamport, other.hash),
        Entry(other.feed, last.seq, last.lamport, last.hash),
    ]
    writer = second_feed(foe, FeedKind.DATA)
    known = {entry.feed: entry for entry in foe.peer.member.machine.entries()}
    lie = foe.chance.choice(lies)
    # It may count: inside the cut of an epoch, an entry counts by its lamport alone.
    foe.push(foe.names(), *writer.extend([foe.setting(item, "a wrong place")], seen=[*known.values(), lie]))


def too_many_feeds(foe: Attacker) -> None:
    """Admit more data feeds than a device may have, and write to some."""
    item = foe.an_object() or bytes(16)
    for _ in range(foe.chance.randint(9, 40)):
        writer = second_feed(foe, FeedKind.DATA)
        if foe.chance.random() < 0.3:
            seen = foe.peer.member.machine.entries()
            foe.push(foe.names(), *writer.extend([foe.setting(item, "from one feed of many")], seen=seen))


def many_control_feeds(foe: Attacker) -> None:
    """Open more control feeds than a device may have, and let each neighbour hear of them in another order."""
    me, device, seen = foe.peer.identity.pair, foe.peer.device.pair, foe.peer.member.machine.entries()
    spans: list[Span] = []
    for _ in range(foe.chance.randint(9, 14)):
        pair = foe.key()
        spans += foe.stranger(pair).extend([_admission(foe, me, device, pair, FeedKind.CONTROL)], seen=seen)
    for name in foe.names():
        foe.push([name], *foe.chance.sample(spans, len(spans)), control=True)


def strangers(foe: Attacker) -> None:
    """Let outsiders open control feeds, admit data feeds there, and refer to all that they know."""
    for _ in range(foe.chance.randint(5, 20)):
        identity, device, control = (foe.key() for _ in range(3))
        writer = foe.stranger(control)
        drafts = [_admission(foe, identity, device, pair, kind) for pair, kind in _pairs(foe, control)]
        seen = [entry for entry in foe.peer.member.machine.entries() if foe.chance.random() < 0.5]
        foe.push(foe.some(), *writer.extend(drafts, seen=seen), control=True)


def two_models(foe: Attacker) -> None:
    """Begin items with two models on two branches of a feed, with one nonce and lamport, or under the id of the first.

    Others write to what each of them holds.
    """
    writer = second_feed(foe, FeedKind.DATA)
    seen, nonce, names = foe.peer.member.machine.entries(), foe.chance.randbytes(16), foe.names()
    lamport = 1 + max(entry.lamport for entry in seen)
    half, first = max(1, len(names) // 2), b""
    for model, shown in zip(foe.chance.sample(_MODELS, 2), (names[:half], names[half:]), strict=True):
        message = write_genesis(Genesis(nonce, model, 1))
        item = bytes(ItemId.derive(lamport, party=foe.peer.key, feed=writer.pair.key, genesis=message))
        named = first if first and foe.chance.random() < 0.3 else item
        first = first or item
        branch = SpanWriter(writer.pair, foe.peer.key, seed=foe.chance.randrange(1 << 32))
        foe.push(shown, *branch.extend([Draft(Kind.GENESIS, named, message)], seen=seen))
        foe.bait(named)


def scorched_earth(foe: Attacker) -> None:
    """Begin an item that others write to; then end the data feed before its first block."""
    item = foe.peer.party.create(foe.chance.choice(("antiphon/array", "antiphon/messenger")))
    foe.bait(bytes(item.id))

    def end() -> None:
        foe.peer.guarded(lambda: _end_data(foe))

    foe.peer._ask(foe.chance.randint(1_000, 4_000), end)


def _end_data(foe: Attacker) -> None:
    control = foe.peer.member.control
    if control is not None:
        cuts = {bytes(control.feed): 1 + foe.peer.store.record(control.feed).length}
        foe.append(FeedEnd(bytes(foe.peer.identity.key), bytes(foe.peer.device.key), cuts))


def much_seen(foe: Attacker) -> None:
    """Let two control feeds refer to each other in every block: what each block has seen must not be copied."""
    other, control = second_feed(foe, FeedKind.CONTROL), foe.peer.member.control
    if control is None:
        return
    for _ in range(foe.chance.randint(10, 60)):
        foe.append(MemberAdmission(bytes(foe.key().key), _EDITOR))
        spans = other.extend(
            [_void(foe)], seen=[one for one in foe.peer.member.machine.entries() if one.feed != bytes(other.pair.key)]
        )
        for span in spans:
            foe.peer.store.ingest(span)
    foe.peer.member.refresh()


def second_feed(foe: Attacker, kind: FeedKind) -> SpanWriter:
    """Open another feed of this device: a control feed admits itself, a data feed is admitted in the control feed."""
    me, device, pair = foe.peer.identity.pair, foe.peer.device.pair, foe.key()
    writer = foe.stranger(pair)
    if kind is FeedKind.DATA:
        foe.append(_claim(foe, me, device, pair, kind), device, pair)
        return writer
    for span in writer.extend([_admission(foe, me, device, pair, kind)], seen=foe.peer.member.machine.entries()):
        foe.peer.store.ingest(span)
    return writer


def _claim(foe: Attacker, identity: KeyPair, device: KeyPair, pair: KeyPair, kind: FeedKind) -> FeedAdmission:
    who, what = bytes(identity.key), bytes(device.key)
    word = foe.signed(DeviceAdmission(who, what), identity, device)
    return FeedAdmission(bytes(pair.key), kind, who, what, word)


def _admission(foe: Attacker, identity: KeyPair, device: KeyPair, pair: KeyPair, kind: FeedKind) -> Draft:
    return as_draft(foe.signed(_claim(foe, identity, device, pair, kind), device, pair))


def _pairs(foe: Attacker, control: KeyPair) -> list[tuple[KeyPair, FeedKind]]:
    """A control feed, and data feeds that it admits."""
    data = [(foe.key(), FeedKind.DATA) for _ in range(foe.chance.randint(0, 3))]
    return [(control, FeedKind.CONTROL), *data]


def _void(foe: Attacker) -> Draft:
    """A credential that an editor may not give."""
    return as_draft(foe.signed(MemberAdmission(bytes(foe.key().key), _EDITOR)))
