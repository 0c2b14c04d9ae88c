"""Attacks with epochs: declare wrong or unauthorised epochs, and vote without being an attester."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, EpochAttestation, EpochEndorsement, EpochGenesis, EpochRefusal
from antiphon.sim.byzantine.attacker import Attacker, as_draft

_HOURS_MS = 10 * 3_600_000


def false_epochs(foe: Attacker) -> None:
    """Declare epochs with a wrong number, term, predecessor, cut, snapshot or time."""
    right = _next(foe)
    wrong = list(_wrong(foe, right))
    for change in foe.chance.sample(wrong, min(3, len(wrong))):
        foe.append(replace(right, **change))


def _next(foe: Attacker) -> EpochGenesis:
    """The epoch that this device would declare now if it were its turn."""
    peer = foe.peer
    peer.epochs.step()
    genesis = peer.epochs._afresh(peer.epochs.chain(), 0, False)
    return replace(genesis, control_hash=peer.member.machine.control_hash(genesis.control))


def _wrong(foe: Attacker, right: EpochGenesis) -> Iterator[dict[str, Any]]:
    other = bytes(Cid.of(foe.chance.randbytes(8), DAG_CBOR))
    yield {}  # correct, but this device may not declare it
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
        gone = foe.chance.choice(feeds)
        yield {"cut": {feed: length for feed, length in right.cut.items() if feed != gone}}
        yield {"cut": {**right.cut, gone: right.cut[gone] + 1}}
        yield {"cut": {**right.cut, gone: right.cut[gone] // 2}}


def false_votes(foe: Attacker) -> None:
    """Attest, refuse and endorse without being an attester; also epochs that were never declared."""
    chain = foe.peer.epochs.chain()
    number, device = chain.open.number, bytes(foe.peer.device.key)
    other = bytes(Cid.of(foe.chance.randbytes(8), DAG_CBOR))
    for proposal in chain.open.proposals[:3]:
        genesis = proposal.genesis
        foe.append(EpochRefusal(genesis.term, genesis.number, genesis.snapshot, other, "a lie"))
        foe.append(EpochAttestation(genesis.term, genesis.number, other, proposal.act.digest))
    for term in (0, 1, 9):
        foe.append(EpochAttestation(term, number, other, foe.chance.randbytes(32)))
        foe.append(EpochEndorsement(number, term + 1, device, term, other))


def two_votes(foe: Attacker) -> None:
    """Fork the control feed: one branch attests or declares an epoch, the other endorses a takeover."""
    control = foe.peer.member.control
    if control is None:
        return
    opened, device = foe.peer.epochs.chain().open, bytes(foe.peer.device.key)
    proposal = opened.proposals[-1] if opened.proposals else None
    word: Claim = _next(foe)
    term = 0
    if proposal is not None:
        term = proposal.genesis.term
        word = EpochAttestation(term, opened.number, proposal.genesis.snapshot, proposal.act.digest)
    writer = foe.writer_at(bytes(control.feed))
    foe.push(foe.some(), *writer.extend([as_draft(foe.signed(word))] * foe.chance.randint(1, 2)), control=True)
    foe.append(EpochEndorsement(opened.number, term + 1, foe.chance.choice((device, *opened.config.attesters))))


def stolen_words(foe: Attacker) -> None:
    """Append epoch declarations signed with unknown keys."""
    genesis = _next(foe)
    other = bytes(Cid.of(foe.chance.randbytes(8), DAG_CBOR))
    for _ in range(3):
        signed = credential.sign(foe.peer.key, replace(genesis, snapshot=other), [foe.key()], nonce=bytes(16))
        foe.peer.member._append(signed)
