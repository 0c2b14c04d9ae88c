"""Pictures show the events of a trace, and their size is bounded for any trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from antiphon.sim.picture.draw import draw
from antiphon.sim.picture.frame import Frame, time_breaks
from antiphon.sim.picture.lanes import Absence, groups_in, lanes_of, partitions_of
from antiphon.sim.trace import Event, Kind, Trace

CID = "bafyreidlqzh2"
SVG = "{http://www.w3.org/2000/svg}"


def trace_of(*events: Event) -> Trace:
    trace = Trace()
    for event in events:
        trace.add(event)
    return trace


def party() -> Trace:
    """Three peers, one of whom sleeps through an epoch, another lies."""
    return trace_of(
        Event(0, Kind.FOUND, "ada"),
        Event(100, Kind.JOIN, "bob"),
        Event(120, Kind.JOIN, "eve"),
        Event(1_000, Kind.WRITE, "ada", count=3),
        Event(1_200, Kind.TAKE, "bob", "ada", count=3),
        Event(1_500, Kind.SLEEP, "bob"),
        Event(2_000, Kind.PART, text="ada | bob eve"),
        Event(2_500, Kind.LIE, "eve", text="two histories"),
        Event(3_000, Kind.HEAL),
        Event(3_500, Kind.DECLARE, "ada", number=1),
        Event(3_600, Kind.ATTEST, "eve", number=1),
        Event(3_700, Kind.STAND, "ada", number=1, text=CID),
        Event(3_800, Kind.STAND, "eve", number=1, text=CID),
        Event(8_000, Kind.WAKE, "bob"),
        Event(8_100, Kind.STAND, "bob", number=1, text=CID),
        Event(8_400, Kind.CRASH, "ada"),
        Event(8_600, Kind.RESTART, "ada"),
        Event(9_000, Kind.REVOKE, "ada", "eve"),
        Event(10_000, Kind.QUIET),
        Event(10_000, Kind.CHECK, other="equal states"),
        Event(10_000, Kind.CHECK, other="nothing lost", text="bob lacks a message"),
    )


def crowd(peers: int, events: int) -> Iterator[Event]:
    """Everything, all the time, everywhere."""
    kinds = [kind for kind in Kind if kind is not Kind.CHECK]
    for n in range(events):
        kind, peer = kinds[n % len(kinds)], f"p{(n * 7 + n // len(kinds)) % peers}"
        text = f"p{n % peers} | p{n * 3 % peers}" if kind is Kind.PART else f"{CID}{n // 400}"
        yield Event(n * 37, kind, peer, f"p{n * 5 % peers}", 1 + n % 9, 1 + n // 400, text)


def shapes(svg: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    return [element for element in root.iter() if element.tag not in (f"{SVG}title", f"{SVG}style", f"{SVG}svg")]


def texts(svg: str) -> list[str]:
    """What can be read without pointing at anything."""
    return ["".join([element.text or "", *(child.tail or "" for child in element)]) for element in shapes(svg)]


def tips(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]


# -- what is seen


def test_a_picture_names_its_peers_epochs_and_laws() -> None:
    svg = draw(party(), title="A small party")
    seen = texts(svg)
    assert {"ada", "bob", "eve", "A small party", "equal states", "nothing lost: bob lacks a message"} <= set(seen)
    assert "1 · dlqzh2" in seen  # the letters in which CIDs differ
    assert any(
        text.startswith("3 peers · 3 messages · 1 epoch · 1 partition · 1 sleep · 1 crash · 1 lie") for text in seen
    )


def test_what_one_points_at_tells_more() -> None:
    found = tips(draw(party()))
    for words in (
        "1 s: ada writes 3",
        "1.2 s: bob takes 3 from ada",
        "2.5 s: eve lies: two histories",
        "3.5 s: ada declares an epoch: epoch 1",
        "epoch 1: attested by eve",
        f"epoch 1: 3 of 3 peers reach {CID}",
        "parted from 2 s to 3 s: bob eve",
        "9 s: eve is revoked",
        "bob lacks a message",
    ):
        assert words in found


def test_the_legend_has_what_is_in_the_picture_and_nothing_else() -> None:
    whole, plain = (
        texts(draw(party())),
        texts(draw(trace_of(Event(0, Kind.FOUND, "ada"), Event(9, Kind.WRITE, "ada", count=1)))),
    )
    assert {"lies", "sleeps", "attests it", "cannot hear other colours"} <= set(whole)
    assert {"founds the party", "writes messages"} <= set(plain)
    assert not {"lies", "sleeps", "attests it", "cannot hear other colours", "takes them from another"} & set(plain)


def test_a_law_that_is_broken_comes_first_and_in_the_colour_of_warning() -> None:
    svg = draw(party())
    assert svg.index("nothing lost: bob") < svg.index(">equal states<")
    (wrong,) = [
        shape for shape in shapes(svg) if "nothing lost" in "".join(shape.itertext()) and shape.tag == f"{SVG}text"
    ]
    assert "wrong" in wrong.get("class", "")


def test_two_snapshots_of_one_number_are_two_lines_in_the_colour_of_warning() -> None:
    def classes(other: str) -> set[str]:
        stands = (Event(9, Kind.STAND, name, number=1, text=cid) for name, cid in (("ada", CID), ("bob", other)))
        labels = [shape for shape in shapes(draw(trace_of(*stands))) if "".join(shape.itertext()).endswith("dlqzh2")]
        return set(labels[0].get("class", "").split())

    assert "epoch" in classes(CID)
    assert "wrong" in classes("bafyreixxxxxx")


def test_who_slept_does_not_bend_the_line_of_an_epoch() -> None:
    """It goes straight through the sleeper's lane, from where dots lead to the place where the sleeper came to it."""
    svg = draw(party())
    lines = [
        shape for shape in shapes(svg) if shape.get("class") == "line epoch" and " reach " in "".join(shape.itertext())
    ]
    dotted = [shape for shape in shapes(svg) if shape.get("class") == "line epoch dots"]
    assert (len(lines), len(dotted)) == (1, 1)
    frame = Frame(party(), 1200)
    places = [float(x) for x in re.findall(r"[ML]([\d.]+) ", lines[0].get("d", ""))]
    assert max(places) < frame.x(4_000)
    ends = [float(x) for x in re.findall(r"[ML]([\d.]+) ", dotted[0].get("d", ""))]
    assert ends[-1] == pytest.approx(frame.x(8_100), abs=0.1)


