"""`TakenFeeds`: how far the feeds of a store were taken into a party state machine."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from antiphon.feed.feed_record import FeedRecord


def _spans() -> dict[bytes, dict[bytes, int]]:
    return defaultdict(dict)


@dataclass(slots=True)
class TakenFeeds:
    """The memory of `fold_control_feeds`, by feed: it reads only what is new."""

    folded: dict[bytes, FeedRecord] = field(default_factory=dict)  # the record up to which blocks were taken
    shown: dict[bytes, dict[bytes, int]] = field(default_factory=_spans)  # by last hash: where spans of branches begin
    data: dict[bytes, dict[bytes, int]] = field(default_factory=_spans)  # the same, looked at in vain for control
    strangers: dict[bytes, bytes] = field(default_factory=dict)  # control feeds that were not known: their identities
    beginless: dict[bytes, FeedRecord] = field(default_factory=dict)  # only later blocks of a branch are here
