"""A process that opens, checks and repairs damaged homes: a line names one, and the keys of its parties.

Each home is tried in a forked child, so that a signal is an answer, too. It answers each line with one of JSON: the
signal or status with which the child ended, and what the child was told and shown.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import antiphon
from antiphon import prop
from antiphon.api.health.check import check_home
from antiphon.api.health.repair import repair_home
from antiphon.core.errors import AntiphonError


def shown(party: antiphon.Party) -> dict[str, Any]:
    """All items of a party by name, after a query that uses the index was compared with them."""
    values = {item.name: item.snapshot().hex() for item in party.query()}
    numbered = {item.name for item in party.query() if item.model == "antiphon/object" and "number" in item.value}
    found = [item.name for item in party.query(prop("number") >= 0)]
    assert set(found) == numbered, f"a query found {found}, and the items are {sorted(numbered)}"
    return values


def read(home: Path, parties: Sequence[str]) -> dict[str, Any]:
    """Open a home, and return by party what it shows, or the refusal; and what is told beside it."""
    try:
        store = antiphon.open(home, unprotected=True, epochs=False)
    except AntiphonError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    answer: dict[str, Any] = {"parties": {}, "told": []}
    with store:
        for key in parties:
            try:
                party = store.party(key)
                answer["parties"][key] = shown(party)
                status = party.status()
                answer["told"] += [one.reason for one in status.blocked] + [status.rebuilt, party.epochs.waits_for]
                answer["told"] += ["the view is missing"] * status.view_missing
            except AntiphonError as error:
                answer["parties"][key] = f"{type(error).__name__}: {error}"
    answer["told"] = [text for text in answer["told"] if text]
    return answer


def findings(home: Path) -> list[dict[str, Any]]:
    return [finding.row() for finding in check_home(home).wrong]


def probe(home: Path, parties: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        other = Path(folder, "home")
        shutil.copytree(home, other)
        found = findings(home)
        answer = {"found": found, "read": read(home, parties), "again": findings(home)}
        repaired = repair_home(other)
        left = [finding.row() for finding in repaired.left if not finding.harmless]
        return {**answer, "left": left, "repaired": len(repaired.repaired), "after": read(other, parties)}


def in_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            answer = work()
        except BaseException:
            answer = {"crash": traceback.format_exc()}
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return json.loads(text) if text and not code else {"crash": f"the process ended with {code}"}


def main() -> None:
    for line in sys.stdin:
        home, parties = json.loads(line)
        print(json.dumps(in_child(partial(probe, Path(home), parties))), flush=True)


if __name__ == "__main__":
    main()
