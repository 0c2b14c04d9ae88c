"""`antiphon epoch` on the homes of Ada and Bob."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Run, answer

import antiphon
from antiphon.testing.copy_feeds import copy_feeds

pytestmark = pytest.mark.slow


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """Ada and Bob, with a party and two items in it."""
    with (
        antiphon.open(tmp_path / "ada", name="Ada", unprotected=True) as ada,
        antiphon.open(tmp_path / "bob", name="Bob", unprotected=True) as bob,
    ):
        party = ada.create_party("Household")
        bob.join(party.invite(bob.me))
        antiphon.sync(ada, bob)
        party.object({"title": "Milk"})
        bob.party("Household").object({"title": "Salt"})
        antiphon.sync(ada, bob)
    return tmp_path


@pytest.fixture
def key(run: Run) -> str:
    (row,) = answer(run("party", "--json"))
    return str(row["party"])


def test_an_epoch_from_its_declaration_to_pruning(run: Run, key: str) -> None:
    assert answer(run("epoch", "list", key, "--json")) == []
    before = answer(run("epoch", "status", key[:6], "--json"))
    assert (before["final"], before["open"], before["proposals"]) == (0, 1, [])
    assert before["messages"] > 4

    made = answer(run("epoch", "declare", key, "--json"))
    assert (made["epoch"], made["state"], made["messages"]) == (1, "final", before["messages"])

    assert answer(run("epoch", "list", key, "--json")) == [made]
    shown = run("epoch", "list", key).stdout
    assert "final" in shown
    assert made["attested"][0][:16] in shown
    after = answer(run("epoch", "status", key, "--json"))
    assert (after["final"], after["open"], after["messages"]) == (1, 2, 0)
    assert answer(run("epoch", "prune", key, "--json")) == {"epoch": 1, "messages": before["messages"]}


def test_people_are_answered_too(run: Run, key: str) -> None:
    assert "no epoch is final yet" in run("epoch", "status", key).stdout
    assert "epoch 1 is final" in run("epoch", "declare", key).stdout
    assert "messages deleted; the party is based on epoch 1" in run("epoch", "prune", key).stdout


def test_the_policy_is_shown_and_set(run: Run, key: str) -> None:
    before = answer(run("epoch", "policy", key, "--json"))
    assert (before["attesters"], before["epoch_messages"]) == ([], 0)
    devices = answer(run("epoch", "status", key, "--json"))["attesters"]

    done = run(
        *("epoch", "policy", key, "--attester", devices[0], "--generator", devices[0]),
        *("--set", "epoch_messages=1000", "--set", "liars=true", "--json"),
    )
    after = answer(done)

    assert after == answer(run("epoch", "policy", key, "--json"))
    assert (after["attesters"], after["generator"]) == (devices, devices[0])
    assert (after["epoch_messages"], after["liars"]) == (1000, True)
    assert answer(run("epoch", "policy", key, "--generator", "none", "--json"))["generator"] == ""
    assert "epoch_messages" in run("epoch", "policy", key).stdout


def test_what_cannot_be_done_is_told_in_a_line(run: Run, key: str) -> None:
    for arguments, home, reason in (
        (("list", "ff" * 32), "ada", "0 parties of this home begin with"),
        (("declare", key), "bob", "may not declare epoch 1"),
        (("policy", key, "--set", "epoch_messages=lots"), "ada", "NAME=VALUE"),
        (("policy", key, "--set", "speed=3"), "ada", "a policy has no 'speed'"),
        (("list", key, "--home", "nowhere"), "ada", "there is no peer in nowhere"),
    ):
        done = run("epoch", *arguments, home=home)
        assert done.returncode == 2, arguments
        assert reason in done.stderr
        assert "Traceback" not in done.stderr


def test_a_refusal_is_shown_with_its_reason(homes: Path, run: Run, key: str) -> None:
    with antiphon.open(homes / "ada", unprotected=True) as ada, antiphon.open(homes / "bob", unprotected=True) as bob:
        party, theirs = ada.party("Household"), bob.party("Household")
        party.epochs.set_policy(attesters=[ada.me, bob.me], generator=ada.me)
        party.epochs.declare()
        antiphon.sync(ada, bob)
        party.epochs.declare()
        copy_feeds(ada.manager.feeds, bob.manager.feeds, party.key)
        theirs.refresh()
        (proposal,) = theirs.member.machine.epochs().open.proposals
        theirs.member.refuse(proposal.act, "I do not like it")
        antiphon.sync(ada, bob)
        bob_device = bob.device.hex()
    rows = answer(run("epoch", "list", key, "--json"))
    word = {"device": bob_device, "reason": "I do not like it", "computed": None}
    assert word.items() <= rows[-1]["refused"][0].items()
    assert "refused it: I do not like it" in run("epoch", "list", key).stdout


def test_a_store_that_is_in_use_is_told(homes: Path, start: Run, key: str) -> None:
    with antiphon.open(homes / "ada", unprotected=True):
        done = start("epoch", "declare", key)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert answer(start("epoch", "list", key, "--json")) == [], "reading goes on"
