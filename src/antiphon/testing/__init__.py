"""A test kit for code built on Antiphon: the laws of models and stores, and honest or hostile feeds, parties and peers.

    model_laws        `run_model_tests`: the laws of models, for a model of your own
    epoch_laws        those of them that are about epochs
    histories         random histories of one item, on which these laws are checked
    feed_store_laws   `run_feed_store_tests`: the laws of a feed store, for any adapter
    item_store_laws   `run_item_store_tests`: the laws of an item store, for any adapter
    blob_store_laws   `run_blob_store_tests`: the laws of a blob store, for any adapter
    transport_laws    `run_transport_tests`: the laws of a transport of the mesh, for any adapter
    spans             writers without a store: honest blocks, and signed blocks that break a rule
    feed_strategies   the same as Hypothesis strategies
    query_strategies  Hypothesis strategies of items and queries, to compare two evaluators of queries
    parties           control feeds in memory, with honest and hostile actors
    peers             whole peers in one process, with stores on disk
    crowd             many devices that only have feeds, for parties of many writers
    copy_feeds        copies a party from one feed store into another
    view_fetch        exchange between a whole peer and one that holds a view

Start reading at model_laws. The `run_…_tests` functions are exported here; they return the names of the laws that they
checked, or raise an AssertionError that says which law is broken. The strategies need Hypothesis. The kit may import
every package but `cli` and `sim`; the tests of Antiphon use it, and so can yours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.testing.blob_store_laws import run_blob_store_tests as run_blob_store_tests
    from antiphon.testing.feed_store_laws import run_feed_store_tests as run_feed_store_tests
    from antiphon.testing.item_store_laws import run_item_store_tests as run_item_store_tests
    from antiphon.testing.model_laws import run_model_tests as run_model_tests
    from antiphon.testing.transport_laws import run_transport_tests as run_transport_tests
else:
    __getattr__, __dir__ = lazy_exports(__name__)
