"""Standing queries: results that are updated from changes, and subscriptions to them.

live              `LiveQueries`: the subscriptions of a live party
subscription      `Subscription`: a result, its observers, and its deltas as an async iterator
pending           the delta that a slow observer has not received yet
matcher           `Matcher`: all standing queries, and the deltas that a change causes
steps             `Stages`: the items before and after each step of a standing query
edges             hops: the memory that a step needs
ranking           `Ranking`: a result in order
aggregates        `LiveAggregate`: the aggregate of a result
predicate_index   which of very many filters an item may pass
probes            necessary conditions of a filter, for that index
interval_tree     ranges that cover a point, for that index
port              the interface through which standing queries read items
party_source      that interface on a live party
cycles            `ParentCycles`: cycles of claims to parents

In: changes of a party, through `port`. Out: deltas to observers. Only `live` and `party_source` know a party; the rest
does no I/O. Imports the modules of `antiphon.query`, not `index`. Start reading at `live`, then `matcher`.
"""
