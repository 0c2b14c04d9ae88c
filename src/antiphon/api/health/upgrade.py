"""`upgrade_home`: the steps from one version of a home to the next. `antiphon.open` takes them.

Each step can be taken again, in part or as a whole, with the same result. The version is written after each, so a
program that is killed anywhere leaves a home that the next opening upgrades to the same state.

>>> from antiphon.core.home_version import read_version
>>> import antiphon
>>> from pathlib import Path
>>> antiphon.open("laptop", unprotected=True).close()
>>> read_version(Path("laptop")), upgrade_home(Path("laptop"))
(2, [])
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.api.health.home_files import FEEDS, tighten
from antiphon.core.disk_room import disk_full, is_full
from antiphon.core.errors import StoreError
from antiphon.core.home_version import HOME_VERSION, need_version, write_version
from antiphon.feed.store.lock import lock

_LOG = logging.getLogger("antiphon")


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a home. `version` is the version that the home has after it.

    `run` must be idempotent, and leave its changes on the disk. It runs while no other process writes the home, and
    before any file of the home is open.
    """

    version: int
    what: str
    run: Callable[[Path], object]


#: Ascending; the first step leads from version 1 to version 2.
STEPS = (Step(2, "take the permissions of others from all files", tighten),)
assert STEPS[-1].version == HOME_VERSION, "the last step leads to the version that this program makes"


def upgrade_home(home: Path, steps: Sequence[Step] = STEPS) -> list[Step]:
    """Take the steps that a home lacks; return them. Refuse a home that is newer than the last step.

    `StoreLocked` names a process that writes the home meanwhile. A home of the last version is not locked or changed.
    """
    newest = steps[-1].version
    if need_version(home, newest) == newest:
        return []
    try:
        handle = lock(home / FEEDS)
    except OSError as error:
        raise _unwritable(home, error) from error
    try:
        begin = need_version(home, newest)  # another process may have upgraded it meanwhile
        todo = [step for step in steps if step.version > begin]
        for step in todo:
            _LOG.info("%s: upgrade to version %d: %s", home, step.version, step.what)
            step.run(home)
            write_version(home, step.version)
        return todo
    except OSError as error:
        raise _unwritable(home, error) from error
    finally:
        os.close(handle)


def _unwritable(home: Path, error: OSError) -> StoreError:
    if is_full(error):
        return disk_full("the upgrade of the home", home)
    return StoreError(
        f"the home {home} could not be upgraded: {error.filename or home}: {error.strerror}. Remove the cause, and "
        "open it again: the upgrade goes on where it stopped"
    )
