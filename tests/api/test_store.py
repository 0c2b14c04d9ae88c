"""A store: opened, closed, opened again; its parties, by key and by name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import antiphon
from antiphon import InvalidInput, Party, Role, Store, sync
from antiphon.api.key_text import to_text
from antiphon.core.errors import (
    KeyStoreError,
    NotAuthorised,
    PartyPaused,
    StoreClosed,
    StoreError,
    StoreLocked,
    UnknownParty,
    WrongPassphrase,
)
from antiphon.halo import new_device, recover_identity
from antiphon.halo.keys.identity import new_identity
from antiphon.halo.keys.key_file import KeyKind, Protection
from antiphon.halo.keys.key_store import KeyStore


def test_what_was_written_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", name="Ada", unprotected=True) as store:
        me, party = store.me, store.create_party("Household")
        key, item = party.key, party.list(["milk"], name="Groceries").id
        assert len(store.recovery_phrase.split()) >= 12

    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert store.me == me
        assert store.recovery_phrase == "", "it is shown once"
        assert store.party("Household").key == store.party(key).key == key
        groceries = store.party(key).item(item)
        assert (groceries.name, groceries.value) == ("Groceries", ["milk"])
        assert [party.name for party in store] == ["Household"]


def test_a_passphrase_encrypts_the_keys_and_is_asked_for(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", passphrase="correct horse") as store:
        me = store.me
    with antiphon.open(tmp_path / "home", passphrase="correct horse") as store:
        assert store.me == me
    with pytest.raises(WrongPassphrase, match="try again"):
        antiphon.open(tmp_path / "home", passphrase="wrong horse")
    with pytest.raises(KeyStoreError, match="is under a passphrase; give it"):
        antiphon.open(tmp_path / "home", unprotected=True)


def test_a_store_without_a_passphrase_is_not_opened_with_one(tmp_path: Path) -> None:
    antiphon.open(tmp_path / "home", unprotected=True).close()
    with pytest.raises(KeyStoreError, match="not under a passphrase"):
        antiphon.open(tmp_path / "home", passphrase="correct horse")


def test_a_second_process_is_told_who_has_the_store(ada: Store) -> None:
    code = f"import antiphon\ntry: antiphon.open({str(ada.path)!r})\nexcept antiphon.StoreError as error: print(error)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "is being written by process" in done.stdout
    with pytest.raises(StoreLocked, match="stop that one"):
        antiphon.open(ada.path, unprotected=True)


def test_a_store_that_could_not_be_opened_leaves_nothing_locked(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "meta.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError):
        antiphon.open(tmp_path / "home", unprotected=True)
    (tmp_path / "home" / "meta.db").unlink()
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert store.create_party("Household").name == "Household"


def test_a_file_is_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a letter")
    with pytest.raises(StoreError, match="there can be no store in"):
        antiphon.open(tmp_path / "home", unprotected=True)


def test_keys_that_were_left_empty_are_filled(tmp_path: Path) -> None:
    """As after a crash between making the file of the keys and making the device."""
    KeyStore.create(tmp_path / "home" / "keys", protection=Protection.UNPROTECTED)
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert store.create_party("Household").name == "Household"


def test_an_identity_that_was_left_without_a_device_gets_one(tmp_path: Path) -> None:
    """As after a crash between making the identity and making the device: it is no second person."""
    keys = KeyStore.create(tmp_path / "home" / "keys", protection=Protection.UNPROTECTED)
    identity, recovery_phrase = new_identity(keys, "Ada")
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert (store.me, store.recovery_phrase) == (identity.key, recovery_phrase)
        assert len(store.keys.keys(KeyKind.IDENTITY)) == 1


@pytest.mark.parametrize("name", ["Ada\x1b[2J", "A" * 201, "\ud800"])
def test_a_store_is_not_made_for_a_name_that_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="label"):
        antiphon.open(tmp_path / "home", name=name, unprotected=True)
    assert not (tmp_path / "home").exists()


def test_the_longest_name_leaves_room_for_a_device(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", name="A" * 200, unprotected=True) as store:
        assert [record.label for record in store.keys.keys(KeyKind.IDENTITY)] == ["A" * 200]


@pytest.mark.parametrize("name", ["House\x1b]0;hold", "я" * 101, "\ud800"])
def test_a_party_with_a_name_that_is_refused_is_not_founded(name: str, ada: Store) -> None:
    with pytest.raises(InvalidInput, match="label"):
        ada.create_party(name)
    with pytest.raises(InvalidInput, match="label"):
        ada.create_party("Household").create_child(name)
    (known,) = ada.parties()
    assert {record.party for record in ada.manager.feeds.feeds()} == {known.party}


def test_an_invitation_is_taken_whatever_the_party_is_called(ada: Store, bob: Store) -> None:
    for name, label in (("House\nhold\x1b", "Household"), ("я" * 150, "я" * 100)):
        party = ada.create_party()
        party.name = name
        invitation = party.invite(bob.me)
        for given in (invitation, str(invitation)):
            bob.join(given)
        assert label in [known.label for known in bob.parties()]


def test_what_is_closed_says_so(tmp_path: Path) -> None:
    store = antiphon.open(tmp_path / "home", unprotected=True)
    party = store.create_party("Household")
    note = party.object({"title": "Milk"})
    store.close()
    store.close()

    with pytest.raises(PartyPaused, match="closed"):
        _ = note["title"]
    with pytest.raises(PartyPaused):
        party.query()
    with pytest.raises(StoreClosed):
        store.party("Household")
    assert "PartyPaused" in repr(note)
    assert party.key.short in repr(party)


def test_parties_are_found_by_what_they_were_and_are_called(ada: Store, party: Party) -> None:
    party.name = "Family"
    assert ada.party("Household") is ada.party("Family") is party
    with pytest.raises(UnknownParty, match="0 parties are called 'Club' here; there are 'Household'"):
        ada.party("Club")
    ada.create_party("Household")
    with pytest.raises(UnknownParty, match="2 parties are called 'Household'"):
        ada.party("Household")


def test_nobody_takes_a_name_away_by_calling_another_party_so(ada: Store, bob: Store, party: Party) -> None:
    club = ada.create_party("Club")
    bob.join(club.invite(bob.me))
    sync(ada, bob)
    bob.party("Club").name = "Household"
    sync(ada, bob)
    assert club.name == "Household"
    assert ada.party("Household") is party, "the labels of this device go first"
    bob.party("Club").name = to_text(party.key)
    sync(ada, bob)
    assert ada.party(to_text(party.key)) is party


def test_a_party_is_found_by_the_text_of_its_key(ada: Store, party: Party) -> None:
    for text in (to_text(party.key), to_text(party.key).upper(), party.key.hex(), str(party.key)):
        assert ada.party(text) is party
    with pytest.raises(UnknownParty, match="0 parties are called"):
        ada.party(to_text(ada.me))
    with pytest.raises(InvalidInput, match="a party is named by its key"):
        ada.party(5)  # type: ignore[arg-type]


def test_a_party_that_is_not_held_is_unknown(bob: Store, party: Party) -> None:
    with pytest.raises(UnknownParty, match="join it with an invitation"):
        bob.party(party.key)
    assert list(bob) == []


@pytest.mark.parametrize("form", [bytes, bytes.hex])
def test_a_new_device_of_a_member_joins_with_the_key_of_the_party(
    form: Callable[[bytes], bytes | str], ada: Store, bob: Store, party: Party, tmp_path: Path
) -> None:
    """Whoever has lost a home has the recovery phrase, and perhaps nobody who may invite."""
    bob.join(party.invite(bob.me, Role.READER))
    party.object({"n": 1}, type="note")
    sync(ada, bob)
    keys = KeyStore.create(tmp_path / "new" / "keys", protection=Protection.UNPROTECTED)
    new_device(keys, "new", recover_identity(keys, ada.recovery_phrase, "Ada").key)
    with antiphon.open(tmp_path / "new") as new:
        sync(new, bob)
        assert new.parties() == ()
        new.join(form(bytes(party.key)))
        sync(new, bob)
        new.party(bytes(party.key)).object({"n": 2}, type="note")
        sync(new, bob)
    assert bob.party(bytes(party.key)).count(type="note") == 2


def test_a_party_that_was_joined_waits_for_its_blocks(ada: Store, bob: Store, party: Party) -> None:
    bob.join(str(party.invite(bob.me)))
    assert [known.label for known in bob.parties()] == ["Household"]
    with pytest.raises(NotAuthorised):
        bob.party("Household").object({"title": "Milk"})
    sync(ada, bob)
    assert bob.party("Household").object({"title": "Milk"})["title"] == "Milk"


def test_a_device_without_the_identity_cannot_vouch(tmp_path: Path) -> None:
    """Another device of Ada's: it has the key of her identity, but not its private half."""
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        assert store.may_vouch
        me = store.me
    keys = KeyStore.create(tmp_path / "phone" / "keys", protection=Protection.UNPROTECTED)
    new_device(keys, "phone", me)
    assert not keys.keys(KeyKind.IDENTITY)
    with antiphon.open(tmp_path / "phone", unprotected=True) as phone:
        assert (phone.me, phone.may_vouch) == (me, False)
        with pytest.raises(NotAuthorised, match="is not on this device"):
            phone.create_party("Household")


def test_paused_parties_are_passed_over(ada: Store, party: Party) -> None:
    ada.create_party("Club")
    ada.manager.pause(party.key)
    assert [one.name for one in ada] == ["Club"]
    for which in ("Household", bytes(party.key)):
        with pytest.raises(PartyPaused, match=r"is paused here; resume it with `store.manager.resume`"):
            ada.party(which)


def test_it_shows_itself(ada: Store) -> None:
    assert ada.me.short in repr(ada)


# -- choosing how the keys of a new store are kept


def test_a_new_store_says_what_to_choose(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"holds no store yet; to make one, choose .* passphrase='…' .* unprotected=True"
    ):
        antiphon.open(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InvalidInput, match="choose one of passphrase=, keyring=True and unprotected=True"):
        antiphon.open(tmp_path / "new", passphrase="correct horse", unprotected=True)


def test_a_store_that_exists_opens_without_a_choice(tmp_path: Path) -> None:
    with antiphon.open(tmp_path / "home", unprotected=True) as store:
        me = store.me
    with antiphon.open(tmp_path / "home") as store:
        assert store.me == me


def test_an_empty_path_founds_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="the path of a store is empty"):
        antiphon.open("", unprotected=True)
    assert list(tmp_path.iterdir()) == []
