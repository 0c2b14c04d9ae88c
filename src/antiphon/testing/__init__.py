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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.testing.blob_store_laws import run_blob_store_tests
    from antiphon.testing.feed_store_laws import run_feed_store_tests
    from antiphon.testing.item_store_laws import run_item_store_tests
    from antiphon.testing.model_laws import run_model_tests

__all__ = ["run_blob_store_tests", "run_feed_store_tests", "run_item_store_tests", "run_model_tests"]

_WHERE = {
    "run_blob_store_tests": "blobs",
    "run_feed_store_tests": "feeds",
    "run_item_store_tests": "items",
    "run_model_tests": "models",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"antiphon.testing has no {name!r}")
    return getattr(import_module(f"antiphon.testing.{_WHERE[name]}"), name)
