"""Queries: a frozen value that runs on the index of a peer, as a live subscription, and on Spark.

query         `Query`, its steps (`Way`), orders (`OrderBy`) and aggregates
filters       `Filter`: comparisons (`prop`, `Fact`) combined with `&`, `|` and `~`
validate      checks of a query before it runs
facts         `Facts`: everything that a query can read of one item
forks         ids of forked items, resolved to the items that they lead to
value_order   the order and equality of values, in Python and SQLite
tokens        words of texts, for `Match`
sums          exact sums and means
packed_json   values as JSON text that reads back exactly
evaluate      the meaning of queries in plain Python, which all engines are tested against, and `Result`
delta         `Delta`: the change of a result
multimap      a map of keys to sets

codec/        queries and facts as bytes and as JSON
index/        the SQLite index of a party, and queries as SQL
live/         standing queries and subscriptions

In: item states of `antiphon.model`, and a live party of `antiphon.party`. Out: results, deltas and subscriptions, to
`antiphon.api` and `antiphon.pipeline`. Rooms import the modules above; `index` and `live` do not import each other.
Start reading at `query`, then `evaluate`.
"""
