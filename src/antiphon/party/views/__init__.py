"""Partial parties: a device that holds one view of a party, and only headers of the rest.

partial_party  `PartialParty`: holds one view of a running party, and names what to fetch
selection      `ViewSelection`: which items and bodies belong to the view; no I/O
outline        `Outline`: the relations between items, and the `Reach` of a view in them
source         `ViewSource`: the other end, a peer with the whole snapshot, answers here

In: spans and item states. Out: requests to a whole peer (a list of items, blobs, bodies), which the caller's network
carries. Imports `party.live` and the rooms below it. Start reading at `partial_party.py`.
"""
