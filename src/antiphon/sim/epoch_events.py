"""The acts of a device about epochs, as events of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding
from antiphon.halo.control.machine import PartyMachine
from antiphon.halo.credentials.claims import EpochAttestation, EpochEndorsement, EpochGenesis, EpochRefusal
from antiphon.sim.trace import Kind

_LETTERS = 16
_REASON_MAX = 80


class EpochEvent(NamedTuple):
    """One act about an epoch: declaration, attestation, endorsement or refusal."""

    kind: Kind
    number: int
    text: str


def epoch_events(machine: PartyMachine, feed: bytes, since: int) -> Iterator[EpochEvent]:
    """Yield the acts of a control feed about epochs, from a position on."""
    for act in machine.acts():
        if act.stamp.feed != feed or act.stamp.seq < since:
            continue
        claim = act.claim
        if isinstance(claim, EpochGenesis):
            yield EpochEvent(Kind.DECLARE, claim.number, _said(claim.term, claim.snapshot))
        elif isinstance(claim, EpochAttestation):
            yield EpochEvent(Kind.ATTEST, claim.number, _said(claim.term, claim.snapshot))
        elif isinstance(claim, EpochEndorsement):
            yield EpochEvent(Kind.ENDORSE, claim.number, f"term {claim.term}")
        elif isinstance(claim, EpochRefusal):
            yield EpochEvent(Kind.REFUSE, claim.number, claim.reason[:_REASON_MAX])


def _said(term: int, snapshot: bytes) -> str:
    """The first letters of a snapshot's CID, and the term if it is a takeover."""
    try:
        letters = str(Cid(snapshot))[:_LETTERS]
    except BadEncoding:
        letters = snapshot.hex()[:_LETTERS]
    return f"{letters}, term {term}" if term else letters
