"""Folds flat objects in two parts: mutations in columns (`RegisterFold`), all other messages with `fold`.

Messages that are not mutations (genesis, access lists, names, moves, deletions) do not depend on mutations. Mutations
depend on them in one way: the access list decides whether a mutation counts. So an item is folded without its model
state, and the state bytes are added where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from antiphon.core.stamp import Stamp
from antiphon.model.fold import Authors, fold
from antiphon.model.item_state import ItemState
from antiphon.model.object.model import ObjectModel
from antiphon.pipeline.columnar.register_fold import RegisterFold
from antiphon.pipeline.fold.item_fold import ROWS_MAX, SIZE_MAX, ItemFold
from antiphon.pipeline.order.shuffle_chunk import I64
from antiphon.pipeline.order.total_order import OrderedMessages

STATE_COPIES = 4  # about how often a row of `items` contains the state: as bytes, as JSON, and in facts


class FlatItem(NamedTuple):
    """A folded item without its model state; the `RegisterFold` has that under the number `nth`."""

    nth: int
    party: bytes
    item: ItemState
    messages: int  # the number of messages that count
    verdicts: Mapping[Stamp, str]


class PartyLanes(NamedTuple):
    """Key, feeds by lane, and message authors of one party."""

    key: bytes
    feeds: tuple[bytes, ...]
    authors: Authors


def party_lanes(folding: ItemFold, ordered: OrderedMessages) -> list[PartyLanes]:
    """Return the context of each party, in the order of the plans."""
    known = zip(ordered.plans, ordered.feeds, strict=True)
    return [PartyLanes(plan.party, feeds, folding.authors(plan.party)) for plan, feeds in known]


def flat_items(
    folding: ItemFold, ordered: OrderedMessages, registers: RegisterFold, items: I64
) -> Iterator[FlatItem | int]:
    """Fold flat items from all their messages; yield the number of an item that needs `fold` for everything."""
    parties = party_lanes(folding, ordered)
    for nth, party in zip(items.tolist(), ordered.party[ordered.starts[items]].tolist(), strict=True):
        yield fold_flat_item(folding, registers, parties[party], nth) or nth


def fold_flat_item(
    folding: ItemFold,
    registers: RegisterFold,
    party: PartyLanes,
    nth: int,
    base: ItemState | None = None,
    before: int = 0,
) -> FlatItem | None:
    """Fold one flat item, or its new messages onto a `base` in which `before` messages count.

    Return None if the item needs `fold` for everything.
    """
    others = registers.other_messages(nth)
    made = fold(party.key, registers.item_id(nth), base, others, folding.models, party.authors, whole=base is None)
    item = made.item
    if item is None or made.late or type(item.model) is not ObjectModel:
        return None
    if registers.first_mutation(nth, party.feeds) < item.genesis:
        return None
    if item.access is not None and not registers.all_allowed(nth, item.access, party.feeds, party.authors):
        return None
    count = before + registers.message_count(nth) - sum(map(bool, made.verdicts.values()))
    return FlatItem(nth, party.key, item, count, made.verdicts)


def flat_batches(given: Iterable[FlatItem | int], registers: RegisterFold) -> Iterator[list[FlatItem]]:
    """Group flat items into batches of rows; items that need `fold` for everything are marked as not flat."""
    some: list[FlatItem] = []
    size = 0
    for one in given:
        if isinstance(one, int):
            registers.flat[one] = False
            continue
        some.append(one)
        size += STATE_COPIES * len(registers.state(one.nth))
        if len(some) >= ROWS_MAX or size >= SIZE_MAX:
            yield some
            some, size = [], 0
    if some:
        yield some
