"""The SQLite index of a party: its tables, and queries as SQL over them.

index      `ItemIndex`: write items, run queries
tables     the tables, their format, and errors of SQLite as ours
columns    `Columns`: columns that queries use, created on first use
update     changed items written into the tables
forks      `StoredForks`: forks in the tables
sql        a query as one SQL statement
prepared   `Prepared`: statements shared by queries of one shape

In: encoded facts from the item store, and queries. Out: results and facts. The index is derived from the items, so it
can always be built again. Imports `codec` and the modules of `antiphon.query`, not `live`. Start reading at `index`.
"""
