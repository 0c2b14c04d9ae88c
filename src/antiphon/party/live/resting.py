"""Let a party rest when it is closed, and find at the next opening that it still rests (`party.engine.rest`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from antiphon.core.errors import AntiphonError
from antiphon.feed.store.feed_store import FeedStore
from antiphon.party.engine.engine import Engine
from antiphon.party.engine.ports import Items, Save
from antiphon.party.engine.rest import Rest, digest_of

if TYPE_CHECKING:
    from antiphon.party.live.processor import PartyProcessor

_LOG = logging.getLogger(__name__)


def load_rest(items: Items, party: PartyProcessor) -> Rest | None:
    """Return what a party rests on, if nothing has come since it was closed; else None."""
    if items.why_rebuilt or items.ready_items is not None:
        return None
    try:
        data = items.rest()
        rest = Rest.decode(data) if data else None
    except AntiphonError:  # it has changed on the disk: all is read and compared
        return None
    if rest is None or rest.mark != party.store.rest(party.key) or rest.models != digest_of(party.models.keys):
        return None
    return rest if party.authority.is_device(rest.device) else None


def save_rest(engine: Engine, store: FeedStore, *, is_idle: bool) -> None:
    """Save what the next opening may rest on, if all that is here is processed and saved.

    If it cannot be saved, the next opening takes longer, and no more.
    """
    try:
        since, before = store.transaction, engine.rest
        device = engine.device_at_rest()
        if not device or (before is not None and before.is_idle == is_idle):
            return
        mark = store.put_rest(engine.party, since) if before is None else before.mark
        if mark is not None:
            rest = Rest(mark, is_idle, digest_of(engine.models.keys), device)
            with engine.saving() as put:
                put(Save(rest=rest.encode()))
    except AntiphonError as error:
        _LOG.info("party %s: the next opening takes longer: %s", engine.party.hex()[:8], error)
