"""Core: the values that every other package uses.

keys       `KeyPair`, `PublicKey`: Ed25519 keys, which name identities, devices, parties and feeds
ids        `ItemId`: ids of items
cid        `Cid`: names of blobs by content; DAG-CBOR
stamp      `Stamp`: names of messages, and the total order
timeframe  `Timeframe`: a vector clock over feeds; `Causality`
errors     the tree of errors
ports      `Clock`, `Randomness`: time and randomness, which are passed in
codec      `Reader`: bounded reads of bytes that may be hostile
exports    public names of a package, loaded when they are first used
lazy       a cached property without a lock
v1/        protobuf messages, generated from proto/antiphon/v1

Imports no other package of Antiphon.
"""
