"""What a device has said about epochs, as a trace tells it."""

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


class Word(NamedTuple):
    """One act about an epoch."""

    kind: Kind
    number: int
    text: str


def words_of(machine: PartyMachine, feed: bytes, since: int) -> Iterator[Word]:
    """What stands in a control feed about epochs, from a position on."""
    for act in machine.acts():
        if act.stamp.feed != feed or act.stamp.seq < since:
            continue
        claim = act.claim
        if isinstance(claim, EpochGenesis):
            yield Word(Kind.DECLARE, claim.number, _said(claim.term, claim.snapshot))
        elif isinstance(claim, EpochAttestation):
            yield Word(Kind.ATTEST, claim.number, _said(claim.term, claim.snapshot))
        elif isinstance(claim, EpochEndorsement):
            yield Word(Kind.ENDORSE, claim.number, f"term {claim.term}")
        elif isinstance(claim, EpochRefusal):
            yield Word(Kind.REFUSE, claim.number, claim.reason[:_REASON_MAX])


def _said(term: int, snapshot: bytes) -> str:
    """A snapshot's first letters, and the term if somebody took over."""
    try:
        letters = str(Cid(snapshot))[:_LETTERS]
    except BadEncoding:
        letters = snapshot.hex()[:_LETTERS]
    return f"{letters}, term {term}" if term else letters
