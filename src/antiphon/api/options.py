"""Keyword arguments that several methods of `Party` share."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, TypedDict

from antiphon.query.filters import Fact, Filter, Prop
from antiphon.query.query import Deleted, OrderBy

if TYPE_CHECKING:
    from antiphon.api.items.handle import Handle

#: One sort key of a query: "title", "-priority", Fact.NAME, prop("maker", "land").
By = str | Fact | Prop | OrderBy


class ViewOptions(TypedDict, total=False):
    """Options of `Party.create_view`."""

    parent: Handle | None
    type: str


class ItemOptions(ViewOptions, total=False):
    """Options of the methods that create items."""

    name: str


class QueryOptions(TypedDict, total=False):
    """The arguments of `Party.query` and `Party.subscribe`, without `type`."""

    where: Filter | None
    match: str | None  # words
    order: By | list[By] | tuple[By, ...]
    limit: int | None
    deleted: Deleted


class QueryArguments(QueryOptions, total=False):
    """All arguments of `Party.query` and `Party.subscribe`."""

    type: str | builtins.type | None  # the name of a type, or a class that has a schema
