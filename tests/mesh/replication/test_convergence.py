"""The law of replication: whatever the network loses, repeats and turns round, after quiet everybody holds the same."""

from __future__ import annotations

import random
import tempfile

from hypothesis import given, settings, strategies as st
from tests.mesh.replication.wire import Links, Weather, Wire
from tests.party.epochs.epoch_acts import note

from antiphon.testing.peers import Peers

NAMES = ("alice", "bob", "carol", "dave", "erin")


@st.composite
def nets(draw: st.DrawFn) -> Links:
    """A net of two to five peers in which everybody is reached: a tree, and some more links."""
    count = draw(st.integers(2, 5))
    links = [(NAMES[draw(st.integers(0, at - 1))], NAMES[at]) for at in range(1, count)]
    more = [(one, other) for at, one in enumerate(NAMES[:count]) for other in NAMES[at + 1 : count]]
    return links + draw(st.lists(st.sampled_from([one for one in more if one not in links] or links), max_size=3))


acts = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "write", "pass", "restart", "crash")),
        st.integers(0, 4),
        st.integers(0, 3_000),
    ),
    max_size=15,
)


@settings(max_examples=settings().max_examples // 4)
@given(nets(), acts, st.integers(0, 99), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(5, 2_000))
def test_after_quiet_all_peers_hold_the_same(
    links: Links, done: list[tuple[str, int, int]], seed: int, loss: float, twice: float, delay_ms: int
) -> None:
    links = sorted(set(links))
    names = sorted({name for link in links for name in link})
    with tempfile.TemporaryDirectory() as folder, Peers(folder) as peers:
        for name in names:
            peers.add(name)
        weather = Weather(random.Random(seed), loss, twice, (5, delay_ms))
        wire = Wire(peers, links, weather)
        for act, who, wait_ms in done:
            name = names[who % len(names)]
            if act == "write":
                note(wire.nodes[name].peer, f"{wire.now_ms}")
                wire.nodes[name].replica.refresh()
            elif act in ("restart", "crash"):
                wire.restart(name, crash=act == "crash")
            wire.run(wire.now_ms + wait_ms)
        wire.run(wire.now_ms + 3_600_000)
        first, *rest = peers.all
        for peer in rest:
            assert peer.lengths() == first.lengths()
            assert peer.snapshots() == first.snapshots()
        assert not any(node.replica.in_flight for node in wire.nodes.values())
        assert [wire.poll(name) for name in names] == [None] * len(names)
