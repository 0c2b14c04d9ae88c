"""`Facts`: everything that a query can read of one item. A query depends on nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from antiphon.core.stamp import Stamp
from antiphon.model.array.model import ArrayModel
from antiphon.model.item_state import ItemState
from antiphon.model.messenger.model import MessengerModel
from antiphon.model.object.model import ObjectModel
from antiphon.model.text.model import TextModel
from antiphon.model.value import Reference, Value
from antiphon.query.filters import Fact, Path
from antiphon.query.packed_json import pack
from antiphon.query.tokens import word_text

CREATED_MS_MAX = 1 << 47  # a later time can only be false, and counts as this one
_PLAIN = frozenset({type(None), bool, int, float, str, bytes, datetime})  # types of values that hold no others
T = TypeVar("T")
_LOG = logging.getLogger("antiphon")
_OUR_OWN = frozenset({ObjectModel, ArrayModel, TextModel, MessengerModel})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_by_bytes = attrgetter("item", "party")  # the same order as that of references, at a fifth of the cost


class Missing:
    """The type of `MISSING`: nothing is at a path. None would be a value."""

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


class _LazyFacts:
    """Parts of facts that are computed on first use, since most changes concern no query that reads them."""

    __slots__ = ("_find", "_read", "_words")
    _find: partial[tuple[Reference, ...]]
    _read: partial[Value]
    _words: str

    def __getattr__(self, name: str) -> Any:
        """Compute `references` or `value`; Python calls this only for attributes that are not set."""
        if name != "references" and name != "value":
            raise AttributeError(name)
        found = self._find() if name == "references" else self._read()
        object.__setattr__(self, name, found)
        return found

    def read_later(self, read: partial[Value]) -> None:
        """Compute the value on first use, with `read`."""
        object.__setattr__(self, "_read", read)
        object.__delattr__(self, "value")

    def refer_later(self, find: partial[tuple[Reference, ...]]) -> None:
        """Compute the references on first use, with `find`."""
        object.__setattr__(self, "_find", find)
        object.__delattr__(self, "references")


@dataclass(frozen=True, slots=True)
class Facts(_LazyFacts):
    """One item as queries see it."""

    id: bytes
    model: str
    version: int
    value: Value  # plain Python values; None if this peer lacks the code of the model
    type: str = ""
    name: str = ""
    deleted: bool = False
    created_ms: int = 0
    claims: tuple[tuple[Stamp, bytes], ...] = ()  # claims to a parent, by ascending stamp
    link: tuple[bytes, bytes] | None = None
    view_class: str = ""
    view_key: bytes = b""
    embeds: tuple[bytes, ...] = ()  # ascending
    references: tuple[Reference, ...] = ()  # ascending, each once
    parent: bytes = b""  # derived from the claims of all items, so not the item's own: see `model.hierarchy`
    forked_to: bytes = b""  # no query reads it, but references to this item resolve to it: see `forks`

    def get(self, path: Path) -> Value | Missing:
        """The value at a path, or `MISSING`."""
        if isinstance(path, Fact):
            return _FACTS[path](self)
        found = self.value
        for key in path:
            if not isinstance(found, dict) or key not in found:
                return MISSING
            found = found[key]
        return found

    def refers_like(self, other: Facts) -> bool:
        """True if both have the same references. If neither are computed yet, their sources are compared instead."""
        one, two = getattr(self, "_find", None), getattr(other, "_find", None)
        same = one is not None and two is not None and one.func is two.func and one.args == two.args
        return same or self.references == other.references

    def texts(self) -> Iterator[str]:
        """The texts that `Match` searches: the name, and every text in the value."""
        if self.name:
            yield self.name
        yield from _inside(self.value, str)

    def word_text(self) -> str:
        """The words of these texts in one string (`tokens.word_text`), computed on first use."""
        try:
            return self._words
        except AttributeError:
            object.__setattr__(self, "_words", word_text(self.texts()))
            return self._words


def _inside(value: Value, kind: type[T]) -> Iterator[T]:
    """The scalars of a kind in a value, in order. Long lists of plain scalars are passed over at once."""
    waiting: list[Iterator[Any]] = [iter((value,))]
    while waiting:
        for part in waiting[-1]:
            if isinstance(part, dict | list | tuple):
                inside = part.values() if isinstance(part, dict) else part
                kinds = set(map(type, inside))
                if kind in kinds or not kinds <= _PLAIN:
                    waiting.append(iter(inside))
                    break
            elif isinstance(part, kind):
                yield part
        else:
            waiting.pop()


def _references(value: Value, further: Iterable[Reference]) -> tuple[Reference, ...]:
    return in_order({*_inside(value, Reference), *further})


def in_order(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """References sorted by item, then party."""
    return tuple(sorted(references, key=_by_bytes))


def _reference(item: bytes) -> Reference | Missing:
    return Reference(item) if item else MISSING


_FACTS: dict[Fact, Callable[[Facts], Any]] = {
    Fact.ID: lambda facts: Reference(facts.id),
    Fact.TYPE: lambda facts: facts.type or MISSING,
    Fact.MODEL: lambda facts: facts.model,
    Fact.VERSION: lambda facts: facts.version,
    Fact.NAME: lambda facts: facts.name or MISSING,
    Fact.CREATED: lambda facts: _EPOCH + timedelta(milliseconds=min(facts.created_ms, CREATED_MS_MAX)),
    Fact.PARENT: lambda facts: _reference(facts.parent),
    Fact.SOURCE: lambda facts: _reference(facts.link[0] if facts.link else b""),
    Fact.TARGET: lambda facts: _reference(facts.link[1] if facts.link else b""),
    Fact.VIEW_CLASS: lambda facts: facts.view_class or MISSING,
    Fact.VIEW_KEY: lambda facts: facts.view_key or MISSING,
    Fact.EMBEDS: lambda facts: [Reference(item) for item in facts.embeds],
    Fact.REFERENCES: lambda facts: list(facts.references),
}


def finder(fact: Fact) -> Callable[[Facts], Value | Missing]:
    """The function that reads a fact, for callers that read it of many items."""
    return _FACTS[fact]


def facts_of(item: ItemState, parent: bytes = b"") -> Facts:
    """The facts of a live item."""
    value, further = _shown(item)
    facts = Facts(
        id=bytes(item.id),
        model=item.name,
        version=item.version,
        value=value,
        type=item.type,
        name=item.display_name,
        deleted=item.is_deleted,
        created_ms=item.created_ms,
        claims=tuple(item.parents),
        link=item.link,
        view_class=item.view_class,
        view_key=b"" if item.view is None else item.view.key,
        embeds=item.embedded,
        parent=parent,
        forked_to=item.forked_to,
    )
    facts.refer_later(partial(_references, value, further))
    return facts


def _shown(item: ItemState) -> tuple[Value, tuple[Reference, ...]]:
    """The value and the further references that a model shows to queries.

    A model that fails, or gives no valid value, shows nothing: a fault in its code must not keep the party from saving.
    """
    model = item.model
    if model is None:
        return None, ()
    try:
        value = model.document(item.state)
        if type(model) not in _OUR_OWN:
            pack(value)
        return value, tuple(sorted(model.references(item.state), key=_by_bytes))
    except MemoryError:
        raise
    except Exception:
        _LOG.exception("item %s: the model %s %s shows nothing to queries", item.id.hex(), item.name, item.version)
        return None, ()
