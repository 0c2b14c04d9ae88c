"""A kit for testing what stands on Antiphon: feeds made to order, honest and hostile, and laws to prove adapters with.

spans       writers that need no store: honest blocks, and signed blocks that break a rule
strategies  the same for Hypothesis (which must be installed)
feeds       `run_feed_store_tests`: the laws of a feed store, for any adapter
models      `run_model_tests`: the laws of models, for your own
histories   random histories of an item, which these are played on
bases       those of the laws that are about epochs
items       `run_item_store_tests`: the laws of an item store, for any adapter
blobs       `run_blob_store_tests`: the laws of a blob store, for any adapter
parties     control feeds in memory, with honest and hostile actors
peers       whole peers in one process, with stores on disk
queries     items and queries for Hypothesis, to compare what answers them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.testing.blob_store_laws import run_blob_store_tests as run_blob_store_tests
    from antiphon.testing.feed_store_laws import run_feed_store_tests as run_feed_store_tests
    from antiphon.testing.item_store_laws import run_item_store_tests as run_item_store_tests
    from antiphon.testing.model_laws import run_model_tests as run_model_tests

__getattr__, __dir__ = lazy_exports(__name__)
