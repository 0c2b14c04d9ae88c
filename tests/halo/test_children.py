"""Child parties: members of the parent are members of the child, and what the parent takes away is gone there, too."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.core.keys import KeyPair
from antiphon.core.stamp import Stamp
from antiphon.feed.header import Entry
from antiphon.halo.claims import FeedEnd, MemberAdmission, Narrowing, Position, Role
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


# -- what is inherited


def test_members_of_the_parent_have_their_roles_in_the_child_without_any_admission_there() -> None:
    played = family(("alice", "bob", "carol", "dave"))
    for actor in played.children.values():
        found = {name: roles(actor, name) for name in ("alice", "bob", "carol", "dave")}
        assert found == {"alice": {Role.OWNER}, "bob": {Role.EDITOR}, "carol": {Role.OWNER}, "dave": {Role.READER}}
        assert not any(isinstance(act.claim, MemberAdmission) for act in actor.machine.acts())
        assert actor.state == played.children["alice"].state
    assert played.verdict("alice", "bob", 0) == ""
    assert played.verdict("alice", "dave", 0) == "its writer is not an owner or editor"


def test_who_is_admitted_to_the_parent_later_comes_into_the_child() -> None:
    played = family()
    eve = played.club.actor("eve")
    played.parents["alice"].admit(eve, Role.EDITOR)
    eve.hear(played.parents["alice"])
    played.parents["eve"], played.children["eve"] = eve, played.game.actor("eve")
    played.tell()
    played.children["eve"].join()
    played.tell()
    assert roles(played.children["bob"], "eve") == {Role.EDITOR}
    assert played.children["bob"].state.voids == ()


def test_a_message_counts_by_what_it_had_seen_of_the_parent() -> None:
    """Dave is made an editor: what he wrote before he knew of that was written by a reader."""
    played = family(("alice", "dave"))
    before = dict(played.children["dave"].machine.timeframe())
    played.parents["alice"].admit(played.parents["dave"], Role.EDITOR)
    played.tell()
    assert played.verdict("alice", "dave", 0, before) == "its writer is not an owner or editor"
    assert played.verdict("alice", "dave", 0) == ""


def test_a_child_waits_for_the_parents_blocks_and_for_nothing_else_of_it() -> None:
    played = family(("alice", "bob"))
    feed = played.children["alice"].control.key
    machine = played.game.machine([feed])
    assert machine.act_count == 0
    assert [waiting.stamp.feed for waiting in machine.waiting()] == [feed]
    assert machine.parent is not None
    for actor in played.parents.values():
        machine.parent.add(actor.written)
    machine.hear_parent()
    assert [act.stamp.seq for act in machine.acts()] == [0]


def test_the_parent_does_not_know_of_its_children() -> None:
    played = family(("alice", "bob"))
    before = played.parents["alice"].state.digest
    played.children["alice"].admit(pair_of("guest").key, Role.EDITOR)
    played.children["alice"].narrow(played.children["bob"])
    played.tell()
    assert roles(played.children["bob"], "bob") == set()
    assert played.parents["alice"].state.digest == before
    assert roles(played.parents["alice"], "bob") == {Role.EDITOR}


def test_a_child_has_guests_of_its_own_and_shuts_out_members() -> None:
    played = family()
    guest = played.game.actor("guest")
    played.children["carol"].admit(guest, Role.EDITOR)
    played.children["bob"].admit(pair_of("nobody").key, Role.EDITOR)  # an editor admits nobody
    played.tell()
    guest.hear(played.children["alice"])
    guest.attend(played.parents["alice"])
    guest.hear(played.children["alice"], played.children["carol"])
    guest.join()
    played.children["alice"].hear(guest)
    assert roles(played.children["alice"], "guest") == {Role.EDITOR}
    assert roles(played.children["alice"], "nobody") == set()
    played.children["alice"].narrow(played.children["carol"])  # Alice is older in the club, so she may
    played.tell()
    assert roles(played.children["alice"], "carol") == set()
    assert roles(played.parents["alice"], "carol") == {Role.OWNER}


def test_groups_of_the_parent_are_groups_in_the_child() -> None:
    played = family(("alice", "bob"))
    group = pair_of("a group")
    played.parents["alice"].group(group.key, pair_of("eve").key)
    played.children["alice"].admit(group.key, Role.EDITOR)
    played.tell()
    assert roles(played.children["bob"], "eve") == {Role.EDITOR}
    assert roles(played.parents["bob"], "eve") == set()


# -- what the parent takes away


def revoked(name: str = "bob") -> tuple[Family, dict[bytes, int]]:
    """Bob is revoked in the club, by Alice, who has told the game of it; and what Bob saw before."""
    played = family()
    before = dict(played.children[name].machine.timeframe())
    played.parents["alice"].narrow(played.parents[name])
    played.parents["carol"].hear(played.parents["alice"])
    played.children["alice"].attend(played.parents["alice"])
    return played, before


def test_a_revoked_member_does_not_write_on_in_the_child_by_not_looking() -> None:
    """Bob is revoked in the club. His feeds in the game end at nothing, whatever he says that he has seen."""
    played, before = revoked()
    assert roles(played.children["alice"], "bob") == set()
    for seq in (0, 5, 1_000):
        assert played.verdict("alice", "bob", seq, before) != ""
    state = played.children["alice"].state
    assert state.feed(played.data("bob").key) is None


def echo(played: Family, by: str, lengths: dict[bytes, int], subject: str = "bob", **how: object) -> Stamp:
    grants = played.children[by].machine.authority.granted(pair_of(subject).key)
    named = tuple(sorted(act.position for act in grants))
    signers = [pair_of(subject)] if how.get("signed") else []
    return played.children[by].write(Narrowing(named, frozenset(), lengths), signers)


def ends(played: Family, judge: str = "alice", name: str = "bob") -> int:
    """How many of somebody's messages count for an actor that has heard of everything."""
    played.tell()
    machine = played.children[judge].machine
    machine.authority.settle()
    return machine.authority.end(played.data(name).key)


