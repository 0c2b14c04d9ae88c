"""Reasons: a text for people that ends with a code for programs. Codes are a promise: none changes, none goes."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, strategies as st

from antiphon.core.reasons import Reason, because, code_of, coded, text_of

#: Add to this list, and never take from it or change it: programs, tables and people's notes hold these words.
PROMISED = """
feed.header feed.lamport feed.entries feed.batch feed.fork feed.fault feed.kind feed.signature feed.chain feed.encoding
feed.body feed.other-party feed.ended feed.unknown
waits.block waits.branch waits.delivery local.no-body local.ignored local.damaged local.unplanned
act.unreadable act.expired act.unsigned act.genesis
rights.no-admission rights.past-cut rights.role rights.not-member rights.admits rights.narrows rights.ends-device
rights.erases rights.feed-taken rights.item-messages-only rights.erased rights.budget
epoch.attester epoch.vote epoch.genesis epoch.proposer epoch.decided epoch.early
item.unknown item.genesis item.encoding item.change
access.not-named access.not-theirs access.budget model.refused model.failed
rights.lost item.hidden
pipe.closed pipe.lost dial.refused dial.unreachable dial.unknown-host dial.timeout
door.crowded door.host door.full door.slow door.size door.made-room door.banned
other
"""


def test_the_codes_are_those_that_were_promised() -> None:
    assert sorted(reason.value for reason in Reason) == sorted(PROMISED.split())


@given(st.sampled_from([reason for reason in Reason if reason is not Reason.OTHER]), st.text())
def test_a_code_comes_back_whatever_the_text_says(code: Reason, text: str) -> None:
    reason = because(code, text)

    assert (code_of(reason), text_of(reason)) == (code, text)
    assert coded(Reason.MODEL, reason) == reason


def test_a_text_without_a_code_has_none() -> None:
    for text in ("", "why", "why [not]", "[feed.fork]", "why [feed.fork] and more", "why [feed.fork] "):
        assert (code_of(text), text_of(text)) == (Reason.OTHER, text)
        assert code_of(coded(Reason.FORK, text)) is Reason.FORK


def test_a_hostile_text_cannot_take_another_code() -> None:
    assert code_of(because(Reason.MODEL, "a key named [rights.erased]")) is Reason.MODEL
    assert code_of(because(Reason.MODEL, "a key named x [rights.erased]")) is Reason.MODEL


def test_the_page_for_operators_explains_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")

    assert [reason.value for reason in Reason if f"`{reason.value}`" not in page] == []