def test_more_messages_are_a_larger_dot() -> None:
    svg = draw(trace_of(Event(0, Kind.WRITE, "ada", count=1), Event(900, Kind.WRITE, "ada", count=100)))
    one, hundred = [float(shape.get("r", "0")) for shape in shapes(svg) if "dot" in shape.get("class", "")]
    assert hundred > 4 * one


# -- lanes


def test_absences_end_with_what_ends_them_or_with_the_run() -> None:
    lanes = lanes_of(party(), 10_000)
    assert lanes["bob"].absences == [Absence(Kind.SLEEP, 1_500, 8_000)]
    assert lanes["ada"].present() == [(0, 8_400), (8_600, 10_000)]
    assert lanes["eve"].revoked_ms == 9_000
    assert lanes["eve"].lies
    open_end = lanes_of(trace_of(Event(5, Kind.FULL, "ada"), Event(9, Kind.QUIET)), 9)
    assert open_end["ada"].absences == [Absence(Kind.FULL, 5, 9)]


def test_a_partition_lasts_until_it_heals_or_is_another() -> None:
    trace = trace_of(
        Event(1, Kind.PART, text="a | b c"),
        Event(5, Kind.PART, text="a b | c"),
        Event(7, Kind.HEAL),
        Event(8, Kind.HEAL),
    )
    assert [partition[:2] for partition in partitions_of(trace, 9)] == [(1, 5), (5, 7)]
    assert groups_in("a,b|c d|") == (("a", "b"), ("c", "d"))


def test_those_whom_a_partition_kept_together_stand_side_by_side() -> None:
    joins = [Event(n, Kind.JOIN, name) for n, name in enumerate("abcd")]
    frame = Frame(trace_of(*joins, Event(10, Kind.PART, text="a c | b d"), Event(90, Kind.HEAL)), 1200)
    assert [frame.names[row] for row in range(4)] == ["a", "c", "b", "d"]