def test_an_owners_echo_says_in_the_child_where_the_feeds_of_a_revoked_member_end() -> None:
    played, before = revoked()
    bob = played.children["bob"]
    echo(played, "alice", {bob.control.key: 2, played.data("bob").key: 7})
    assert ends(played) == 7
    assert played.verdict("carol", "bob", 6, before) == ""
    assert played.verdict("carol", "bob", 7, before) == "it stands past the cut of its feed"
    states = {actor.state.digest for actor in played.children.values()}
    assert len(states) == 1


def test_of_several_echoes_the_least_holds_since_each_is_a_narrowing_itself() -> None:
    played, _ = revoked()
    played.children["carol"].attend(played.parents["carol"])
    bob = played.children["bob"].control.key
    echo(played, "alice", {bob: 2, played.data("bob").key: 7})
    echo(played, "carol", {bob: 2, played.data("bob").key: 1})  # Carol is junior to Bob: hers is nothing
    assert ends(played) == 7
    played, _ = revoked()
    bob = played.children["bob"].control.key
    for length in (3, 8, 5):
        echo(played, "alice", {bob: 2, played.data("bob").key: length})
    assert ends(played) == 3


def test_nobody_echoes_their_own_revocation() -> None:
    """Bob says that he keeps a million messages. His own word gives a membership back, and keeps nothing."""
    played, before = revoked()
    played.children["bob"].attend(played.parents["alice"])
    bob = played.children["bob"].control.key
    echo(played, "bob", {bob: 1 << 40, played.data("bob").key: 1 << 40}, signed=True)
    assert ends(played) == 0
    assert played.verdict("alice", "bob", 0, before) != ""


def test_an_owner_who_was_revoked_echoes_nothing() -> None:
    """Carol, an owner, is revoked; she and the puppet that she had made an owner say how much of hers stays."""
    played = family()
    puppet = played.game.actor("puppet")
    played.children["carol"].admit(puppet, Role.OWNER)
    played.tell()
    puppet.hear(played.children["alice"])
    puppet.attend(played.parents["alice"])
    puppet.hear(*played.children.values())
    puppet.join()
    played.parents["alice"].narrow(played.parents["carol"])
    played.tell()
    puppet.attend(played.parents["alice"])
    played.children["puppet"], played.parents["puppet"] = puppet, played.parents["alice"]
    lengths: dict[bytes, int] = {played.children["carol"].control.key: 50, played.data("carol").key: 50}
    for by in ("carol", "puppet"):
        echo(played, by, lengths, "carol")
    assert ends(played, name="carol") == 0


