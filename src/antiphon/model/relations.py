"""`Ties`: what an item says of others. By these it is found what belongs to a view."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import InvalidMutation
from antiphon.feed.header import Kind
from antiphon.model import item_codec
from antiphon.model.factory import ModelFactory
from antiphon.model.item_state import ItemState
from antiphon.model.message import read_change, read_genesis
from antiphon.model.value import Reference

_NO_MODELS = ModelFactory()  # what belongs together is told without the code of any model
_SCHEMA = "schema"  # metadata: a reference to the item that holds the schema


@dataclass(frozen=True, slots=True)
class Ties:
    """The items that one item names, in each way that matters to a view."""

    parents: frozenset[bytes] = frozenset()  # every claim that was ever made, for a late one may make an old one count
    embeds: frozenset[bytes] = frozenset()
    forks: frozenset[bytes] = frozenset()  # what it was forked into
    link: tuple[bytes, bytes] | None = None
    schema: bytes = b""

    def joined(self, other: Ties) -> Ties:
        """What both say."""
        return Ties(
            self.parents | other.parents,
            self.embeds | other.embeds,
            self.forks | other.forks,
            self.link or other.link,
            other.schema or self.schema,
        )


def ties_of(item: ItemState) -> Ties:
    """What an item says now."""
    schema = item.metadata.get(_SCHEMA) if item.meta is not None else None
    return Ties(
        frozenset(parent for _, parent in item.parents if parent),
        frozenset(item.embedded),
        frozenset(fork for _, fork in item.forks),
        item.link,
        schema.item if isinstance(schema, Reference) and not schema.party else b"",
    )


def ties_in(data: bytes) -> Ties:
    """What an item says in its canonical snapshot."""
    return ties_of(item_codec.restore(data, _NO_MODELS))


def ties_said(kind: int, message: bytes) -> Ties | None:
    """What a genesis or a change adds, whether it counts or not; None where that is nothing."""
    try:
        if kind == Kind.GENESIS:
            genesis = read_genesis(message)
            return Ties(frozenset({genesis.parent} - {b""}), link=genesis.link)
        change = read_change(message)
    except InvalidMutation:
        return None
    if change.parent:
        return Ties(frozenset({change.parent}))
    return Ties(forks=frozenset({change.forked_to})) if change.forked_to else None
