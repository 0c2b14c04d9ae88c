"""The chess model: what it refuses and why, how games end, and that no order of arrival changes a game."""

from __future__ import annotations

import doctest
import itertools
import random
from collections.abc import Sequence
from typing import Any

import chess
import pytest
from examples.chess_model import PLIES_MAX, SEAT_FEEDS_MAX, Act, ChessModel, Game, Verb
from hypothesis import given, settings, strategies as st

from antiphon.core.errors import BadEncoding, InvalidInput, InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.model.fold import fold
from antiphon.testing.model_laws import FEEDS, PARTY, History, run_model_tests
from examples import chess_model

MODEL = ChessModel()
ANN, PHONE, BEN, EVE = (bytes([letter]) * 32 for letter in b"apbe")
FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
TO_CASTLING = ("e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5")
#: Knights out and back: a position comes again every four plies.
SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8")

_lamports = itertools.count(1)


def do(game: Game, who: bytes, command: str, *arguments: Any) -> None:
    """What `Item.edit` does, with a stamp later than all before."""
    mutation = getattr(MODEL, command)(game, *arguments, feed=who)
    MODEL.apply(game, mutation, Stamp(next(_lamports), who, 0))


def seated() -> Game:
    """Ann plays white, on two devices; Ben plays black."""
    game = MODEL.initial()
    do(game, ANN, "sit", "white", PHONE)
    do(game, BEN, "sit", "black")
    return game


def played(*moves: str) -> Game:
    game = seated()
    for ply, move in enumerate(moves):
        do(game, (ANN, BEN)[ply % 2], "move", move)
    return game


def check_refused(game: Game, who: bytes, mutation: bytes, why: str) -> None:
    """Refused with this reason, and nothing has changed."""
    before = MODEL.snapshot(game)
    with pytest.raises(InvalidMutation, match=why):
        MODEL.apply(game, mutation, Stamp(next(_lamports), who, 0))
    assert MODEL.snapshot(game) == before


def moving(colour: bool, ply: int, uci: str) -> bytes:
    return Act(Verb.MOVE, colour, ply, uci.encode()).encode()


# -- the laws


def test_it_keeps_the_laws_of_models() -> None:
    assert len(run_model_tests(ChessModel, examples=25)) >= 9


def test_rehearsals_play_chess() -> None:
    """Else the laws above would be about refusals alone."""
    plies = 0
    for seed in range(20):
        history = History(MODEL, random.Random(seed), size=24, hostile=False, void=False)
        plies += len(MODEL.value(history.state(history.lines).state)["moves"])
    assert plies > 40


def test_the_example_in_its_docstring_runs() -> None:
    results = doctest.testmod(chess_model)
    assert (results.failed, results.attempted > 5) == (0, True)


# -- seats


def test_a_seat_belongs_to_who_sat_down_first() -> None:
    game = seated()
    check_refused(game, EVE, MODEL.sit(game, "white"), "white's seat is taken, by 61616161, 70707070")
    assert MODEL.value(game)["white"] == [ANN.hex(), PHONE.hex()]


def test_who_sits_may_share_the_seat_later() -> None:
    game = seated()
    check_refused(game, EVE, MODEL.move(game, "e2e4", feed=EVE), "feed 65656565 does not sit as white")
    do(game, PHONE, "sit", "white", EVE)
    do(game, EVE, "move", "e2e4")
    assert MODEL.value(game)["moves"] == ["e4"]


def test_a_seat_has_a_limit() -> None:
    game = MODEL.initial()
    others = [bytes([number]) * 32 for number in range(SEAT_FEEDS_MAX)]
    check_refused(game, ANN, MODEL.sit(game, "black", *others), "at most 8 feeds, not 9")
    do(game, ANN, "sit", "black", *others[1:])
    check_refused(game, ANN, MODEL.sit(game, "black", others[0]), "at most 8 feeds, not 9")


