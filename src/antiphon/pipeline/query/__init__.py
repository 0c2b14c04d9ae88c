"""Queries and SQL over the Delta tables: the same `Query` value that live peers run, compiled to Spark SQL.

    sql               SQL over the tables under their names; opens tables for queries
    resolved_items    stage `seen`: items as queries see them, with forks followed and parents settled
    compile           stage `found`: a `Query` → a DataFrame of items, or of totals
    filters           filters of a query → Spark columns
    aggregates        count, sum, mean, min, max, exact over many tasks

In: the table `items` (its column `facts`), and an `antiphon.query.query.Query`. Out: DataFrames, or `Result` by party.
`antiphon.query.evaluate` defines what a query means; tests compare the two. May import `tables` and the rooms below it.
Start reading at `compile`.
"""
