"""Every message of a party in plain words, in the total order.

The other examples print it. Messages are decoded with the codecs of the models, so it shows what was signed and sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from examples.composed import Composed
from rich import box
from rich.markup import escape
from rich.table import Table

from antiphon import Party, Reference
from antiphon.core import PublicKey, Stamp
from antiphon.core.ids import SYSTEM_ITEM
from antiphon.core.v1 import value_pb2
from antiphon.feed import Block, Kind
from antiphon.halo.acts.act import read_act
from antiphon.halo.credentials.claims import Claim, FeedAdmission, MemberAdmission, PartyGenesis
from antiphon.model import ArrayModel, MessengerModel, ObjectModel, TextModel
from antiphon.model.array import codec as arraycodec
from antiphon.model.message import content, read_change, read_genesis
from antiphon.model.messenger import codec as messengercodec
from antiphon.model.object import mutation_codec
from antiphon.model.object.register import Counter, Mark
from antiphon.model.object.state import DELETE, Increment
from antiphon.model.text import codec as textcodec
from antiphon.model.value import read_value

Names = Mapping[bytes, str]  # names of items and identities, for people


class Line(NamedTuple):
    """One message. The messages of a batch have one lamport."""

    lamport: int
    feed: str
    seq: int
    kind: str
    item: str
    says: str


def session(party: Party, names: Names, *composed: Composed) -> list[Line]:
    """Return all messages of a party on this device, by lamport, feed and seq. Pass the composed models."""
    feeds = party.store.manager.feeds
    blocks = [block for record in feeds.feeds(party.key) for block in feeds.read(record.feed)]
    return list(_Reader(party, names, composed).lines(sorted(blocks, key=lambda block: block.stamp)))


def table(lines: list[Line]) -> Table:
    found = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in Line._fields:
        found.add_column(name, justify="right" if name in ("lamport", "seq") else "left", overflow="fold")
    for before, line in zip([None, *lines], lines, strict=False):
        together = before is not None and before[:2] == line[:2]
        found.add_row(
            "" if together else str(line.lamport),
            "" if together else line.feed,
            *(escape(str(part)) for part in line[2:]),
        )
    return found


def words(value: Any, names: Names) -> str:
    """Return a value as text for people; a reference is an arrow."""
    if isinstance(value, Reference):
        return f"→ {names.get(value.item) or value.item.hex()[-4:]}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(words(part, names) for part in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {words(part, names)}" for key, part in value.items()) + "}"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


class _Reader:
    """Decodes blocks in order, and remembers the elements and posts that later ones name."""

    def __init__(self, party: Party, names: Names, composed: Iterable[Composed]) -> None:
        self._party = party
        self._composed = {model.name: model for model in composed}
        self._names = names
        self._models: dict[bytes, str] = {bytes(SYSTEM_ITEM): ObjectModel.name}
        self._elements: dict[tuple[bytes, Stamp, int], Any] = {}  # elements of arrays
        self._posts: dict[Stamp, str] = {}

    def lines(self, blocks: list[Block]) -> Iterator[Line]:
        for block in blocks:
            message = block.message
            says = "(the body is missing)" if message is None else "; ".join(self._says(block, message))
            item = "the party" if block.item == SYSTEM_ITEM else f"{self._name(block.item)} {block.item.hex()[-4:]}"
            yield Line(block.lamport, self._feed(block.feed), block.seq, block.kind.name.lower(), item, says)

    def _name(self, item: bytes) -> str:
        return self._names.get(item) or item.hex()[-4:]

    def _feed(self, feed: bytes) -> str:
        state = self._party.members.feed(feed)
        return PublicKey(feed).short if state is None else f"{self._name(state.identity)}, {state.kind.name.lower()}"

    def _words(self, value: Any) -> str:
        return words(value, self._names)

    def _says(self, block: Block, message: bytes) -> Iterator[str]:
        if block.kind is Kind.CREDENTIAL:
            yield self._credential(read_act(self._party.key, block, {}).claim)
        elif block.kind is Kind.GENESIS:
            genesis = read_genesis(message)
            self._models[block.item] = genesis.model
            under = f", under {self._name(genesis.parent)}" if genesis.parent else ""
            yield f"{genesis.model} {genesis.version}{under}" + (", a view" if genesis.view else "")
        elif block.kind is Kind.CHANGE:
            change = read_change(message)
            yield f"moved under {self._name(change.parent)}" if change.parent else "another change"
        elif block.kind is Kind.METADATA:
            yield from self._object(content(block.kind, message), block)
        else:
            yield from self._mutation(self._models.get(block.item, ""), content(block.kind, message), block)

    def _credential(self, claim: Claim | None) -> str:
        if isinstance(claim, PartyGenesis):
            return f"the party begins; {self._name(claim.identity)} is its first owner"
        if isinstance(claim, FeedAdmission):
            return f"{self._name(claim.identity)}'s {claim.kind.name.lower()} feed"
        if isinstance(claim, MemberAdmission):
            roles = " and ".join(sorted(role.name.lower() for role in claim.roles))
            return f"{self._name(claim.subject)} is admitted, as {roles}"
        return type(claim).__name__

    def _mutation(self, model: str, mutation: bytes, block: Block) -> Iterator[str]:
        readers = {
            ObjectModel.name: self._object,
            ArrayModel.name: self._array,
            TextModel.name: self._text,
            MessengerModel.name: self._messenger,
        }
        composed = self._composed.get(model)
        if model in readers:
            yield from readers[model](mutation, block)
        elif composed is not None:  # the mutations of its parts
            for part, data in zip(composed.parts, composed.read(mutation), strict=True):
                yield from self._mutation(part.name, data, block) if data else ()
        else:
            yield f"{len(mutation)} bytes for {model}"

    def _object(self, mutation: bytes, block: Block) -> Iterator[str]:
        for path, written, _ in mutation_codec.read_mutation(mutation, block.stamp):
            keys = " → ".join(self._key(key) for key in path if isinstance(key, str))
            if isinstance(path[-1], bytes):
                element = self._words(read_value(value_pb2.Value.FromString(path[-1])))
                yield f"{keys}: {'remove' if written is DELETE else 'add'} {element}"
            elif written is DELETE:
                yield f"{keys} deleted"
            elif isinstance(written, Increment):
                yield f"{keys} {written.by:+}"
            elif isinstance(written, Counter):
                yield f"{keys} = {written.total}, counted"
            elif not isinstance(written, Mark):  # the creation of a map or a set is not listed
                yield f"{keys} = {self._words(written)}"

    def _key(self, key: str) -> str:
        """Replace a key that is the id of an item, as in the kanban, by the item's name."""
        return next((name for item, name in self._names.items() if item.hex() == key), key)

    def _array(self, mutation: bytes, block: Block) -> Iterator[str]:
        for act in arraycodec.read_mutation(mutation, block.stamp):
            if isinstance(act, arraycodec.Insert):
                for number, value in enumerate(act.values, act.first):
                    self._elements[block.item, block.stamp, number] = value
                    yield f"insert {self._words(value)}"
            elif isinstance(act, arraycodec.Set):
                yield f"set {self._words(act.value)}"
            else:
                verb = "delete" if isinstance(act, arraycodec.Delete) else "move"
                for stamp, number in act.names:
                    yield f"{verb} {self._words(self._elements.get((block.item, stamp, number), '?'))}"

    def _text(self, mutation: bytes, block: Block) -> Iterator[str]:
        ops = textcodec.decode(mutation, block.stamp)
        for delete in ops.deletes:
            yield f"delete {delete.last - delete.first + 1} characters"
        for insert in ops.inserts:
            yield f"embed → {self._name(insert.item)}" if insert.item else f"insert {self._words(insert.text)}"
        for mark in ops.marks:
            yield f"mark {mark.name}"

    def _messenger(self, mutation: bytes, block: Block) -> Iterator[str]:
        act = messengercodec.read_act(mutation, block.stamp)
        if isinstance(act, messengercodec.Redact):
            yield f"redact {self._posts.get(act.target, '?')}"
            return
        body = self._words(act.body)
        if isinstance(act, messengercodec.Edit):
            yield f"edit {self._posts.get(act.target, '?')}: {body}"
            return
        self._posts[block.stamp] = body
        yield f"post {body}" if act.reply_to is None else f"reply to {self._posts.get(act.reply_to, '?')}: {body}"
