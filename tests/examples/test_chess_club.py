"""The chess club: the program as a newcomer sees it, and games between whole peers, in any order and over restarts."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples.chess_club import Club, feed_of, move_apart, open_game, play_on, report
from examples.chess_model import ChessModel

from antiphon.core.errors import InvalidMutation
from antiphon.model.factory import ModelFactory
from antiphon.testing.peers import Peer, Peers

pytestmark = pytest.mark.slow


def test_the_program_ends_with_the_same_hash_on_every_device(root: Path) -> None:
    command = [sys.executable, "examples/chess_club.py", "--json"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "All three agree." in ended.stdout
    devices = json.loads(ended.stdout.splitlines()[-1])["devices"]
    assert sorted(devices) == ["ann's laptop", "ann's phone", "ben's tablet"]
    for device in devices.values():
        assert f"{device['snapshot'][:16]}\n" in ended.stdout
        assert device["snapshot"] == devices["ben's tablet"]["snapshot"]
        assert device["result"] == "1/2-1/2"


@pytest.fixture
def club(tmp_path: Path) -> Iterator[Club]:
    models = ModelFactory.standard()
    models.register(ChessModel)
    with Peers(tmp_path, models=models) as peers:
        yield Club(peers)


def test_of_two_moves_made_apart_one_counts_and_the_other_is_listed_everywhere(club: Club) -> None:
    open_game(club)
    move_apart(club)
    assert [club.game(peer).value["moves"][-1] for peer in club.peers.all] == ["Bb5", "Bc4", "Nc6"]

    club.meet()

    first = min((club.laptop, club.phone), key=feed_of)  # they have the same lamport, so the feed decides
    late = club.phone if first is club.laptop else club.laptop
    for peer in club.peers.all:
        assert club.game(peer).value["moves"][4:] == ["Bb5" if first is club.laptop else "Bc4"]
        (refused,) = peer.party.refused()
        assert refused.feed == feed_of(late)
        assert refused.reason.startswith("late: it is for ply 4")


def test_all_write_into_the_notes_which_hang_under_the_game(club: Club) -> None:
    open_game(club)
    move_apart(club)
    club.meet()
    for peer in club.peers.all:
        notes = club.notes(peer)
        assert notes.parent == club.game(peer).id
        assert sorted(notes.value.replace("... ", ". ").split(". ")[:-1]) == [
            "Ann is thinking",
            "Let's try the Italian",
            "Spanish, as last week",
        ]


def test_both_devices_of_a_player_are_one_member(club: Club) -> None:
    assert club.laptop.key == club.phone.key != club.tablet.key
    assert club.laptop.member is not None
    assert len(club.laptop.member.state.members) == 2
    assert feed_of(club.laptop) != feed_of(club.phone)


def test_what_is_refused_at_once_is_not_written(club: Club) -> None:
    open_game(club)
    before = club.tablet.lengths()
    with pytest.raises(InvalidMutation, match="out of turn: it is white's move"):
        club.game(club.tablet).edit("move", "a7a6")
    assert club.tablet.lengths() == before


def test_a_restart_and_a_rebuild_change_nothing(club: Club) -> None:
    open_game(club)
    move_apart(club)
    club.meet()
    club.phone.restart()
    club.laptop.restart(crash=True)
    assert "illegal: a7a4" in play_on(club)
    club.tablet.rebuild()
    found = report(club)
    assert found["agreed"], found
    assert len(found["devices"]["ben's tablet"]["moves"]) == 7


@pytest.mark.parametrize("seed", range(4))
def test_random_games_end_alike_however_they_are_exchanged(club: Club, seed: int) -> None:
    """Everybody plays whatever is legal where they are, hears of one other now and then, and restarts."""
    open_game(club)
    chance = random.Random(seed)
    for _ in range(60):
        peer, other = chance.sample(club.peers.all, 2)
        if chance.random() < 0.4:
            club.peers.pass_on(other, peer)
        elif chance.random() < 0.1:
            peer.restart(crash=chance.random() < 0.5)
        else:
            try_something(club, peer, chance)
    club.meet()
    found = report(club)
    assert found["agreed"], found
    assert len(found["devices"]["ben's tablet"]["moves"]) > 4
    assert any(reason.startswith("late: ") for reason in found["devices"]["ben's tablet"]["refused"])


def try_something(club: Club, peer: Peer, chance: random.Random) -> None:
    game = club.game(peer)
    mutation = game.read(lambda model, state: model.rehearse(state, chance, feed_of(peer)))
    if mutation[0] == 3:
        return  # nobody resigns here: the game would be over too soon
    try:
        game.mutate(mutation)
    except InvalidMutation:
        club.note(peer, "? ")