def test_one_may_play_against_oneself() -> None:
    game = MODEL.initial()
    do(game, ANN, "sit", "white")
    do(game, ANN, "sit", "black")
    for move in FOOLS_MATE:
        do(game, ANN, "move", move)
    assert MODEL.value(game)["result"] == "0-1"


@pytest.mark.parametrize(("arguments", "why"), [(("red",), "white or black"), (("white", b"short"), "32 bytes")])
def test_a_command_says_what_it_wants(arguments: Sequence[Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        MODEL.sit(MODEL.initial(), *arguments)


# -- moves that are refused


def test_a_move_out_of_turn_is_refused() -> None:
    game = seated()
    check_refused(game, BEN, MODEL.move(game, "e7e5", feed=BEN), "out of turn: it is white's move")


def test_a_move_for_the_other_side_is_refused() -> None:
    game = seated()
    check_refused(game, BEN, moving(True, 0, "e2e4"), "feed 62626262 does not sit as white")


def test_a_late_move_is_refused() -> None:
    """Ann moved on her phone as well, for the same ply."""
    game = played("e2e4")
    check_refused(game, PHONE, moving(True, 0, "d2d4"), "late: it is for ply 0, where e4 has been played")


def test_a_move_for_a_position_that_was_not_reached_is_refused() -> None:
    """Built upon a move that does not count."""
    game = played("e2e4")
    check_refused(game, ANN, moving(True, 2, "d2d4"), "for ply 2, and the game has only come to ply 1")


@pytest.mark.parametrize(
    ("before", "move"),
    [
        ((), "e2e5"),
        ((), "e7e5"),
        ((), "0000"),
        ((), "e2e4q"),
        ((), "N@f3"),
        (("e2e4", "e7e5", "d1h5", "b8c6", "h5f7"), "a7a6"),  # in check
        (("a2a4", "h7h5", "a4a5", "h5h4", "a5a6", "h4h3", "a6b7", "h3g2"), "b7a8"),  # no piece named
        (("a2a4", "h7h5", "a4a5", "h5h4", "a5a6", "h4h3", "a6b7", "h3g2"), "b7a8k"),
        (("a2a4", "h7h5", "a4a5", "h5h4", "a5a6", "h4h3", "a6b7", "h3g2"), "b7a8p"),
    ],
)
def test_an_illegal_move_is_refused(before: Sequence[str], move: str) -> None:
    game = played(*before)
    who = (ANN, BEN)[len(before) % 2]
    check_refused(game, who, MODEL.move(game, move, feed=who), f"illegal: {move} is no move for")


@pytest.mark.parametrize("text", ["e2e9", "E2E4", "12345", "♟ab"])
def test_what_is_no_move_is_refused(text: str) -> None:
    game = seated()
    check_refused(game, ANN, MODEL.move(game, text, feed=ANN), "is no move in UCI")


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (b"", "an act of 0 bytes"),
        (bytes(300), "an act of 300 bytes"),
        (b"\x09\x00\x00\x00", "of kind 9"),
        (b"\x03\x02\x00\x00", "neither white nor black"),
        (b"\x03\x01\x00\x01", "resign at a ply"),
        (b"\x01\x01\x00\x00" + bytes(31), "cut off"),
        (b"\x02\x01\x00\x00", "without its move"),
        (b"\x04\x01\x00\x00e2e4", "a move too much"),
    ],
)
def test_bytes_that_are_no_act_are_refused_void_or_not(mutation: bytes, why: str) -> None:
    check_refused(seated(), ANN, mutation, why)
    with pytest.raises(InvalidMutation, match=why):
        MODEL.apply(seated(), mutation, Stamp(1, ANN, 0), void=True)


def test_a_void_move_is_not_made() -> None:
    game = seated()
    MODEL.apply(game, MODEL.move(game, "e2e4", feed=ANN), Stamp(9, ANN, 9), void=True)
    assert MODEL.value(game)["moves"] == []


# -- how games end


