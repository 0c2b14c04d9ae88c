"""`ChessModel`: a game of chess as an item. The meaning of a move depends on earlier moves, so the model is ORDERED.

>>> model, ann, ben = ChessModel(), b"a" * 32, b"b" * 32
>>> game = model.initial()
>>> model.apply(game, model.sit(game, "white", feed=ann), Stamp(2, ann, 0))
>>> model.apply(game, model.sit(game, "black", feed=ben), Stamp(3, ben, 0))
>>> model.apply(game, model.move(game, "e2e4", feed=ann), Stamp(4, ann, 1))
>>> model.value(game)["moves"], model.value(game)["turn"]
(['e4'], 'black')
>>> model.apply(game, model.move(game, "e7e4", feed=ben), Stamp(5, ben, 1))
Traceback (most recent call last):
antiphon.core.errors.InvalidMutation: illegal: e7e4 is no move for black in this position

A seat belongs to the feed that sat down first in the total order, and to the feeds that it names: a model knows feeds,
not people, so a player with two devices names both. A move names its ply. Of two concurrent moves for the same ply, the
first in the total order counts, and the other is refused as late, on every peer.
"""

from __future__ import annotations

import enum
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import chess

from antiphon.core.errors import BadEncoding, InvalidInput, InvalidMutation
from antiphon.core.stamp import Stamp
from antiphon.model.model import Feeding, Model, need

FEED_SIZE = 32
SEAT_FEEDS_MAX = 8  # devices of one player
PLIES_MAX = 1024  # the longest game on record has 538; at this ply the game is drawn
ACT_SIZE_MAX = 4 + FEED_SIZE * SEAT_FEEDS_MAX
SNAPSHOT_SIZE_MAX = 4 + 2 * FEED_SIZE * SEAT_FEEDS_MAX + 6 * PLIES_MAX

#: How players end a game themselves. Other endings follow from the moves.
ENDINGS = {"": "*", "white resigned": "0-1", "black resigned": "1-0", "draw agreed": "1/2-1/2"}
UNDECIDED = ENDINGS[""]

_HEAD = struct.Struct(">BBH")  # verb, colour, ply
_STATE = struct.Struct(">BBBB")  # ending, offer, feeds at white's seat, at black's


# -- mutations


class Verb(enum.IntEnum):
    """The kind of an act of a player."""

    SIT = 1
    MOVE = 2
    RESIGN = 3
    OFFER = 4
    ACCEPT = 5


_VERBS = frozenset(Verb)
#: Acts that refer to one position: after another move they are refused.
AT_PLY = frozenset({Verb.MOVE, Verb.OFFER, Verb.ACCEPT})


class Act(NamedTuple):
    """A mutation: four bytes, then the feeds that sit down too, or a move in UCI."""

    verb: Verb
    colour: chess.Color
    ply: int = 0
    rest: bytes = b""

    def encode(self) -> bytes:
        return _HEAD.pack(self.verb, self.colour, self.ply) + self.rest


def read_act(data: bytes) -> Act:
    """Decode an act, or raise `InvalidMutation`. The result depends on the bytes alone."""
    need(_HEAD.size <= len(data) <= ACT_SIZE_MAX, f"an act of {len(data)} bytes; it has {_HEAD.size} to {ACT_SIZE_MAX}")
    number, colour, ply = _HEAD.unpack_from(data)
    rest = data[_HEAD.size :]
    need(number in _VERBS, f"an act of kind {number}, which this version does not know")
    verb = Verb(number)
    need(colour <= 1, "a colour that is neither white nor black")
    need(ply == 0 or verb in AT_PLY, f"{verb.name.lower()} at a ply, which it does not have")
    if verb is Verb.SIT:
        need(len(rest) % FEED_SIZE == 0, "a feed key that is cut off")
    else:
        need(len(rest) in ((4, 5) if verb is Verb.MOVE else (0,)), "an act with a move too much, or without its move")
    return Act(verb, bool(colour), ply, rest)


# -- the state


