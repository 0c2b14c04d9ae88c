"""Synchronise two stores in one process, without a network.

    sync         `antiphon.sync`: two sessions of `antiphon.mesh` that talk in memory until both stores have everything
    store_end    `StoreEnd`: one store's side: its replica of a party, who may have it, and the work on what came
    view_fetch   fetches one view, or the rest of a party, for a store that holds one view alone

In: two open stores. Out: blocks, bodies and blobs in both, all verified on arrival.
"""
