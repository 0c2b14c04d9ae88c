"""Synchronise two stores in one process, without a network.

    sync         `antiphon.sync`: two stores that talk over a link of `antiphon.mesh` until both have everything
    store_side   `StoreSide`: one store's parties in a sync
    talk         `Talk`: the link between the two
    view_fetch   fetches one view, or the rest of a party, for a store that holds one view alone

In: two open stores. Out: blocks, bodies and blobs in both, all verified on arrival.
"""
