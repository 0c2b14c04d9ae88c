"""The items of a partition whose mutations are plain: those are folded on columns, and the rest of each by `fold`.

What is no mutation (the genesis, who may write, names, places, deletions) hangs on no mutation, and no mutation on
that, but for whether it may count. So an item is folded in two parts, and its state is put in where it is wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.fold import Authors, fold
from antiphon.model.item_state import ItemState
from antiphon.model.object.model import ObjectModel
from antiphon.pipeline.columnar.register_fold import Registers
from antiphon.pipeline.fold.item_fold import ROWS_MAX, SIZE_MAX, Folding
from antiphon.pipeline.order.shuffle_chunk import I64
from antiphon.pipeline.order.total_order import OrderedMessages

SHOWN_TIMES = 4  # a state is in a row of a table as bytes, as JSON, and in facts


class Framed(NamedTuple):
    """An item, all but the state of its model, which the registers have."""

    nth: int
    party: bytes
    item: ItemState
    messages: int  # that count
    verdicts: Mapping[Stamp, str]


class Party(NamedTuple):
    """What frames of a party's items need to know."""

    key: bytes
    feeds: tuple[bytes, ...]
    authors: Authors


def parties_of(folding: Folding, ordered: OrderedMessages) -> list[Party]:
    """By their numbers among the plans."""
    known = zip(ordered.plans, ordered.feeds, strict=True)
    return [Party(plan.party, feeds, folding.authors(plan.party)) for plan, feeds in known]


def fold_frames(folding: Folding, ordered: OrderedMessages, registers: Registers, items: I64) -> Iterator[Framed | int]:
    """Items from all their messages; the number of one that has to be folded whole."""
    parties = parties_of(folding, ordered)
    for nth, party in zip(items.tolist(), ordered.party[ordered.starts[items]].tolist(), strict=True):
        yield fold_frame(folding, registers, parties[party], nth) or nth


def fold_frame(
    folding: Folding, registers: Registers, party: Party, nth: int, base: ItemState | None = None, before: int = 0
) -> Framed | None:
    """One plain item; or what is new of it, onto a base in which so many messages count.

    None: it has to be folded whole.
    """
    others = registers.others(nth)
    made = fold(party.key, registers.item(nth), base, others, folding.models, party.authors, whole=base is None)
    item = made.item
    if item is None or made.late or type(item.model) is not ObjectModel:
        return None
    if registers.begins(nth, party.feeds) < item.genesis:
        return None
    if item.access is not None and not registers.may_all(nth, item.access, party.feeds, party.authors):
        return None
    count = before + registers.count(nth) - sum(map(bool, made.verdicts.values()))
    return Framed(nth, party.key, item, count, made.verdicts)


def gathered(framed: Iterable[Framed | int], registers: Registers) -> Iterator[list[Framed]]:
    """As many at a time as make a batch of rows; items that have to be folded whole are plain no more."""
    some: list[Framed] = []
    size = 0
    for one in framed:
        if isinstance(one, int):
            registers.plain[one] = False
            continue
        some.append(one)
        size += SHOWN_TIMES * len(registers.state(one.nth))
        if len(some) >= ROWS_MAX or size >= SIZE_MAX:
            yield some
            some, size = [], 0
    if some:
        yield some
