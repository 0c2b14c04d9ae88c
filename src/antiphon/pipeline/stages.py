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

from antiphon.pipeline.blocks import blocks
from antiphon.pipeline.changes import changes
from antiphon.pipeline.items import folded, items, refused
from antiphon.pipeline.judged import judged, quarantine
from antiphon.pipeline.links import links
from antiphon.pipeline.messages import bases, messages
from antiphon.pipeline.querysql import found
from antiphon.pipeline.seen import Seen, seen
from antiphon.pipeline.shown import shown
from antiphon.pipeline.snapshot import changed, snapshot
from antiphon.pipeline.survey import survey

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