def check_over(game: Game, result: str, why: str) -> None:
    """It ended so, and nothing is taken any more."""
    value = MODEL.value(game)
    assert (value["result"], value["why"], value["turn"], value["offer"]) == (result, why, None, None)
    for command, arguments in (("sit", ("white",)), ("move", ("a2a3",)), ("resign", ()), ("offer_draw", ())):
        mutation = getattr(MODEL, command)(game, *arguments, feed=ANN)
        check_refused(game, ANN, mutation, f"the game is over: {result}, {why}")
    assert MODEL.value(MODEL.restore(MODEL.snapshot(game))) == value


def test_checkmate_ends_it() -> None:
    check_over(played(*FOOLS_MATE), "0-1", "checkmate")


def test_a_position_five_times_ends_it() -> None:
    check_over(played(*SHUFFLE * 4), "1/2-1/2", "fivefold repetition")


@pytest.mark.parametrize(("who", "result", "why"), [(PHONE, "0-1", "white resigned"), (BEN, "1-0", "black resigned")])
def test_resigning_ends_it_whoever_is_to_move(who: bytes, result: str, why: str) -> None:
    game = played("e2e4")
    do(game, who, "resign")
    check_over(game, result, why)


def test_who_does_not_sit_cannot_resign() -> None:
    game = seated()
    check_refused(game, EVE, MODEL.resign(game, feed=EVE), "does not sit as white")


def test_an_offer_that_is_accepted_ends_it() -> None:
    game = played("e2e4")
    do(game, ANN, "offer_draw")
    assert MODEL.value(game)["offer"] == "white"
    do(game, BEN, "accept_draw")
    check_over(game, "1/2-1/2", "draw agreed")


def test_one_cannot_accept_what_was_not_offered_or_is_ones_own() -> None:
    game = played("e2e4")
    check_refused(game, BEN, MODEL.accept_draw(game, feed=BEN), "no offer of white's to accept")
    do(game, ANN, "offer_draw")
    check_refused(game, PHONE, Act(Verb.ACCEPT, True, 1).encode(), "no offer of black's to accept")
    check_refused(game, BEN, MODEL.offer_draw(game, feed=BEN), "offered already")


def test_an_offer_stands_while_its_own_side_moves_and_lapses_when_the_other_does() -> None:
    game = played("e2e4")
    do(game, BEN, "offer_draw")
    do(game, BEN, "move", "e7e5")
    assert MODEL.value(game)["offer"] == "black"
    do(game, ANN, "move", "g1f3")
    assert MODEL.value(game)["offer"] is None


def test_an_offer_or_answer_to_a_position_that_is_past_is_refused() -> None:
    game = played("e2e4", "e7e5")
    check_refused(game, BEN, Act(Verb.OFFER, False, 1).encode(), "late: it is for ply 1, where e5 has been played")
    do(game, BEN, "offer_draw")
    check_refused(game, PHONE, Act(Verb.ACCEPT, True, 1).encode(), "late: it is for ply 1")


def quiet_move(board: chess.Board, chance: random.Random) -> str:
    """A move that brings no end nearer; a pawn steps on before the rule of 75 moves would end the game."""
    quiet = [move for move in board.legal_moves if not (board.is_capture(move) or board.gives_check(move))]
    pawns = [move for move in quiet if board.is_zeroing(move)]
    pieces = [move for move in quiet if move not in pawns]
    return chance.choice(pawns if board.halfmove_clock > 100 and pawns else pieces).uci()


def test_a_game_is_drawn_at_the_limit() -> None:
    game, chance = seated(), random.Random(0)
    while game.ply < PLIES_MAX:
        assert game.result == "*", game.why
        do(game, (ANN, BEN)[game.ply % 2], "move", quiet_move(game.board, chance))
    check_over(game, "1/2-1/2", "1024 plies")


# -- snapshots


def test_a_snapshot_in_the_middle_of_a_game_goes_on_alike() -> None:
    game = played(*SHUFFLE * 3)
    do(game, ANN, "offer_draw")
    again = MODEL.restore(MODEL.snapshot(game))
    for one in (game, again):
        do(one, ANN, "move", "g1f3")
        do(one, BEN, "move", "g8f6")
    assert MODEL.snapshot(game) == MODEL.snapshot(again)
    assert MODEL.value(game) == MODEL.value(again)


