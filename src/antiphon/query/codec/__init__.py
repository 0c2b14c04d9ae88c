"""Encodings of queries and facts.

protobuf    `Query` as bytes, one encoding for each query
json_form   `Query` as JSON, for configuration, logs and the command line
facts       `Facts` as bytes, as the item index stores them

In: queries, facts, bytes and JSON from peers and users. Out: the same in the other form, or an error that says where it
is wrong. Imports `query`, `filters`, `facts` and `validate`, not `index` or `live`.
"""
