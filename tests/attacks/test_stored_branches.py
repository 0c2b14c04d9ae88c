"""Branches of a member's control feed cost an opening once: later ones leave them in the store (issue 20)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.test_void_acts import LABEL, read_by_opening
from tests.attacks.work import calls

import antiphon
from antiphon import Role
from antiphon.api.store import Store
from antiphon.core.cid import DAG_CBOR, Cid
from antiphon.core.errors import BrokenChain, Equivocation, MissingBlocks, RefusedBlocks
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.feed.encoder import Draft
from antiphon.feed.fork import Fork
from antiphon.feed.header import Entry, Kind
from antiphon.feed.span import Span
from antiphon.feed.store import tables
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import Claim, EpochAttestation, Equivocated, MemberAdmission
from antiphon.testing.parties import pair_of
from antiphon.testing.spans import SpanWriter

BRANCHES = 40
LENGTH = 5


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    owner = antiphon.open(tmp_path / "owner", name="owner", unprotected=True, epochs=False)
    editor = antiphon.open(tmp_path / "editor", name="editor", unprotected=True, epochs=False)
    with owner, editor:
        editor.join(owner.create_party(LABEL).invite(editor.me, Role.EDITOR))
        for _ in range(2):
            antiphon.sync(owner, editor)
        yield owner, editor


class Forger:
    """Signs histories of the editor's control feed, each from the same place on."""

    def __init__(self, editor: Store) -> None:
        self._member = editor.manager.member(editor.party(LABEL).key)
        control = self._member.control
        assert control is not None
        self._pair, self._record = editor.keys.pair(control.feed), editor.manager.feeds.record(control.feed)

    def pen(self, seed: int) -> SpanWriter:
        writer = SpanWriter(self._pair, bytes(self._member.party), seed)
        writer.record = self._record
        return writer

    def say(self, writer: SpanWriter, claim: Claim, *seen: Entry) -> Span:
        signed = credential.sign(bytes(self._member.party), claim, [self._member.device.pair])
        draft = Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed))
        (span,) = writer.extend([draft], seen=seen)
        return span

    def names(self, writer: SpanWriter, name: str, *seen: Entry) -> Span:
        return self.say(writer, MemberAdmission(bytes(pair_of(name).key), frozenset({Role.READER})), *seen)


def take(store: Store, spans: list[Span]) -> None:
    for span in spans:
        try:
            store.manager.feeds.ingest(span)
        except Equivocation:  # it is kept
            pass
        except (BrokenChain, MissingBlocks, RefusedBlocks):
            store.manager.feeds.ingest_branch([span])
    store.party(LABEL).refresh()


def spans_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the spans of branches that an opening reads, once something asks for the members."""
    count, read = 0, tables.decode_branch

    def counting(key: bytes, stored: bytes) -> Span:
        nonlocal count
        count += 1
        return read(key, stored)

    with monkeypatch.context() as patched, antiphon.open(home, epochs=False) as store:
        patched.setattr(tables, "decode_branch", counting)
        assert store.party(LABEL).members.members
    return count


def test_branches_are_left_in_the_store(
    homes: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All acts on all branches were read and verified at each opening."""
    owner, editor = homes
    forger = Forger(editor)
    pens = [forger.pen(seed) for seed in range(BRANCHES)]
    spans = [forger.names(pen, f"{at} of {seed}") for at in range(LENGTH) for seed, pen in enumerate(pens)]
    take(owner, spans)
    waiting = forger.pen(BRANCHES)
    far = [Entry(bytes(pair_of("nobody").key), seq, 9, bytes([seq]) * 32) for seq in range(1, BRANCHES)]
    take(owner, [forger.names(waiting, f"far {entry.seq}", entry) for entry in far])
    home, party = tmp_path / "owner", owner.party(LABEL).key
    voids = owner.manager.member(party).machine.voids()
    owner.close()
    read_by_opening(home, monkeypatch)
    assert read_by_opening(home, monkeypatch) < BRANCHES // 2
    assert spans_read(home, monkeypatch) == 0
    with antiphon.open(home, epochs=False) as store:
        machine = store.manager.member(party).machine
        assert machine.names(pair_of(f"{LENGTH - 1} of {BRANCHES - 1}").key)
        assert not machine.names(pair_of("far 1").key)
        assert machine.voids() == voids
        take(store, [forger.names(pens[1], "goes on")])
        assert machine.names(pair_of("goes on").key)
        assert not machine.waiting()