def test_castling_has_one_encoding() -> None:
    """The library also takes the king onto its rook, as in Chess960; that must not make other bytes."""
    one, other = played(*TO_CASTLING, "e1g1"), played(*TO_CASTLING, "e1h1")
    assert MODEL.snapshot(one) == MODEL.snapshot(other)
    with pytest.raises(BadEncoding, match="one encoding"):
        MODEL.restore(MODEL.snapshot(one).replace(b"e1g1", b"e1h1"))


SEATS = b"\0\0\1\1" + ANN + BEN


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes"),
        (b"\0\0\0\0" + bytes(1 << 16), "bytes"),
        (b"\4\0\0\0", "does not know"),
        (b"\0\3\0\0", "does not know"),
        (b"\0\0\x09\0" + bytes(32 * 9), "too many feeds"),
        (b"\0\0\1\0" + bytes(31), "cut off"),
        (b"\0\0\2\0" + PHONE + ANN, "one encoding"),
        (b"\0\0\2\0" + ANN + ANN, "one encoding"),
        (b"\0\0\0\0e2e4", "nobody can have made"),
        (b"\0\0\1\0" + ANN + b"e2e4 e7e5", "nobody can have made"),
        (SEATS + b"e2e5", "illegal"),
        (SEATS + b"e2e4 ", "no move in UCI"),
        (SEATS + " ".join(FOOLS_MATE).encode() + b" a2a3", "after the end"),
        (b"\1" + SEATS[1:] + " ".join(FOOLS_MATE).encode(), "after the end"),
        (b"\0\1" + SEATS[2:] + " ".join(FOOLS_MATE).encode(), "after the end"),
        (b"\0\2\0\1" + BEN, "nobody can have made"),
        (b"\1\0\0\1" + BEN, "white resigned, and nobody sits there"),
        (b"\3\0\1\0" + ANN, "draw agreed, and nobody sits there"),
        (b"\3\1\1\1" + ANN + BEN, "one encoding"),
    ],
)
def test_a_snapshot_of_what_cannot_have_been_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadEncoding, match=why):
        MODEL.restore(data)


@given(st.binary(max_size=80) | st.binary(max_size=40).map(lambda tail: SEATS + tail))
def test_any_bytes_are_refused_or_restore_to_themselves(data: bytes) -> None:
    try:
        game = MODEL.restore(data)
    except BadEncoding:
        return
    assert MODEL.snapshot(game) == data


# -- any order


class Crowded(ChessModel):
    """Everybody sits down with somebody else, so that moves for one ply collide."""

    def rehearse(self, state: Game, chance: random.Random, feed: bytes) -> bytes:
        for colour in ("white", "black"):
            if not state.seats[colour == "white"]:
                return self.sit(state, colour, chance.choice(FEEDS), feed=feed)
        return super().rehearse(state, chance, feed)


@settings(max_examples=40)
@given(st.integers(0), st.integers(4, 30))
def test_any_order_of_arrival_gives_the_same_position(seed: int, size: int) -> None:
    history = History(Crowded(), random.Random(seed), size=size, hostile=False, void=True)
    wanted = history.state(history.lines).state
    for _ in range(4):
        found = history.fold(history.order()).state
        assert MODEL.value(found) == MODEL.value(wanted)
        assert MODEL.snapshot(found) == MODEL.snapshot(wanted)


def test_in_crowded_games_moves_collide() -> None:
    """Else the property above would have nothing to decide."""
    reasons: list[str] = []
    for seed in range(10):
        history = History(Crowded(), random.Random(seed), size=30, hostile=False, void=False)
        notes = sorted((line.note for line in history.lines), key=lambda note: note.stamp)
        reasons += fold(PARTY, history.item, None, notes, history.models).verdicts.values()
    for beginning in ("late: ", "out of turn: ", "white's seat is taken"):
        assert any(reason.startswith(beginning) for reason in reasons), beginning
