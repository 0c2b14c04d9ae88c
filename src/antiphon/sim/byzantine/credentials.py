"""Forged credentials: rights that nobody gave, taken from others, or lent to puppets. All of them must be void."""

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
from antiphon.sim.byzantine.attacker import Tongue, as_draft

_OWNER = frozenset({Role.OWNER})


def self_promotion(liar: Tongue) -> None:
    """The liar makes itself an owner; and a group of its own, with itself in it."""
    me, group = bytes(liar.peer.identity.key), liar.key()
    liar.say(MemberAdmission(me, _OWNER))
    liar.say(MemberAdmission(bytes(group.key), _OWNER))
    liar.say(GroupAdmission(bytes(group.key), me), liar.peer.device.pair, group)


def puppet(liar: Tongue) -> None:
    """Somebody who was never admitted opens feeds, on the liar's word, makes the liar an owner, and writes."""
    identity, device, control, data = (liar.key() for _ in range(4))
    who, what = bytes(identity.key), bytes(device.key)
    liar.say(MemberAdmission(who, frozenset({Role.OWNER, Role.EDITOR})))
    word = liar.signed(DeviceAdmission(who, what), identity, device)
    drafts = [
        as_draft(liar.signed(FeedAdmission(bytes(pair.key), kind, who, what, word), device, pair))
        for pair, kind in ((control, FeedKind.CONTROL), (data, FeedKind.DATA))
    ]
    drafts.append(as_draft(liar.signed(MemberAdmission(bytes(liar.peer.identity.key), _OWNER), device)))
    seen = list(liar.peer.member.machine.entries())
    liar.push(liar.names(), *liar.stranger(control).extend(drafts, seen=seen), control=True)
    item = liar.an_object() or bytes(16)
    liar.push(liar.names(), *liar.stranger(data).extend([liar.setting(item, liar.token())], seen=seen))


def coup(liar: Tongue) -> None:
    """An editor revokes everybody else, the founder first, with cuts at nothing; also as expired."""
    machine = liar.peer.member.machine
    for other in liar.others:
        grants = machine.authority.granted(bytes(other.identity.key))
        named = tuple(sorted(grant.position for grant in grants))
        if named:
            liar.say(Narrowing(named, frozenset(), {}, expired=liar.chance.random() < 0.3))


def others_feeds(liar: Tongue) -> None:
    """The feeds of others end, by the word of a device that is not theirs."""
    owners = sorted(liar.peer.member.machine.authority.owners().items())
    for other in liar.others:
        identity = bytes(other.identity.key)
        cuts = {feed: 0 for feed, owner in owners if owner.identity == identity}
        liar.say(FeedEnd(identity, bytes(other.device.key), cuts))
        liar.say(FeedEnd(identity, bytes(liar.peer.device.key), cuts))


def false_device(liar: Tongue) -> None:
    """A device of the liar's as one of the founder's; and a feed of another as the liar's own."""
    founder = liar.others[0]
    identity, device, control = bytes(founder.identity.key), liar.key(), liar.key()
    own = liar.peer.identity.pair
    word = liar.signed(DeviceAdmission(identity, bytes(device.key)), own, device)
    claim = FeedAdmission(bytes(control.key), FeedKind.CONTROL, identity, bytes(device.key), word)
    seen = list(liar.peer.member.machine.entries())
    drafts = [
        as_draft(liar.signed(claim, device, control)),
        as_draft(liar.signed(MemberAdmission(bytes(own.key), _OWNER), device)),
    ]
    liar.push(liar.names(), *liar.stranger(control).extend(drafts, seen=seen), control=True)
    data = founder.member.data
    if data is not None:
        mine = liar.signed(DeviceAdmission(bytes(own.key), bytes(liar.peer.device.key)), own, liar.peer.device.pair)
        liar.say(FeedAdmission(bytes(data.feed), FeedKind.DATA, bytes(own.key), bytes(liar.peer.device.key), mine))


def own_policy(liar: Tongue) -> None:
    """A policy by which the liar alone attests epochs, and editors admit."""
    device = bytes(liar.peer.device.key)
    known = tuple(sorted(act.position for act in liar.peer.member.machine.authority.policies))
    liar.say(Policy(editors_admit=True, attesters=(device,), generator=device))
    liar.say(Policy(attesters=(device,), tightens=known, cuts={}))


def erases_others(liar: Tongue) -> None:
    """Messages of others are erased."""
    own = {bytes(writer.feed) for writer in (liar.peer.member.control, liar.peer.member.data) if writer is not None}
    records = [record for record in liar.peer.store.feeds(liar.peer.key) if record.feed not in own and record.length]
    positions = {Position(record.feed, liar.chance.randrange(record.length)) for record in records}
    if positions:
        liar.say(Erasure(tuple(sorted(positions))))


def false_evidence(liar: Tongue) -> None:
    """An honest writer is said to have forked, with evidence that is none."""
    for record in liar.peer.store.feeds(liar.peer.key):
        evidence = liar.chance.choice((b"", b"APf1" + bytes(300), liar.chance.randbytes(200)))
        liar.say(Equivocated(record.feed, record.length // 2, evidence))


def copies(liar: Tongue) -> None:
    """Others' credentials stand in the liar's feed again, some with one bit turned."""
    control = liar.peer.member.control
    machine, chance = liar.peer.member.machine, liar.chance
    acts = sorted(machine.acts(), key=lambda act: act.position)
    if control is None or not acts:
        return
    for act in chance.sample(acts, min(5, len(acts))):
        message = as_draft(credential_of(machine.block(act.position))).message
        if chance.random() < 0.5:
            at = chance.randrange(len(message))
            message = message[:at] + bytes((message[at] ^ 1,)) + message[at + 1 :]
        control.see(*machine.entries())
        control.extend([Draft(Kind.CREDENTIAL, SYSTEM_ITEM, message)])


def rubbish_claims(liar: Tongue) -> None:
    """Bytes that are no credential, and item messages, in the control feed."""
    control = liar.peer.member.control
    if control is not None:
        drafts = [Draft(Kind.CREDENTIAL, SYSTEM_ITEM, liar.chance.randbytes(size)) for size in (0, 1, 50, 3_000)]
        item = liar.an_object() or bytes(16)
        control.extend([*drafts, liar.setting(item, liar.token()), Draft(Kind.CREDENTIAL, item, b"")])


def back_dated(liar: Tongue) -> None:
    """The liar's second control feed, which has seen little: it promotes itself from before it was anybody."""
    me, device, control = liar.peer.identity, liar.peer.device, liar.key()
    word = liar.signed(DeviceAdmission(bytes(me.key), bytes(device.key)), me.pair, device.pair)
    claim = FeedAdmission(bytes(control.key), FeedKind.CONTROL, bytes(me.key), bytes(device.key), word)
    founder = liar.peer.member.machine.authority.granted(bytes(liar.others[0].identity.key))
    named = tuple(sorted(grant.position for grant in founder))
    drafts = [
        as_draft(liar.signed(claim, device.pair, control)),
        as_draft(liar.signed(MemberAdmission(bytes(me.key), _OWNER))),
        as_draft(liar.signed(Narrowing(named, frozenset(), {}))),
    ]
    seen = [entry for entry in liar.peer.member.machine.entries() if liar.chance.random() < 0.3]
    liar.push(liar.names(), *liar.stranger(control).extend(drafts, seen=seen), control=True)
