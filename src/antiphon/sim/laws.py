"""The laws: conditions that must hold when all is quiet. Each yields a text for each violation that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError, InvalidInput, MissingBlob, UnknownFeed
from antiphon.core.keys import KeyPair
from antiphon.core.reasons import Reason, code_of
from antiphon.feed.header import NO_END, Kind
from antiphon.feed.rules import well_formed
from antiphon.halo.credentials.claims import EpochGenesis, EpochRefusal, FeedAdmission, Position, Role
from antiphon.party.engine.epoch_base import EpochBase
from antiphon.party.engine.ports import Refused
from antiphon.sim.peer import SimPeer
from antiphon.sim.scenario import Fault

if TYPE_CHECKING:
    from antiphon.sim.run import Stage

REFUSED_MAX = 1 << 20
UNDER_WAY_MAX = 4_096  # protocol messages for each pair of neighbours

#: Reasons for which messages are void because their writer lacks a right. Other refusals are legitimate: two members
#: did at the same time what only one of them can do.
OF_RIGHTS = frozenset({Reason.NO_ADMISSION, Reason.PAST_CUT, Reason.LOST, Reason.ROLE, Reason.NO_BODY})

Law = Callable[["Stage"], Iterator[str]]


def one_history(stage: Stage) -> Iterator[str]:
    """All honest peers have the same timeframe, the same base snapshot, and the same bytes of each item."""
    first, *others = stage.honest()
    frame, base, states = _frame(first), _base(first), _states(first)
    for peer in others:
        if _frame(peer) != frame:
            yield f"{peer.name} has delivered {_frame(peer)}, and {first.name} {frame}"
        if _base(peer) != base:
            yield f"{peer.name} is based on {_base(peer)}, and {first.name} on {base}: {peer.epochs.waits_for}"
        found = _states(peer)
        if found != states:
            different = sorted(item for item in found.keys() | states.keys() if found.get(item) != states.get(item))
            item = different[0]
            yield (
                f"item {item.hex()} and {len(different) - 1} more: {_value(peer, item)} at {peer.name}, "
                f"{_value(first, item)} at {first.name}"
            )


def one_quarantine(stage: Stage) -> Iterator[str]:
    """All honest peers refuse the same messages for the same reasons, as far as these are outside of the snapshot.

    Each reason has its code.
    """
    first, *others = stage.honest()
    refused = _refused(first)
    yield from (f"{first.name} gives a reason without a code: {text}" for text in _uncoded(first, refused))
    for peer in others:
        found = _refused(peer)
        for row in sorted(found ^ refused, key=str)[:1]:
            who = peer.name if row in found else first.name
            yield f"only {who} refuses {row.feed.hex()[:8]} {row.seq}: {row.reason}"
    ends, listed = stage.ends, {(row.feed, row.seq) for row in refused}
    delivered, base = first.party.timeframe, first.epochs.base
    for written in stage.workload.written:
        feed, seq = bytes(written.stamp.feed), written.stamp.seq
        outside = seq <= delivered.get(feed, -1) and (base is None or seq >= base.length(feed))
        if outside and not ends.counts(written) and (feed, seq) not in listed:
            yield f"{first.name} does not list {feed.hex()[:8]} {seq}, which {written.peer} wrote after its revocation"


def nothing_lost(stage: Stage) -> Iterator[str]:
    """A write acknowledged to an honest peer is held by all peers, and counts unless its writer was revoked."""
    owned = {peer.name for peer in stage.honest()}
    ends, erased = stage.ends, stage.workload.erased
    told = {written.place: written for written in stage.workload.written if written.peer in owned}
    longest: dict[bytes, int] = {}
    for feed, seq in told:
        longest[feed] = max(seq, longest.get(feed, -1))
    for peer in stage.honest():  # writes × peers are many: check lengths first, and writes only where they are short
        lengths = {feed: _length(peer, feed) for feed in longest}
        short = {feed for feed, last in longest.items() if lengths[feed] <= last}
        for place, written in told.items() if short else ():
            if place.feed in short and lengths[place.feed] <= place.seq:
                yield f"{peer.name} lacks {place.feed.hex()[:8]} {place.seq}, acknowledged to {written.peer}"
        for row in peer.party.refused(REFUSED_MAX):
            place = Position(row.feed, row.seq)
            of_rights = row.code in OF_RIGHTS and place in told and place not in erased
            if of_rights and lengths[row.feed] > row.seq and ends.counts(told[place]):
                yield f"{peer.name} refuses {row.feed.hex()[:8]} {row.seq} of {told[place].peer}: {row.reason}"


def nothing_dropped(stage: Stage) -> Iterator[str]:
    """A post or an appended element shows in its item, unless it was removed or erased, or its item deleted.

    If a liar or a revoked member began the item, it shows in some item: of two geneses of one id, one gets another id.
    It need not show if it was written outside the cut of an epoch that cannot keep the item: see `_lost_at_epochs`.

    `one_history` checks that all peers show the same; this law finds what all peers have dropped.
    """
    load, honest, gone = stage.workload, {peer.name for peer in stage.honest()}, stage.account.names
    steady = {item for item, maker in load.makers.items() if maker in honest - gone}
    first = stage.honest()[0]
    shown = {item: repr(_value(first, item)) for item in first.party.items()}
    everything, lost = "".join(shown.values()), _lost_at_epochs(stage)
    for written in load.written:
        cut = None if written.item in shown else lost.get(written.item)
        if cut is not None and written.stamp.seq >= cut.get(bytes(written.stamp.feed), 0):
            continue
        here = written.peer in honest and written.item not in load.deleted and stage.ends.counts(written)
        if not (written.stays and here) or written.token in load.taken_away or written.place in load.erased:
            continue
        if written.token not in (shown.get(written.item, "") if written.item in steady else everything):
            text = repr(_value(first, written.item))
            yield f"item {written.item.hex()} lacks {written.token} of {written.peer}: {text:.200}"


def _lost_at_epochs(stage: Stage) -> dict[bytes, Mapping[bytes, int]]:
    """Return the items that no epoch keeps unless others had built on them, each with the cut up to which these count.

    An epoch has taken another branch, beyond the place of the genesis: nobody can tell which branch a writer had seen.
    Or the creator had admitted its data feed beyond a fork of its control feed: no act that counts gave it a right.
    Or a cut or an erasure had taken the genesis, and policy dropped the hidden item like a deleted one.
    """
    lost: dict[bytes, Mapping[bytes, int]] = {}
    unadmitted = _admitted_beyond_forks(stage)
    for peer in stage.honest():
        machine, epochs = peer.member.machine, peer.epochs.chain().final
        cuts = [epoch.cut for epoch in epochs]
        limits = [peer.epochs.policy(epoch.control).deleted_epochs for epoch in epochs]
        for record in peer.store.feeds(peer.member.party):
            feed = record.feed
            is_apart = feed in machine.fork_ends or feed in unadmitted
            end, erased = machine.authority.end(feed), machine.authority.erased(feed)
            if not is_apart and end == NO_END and not erased:
                continue
            for span in (*peer.store.held(feed, record.start, record.length), *peer.store.branches(feed)):
                for block in span.blocks(0, well_formed(span)):
                    held = next((at for at, cut in enumerate(cuts) if block.seq < cut.get(feed, 0)), None)
                    if held is None or block.kind is not Kind.GENESIS:
                        continue
                    if is_apart:
                        lost.setdefault(block.item, cuts[held])
                    elif block.seq >= end or block.seq in erased:
                        ages = ((at, at - held) for at in range(held, len(cuts)))
                        if dropped := next((at for at, age in ages if 0 < limits[at] <= age), None):
                            lost.setdefault(block.item, cuts[dropped])
    return lost


def _admitted_beyond_forks(stage: Stage) -> set[bytes]:
    """Return the data feeds of writes that no act which counts has admitted, of devices that forked a control feed."""
    machine = stage.honest()[0].member.machine
    openings = (act.claim for act in machine.acts() if isinstance(act.claim, FeedAdmission))
    forked = {opening.device for opening in openings if opening.feed in machine.fork_ends}
    writers = {bytes(written.stamp.feed): stage.peers[written.peer].device.key for written in stage.workload.written}
    return {feed for feed, key in writers.items() if bytes(key) in forked and machine.authority.owner(feed) is None}


def who_may_write_can(stage: Stage) -> Iterator[str]:
    """No write was refused to a member that had received its admission and had room on its disk."""
    yield from stage.denied


def nothing_unauthorised(stage: Stage) -> Iterator[str]:
    """Forged writes, and writes of revoked members after their end, show in no item."""
    ends = stage.ends
    ended = {written.token for written in stage.workload.written if written.token and not ends.counts(written)}
    forbidden = stage.forbidden | ended
    if not forbidden:
        return
    for peer in stage.honest():
        for item in peer.party.items():
            shown = repr(_value(peer, item))
            for token in forbidden:
                if token in shown:
                    yield f"{peer.name} shows {token} in item {item.hex()}"


def nothing_given_away(stage: Stage) -> Iterator[str]:
    """A peer that was never admitted has nothing, and nobody that has delivered a revocation sends its member anything.

    A peer may hold a revocation that waits for other blocks: then it does not know of it yet. Liars may give away what
    they like.
    """
    if any(not peer.honest for peer in stage.peers.values()):
        return
    last = {revoked.name: revoked.seq for revoked in stage.account.revoked}
    members = {peer.name for peer in stage.honest()}
    for peer in stage.peers.values():
        if peer.name in members:
            continue
        held = sum(record.length for record in peer.store.feeds(peer.key))
        if peer.name not in last and held:
            yield f"{peer.name}, who was never admitted, has {held} blocks"
        for giver in stage.peers.values():
            if giver.told.get(peer.name, 0) > last.get(peer.name, NO_END):
                yield f"{giver.name}, who knows that {peer.name} is revoked, sent it a message"


def one_party(stage: Stage) -> Iterator[str]:
    """All peers have the same party state. Members are those that the founder admitted and did not revoke; the founder
    is the only owner.
    """
    first, *others = stage.honest()
    digest = first.member.state.digest
    for peer in others:
        if peer.member.state.digest != digest:
            yield f"{peer.name} has another party state than {first.name}"
    known = {bytes(peer.identity.key): peer.name for peer in stage.peers.values()}
    founder = bytes(next(iter(stage.peers.values())).identity.key)
    for member in first.member.state.members:
        name = known.get(bytes(member.subject))
        if name is None:
            yield f"{bytes(member.subject).hex()[:8]}, whom nobody admitted, is a member"
        elif Role.OWNER in member.roles and bytes(member.subject) != founder:
            yield f"{name}, whom nobody made one, is an owner"
        elif bytes(member.subject) != founder and name not in stage.account.members:
            yield f"{name}, who was revoked or never admitted, is a member"
    there = {bytes(member.subject) for member in first.member.state.members}
    for name in (stage.founder.name, *stage.account.members):
        if bytes(stage.peers[name].identity.key) not in there:
            yield f"{name} is no member"


def epochs_agree(stage: Stage) -> Iterator[str]:
    """No honest peer computes another snapshot than an honest declarer, unless they hold branches of a forked feed.

    All peers have reached the last final epoch.
    """
    devices = {bytes(peer.device.key): peer.name for peer in stage.honest()}
    for peer in stage.honest():
        chain = peer.epochs.chain()
        if peer.epochs.disagreement is not None:
            yield f"{peer.name} computes another snapshot of epoch {peer.epochs.disagreement.number}"
        if peer.epochs.number != len(chain.final):
            yield f"{peer.name} is at epoch {peer.epochs.number} of {len(chain.final)}: {peer.epochs.waits_for}"
    for peer in stage.honest()[:1]:
        for act in peer.member.machine.acts():
            claim = act.claim
            if not isinstance(claim, EpochRefusal) or not claim.computed:
                continue
            for refuser in sorted(devices.keys() & set(act.signers)):
                if devices.keys() & _declarers(peer, claim) and not _left_branch(stage, devices[refuser], claim):
                    yield f"{devices[refuser]} computes another snapshot than the honest declarer: {claim.reason}"


def epochs_come(stage: Stage) -> Iterator[str]:
    """An epoch that is due is made, because all peers can communicate in the end."""
    wanted = stage.rules.epoch_messages
    if not wanted:
        return
    for peer in stage.honest():
        with peer.party.locked() as engine:
            states = [lane.state for lane in engine.delivery.lanes.values()]
        outside = sum(state.position - state.base for state in states)
        if outside >= wanted:
            yield f"{peer.name} has {outside} messages outside the last epoch, of {wanted}: {peer.driver.status}"
            return


def rebuilt_alike(stage: Stage) -> Iterator[str]:
    """One peer discards its derived state and rebuilds it, with the same result."""
    peer = stage.honest()[stage.scenario.seed % len(stage.honest())]
    before = _states(peer)
    peer.party.begin_again()
    after = _states(peer)
    if before != after:
        item = min(item for item in before.keys() | after.keys() if before.get(item) != after.get(item))
        yield f"{peer.name}: item {item.hex()} is another after it was built again: {_value(peer, item)}"


def honest_feeds_go_on(stage: Stage) -> Iterator[str]:
    """No feed of an honest member that was never revoked has ended, and none of its blocks waits."""
    names = {bytes(peer.device.key): peer.name for peer in stage.honest() if peer.name not in stage.account.names}
    for peer in stage.honest():
        machine = peer.member.machine
        owned = {feed: names[one.device] for feed, one in machine.authority.owners().items() if one.device in names}
        for feed, name in sorted(owned.items()):
            if min(machine.authority.end(feed), machine.fork_ends.get(feed, NO_END)) != NO_END:
                yield f"{peer.name} has ended feed {feed.hex()[:8]} of {name}"
        for one in peer.party.status().blocked:
            if one.feed in owned:
                yield f"{peer.name} does not deliver {one.feed.hex()[:8]} {one.seq} of {owned[one.feed]}: {one.reason}"
        for block in machine.waiting():
            if block.stamp.feed in owned:
                yield f"{peer.name} waits with {block.stamp} of {owned[block.stamp.feed]}"


def life_goes_on(stage: Stage) -> Iterator[str]:
    """Members write, and the founder admits, revokes and sets the policy. This law comes last: it changes the party.

    If somebody has lied, all restart, a newcomer joins, and an epoch is made; then the other laws still hold.
    """
    for peer in stage.honest():
        if peer is stage.founder or peer.name in stage.account.members:
            yield from _tries(peer, "write", lambda peer=peer: peer.party.create("antiphon/object"))  # type: ignore[misc]
    founder, somebody = stage.founder, KeyPair.from_seed(sha256(b"somebody new").digest()).key
    yield from _tries(founder, "admit", lambda: founder.member.admit(somebody, [Role.EDITOR]))
    yield from _tries(founder, "revoke", lambda: founder.member.revoke(somebody))
    yield from _tries(founder, "set the policy", lambda: founder.member.set_policy(founder.epochs.policy()))
    if Fault.LIARS in stage.scenario.faults:
        if not stage.go_on():
            yield "the party does not come to rest again"
        for law in (one_history, one_quarantine, one_party, epochs_agree, epochs_come, honest_feeds_go_on):
            yield from (f"after restarts: {text}" for text in law(stage))


def _tries(peer: SimPeer, what: str, act: Callable[[], object]) -> Iterator[str]:
    try:
        act()
    except AntiphonError as error:
        yield f"{peer.name} cannot {what}: {error}"


def bounded(stage: Stage) -> Iterator[str]:
    """Queues and caches have stayed within their limits."""
    pairs = sum(len(peer.neighbours) for peer in stage.peers.values())
    if stage.network.under_way_max > UNDER_WAY_MAX * max(1, pairs):
        yield f"{stage.network.under_way_max} messages were under way at once"
    for peer in stage.honest():
        yield from (f"{peer.name} had {text}" for text in peer.maxima.beyond(peer))


def channels_hold(stage: Stage) -> Iterator[str]:
    """No peer took a connection for one of a device that did not dial it, nor bytes twice, nor used a tag twice."""
    yield from stage.network.misled


LAWS: dict[str, Law] = {
    "one history": one_history,
    "one quarantine": one_quarantine,
    "nothing lost": nothing_lost,
    "nothing dropped": nothing_dropped,
    "who may write can": who_may_write_can,
    "nothing unauthorised": nothing_unauthorised,
    "nothing given away": nothing_given_away,
    "one party": one_party,
    "epochs agree": epochs_agree,
    "epochs come": epochs_come,
    "bounded": bounded,
    "channels hold": channels_hold,
    "honest feeds go on": honest_feeds_go_on,
    "rebuilt alike": rebuilt_alike,
    "life goes on": life_goes_on,
}


# -- observations of a peer


def _frame(peer: SimPeer) -> dict[str, int]:
    return {feed.hex()[:8]: seq for feed, seq in sorted(peer.party.timeframe.items())}


def _base(peer: SimPeer) -> str:
    base = peer.epochs.base
    return "nothing" if base is None else f"epoch {base.number} {base.cid}"


def _states(peer: SimPeer) -> dict[bytes, bytes]:
    return {item: peer.party.snapshot(item) for item in peer.party.items()}


def _value(peer: SimPeer, item: bytes) -> Any:
    try:
        return peer.party.item(item).value
    except AntiphonError as error:
        return f"{type(error).__name__}: {error}"


def _refused(peer: SimPeer) -> set[Refused]:
    base = peer.epochs.base
    rows = peer.party.refused(REFUSED_MAX)
    return {row for row in rows if base is None or row.seq >= base.length(row.feed)}


def _uncoded(peer: SimPeer, refused: set[Refused]) -> Iterator[str]:
    """The reasons without a code that a peer gives for anything."""
    reasons = [row.reason for row in refused]
    reasons += [void.reason for void in peer.member.voids]
    reasons += [refusal.reason for refusal in peer.store.quarantine().refusals]
    reasons += [blocked.reason for blocked in peer.party.status().blocked]
    return (reason for reason in reasons if code_of(reason) is Reason.OTHER)


def _length(peer: SimPeer, feed: bytes) -> int:
    """The length of a feed at a peer, blocks in its base snapshot included."""
    base = peer.epochs.base
    based = 0 if base is None else base.length(feed)
    try:
        return max(based, peer.store.record(feed).length)
    except UnknownFeed:
        return based


def _declarers(peer: SimPeer, refusal: EpochRefusal) -> set[bytes]:
    """The keys that signed the refused epoch; none if it holds one branch of a forked feed: others hold the other."""
    wanted, machine = (refusal.term, refusal.number, refusal.snapshot), peer.member.machine
    return {
        signer
        for act in machine.acts()
        if isinstance(act.claim, EpochGenesis)
        and (act.claim.term, act.claim.number, act.claim.snapshot) == wanted
        and all(length <= machine.common(feed) for feed, length in act.claim.cut.items())
        for signer in act.signers
    }


def _left_branch(stage: Stage, refuser: str, refusal: EpochRefusal) -> bool:
    """True if a peer refused an epoch for another branch of a feed, and has left that: it keeps the other last block.

    The declarer may have pruned its branch before it met the peer. Then nobody has evidence of the fork.
    """
    kept = stage.peers[refuser].store
    for peer in stage.honest():
        with suppress(InvalidInput, MissingBlob):
            cuts = EpochBase.load(Cid(refusal.snapshot), peer.blobs, party=peer.key).feeds
            return any(
                span.first < cut.length <= span.end and span.hash_at(cut.length - 1) != cut.hash
                for feed, cut in cuts.items()
                for span in kept.branches(feed)
            )
    return False