@dataclass(slots=True)
class Game:
    """The state of a game."""

    board: chess.Board = field(default_factory=chess.Board)
    sans: list[str] = field(default_factory=list)  # the moves in SAN, which depends on the position
    seats: dict[chess.Color, set[bytes]] = field(default_factory=lambda: {chess.WHITE: set(), chess.BLACK: set()})
    offer: chess.Color | None = None  # the side that offers a draw, until it is accepted or the other side moves
    result: str = UNDECIDED
    why: str = ""

    @property
    def ply(self) -> int:
        return len(self.sans)

    def sit(self, colour: chess.Color, feed: bytes, others: Iterable[bytes]) -> None:
        """Take a free seat, or add feeds to one's own."""
        seat = self.seats[colour]
        if seat and feed not in seat:
            raise InvalidMutation(f"{_name(colour)}'s seat is taken, by {', '.join(sorted(map(_short, seat)))}")
        taken = seat | {feed, *others}
        need(len(taken) <= SEAT_FEEDS_MAX, f"a seat is shared by at most {SEAT_FEEDS_MAX} feeds, not {len(taken)}")
        self.seats[colour] = taken

    def check_ply(self, ply: int) -> None:
        if ply < self.ply:
            raise InvalidMutation(f"late: it is for ply {ply}, where {self.sans[ply]} has been played")
        if ply > self.ply:  # an earlier move that its writer had seen is refused
            raise InvalidMutation(f"it is for ply {ply}, and the game has only come to ply {self.ply}")

    def move(self, uci: bytes) -> None:
        colour = self.board.turn
        try:
            move = chess.Move.from_uci(uci.decode("ascii"))
        except ValueError:
            raise InvalidMutation(f"{uci!r} is no move in UCI; e2e4 and e7e8q are") from None
        need(self.board.is_legal(move), f"illegal: {move.uci()} is no move for {_name(colour)} in this position")
        self.sans.append(self.board.san(move))
        self.board.push(move)
        if self.offer != colour:
            self.offer = None  # a move declines the offer
        outcome = self.board.outcome()
        if outcome is not None:
            self.end(outcome.result(), outcome.termination.name.lower().replace("_", " "))
        elif self.ply >= PLIES_MAX:
            self.end("1/2-1/2", f"{PLIES_MAX} plies")

    def end(self, result: str, why: str) -> None:
        self.result, self.why, self.offer = result, why, None

    def end_by(self, ending: str) -> None:
        self.end(ENDINGS[ending], ending)


def _name(colour: chess.Color) -> str:
    return chess.COLOR_NAMES[colour]


def _short(feed: bytes) -> str:
    return feed.hex()[:8]


# -- snapshots


def write_game(game: Game) -> bytes:
    ending = list(ENDINGS).index(game.why) if game.why in ENDINGS else 0
    offer = 0 if game.offer is None else 1 + game.offer
    white, black = (sorted(game.seats[colour]) for colour in (chess.WHITE, chess.BLACK))
    moves = " ".join(move.uci() for move in game.board.move_stack)
    return _STATE.pack(ending, offer, len(white), len(black)) + b"".join([*white, *black]) + moves.encode()


def read_game(data: bytes) -> Game:
    """Decode a game from untrusted bytes. It must be a possible game, and encode to the same bytes."""
    try:
        game = _read_game(data)
    except InvalidMutation as error:
        raise BadEncoding(f"snapshot of a chess game: {error}") from None
    if write_game(game) != data:
        raise BadEncoding("snapshot of a chess game: not in its one encoding")
    return game


def _read_game(data: bytes) -> Game:
    need(_STATE.size <= len(data) <= SNAPSHOT_SIZE_MAX, f"{len(data)} bytes")
    ending, offer, white, black = _STATE.unpack_from(data)
    need(ending < len(ENDINGS) and offer <= 2, "an ending or an offer that this version does not know")
    need(max(white, black) <= SEAT_FEEDS_MAX, "too many feeds at a seat")
    middle, end = (_STATE.size + FEED_SIZE * count for count in (white, white + black))
    need(end <= len(data), "a feed key that is cut off")
    game = Game()
    game.seats = {chess.WHITE: set(_feeds(data[_STATE.size : middle])), chess.BLACK: set(_feeds(data[middle:end]))}
    for uci in data[end:].split(b" ") if end < len(data) else ():
        need(game.seats[game.board.turn], "a move that nobody can have made")
        need(game.result == UNDECIDED, "moves after the end")
        game.move(uci)
    if offer or ending:
        need(game.result == UNDECIDED, "an offer or an ending after the end")
    if offer:
        need(game.seats[offer == 2], "an offer that nobody can have made")
        game.offer = offer == 2
    if ending:
        why = list(ENDINGS)[ending]
        sides = [colour for colour in game.seats if _name(colour) in why] or list(game.seats)
        need(all(game.seats[colour] for colour in sides), f"{why}, and nobody sits there")
        game.end_by(why)
    return game


