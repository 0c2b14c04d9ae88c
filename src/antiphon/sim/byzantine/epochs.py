"""Epochs that are wrong, forged or nobody's to declare, and votes for them by whoever has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, EpochAttestation, EpochEndorsement, EpochGenesis, EpochRefusal
from antiphon.sim.byzantine.attacker import Tongue, as_draft

_HOURS_MS = 10 * 3_600_000


def false_epochs(liar: Tongue) -> None:
    """Epochs of old and future numbers and terms, on other ones, with other cuts and snapshots, from another time."""
    right = _next(liar)
    wrong = list(_wrong(liar, right))
    for change in liar.chance.sample(wrong, min(3, len(wrong))):
        liar.say(replace(right, **change))


def _next(liar: Tongue) -> EpochGenesis:
    """What this device would declare now, were it to declare it."""
    peer = liar.peer
    peer.epochs.step()
    genesis = peer.epochs._afresh(peer.epochs.chain(), 0, False)
    return replace(genesis, control_hash=peer.member.machine.control_hash(genesis.control))


def _wrong(liar: Tongue, right: EpochGenesis) -> Iterator[dict[str, Any]]:
    other = bytes(Cid.of(liar.chance.randbytes(8), DAG_CBOR))
    yield {}  # nothing is wrong with it, but who declares it
    yield {"snapshot": other}
    yield {"number": right.number + 1}
    yield {"number": max(1, right.number - 1)}
    yield {"term": 7}
    yield {"previous": other}
    yield {"created_ms": right.created_ms + _HOURS_MS}
    yield {"created_ms": max(0, right.created_ms - _HOURS_MS)}
    yield {"control_hash": bytes(32)}
    yield {"models": ()}
    feeds = sorted(right.cut)
    if feeds:
        gone = liar.chance.choice(feeds)
        yield {"cut": {feed: length for feed, length in right.cut.items() if feed != gone}}
        yield {"cut": {**right.cut, gone: right.cut[gone] + 1}}
        yield {"cut": {**right.cut, gone: right.cut[gone] // 2}}


def false_votes(liar: Tongue) -> None:
    """Attestations, refusals and endorsements of a device that is asked for none; of what nobody has declared, too."""
    chain = liar.peer.epochs.chain()
    number, device = chain.open.number, bytes(liar.peer.device.key)
    other = bytes(Cid.of(liar.chance.randbytes(8), DAG_CBOR))
    for proposal in chain.open.proposals[:3]:
        genesis = proposal.genesis
        liar.say(EpochRefusal(genesis.term, genesis.number, genesis.snapshot, other, "a lie"))
        liar.say(EpochAttestation(genesis.term, genesis.number, other, proposal.act.digest))
    for term in (0, 1, 9):
        liar.say(EpochAttestation(term, number, other, liar.chance.randbytes(32)))
        liar.say(EpochEndorsement(number, term + 1, device, term, other))


def two_votes(liar: Tongue) -> None:
    """Two histories of the control feed: one attests or declares something, the other endorses a takeover."""
    control = liar.peer.member.control
    if control is None:
        return
    opened, device = liar.peer.epochs.chain().open, bytes(liar.peer.device.key)
    proposal = opened.proposals[-1] if opened.proposals else None
    word: Claim = _next(liar)
    term = 0
    if proposal is not None:
        term = proposal.genesis.term
        word = EpochAttestation(term, opened.number, proposal.genesis.snapshot, proposal.act.digest)
    writer = liar.pen(bytes(control.feed))
    liar.push(liar.some(), *writer.extend([as_draft(liar.signed(word))] * liar.chance.randint(1, 2)), control=True)
    liar.say(EpochEndorsement(opened.number, term + 1, liar.chance.choice((device, *opened.config.attesters))))


def stolen_words(liar: Tongue) -> None:
    """What the attesters might say of an epoch, signed with other keys in their names."""
    genesis = _next(liar)
    other = bytes(Cid.of(liar.chance.randbytes(8), DAG_CBOR))
    for _ in range(3):
        signed = credential.sign(liar.peer.key, replace(genesis, snapshot=other), [liar.key()], nonce=bytes(16))
        liar.peer.member._append(signed)
