"""Verifies homes and archives without folding an item.

It checks chains, heads, bodies and header rules; then, for each party, credentials and cuts, lamports, and whether all
blocks that others refer to are present. The findings are those of the survey of a run, and of the control feeds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from antiphon.core.errors import AntiphonError
from antiphon.core.reasons import Reason, because, code_of, coded
from antiphon.feed.feed_record import End, FeedRecord
from antiphon.feed.fork import Fork
from antiphon.feed.store.reader import FeedReader
from antiphon.halo.control.machine import PartyMachine
from antiphon.party.engine.authority import PartyAuthority
from antiphon.party.live.manager import find_genesis
from antiphon.pipeline.plan.party_plan import FAULTY, FORKED, NOT_ADMITTED, LanePlan, PartyPlan
from antiphon.pipeline.plan.survey import survey
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.session.worker_errors import raise_worker_errors
from antiphon.pipeline.source.home import open_feeds

# Kinds of findings. These are faults:
DAMAGED = "damaged"  # blocks do not verify, or are missing from the disk
BROKEN = "broken"  # its writer broke a rule: a second history, a header, a lamport, a kind of feed
UNKNOWN = "unknown"  # the party cannot be judged
#: These are not faults: honest parties have them.
VOID = "void"  # written without a right, beyond a cut, or erased
WAITS = "waits"  # for blocks that are not here
FAULTS = (DAMAGED, BROKEN, UNKNOWN)
_NOT_ITS_FORK = because(Reason.FORK, "its fork is shown by another feed's")

_LIE = re.compile(r"block \d+: ")  # begins a reason about a block of the lane itself, not of another feed


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A range of blocks of a feed, its kind of finding, and the reason."""

    party: bytes
    feed: bytes  # empty: the finding is about the party
    seq: int
    count: int
    kind: str
    reason: str

    @property
    def code(self) -> Reason:
        """The stable code of the reason."""
        return code_of(self.reason)

    def row(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        about = {
            "seq": self.seq,
            "count": self.count,
            "kind": self.kind,
            "reason": self.reason,
            "code": self.code.value,
        }
        return {"party": self.party.hex(), "feed": self.feed.hex(), **about}


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of verifying: what was checked, and the findings."""

    homes: tuple[str, ...]
    parties: int
    feeds: int
    blocks: int
    findings: tuple[Finding, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are faults."""
        return tuple(finding for finding in self.findings if finding.kind in FAULTS)

    @property
    def kinds(self) -> Counter[str]:
        """The number of blocks by kind of finding."""
        found: Counter[str] = Counter()
        for finding in self.findings:
            found[finding.kind] += max(1, finding.count)
        return found

    def row(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        about = {"homes": list(self.homes), "parties": self.parties, "feeds": self.feeds, "blocks": self.blocks}
        return {
            **about,
            "right": not self.faults,
            "kinds": dict(self.kinds),
            "findings": [one.row() for one in self.findings],
        }


def verify(spark: SparkSession, homes: str | Path | Sequence[str | Path], parties: Collection[bytes] = ()) -> Verified:
    """Verify some parties of homes or archives, or all."""
    with raise_worker_errors():
        looked = survey(spark, homes, parties)
        asked = [(plan.home, plan.party) for plan in looked.plans]
        controls = in_workers(spark, _control, asked)
    findings = {finding for plan in looked.plans for finding in _findings(plan)}
    findings.update(finding for found, _ in controls for finding in found)
    feeds = sum(len(records) for _, records in controls)
    blocks = sum(length - start for _, records in controls for start, length in records)
    return Verified(looked.homes, len(looked.plans), feeds, blocks, tuple(sorted(findings)))


def _findings(plan: PartyPlan) -> Iterator[Finding]:
    for fault in plan.faults:
        yield Finding(plan.party, fault.feed, fault.seq, 1, DAMAGED, fault.reason)
    if plan.error:
        yield Finding(plan.party, b"", 0, 0, UNKNOWN, plan.error)
        return
    for lane in plan.lanes:
        yield from _lane(plan.party, lane)
    for feed, length in plan.other.items():
        if length:
            yield Finding(plan.party, feed, 0, length, WAITS, NOT_ADMITTED)


def _lane(party: bytes, lane: LanePlan) -> Iterator[Finding]:
    if lane.ended in (FORKED, FAULTY):  # else the feed is damaged, which is a finding already
        yield Finding(party, lane.feed, lane.end, max(0, lane.length - lane.end), BROKEN, lane.ended)
    if lane.waits:
        kind = BROKEN if _LIE.match(lane.waits) else WAITS
        held = min(lane.end, lane.length) - lane.position
        yield Finding(party, lane.feed, lane.position, max(0, held), kind, lane.waits)
    for void in lane.voids:
        yield Finding(party, lane.feed, void.start, void.stop - void.start, VOID, void.reason)


def _control(asked: tuple[str, bytes]) -> tuple[list[Finding], list[tuple[int, int]]]:
    """Return the findings about control feeds and evidence of forks, and the range of blocks that each feed has."""
    home, party = asked
    with open_feeds(home) as store:
        records = store.feeds(party)
        found = list(_evidence(store, records))
        with suppress(AntiphonError):  # the plan has the reason already
            found += _acts(store, party, records)
        return found, [(record.start, record.length) for record in records]


def _evidence(store: FeedReader, records: Iterable[FeedRecord]) -> Iterator[Finding]:
    for record in records:
        evidence = store.fork(record.feed)
        if evidence is None:
            continue
        try:
            fork = Fork.decode(evidence)
            if (fork.party, fork.feed) != (record.party, record.feed):
                yield Finding(record.party, record.feed, fork.seq, 0, DAMAGED, _NOT_ITS_FORK)
        except AntiphonError as error:
            yield Finding(record.party, record.feed, 0, 0, DAMAGED, coded(Reason.DAMAGED, str(error)))


def _acts(store: FeedReader, party: bytes, records: Iterable[FeedRecord]) -> Iterator[Finding]:
    genesis = find_genesis(store, party)
    if genesis is None:
        return
    machine = PartyMachine(party, genesis)
    PartyAuthority(store, machine).refresh()
    for void in machine.voids():
        yield Finding(party, void.stamp.feed, void.stamp.seq, 1, VOID, void.reason)
    for act in machine.waiting():
        entry = act.entry
        reason = because(Reason.WAITS_BLOCK, f"block {entry.seq} of feed {entry.feed.hex()[:8]}")
        yield Finding(party, act.stamp.feed, act.stamp.seq, 1, WAITS, reason)
    for record in records:
        if machine.is_control(record.feed) and record.why is not End.NONE:
            why = FORKED if record.why is End.FORK else FAULTY
            yield Finding(party, record.feed, record.end, max(0, record.length - record.end), BROKEN, why)