def test_who_is_admitted_to_the_parent_again_opens_new_feeds() -> None:
    played, _ = revoked()
    played.parents["alice"].admit(played.parents["bob"], Role.EDITOR)
    played.tell()
    assert roles(played.children["alice"], "bob") == {Role.EDITOR}
    assert ends(played) == 0
    again = played.game.actor("bob", device="phone")
    again.hear(played.children["alice"])
    again.attend(played.parents["alice"])
    again.hear(played.children["alice"])
    again.join()
    again.open_data(pair_of("new data"))
    played.children["alice"].hear(again)
    machine = played.children["alice"].machine
    assert machine.judge_data(pair_of("new data").key, 0, dict(machine.timeframe())) == ""


def test_a_guest_stays_when_the_parent_revokes_what_it_gave() -> None:
    """Bob is a member of the club and, for himself, a guest of the game: the club takes only what it gave."""
    played = family()
    played.children["alice"].admit(pair_of("bob").key, Role.EDITOR)
    played.tell()
    seen = dict(played.children["bob"].machine.timeframe())
    played.parents["alice"].narrow(played.parents["bob"])
    played.tell()
    assert roles(played.parents["alice"], "bob") == set()
    assert roles(played.children["alice"], "bob") == {Role.EDITOR}
    grant = played.children["alice"].machine.authority.granted(pair_of("bob").key)[0]
    lengths: dict[bytes, int] = {played.children["bob"].control.key: 2, played.data("bob").key: 2}
    played.children["alice"].write(Narrowing((grant.position,), frozenset(), lengths))  # the echo: what he opened stays
    played.tell()
    assert played.verdict("alice", "bob", 3, seen) == ""


def test_a_device_that_its_identity_ends_in_the_parent_ends_in_the_child() -> None:
    played = family()
    bob, phone = played.children["bob"], played.club.actor("bob", device="phone")
    phone.hear(played.parents["alice"])
    phone.join()
    claim = FeedEnd(bob.identity.key, bob.device.key, {played.parents["bob"].control.key: 1})
    phone.write(claim, [bob.identity])
    played.parents["alice"].hear(phone)
    assert ends(played) == 0
    thief = FeedEnd(bob.identity.key, bob.device.key, {bob.control.key: 99, played.data("bob").key: 99})
    bob.write(thief)  # the stolen device's own word raises nothing
    assert ends(played) == 0
    twin = played.game.actor("bob", device="phone")
    twin.hear(played.children["alice"])
    twin.attend(played.parents["alice"])
    twin.hear(played.children["alice"])
    twin.join()
    twin.write(
        FeedEnd(bob.identity.key, bob.device.key, {bob.control.key: 2, played.data("bob").key: 4}), [bob.identity]
    )
    played.children["alice"].hear(twin)
    played.children["alice"].machine.authority.settle()
    assert played.children["alice"].machine.authority.end(played.data("bob").key) == 4


# -- hostile beginnings


def test_a_strangers_child_gives_the_stranger_nothing() -> None:
    club = Rehearsal("club")
    alice = club.founder("alice")
    trap = Rehearsal("trap", club)
    mallory = trap.founder("mallory", alice)
    mallory.admit(pair_of("puppet").key, Role.OWNER)
    mallory.open_data(pair_of("mallory's data"))
    assert roles(mallory, "mallory") == set()
    assert roles(mallory, "puppet") == set()
    assert roles(mallory, "alice") == {Role.OWNER}
    assert mallory.machine.judge_data(pair_of("mallory's data").key, 0, dict(mallory.machine.timeframe())) != ""
    assert {void.stamp.seq for void in mallory.state.voids} == {0, 1, 2}


def test_a_reader_of_the_parent_founds_nothing() -> None:
    played = family(("alice", "dave"))
    own = Rehearsal("dave's own", played.club)
    dave = own.founder("dave", played.parents["dave"])
    assert [void.reason for void in dave.state.voids] == ["its founder may not write in the parent party"]


def test_a_child_of_a_parent_that_begins_elsewhere_has_no_members() -> None:
    """Mallory's child names the club, but a feed of Mallory's own as the one that begins it."""
    club = Rehearsal("club")
    alice = club.founder("alice")
    false = Rehearsal("club")
    false.genesis_feed = pair_of("mallory laptop control").key
    mallory = false.actor("mallory")
    mallory.join(seen=[])
    trap = Rehearsal("trap", false)
    founder = trap.founder("mallory", mallory)
    assert founder.machine.parent is not None
    founder.machine.parent.add(alice.written)
    founder.machine.hear_parent()
    assert founder.state.members == ()


