"""The stages of the pipeline under their names, to be used one by one; `Run` puts them together.

    survey      homes → verified and planned: how far feeds count, what is void, whose it is
    blocks      a survey → every block of it
    judged      blocks → with the standing of each
    quarantine  judged blocks → what does not count, or not yet, and why
    bases       a survey → the states that its parties stand on
    messages    judged blocks, bases → what is folded, item by item and in the total order
    folded      messages → items and refusals
    items       folded → the items
    refused     folded → the messages that were refused, and why
    changed     the plan of an epoch → the items that it changes
    snapshot    changed items → the blobs of the epoch's snapshot
    shown       items → as tables show them, with JSON, and with what queries ask
    links       items → where they lead to
    changes     two tables of shown items → what is other
    seen        shown items → as queries see them: forks followed, parents settled
    found       a query, seen items → those that it finds, or totals

Most are functions from DataFrame to DataFrame; docs/design/spark.md has the columns.
"""

from __future__ import annotations

from antiphon.pipeline.epoch.epoch_snapshot import changed, snapshot
from antiphon.pipeline.fold.item_fold import folded, items, refused
from antiphon.pipeline.order.messages import bases, messages
from antiphon.pipeline.plan.standings import judged, quarantine
from antiphon.pipeline.plan.survey import survey
from antiphon.pipeline.plan.surveyed_blocks import blocks
from antiphon.pipeline.query.compile import found
from antiphon.pipeline.query.resolved_items import Seen, seen
from antiphon.pipeline.tables.changes import changes
from antiphon.pipeline.tables.item_rows import shown
from antiphon.pipeline.tables.links import links

__all__ = [
    "Seen",
    "bases",
    "blocks",
    "changed",
    "changes",
    "folded",
    "found",
    "items",
    "judged",
    "links",
    "messages",
    "quarantine",
    "refused",
    "seen",
    "shown",
    "snapshot",
    "survey",
]
