"""Write changed items into the tables of the item index, only the rows and columns that differ.

First all changed items are read and compared, with the items that name a forked item. Then the rows of each table are
written together. Parents in cycles follow from the claims of all members, so they are settled once for all items of a
transaction (`settle_parents`): a save that puts a large cycle in parts would otherwise settle it for each part.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.hierarchy import components, settle
from antiphon.query.codec.facts import Encoded, apart, decode_both, decode_claims, decode_parts
from antiphon.query.facts import CREATED_MS_MAX, Facts
from antiphon.query.forks import Forks, fork_in
from antiphon.query.index.columns import PUT_WORDS, elements
from antiphon.query.index.forks import StoredForks
from antiphon.query.index.sql import Slots
from antiphon.query.index.tables import EMBEDS, FIXED, REFERENCES, bare, ref
from antiphon.query.tokens import to_fts
from antiphon.query.value_order import BYTES, Column, column, time_column

_READ_AT_ONCE = 500
_OWN = ["deleted", *(name for name in FIXED.values() if name != "parent")]  # the parent depends on other items too
Row = tuple[Any, ...]


class Change(NamedTuple):
    """The facts of an item before and after; None where it did not, or does not, exist."""

    n: int
    before: Facts | None
    after: Facts | None
    columns: Sequence[Any]  # before
    data: Encoded | None
    claims: bytes | None  # None: unchanged, and left out of both facts


def put(db: sqlite3.Connection, slots: Slots, rows: dict[bytes, bytes | None], unsettled: set[bytes]) -> set[bytes]:
    """Write these items; return the items whose references changed. Items whose parents must be settled later are added
    to `unsettled`.
    """
    forks = StoredForks(db)
    changes = _changes(db, slots, rows, whole=bool(forks))
    if not forks and any(change.after is not None and change.after.forked_to for change in changes):
        changes = _changes(db, slots, rows, whole=True)
    if not changes:
        return set()
    later = StoredForks(db, {_id(change): fork_in(change.after) if change.after else None for change in changes})
    named: set[bytes] = set()
    if forks or later:
        ends = forks.leads_elsewhere(later, map(_id, changes))
        named = namers(db, ends) - {_id(change) for change in changes}
        changes = [
            change._replace(before=_led(forks, change.before), after=_led(later, change.after))
            for change in [*changes, *_same(db, slots, sorted(named))]
        ]
    _put_docs(db, slots, changes, _put_claims(db, changes, forks, later, unsettled))
    _put_facts(db, changes)
    _put_edges(db, changes)
    _put_members(db, slots, changes)
    if slots.words:
        _put_words(db, changes)
    if forks or later:
        later.save()
    return named


def _id(change: Change) -> bytes:
    facts = change.after or change.before
    assert facts is not None
    return facts.id


# -- what changed


def _changes(db: sqlite3.Connection, slots: Slots, rows: dict[bytes, bytes | None], *, whole: bool) -> list[Change]:
    """The changed items. Unless `whole`, unchanged claims are left out, since there may be thousands. Where there are
    forks, unchanged claims may resolve to other items, so they are needed.
    """
    stored = {row[0][1:]: row for row in _stored(db, slots, list(rows))}
    following = 1 + (db.execute("SELECT max(n) FROM docs").fetchone()[0] or 0)
    found: list[Change] = []
    for item, encoded in rows.items():
        old = stored.get(item)
        claims: bytes = b""
        data: Encoded | None = None
        if encoded is not None:
            claims, data = apart(encoded)
        if old is None:
            if data is not None:
                found.append(Change(following, None, decode_parts(data, claims), (), data, claims))
                following += 1
        elif old[2] != data or old[4] != claims:
            same = data is not None and old[4] == claims and not whole
            earlier, later = ((), ()) if same else decode_both(old[4], claims)
            before = decode_parts(old[2], earlier, bare(old[3]))
            after = None if data is None else decode_parts(data, later)
            found.append(Change(old[1], before, after, old[5:], data, None if same else claims))
    return found


def _same(db: sqlite3.Connection, slots: Slots, ids: list[bytes]) -> Iterator[Change]:
    """Items whose own facts did not change."""
    for _, n, data, parent, claims, *columns in _stored(db, slots, ids):
        facts = decode_parts(data, claims, bare(parent))
        yield Change(n, facts, facts, columns, data, claims)


def namers(db: sqlite3.Connection, ends: Iterable[bytes]) -> set[bytes]:
    """The items that name one of these by an edge or a claim, and the given items that are present."""
    found: set[bytes] = set()
    for end in ends:
        to = ref(end)
        rows = db.execute(
            "SELECT id FROM docs WHERE id = ?1"
            " UNION SELECT id FROM docs WHERE source = ?1 UNION SELECT id FROM docs WHERE target = ?1"
            " UNION SELECT docs.id FROM edges JOIN docs ON docs.n = edges.source WHERE kind = ?2 AND edges.target = ?1"
            " UNION SELECT docs.id FROM edges JOIN docs ON docs.n = edges.source WHERE kind = ?3 AND edges.target = ?1",
            (to, EMBEDS, REFERENCES),
        )
        found.update(bare(item) for (item,) in rows)
        found.update(child for (child,) in db.execute("SELECT child FROM claims WHERE parent = ?", (end,)))
    return found


def _led(forks: Forks, facts: Facts | None) -> Facts | None:
    return None if facts is None else forks.led(facts)


def _stored(db: sqlite3.Connection, slots: Slots, ids: list[bytes]) -> Iterator[Row]:
    names = ", ".join(f"docs.{name}" for name in _names(slots))
    for start in range(0, len(ids), _READ_AT_ONCE):
        some = [ref(item) for item in ids[start : start + _READ_AT_ONCE]]
        marks = ",".join("?" * len(some))
        yield from db.execute(
            "SELECT docs.id, n, facts.data, docs.parent, facts.claims, "  # noqa: S608
            f"{names} FROM docs JOIN facts USING (n) WHERE id IN ({marks})",
            some,
        )


def _names(slots: Slots) -> list[str]:
    """The columns that depend on the item alone."""
    return [*_OWN, *(f"v{slot}" for slot in slots.columns.values())]


def _columns(facts: Facts, slots: Slots) -> list[Column]:
    """`column(facts.get(fact))` for each column, at a tenth of the cost, since every change pays it."""
    source, target = facts.link or (b"", b"")
    return [
        int(facts.deleted),
        ref(facts.id),
        facts.model,
        facts.version,
        facts.type or None,
        facts.name or None,
        time_column(1000 * min(facts.created_ms, CREATED_MS_MAX)),
        _ref(source),
        _ref(target),
        facts.view_class or None,
        b"%c%b" % (BYTES, facts.view_key) if facts.view_key else None,
        *[column(facts.get(path)) for path in slots.columns],
    ]


# -- parents


Claims = Sequence[tuple[Stamp, bytes]]


def _put_claims(
    db: sqlite3.Connection, changes: list[Change], forks: Forks, later: Forks, unsettled: set[bytes]
) -> dict[bytes, bytes]:
    """Write the claims of items. Return the parents of those that no item claims, which are thus in no cycle.

    The others of these items are unsettled: a later part of the transaction may change who claims them. A later claim
    that closes a cycle is that of an item which is claimed then. New claims can only merge cycles. Where claims are
    removed, the members of the former cycles are unsettled too. An earlier part may have split such a cycle; then all
    of its members are in `unsettled` already.
    """
    claiming = [change for change in changes if change.claims is not None]
    before = {_id(change): forks.led_claims(change.before.claims) if change.before else () for change in claiming}
    after = {_id(change): later.led_claims(change.after.claims) if change.after else () for change in claiming}
    changed = {item for item in after if list(before[item]) != list(after[item])}
    if not changed:
        return {}
    lost = _claimed(db, (item for item in changed if not set(before[item]) <= set(after[item])))
    cycles = [set(members) for members in components(lost, _claims_of(db, before, forks))]
    apart = set().union(*(members for members in cycles if not members.isdisjoint(lost)))
    gone, new = (_named_by(changed, one, other) for one, other in ((before, after), (after, before)))
    db.executemany("DELETE FROM claims WHERE parent = ? AND child = ?", gone)
    db.executemany("INSERT INTO claims VALUES (?, ?)", new)
    waiting = _claimed(db, changed) | apart
    unsettled |= waiting
    return {item: after[item][-1][1] if after[item] else b"" for item in changed - waiting}


def settle_parents(db: sqlite3.Connection, unsettled: set[bytes]) -> set[bytes]:
    """Write the parents of unsettled items, and of all in a cycle with them: see `hierarchy.settle`.

    Returns the items whose parent is another than the one written.
    """
    return _move(db, settle(unsettled, _claims_of(db, {}, StoredForks(db)))) if unsettled else set()


def _named_by(items: set[bytes], claims: Mapping[bytes, Claims], others: Mapping[bytes, Claims]) -> Iterator[Row]:
    """Yield (parent, item) for the parents in the claims of each item that are not in its other claims."""
    for item in items:
        for parent in {parent for _, parent in claims[item]} - {parent for _, parent in others[item]}:
            if parent:
                yield parent, item


def _claimed(db: sqlite3.Connection, items: Iterable[bytes]) -> set[bytes]:
    """The items that some item claims as its parent."""
    every = list(items)
    found: set[bytes] = set()
    for start in range(0, len(every), _READ_AT_ONCE):
        some = every[start : start + _READ_AT_ONCE]
        marks = ",".join("(?)" for _ in some)
        with_some = f"WITH some (item) AS (VALUES {marks}) "
        ask = with_some + "SELECT item FROM some WHERE EXISTS (SELECT 1 FROM claims WHERE parent = item)"  # noqa: S608
        found.update(item for (item,) in db.execute(ask, some))
    return found


def _claims_of(db: sqlite3.Connection, known: Mapping[bytes, Claims], forks: Forks) -> Callable[[bytes], Claims]:
    cache: dict[bytes, Claims] = dict(known)

    def claims_of(item: bytes) -> Claims:
        if item not in cache:
            cache[item] = forks.led_claims(claims_in(db, item))
        return cache[item]

    return claims_of


def claims_in(db: sqlite3.Connection, item: bytes) -> Claims:
    """The claims of an item to parents, without resolving forks."""
    row = db.execute("SELECT claims FROM facts JOIN docs USING (n) WHERE id = ?", (ref(item),)).fetchone()
    return () if row is None else decode_claims(row[0])


def _move(db: sqlite3.Connection, parents: dict[bytes, bytes]) -> set[bytes]:
    """Write the parents of items; return those whose parent changed."""
    moved: set[bytes] = set()
    for item, parent in parents.items():
        row = db.execute("SELECT parent FROM docs WHERE id = ?", (ref(item),)).fetchone()
        if row is not None and row[0] != _ref(parent):
            db.execute("UPDATE docs SET parent = ? WHERE id = ?", (_ref(parent), ref(item)))
            moved.add(item)
    return moved


def _ref(item: bytes) -> bytes | None:
    return ref(item) if item else None


# -- rows


def _put_docs(db: sqlite3.Connection, slots: Slots, changes: list[Change], parents: dict[bytes, bytes]) -> None:
    names = ["parent", *_names(slots)]
    inserts: list[Row] = []
    updates: dict[tuple[int, ...], list[Row]] = {}  # by changed columns: updating a column costs an index update
    for n, before, after, columns, *_ in changes:
        if after is None:
            continue
        parent = _ref(parents.get(after.id, before.parent if before else b""))
        values = [parent, *_columns(after, slots)]
        if before is None:
            inserts.append((n, *values))
            continue
        old = [_ref(before.parent), *columns]
        changed = tuple(at for at, value in enumerate(values) if value != old[at] or type(value) is not type(old[at]))
        if changed:
            updates.setdefault(changed, []).append((*(values[at] for at in changed), n))
    marks = ", ".join("?" * (1 + len(names)))
    db.executemany(f"INSERT INTO docs (n, {', '.join(names)}) VALUES ({marks})", inserts)  # noqa: S608
    for changed, rows in updates.items():
        sets = ", ".join(f"{names[at]} = ?" for at in changed)
        db.executemany(f"UPDATE docs SET {sets} WHERE n = ?", rows)  # noqa: S608


def _put_facts(db: sqlite3.Connection, changes: list[Change]) -> None:
    gone = [(change.n,) for change in changes if change.after is None]
    db.executemany("DELETE FROM docs WHERE n = ?", gone)
    db.executemany("DELETE FROM facts WHERE n = ?", gone)
    long = [change for change in changes if isinstance(change.data, memoryview)]
    new = [(_parameter(change.data), change.claims, change.n) for change in changes if change.before is None]
    db.executemany("INSERT INTO facts (data, claims, n) VALUES (?, ?, ?)", new)
    kept = [change for change in changes if change.before is not None and change.after is not None]
    db.executemany("UPDATE facts SET data = ? WHERE n = ?", [(_parameter(change.data), change.n) for change in kept])
    for n, data in [(change.n, change.data) for change in long]:
        assert data is not None
        db.execute("UPDATE facts SET data = zeroblob(?) WHERE n = ?", (len(data), n))
        with db.blobopen("facts", "data", n) as blob:
            blob.write(data)
    claims = [(change.claims, change.n) for change in kept if change.claims is not None]
    db.executemany("UPDATE facts SET claims = ? WHERE n = ?", claims)


def _parameter(data: Encoded | None) -> bytes | None:
    """Return facts as an SQL parameter; empty for long ones, which are written in place."""
    return data if isinstance(data, bytes) else b""


def _put_edges(db: sqlite3.Connection, changes: list[Change]) -> None:
    moved = [change for change in changes if not _same_ends(change.before, change.after)]
    was = {row for change in moved if change.before for row in _edges(change.n, change.before)}
    now = {row for change in moved if change.after for row in _edges(change.n, change.after)}
    db.executemany("DELETE FROM edges WHERE kind = ? AND source = ? AND target = ?", was - now)
    db.executemany("INSERT INTO edges VALUES (?, ?, ?)", now - was)


def _same_ends(before: Facts | None, after: Facts | None) -> bool:
    if before is None or after is None:
        return before is after
    return before.embeds == after.embeds and before.refers_like(after)


def _edges(n: int, facts: Facts) -> Iterator[Row]:
    for item in facts.embeds:
        yield EMBEDS, n, ref(item)
    for reference in facts.references:
        yield REFERENCES, n, column(reference)


def _put_members(db: sqlite3.Connection, slots: Slots, changes: list[Change]) -> None:
    for path, slot in slots.members.items():
        was = {(slot, value, ch.n) for ch in changes if ch.before for value in elements(ch.before.get(path))}
        now = {(slot, value, ch.n) for ch in changes if ch.after for value in elements(ch.after.get(path))}
        db.executemany("DELETE FROM members WHERE slot = ? AND value = ? AND n = ?", was - now)
        db.executemany("INSERT INTO members VALUES (?, ?, ?)", now - was)


def _put_words(db: sqlite3.Connection, changes: list[Change]) -> None:
    said = [(n, _texts(before), _texts(after)) for n, before, after, *_ in changes]
    changed = [row for row in said if row[1] != row[2]]
    was = {n: to_fts(before) for n, before, _ in changed}
    now = {n: to_fts(after) for n, _, after in changed}
    # This FTS5 table stores no text, so a deletion must pass the old text again.
    gone = [(n, text) for n, text in was.items() if text and text != now[n]]
    db.executemany("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", gone)
    db.executemany(PUT_WORDS, [(n, text) for n, text in now.items() if text and text != was[n]])


def _texts(facts: Facts | None) -> list[str]:
    return list(facts.texts()) if facts else []
