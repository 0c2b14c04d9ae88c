"""The messenger model by example: posts, threads, edits, redactions, retention and undo."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.stamp import Stamp
from antiphon.core.v1 import messenger_pb2 as pb, value_pb2
from antiphon.model.heard import Heard
from antiphon.model.messenger.model import MessengerModel, MessengerState
from antiphon.model.model import Discard, InvalidMutation

MESSENGER = MessengerModel()
ALICE, BOB, CAROL = b"a" * 32, b"b" * 32, b"c" * 32
HELLO, ANSWER = Stamp(1, ALICE, 0), Stamp(2, BOB, 0)


def apply(state: MessengerState, mutation: bytes, stamp: Stamp) -> Stamp:
    MESSENGER.apply(state, mutation, stamp)
    return stamp


@pytest.fixture
def state() -> MessengerState:
    """Alice says hello, and Bob answers her."""
    state = MESSENGER.initial()
    apply(state, MESSENGER.post(state, "hello", sent_ms=100, feed=ALICE), HELLO)
    apply(state, MESSENGER.post(state, "yes?", reply_to=HELLO, sent_ms=200, feed=BOB), ANSWER)
    return state


def copy_of(state: MessengerState) -> MessengerState:
    return MESSENGER.restore(MESSENGER.snapshot(state))


def bodies(state: MessengerState) -> list[Any]:
    return [post["body"] for post in MESSENGER.value(state)]


def shape(threads: list[dict[str, Any]]) -> list[Any]:
    return [(post["body"], shape(post["replies"])) for post in threads]


# -- posts and threads


def test_posts_are_plain_and_in_the_order_of_stamps(state: MessengerState) -> None:
    apply(state, MESSENGER.post(state, {"late": True}, feed=CAROL), Stamp(1, CAROL, 0))
    assert bodies(state) == ["hello", {"late": True}, "yes?"]
    assert MESSENGER.get(state, ANSWER) == {
        "id": ANSWER,
        "by": BOB,
        "body": "yes?",
        "edited": False,
        "edited_by": None,
        "versions": [{"id": ANSWER, "by": BOB, "body": "yes?"}],
        "reply_to": HELLO,
        "sent_ms": 200,
        "redacted": False,
        "redacted_by": None,
    }


def test_threads_nest_and_replies_are_by_stamp(state: MessengerState) -> None:
    deeper = apply(state, MESSENGER.post(state, "deeper", reply_to=ANSWER, feed=ALICE), Stamp(4, ALICE, 1))
    apply(state, MESSENGER.post(state, "earlier", reply_to=HELLO, feed=CAROL), Stamp(2, CAROL, 0))
    apply(state, MESSENGER.post(state, "deepest", reply_to=deeper, feed=BOB), Stamp(5, BOB, 1))
    apply(state, MESSENGER.post(state, "other", feed=BOB), Stamp(6, BOB, 2))
    assert shape(MESSENGER.threads(state)) == [
        ("hello", [("yes?", [("deeper", [("deepest", [])])]), ("earlier", [])]),
        ("other", []),
    ]


def test_a_reply_that_comes_before_its_parent_stands_at_the_top_until_then() -> None:
    state, late = MESSENGER.initial(), MESSENGER.initial()
    first = MESSENGER.post(state, "hello", feed=ALICE)
    apply(state, first, HELLO)
    reply = MESSENGER.post(state, "yes?", reply_to=HELLO, feed=BOB)
    apply(late, reply, ANSWER)
    assert shape(MESSENGER.threads(late)) == [("yes?", [])]
    apply(late, first, HELLO)
    assert shape(MESSENGER.threads(late)) == [("hello", [("yes?", [])])]


@pytest.mark.parametrize("sent_ms", [-1, True, (1 << 62) + 1, 1.5])
def test_sent_ms_is_checked(state: MessengerState, sent_ms: Any) -> None:
    with pytest.raises(InvalidInput, match="sent_ms"):
        MESSENGER.post(state, "x", sent_ms=sent_ms)


def test_commands_about_posts_that_are_not_there_are_refused(state: MessengerState) -> None:
    nobody = Stamp(9, CAROL, 0)
    for make in (
        lambda: MESSENGER.post(state, "x", reply_to=nobody),
        lambda: MESSENGER.edit(state, nobody, "x"),
        lambda: MESSENGER.redact(state, nobody),
        lambda: MESSENGER.get(state, nobody),
    ):
        with pytest.raises(InvalidInput, match="no post"):
            make()


# -- edits and redactions


def test_an_edit_replaces_and_says_who_did_it(state: MessengerState) -> None:
    edited = apply(state, MESSENGER.edit(state, HELLO, "hello!", feed=BOB), Stamp(3, BOB, 1))
    post = MESSENGER.get(state, HELLO)
    assert (post["body"], post["edited"], post["by"], post["edited_by"]) == ("hello!", True, ALICE, BOB)
    assert post["versions"] == [{"id": edited, "by": BOB, "body": "hello!"}]


def test_concurrent_edits_stay_readable_until_somebody_decides(state: MessengerState) -> None:
    one, other = MESSENGER.edit(state, HELLO, "one", feed=BOB), MESSENGER.edit(state, HELLO, "other", feed=CAROL)
    apply(state, other, Stamp(3, CAROL, 0))
    apply(state, one, Stamp(3, BOB, 1))
    assert [version["body"] for version in MESSENGER.get(state, HELLO)["versions"]] == ["other", "one"]
    apply(state, MESSENGER.edit(state, HELLO, "both", feed=ALICE), Stamp(4, ALICE, 1))
    assert [version["body"] for version in MESSENGER.get(state, HELLO)["versions"]] == ["both"]


def test_a_redaction_takes_the_content_and_keeps_the_place(state: MessengerState) -> None:
    edit = MESSENGER.edit(state, HELLO, "secret edit", feed=CAROL)
    apply(state, MESSENGER.redact(state, HELLO, feed=BOB), Stamp(4, BOB, 1))
    apply(state, edit, Stamp(5, CAROL, 0))
    post = MESSENGER.get(state, HELLO)
    assert (post["body"], post["versions"], post["redacted"], post["redacted_by"]) == (None, [], True, BOB)
    assert shape(MESSENGER.threads(state)) == [(None, [("yes?", [])])]
    assert b"hello" not in MESSENGER.snapshot(state)
    assert b"secret" not in MESSENGER.snapshot(state)
    with pytest.raises(InvalidInput, match="is redacted"):
        MESSENGER.edit(state, HELLO, "again")


def test_of_two_redactions_the_least_stamp_is_named(state: MessengerState) -> None:
    twice = [(MESSENGER.redact(state, HELLO, feed=feed), Stamp(3, feed, 1)) for feed in (BOB, CAROL)]
    ends = set()
    for order in (twice, twice[::-1]):
        end = copy_of(state)
        for mutation, stamp in order:
            apply(end, mutation, stamp)
        assert MESSENGER.get(end, HELLO)["redacted_by"] == BOB
        ends.add(MESSENGER.snapshot(end))
    assert len(ends) == 1


def test_a_void_message_is_not_seen_and_validated_all_the_same(state: MessengerState) -> None:
    MESSENGER.apply(state, MESSENGER.redact(state, HELLO, feed=BOB), Stamp(3, BOB, 1), void=True)
    assert bodies(state) == ["hello", "yes?"]
    assert state.heard == {ALICE: 0, BOB: 1}
    with pytest.raises(InvalidMutation):
        MESSENGER.apply(state, b"\xff", Stamp(4, BOB, 2), void=True)
    assert state.heard == {ALICE: 0, BOB: 1}


# -- retention


def test_posts_are_forgotten_by_age_and_by_number(state: MessengerState) -> None:
    apply(state, MESSENGER.post(state, "now", sent_ms=300, feed=CAROL), Stamp(3, CAROL, 0))
    for policy, left in (
        (Discard(now_ms=1000), ["hello", "yes?", "now"]),
        (Discard(now_ms=1000, age_ms_max=800), ["yes?", "now"]),
        (Discard(now_ms=1000, age_ms_max=799), ["now"]),
        (Discard(now_ms=1000, count_max=2), ["yes?", "now"]),
        (Discard(now_ms=1000, count_max=9), ["hello", "yes?", "now"]),
        (Discard(now_ms=1000, age_ms_max=800, count_max=1), ["now"]),
    ):
        kept = copy_of(state)
        MESSENGER.discard(kept, policy)
        assert bodies(kept) == left
        assert bodies(copy_of(kept)) == left


def test_what_is_said_late_of_a_forgotten_post_has_one_outcome(state: MessengerState) -> None:
    late = [
        (MESSENGER.edit(state, HELLO, "edited", feed=CAROL), Stamp(3, CAROL, 0)),
        (MESSENGER.redact(state, HELLO, feed=CAROL), Stamp(3, CAROL, 1)),
        (MESSENGER.post(state, "me too", reply_to=HELLO, feed=CAROL), Stamp(3, CAROL, 2)),
    ]
    MESSENGER.discard(state, Discard(now_ms=1000, count_max=1))
    for mutation, stamp in late:
        apply(state, mutation, stamp)
    assert shape(MESSENGER.threads(state)) == [("yes?", []), ("me too", [])]
    assert MESSENGER.get(state, Stamp(3, CAROL, 2))["reply_to"] == HELLO
    assert not state.pending
    assert not state.due


# -- undo


def undo(state: MessengerState, mutation: bytes, stamp: Stamp, captured: Any, seq: int) -> list[tuple[bytes, Any]]:
    made = []
    for one in MESSENGER.revert(state, captured, mutation, stamp, stamp.feed):
        again = Stamp(stamp.lamport + 10, stamp.feed, seq)
        made.append((one, MESSENGER.capture(state, one, again)))
        apply(state, one, again)
    return made


def test_undo_of_a_post_redacts_it(state: MessengerState) -> None:
    mutation, stamp = MESSENGER.post(state, "oops", feed=BOB), Stamp(3, BOB, 1)
    captured = MESSENGER.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    [(redaction, _)] = undo(state, mutation, stamp, captured, 2)
    assert MESSENGER.get(state, stamp)["redacted_by"] == BOB
    assert undo(state, mutation, stamp, captured, 3) == []
    with pytest.raises(InvalidInput, match="cannot be undone: its content is gone"):
        MESSENGER.revert(state, None, redaction, Stamp(13, BOB, 2), BOB)


def test_undo_and_redo_of_an_edit(state: MessengerState) -> None:
    mutation, stamp = MESSENGER.edit(state, HELLO, "hi", feed=BOB), Stamp(3, BOB, 1)
    captured = MESSENGER.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    [(undone, recaptured)] = undo(state, mutation, stamp, captured, 2)
    assert bodies(state) == ["hello", "yes?"]
    assert undo(state, undone, Stamp(13, BOB, 2), recaptured, 3)
    assert bodies(state) == ["hi", "yes?"]


@pytest.mark.parametrize("act", ["edit", "redact"])
def test_undo_leaves_alone_what_others_did_since(state: MessengerState, act: str) -> None:
    mutation, stamp = MESSENGER.edit(state, HELLO, "hi", feed=BOB), Stamp(3, BOB, 1)
    captured = MESSENGER.capture(state, mutation, stamp)
    apply(state, mutation, stamp)
    theirs = MESSENGER.edit(state, HELLO, "hey", feed=CAROL) if act == "edit" else MESSENGER.redact(state, HELLO)
    apply(state, theirs, Stamp(4, CAROL, 0))
    assert undo(state, mutation, stamp, captured, 2) == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
@example([1, 2, 3])
def test_edits_are_undone_and_done_again_one_by_one(texts: list[int]) -> None:
    state, seq = MESSENGER.initial(), 0
    apply(state, MESSENGER.post(state, 0, feed=ALICE), HELLO)

    def write(mutation: bytes) -> tuple[Any, bytes, Stamp]:
        nonlocal seq
        seq += 1
        stamp = Stamp(seq + 1, ALICE, seq)
        captured = MESSENGER.capture(state, mutation, stamp)
        apply(state, mutation, stamp)
        return captured, mutation, stamp

    steps = [write(MESSENGER.edit(state, HELLO, text, feed=ALICE)) for text in texts]
    values = [0, *texts]
    for wanted in (values[-2::-1], values[1:], values[-2::-1]):
        seen, back = [], []
        for captured, mutation, stamp in reversed(steps):
            [opposite] = MESSENGER.revert(state, captured, mutation, stamp, ALICE)
            back.append(write(opposite))
            seen += bodies(state)
        assert seen == wanted
        steps = back


# -- hostile mutations


class Counting(Heard):
    """Counts how often it is asked."""

    asked = 0

    def has(self, stamp: Stamp) -> bool:
        self.asked += 1
        return super().has(stamp)


def test_names_of_many_unheard_messages_cost_each_once(state: MessengerState) -> None:
    """Carol's edit names 20,000 messages that have not come; the next one of Bob must not pay for it."""
    count, dave = 20_000, b"d" * 32
    state.heard = Counting(state.heard)
    edit = pb.MessengerEdit(target=value_pb2.Name(feed=1, lamport=1), body=value_pb2.Value(text="x"))
    for number in range(1, count // 2 + 1):
        edit.replaces.extend(value_pb2.Name(feed=feed, lamport=5, seq=number) for feed in (2, 3))
    mutation = pb.MessengerMutation(feeds=[ALICE, BOB, dave], edit=edit).SerializeToString()
    apply(state, mutation, Stamp(1000, CAROL, 0))
    apply(state, MESSENGER.post(state, "b", feed=BOB), Stamp(1001, BOB, count))
    assert set(state.posts[HELLO].waits or ()) == {dave}
    assert state.heard.asked < 3 * count
    assert MESSENGER.snapshot(copy_of(state)) == MESSENGER.snapshot(state)
    apply(state, MESSENGER.post(state, "d", feed=dave), Stamp(1002, dave, count))
    assert not state.due
    assert not state.posts[HELLO].waits


def test_of_thousands_of_versions_of_one_feed_the_last_is_kept(state: MessengerState) -> None:
    edit = pb.MessengerEdit(target=value_pb2.Name(feed=1, lamport=1), body=value_pb2.Value(text="x"))
    mutation = pb.MessengerMutation(feeds=[ALICE], edit=edit).SerializeToString()
    for number in range(5000):
        apply(state, mutation, Stamp(number + 2, CAROL, number))
    stamps = [version["id"] for version in MESSENGER.get(state, HELLO)["versions"]]
    assert stamps == [Stamp(5001, CAROL, 4999), HELLO]
    assert len(MESSENGER.edit(state, HELLO, "y", feed=BOB)) < 150
    assert MESSENGER.snapshot(copy_of(state)) == MESSENGER.snapshot(state)


def test_hostile_mutations_are_refused_whole(state: MessengerState) -> None:
    body = value_pb2.Value(text="x")
    own, future = value_pb2.Name(lamport=9, seq=9), value_pb2.Name(feed=1, lamport=9, seq=1)
    before = MESSENGER.snapshot(state)
    for mutation in (
        b"\xff",
        pb.MessengerMutation(),
        pb.MessengerMutation(post=pb.MessengerPost()),
        pb.MessengerMutation(post=pb.MessengerPost(body=body, sent_ms=1 << 63)),
        pb.MessengerMutation(post=pb.MessengerPost(body=body, reply_to=own)),
        pb.MessengerMutation(feeds=[ALICE], edit=pb.MessengerEdit(target=future, body=body)),
        pb.MessengerMutation(feeds=[b"short"], post=pb.MessengerPost(body=body)),
        pb.MessengerMutation(edit=pb.MessengerEdit(target=value_pb2.Name(feed=7), body=body)),
        pb.MessengerMutation(redact=pb.MessengerRedact(target=own)),
    ):
        data = mutation if isinstance(mutation, bytes) else mutation.SerializeToString()
        with pytest.raises(InvalidMutation):
            MESSENGER.apply(state, data, Stamp(9, CAROL, 9))
        assert MESSENGER.snapshot(state) == before
