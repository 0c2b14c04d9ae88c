"""`Relations`: the items that one item names. The contents of a view are found by them."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import InvalidMutation
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.item_state import ItemState
from antiphon.model.message import read_change, read_genesis
from antiphon.model.value import Reference

_NO_MODELS = ModelFactory()  # relations are found without the code of any model
_SCHEMA = "schema"  # metadata: a reference to the item that holds the schema


@dataclass(frozen=True, slots=True)
class Relations:
    """The items that one item names, by each kind of relation that matters to a view."""

    parents: frozenset[bytes] = frozenset()  # of every claim, because a late claim can make an old one effective
    embeds: frozenset[bytes] = frozenset()
    forks: frozenset[bytes] = frozenset()  # the items that it was forked into
    link: tuple[bytes, bytes] | None = None
    schema: bytes = b""

    def joined(self, other: Relations) -> Relations:
        """Return the union of both."""
        return Relations(
            self.parents | other.parents,
            self.embeds | other.embeds,
            self.forks | other.forks,
            self.link or other.link,
            other.schema or self.schema,
        )


def relations_of(item: ItemState) -> Relations:
    """Return the relations of an item."""
    schema = item.metadata.get(_SCHEMA) if item.meta is not None else None
    return Relations(
        frozenset(parent for _, parent in item.parents if parent),
        frozenset(item.embedded),
        frozenset(fork for _, fork in item.forks),
        item.link,
        schema.item if isinstance(schema, Reference) and not schema.party else b"",
    )


def relations_in_snapshot(data: bytes) -> Relations:
    """Return the relations of an item from its canonical snapshot."""
    return relations_of(item_codec.restore(data, _NO_MODELS))


def relations_in_message(kind: int, message: bytes) -> Relations | None:
    """Return the relations that a genesis or change adds if it counts; None if it adds none."""
    try:
        if kind == Kind.GENESIS:
            genesis = read_genesis(message)
            return Relations(frozenset({genesis.parent} - {b""}), link=genesis.link)
        change = read_change(message)
    except InvalidMutation:
        return None
    if change.parent:
        return Relations(frozenset({change.parent}))
    return Relations(forks=frozenset({change.forked_to})) if change.forked_to else None
