"""A kit for testing what stands on Antiphon: feeds made to order, honest and hostile, and laws to prove adapters with.

spans       writers that need no store: honest blocks, and signed blocks that break a rule
strategies  the same for Hypothesis (which must be installed)
feeds       `run_feed_store_tests`: the laws of a feed store, for any adapter
"""
