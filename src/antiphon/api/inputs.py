"""Checks of the arguments that an application passes. Each error names the expected value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from antiphon.api.key_text import from_any_text
from antiphon.core.errors import InvalidInput, TooLarge
from antiphon.core.keys import KEY_SIZE, PublicKey
from antiphon.core.timeframe import Timeframe
from antiphon.feed.limits import SPAN_BLOCKS_MAX
from antiphon.halo.credentials.claims import Role

if TYPE_CHECKING:
    from antiphon.api.items.handle import Handle
    from antiphon.api.party import Party


def need_key(value: Any, what: str) -> PublicKey:
    """Return the key of an identity or group, given as bytes or as text (`str(store.me)`)."""
    key = from_any_text(value) if isinstance(value, str) else value
    if not isinstance(key, bytes) or len(key) != KEY_SIZE:
        raise InvalidInput(
            f"{what} is named by a key, {KEY_SIZE} bytes or its text, not by {value!r:.80}; `store.me` is such a key"
        )
    return PublicKey(key)


def need_id(value: Any) -> bytes:
    """Return the id of an item."""
    if not isinstance(value, bytes):
        raise InvalidInput(f"an item is named by its `id`, which is bytes, not by {value!r:.80}")
    return bytes(value)


def need_handle(value: Any, what: str) -> Handle:
    """Return a handle of an item."""
    from antiphon.api.items.handle import Handle

    if not isinstance(value, Handle):
        raise InvalidInput(f"{what} is an item, as `party.item(id)` gives it, not {value!r:.80}")
    return value


def need_text(value: Any, what: str) -> str:
    """Return a string. `what` names the argument in the error."""
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is text, not {value!r:.80}")
    return value


def need_role(value: Any) -> Role:
    """Return a role."""
    if not isinstance(value, Role):
        known = ", ".join(f"Role.{role.name}" for role in Role)
        raise InvalidInput(f"a role is one of {known}, not {value!r:.80}")
    return value


def need_callable(value: Any, what: str) -> None:
    """Refuse an observer that is no function."""
    if not callable(value):
        raise InvalidInput(f"{what} is called back after each change, and {value!r:.80} cannot be called")


def need_timeframe(value: Any) -> Timeframe:
    """Return a timeframe."""
    if not isinstance(value, Timeframe):
        raise InvalidInput(f"a moment is a Timeframe, as `party.timeframe` gives it, not {value!r:.80}")
    return value


def need_values(values: Any) -> list[Any]:
    """Return the elements of a new list. A string is refused: its characters are hardly what is meant."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise InvalidInput(f"a list is made of several values, not of a {kind}; write [{values!r:.40}] or list(...)")
    return list(values)


def need_room(party: Party, count: int, what: str) -> None:
    """Refuse a change that needs more messages than a batch can hold, before any of it is done."""
    batch = party.processor.open_batch()
    held = 0 if batch is None else len(batch)
    if held + count > SPAN_BLOCKS_MAX:
        open_ = f", and {held} are in the open batch" if held else ""
        raise TooLarge(f"{what} takes {count} messages{open_}; a batch has at most {SPAN_BLOCKS_MAX}: do it in parts")
