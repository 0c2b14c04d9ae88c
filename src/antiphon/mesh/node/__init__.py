"""The node: a device in a network, with all its connections and parties.

Start reading at `node`. A network thread moves and encrypts bytes; a few workers let parties take what came. A party is
opened when there is something to do for it, and closed again.

node            `Node`: listens, connects, tells who is connected; ends everything
network_thread  `NetworkThread`: the thread and event loop in which connections live
node_links      `NodeLinks`: the connections, one for each device; what their links ask and tell
connection      `Connection`: a pipe with the link on it
door            `Door`: which connections have a place, and how much may wait on each
dialler         `Dialler`: which addresses to dial again, and when
directory       `PartyDirectory`: which devices may speak about which parties
line            `Line`: a connection as workers see it: messages to it, and how much may wait
party_works     `PartyWorks`: the work on all parties; wakes the one that a commit was for
party_work      `PartyWork`: the sessions of one party, and the work on what they bring
workers         `Workers`: threads that work on many things in turns
watchers        `Watchers`: functions that are called when something may have changed
ports           `PartyHost`, `PartyEnd`: the parties of a device, as `antiphon.api` gives them
peer            `Peer`: a device as it is shown to people
limits          the bounds of a node, and its times

In: a device's key and parties. Out: connections to other devices, over which parties are replicated. May import `link`,
`replication`, `channel`, `transport`, and what those may.
"""
