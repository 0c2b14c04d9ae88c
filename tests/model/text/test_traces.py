"""Histories that people really typed, one message an edit, come out as recorded."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from antiphon.core.stamp import Stamp
from antiphon.model.text.marks import TextState
from antiphon.model.text.model import TextModel

TEXT = TextModel()
Sent = tuple[bytes, Stamp]


def trace(data: Path, name: str) -> dict[str, Any]:
    path = data / "editing-traces" / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {path.parent}")
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def received(messages: list[Sent]) -> TextState:
    state = TEXT.initial()
    for mutation, stamp in messages:
        TEXT.apply(state, mutation, stamp)
    return state


def play_alone(recorded: dict[str, Any], count: int | None = None) -> tuple[TextState, list[Sent]]:
    """One writer's edits: commands on her own state, and what she sent."""
    feed, state = b"a" * 32, TEXT.initial()
    sent: list[Sent] = []
    for txn in recorded["txns"][:count]:
        for index, deleted, inserted in txn["patches"]:
            stamp = Stamp(len(sent) + 1, feed, len(sent))
            sent.append((TEXT.replace(state, index, deleted, inserted, feed=feed), stamp))
            TEXT.apply(state, *sent[-1])
    return state, sent


@pytest.mark.slow
def test_the_paper_written_alone_comes_out_as_recorded(data: Path) -> None:
    recorded = trace(data, "automerge-paper")
    author, sent = play_alone(recorded)

    assert TEXT.value(author) == recorded["endContent"]
    reader = received(sent)
    snapshot = TEXT.snapshot(reader)
    assert snapshot == TEXT.snapshot(author)
    assert len(snapshot) < 150_000
    assert TEXT.value(TEXT.restore(snapshot)) == recorded["endContent"]
    assert len(reader.writers[b"a" * 32].runs) < 20_000, "typing stays compact in memory, too"


@pytest.mark.slow
def test_the_beginning_of_the_paper_as_lists_have_it(data: Path) -> None:
    recorded = trace(data, "automerge-paper")
    author, sent = play_alone(recorded, 15_000)
    naive: list[str] = []
    for txn in recorded["txns"][:15_000]:
        for index, deleted, inserted in txn["patches"]:
            naive[index : index + deleted] = inserted

    assert TEXT.value(author) == "".join(naive) == TEXT.value(received(sent))


def play_together(recorded: dict[str, Any], feeds: list[bytes]) -> tuple[list[TextState], list[list[Sent]], list[Sent]]:
    """Each writer's edits on a replica that has seen exactly what the recording says that it had."""
    count = len(feeds)
    replicas = [TEXT.initial() for _ in feeds]
    logs: list[list[Sent]] = [[] for _ in feeds]
    seen = [[0] * count for _ in feeds]
    lamports = [0] * count
    versions: list[list[int]] = []
    recorded_order: list[Sent] = []
    for txn in recorded["txns"]:
        who = txn["agent"]
        version = [max([versions[parent][other] for parent in txn["parents"]], default=0) for other in range(count)]
        for other in range(count):
            for message in logs[other][seen[who][other] : version[other]]:
                TEXT.apply(replicas[who], *message)
                lamports[who] = max(lamports[who], message[1].lamport)
        assert version[who] == len(logs[who]), "each writer goes on from her own last edit"
        lamports[who] += 1
        for index, deleted, inserted in txn["patches"]:
            offset = TEXT.next_offset(replicas[who], feeds[who], lamports[who])
            mutation = TEXT.replace(replicas[who], index, deleted, inserted, feed=feeds[who], offset=offset)
            message = (mutation, Stamp(lamports[who], feeds[who], len(logs[who])))
            TEXT.apply(replicas[who], *message)
            logs[who].append(message)
            recorded_order.append(message)
        version[who] = len(logs[who])
        seen[who] = version
        versions.append(version)
    for who in range(count):
        for other in range(count):
            for message in logs[other][seen[who][other] :]:
                TEXT.apply(replicas[who], *message)
    return replicas, logs, recorded_order


@pytest.mark.slow
def test_two_friends_end_with_the_text_that_was_recorded(data: Path) -> None:
    """The recording puts the first writer's words first where both typed at one place, as these feed keys do."""
    recorded = trace(data, "friendsforever")
    replicas, logs, order = play_together(recorded, [b"a" * 32, b"b" * 32])

    assert [TEXT.value(replica) for replica in replicas] == [recorded["endContent"]] * 2
    snapshot = TEXT.snapshot(replicas[0])
    by_stamp = received(sorted(order, key=lambda message: message[1]))
    assert snapshot == TEXT.snapshot(replicas[1]) == TEXT.snapshot(received(order)) == TEXT.snapshot(by_stamp)

    # Not even causal orders are needed for the end to be the same: whole feeds, one after the other.
    for first, second in ((0, 1), (1, 0)):
        assert TEXT.snapshot(received([*logs[first], *logs[second]])) == snapshot


def test_two_friends_with_other_keys_still_agree(data: Path) -> None:
    recorded = trace(data, "friendsforever")
    recorded["txns"] = recorded["txns"][:4000]
    replicas, logs, order = play_together(recorded, [b"b" * 32, b"a" * 32])
    queues = [list(reversed(log)) for log in logs]
    chance = random.Random(1)
    shuffled = []
    while any(queues):
        queue = chance.choice([queue for queue in queues if queue])
        shuffled.append(queue.pop())

    assert len(TEXT.value(replicas[0])) > 0
    assert TEXT.snapshot(replicas[0]) == TEXT.snapshot(replicas[1]) == TEXT.snapshot(received(shuffled))
    assert TEXT.snapshot(received(order)) == TEXT.snapshot(replicas[0])
