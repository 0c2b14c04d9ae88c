"""Which devices may speak about which parties."""

from __future__ import annotations

from antiphon.mesh.node.directory import PartyDirectory
from antiphon.mesh.node.ports import PartyView

ADA, BOB = b"a" * 32, b"b" * 32
ONE, TWO = b"1" * 32, b"2" * 32


def test_a_view_replaces_the_one_before() -> None:
    directory = PartyDirectory()
    directory.update(PartyView(ONE, frozenset({ADA, BOB})))
    directory.update(PartyView(TWO, frozenset({BOB})))
    assert set(directory.admitted(BOB)) == {ONE, TWO}
    directory.update(PartyView(ONE, frozenset({ADA})))
    assert set(directory.admitted(BOB)) == {TWO}
    directory.update(PartyView(TWO, frozenset()))
    assert set(directory.admitted(BOB)) == set()
    assert not directory.admits(BOB)
    assert set(directory.parties) == {ONE}


def test_a_newcomer_speaks_to_everybody_until_it_is_a_member() -> None:
    directory = PartyDirectory()
    directory.update(PartyView(ONE, frozenset(), seeks=True))
    assert set(directory.admitted(ADA)) == {ONE}
    assert not directory.admits(ADA)
    directory.update(PartyView(ONE, frozenset({BOB})))
    assert set(directory.admitted(ADA)) == set()