def test_lanes_are_in_the_order_of_names_after_the_founder() -> None:
    joins = [Event(n, Kind.JOIN, name) for n, name in enumerate(("p10", "p2", "ann", "p1"))]
    frame = Frame(trace_of(Event(0, Kind.FOUND, "zoe"), *joins), 1200)
    assert list(frame.lanes) == ["zoe", "ann", "p1", "p2", "p10"]


def test_long_times_without_events_are_folded() -> None:
    busy = [Event(n * 50, Kind.WRITE, "ada", count=1) for n in range(100)]
    trace = trace_of(*busy, Event(100_000, Kind.QUIET))
    frame = Frame(trace, 1200)
    assert [tuple(fold) for fold in frame.breaks] == [(4_950, 100_000)]
    assert frame.x(4_950) > frame.right - 60
    assert frame.x(100_000) == pytest.approx(frame.right - 6)
    assert all(at <= 4_950 or at == 100_000 for at in frame.ticks())
    assert "nothing happens for 95.05 s" in tips(draw(trace))
    assert time_breaks([n * 1_000 for n in range(50)]) == []  # all gaps are alike
    assert time_breaks([0, 1, 2, 1_000]) == []  # so few that each is a part of the picture


@pytest.mark.parametrize("end_ms", [0, 1, 7, 999, 12_345, 3_600_000, 10**9])
def test_the_axis_has_a_few_round_times(end_ms: int) -> None:
    frame = Frame(trace_of(Event(0, Kind.FOUND, "ada"), Event(end_ms, Kind.QUIET)), 1200)
    ticks = frame.ticks()
    assert 1 <= len(ticks) <= 11
    assert ticks[0] == 0
    assert all(0 <= at <= end_ms for at in ticks)
    if len(ticks) > 1:
        assert str(ticks[1]).rstrip("0") in ("1", "2", "5")


# -- what every picture keeps to


@pytest.mark.parametrize(("peers", "events"), [(3, 2_000), (20, 20_000), (150, 30_000)])
def test_a_picture_has_a_size_whatever_the_trace(peers: int, events: int) -> None:
    svg = draw(trace_of(*crowd(peers, events)))
    assert len(shapes(svg)) <= 630
    assert len(svg) < 250_000
    assert "and 86 more" in texts(svg) or peers < 150


def test_equal_traces_give_equal_bytes() -> None:
    assert draw(trace_of(*crowd(9, 3_000))) == draw(trace_of(*crowd(9, 3_000)))
    assert draw(party()) != draw(trace_of(*list(party())[:-1]))


def test_whatever_a_trace_says_is_text() -> None:
    evil = "<script>\"&'\x00\x1b\ud800</script>" + "x" * 5_000
    svg = draw(
        trace_of(
            Event(0, Kind.FOUND, evil),
            Event(1, Kind.LIE, evil, evil, 1, 1, evil),
            Event(2, Kind.STAND, evil, number=1, text=evil),
            Event(3, Kind.PART, text=evil),
            Event(9, Kind.CHECK, other=evil, text=evil),
        ),
        title=evil,
    )
    svg.encode()
    assert not list(ElementTree.fromstring(svg).iter(f"{SVG}script"))
    assert len(svg) < 20_000


def test_nothing_comes_from_elsewhere_and_there_is_day_and_night() -> None:
    svg = draw(party())
    assert "http" not in svg.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|<image|<use|url\(|@import|@font-face|href", svg)
    assert "@media (prefers-color-scheme:dark)" in svg


@pytest.mark.parametrize("events", [(), (Event(0, Kind.QUIET),), (Event(5, Kind.FOUND, "ada"),)], ids=len)
def test_a_trace_with_next_to_nothing_has_a_picture(events: tuple[Event, ...]) -> None:
    assert shapes(draw(trace_of(*events)))


def test_every_class_that_is_used_has_a_colour() -> None:
    svg = draw(trace_of(*party(), *crowd(5, 500)))
    style = svg[svg.index("<style>") : svg.index("</style>")]
    used = {name for shape in shapes(svg) for name in shape.get("class", "").split()}
    assert {name for name in used if f".{name}" not in style} <= {"hollow"}
