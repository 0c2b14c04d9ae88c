"""`check_home`: everything that is wrong with a home. Nothing is written, and a running peer may use the home.

>>> import antiphon
>>> from pathlib import Path
>>> with antiphon.open("laptop", unprotected=True, epochs=False) as store:
...     _ = store.create_party("Household")
>>> report = check_home(Path("laptop"))
>>> report.findings, report.feeds, report.blocks
((), 2, 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from antiphon.api.health import feed_checks, file_checks
from antiphon.api.health.feed_checks import Tick
from antiphon.api.health.finding import Finding, FindingCode
from antiphon.core.errors import InvalidInput
from antiphon.feed.feed_record import FeedRecord


@dataclass(frozen=True, slots=True)
class HomeReport:
    """The findings in a home, and how much was read for them."""

    findings: tuple[Finding, ...]
    feeds: int
    blocks: int

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that are no mere notes."""
        return tuple(finding for finding in self.findings if not finding.harmless)


def check_home(home: Path, passphrase: str | None = None, tick: Tick = lambda *_: None) -> HomeReport:
    """Read all files of a home and check every byte that has a checksum, hash or signature."""
    if not home.is_dir():
        raise InvalidInput(f"there is no home in {home}; name the peer's folder")
    records: list[FeedRecord] = []
    found = tuple(_check(home, passphrase, tick, records))
    return HomeReport(found, len(records), sum(record.length - record.start for record in records))


def _check(home: Path, passphrase: str | None, tick: Tick, records: list[FeedRecord]) -> Iterator[Finding]:
    of_version = list(file_checks.check_version(home))
    yield from of_version
    if any(finding.code is FindingCode.VERSION_NEWER for finding in of_version):
        return  # this program does not know what its files mean
    yield from feed_checks.check_feeds(home, tick, records)
    yield from chain(
        feed_checks.check_blobs(home, tick),
        file_checks.check_keys(home, passphrase, records),
        file_checks.check_metadata(home, records),
        file_checks.check_items(home),
        file_checks.check_settings(home),
        file_checks.check_permissions(home),
    )