def _feeds(data: bytes) -> list[bytes]:
    return [data[at : at + FEED_SIZE] for at in range(0, len(data), FEED_SIZE)]


# -- the model


class ChessModel(Model[Game]):
    """A game of chess between two seats."""

    name = "example/chess"
    feeding = Feeding.ORDERED
    commands = frozenset({"sit", "move", "resign", "offer_draw", "accept_draw"})

    def initial(self) -> Game:
        return Game()

    def apply(self, state: Game, mutation: bytes, stamp: Stamp, *, void: bool = False) -> None:
        act = read_act(mutation)
        if void:
            return
        need(state.result == UNDECIDED, f"the game is over: {state.result}, {state.why}")
        if act.verb is Verb.SIT:
            state.sit(act.colour, stamp.feed, _feeds(act.rest))
            return
        if act.verb in AT_PLY:
            state.check_ply(act.ply)
        name, other = _name(act.colour), _name(not act.colour)
        need(act.verb is not Verb.MOVE or act.colour == state.board.turn, f"out of turn: it is {other}'s move")
        need(stamp.feed in state.seats[act.colour], f"feed {_short(stamp.feed)} does not sit as {name}")
        if act.verb is Verb.MOVE:
            state.move(act.rest)
        elif act.verb is Verb.RESIGN:
            state.end_by(f"{name} resigned")
        elif act.verb is Verb.OFFER:
            need(state.offer is None, "a draw is offered already")
            state.offer = act.colour
        else:
            need(state.offer == (not act.colour), f"there is no offer of {other}'s to accept")
            state.end_by("draw agreed")

    def snapshot(self, state: Game) -> bytes:
        return write_game(state)

    def restore(self, data: bytes) -> Game:
        return read_game(data)

    def value(self, state: Game) -> dict[str, Any]:
        over = state.result != UNDECIDED
        return {
            "fen": state.board.fen(),
            "moves": list(state.sans),
            **{_name(colour): sorted(feed.hex() for feed in seat) for colour, seat in state.seats.items()},
            "turn": None if over else _name(state.board.turn),
            "offer": None if state.offer is None else _name(state.offer),
            "result": state.result,
            "why": state.why,
        }

    # -- commands

    def sit(self, state: Game, colour: str, *others: bytes, feed: bytes = b"") -> bytes:
        """Sit down as white or black, with the feeds of the player's other devices. More can be added later."""
        if colour not in chess.COLOR_NAMES:
            raise InvalidInput(f"one sits as white or black, not as {colour!r}")
        if any(len(other) != FEED_SIZE for other in others):
            raise InvalidInput(f"the key of a feed has {FEED_SIZE} bytes")
        return Act(Verb.SIT, colour == "white", rest=b"".join(others)).encode()

    def move(self, state: Game, uci: str, *, feed: bytes = b"") -> bytes:
        """The next move, in UCI: `e2e4`, `e7e8q`; castling is the king's move, `e1g1`."""
        return Act(Verb.MOVE, _side(state, feed), state.ply, uci.encode()).encode()

    def resign(self, state: Game, *, feed: bytes = b"") -> bytes:
        return Act(Verb.RESIGN, _side(state, feed)).encode()

    def offer_draw(self, state: Game, *, feed: bytes = b"") -> bytes:
        return Act(Verb.OFFER, _side(state, feed), state.ply).encode()

    def accept_draw(self, state: Game, *, feed: bytes = b"") -> bytes:
        colour = _side(state, feed) if state.offer is None else not state.offer
        return Act(Verb.ACCEPT, colour, state.ply).encode()

    # -- rehearsal

    def rehearse(self, state: Game, chance: random.Random, feed: bytes) -> bytes:
        free = [_name(colour) for colour, seat in state.seats.items() if not seat]
        if free and chance.random() < 0.7:
            return self.sit(state, chance.choice(free), *[chance.randbytes(FEED_SIZE)] * chance.randrange(2), feed=feed)
        moves = [move.uci() for move in state.board.legal_moves]
        if moves and chance.random() < 0.8:
            return self.move(state, chance.choice(moves), feed=feed)
        if state.offer is not None:
            return self.accept_draw(state, feed=feed)
        return (self.resign if chance.random() < 0.1 else self.offer_draw)(state, feed=feed)


def _side(state: Game, feed: bytes) -> chess.Color:
    """Return the side for which a feed acts: the side to move, unless the feed sits only at the other one."""
    turn = state.board.turn
    return not turn if feed in state.seats[not turn] and feed not in state.seats[turn] else turn
