"""Child parties inherit narrowings and device ends from their parent.

A narrowing of the parent has no cuts for feeds of the child. Such a feed is cut to nothing (rule 8), until an *echo* in
the child gives its cut. An echo repeats the claim, has seen the original, and is by a member with the right to make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from antiphon.feed.header import NO_END
from antiphon.halo.acts.act import Act
from antiphon.halo.acts.barren_acts import Seqs
from antiphon.halo.acts.grant import Owner, cut_of, expired
from antiphon.halo.credentials.claims import OWNERS, Cuts, FeedEnd, Narrowing, with_implied
from antiphon.halo.rights.grant_checks import binds
from antiphon.halo.rights.kept_acts import KeptActs

if TYPE_CHECKING:
    from antiphon.halo.rights.authority import Authority
    from antiphon.halo.rights.runs import NarrowingRun


def echoed_cuts(authority: Authority, narrowing: Act, grant: Act) -> Cuts | None:
    """Return the cuts of this party's feeds by echoes of a parent's narrowing; None if there is no echo.

    An echo narrows too, so the least cut holds.

    Only an owner's echo counts, by grants older than the narrowed one: its subject must not choose how much it keeps.
    """
    said, found, heard = narrowing.claim, dict[bytes, int](), False
    assert isinstance(said, Narrowing)
    for run in authority.narrowings.of(grant):
        if not run.key.by_writer or not run.key.left <= with_implied(said.roles):
            continue
        for act in run.acts[run.seeing(narrowing.position) :]:
            if binds(authority, act, grant) and authority.permits(act.place, OWNERS, grant.stamp):
                assert isinstance(act.claim, Narrowing)
                heard = True
                found |= {feed: max(length, found.get(feed, 0)) for feed, length in act.claim.cuts.items()}
    return found if heard else None


def hear_echoes(authority: Authority, grant: Act) -> None:
    """Judge the echoes of the parent's narrowings of a grant, from the oldest grant on, as the grants are."""
    if authority.parent is not None and any(authority.narrowings.of(grant)):
        for run in authority.parent.narrowings.of(grant):
            for narrowing in run.acts[run.seeing(grant.position) :]:
                if binds(authority, narrowing, grant):
                    authority.echoes(narrowing, grant)


def cut_at(authority: Authority, narrowing: Act, grant: Act, feed: bytes) -> int:
    """Return the cut of a feed by a narrowing of a grant: not below what a final epoch without the narrowing holds."""
    claim = narrowing.claim
    assert isinstance(claim, Narrowing)
    cuts = claim.cuts
    if feed not in cuts and authority.inherited(narrowing):
        cuts = authority.echoes(narrowing, grant) or {}
    return max(cut_of(cuts, feed, authority.genesis_feed), authority.floors.of(narrowing.position, feed))


def cuts_at(authority: Authority, run: NarrowingRun, feed: bytes) -> list[int]:
    """Return the cut of a feed by each narrowing of a run, which is this party's: `cut_at` of all of them at once."""
    cuts, seqs = run.cuts(feed), np.asarray(run.seqs, dtype=np.int64)
    least = np.full(len(seqs), int(feed == authority.genesis_feed), dtype=np.int64)
    found: list[int] = np.maximum(np.maximum(cuts, least), authority.floors.at(run.feed, seqs, feed)).tolist()
    return found


def device_end(authority: Authority, feed: bytes, owner: Owner, known: dict[tuple[bytes, bytes, bytes], int]) -> int:
    """Return the least cut of a feed by a `FeedEnd`. Known ones are cached: a device may be ended ever so often."""
    key = feed, owner.identity, owner.device
    if key not in known or authority.parent is not None:
        cuts = chain(_device_cuts(authority, feed, owner), _kept_cuts(authority, feed, owner))
        known[key] = min(cuts, default=NO_END)
    return known[key]


def is_ended(authority: Authority, identity: bytes, device: bytes) -> bool:
    """True if an identity has ended its device, or the device itself has."""
    held = authority.device_ends(device)
    return any(ends_device(authority, act, identity, device) for act in held) or any(
        True for _ in _kept_ends(authority, identity, device)
    )


def _kept_ends(authority: Authority, identity: bytes, device: bytes) -> Iterator[tuple[KeptActs, Seqs]]:
    """Yield the ends of a device by its identity or itself that are kept as columns, in rows with the same signers."""
    for kept, rows in authority.ends.rows(device):
        before = kept.acts.seqs[rows] < authority.fork_ends.get(kept.feed, NO_END)
        for act, same in kept.by_word(kept.lasting(rows[before])):
            if ends_device(authority, act, identity, device):
                yield kept, same


def _kept_cuts(authority: Authority, feed: bytes, owner: Owner) -> Iterator[int]:
    """Yield the least cuts of a feed by ends that are kept as columns."""
    for kept, rows in _kept_ends(authority, owner.identity, owner.device):
        floors = authority.floors.at(kept.feed, kept.acts.seqs[rows], feed)
        yield int(np.maximum(kept.acts.cuts(rows, feed), floors).min())


def _device_cuts(authority: Authority, feed: bytes, owner: Owner) -> Iterator[int]:
    """Yield the cuts of a feed by a `FeedEnd` of its identity or device."""
    for act in authority.device_ends(owner.device):
        claim = act.claim
        assert isinstance(claim, FeedEnd)
        if ends_device(authority, act, owner.identity, owner.device):
            length = claim.cuts.get(feed, 0)
            if feed not in claim.cuts and authority.inherited(act):
                length = max(_echoed_ends(authority, act, feed, owner), default=0)
            yield max(length, authority.floors.of(act.position, feed))


def _echoed_ends(authority: Authority, ended: Act, feed: bytes, owner: Owner) -> Iterator[int]:
    """Yield the cuts of echoes by the identity; the device's own echo does not count, for it may be stolen."""
    for act in authority.device_ends(owner.device):
        claim = act.claim
        assert isinstance(claim, FeedEnd)
        again = not authority.inherited(act) and act.place.sees(ended.position) and owner.identity in act.signers
        if again and ends_device(authority, act, owner.identity, owner.device):
            yield claim.cuts.get(feed, 0)


def ends_device(authority: Authority, act: Act, identity: bytes, device: bytes) -> bool:
    """True if a `FeedEnd` is by a device's identity, or by the device for itself, in a feed of theirs."""
    claim = act.claim
    assert isinstance(claim, FeedEnd)
    return (identity, device) == (claim.identity, claim.device) and may_end(authority.home(act), act, claim)


def may_end(authority: Authority, act: Act, claim: FeedEnd) -> bool:
    """True if a `FeedEnd` is by the identity or the device that it names, in a control feed of that identity."""
    carrier = authority.feeds.controls.get(act.stamp.feed)
    if carrier is None or carrier.identity != claim.identity or authority.past_fork(act) or expired(act):
        return False
    return claim.identity in act.signers or claim.device in act.signers
