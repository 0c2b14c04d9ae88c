"""Queries of one party, from the arguments of `Party.query` to handles.

    arguments   builds a `Query` from the arguments of `Party.query`, `count`, `aggregate` and `subscribe`
    queries     `Queries`: runs queries on the item index of the party, inside and outside of batches; subscriptions
    results     `Results`: the found items as a sequence of handles
    deltas      `Delta`: a change of a subscription's result, with handles

In: `Query` values, filters and keyword arguments. Out: `Results` and `Delta`. Uses `antiphon.query`, which knows items
only as ids and facts.
"""