def test_votes_on_branches_that_count_for_nobody_are_left_in_the_store(
    homes: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One vote of a device that is no attester made each opening read its whole branch."""
    owner, editor = homes
    forger, member = Forger(editor), editor.manager.member(editor.party(LABEL).key)
    snapshot = bytes(Cid.of(b"nobody has it", DAG_CBOR))
    pens = [forger.pen(seed) for seed in range(BRANCHES)]
    votes = [EpochAttestation(0, 1, snapshot, bytes([seed]) * 32) for seed in range(BRANCHES)]
    spans = [forger.say(pen, vote) for pen, vote in zip(pens, votes, strict=True)]
    spans += [forger.names(pen, f"{seed}") for seed, pen in enumerate(pens)]
    take(owner, spans)
    home, party, device = tmp_path / "owner", owner.party(LABEL).key, member.device.key
    voids = owner.manager.member(party).machine.voids()
    owner.close()
    read_by_opening(home, monkeypatch)
    assert spans_read(home, monkeypatch) == 0
    with antiphon.open(home, epochs=False) as store:
        machine = store.manager.member(party).machine
        assert machine.voids() == voids
        voted = [span.hash_at(span.first) for span in spans[1:BRANCHES]]
        assert all(map(machine.settled.holds, voted))
        store.party(LABEL).epochs.set_policy(attesters=[device])
        assert machine.epochs().open.config.attesters == (bytes(device),)
        assert not any(map(machine.settled.holds, voted)), "votes of an attester are read"


def test_evidence_on_a_branch_that_the_store_has_too_makes_no_opening_read_the_others(
    homes: tuple[Store, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block with evidence made every opening read all branches of the feed."""
    owner, editor = homes
    forger = Forger(editor)
    spans = [forger.names(forger.pen(seed), f"{seed}") for seed in range(BRANCHES)]
    take(owner, spans)
    evidence = owner.manager.feeds.fork(spans[0].feed)
    assert evidence is not None
    fork = Fork.decode(evidence)
    take(owner, [forger.say(forger.pen(BRANCHES), Equivocated(fork.feed, fork.seq, evidence))])
    home, party = tmp_path / "owner", owner.party(LABEL).key
    voids = owner.manager.member(party).machine.voids()
    owner.close()
    read_by_opening(home, monkeypatch)
    assert spans_read(home, monkeypatch) <= 2, "the branch with the evidence"
    with antiphon.open(home, epochs=False) as store:
        assert store.manager.member(party).machine.voids() == voids


def test_what_waits_in_the_store_is_shown_when_the_block_comes(homes: tuple[Store, Store], tmp_path: Path) -> None:
    owner, editor = homes
    forger = Forger(editor)
    pens = [forger.pen(seed) for seed in range(BRANCHES)]
    antiphon.sync(owner, editor)
    party = owner.party(LABEL).key
    writer = owner.manager.member(party).control
    assert writer is not None
    seq = owner.manager.feeds.record(writer.feed).length
    owner.manager.member(party).admit(pair_of("guest").key, [Role.READER])
    late = owner.manager.feeds.block(writer.feed, seq).entry
    spans = [forger.names(pen, f"late {seed}", late) for seed, pen in enumerate(pens)]
    spans += [forger.names(pen, f"later {seed}") for seed, pen in enumerate(pens)]
    take(editor, spans)  # it lacks the block that they have seen
    editor.close()
    for _ in range(2):
        with antiphon.open(tmp_path / "editor", epochs=False) as store:
            machine = store.manager.member(party).machine
            assert not machine.names(pair_of("later 7").key)
    with antiphon.open(tmp_path / "editor", epochs=False) as store:
        machine = store.manager.member(party).machine
        assert machine.settled
        antiphon.sync(owner, store)
        assert all(machine.names(pair_of(f"later {seed}").key) for seed in range(BRANCHES))


def test_a_body_that_comes_late_is_read(homes: tuple[Store, Store], tmp_path: Path) -> None:
    """A block without its body was settled, and its act was never read when the body had come."""
    owner, editor = homes
    forger = Forger(editor)
    pen = forger.pen(0)
    late = BRANCHES
    spans = [forger.names(pen, f"{at}") for at in range(late + LENGTH)]
    for at, span in enumerate(spans):
        owner.manager.feeds.ingest(span.without_bodies() if at == late else span)
    take(owner, [forger.names(forger.pen(1), "other")])
    home, party = tmp_path / "owner", owner.party(LABEL).key
    owner.close()
    for _ in range(2):
        with antiphon.open(home, epochs=False) as store:
            machine = store.manager.member(party).machine
            assert machine.names(pair_of(f"{late - 1}").key)
            assert not machine.names(pair_of(f"{late}").key)
            assert machine.names(pair_of(f"{late + 1}").key)
    with antiphon.open(home, epochs=False) as store:
        store.manager.feeds.ingest(spans[late])
    with antiphon.open(home, epochs=False) as store:
        machine = store.manager.member(party).machine
        assert machine.names(pair_of(f"{late}").key)


def test_an_entry_that_names_a_settled_block_costs_the_same_however_many_there_are(
    homes: tuple[Store, Store], tmp_path: Path
) -> None:
    """All hashes and lamports of the span were copied for each entry."""
    owner, editor = homes
    forger = Forger(editor)
    pen = forger.pen(0)
    far = Entry(bytes(pair_of("nobody").key), 1, 9, bytes([1]) * 32)
    spans = [forger.names(pen, f"{at}", *([far] if at == BRANCHES else [])) for at in range(2 * BRANCHES)]
    take(owner, [*spans, forger.names(forger.pen(1), "other")])
    home, party = tmp_path / "owner", owner.party(LABEL).key
    owner.close()
    with antiphon.open(home, epochs=False):
        pass
    entries = [span.block(0).entry for span in spans]
    with antiphon.open(home, epochs=False) as store:
        settled = store.manager.member(party).machine.settled
        assert [settled.shown(entry) for entry in entries[:BRANCHES]] == [entry.lamport for entry in entries[:BRANCHES]]
        assert settled.shown(entries[BRANCHES]) is None
        assert settled.shown(entries[0]._replace(seq=entries[1].seq)) is None
        assert not settled.first_waiting(entries[0].hash)
        assert settled.first_waiting(entries[-1].hash) == entries[BRANCHES].hash
        assert calls(lambda: settled.shown(entries[0])) < BRANCHES // 4
        assert calls(lambda: settled.first_waiting(entries[-1].hash)) < BRANCHES // 4