def test_a_child_of_a_child_has_no_members() -> None:
    """Who could be in the middle would decide over those below: a parent has no parent itself."""
    played = family(("alice", "bob"))
    below = Rehearsal("a game in the game", played.game)
    alice = below.founder("alice", played.children["alice"])
    assert alice.machine.parent is not None
    assert alice.machine.parent.parent is None
    assert alice.state.members == ()


def test_an_entry_about_the_parent_that_lies_ends_the_feed() -> None:
    played = family(("alice", "bob"))
    bob, alice = played.children["bob"], played.parents["alice"]
    alice.admit(pair_of("eve").key, Role.READER)
    block = alice.written[-1]
    played.children["alice"].attend(alice)
    seq = len(bob.written)
    lie = Entry(block.feed, block.seq, block.lamport + 5, block.hash)
    bob.write(MemberAdmission(pair_of("puppet").key, frozenset({Role.READER})), seen=[lie])
    played.children["alice"].hear(bob)
    reasons = [void.reason for void in played.children["alice"].state.voids]
    assert reasons == [f"block {seq}: its entry for feed {block.feed.hex()[:8]} tells a wrong lamport"]


# -- the law


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("admit", "narrow", "demote", "echo", "leave", "guest", "tell", "listen", "back-date")),
        st.sampled_from(("alice", "bob", "carol")),
        st.sampled_from(("alice", "bob", "carol")),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=8,
)


def _play(steps: list[tuple[str, str, str, int, bool]]) -> Family:
    played = family()
    for what, who, whom, number, below in steps:
        actor = played.children[who] if below else played.parents[who]
        other = played.children[whom] if below else played.parents[whom]
        if what == "admit":
            actor.admit(other, Role(1 + number % 3))
        elif what == "narrow":
            actor.narrow(other, cuts=dict.fromkeys(played.game.blocks(), number))
        elif what == "demote":
            actor.narrow(other, Role.READER)
        elif what == "leave":
            actor.narrow(actor, signers=[actor.identity])
        elif what == "echo":
            echo(played, who, {other.control.key: number, played.data(whom).key: number}, whom)
        elif what == "guest":
            actor.admit(pair_of(f"guest {number}").key, Role.OWNER)
        elif what == "listen":
            played.children[who].attend(played.parents[whom])
        elif what == "back-date":
            actor.narrow(other, seen=[])
        else:
            played.tell()
    return played


@settings(max_examples=60, deadline=None)
@given(_STEPS, st.randoms(use_true_random=False))
def test_law_the_childs_state_is_the_same_in_every_order_of_arrival(
    steps: list[tuple[str, str, str, int, bool]], chance: object
) -> None:
    played = _play(steps)
    order = [feed for feed, blocks in played.game.blocks().items() for _ in blocks]
    first = played.game.machine(order)
    for _ in range(3):
        chance.shuffle(order)  # type: ignore[attr-defined]
        other = played.game.machine(order)
        assert other.state() == first.state()
        for name in played.children:
            feed = played.data(name).key
            for seq in (0, 1, 3, 10):
                seen = dict(first.timeframe())
                assert other.judge_data(feed, seq, seen) == first.judge_data(feed, seq, seen)
                assert other.judge_data(feed, seq, {}) == first.judge_data(feed, seq, {})


@settings(max_examples=60, deadline=None)
@given(_STEPS)
def test_law_nobody_without_a_role_in_either_writes_past_a_cut(steps: list[tuple[str, str, str, int, bool]]) -> None:
    """Whoever everybody knows to be revoked has an end in the child, whatever they say that they have seen."""
    played = _play([step for step in steps if step[0] != "back-date"])
    played.tell()
    machine = played.children["alice"].machine
    members = {member.subject for member in machine.state().members}
    for name, actor in played.children.items():
        if actor.identity.key not in members:
            assert machine.authority.end(played.data(name).key) < 1 << 62, name
            assert machine.judge_data(played.data(name).key, 1 << 60, dict(actor.machine.timeframe())) != ""


def test_positions_of_the_parent_are_no_grants_of_the_child() -> None:
    """A narrowing in the club that names a position in the game takes nothing there."""
    played = family()
    guest = played.children["alice"].admit(pair_of("guest").key, Role.EDITOR)
    played.parents["alice"].write(Narrowing((Position(guest.feed, guest.seq),), frozenset(), {}))
    played.tell()
    assert roles(played.children["bob"], "guest") == {Role.EDITOR}
