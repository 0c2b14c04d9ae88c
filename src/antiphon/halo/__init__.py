"""HALO: identities and devices, credentials, and the party state machine that folds them.

keys         the key store, identities, devices and recovery phrases
credentials  claims, and the signed bytes that carry them
acts         one control block with its claim read and its timeframe known; grants
finality     the chain of final epochs: ballots, proposals, voting rules
rights       who may do what at any place of any feed, and the verdict on each act
control      `PartyMachine`: control blocks in, the state of the party out
limits       how many feeds, devices and admissions count: part of the format
member       `Membership`: one device in a party, which opens its feeds and writes its credentials

Start reading at `control/machine.py`, then `rights/authority.py`; docs/design/parties.md has the rules. Control blocks
come in; the party's state, verdicts and final epochs go out. Data messages are judged here, and their bodies are never
read. Each room imports only rooms above it in this list. The package imports `antiphon.feed` and `antiphon.core`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.halo.control.control_feeds import fold_control_feeds as fold_control_feeds
    from antiphon.halo.control.machine import PartyMachine as PartyMachine
    from antiphon.halo.control.state import PartyState as PartyState
    from antiphon.halo.credentials.claims import (
        EpochAttestation as EpochAttestation,
        EpochGenesis as EpochGenesis,
        FeedKind as FeedKind,
        Policy as Policy,
        Position as Position,
        Role as Role,
    )
    from antiphon.halo.finality.epoch_values import FinalEpoch as FinalEpoch
    from antiphon.halo.keys.identity import (
        Device as Device,
        Identity as Identity,
        load_device as load_device,
        load_identity as load_identity,
        new_device as new_device,
        new_identity as new_identity,
        recover_identity as recover_identity,
    )
    from antiphon.halo.keys.key_file import KeyKind as KeyKind, Protection as Protection
    from antiphon.halo.keys.key_store import KeyStore as KeyStore
    from antiphon.halo.member.membership import Membership as Membership
else:
    __getattr__, __dir__ = lazy_exports(__name__)
