"""The network of a store: its parties for a node of `antiphon.mesh`, and what applications see of the connections.

    network      `Network`: listens, connects, and answers what is connected and how far it is
    store_host   `StoreHost`: the parties of a store, for the node
    peers        `StorePeer`: another device, as it is shown
    replicated_party  `ReplicatedParty`: what a party tells of its replication
    replication  `PartyReplication`: how far this device is with each connected one
    party_index  `PartyIndex`: who may speak about each party, by control feeds alone
    store_end    `StoreEnd`: one store's side of replication of one party

In: an open store. Out: connections to other devices, over which its parties are replicated.
"""
