"""Check an archive: its files, every block and head, the evidence of forks, every blob."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from antiphon.core.cid import Cid
from antiphon.core.errors import AntiphonError
from antiphon.pipeline.archive_format.manifest import BLOBS, ArchiveFile, Manifest, check_file, read_row_groups
from antiphon.pipeline.jobs.verify import DAMAGED, UNKNOWN, Verified, verify
from antiphon.pipeline.session.tasks import in_workers
from antiphon.pipeline.session.worker_errors import raise_worker_errors

REASONS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Errors of files and blobs, and the findings of verifying the feeds."""

    files: int
    blobs: int
    wrong: tuple[str, ...]
    verified: Verified | None  # None: the records of feeds cannot be read

    @property
    def right(self) -> bool:
        """True if the archive is complete and undamaged. Rules that a feed's writer broke are archived as they are, and
        do not count against the archive.
        """
        if self.wrong or self.verified is None:
            return False
        return not any(finding.kind in (DAMAGED, UNKNOWN) for finding in self.verified.findings)

    def row(self) -> dict[str, Any]:
        """The report as a JSON object."""
        found = {} if self.verified is None else self.verified.row()
        return {**found, "files": self.files, "blobs": self.blobs, "wrong": list(self.wrong), "right": self.right}


def check_archive(spark: SparkSession, folder: str | Path) -> CheckReport:
    """Compare the files of an archive with their digests, then verify its feeds and blobs."""
    place = Path(folder).expanduser().absolute()
    manifest = Manifest.read(place)
    with raise_worker_errors():
        wrong = [text for text in in_workers(spark, _file, [(str(place), file) for file in manifest.files()]) if text]
        blobs = in_workers(spark, _blobs, [(str(place), file) for file in manifest.blobs])
    wrong += [text for _, found in blobs for text in found]
    verified = None
    try:
        verified = verify(spark, place)
    except AntiphonError as error:  # its records cannot be read
        wrong.append(str(error))
    count = sum(seen for seen, _ in blobs)
    return CheckReport(len(list(manifest.files())), count, tuple(dict.fromkeys(wrong[:REASONS_MAX])), verified)


def _file(asked: tuple[str, ArchiveFile]) -> str:
    folder, file = asked
    try:
        check_file(Path(folder), file)
    except AntiphonError as error:
        return str(error)
    return ""


def _blobs(asked: tuple[str, ArchiveFile]) -> tuple[int, list[str]]:
    folder, file = asked
    count, wrong = 0, []
    try:
        for rows in read_row_groups(Path(folder), file, BLOBS):
            for row in rows:
                count += 1
                if not Cid(row["cid"]).matches(row["data"]):
                    wrong.append(f"{file.name}: blob {Cid(row['cid'])} is not what its CID names")
    except AntiphonError as error:
        wrong.append(str(error))
    return count, wrong[:REASONS_MAX]
