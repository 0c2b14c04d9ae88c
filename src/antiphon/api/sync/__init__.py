"""Synchronise two stores in one process, without a network.

    sync         `antiphon.sync`: copies blocks and blobs both ways until both stores have everything
    view_fetch   fetches one view, or the rest of a party, for a store that holds one view alone

In: two open stores. Out: blocks, bodies and blobs in both, all verified on arrival. `antiphon.mesh` does the same over
a network, in requests and answers.
"""
