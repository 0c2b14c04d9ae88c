"""The arguments that several methods take alike."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, TypedDict

from antiphon.query.filters import Fact, Filter, Prop
from antiphon.query.query import Deleted, OrderBy

if TYPE_CHECKING:
    from antiphon.api.items.handle import Handle

By = str | Fact | Prop | OrderBy  # "title", "-priority", Fact.NAME, prop("maker", "land")


class Place(TypedDict, total=False):
    """What is said of a new item that is named already."""

    parent: Handle | None
    type: str


class Options(Place, total=False):
    """What is said of a new item, besides what it holds."""

    name: str


class Narrowing(TypedDict, total=False):
    """The arguments of `Party.query` and `Party.subscribe`, but for the type."""

    where: Filter | None
    match: str | None  # words
    order: By | list[By] | tuple[By, ...]
    limit: int | None
    deleted: Deleted


class Parts(Narrowing, total=False):
    """All arguments of `Party.query` and `Party.subscribe`."""

    type: str | builtins.type | None  # the name of a type, or a class that has a schema
