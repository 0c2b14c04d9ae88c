"""`Delta`: a change of the result of a subscription, with handles of the items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from antiphon.api.query.results import Item, Results
from antiphon.query.delta import Delta as IdDelta
from antiphon.query.evaluate import Result
from antiphon.query.query import Query

if TYPE_CHECKING:
    from antiphon.api.party import Party


@dataclass(frozen=True, slots=True)
class Delta(Generic[Item]):
    """Items that entered the result of a query, changed in it, and left it.

    The first delta of a subscription has the whole result as `added`. A query with an aggregate has no items: its delta
    has the new `aggregate`.
    """

    added: Results[Item]
    changed: Results[Item]
    ids: IdDelta  # the same delta with ids, and with the current positions of the items in the result

    @property
    def removed(self) -> frozenset[bytes]:
        """Ids of items that left the result; the items may be deleted."""
        return self.ids.removed

    @property
    def values(self) -> Mapping[bytes, Any]:
        """Values of the items that entered or changed, by id, at the moment of this delta, if they were asked for.

        A handle reads the present value, which may be later: another thread may have written since.
        """
        return self.ids.values

    @property
    def aggregate(self) -> Result | None:
        """The new aggregate of a query that has one."""
        return self.ids.aggregate


def delta_of(party: Party, query: Query, record: type | None) -> Callable[[IdDelta], Delta[Any]]:
    """Return a function that replaces the ids in a delta with handles."""

    def made(delta: IdDelta) -> Delta[Any]:
        added, changed = (Results(party, query, ids, record) for ids in (delta.added, delta.changed))
        return Delta(added, changed, delta)

    return made
