"""A club with a game in it, as tests of child parties play them: everybody in the one is an actor in the other."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.halo.credentials.claims import Narrowing, Role
from antiphon.testing.parties import Actor, Rehearsal, pair_of


@dataclass
class Family:
    """A club, and the game that Alice, who founded the club, began in it. Bob is an editor, Carol an owner."""

    club: Rehearsal
    game: Rehearsal
    parents: dict[str, Actor]
    children: dict[str, Actor]

    def tell(self) -> None:
        """Everybody hears of everything, in the club first."""
        for actor in self.parents.values():
            actor.hear(*self.parents.values())
        founder = next(iter(self.children.values()))
        for name, actor in self.children.items():
            if actor.machine.parent is None:
                actor.hear(founder)
            actor.attend(self.parents[name])
            actor.hear(*self.children.values())

    def data(self, name: str) -> KeyPair:
        return pair_of(f"{name} data of the game")

    def verdict(self, judge: str, name: str, seq: int, seen: dict[bytes, int] | None = None) -> str:
        """What an actor of the game thinks of a message of somebody's, who had seen what the actor has, or less."""
        machine = self.children[judge].machine
        return machine.judge_data(self.data(name).key, seq, dict(machine.timeframe()) if seen is None else seen)


def family(names: tuple[str, ...] = ("alice", "bob", "carol")) -> Family:
    club = Rehearsal("club")
    alice = club.founder("alice")
    parents = {"alice": alice}
    roles = {"bob": Role.EDITOR, "carol": Role.OWNER, "dave": Role.READER}
    for name in names[1:]:
        actor = parents[name] = club.actor(name)
        alice.admit(actor, roles[name])
        actor.hear(alice)
        actor.join()
    for actor in parents.values():
        actor.hear(*parents.values())
    game = Rehearsal("game", club)
    children = {"alice": game.founder("alice", alice)}
    made = Family(club, game, parents, children)
    for name in names[1:]:
        actor = children[name] = game.actor(name)
        actor.hear(children["alice"])
        actor.attend(parents[name])
        actor.hear(children["alice"])
        actor.join()
    made.tell()
    for name, actor in children.items():
        actor.open_data(made.data(name))
    made.tell()
    return made


def roles(actor: Actor, name: str) -> set[Role]:
    member = actor.state.member(pair_of(name).key)
    return set(member.roles) if member is not None else set()


def echo(played: Family, by: str, lengths: dict[bytes, int], subject: str = "bob", **how: object) -> Stamp:
    signers = [pair_of(subject)] if how.get("signed") else []
    return played.children[by].write(Narrowing(pair_of(subject).key, frozenset(), lengths, echo=True), signers)


def ends(played: Family, judge: str = "alice", name: str = "bob") -> int:
    """How many of somebody's messages count for an actor that has heard of everything."""
    played.tell()
    machine = played.children[judge].machine
    machine.authority.settle()
    return machine.authority.end(played.data(name).key)
