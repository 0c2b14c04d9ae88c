"""The stages of the pipeline under their names, to be used one by one; `batch_run.Run` combines them.

    survey      homes → verified feeds and a plan of each party: how far feeds count, what is void, who wrote what
    blocks      survey → all its blocks
    judged      blocks → the same with the standing of each block
    quarantine  judged blocks → blocks that do not count, or not yet, and why
    bases       survey → the item states of the epochs that its parties are based on
    messages    judged blocks, bases → messages by item, in the total order
    folded      messages → items and refused messages
    items       folded → the items
    refused     folded → the refused messages, and why
    changed     plan of an epoch → the items that it changes
    snapshot    changed items → the blobs of the epoch's snapshot
    shown       items → rows of the table `items`: with JSON, and with the column `facts` for queries
    links       items → rows of the table `links`: the edges between items
    changes     two tables of shown items → the items that changed between them
    seen        shown items → items as queries see them: forks followed, parents settled
    found       query, seen items → the items that it finds, or totals

Most are functions from DataFrame to DataFrame; docs/design/spark.md has the columns.
"""

from __future__ import annotations

from antiphon.pipeline.epoch.epoch_snapshot import changed as changed, snapshot as snapshot
from antiphon.pipeline.fold.item_fold import folded as folded, items as items, refused as refused
from antiphon.pipeline.order.messages import bases as bases, messages as messages
from antiphon.pipeline.plan.standings import judged as judged, quarantine as quarantine
from antiphon.pipeline.plan.survey import blocks as blocks, survey as survey
from antiphon.pipeline.query.dataframe import found as found
from antiphon.pipeline.query.resolved_items import Seen as Seen, seen as seen
from antiphon.pipeline.tables.changes import changes as changes
from antiphon.pipeline.tables.item_rows import shown as shown
from antiphon.pipeline.tables.links import links as links
