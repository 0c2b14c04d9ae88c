"""Items that keep their messages beside their state: the place of a late message, and the messages to apply again.

An item that is based on an epoch begins with the state of its base, or with the messages of the base in their order.
Messages that arrive later are sorted behind the base, however low their lamports.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.core.errors import InvalidMutation
from antiphon.core.reasons import Reason, because
from antiphon.core.stamp import Stamp
from antiphon.model.item_state import Checkpoint, ItemState, KeptMessage
from antiphon.model.model import Feeding, Model

CHECKPOINT_EVERY = 256  # messages of an ORDERED item between two checkpoints
BASE = Stamp(-1, b"", 0)  # the position of the base, before all messages
_KEEPS: dict[type[Model[Any]], bool] = {}


def is_ordered(model: Model[Any]) -> bool:
    """True if a model needs the total order. That includes models whose snapshots depend on the order of arrival."""
    return model.feeding is Feeding.ORDERED or not model.canonical


def keeps_tail(model: Model[Any]) -> bool:
    """True if items of a model keep their messages beside the state. Called for every message, so it is cached."""
    kind = type(model)
    known = _KEEPS.get(kind)
    if known is None:
        known = _KEEPS[kind] = is_ordered(model) or not model.has_snapshot
    return known


def apply(model: Model[Any], state: Any, mutation: bytes, stamp: Stamp, void: object) -> None:
    """Apply one mutation. An error in the code of a model must not stop the party: it refuses the message."""
    try:
        model.apply(state, mutation, stamp, void=bool(void))
    except InvalidMutation as error:
        raise InvalidMutation(because(Reason.MODEL, str(error))) from error
    except MemoryError:
        raise
    except Exception as error:
        raise failed(model, error) from error


def failed(model: Model[Any], error: Exception) -> InvalidMutation:
    """Return the refusal for a message on which the code of a model failed."""
    text = f"the model {model.name} {model.version} failed: {error!r}"
    return InvalidMutation(because(Reason.MODEL_FAILED, text))


def replay(model: Model[Any], state: Any, messages: Iterable[KeptMessage]) -> None:
    """Apply messages that were judged before. A message that was refused then changes nothing now."""
    for stamp, mutation, void in messages:
        try:
            apply(model, state, mutation, stamp, void)
        except InvalidMutation:
            continue


def start_from_base(item: ItemState) -> None:
    """Mark an item as based on an epoch: its present state is the earliest that it rolls back to."""
    model = item.model
    item.based, item.base_count = True, len(item.tail)
    if model is not None and model.has_snapshot and is_ordered(model):
        item.checkpoints = [Checkpoint(BASE, model.snapshot(item.state))]


def merge(item: ItemState, fresh: list[KeptMessage], verdicts: dict[Stamp, str]) -> bool:
    """Sort new messages into the tail and apply from the first on. False if one precedes all that the tail holds."""
    model, base = item.model, item.base_count
    assert model is not None
    fresh.sort()
    first = fresh[0].stamp
    tailed = len(item.tail) > base
    last = item.tail[-1].stamp if tailed else item.checkpoints[-1].stamp if item.checkpoints else None
    if last is None or first > last:
        item.tail += fresh
    elif not is_ordered(model):
        item.tail[base:] = sorted(item.tail[base:] + fresh)
    else:
        while item.checkpoints and item.checkpoints[-1].stamp >= first:
            item.checkpoints.pop()
        if not item.checkpoints and item.trimmed:
            return False
        item.tail[base:] = sorted(item.tail[base:] + fresh)
        point = item.checkpoints[-1] if item.checkpoints else None
        item.state = model.restore(point.state) if point else model.initial()
        replay(model, item.state, item.tail[:base])
        fresh = [kept for kept in item.tail[base:] if point is None or kept.stamp > point.stamp]
        verdicts.update((kept.stamp, kept.void) for kept in fresh)
    for stamp, mutation, void in fresh:
        try:
            apply(model, item.state, mutation, stamp, void)
        except InvalidMutation as error:
            verdicts[stamp] = void or str(error)
    if is_ordered(model) and model.has_snapshot:
        _checkpoint(item, model)
    return True


def _checkpoint(item: ItemState, model: Model[Any]) -> None:
    """After `CHECKPOINT_EVERY` messages add a checkpoint, and drop everything before the last but one."""
    since = item.checkpoints[-1].stamp if item.checkpoints else None
    fresh = len(item.tail) if since is None else sum(1 for kept in item.tail[-CHECKPOINT_EVERY:] if kept.stamp > since)
    if fresh < CHECKPOINT_EVERY:
        return
    item.checkpoints.append(Checkpoint(item.tail[-1].stamp, model.snapshot(item.state)))
    if len(item.checkpoints) > 2:
        del item.checkpoints[0]
        oldest = item.checkpoints[0].stamp
        item.tail = [kept for kept in item.tail if kept.stamp > oldest]
        item.trimmed = True
