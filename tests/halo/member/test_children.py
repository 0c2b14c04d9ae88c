"""Child parties: members of the parent are members of the child, and what the parent takes away is gone there, too."""

from __future__ import annotations

from tests.halo.member.family import Family, echo, ends, family, roles

from antiphon.halo.credentials.claims import FeedEnd, MemberAdmission, Role
from antiphon.testing.parties import pair_of

# -- what is inherited


def test_members_of_the_parent_have_their_roles_in_the_child_without_any_admission_there() -> None:
    played = family(("alice", "bob", "carol", "dave"))
    for actor in played.children.values():
        found = {name: roles(actor, name) for name in ("alice", "bob", "carol", "dave")}
        assert found == {"alice": {Role.OWNER}, "bob": {Role.EDITOR}, "carol": {Role.OWNER}, "dave": {Role.READER}}
        assert not any(isinstance(act.claim, MemberAdmission) for act in actor.machine.acts())
        assert actor.state == played.children["alice"].state
    assert played.verdict("alice", "bob", 0) == ""
    assert played.verdict("alice", "dave", 0) == "its writer is not an owner or editor [rights.role]"


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
    assert played.children["bob"].voids == ()


def test_a_message_counts_by_what_it_had_seen_of_the_parent() -> None:
    """Dave is made an editor: what he wrote before he knew of that was written by a reader."""
    played = family(("alice", "dave"))
    before = dict(played.children["dave"].machine.timeframe())
    played.parents["alice"].admit(played.parents["dave"], Role.EDITOR)
    played.tell()
    assert played.verdict("alice", "dave", 0, before) == "its writer is not an owner or editor [rights.role]"
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


def test_an_owners_echo_says_in_the_child_where_the_feeds_of_a_revoked_member_end() -> None:
    played, before = revoked()
    bob = played.children["bob"]
    echo(played, "alice", {bob.control.key: 2, played.data("bob").key: 7})
    assert ends(played) == 7
    assert played.verdict("carol", "bob", 6, before) == ""
    assert played.verdict("carol", "bob", 7, before) == "it stands past the cut of its feed [rights.past-cut]"
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
    lengths: dict[bytes, int] = {played.children["bob"].control.key: 2, played.data("bob").key: 2}
    echo(played, "alice", lengths)  # what he opened stays
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
