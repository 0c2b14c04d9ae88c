"""A member's void acts cost an opening once: later ones read what counts, and come to the same state (issue 20)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import antiphon
from antiphon import Role
from antiphon.api.store import Store
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.feed.encoder import Draft
from antiphon.feed.header import Kind
from antiphon.halo.acts.act import Void
from antiphon.halo.control.state import PartyState
from antiphon.halo.credentials import credential
from antiphon.halo.credentials.claims import (
    Claim,
    DeviceAdmission,
    FeedAdmission,
    FeedEnd,
    FeedKind,
    MemberAdmission,
    Narrowing,
    Policy,
)
from antiphon.testing.parties import pair_of

COUNT = 100
LABEL = "Home"


class Found(NamedTuple):
    """What an opening has found: the state, what is void, how many acts are known, and how many are held as values."""

    state: PartyState
    voids: tuple[Void, ...]
    known: int
    held: int


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The store of an owner, who has received the void acts of an editor."""
    owner = antiphon.open(tmp_path / "owner", name="owner", unprotected=True, epochs=False)
    editor = antiphon.open(tmp_path / "editor", name="editor", unprotected=True, epochs=False)
    with owner, editor:
        party = owner.create_party(LABEL)
        editor.join(party.invite(editor.me, Role.EDITOR))
        for _ in range(2):
            antiphon.sync(owner, editor)
        spam(editor, owner)
        antiphon.sync(owner, editor)
        party.refresh()
    return tmp_path / "owner"


def spam(editor: Store, owner: Store) -> None:
    """Write grants, policies, data feeds, narrowings and ends beyond all rights, as no honest program does."""
    member = editor.manager.member(editor.party(LABEL).key)
    party, device = bytes(member.party), member.device
    vouched = DeviceAdmission(device.identity, device.key)
    word = credential.sign(party, vouched, [editor.identity.pair, device.pair])
    drafts = []
    for number in range(COUNT):
        other = pair_of(f"other {number}")
        claims: list[Claim] = [MemberAdmission(bytes(other.key), frozenset({Role.OWNER})), Policy(keep_epochs=number)]
        claims.append(FeedAdmission(bytes(other.key), FeedKind.DATA, device.identity, device.key, word))
        claims.append(Narrowing(bytes(owner.me), frozenset(), {bytes(member.party): number}, expired=bool(number % 2)))
        claims += [FeedEnd(bytes(owner.me), bytes(owner.me), {}), vouched]
        for claim in claims:
            signed = credential.sign(party, claim, [device.pair, other], nonce=number.to_bytes(12, "big"))
            drafts.append(Draft(Kind.CREDENTIAL, SYSTEM_ITEM, credential.message_of(signed)))
    assert member.control is not None
    member.control.extend(drafts, atomic=False)


def opened(home: Path) -> Found:
    with antiphon.open(home, epochs=False) as store:
        machine = store.manager.member(store.party(LABEL).key).machine
        assert len(machine.voids()) >= 5 * COUNT
        return Found(machine.state(), machine.voids(), machine.act_count, len(machine.acts()))


def read_by_opening(home: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Count the credentials that an opening reads and verifies, once something asks for the members."""
    count = 0
    read = credential.read

    def counting(party: bytes, data: bytes) -> credential.Credential:
        nonlocal count
        count += 1
        return read(party, data)

    with monkeypatch.context() as patched, antiphon.open(home, epochs=False) as store:
        patched.setattr(credential, "read", counting)
        assert store.party(LABEL).members.members
    return count


def test_void_acts_are_read_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_by_opening(home, monkeypatch) < COUNT // 2
    [checkpoint] = home.rglob("*.checkpoint")
    checkpoint.unlink()
    assert read_by_opening(home, monkeypatch) > 6 * COUNT
    assert read_by_opening(home, monkeypatch) < COUNT // 2


def test_openings_with_the_file_without_it_and_with_a_damaged_one_agree(home: Path) -> None:
    [checkpoint] = home.rglob("*.checkpoint")
    wanted, data = opened(home), checkpoint.read_bytes()
    assert wanted.held < wanted.known - 5 * COUNT + 10
    for at in range(0, len(data), len(data) // 7):
        checkpoint.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert opened(home) == wanted
        assert checkpoint.read_bytes() == data, "it was found, and written anew"
    for other in (b"", data[: len(data) // 2]):
        checkpoint.write_bytes(other)
        assert opened(home) == wanted
    checkpoint.unlink()
    assert opened(home) == wanted


def test_acts_of_others_go_on(home: Path) -> None:
    with antiphon.open(home, epochs=False) as store:
        party = store.party(LABEL)
        key = pair_of("other 7").key
        party.revoke(key)  # whom only a void act admits
        party.invite(key, Role.READER)
        party.epochs.set_policy(keep_epochs=3)
        party.epochs.declare()
        machine = store.manager.member(party.key).machine
        before, void = machine.state(), machine.voids()
    found = opened(home)
    assert (found.state, found.voids) == (before, void)


def test_a_file_that_cannot_be_written_stops_no_party(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    [checkpoint] = home.rglob("*.checkpoint")
    wanted = opened(home)
    checkpoint.unlink()
    blocked = checkpoint.with_name(f"{checkpoint.name}.new")
    blocked.mkdir()
    assert opened(home) == wanted
    assert "cannot be written" in caplog.text
    assert not checkpoint.exists()
    blocked.rmdir()
    checkpoint.mkdir()
    caplog.clear()
    assert opened(home) == wanted
    assert "cannot be read" in caplog.text
