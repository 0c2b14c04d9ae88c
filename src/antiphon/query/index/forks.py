"""`StoredForks`: the forks in the item index, with changes that are not written yet."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from antiphon.query.forks import Fork, Forks
from antiphon.query.index.tables import bare, ref

_NONE = Fork(b"", b"")


class StoredForks(Forks):
    """The table `forks`. `said` has the current forks of changed items, None for a removed item."""

    def __init__(self, db: sqlite3.Connection, said: Mapping[bytes, Fork | None] | None = None) -> None:
        self._db = db
        self._said = {} if said is None else said
        self._known: dict[bytes, Fork] = {}
        self._olds: dict[bytes, set[bytes]] = {}  # of changed items
        for fork in self._said.values():
            if fork is not None and fork.new:
                self._olds.setdefault(fork.new, set()).add(fork.old)
        self._any = bool(self._olds) or db.execute("SELECT 1 FROM forks LIMIT 1").fetchone() is not None

    def __bool__(self) -> bool:
        return self._any

    def after(self, item: bytes) -> bytes:
        if not self._any:
            return b""
        fork = self._fork(item)
        return fork.new if fork.here else b""

    def says(self, item: bytes) -> bytes:
        """The item that `item` was forked into, present or not."""
        return self._fork(item).new if self._any else b""

    def before(self, item: bytes) -> Iterable[bytes]:
        if not self._any:
            return ()
        rows = self._db.execute("SELECT old FROM forks WHERE new = ?", (ref(item),))
        return {old for (stored,) in rows if (old := bare(stored)) not in self._said} | self._olds.get(item, set())

    def key(self, item: bytes) -> bytes:
        return self._fork(item).key

    def _fork(self, item: bytes) -> Fork:
        known = self._known.get(item)
        if known is None:
            known = self._known[item] = self._find(item)
        return known

    def _find(self, item: bytes) -> Fork:
        if item in self._said:
            fork = self._said[item] or _NONE
        else:
            row = self._db.execute("SELECT old, new, key FROM forks WHERE old = ?", (ref(item),)).fetchone()
            fork = _NONE if row is None else Fork(item, bare(row[1]), row[2])
        return fork._replace(here=self._is_here(fork.new)) if fork.new else fork

    def _is_here(self, item: bytes) -> bool:
        if item in self._said:
            return self._said[item] is not None
        return self._db.execute("SELECT 1 FROM docs WHERE id = ?", (ref(item),)).fetchone() is not None

    def leads_elsewhere(self, later: Forks, items: Iterable[bytes]) -> set[bytes]:
        """The former and new ends of all ids that `later` resolves differently; `items` are all changed items."""
        olds = self.upstream(items) | later.upstream(items)
        leads = {(self.lead(old), later.lead(old)) for old in olds}
        return {end for was, now in leads if was != now for end in (was, now)}

    def save(self) -> None:
        """Write the changed forks."""
        self._db.executemany("DELETE FROM forks WHERE old = ?", [(ref(item),) for item in self._said])
        forks = [fork for fork in self._said.values() if fork is not None and fork.new]
        rows = [(ref(fork.old), ref(fork.new), fork.key) for fork in forks]
        self._db.executemany("INSERT INTO forks VALUES (?, ?, ?)", rows)
