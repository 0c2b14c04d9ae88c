"""Queries and SQL over the Delta tables: the same `Query` value that live peers run, as DataFrames of Spark.

    table_sql         SQL over the tables under their names; opens tables for queries
    resolved_items    stage `seen`: items as queries see them, with forks followed and parents settled
    dataframe         stage `found`: a `Query` → a DataFrame of items, or of totals
    filters           filters of a query → Spark columns
    aggregates        count, sum, mean, min, max, exact over many tasks

In: the table `items` (its column `facts`), and an `antiphon.query.query.Query`. Out: DataFrames, or `Result` by party.
`antiphon.query.evaluate` defines what a query means; tests compare the two. May import `tables` and what that
may import. Start reading at `dataframe`.
"""
