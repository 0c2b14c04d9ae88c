"""Attacks with credentials: grant oneself rights, revoke others, admit accomplices. All of them must be void."""

from __future__ import annotations

from antiphon.core.ids import SYSTEM_ITEM
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.acts.act import credential_of
from antiphon.halo.credentials.claims import (
    DeviceAdmission,
    Equivocated,
    Erasure,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    GroupAdmission,
    MemberAdmission,
    Narrowing,
    Policy,
    Position,
    Role,
)
from antiphon.sim.byzantine.attacker import Attacker, as_draft

_OWNER = frozenset({Role.OWNER})


def self_promotion(foe: Attacker) -> None:
    """Make the attacker an owner; also make a group of its own an owner, with itself as a member."""
    me, group = bytes(foe.peer.identity.key), foe.key()
    foe.append(MemberAdmission(me, _OWNER))
    foe.append(MemberAdmission(bytes(group.key), _OWNER))
    foe.append(GroupAdmission(bytes(group.key), me), foe.peer.device.pair, group)


def puppet(foe: Attacker) -> None:
    """Admit an accomplice, who opens feeds, makes the attacker an owner, and writes."""
    identity, device, control, data = (foe.key() for _ in range(4))
    who, what = bytes(identity.key), bytes(device.key)
    foe.append(MemberAdmission(who, frozenset({Role.OWNER, Role.EDITOR})))
    word = foe.signed(DeviceAdmission(who, what), identity, device)
    drafts = [
        as_draft(foe.signed(FeedAdmission(bytes(pair.key), kind, who, what, word), device, pair))
        for pair, kind in ((control, FeedKind.CONTROL), (data, FeedKind.DATA))
    ]
    drafts.append(as_draft(foe.signed(MemberAdmission(bytes(foe.peer.identity.key), _OWNER), device)))
    seen = list(foe.peer.member.machine.entries())
    foe.push(foe.names(), *foe.stranger(control).extend(drafts, seen=seen), control=True)
    item = foe.an_object() or bytes(16)
    foe.push(foe.names(), *foe.stranger(data).extend([foe.setting(item, foe.token())], seen=seen))


def coup(foe: Attacker) -> None:
    """As an editor, revoke all other members with cuts at zero, the founder first; some as expired."""
    for other in foe.others:
        subject = bytes(other.identity.key)
        foe.append(Narrowing(subject, frozenset(), {}, expired=foe.chance.random() < 0.3))


def others_feeds(foe: Attacker) -> None:
    """End the feeds of other devices."""
    owners = sorted(foe.peer.member.machine.authority.owners().items())
    for other in foe.others:
        identity = bytes(other.identity.key)
        cuts = {feed: 0 for feed, owner in owners if owner.identity == identity}
        foe.append(FeedEnd(identity, bytes(other.device.key), cuts))
        foe.append(FeedEnd(identity, bytes(foe.peer.device.key), cuts))


def false_device(foe: Attacker) -> None:
    """Claim a device of the attacker as one of the founder's, and the founder's data feed as the attacker's own."""
    founder = foe.others[0]
    identity, device, control = bytes(founder.identity.key), foe.key(), foe.key()
    own = foe.peer.identity.pair
    word = foe.signed(DeviceAdmission(identity, bytes(device.key)), own, device)
    claim = FeedAdmission(bytes(control.key), FeedKind.CONTROL, identity, bytes(device.key), word)
    seen = list(foe.peer.member.machine.entries())
    drafts = [
        as_draft(foe.signed(claim, device, control)),
        as_draft(foe.signed(MemberAdmission(bytes(own.key), _OWNER), device)),
    ]
    foe.push(foe.names(), *foe.stranger(control).extend(drafts, seen=seen), control=True)
    data = founder.member.data
    if data is not None:
        mine = foe.signed(DeviceAdmission(bytes(own.key), bytes(foe.peer.device.key)), own, foe.peer.device.pair)
        foe.append(FeedAdmission(bytes(data.feed), FeedKind.DATA, bytes(own.key), bytes(foe.peer.device.key), mine))


def own_policy(foe: Attacker) -> None:
    """Set a policy by which the attacker alone attests epochs, and editors may admit."""
    device = bytes(foe.peer.device.key)
    foe.append(Policy(editors_admit=True, attesters=(device,), generator=device))
    foe.append(Policy(attesters=(device,), tightens=True, cuts={}))


def erases_others(foe: Attacker) -> None:
    """Erase messages of others."""
    own = {bytes(writer.feed) for writer in (foe.peer.member.control, foe.peer.member.data) if writer is not None}
    records = [record for record in foe.peer.store.feeds(foe.peer.key) if record.feed not in own and record.length]
    positions = {Position(record.feed, foe.chance.randrange(record.length)) for record in records}
    if positions:
        foe.append(Erasure(tuple(sorted(positions))))


def false_evidence(foe: Attacker) -> None:
    """Accuse honest writers of a fork, with invalid evidence."""
    for record in foe.peer.store.feeds(foe.peer.key):
        evidence = foe.chance.choice((b"", b"APf1" + bytes(300), foe.chance.randbytes(200)))
        foe.append(Equivocated(record.feed, record.length // 2, evidence))


def copies(foe: Attacker) -> None:
    """Copy others' credentials into the attacker's control feed, some with one bit flipped."""
    control = foe.peer.member.control
    machine, chance = foe.peer.member.machine, foe.chance
    acts = sorted(machine.acts(), key=lambda act: act.position)
    if control is None or not acts:
        return
    for act in chance.sample(acts, min(5, len(acts))):
        message = as_draft(credential_of(machine.block(act))).message
        if chance.random() < 0.5:
            at = chance.randrange(len(message))
            message = message[:at] + bytes((message[at] ^ 1,)) + message[at + 1 :]
        control.see(*machine.entries())
        control.extend([Draft(Kind.CREDENTIAL, SYSTEM_ITEM, message)])


def rubbish_claims(foe: Attacker) -> None:
    """Append random bytes and item messages to the control feed."""
    control = foe.peer.member.control
    if control is not None:
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, foe.chance.randbytes(size)) for size in (0, 1, 50, 3_000)]
        item = foe.an_object() or bytes(16)
        control.extend([*drafts, foe.setting(item, foe.token()), Draft(Kind.CREDENTIAL, item, b"")])


def back_dated(foe: Attacker) -> None:
    """Open a second control feed with an old timeframe, and promote the attacker there, before its own admission."""
    me, device, control = foe.peer.identity, foe.peer.device, foe.key()
    word = foe.signed(DeviceAdmission(bytes(me.key), bytes(device.key)), me.pair, device.pair)
    claim = FeedAdmission(bytes(control.key), FeedKind.CONTROL, bytes(me.key), bytes(device.key), word)
    founder = bytes(foe.others[0].identity.key)
    drafts = [
        as_draft(foe.signed(claim, device.pair, control)),
        as_draft(foe.signed(MemberAdmission(bytes(me.key), _OWNER))),
        as_draft(foe.signed(Narrowing(founder, frozenset(), {}))),
    ]
    seen = [entry for entry in foe.peer.member.machine.entries() if foe.chance.random() < 0.3]
    foe.push(foe.names(), *foe.stranger(control).extend(drafts, seen=seen), control=True)
